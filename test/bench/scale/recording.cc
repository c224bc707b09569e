// SPDX-License-Identifier: Apache-2.0
#include "test/bench/scale/recording.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "daemon/sampler/sampler.h"
#include "symbolizer/process/proc_text.h"
#include "test/unit/daemon/sampler/record_bytes.h"

namespace flamed::bench {
namespace {

std::vector<Recording::Mapping> mappings_of(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  std::stringstream text;
  text << file.rdbuf();
  const std::string held = text.str();
  std::vector<Recording::Mapping> mappings;
  for (const symbolizer::MapsLine& line : symbolizer::parse_executable_maps(held)) {
    mappings.push_back({line.start, line.end - line.start, line.file_offset, line.file.inode,
                        line.path.empty() ? std::string("//anon") : std::string(line.path)});
  }
  return mappings;
}

}  // namespace

Result<Recording> record(int seconds) {
  const SystemClock clock;
  daemon::SamplerOptions options;
  options.use_unwind_tables = false;
  Result<std::unique_ptr<daemon::Sampler>> sampler = daemon::Sampler::start(options, clock);
  if (!sampler) return std::move(sampler).error();
  if (const Status begun = (*sampler)->begin(); !begun) return begun.error();

  Recording recording;
  std::map<std::uint32_t, Recording::Process> by_pid;
  std::set<std::vector<std::uint64_t>> stacks;
  daemon::EventBatch batch;
  for (int i = 0; i <= seconds; ++i) {
    (*sampler)->wait(1000);
    (*sampler)->drain(batch);
    for (const daemon::EventBatch::Event& event : batch.events()) {
      if (event.kind != daemon::RecordKind::kSample) continue;
      const auto sample = daemon::parse_sample(batch.body(event));
      if (!sample || sample->user.empty() || sample->header->tgid == static_cast<std::uint32_t>(::getpid())) continue;
      test::SampleFields fields;
      fields.comm = sample->comm();
      fields.user.assign(sample->user.begin(), sample->user.end());
      fields.kernel.assign(sample->kernel.begin(), sample->kernel.end());
      fields.user_end = sample->header->user_end;
      Recording::Process& process = by_pid[sample->header->tgid];
      if (process.samples.empty()) {
        process.comm = fields.comm;
        process.mappings = mappings_of(sample->header->tgid);
      }
      process.samples.push_back(test::sample_record(event.time, fields));
      std::vector<std::uint64_t> stack = fields.user;
      stack.insert(stack.end(), fields.kernel.begin(), fields.kernel.end());
      recording.frames += stack.size();
      ++recording.samples;
      stacks.insert(std::move(stack));
    }
  }
  (*sampler)->stop();
  // Samples of a process that ended before its mappings could be read can't be resolved.
  for (auto& [pid, process] : by_pid) {
    if (!process.mappings.empty()) recording.processes.push_back(std::move(process));
  }
  recording.distinct_stacks = stacks.size();
  if (recording.processes.empty()) return Error("no samples: the machine is idle; run a load at the same time");
  return recording;
}

}  // namespace flamed::bench
