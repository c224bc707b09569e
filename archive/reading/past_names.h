// SPDX-License-Identifier: Apache-2.0
//
// PastNames: what frames from the archive are called, by the Frame that stands for them in a snapshot. One thread adds,
// any thread asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/identity.h"
#include "base/named_frame.h"
#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/ring/call_tree.h"

namespace flamed::archive {

/// Modules of the archive have ids from here on, no two the same. No module of a running process has one so high.
inline constexpr std::uint32_t kFirstPastModule = 1U << 31;
/// The kernel of another boot has its functions elsewhere: their frames have numbers below this instead of addresses.
inline constexpr std::uint64_t kPastKernelFrames = std::uint64_t{1} << 47;

/// Whether the frame is one of the archive's, which only PastNames can name.
[[nodiscard]] inline bool is_past(const Frame& frame) {
  return frame.module.value >= kFirstPastModule || (frame.module == kKernelModule && frame.offset < kPastKernelFrames);
}

class PastNames {
 public:
  PastNames() : index_(budget_) {}
  PastNames(const PastNames&) = delete;
  PastNames& operator=(const PastNames&) = delete;

  /// Returns the frame's place. Until it has a chain, it is shown as unknown, in the module's file of this name.
  std::uint32_t add(const Frame& frame, const std::shared_ptr<const std::string>& module);
  void set(std::uint32_t place, std::shared_ptr<const InlineChain> chain);

  /// Fills those chains that are null and whose frames are known here.
  void name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const;

  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Named {
    store::PackedFrame frame;
    std::uint32_t chain = 0;  ///< in chains_, from 1; 0: none
  };

  struct HashOfChain {
    std::size_t operator()(const std::shared_ptr<const InlineChain>& chain) const;
  };
  struct SameChain {
    bool operator()(const std::shared_ptr<const InlineChain>& a, const std::shared_ptr<const InlineChain>& b) const {
      return *a == *b;
    }
  };

  [[nodiscard]] static std::uint64_t hash_of(const Frame& frame);

  mutable std::mutex mutex_;  ///< guards everything below
  store::Budget budget_{SIZE_MAX};
  store::IdIndex index_;
  std::vector<Named> named_;
  std::vector<std::shared_ptr<const std::string>> modules_;  ///< of named_
  std::vector<std::shared_ptr<const InlineChain>> chains_;
  /// From 1. Most frames of a function have the same one, in whatever minutes they were met.
  std::unordered_map<std::shared_ptr<const InlineChain>, std::size_t, HashOfChain, SameChain> chain_numbers_;
  std::size_t chain_bytes_ = 0;
};

}  // namespace flamed::archive
