// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/slot_join.h"

#include <string>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr ModuleId kRuntime{20};
constexpr ModuleId kCompiled{21};

Frame runtime(std::uint64_t offset) { return {kRuntime, offset}; }
Frame compiled(std::uint64_t offset) { return {kCompiled, offset}; }
RunFrame run(std::uint64_t number, std::uint64_t function) { return {number, {kRuntimeModule, function << 24}}; }

/// "r1": a place in the runtime; "(r1)": it is the interpreter's; "c1": compiled code; "f1": a function.
std::string joined(const std::vector<Frame>& native, const std::vector<RunFrame>& frames) {
  std::vector<Frame> result;
  join_slots(kRuntime, native, frames, result);
  std::string text;
  for (const Frame& frame : result) {
    const std::string offset = std::to_string(without_mark(frame).offset);
    std::string one = (frame.module == kRuntime ? "r" : "c") + offset;
    if (frame.module == kRuntimeModule) one = "f" + std::to_string(frame.offset >> 24);
    if (is_interpreter(frame)) one.insert(0, "(").append(")");
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

TEST_CASE("functions replace their compiled code, and the interpreter's frames that run them are marked") {
  const std::vector<Frame> native{runtime(1), runtime(2), compiled(3), runtime(4), runtime(5)};
  CHECK(joined(native, {run(2, 9), run(3, 8)}) == "r1 f8 (r2) f9 r4 r5");
}

TEST_CASE("the innermost frame of the runtime is shown below the function that it runs") {
  CHECK(joined({runtime(1), runtime(2)}, {run(0, 8)}) == "r1 f8 r2");
}

TEST_CASE("two functions may be in the place of one native frame") {
  CHECK(joined({runtime(1), compiled(2)}, {run(0, 9), run(0, 8)}) == "r1 f8 f9");
}

TEST_CASE("code of which no function is known stays, and functions of unknown frames are left out") {
  CHECK(joined({runtime(1), compiled(2), compiled(3)}, {run(0, 9), run(7, 8)}) == "r1 c2 f9");
  CHECK(joined({}, {run(0, 9)}).empty());
}

}  // namespace
}  // namespace flamed::daemon
