// SPDX-License-Identifier: Apache-2.0
#include "daemon/file_sources.h"

#include <utility>

#include "archive/files/period_reader.h"
#include "archive/reading/minute_index.h"
#include "base/keyed_hash.h"
#include "daemon/version.h"
#include "store/query/slot_selection.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "symbolizer/names/special_frames.h"

namespace flamed::daemon {
namespace {

/// Dictionaries and minutes that were read stay in memory for the next query: the file has nothing else to share with.
constexpr std::size_t kPastBytes = std::size_t{256} << 20;

store::Snapshot snapshot_without_samples(MonotonicTime until, std::int64_t period_ns) {
  auto data = std::make_shared<store::SnapshotData>();
  data->sealed = std::make_shared<const std::vector<store::SealedSlot>>();
  data->sums = std::make_shared<store::SlotSums>(0);
  data->side_sums = std::make_shared<store::SlotSums>(0);
  data->gaps = std::make_shared<const std::vector<store::Gap>>();
  data->since = until;
  data->until = until;
  data->period_ns = period_ns;
  return store::Snapshot(std::move(data));
}

}  // namespace

std::vector<std::shared_ptr<const store::InlineChain>> MarkerNamer::name(std::span<const Frame> frames) {
  std::vector<std::shared_ptr<const store::InlineChain>> chains;
  chains.reserve(frames.size());
  for (const Frame& frame : frames) {
    chains.push_back(symbolizer::name_special(frame));
    if (chains.back() != nullptr) continue;
    chains.back() =
        share({NamedFrame{"[unknown]", "[unknown]", FrameKind::kUnknown, "the file does not say in what it is"}});
  }
  return chains;
}

Status FileSources::read(archive::Connection connection) {
  Result<archive::PeriodReader> reader = archive::PeriodReader::begin(std::move(connection));
  if (!reader) return std::move(reader).error();
  archive::MinuteIndex index(std::move(*reader));
  Result<archive::FileFacts> facts = archive::read_facts(index);
  if (!facts) return std::move(facts).error();
  facts_ = std::move(*facts);
  clock_.stop_at(facts_.stretch.to);
  nothing_ = snapshot_without_samples(clock_.monotonic(), facts_.period_ns);
  past_ = std::make_unique<archive::Past>(std::move(index),
                                          archive::Past::Options{.boot_id = facts_.boot_id,
                                                                 .run = static_cast<std::int64_t>(random_hash_key()),
                                                                 .has_kernel = false,
                                                                 .budget_bytes = kPastBytes});
  namer_.emplace(markers_, past_.get());
  return {};
}

store::Snapshot FileSources::with_history(const store::Snapshot& snapshot, std::span<const store::WallWindow> windows,
                                          const store::Detail& detail) const {
  return past_->with(snapshot, windows, detail);
}

api::Health FileSources::health() const {
  api::Component component{"history", true, ""};
  component.detail = std::to_string(facts_.minutes) + " minutes of " +
                     (facts_.host.empty() ? "an unknown host" : "the host " + facts_.host) + ", from " +
                     store::to_text(facts_.stretch.from) + " to " + store::to_text(facts_.stretch.to) +
                     ", in the file " + name_ + "; nothing is sampled";
  for (const std::string& problem : past_->problems()) {
    component.ok = false;
    component.detail += "; " + problem;
  }
  api::Health health;
  health.components.push_back(std::move(component));
  health.oldest = facts_.stretch.from;
  return health;
}

std::vector<api::Metric> FileSources::metrics() const {
  return {{"flamed_build_info", "Always 1.", api::Metric::Type::kGauge, {{{{"version", kVersion}}, 1}}}};
}

std::optional<api::HistoryFile> FileSources::file() const {
  return api::HistoryFile{name_, facts_.host, facts_.stretch};
}

std::string FileSources::version() const { return kVersion; }

double FileSources::frequency_hz() const {
  return static_cast<double>(kNsPerSecond) / static_cast<double>(facts_.period_ns);
}

api::CpuAccount FileSources::machine_cpu(const store::WallWindow& /*window*/) const {
  return {{}, "a file has the kernel's accounts of its minutes alone"};
}

api::CpuAccount FileSources::process_cpu(const store::WallWindow& /*window*/,
                                         const store::ProcessInfo& /*process*/) const {
  return {{}, "a file does not have the kernel's accounts of processes"};
}

}  // namespace flamed::daemon
