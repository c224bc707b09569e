// SPDX-License-Identifier: Apache-2.0
//
// PastNames: what frames from the archive are called, by the Frame that stands for them in a snapshot. Blocks of names
// stay packed until somebody asks for a name in them: most are in no answer. One thread adds, any thread asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "archive/reading/same_chain.h"
#include "base/identity.h"
#include "base/named_frame.h"
#include "store/ring/call_tree.h"

namespace flamed::archive {

/// Modules of the archive have ids from here on, no two the same. No module of a running process has one so high.
inline constexpr std::uint32_t kFirstPastModule = 1U << 31;
/// The kernel of another boot has its functions elsewhere: their frames have numbers below this instead of addresses.
inline constexpr std::uint64_t kPastKernelFrames = std::uint64_t{1} << 47;

/// Whether the frame is one of the archive's, which only PastNames can name.
[[nodiscard]] constexpr bool is_past(const Frame& frame) {
  return frame.module.value >= kFirstPastModule || (frame.module == kKernelModule && frame.offset < kPastKernelFrames);
}

class PastNames {
 public:
  PastNames() = default;
  PastNames(const PastNames&) = delete;
  PastNames& operator=(const PastNames&) = delete;

  /// Of a session: its frames have numbers of their own.
  std::uint32_t add_dictionary();
  struct NewFrame {
    Frame frame;
    std::uint32_t number = 0;                   ///< in the dictionary
    std::shared_ptr<const std::string> module;  ///< until the frame has a name, it is shown as unknown, in this file
  };
  void add(std::uint32_t dictionary, std::span<const NewFrame> frames);
  /// Names (archive/codec/names.h) of some of the dictionary's first `frames`. Those of a later block replace earlier
  /// ones; what can't be read of it has none.
  void add_block(std::uint32_t dictionary, std::span<const std::byte> block, std::uint32_t frames);

  /// Fills those chains that are null and whose frames are known here.
  void name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const;

  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Named {
    store::PackedFrame frame;
    std::uint32_t dictionary = 0;
    std::uint32_t number = 0;
    std::uint32_t looked = 0;  ///< so many of the dictionary's blocks were looked through
    std::uint32_t chain = 0;   ///< in chains_, from 1; 0: none
  };
  struct Block {
    std::vector<std::byte> bytes;
    std::uint32_t lowest = 0;  ///< no frame below it
    std::uint32_t frames = 0;  ///< nor from here on
  };

  static constexpr std::uint32_t kNone = 0xffffffffU;

  /// Places in named_ of those that are known here and have no chain yet, else kNone.
  [[nodiscard]] std::vector<std::uint32_t> places_of(std::span<const Frame> frames,
                                                     std::span<const std::shared_ptr<const InlineChain>> chains) const;
  /// Looks for names of frames of one dictionary, by their places in named_; at least one.
  void look_up(std::span<const std::uint32_t> places) const;
  void set(Named& named, std::shared_ptr<const InlineChain> chain) const;

  mutable std::mutex mutex_;  ///< guards everything below
  mutable std::vector<Named> named_;
  struct Module {
    std::shared_ptr<const std::string> name;
    std::vector<std::uint32_t> places;  ///< in named_
  };
  /// By id. An answer has frames of few of all modules, so that a table by frame would not pay.
  std::unordered_map<std::uint32_t, Module> modules_;
  mutable std::vector<std::vector<Block>> blocks_;  ///< by dictionary
  std::size_t block_bytes_ = 0;
  mutable std::vector<std::shared_ptr<const InlineChain>> chains_;
  /// From 1. Most frames of a function have the same one, in whatever minutes they were met.
  mutable std::unordered_map<std::shared_ptr<const InlineChain>, std::size_t, HashOfChain, SameChain> chain_numbers_;
  mutable std::size_t chain_bytes_ = 0;
};

}  // namespace flamed::archive
