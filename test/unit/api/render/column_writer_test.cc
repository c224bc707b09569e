// SPDX-License-Identifier: Apache-2.0
#include "api/render/column_writer.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/render/render_columns.h"
#include "test/catch.h"
#include "test/unit/api/render/profile_builder.h"
#include "test/unit/api/render/read_columns.h"

namespace flamed::api {
namespace {

using nlohmann::json;
using namespace std::string_literals;

std::string written(ColumnForm form, const std::function<void(ColumnWriter&)>& write) {
  ColumnWriter out(form);
  out.json().begin_object();
  write(out);
  out.json().end_object();
  return out.finish();
}

/// The content of both forms, after a check that they are equal.
json said(const std::function<void(ColumnWriter&)>& write) {
  json plain = json::parse(written(ColumnForm::kJson, write));
  CHECK(ReadColumns::from(written(ColumnForm::kBinary, write)) == plain);
  return plain;
}

std::string type_of(const std::vector<std::uint64_t>& values) {
  const std::string answer = written(ColumnForm::kBinary, [&](ColumnWriter& out) { out.numbers("n", values); });
  const std::size_t head = answer.find('{');
  return json::parse(answer.substr(head, answer.rfind('}') + 1 - head))["n"]["type"];
}

TEST_CASE("a column has the narrowest type that holds all of its numbers") {
  CHECK(type_of({0, 255}) == "u8");
  CHECK(type_of({0, 256}) == "u16");
  CHECK(type_of({65535}) == "u16");
  CHECK(type_of({65536, 1}) == "u32");
  CHECK(type_of({4294967295}) == "u32");
  CHECK(type_of({4294967296}) == "f64");
  CHECK(type_of({}) == "u8");
}

TEST_CASE("columns are equal in both forms, at the limits of their types") {
  const json answer = said([](ColumnWriter& out) {
    out.numbers("none", {});
    out.numbers("small", std::vector<std::uint64_t>{0, 1, 255});
    out.numbers("medium", std::vector<std::uint64_t>{65535, 0, 256});
    out.numbers("large", std::vector<std::uint64_t>{4294967295, 7});
    out.numbers("huge", std::vector<std::uint64_t>{4294967296, (1ULL << 53) - 1});
    out.reals("reals", std::vector<double>{-1.25, 0, 1e-3, std::numeric_limits<double>::max()});
    out.json().key("beside").string("them");
    out.column("squares", std::vector<int>{1, 2, 3}, [](int value) { return value * value; });
  });
  CHECK(answer["squares"] == json{1, 4, 9});
  CHECK(answer["beside"] == "them");
  CHECK(answer["huge"][1] == 9007199254740991);
  CHECK(answer["none"].empty());
}

TEST_CASE("texts are equal in both forms, whatever bytes they have") {
  using namespace std::string_view_literals;
  const std::vector<std::string_view> names{""sv,
                                            "plain"sv,
                                            "gr\xC3\xB6\xC3\x9F\x65"sv,
                                            "\xE9\x96\xA2\xE6\x95\xB0"sv,
                                            "\xF0\x9F\x94\xA5"sv,
                                            "\xEF\xBB\xBFmarked"sv,
                                            "nul\0within"sv,
                                            "two\nlines\t\"quoted\\"sv,
                                            "\xFF\xFE not UTF-8"sv,
                                            "cut off \xC3"sv,
                                            "\xED\xA0\x80 half of a pair"sv,
                                            ""sv};
  const json answer = said([&](ColumnWriter& out) { out.texts("names", names); });
  CHECK(answer["names"][0].get<std::string>().empty());
  CHECK(answer["names"][6] == "nul\0within"s);
  CHECK(answer["names"][9] == "cut off \uFFFD");
  CHECK(said([](ColumnWriter& out) { out.texts("names", {}); })["names"].empty());
}

TEST_CASE("a tree is equal in both forms") {
  ProfileBuilder builder("gr\xC3\xB6\xC3\x9F\x65");
  const std::uint32_t main = builder.add(0, "main", 1);
  store::NamedFrame frame{"operator\"\"_s\xFF", "lib;f.so", store::FrameKind::kKernel, "why not"};
  frame.full_name = std::string(10'000, 'x');
  frame.build_id = "0a1b";
  frame.line = 70'000;
  frame.inlined = true;
  const std::uint32_t inner = builder.add(main, frame, 5'000'000'000);
  builder.add(inner, "", 0);
  builder.add(main, "last", 300);
  const json plain = json::parse(render_columns(builder.profile, 99, ColumnForm::kJson));
  CHECK(ReadColumns::from(render_columns(builder.profile, 99, ColumnForm::kBinary)) == plain);
  CHECK(plain["columns"]["nodes"]["self"][2] == 5'000'000'000);

  const ProfileBuilder empty;
  CHECK(ReadColumns::from(render_columns(empty.profile, 99, ColumnForm::kBinary)) ==
        json::parse(render_columns(empty.profile, 99, ColumnForm::kJson)));
}

}  // namespace
}  // namespace flamed::api
