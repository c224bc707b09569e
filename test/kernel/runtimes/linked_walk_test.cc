// SPDX-License-Identifier: Apache-2.0
//
// Walks the frames of a running Python in the kernel, by its layout, and compares them with what the program shows of
// itself.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define bpf_probe_read_user(to, size, from) \
  (static_cast<void>(to), static_cast<void>(size), static_cast<void>(from), -1)
#include "bpf/walk/linked_frames.h"
#undef bpf_probe_read_user

#include "base/handle.h"
#include "daemon/sampler/perf_event.h"
#include "runtimes/python/names.h"
#include "test/catch.h"
#include "test/kernel/runtimes/linked_walk_check.h"
#include "test/unit/runtimes/live_python.h"
#include "test/unit/runtimes/program_layout.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "test/kernel/linked_walk_check.skel.h"
#pragma GCC diagnostic pop

namespace flamed::test {
namespace {

using runtimes::LivePython;
using runtimes::ShownFrame;
using Skeleton = Handle<linked_walk_check*, linked_walk_check::destroy>;

void detach(bpf_link* link) { ::bpf_link__destroy(link); }
using Link = Handle<bpf_link*, detach>;

/// The value of the map's one entry, for each CPU.
template <typename T>
std::vector<T> read_cpus(const bpf_map* map) {
  std::vector<T> of_cpus(static_cast<std::size_t>(::libbpf_num_possible_cpus()));
  const std::uint32_t zero = 0;
  REQUIRE(::bpf_map_lookup_elem(::bpf_map__fd(map), &zero, of_cpus.data()) == 0);
  return of_cpus;
}

std::string text_of(const std::vector<ShownFrame>& stack) {
  std::string text;
  for (const ShownFrame& frame : stack) text += frame.name + " " + frame.file + ":" + std::to_string(frame.line) + "\n";
  return text;
}

/// Names of what the program found.
std::vector<ShownFrame> name(const linked_walk& walk, const LivePython& process, const LivePython::Module& module) {
  runtimes::ProcessMemory memory(process.pid());
  std::vector<ShownFrame> stack;
  for (std::uint32_t i = 0; i < walk.frame_count; ++i) {
    const std::uint64_t word = walk.frames[i].code;
    const std::uint64_t code = word >> FLAMED_INSTRUCTION_BITS << 3;
    const auto instruction = static_cast<std::int64_t>(word & FLAMED_MOST_INSTRUCTION) - 1;
    const auto function = runtimes::read_python_function(memory, module.layout.objects, module.base, code);
    if (!function) FAIL(function.error().message());
    stack.push_back({function->name, function->file, function->line_at(instruction)});
  }
  return stack;
}

TEST_CASE("the kernel walks the frames that a running Python shows of itself") {
#if !defined(__x86_64__)
  WARN("SKIP: Python is read on x86-64 only");
  return;
#endif
  for (const std::string& python : runtimes::pythons()) {
    INFO(python);
    const Result<LivePython> process = LivePython::start(python, "spin");
    if (!process) FAIL(process.error().message());
    const Result<LivePython::Module> module = process->find_module();
    if (!module) FAIL(module.error().message());

    Skeleton skeleton(linked_walk_check::open());
    REQUIRE(skeleton);
    skeleton.get()->rodata->target = static_cast<std::uint32_t>(process->pid());
    skeleton.get()->rodata->base = module->base;
    REQUIRE(linked_walk_check::load(skeleton.get()) == 0);
    const std::uint32_t zero = 0;
    const flamed_linked_layout layout = runtimes::as_program_layout(module->layout.frames);
    REQUIRE(::bpf_map_update_elem(::bpf_map__fd(skeleton.get()->maps.layouts), &zero, &layout, BPF_ANY) == 0);

    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = 10'000'000;  // ns
    std::vector<Link> links;
    for (int cpu = 0; cpu < ::libbpf_num_possible_cpus(); ++cpu) {
      Result<Fd> timer = daemon::open_perf_event(attributes, cpu, "test");
      if (!timer && timer.error().code() == ENODEV) continue;
      REQUIRE(timer);
      links.emplace_back(::bpf_program__attach_perf_event(skeleton.get()->progs.check_linked_walk, timer->get()));
      REQUIRE(links.back());
      static_cast<void>(timer->release());  // the link has it now
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    links.clear();

    linked_walk_counts sum{};
    for (const linked_walk_counts& count : read_cpus<linked_walk_counts>(skeleton.get()->maps.counts)) {
      sum.walks += count.walks;
      sum.frames += count.frames;
      sum.ns += count.ns;
      if (count.walks > 0 && (sum.least_ns == 0 || count.least_ns < sum.least_ns)) sum.least_ns = count.least_ns;
      sum.without_frames += count.without_frames;
    }
    bpf_prog_info info{};
    std::uint32_t bytes = sizeof(info);
    ::bpf_obj_get_info_by_fd(::bpf_program__fd(skeleton.get()->progs.check_linked_walk), &info, &bytes);
    std::ostringstream said;
    said << "Python " << module->layout.version.text() << ": " << sum.walks << " walks of "
         << sum.frames / std::max<__u64>(sum.walks, 1)
         << " frames, ns a frame: " << sum.ns / std::max<__u64>(sum.frames, 1) << ", the fastest walk " << sum.least_ns
         << " ns; " << info.verified_insns << " instructions verified";
    WARN(said.str());
    CHECK(sum.walks > 0);
    CHECK(sum.without_frames == 0);
    for (const linked_walk& walk : read_cpus<linked_walk>(skeleton.get()->maps.walks)) {
      if (walk.frame_count == 0) continue;
      CHECK(walk.is_cut == 0);
      CHECK(text_of(name(walk, *process, *module)) == text_of(process->stack()));
    }
  }
}

}  // namespace
}  // namespace flamed::test
