// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a HotSpot JVM, and answered: which methods run at addresses of its code heap, and in frames of its
// interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtimes/hotspot/code_heap.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/runtime_function.h"

namespace flamed::symbolizer {

struct HotSpotQuestion {
  std::vector<std::uint64_t> places;                ///< addresses of code; of callers those within the call
  std::vector<runtimes::HotSpotKnownBlob> known{};  ///< is it still there?
  std::vector<runtimes::HotSpotInterpreted> interpreted{};
};
/// In one question.
inline constexpr std::size_t kMostHotSpotPlaces = 1024;
inline constexpr std::size_t kMostHotSpotChecks = 4096;
inline constexpr std::size_t kMostHotSpotInterpreted = 4096;

struct HotSpotFunction {
  std::string name;  ///< valid UTF-8, not empty
  std::string file;  ///< likewise, but may be empty
};

struct HotSpotFrame {
  static constexpr std::uint32_t kUnreadable = 0xffff'ffff;
  std::uint32_t function = 0;  ///< index into HotSpotNames::functions; of an interpreted method also kUnreadable
  std::uint32_t line = 0;      ///< 0: not known
};

/// What is at an address.
struct HotSpotNamedPlace {
  enum class Kind : std::uint32_t {
    kOther,        ///< no code of HotSpot
    kUnreadable,   ///< it could not be read
    kMethod,       ///< compiled methods, or the wrapper of a native one
    kInterpreter,  ///< the interpreter: see HotSpotNames::interpreted for its method
    kRuntime,      ///< made by HotSpot itself
  };
  runtimes::HotSpotKnownBlob blob;  ///< the code that has it, unless it is none
  Kind kind = Kind::kOther;
  std::uint32_t first_frame = 0;  ///< in HotSpotNames::frames, innermost first
  std::uint32_t frame_count = 0;  ///< not 0 for methods and code of HotSpot
  std::uint32_t reserved = 0;
};

/// The answer to a HotSpotQuestion.
struct HotSpotNames {
  std::vector<HotSpotFunction> functions;
  std::vector<HotSpotFrame> frames;
  std::vector<HotSpotNamedPlace> places;  ///< in the question's order
  std::vector<std::uint8_t> is_there;     ///< likewise, for HotSpotQuestion::known
  std::vector<HotSpotFrame> interpreted;  ///< likewise, for HotSpotQuestion::interpreted
};
inline constexpr std::size_t kMostHotSpotFrames = 65'536;
/// Of a class and a method, and a dot.
inline constexpr std::size_t kMostHotSpotNameBytes = 2 * runtimes::kMostTextBytes + 1;

}  // namespace flamed::symbolizer
