// SPDX-License-Identifier: Apache-2.0
//
// RecordedImage: what a runtime's detection asks of a file, as text, so that versions which the machine does not have
// are tested as well. A line each: "x86-64", "needs LIBRARY", "symbol NAME ADDRESS SIZE", "bytes ADDRESS HEX",
// "block ADDRESS"; numbers in hex. `record_runtime FILE` writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "runtimes/program_image.h"

namespace flamed::runtimes {

class RecordedImage final : public ProgramImage {
 public:
  /// Lines that are none of these are left out.
  explicit RecordedImage(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind >> std::hex;
      if (kind == "x86-64") is_x86_64_ = true;
      if (kind == "needs") {
        std::string library;
        words >> library;
        libraries_.insert(library);
      } else if (kind == "symbol") {
        std::string name;
        Symbol symbol;
        if (words >> name >> symbol.address >> symbol.size) symbols_[name] = symbol;
      } else if (kind == "bytes") {
        std::uint64_t address = 0;
        std::string hex;
        if (words >> address >> hex) put(address, hex);
      } else if (kind == "block") {
        std::uint64_t address = 0;
        if (words >> address) blocks_.insert(address);
      }
    }
  }

  [[nodiscard]] bool is_x86_64() const override { return is_x86_64_; }
  std::optional<Symbol> symbol(std::string_view name) override {
    const auto found = symbols_.find(std::string(name));
    return found == symbols_.end() ? std::nullopt : std::optional(found->second);
  }
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto found = bytes_.find(address + i);
      if (found == bytes_.end()) return false;
      to[i] = found->second;
    }
    return true;
  }
  bool is_block_number(std::uint64_t address) override { return blocks_.count(address) != 0; }
  bool needs(std::string_view library) override { return libraries_.count(std::string(library)) != 0; }

  /// For tests that forge a part of it.
  template <typename T>
  void write(std::uint64_t address, T value) {
    for (const std::byte byte : std::as_bytes(std::span(&value, 1))) bytes_[address++] = byte;
  }
  void forget(const std::string& name) { symbols_.erase(name); }
  void add(const std::string& name, Symbol symbol) { symbols_[name] = symbol; }
  void cut(std::uint64_t from) { bytes_.erase(bytes_.lower_bound(from), bytes_.end()); }
  void change_machine() { is_x86_64_ = false; }

 private:
  void put(std::uint64_t address, std::string_view hex) {
    const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) & 15U; };
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      bytes_[address++] = static_cast<std::byte>(digit(hex[i]) << 4 | digit(hex[i + 1]));
    }
  }

  bool is_x86_64_ = false;
  std::map<std::string, Symbol> symbols_;
  std::map<std::uint64_t, std::byte> bytes_;
  std::set<std::uint64_t> blocks_;
  std::set<std::string> libraries_;
};

}  // namespace flamed::runtimes
