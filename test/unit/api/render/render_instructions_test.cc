// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_instructions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/render/render_source.h"
#include "test/catch.h"

namespace flamed::api {
namespace {

using nlohmann::json;

constexpr ModuleId kFile{16};
constexpr ModuleId kMemory{17};

store::AddressPlace place(ModuleId module, std::uint64_t offset, std::uint64_t self, std::uint64_t total = 0) {
  store::AddressPlace place;
  place.self_samples = self;
  place.total_samples = std::max(self, total);
  place.address = {module, offset};
  place.module = module == kFile ? "app" : "";
  place.build_id = module == kFile ? "00ff" : "";
  place.file = "/src/app.c";
  place.line = 7;
  return place;
}

store::FunctionPlaces places_of(std::vector<store::AddressPlace> addresses) {
  store::FunctionPlaces places;
  places.frame = store::NamedFrame{"work", "app", store::FrameKind::kNative, ""};
  places.addresses = std::move(addresses);
  for (const store::AddressPlace& each : places.addresses) {
    places.function.self_samples += each.self_samples;
    places.function.total_samples += each.total_samples;
  }
  places.samples = places.function.total_samples;
  return places;
}

FunctionCode work_at(std::uint64_t offset) {
  return {offset,
          7,
          0x401000 + offset,
          {{offset, "\x55", "push %rbp"}, {offset + 1, "\xe8\x01\x02\x03\x04", "call 0x1"}, {offset + 6, "\x06", ""}}};
}

std::uint64_t self_of(const std::vector<CodePart>& parts) {
  std::uint64_t sum = 0;
  for (const CodePart& part : parts) {
    std::uint64_t of_rows = 0;
    for (const InstructionRow& row : part.rows) of_rows += row.self;
    CHECK(of_rows == part.self);
    sum += of_rows;
  }
  return sum;
}

TEST_CASE("there is one question for each module, with its places") {
  const auto places = places_of({place(kFile, 0x10, 1), place(kFile, 0x11, 2), place(kMemory, 0x7f00, 3)});
  const std::vector<CodeQuestion> questions = code_questions(places);
  REQUIRE(questions.size() == 2);
  CHECK(questions[0].module == kFile);
  CHECK(questions[0].build_id == "00ff");
  CHECK(questions[0].offsets == std::vector<std::uint64_t>{0x10, 0x11});
  CHECK(questions[1].offsets == std::vector<std::uint64_t>{0x7f00});
}

TEST_CASE(
    "samples are with the instruction that has their address, callers' within a call, and those of no instruction with "
    "their bytes") {
  const auto places =
      places_of({place(kFile, 0x10, 1), place(kFile, 0x11, 2), place(kFile, 0x15, 0, 5), place(kFile, 0x16, 4)});
  const std::vector<MachineCode> codes{{{}, {work_at(0x10)}}};
  const std::vector<CodePart> parts = code_parts(places, codes);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].module == "app");
  CHECK(parts[0].reason.empty());
  REQUIRE(parts[0].rows.size() == 3);
  CHECK(parts[0].rows[0].address == 0x401010);
  CHECK(parts[0].rows[0].self == 1);
  CHECK(parts[0].rows[1].self == 2);
  CHECK(parts[0].rows[1].callees == 5);
  CHECK(parts[0].rows[2].self == 4);
  CHECK(parts[0].rows[2].text.empty());
  CHECK(self_of(parts) == places.function.self_samples);
}

TEST_CASE("without instructions there are addresses, their counts, and the reason; the hottest part comes first") {
  const auto places = places_of({place(kFile, 0x10, 1), place(kFile, 0x90, 2), place(kMemory, 0x7f00, 9)});
  const std::vector<MachineCode> codes{{"not all is known", {work_at(0x10)}}, {"made by a compiler", {}}};
  const std::vector<CodePart> parts = code_parts(places, codes);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].reason == "made by a compiler");
  REQUIRE(parts[0].rows.size() == 1);
  CHECK(parts[0].rows[0].address == 0x7f00);
  CHECK(parts[0].rows[0].bytes.empty());
  CHECK(parts[1].reason == "not all is known");
  CHECK(parts[1].rows[0].address == 0x90);
  CHECK(parts[2].rows.size() == 3);
  CHECK(self_of(parts) == places.function.self_samples);
}

