// SPDX-License-Identifier: Apache-2.0
//
// RuntimeKind: the managed runtimes whose functions are read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamed::runtimes {

enum class RuntimeKind : std::uint8_t { kPython, kV8, kJava };
inline constexpr std::array kRuntimeKinds{RuntimeKind::kPython, RuntimeKind::kV8, RuntimeKind::kJava};

/// For people.
constexpr std::string_view name_of(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kPython:
      return "Python";
    case RuntimeKind::kV8:
      return "V8";
    case RuntimeKind::kJava:
      break;
  }
  return "Java";
}

/// In settings and labels of metrics.
constexpr std::string_view key_of(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kPython:
      return "python";
    case RuntimeKind::kV8:
      return "node";
    case RuntimeKind::kJava:
      break;
  }
  return "java";
}

/// Some of them.
class RuntimeKinds {
 public:
  static constexpr RuntimeKinds all() {
    RuntimeKinds kinds;
    for (const RuntimeKind kind : kRuntimeKinds) kinds.add(kind);
    return kinds;
  }
  constexpr void add(RuntimeKind kind) { bits_ |= 1U << static_cast<unsigned>(kind); }
  [[nodiscard]] constexpr bool has(RuntimeKind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1) != 0; }
  [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }
  friend constexpr bool operator==(const RuntimeKinds&, const RuntimeKinds&) = default;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace flamed::runtimes
