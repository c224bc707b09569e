// SPDX-License-Identifier: Apache-2.0
//
// What receivers of flamed-push get, decoded: requests of Pyroscope's push.v1 and of OTLP profiles. Written by the
// schemas, apart from the encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/text/gzip.h"
#include "base/protobuf_reader.h"

namespace flamed::test {

struct ReceivedProfile {
  std::map<std::string, std::string> labels{};
  std::string id{};
  std::string types{};  ///< "samples/count cpu/nanoseconds per cpu/nanoseconds"
  std::int64_t time_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t period = 0;
  std::map<std::string, std::uint64_t> stacks{};  ///< from the outermost function on: the first value
};

namespace engine_messages {

/// visit(number, value or 0, bytes or empty) for each field.
inline void for_each(std::string_view message,
                     const std::function<void(std::uint32_t, std::uint64_t, std::string_view)>& visit) {
  ProtobufReader reader(message);
  while (true) {
    const auto field = reader.next();
    if (!field.ok()) throw std::runtime_error(field.error().message());
    if (!field.value()) return;
    visit(field.value()->number, field.value()->value, field.value()->bytes);
  }
}

inline std::vector<std::uint64_t> packed(std::string_view bytes) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < bytes.size();) {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(i++));
      number |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// A message of two numbers or texts.
inline std::pair<std::uint64_t, std::uint64_t> two(std::string_view message) {
  std::pair<std::uint64_t, std::uint64_t> both{0, 0};
  for_each(message, [&](auto field, auto value, auto) { (field == 1 ? both.first : both.second) = value; });
  return both;
}

inline std::string unpacked(std::string_view gzipped) {
  return api::gunzip({reinterpret_cast<const unsigned char*>(gzipped.data()), gzipped.size()}).value();
}

inline void read_pprof(std::string_view message, ReceivedProfile& profile) {
  std::vector<std::string> texts;
  for_each(message, [&](auto field, auto, auto bytes) {
    if (field == 6) texts.emplace_back(bytes);
  });
  const auto type = [&](std::string_view bytes) {
    const auto [name, unit] = two(bytes);
    return texts.at(name) + "/" + texts.at(unit);
  };
  std::map<std::uint64_t, std::string> functions;
  std::map<std::uint64_t, std::vector<std::uint64_t>> lines;  // by location: functions, innermost first
  for_each(message, [&](auto field, auto value, auto bytes) {
    if (field == 1) profile.types += (profile.types.empty() ? "" : " ") + type(bytes);
    if (field == 4) {
      std::uint64_t id = 0;
      std::vector<std::uint64_t> here;
      for_each(bytes, [&](auto member, auto number, auto line) {
        if (member == 1) id = number;
        if (member == 4) here.push_back(two(line).first);
      });
      lines[id] = here;
    }
    if (field == 5) {
      std::uint64_t id = 0, name = 0;
      for_each(bytes, [&](auto member, auto number, auto) {
        if (member == 1) id = number;
        if (member == 2) name = number;
      });
      functions[id] = texts.at(name);
    }
    if (field == 9) profile.time_ns = static_cast<std::int64_t>(value);
    if (field == 10) profile.duration_ns = static_cast<std::int64_t>(value);
    if (field == 12) profile.period = value;
  });
  for_each(message, [&](auto field, auto, auto bytes) {
    if (field == 11) profile.types += " per " + type(bytes);
    if (field != 2) return;
    std::string stack;
    std::uint64_t samples = 0;
    for_each(bytes, [&](auto member, auto, auto list) {
      if (member == 2) samples = packed(list).at(0);
      if (member == 3) throw std::runtime_error("a sample has labels");
      if (member != 1) return;
      for (const std::uint64_t location : packed(list)) {
        for (const std::uint64_t function : lines.at(location)) {
          stack = functions.at(function) + (stack.empty() ? "" : ";") + stack;
        }
      }
    });
    profile.stacks[stack] += samples;
  });
}

}  // namespace engine_messages