TEST_CASE("a place in a function within another belongs to the inner one") {
  const FunctionCode outer{
      0x10,
      0x20,
      0x1010,
      {{0x10, std::string(8, '\x90'), "nop"}, {0x18, std::string(8, '\x90'), "nop"}, {0x20, "\x90", "nop"}}};
  const FunctionCode inner{0x18, 1, 0x1018, {{0x18, "\x55", "push %rbp"}}};
  const auto places = places_of({place(kFile, 0x10, 1), place(kFile, 0x18, 2)});
  const std::vector<MachineCode> codes{{{}, {outer, inner}}};
  const std::vector<CodePart> parts = code_parts(places, codes);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].rows.size() == 1);
  CHECK(parts[0].self == 2);
  CHECK(self_of(parts) == 3);
}

TEST_CASE("a runtime's function and a hidden kernel address have counts alone") {
  const auto places = places_of({place(kKernelModule, 0, 3), place(kRuntimeModule, 0x1000007, 2)});
  const std::vector<MachineCode> codes{{"in no file", {}}, {"a managed runtime", {}}};
  for (const CodePart& part : code_parts(places, codes)) CHECK_FALSE(part.rows.front().address);
}

TEST_CASE("instructions are rendered as JSON and as text") {
  const auto places = places_of({place(kFile, 0x10, 1), place(kFile, 0x15, 0, 5)});
  const std::vector<MachineCode> codes{{{}, {work_at(0x10)}}};
  const std::vector<CodePart> parts = code_parts(places, codes);
  const json answer = json::parse(render_instructions_json(places, parts, 99));
  CHECK(answer["function"]["name"] == "work");
  CHECK(answer["self"] == 1);
  CHECK(answer["total"] == 6);
  const json& part = answer["parts"][0];
  CHECK(part["reason"].is_null());
  CHECK(part["build_id"] == "00ff");
  CHECK(
      part["instructions"][0] ==
      json::parse(
          R"({"address": "0x401010", "bytes": "55", "text": "push %rbp", "file": "/src/app.c", "line": 7, "self": 1, "callees": 0})"));
  CHECK(part["instructions"][1]["callees"] == 5);
  CHECK(part["instructions"][2] ==
        json::parse(R"({"address": "0x401016", "bytes": "06", "text": null, "self": 0, "callees": 0})"));
  const std::string text = render_instructions_text(places, parts);
  CHECK(text.find("work (app): 1 self, 6 total\n") != std::string::npos);
  CHECK(text.find("         1 100.0%                   401010  push %rbp  # app.c:7\n") != std::string::npos);
  CHECK(text.find("                          5         401011  call 0x1  # app.c:7\n") != std::string::npos);
  CHECK(text.find("  06\n") != std::string::npos);
}

TEST_CASE("lines are rendered as JSON and as text, known or not") {
  store::FunctionPlaces places = places_of({place(kFile, 0x10, 4)});
  places.lines = {{{1, 2}, "app", "", 0}, {{3, 3}, "app", "/src/app.c", 7}};
  const json answer = json::parse(render_source_json(places, 99));
  CHECK(answer["lines"] == json::parse(R"([{"module": "app", "file": null, "line": null, "self": 1, "total": 2},
                                           {"module": "app", "file": "/src/app.c", "line": 7, "self": 3, "total": 3}])"));
  const std::string text = render_source_text(places);
  CHECK(text.find("         1  25.0%          2  [no line is known]\n") != std::string::npos);
  CHECK(text.find("         3  75.0%          3  /src/app.c:7\n") != std::string::npos);
}

}  // namespace
}  // namespace flamed::api
