// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/slot_join.h"

#include <cstddef>

namespace flamed::daemon {

void join_slots(ModuleId module, std::span<const Frame> native, std::span<const RunFrame> run,
                std::vector<Frame>& joined) {
  std::size_t left = run.size();
  for (std::size_t i = 0; i < native.size(); ++i) {
    const std::uint64_t number = native.size() - 1 - i;
    while (left > 0 && run[left - 1].number > number) --left;  // of native frames that are not known
    bool runs = false;
    for (; left > 0 && run[left - 1].number == number; --left) {
      joined.push_back(run[left - 1].frame);
      runs = true;
    }
    Frame frame = native[i];
    if (runs && frame.module != module) continue;
    if (runs && number > 0) frame.offset |= kInterpreterFrame;
    joined.push_back(frame);
  }
}

}  // namespace flamed::daemon
