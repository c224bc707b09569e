// SPDX-License-Identifier: Apache-2.0
//
// JavaCode: what is known of the methods of one JVM: which run at addresses of its code heap, and from when to when,
// and which its interpreter runs.
//
// Code of a heap comes and goes, and another method may have a place a moment later. So a name counts for a sample only
// if the same code, by its number of compilation, was found there by a reading that began after the sample, and other
// code is not known to have been there before. An interpreted method is told from others by its check word. One without
// that, of a stack that was walked late, has to be found by a reading after the sample, too.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "base/keyed_hash.h"
#include "symbolizer/model/hotspot_names.h"

namespace flamed::daemon {

class JavaCode {
 public:
  using Kind = symbolizer::HotSpotNamedPlace::Kind;

  /// What is at an address.
  struct Place {
    Kind kind = Kind::kOther;
    std::uint64_t code = 0;  ///< address of its code; 0: none
    std::uint32_t compile_id = 0;
    std::vector<Frame> frames{};  ///< innermost first
  };

  /// Processes choose the words.
  struct InterpretedHash {
    std::size_t operator()(const runtimes::HotSpotInterpreted& method) const noexcept {
      const std::uint64_t key = process_hash_key();
      const std::uint64_t object = hash_with(~key, method.object, key);
      return static_cast<std::size_t>(hash_with(hash_with(object, method.check, key), method.bytecode, key));
    }
  };

  enum class Knowledge : std::uint8_t { kNone, kKnown, kReplaced };
  /// What is known of an address at a time. `by_last_reading`: what was there at the last reading counts as known, even
  /// if that was before.
  [[nodiscard]] Knowledge knowledge_of(std::uint64_t address, MonotonicTime time, bool by_last_reading = false) const;
  /// Of an address that is known.
  [[nodiscard]] const Place& at(std::uint64_t address) const { return places_.at(address); }

  /// The same of an interpreted method.
  [[nodiscard]] Knowledge knowledge_of(const runtimes::HotSpotInterpreted& method, MonotonicTime time,
                                       bool by_last_reading = false) const;
  /// Of a method that is known. Empty: it could not be read.
  [[nodiscard]] const std::optional<Frame>& at(const runtimes::HotSpotInterpreted& method) const {
    return interpreted_.at(method).frame;
  }

  /// A question for what is not known.
  class Question {
   public:
    explicit Question(const JavaCode& code) : code_(code) {}
    void add(std::uint64_t address, MonotonicTime time);
    void add(const runtimes::HotSpotInterpreted& method, MonotonicTime time);
    /// Empty: all is known.
    [[nodiscard]] symbolizer::HotSpotQuestion take() { return std::move(question_); }

   private:
    const JavaCode& code_;
    symbolizer::HotSpotQuestion question_;
    std::unordered_set<std::uint64_t> places_;
    std::unordered_set<std::uint64_t> codes_;
    std::unordered_set<runtimes::HotSpotInterpreted, InterpretedHash> interpreted_;
  };

  /// The answer of a reading that began at `began`. `frame_of` makes a frame of a function and its line.
  void learn(const symbolizer::HotSpotQuestion& question, const symbolizer::HotSpotNames& names, MonotonicTime began,
             const std::function<Frame(const symbolizer::HotSpotFunction&, std::uint32_t)>& frame_of);

  void clear();
  [[nodiscard]] std::size_t places() const { return places_.size() + interpreted_.size(); }
  /// Appends the frames of all places and methods.
  void append_frames(std::vector<Frame>& frames) const;

 private:
  struct Code {
    std::uint32_t bytes = 0;
    std::uint32_t compile_id = 0;
    MonotonicTime seen_at{};  ///< the last reading that found it began then
    MonotonicTime since{};    ///< there was other code before; 0: that is not known
  };

  std::unordered_map<std::uint64_t, Place> places_;  ///< by address
  std::unordered_map<std::uint64_t, Code> codes_;    ///< by address
  struct Interpreted {
    std::optional<Frame> frame;
    MonotonicTime seen_at{};  ///< the last reading that found it so began then
    std::uint8_t failures = 0;
  };
  std::unordered_map<runtimes::HotSpotInterpreted, Interpreted, InterpretedHash> interpreted_;
};

}  // namespace flamed::daemon
