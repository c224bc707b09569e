// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/detect.h"

#include <array>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "runtimes/python/thread_state.h"
#include "test/catch.h"
#include "test/unit/runtimes/recorded_image.h"

namespace flamed::runtimes {
namespace {

using Boundary = LinkedFrames::Boundary;
using Kind = ThreadStatePlace::Kind;

RecordedImage recorded(const std::string& name) {
  return RecordedImage(read_file(std::string(PYTHON_RECORDINGS) + "/" + name, 1 << 16).value());
}

PythonLayout layout_of(const std::string& name) {
  RecordedImage image = recorded(name);
  Result<std::optional<PythonLayout>> layout = detect_python(image);
  INFO(name);
  if (!layout) FAIL(layout.error().message());
  REQUIRE(layout->has_value());
  return **layout;
}

std::string reason_of(RecordedImage& image) {
  const Result<std::optional<PythonLayout>> layout = detect_python(image);
  if (!layout) return layout.error().message();
  return *layout ? "readable" : "not Python";
}

TEST_CASE("the version of a Python is read, or found from what it exports") {
  CHECK(layout_of("3.9_program").version.text() == "3.9");
  CHECK(layout_of("3.10_library").version.text() == "3.10");
  CHECK(layout_of("3.11_program").version.text() == "3.11.2");
  CHECK(layout_of("3.12_library").version.text() == "3.12.1");
  CHECK(layout_of("3.13_library").version.text() == "3.13.0");
  CHECK(layout_of("3.13_program").version.text() == "3.13.18");
  CHECK(layout_of("3.14_program").version.text() == "3.14.10");
  CHECK(layout_of("3.15_library").version.text() == "3.15.2");
}

TEST_CASE("up to 3.11 thread states are at a global place, and in the value of a pthread key") {
  const PythonLayout layout = layout_of("3.11_program");
  const std::uint64_t runtime = recorded("3.11_program").symbol("_PyRuntime")->address;
  REQUIRE(layout.frames.thread_states.size() == 2);
  CHECK(layout.frames.thread_states[0] == ThreadStatePlace{Kind::kGlobal, 0, runtime + 576});
  CHECK(layout.frames.thread_states[1] == ThreadStatePlace{Kind::kThreadKey, 0, runtime + 0x254});
  CHECK(layout.frames.thread_library == ThreadLibrary::kGlibc);
}

TEST_CASE("from 3.12 on the functions that return thread states say where they are") {
  struct Expected {
    const char* file;
    ThreadStatePlace current;
    std::uint64_t key;  ///< behind _PyRuntime; 0: thread-local
  };
  const Expected all[] = {
      {"3.12_library", {Kind::kThreadBlock, 8, 0x543ef0}, 0x60c},
      {"3.13_library", {Kind::kThreadBlock, 24, 0x4eaec0}, 0x874},
      {"3.13_program", {Kind::kThreadLocal, -24, 0}, 0x874},
      {"3.14_program", {Kind::kThreadLocal, -24, 0}, 0x924},
      {"3.14_library", {Kind::kThreadBlock, 8, 0x7a6530}, 0x924},
      {"3.14_clang_library", {Kind::kThreadBlock, 24, 0x1332340}, 0x924},
      {"3.15_program", {Kind::kThreadLocal, -32, 0}, 0},
      {"3.15_library", {Kind::kThreadBlock, 8, 0x879790}, 0},
  };
  for (const Expected& expected : all) {
    INFO(expected.file);
    const auto places = layout_of(expected.file).frames.thread_states;
    const std::uint64_t runtime = recorded(expected.file).symbol("_PyRuntime")->address;
    REQUIRE(places.size() == 2);
    CHECK(places[0].kind == expected.current.kind);
    CHECK(places[0].offset == expected.current.offset);
    CHECK(places[0].address == expected.current.address);
    if (expected.key != 0) {
      CHECK(places[1] == ThreadStatePlace{Kind::kThreadKey, 0, runtime + expected.key});
    } else {
      CHECK(places[1].kind == places[0].kind);
      CHECK(places[1].offset != places[0].offset);
    }
  }
}

TEST_CASE("frames and code objects have the offsets of their version") {
  const PythonLayout v9 = layout_of("3.9_program");
  CHECK(v9.frames.boundary_kind == Boundary::kEachFrame);
  CHECK(v9.frames.instruction == 104);
  CHECK(v9.objects.lines_kind == PythonLines::kLineNumbers);
  CHECK(v9.objects.name == 112);
  CHECK(v9.objects.lines == 120);
  CHECK(v9.interpreter != 0);
  CHECK(v9.frames.check == CodeCheck{.at = 40, .words = 11, .name = 112, .file = 104, .text = 48});
  CHECK(v9.frames.generation == 0);

  const PythonLayout v10 = layout_of("3.10_library");
  CHECK(v10.frames.instruction == 96);
  CHECK(v10.objects.lines_kind == PythonLines::kRanges);
  CHECK(v10.objects.other_text == 72);

  const PythonLayout v11 = layout_of("3.11_program");
  CHECK(v11.frames.boundary_kind == Boundary::kMarked);
  CHECK(v11.objects.name == 128);
  CHECK(v11.objects.first_line == 72);
  CHECK(v11.frames.check == CodeCheck{.at = 72, .words = 9, .name = 128, .file = 112, .text = 48});

  const PythonLayout v12 = layout_of("3.12_library");
  CHECK(v12.frames.boundary_kind == Boundary::kOwnFrame);
  CHECK(v12.frames.innermost == std::vector<std::uint16_t>{56, 0});
  CHECK(v12.objects.other_text == 56);
  CHECK(v12.objects.first_line == 68);

  for (const std::string name : {"3.13_program", "3.14_library", "3.15_program"}) {
    INFO(name);
    const PythonLayout layout = layout_of(name);
    CHECK(layout.frames.innermost == std::vector<std::uint16_t>{72});
    CHECK(layout.frames.code == 0);
    CHECK(layout.frames.previous == 8);
    CHECK(layout.frames.instruction == 56);
    CHECK(layout.frames.boundary == (name == "3.13_program" ? 70 : 74));
    CHECK(layout.frames.first_instruction == (name == "3.13_program" ? 200 : 208));
    CHECK(layout.frames.thread_id == (name == "3.15_program" ? 176 : 152));
    CHECK(layout.objects.name == 128);
    CHECK(layout.objects.file == 112);
    CHECK(layout.objects.lines == 136);
    CHECK(layout.objects.first_line == 68);
    CHECK(layout.objects.ascii_text == 40);
    CHECK(layout.objects.string_state == 32);
    CHECK(layout.objects.bytes_text == 32);
    CHECK(layout.frames.check == CodeCheck{.at = 64, .words = 10});
    CHECK(layout.frames.interpreter == 16);
    if (name != "3.13_program") CHECK(layout.frames.generation > 0);
  }
}

TEST_CASE("the count of code objects that 3.13 makes is used if it is at its place, with its first value") {
  RecordedImage image = recorded("3.13_library");
  const auto generation = [&] { return detect_python(image).value()->frames.generation; };
  const std::uint64_t at = image.symbol("_PyRuntime")->address + 88352 + 17000;
  std::array<std::uint64_t, 8> words{1};
  image.write(at, words);
  CHECK(generation() == 17000);
  words[5] = 1;
  image.write(at, words);
  CHECK(generation() == 0);
  words = {2};
  image.write(at, words);
  CHECK(generation() == 0);
}

TEST_CASE("other programs are not Python, and old versions have a reason") {
  RecordedImage nothing("x86-64\nsymbol main 1000 10\n");
  CHECK(reason_of(nothing) == "not Python");
  RecordedImage v2 = recorded("2.7_library");
  CHECK(reason_of(v2) == "Python before 3.9: supported are 3.9 to 3.15");
  RecordedImage v8 = recorded("3.8_library");
  CHECK(reason_of(v8) == "Python before 3.9: supported are 3.9 to 3.15");
}

TEST_CASE("a version that is not known has a reason") {
  RecordedImage image = recorded("3.15_program");
  image.write<std::uint64_t>(image.symbol("_PyRuntime")->address + 8, 0x031001f0);
  CHECK(reason_of(image) == "Python 3.16.1: supported are 3.9 to 3.15");
  image.write<std::uint64_t>(image.symbol("_PyRuntime")->address + 8, 0x040f01f0);
  CHECK(reason_of(image) == "Python 4.15.1: supported are 3.9 to 3.15");
}

TEST_CASE("builds that can't be read have a reason") {
  RecordedImage machine = recorded("3.13_program");
  machine.change_machine();
  CHECK(reason_of(machine) == "Python is read on x86-64 only");

  RecordedImage threads = recorded("3.13_program");
  threads.write<std::uint64_t>(threads.symbol("_PyRuntime")->address + 16, 1);
  CHECK(reason_of(threads) == "Python 3.13.18: free-threaded builds can't be read");

  RecordedImage types = recorded("3.13_program");
  types.forget("PyBytes_Type");
  CHECK(reason_of(types) == "Python 3.13.18: it does not export its types");
}

TEST_CASE("damaged descriptions have a reason") {
  RecordedImage cookie = recorded("3.13_program");
  const std::uint64_t runtime = cookie.symbol("_PyRuntime")->address;
  cookie.write<std::uint64_t>(runtime, 0);
  cookie.add("Py_Version", {runtime + 8, 8});
  CHECK(reason_of(cookie) == "Python 3.13.18: _PyRuntime does not describe itself");

  RecordedImage offset = recorded("3.13_program");
  offset.write<std::uint64_t>(runtime + 8 * 31, 1 << 20);
  CHECK(reason_of(offset) == "Python 3.13.18: _PyRuntime's description of itself is damaged");

  RecordedImage cut = recorded("3.13_program");
  cut.cut(runtime + 200);
  CHECK(reason_of(cut) == "Python 3.13.18: _PyRuntime's description of itself is cut");
  cut.cut(runtime);
  CHECK(reason_of(cut) == "Python: _PyRuntime has no bytes in the file");

  RecordedImage members = recorded("3.12_library");
  members.write<std::uint64_t>(members.symbol("PyCode_Type")->address + 240, UINT64_MAX - 3);
  CHECK(reason_of(members) == "Python 3.12.1: PyCode_Type's table of members lacks some");

  RecordedImage code = recorded("3.13_program");
  code.write<std::uint8_t>(code.symbol("_PyThreadState_GetCurrent")->address + 4, 0x90);
  CHECK(reason_of(code) == "Python 3.13.18: _PyThreadState_GetCurrent() has unknown instructions");
}

TEST_CASE("without the second place of a thread state, the first one is used") {
  RecordedImage image = recorded("3.13_program");
  image.forget("PyGILState_GetThisThreadState");
  const auto layout = detect_python(image);
  REQUIRE(layout);
  CHECK((*layout)->frames.thread_states.size() == 1);
}

/// A function at 0x1000 with these instructions.
std::optional<ThreadStatePlace> returned(const std::string& hex) {
  RecordedImage image("x86-64\nsymbol f 1000 " +
                      [&] {
                        std::ostringstream size;
                        size << std::hex << hex.size() / 2;
                        return size.str();
                      }() +
                      "\nbytes 1000 " + hex + "\nblock 2000\nbytes 2008 1000000000000000\n");
  return returned_thread_local(image, "f");
}

TEST_CASE("thread-local variables are found however compilers read them") {
  const ThreadStatePlace local{Kind::kThreadLocal, -8, 0};
  CHECK(returned("64488b0425f8ffffffc3") == local);
  CHECK(returned("f30f1efa554889e564488b0425f8ffffff5dc3") == local);
  // clang: the thread pointer first.
  CHECK(returned("64488b042500000000488b80f8ffffffc3") == local);
  CHECK(returned("64488b042500000000488b40f8c3") == local);
  CHECK(returned("64488b042500000000488d80f8ffffff488b00c3") == local);
  // A library: __tls_get_addr(), with the general and the local model.
  const ThreadStatePlace block{Kind::kThreadBlock, 16, 0x2000};
  CHECK(returned("5066488d3df70f0000666648e800000000488b0059c3") == block);
  CHECK(returned("66488d3df80f00006648ff1500000000488b00c3") == block);
  CHECK(returned("488d3df90f0000e800000000488b4008c3") == ThreadStatePlace{Kind::kThreadBlock, 24, 0x2000});
}

TEST_CASE("functions that do something else return no thread-local variable") {
  CHECK_FALSE(returned("31c0c3"));
  CHECK_FALSE(returned("c3"));
  CHECK_FALSE(returned("64488b042500000000c3"));              // the thread pointer itself
  CHECK_FALSE(returned("64488b0425f8ffffff"));                // no end
  CHECK_FALSE(returned("64488b0425f8"));                      // half an instruction
  CHECK_FALSE(returned("64488b0425f8ffffff488b00c3"));        // what the variable refers to
  CHECK_FALSE(returned("e800000000488b00c3"));                // a call without an argument
  CHECK_FALSE(returned("488d3d00000000e800000000488b00c3"));  // not a block's number
}

}  // namespace
}  // namespace flamed::runtimes
