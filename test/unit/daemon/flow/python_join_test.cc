// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/python_join.h"

#include <string>
#include <utility>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr ModuleId kPython{20};
constexpr ModuleId kLibrary{21};

Frame python(std::uint64_t offset) { return {kPython, offset}; }
Frame library(std::uint64_t offset) { return {kLibrary, offset}; }
Frame function(std::uint64_t number) { return {kRuntimeModule, number << 24}; }

/// Frames of Python functions 1, 2, ..., each in a call.
std::vector<flamed_linked_frame> in_calls(const std::vector<std::uint64_t>& calls) {
  std::vector<flamed_linked_frame> frames;
  for (const std::uint64_t call : calls) frames.push_back({8, call << FLAMED_CHECK_BITS | 1});
  return frames;
}

std::uint64_t call(std::uint64_t native_frame) { return native_frame << FLAMED_CALL_BITS | 0x7000; }

/// "python+16": a place; "(python+16)": it is the interpreter's; "f1": a function of Python. Outermost first.
std::string text_of(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& frame : frames) {
    const auto offset = std::to_string(without_mark(frame).offset);
    std::string one = frame.module == kPython ? "python+" + offset : "library+" + offset;
    if (frame.module == kRuntimeModule) one = "f" + std::to_string(frame.offset >> 24);
    if (is_interpreter(frame)) one.insert(0, "(").append(")");
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

std::string joined(const std::vector<Frame>& native, const std::vector<flamed_linked_frame>& frames,
                   const std::vector<std::uint64_t>& calls, bool is_whole = true,
                   const PythonRunner& runner = {kPython}) {
  std::vector<Frame> functions;
  for (std::size_t i = 0; i < frames.size(); ++i) functions.push_back(function(i + 1));
  std::vector<Frame> result;
  join_python(runner, native, is_whole, {frames, calls}, functions, result);
  return text_of(result);
}

TEST_CASE("Python frames are inside of the native frame that runs them, and what they call is inside of them") {
  const std::vector<Frame> native{library(1), python(2), python(3), python(4), python(5), library(6)};
  CHECK(joined(native, in_calls({0, 0, 1}), {call(2), call(4)}) ==
        "library+1 (python+2) f3 (python+3) (python+4) f2 f1 python+5 library+6");
}

TEST_CASE("without Python frames nothing is the interpreter's") {
  CHECK(joined({library(1), python(2), python(3)}, {}, {}) == "library+1 python+2 python+3");
}

TEST_CASE("frames of a call whose native frame is not known stand with the next outer ones that are") {
  const std::vector<Frame> native{python(2), python(3), python(4)};
  CHECK(joined(native, in_calls({0, 1}), {call(FLAMED_NO_NATIVE_FRAME), call(1)}) ==
        "(python+2) (python+3) f2 f1 python+4");
}

TEST_CASE("frames of calls beyond a cut native stack stand outside of it") {
  CHECK(joined({python(4)}, in_calls({0, 1, 2}), {call(0), call(FLAMED_NO_NATIVE_FRAME)}, false) ==
        "f3 f2 (python+4) f1");
}

TEST_CASE("a native frame of another module does not run Python") {
  CHECK(joined({python(2), library(3)}, in_calls({0}), {call(0)}) == "f1 python+2 library+3");
}

constexpr PythonRunner kByOrder{kPython, 100, 50};

TEST_CASE("where each frame has a native one they are joined in their order") {
  const std::vector<Frame> native{python(2), python(110), python(3), python(120), python(4)};
  CHECK(joined(native, in_calls({0, 0}), {}, true, kByOrder) ==
        "(python+2) (python+110) f2 (python+3) (python+120) f1 python+4");
}

TEST_CASE("a native frame that has no Python frame yet is the innermost one") {
  const std::vector<Frame> native{python(110), python(120), python(130)};
  CHECK(joined(native, in_calls({0, 0}), {}, true, kByOrder) == "(python+110) f2 (python+120) f1 python+130");
}

TEST_CASE("of a cut native stack the innermost frames are joined") {
  CHECK(joined({python(110), python(3)}, in_calls({0, 0}), {}, false, kByOrder) == "f2 (python+110) f1 python+3");
}

}  // namespace
}  // namespace flamed::daemon
