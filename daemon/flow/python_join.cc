// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/python_join.h"

#include <algorithm>

namespace flamed::daemon {
namespace {

constexpr std::uint64_t kNone = FLAMED_NO_NATIVE_FRAME;

/// By group of Python frames: the number of the native frame that runs them, from the innermost on, or kNone.
std::vector<std::uint64_t> runners_of(const PythonRunner& runner, std::span<const Frame> native, bool is_whole,
                                      const LinkedStack& linked) {
  std::vector<std::uint64_t> runners;
  const auto native_at = [&](std::uint64_t number) { return native[native.size() - 1 - number]; };
  if (runner.function_bytes == 0) {
    for (const std::uint64_t call : linked.calls) {
      const std::uint64_t number = call >> FLAMED_CALL_BITS;
      const bool is_known = number < native.size() && native_at(number).module == runner.module;
      runners.push_back(is_known ? number : kNone);
    }
    return runners;
  }
  for (std::uint64_t number = 0; number < native.size(); ++number) {
    const Frame frame = native_at(number);
    const bool runs = frame.module == runner.module && frame.offset - runner.function < runner.function_bytes;
    if (runs) runners.push_back(number);
  }
  const std::size_t frames = linked.frames.size();
  if (!is_whole || linked.is_cut) return runners;
  if (runners.size() > frames) {
    // A function that has just begun, or is about to return, has no Python frame.
    runners.erase(runners.begin(), runners.begin() + static_cast<std::ptrdiff_t>(runners.size() - frames));
  } else {
    // The rest is in a part of the function that the compiler put elsewhere.
    runners.insert(runners.begin(), frames - runners.size(), kNone);
  }
  return runners;
}

}  // namespace

void join_python(const PythonRunner& runner, std::span<const Frame> native, bool is_whole, const LinkedStack& linked,
                 std::span<const Frame> python, std::vector<Frame>& joined) {
  const std::vector<std::uint64_t> runners = runners_of(runner, native, is_whole, linked);
  const auto group_of = [&](std::size_t frame) -> std::size_t {
    return runner.function_bytes != 0 ? frame : linked.frames[frame].check >> FLAMED_CHECK_BITS;
  };
  const auto begin = static_cast<std::ptrdiff_t>(joined.size());
  std::size_t next = 0;   // of the Python frames
  std::size_t group = 0;  // whose runner comes next
  const auto put_up_to = [&](std::size_t last) {
    while (next < python.size() && group_of(next) <= last) joined.push_back(python[next++]);
  };
  for (std::uint64_t number = 0; number < native.size(); ++number) {
    Frame frame = native[native.size() - 1 - number];
    while (group < runners.size() && runners[group] == kNone) ++group;
    if (group < runners.size() && runners[group] == number) put_up_to(group++);
    if (frame.module == runner.module && next > 0) frame.offset |= kInterpreterFrame;
    joined.push_back(frame);
  }
  put_up_to(python.size() + linked.calls.size());
  std::reverse(joined.begin() + begin, joined.end());
}

}  // namespace flamed::daemon
