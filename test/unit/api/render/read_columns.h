// SPDX-License-Identifier: Apache-2.0
//
// Converts the binary form of columns, as docs/api.md describes it, to the equal JSON form.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace flamed::api {

class ReadColumns {
 public:
  static nlohmann::json from(std::string_view answer) {
    const auto check = [](bool holds, const char* what) {
      if (!holds) throw std::runtime_error(what);
    };
    check(answer.substr(0, 8) == "FLAMEDC1", "magic");
    const auto head = number<std::uint32_t>(answer, 8);
    const auto data = number<std::uint32_t>(answer, 12);
    check(head % 8 == 0, "the data is not aligned");
    check(answer.size() == std::size_t{16} + head + data, "lengths");
    return ReadColumns(answer.substr(16 + head)).plain(nlohmann::json::parse(answer.substr(16, head)));
  }

 private:
  explicit ReadColumns(std::string_view data) : data_(data) {}

  template <typename Number>
  static Number number(std::string_view bytes, std::size_t at) {
    Number value{};
    if (at > bytes.size() || bytes.size() - at < sizeof(value)) throw std::runtime_error("beyond the end");
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  }

  template <typename Number>
  [[nodiscard]] nlohmann::json column(const nlohmann::json& place) const {
    const auto at = place["at"].get<std::size_t>();
    if (at % 8 != 0) throw std::runtime_error("a column is not aligned");
    nlohmann::json values = nlohmann::json::array();
    for (std::size_t i = 0; i < place["count"].get<std::size_t>(); ++i) {
      values.push_back(number<Number>(data_, at + i * sizeof(Number)));
    }
    return values;
  }

  [[nodiscard]] nlohmann::json texts(const nlohmann::json& place) const {
    const auto bytes = data_.substr(place["text"]["at"].get<std::size_t>(), place["text"]["count"].get<std::size_t>());
    nlohmann::json values = nlohmann::json::array();
    std::size_t begin = 0;
    for (const nlohmann::json& end : plain(place["ends"])) {
      values.push_back(std::string(bytes.substr(begin, end.get<std::size_t>() - begin)));
      begin = end.get<std::size_t>();
    }
    if (begin != bytes.size()) throw std::runtime_error("text that belongs to nothing");
    return values;
  }

  [[nodiscard]] nlohmann::json plain(const nlohmann::json& value) const {
    if (!value.is_object()) return value;
    if (value.contains("ends") && value.contains("text")) return texts(value);
    if (value.contains("type") && value.contains("at") && value.contains("count")) {
      const auto type = value["type"].get<std::string>();
      if (type == "u8") return column<std::uint8_t>(value);
      if (type == "u16") return column<std::uint16_t>(value);
      if (type == "u32") return column<std::uint32_t>(value);
      if (type == "f64") return column<double>(value);
      throw std::runtime_error("no such type: " + type);
    }
    nlohmann::json members = nlohmann::json::object();
    for (const auto& [name, member] : value.items()) members[name] = plain(member);
    return members;
  }

  const std::string_view data_;
};

}  // namespace flamed::api
