// SPDX-License-Identifier: Apache-2.0
//
// ReadingPurpose: what a thread has files and memory read for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace flamed::symbolizer {

/// Readings that are not for answers don't take the places of those that are, and count for the CPU budget.
enum class ReadingPurpose : std::uint8_t {
  kAnswer,      ///< a client waits for it
  kBackground,  ///< it can be put off
  kSamples,     ///< samples wait for it
};
inline constexpr std::size_t kReadingPurposes = 3;

/// While an object exists, readings by its thread have its purpose.
class ReadingFor {
 public:
  explicit ReadingFor(ReadingPurpose purpose) : before_(std::exchange(purpose_, purpose)) {}
  ~ReadingFor() { purpose_ = before_; }
  ReadingFor(const ReadingFor&) = delete;
  ReadingFor& operator=(const ReadingFor&) = delete;

  [[nodiscard]] static ReadingPurpose purpose() { return purpose_; }

 private:
  static inline thread_local ReadingPurpose purpose_ = ReadingPurpose::kAnswer;
  const ReadingPurpose before_;
};

}  // namespace flamed::symbolizer
