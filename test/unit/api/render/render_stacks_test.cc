// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/render/render_perf_script.h"
#include "api/render/render_pprof.h"
#include "api/render/render_samples.h"
#include "api/render/render_speedscope.h"
#include "api/render/stack_frames.h"
#include "api/text/gzip.h"
#include "base/protobuf_writer.h"
#include "test/catch.h"
#include "test/unit/api/render/stack_profile_builder.h"

namespace flamed::api {
namespace {

using nlohmann::json;

TEST_CASE("numbers and texts are encoded as protocol buffers") {
  // The examples in the format's documentation.
  std::string out;
  ProtobufWriter(out).number(1, 150).bytes(2, "testing").number(3, 0);
  CHECK(out == std::string("\x08\x96\x01\x12\x07testing"));
  out.clear();
  ProtobufWriter(out).varint(~std::uint64_t{0});
  CHECK(out == "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("speedscope gets one profile with everything, and its weights add up") {
  const store::StackProfile stacks = example_stacks();
  const json file = json::parse(render_speedscope(stacks, store::Group::kNone, "title"));
  CHECK(file["$schema"] == "https://www.speedscope.app/file-format-schema.json");
  REQUIRE(file["profiles"].size() == 1);
  const json& profile = file["profiles"][0];
  CHECK(profile["type"] == "sampled");
  CHECK(profile["unit"] == "nanoseconds");
  REQUIRE(profile["samples"].size() == 4);
  CHECK(profile["weights"] == json::array({50'000'000, 30'000'000, 20'000'000, 10'000'000}));
  CHECK(profile["endValue"] == stacks.total_ns);
  const auto names = [&](const json& sample) {
    std::vector<std::string> list;
    for (const json& index : sample) list.push_back(file["shared"]["frames"][index.get<std::size_t>()]["name"]);
    return list;
  };
  CHECK(names(profile["samples"][0]) == std::vector<std::string>{"main", "work", "step"});
  CHECK(names(profile["samples"][1]) == std::vector<std::string>{"main", "read", "ksys_read"});
  CHECK(names(profile["samples"][2])[0].starts_with("[truncated: "));
  CHECK(names(profile["samples"][3]) == std::vector<std::string>{"[no stack]"});
  CHECK(file["shared"]["frames"][profile["samples"][0][2].get<std::size_t>()]["line"] == 9);
}

TEST_CASE("speedscope gets a profile for each thread or process when asked, the largest first") {
  const store::StackProfile stacks = example_stacks();
  const json threads = json::parse(render_speedscope(stacks, store::Group::kThread, "title"));
  REQUIRE(threads["profiles"].size() == 2);
  CHECK(threads["profiles"][0]["name"] == "worker (10/10)");
  CHECK(threads["profiles"][0]["endValue"] == 80'000'000);
  CHECK(threads["profiles"][1]["name"] == "pool; 1 (11/12)");
  const json processes = json::parse(render_speedscope(stacks, store::Group::kProcess, "title"));
  CHECK(processes["profiles"][1]["name"] == "other (11)");
}

TEST_CASE("tools can read the file of an empty profile") {
  StackProfileBuilder empty;
  const json file = json::parse(render_speedscope(empty.profile, store::Group::kThread, "title"));
  REQUIRE(file["profiles"].size() == 1);
  CHECK(file["profiles"][0]["samples"].empty());
  CHECK(file["shared"]["frames"].empty());
  const auto packed = render_pprof(empty.profile);
  REQUIRE(packed.ok());
  const auto* bytes = reinterpret_cast<const unsigned char*>(packed->data());
  CHECK(gunzip({bytes, packed->size()}).ok());
}

TEST_CASE("samples are printed as perf script prints them") {
  store::TimedSamples samples;
  samples.stacks = example_stacks();
  const auto add = [&](std::int64_t us, const store::StackCount& count, std::uint16_t cpu) {
    samples.samples.push_back({WallTime{StackProfileBuilder::kStartNs + us * kNsPerUs}, count.thread, count.stack,
                               10'000'000, cpu, count.truncation});
  };
  add(1, samples.stacks.counts[0], 0);
  add(10'001, samples.stacks.counts[2], 12);
  CHECK(render_perf_script(samples) ==
        "worker           10/10 [000] 1769868000.000001:   10000000 cpu-clock: \n"
        "\t             200 step (inlined)\n"
        "\t             200 work (worker)\n"
        "\t             100 main (worker)\n"
        "\n"
        "pool; 1          11/12 [012] 1769868000.010001:   10000000 cpu-clock: \n"
        "\t             400 [unknown] (lib)\n"
        "\t               0 " +
            store::marker_of(store::Truncation::kDepthLimit) +
            " ([unknown])\n"
            "\n");
}

TEST_CASE("samples are columns of times, threads and stacks of functions") {
  store::TimedSamples samples;
  samples.stacks = example_stacks();
  const auto add = [&](std::int64_t us, const store::StackCount& count, std::uint16_t cpu) {
    samples.samples.push_back({WallTime{StackProfileBuilder::kStartNs + us * kNsPerUs}, count.thread, count.stack,
                               10'000'000, cpu, count.truncation});
  };
  add(1, samples.stacks.counts[0], 0);
  add(10'001, samples.stacks.counts[2], 12);
  add(20'001, samples.stacks.counts[0], 0);
  const json answer = json::parse(render_samples(samples, 99));
  const json& columns = answer["columns"];
  const auto stack_of = [&](std::size_t sample) {
    std::vector<std::string> names;
    for (auto node = columns["samples"]["node"][sample].get<std::size_t>(); node != 0;
         node = columns["nodes"]["caller"][node].get<std::size_t>()) {
      const auto frame = columns["nodes"]["frame"][node].get<std::size_t>();
      names.push_back(columns["strings"][columns["frames"]["name"][frame].get<std::size_t>()]);
    }
    return names;
  };
  CHECK(columns["samples"]["time_us"] == json{1, 10'001, 20'001});
  CHECK(columns["samples"]["cpu"] == json{0, 12, 0});
  CHECK(columns["samples"]["period_ns"] == json{10'000'000, 10'000'000, 10'000'000});
  CHECK(stack_of(0) == std::vector<std::string>{"step", "work", "main"});
  CHECK(stack_of(1).back() == store::marker_of(store::Truncation::kDepthLimit));
  CHECK(columns["samples"]["node"][0] == columns["samples"]["node"][2]);
  const json& thread = answer["threads"][columns["samples"]["thread"][1].get<std::size_t>()];
  CHECK(thread["tid"] == 12);
  CHECK(answer["processes"][thread["process"].get<std::size_t>()]["pid"] == 11);
}

TEST_CASE("perf script has functions without names by their place") {
  StackProfileBuilder b;
  const std::uint32_t thread = b.thread({{1, 1}, "tool", "", 0, {}, {}}, 1, "tool");
  const std::uint32_t node =
      b.node(0, b.frame(0x1a2b, {{"[lib.so+0x1a20]", "lib.so", store::FrameKind::kUnnamed, "no symbols"}}));
  b.count(thread, node, 1);
  store::TimedSamples samples;
  samples.stacks = b.profile;
  samples.samples.push_back({WallTime{0}, thread, node, 1, 0, {}});
  CHECK(render_perf_script(samples).find("\t            1a2b [lib.so+0x1a20] (lib.so)\n") != std::string::npos);
}

TEST_CASE("hostile names break neither lines of perf script nor profiles") {
  StackProfileBuilder b;
  const std::string evil("a\nb (x) 7/7 [000] 1.0: 1 c:\0\xff;", 30);
  const std::uint32_t thread = b.thread({{1, 1}, evil, evil, 0, {}, {}}, 1, evil);
  const std::uint32_t node = b.node(0, b.frame(1, {{evil, evil, store::FrameKind::kNative, evil}}));
  b.count(thread, node, 1);
  store::TimedSamples samples;
  samples.stacks = b.profile;
  samples.samples.push_back({WallTime{0}, thread, node, 1, 0, {}});
  const std::string text = render_perf_script(samples);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(text.ends_with("(a_b__x__7/7_[000]_1.0:_1_c:_\uFFFD;)\n\n"));
  CHECK(json::accept(render_speedscope(b.profile, store::Group::kThread, evil)));
  CHECK(render_pprof(b.profile).ok());
}

TEST_CASE("the cost of writing out stacks is known beforehand") {
  const store::StackProfile stacks = example_stacks();
  CHECK(functions_written(stacks) == 4 + 4 + 2 + 1);
}

}  // namespace
}  // namespace flamed::api
