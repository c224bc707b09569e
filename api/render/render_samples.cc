// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_samples.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/render/column_writer.h"
#include "api/render/frame_columns.h"
#include "api/render/render_common.h"
#include "base/clock.h"

namespace flamed::api {
namespace {

/// The stacks as functions: addresses of one function are one frame, and an inlined call is a node of its own.
class FunctionNodes {
 public:
  explicit FunctionNodes(const store::StackProfile& stacks) : stacks_(stacks) {
    add(0, frame_of({"all", "", store::FrameKind::kRoot, ""}));
    functions_.reserve(stacks.frames.size());
    for (const store::StackFrame& address : stacks.frames) {
      std::vector<std::uint64_t>& functions = functions_.emplace_back();
      for (const store::NamedFrame& function : *address.chain) functions.push_back(frame_of(function));
    }
    innermost_.reserve(stacks.nodes.size());
    innermost_.push_back(0);
    for (std::size_t i = 1; i < stacks.nodes.size(); ++i) {
      innermost_.push_back(below(innermost_[stacks.nodes[i].caller], stacks.nodes[i].frame));
    }
  }

  /// A truncated stack begins with a frame that says why.
  std::uint64_t node_of(const store::TimedSample& sample) {
    if (!sample.truncation) return innermost_[sample.stack];
    std::vector<std::uint32_t> addresses;
    for (std::uint32_t at = sample.stack; at != 0; at = stacks_.nodes[at].caller) {
      addresses.push_back(stacks_.nodes[at].frame);
    }
    std::uint64_t node = child(0, frame_of({store::marker_of(*sample.truncation), "", store::FrameKind::kMarker, ""}));
    for (auto address = addresses.rbegin(); address != addresses.rend(); ++address) node = below(node, *address);
    return node;
  }

  [[nodiscard]] const store::FrameList& frames() const { return frames_; }
  [[nodiscard]] const std::vector<std::uint64_t>& frame() const { return frame_; }
  [[nodiscard]] const std::vector<std::uint64_t>& caller() const { return caller_; }

 private:
  std::uint64_t frame_of(store::NamedFrame function) {
    function.line = 0;  // it differs between the addresses of a function
    const auto [known, is_new] =
        known_frames_.try_emplace({function.name, function.module, function.kind, function.inlined}, frames_.size());
    if (is_new) frames_.push_back(std::move(function));
    return known->second;
  }
  std::uint64_t below(std::uint64_t caller, std::uint32_t address) {
    for (const std::uint64_t frame : functions_[address]) caller = child(caller, frame);
    return caller;
  }
  std::uint64_t child(std::uint64_t caller, std::uint64_t frame) {
    const auto [known, is_new] = known_nodes_.try_emplace({caller, frame}, frame_.size());
    if (is_new) add(caller, frame);
    return known->second;
  }
  void add(std::uint64_t caller, std::uint64_t frame) {
    frame_.push_back(frame);
    caller_.push_back(caller);
  }

  const store::StackProfile& stacks_;
  store::FrameList frames_;
  std::map<std::tuple<std::string, std::string, store::FrameKind, bool>, std::uint64_t> known_frames_;
  std::vector<std::vector<std::uint64_t>> functions_;  ///< by address: its functions, outermost first
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> known_nodes_;
  std::vector<std::uint64_t> frame_;      ///< by node: its frame
  std::vector<std::uint64_t> caller_;     ///< likewise; callers come before callees
  std::vector<std::uint64_t> innermost_;  ///< by node of the stacks
};

}  // namespace

std::string render_samples(const store::TimedSamples& samples, double frequency_hz) {
  const store::StackProfile& stacks = samples.stacks;
  FunctionNodes nodes(stacks);
  std::vector<std::uint64_t> node;
  node.reserve(samples.samples.size());
  for (const store::TimedSample& sample : samples.samples) node.push_back(nodes.node_of(sample));

  ColumnWriter out(ColumnForm::kJson);
  JsonWriter& json = out.json();
  json.begin_object();
  append_facts(json, stacks, frequency_hz, stacks.total_samples, stacks.total_ns);
  append_coverage(json, stacks);
  append_processes(json, stacks.processes);
  json.key("threads").begin_array();
  for (const store::StackThread& thread : stacks.threads) {
    json.begin_object();
    json.key("tid").number(std::int64_t{thread.tid});
    json.key("comm").string(thread.comm);
    json.key("process").number(std::uint64_t{thread.process});
    json.end_object();
  }
  json.end_array();
  json.key("columns").begin_object();
  append_frame_columns(out, nodes.frames());
  json.key("nodes").begin_object();
  out.numbers("frame", nodes.frame());
  out.numbers("caller", nodes.caller());
  json.end_object();
  json.key("samples").begin_object();
  const std::int64_t from_ns = stacks.used.from.ns;
  const auto column = [&](const char* name, auto&& value) { out.column(name, samples.samples, value); };
  column("time_us", [&](const store::TimedSample& sample) { return (sample.time.ns - from_ns) / kNsPerUs; });
  column("thread", [](const store::TimedSample& sample) { return sample.thread; });
  out.numbers("node", node);
  column("cpu", [](const store::TimedSample& sample) { return sample.cpu; });
  column("period_ns", [](const store::TimedSample& sample) { return sample.period_ns; });
  json.end_object();
  json.end_object();
  json.end_object();
  return out.finish();
}

}  // namespace flamed::api
