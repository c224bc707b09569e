// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8/detect.h"

#include <fstream>
#include <sstream>
#include <string>

#include "test/catch.h"
#include "test/unit/runtimes/recorded_image.h"

namespace flamed::runtimes {
namespace {

std::string recording(const std::string& name) {
  std::ifstream file(std::string(V8_RECORDINGS) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

Result<std::optional<V8Layout>> detected(const std::string& name) {
  RecordedImage image(recording(name));
  return detect_v8(image);
}

TEST_CASE("each version's frames and functions are where its own numbers say") {
  struct Expected {
    std::string name;
    std::string version;
    unsigned function_code;
    unsigned shared_name;
    unsigned first_instruction;
    unsigned code_head;
  };
  for (const Expected& expected : {Expected{"node_18", "10.2.154", 24, 16, 55, 128},
                                   {"node_20", "11.3.244", 24, 16, 53, 16},
                                   {"node_22", "12.4.254", 32, 16, 63, 32},
                                   {"node_24", "13.6.233", 32, 24, 63, 32}}) {
    INFO(expected.name);
    const auto layout = detected(expected.name);
    REQUIRE(layout);
    REQUIRE(*layout);
    CHECK((*layout)->version.text() == expected.version);
    CHECK((*layout)->frames.mark == 1);
    CHECK((*layout)->frames.function == 2);
    CHECK((*layout)->frames.guard == 4);
    CHECK((*layout)->frames.instruction == 5);
    CHECK((*layout)->frames.code == expected.function_code);
    CHECK((*layout)->frames.check.at == expected.shared_name);
    CHECK((*layout)->frames.first_instruction == expected.first_instruction);
    CHECK((*layout)->objects.code_head == expected.code_head);
  }
}

TEST_CASE("a file that exports no numbers of V8 is none") {
  RecordedImage image("x86-64\nsymbol main 1000 10\n");
  const auto layout = detect_v8(image);
  REQUIRE(layout);
  CHECK_FALSE(*layout);
}

TEST_CASE("a V8 that can't be read has the reason") {
  const auto why = [](RecordedImage& image) {
    const auto layout = detect_v8(image);
    return layout ? "" : layout.error().message();
  };
  RecordedImage other(recording("node_20"));
  const auto minor = other.symbol("_ZN2v88internal7Version6minor_E");
  REQUIRE(minor);
  other.write<std::uint32_t>(minor->address, 8);
  CHECK(why(other) == "V8 11.8.244: supported are 10.2, 11.3, 12.4, 13.6");

  RecordedImage cut(recording("node_20"));
  cut.forget("v8dbg_class_Script__name__Object");
  CHECK(why(cut) == "V8 11.3.244: it does not export v8dbg_class_Script__name__Object");

  RecordedImage compressed(recording("node_20"));
  compressed.write<std::int32_t>(compressed.symbol("v8dbg_SmiShiftSize")->address, 0);
  CHECK(why(compressed) == "V8 11.3.244: its pointers are compressed");

  RecordedImage damaged(recording("node_20"));
  damaged.write<std::int32_t>(damaged.symbol("v8dbg_class_Script__name__Object")->address, -8);
  CHECK(why(damaged) == "V8 11.3.244: its numbers for debuggers are damaged");

  RecordedImage machine(recording("node_20"));
  machine.change_machine();
  CHECK(why(machine) == "V8 is read on x86-64 only");

  RecordedImage empty(recording("node_20"));
  empty.cut(0);
  CHECK(why(empty) == "V8: its version has no bytes in the file");
}

}  // namespace
}  // namespace flamed::runtimes
