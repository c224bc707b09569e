// SPDX-License-Identifier: Apache-2.0
//
// FrameNames: names the frames that a session writes, before their files vanish. As CPU time allows: what is not named
// with its own minute comes with a later one. Names that are at hand are taken in any case. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "archive/codec/names.h"
#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/model/symbol.h"

namespace flamed::daemon {

class FrameNames {
 public:
  /// All of them must outlive it.
  struct Parts {
    symbolizer::Symbolizer& symbolizer;
    const Clock& clock;
    std::function<bool()> may_work;  ///< false: no CPU time for it now
  };
  explicit FrameNames(Parts parts) : parts_(std::move(parts)) {}

  /// Numbers begin again.
  void begin_session();
  /// New frames, with numbers from `first` on.
  void add(std::uint32_t first, std::span<const Frame> frames);
  /// Names that are new, or better than before. Once `stop` is requested, only what takes no more than three seconds.
  std::vector<archive::Name> take(const std::stop_token& stop);

 private:
  struct Unnamed {
    std::uint32_t number = 0;
    Frame frame;
    std::shared_ptr<const InlineChain> chain{};  ///< null: not asked yet
  };

  [[nodiscard]] bool may_go_on(const std::stop_token& stop, MonotonicTime deadline) const;
  void name(std::deque<Unnamed>& from, std::size_t count, std::vector<archive::Name>& names);
  /// Of frames that were added: those of the kernel, since a BPF program leaves no name behind, and those that are
  /// known already.
  void name_at_hand(std::vector<archive::Name>& names);
  void take_chain(Unnamed frame, const symbolizer::SymbolChainPtr& chain, std::vector<archive::Name>& names);

  const Parts parts_;
  std::vector<Unnamed> added_;   ///< since the last call of take()
  std::deque<Unnamed> new_;      ///< never asked
  std::deque<Unnamed> unknown_;  ///< a debug file may still bring a name
};

}  // namespace flamed::daemon