/// Throws if it is none.
inline std::vector<ReceivedProfile> profiles_of_push(const std::string& request) {
  using namespace engine_messages;
  std::vector<ReceivedProfile> profiles;
  for_each(request, [&](auto, auto, auto series) {
    ReceivedProfile profile;
    for_each(series, [&](auto field, auto, auto bytes) {
      if (field == 1) {
        std::string name, value;
        for_each(bytes, [&](auto member, auto, auto text) { (member == 1 ? name : value) = text; });
        profile.labels[name] = value;
        return;
      }
      for_each(bytes, [&](auto member, auto, auto text) {
        if (member == 2) profile.id = text;
        if (member == 1) read_pprof(unpacked(text), profile);
      });
    });
    profiles.push_back(std::move(profile));
  });
  return profiles;
}

/// `request` is not packed. `values_field` is that of a Sample's values.
inline std::vector<ReceivedProfile> profiles_of_otlp(const std::string& request, std::uint32_t values_field = 4) {
  using namespace engine_messages;
  std::vector<std::string> texts;
  std::vector<std::uint64_t> functions;               // their names
  std::vector<std::vector<std::uint64_t>> locations;  // functions, innermost first
  std::vector<std::vector<std::uint64_t>> stacks;     // locations
  for_each(request, [&](auto field, auto, auto dictionary) {
    if (field != 2) return;
    for_each(dictionary, [&](auto table, auto, auto entry) {
      if (table == 5) texts.emplace_back(entry);
      if (table == 3) {
        functions.push_back(0);
        for_each(entry, [&](auto member, auto value, auto) {
          if (member == 1) functions.back() = value;
        });
      }
      if (table == 2) {
        std::vector<std::uint64_t> lines;
        for_each(entry, [&](auto member, auto, auto line) {
          if (member == 3) lines.push_back(two(line).first);
        });
        locations.push_back(lines);
      }
      if (table == 7) {
        std::vector<std::uint64_t> list;
        for_each(entry, [&](auto, auto, auto bytes) { list = packed(bytes); });
        stacks.push_back(list);
      }
    });
  });
  const auto folded = [&](std::uint64_t stack) {
    std::string text;
    for (const std::uint64_t location : stacks.at(stack)) {
      for (const std::uint64_t function : locations.at(location)) {
        text = texts.at(functions.at(function)) + (text.empty() ? "" : ";") + text;
      }
    }
    return text;
  };
  const auto type = [&](std::string_view bytes) {
    const auto [name, unit] = two(bytes);
    return texts.at(name) + "/" + texts.at(unit);
  };
  std::vector<ReceivedProfile> profiles;
  for_each(request, [&](auto field, auto, auto of_resource) {
    if (field != 1) return;
    ReceivedProfile profile;
    for_each(of_resource, [&](auto part, auto, auto bytes) {
      if (part == 1) {
        for_each(bytes, [&](auto, auto, auto attribute) {
          std::string name, value;
          for_each(attribute, [&](auto member, auto, auto text) {
            if (member == 1) name = text;
            if (member == 2) for_each(text, [&](auto, auto, auto string) { value = string; });
          });
          profile.labels[name] = value;
        });
        return;
      }
      for_each(bytes, [&](auto scoped, auto, auto encoded) {
        if (scoped != 2) return;
        std::string period_type;
        for_each(encoded, [&](auto member, auto value, auto text) {
          if (member == 1) profile.types = type(text);
          if (member == 3) profile.time_ns = static_cast<std::int64_t>(value);
          if (member == 4) profile.duration_ns = static_cast<std::int64_t>(value);
          if (member == 5) period_type = " per " + type(text);
          if (member == 6) profile.period = value;
          if (member == 7) profile.id = text;
          if (member != 2) return;
          std::uint64_t stack = 0, samples = 0;
          for_each(text, [&](auto number, auto index, auto values) {
            if (number == 1) stack = index;
            if (number == values_field) samples = packed(values).at(0);
          });
          profile.stacks[folded(stack)] += samples;
        });
        profile.types += period_type;
      });
    });
    profiles.push_back(std::move(profile));
  });
  return profiles;
}

}  // namespace flamed::test
