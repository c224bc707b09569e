// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_perf_script.h"

#include <array>
#include <cstdio>
#include <vector>

#include "api/render/render_common.h"
#include "api/render/stack_frames.h"

namespace flamed::api {
namespace {

/// On one line, and not empty.
std::string line_text(std::string_view raw, std::string_view if_empty) {
  std::string text = one_line(raw);
  return text.empty() ? std::string(if_empty) : text;
}

/// Readers take the text in the last parentheses of a line for the module, up to a blank.
std::string module_text(std::string_view raw) {
  std::string text = line_text(raw, "[unknown]");
  for (char& c : text) {
    if (c == ' ' || c == '(' || c == ')') c = '_';
  }
  return text;
}

/// The lines of one address.
std::string frame_lines(const store::StackFrame& frame) {
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "%16llx ", static_cast<unsigned long long>(frame.address.offset));
  std::string lines;
  const store::InlineChain& chain = *frame.chain;
  for (auto function = chain.rbegin(); function != chain.rend(); ++function) {
    const bool is_unknown = function->kind == store::FrameKind::kUnknown;
    const bool is_outermost = function + 1 == chain.rend();
    lines += '\t';
    lines += address.data();
    lines += is_unknown ? "[unknown]" : line_text(function->name, "[unknown]");
    lines += is_outermost ? " (" + module_text(function->module) + ")\n" : " (inlined)\n";
  }
  return lines;
}

}  // namespace

std::string render_perf_script(const store::TimedSamples& samples) {
  const store::StackProfile& stacks = samples.stacks;
  std::vector<std::string> frames;
  frames.reserve(stacks.frames.size());
  for (const store::StackFrame& frame : stacks.frames) frames.push_back(frame_lines(frame));
  std::vector<std::string> threads;
  threads.reserve(stacks.threads.size());
  for (const store::StackThread& thread : stacks.threads) {
    std::string text = line_text(thread.comm, "[unknown]");
    if (text.size() < 16) text.resize(16, ' ');
    const std::int32_t pid = stacks.processes[thread.process].id.pid;
    threads.push_back(text + " " + std::to_string(pid) + "/" + std::to_string(thread.tid));
  }

  std::string out;
  if (samples.samples.empty()) out = warning_lines("# ", stacks.warnings);
  for (const store::TimedSample& sample : samples.samples) {
    std::array<char, 96> head{};
    std::snprintf(head.data(), head.size(), " [%03u] %lld.%06lld: %10lld cpu-clock: \n", unsigned{sample.cpu},
                  static_cast<long long>(sample.time.ns / kNsPerSecond),
                  static_cast<long long>(sample.time.ns % kNsPerSecond / kNsPerUs),
                  static_cast<long long>(sample.period_ns));
    out += threads[sample.thread];
    out += head.data();
    for (std::uint32_t stack = sample.stack; stack != 0; stack = stacks.nodes[stack].caller) {
      out += frames[stacks.nodes[stack].frame];
    }
    // Not code, but shown: no function has address 0.
    if (sample.truncation) out += "\t               0 " + store::marker_of(*sample.truncation) + " ([unknown])\n";
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
