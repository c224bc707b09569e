// SPDX-License-Identifier: Apache-2.0
#include "api/answer/push_reports.h"

#include <algorithm>
#include <utility>

#include "api/text/json_writer.h"
#include "api/text/time_expression.h"

namespace flamed::api {
namespace {

/// So many reports may be missing.
constexpr std::int64_t kMissedReports = 4;

std::string_view name_of(PushOutcome outcome) { return kPushOutcomes[static_cast<std::size_t>(outcome)]; }

bool is_well(const PushStream& stream) {
  return stream.outcome == PushOutcome::kNone || stream.outcome == PushOutcome::kAccepted;
}

std::string status_text(const PushStream& stream) {
  return stream.status == 0 ? "does not answer" : "answered with status " + std::to_string(stream.status);
}

/// "pyroscope (cpu): has all until 2026-01-31T14:05:15.000Z"
std::string describe(const PushStream& stream) {
  std::string text = stream.receiver + " (" + stream.measure + "): ";
  switch (stream.outcome) {
    case PushOutcome::kNone:
      text += "nothing was sent yet";
      break;
    case PushOutcome::kAccepted:
      text += "accepted all";
      break;
    case PushOutcome::kPartly:
      text += "accepted the last request, but not all that is in it";
      break;
    case PushOutcome::kRefused:
      text += status_text(stream) + ", and what was sent is dropped";
      break;
    case PushOutcome::kUnavailable:
      text += status_text(stream) + ", and is tried again";
      break;
    case PushOutcome::kMisunderstood:
      text += status_text(stream) + ", but not as such a receiver does: is the address right?";
      break;
  }
  if (stream.outcome != PushOutcome::kNone) text += "; sent until " + format_time(stream.until);
  std::uint64_t dropped = 0;
  for (const std::uint64_t samples : stream.dropped) dropped += samples;
  if (dropped != 0) text += "; " + std::to_string(dropped) + " samples dropped so far";
  return text;
}

}  // namespace

std::int64_t PushReports::take(PushReport report, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  const bool is_same_run = last_ && report.cpu_ns >= last_->cpu_ns;
  std::int64_t spent_ns = report.cpu_ns - (is_same_run ? last_->cpu_ns : 0);
  // Who reports may be wrong, and this is held against the budget.
  spent_ns = std::clamp<std::int64_t>(spent_ns, 0, last_ ? now.ns - taken_.ns : kNsPerSecond);
  last_ = std::move(report);
  taken_ = now;
  return spent_ns;
}

std::optional<Component> PushReports::component(MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  if (!last_) return std::nullopt;
  Component component{"push", true, ""};
  if (now.ns - taken_.ns > kMissedReports * last_->interval_ms * kNsPerMs) {
    component.ok = false;
    component.detail = "flamed-push has not reported for " + std::to_string((now.ns - taken_.ns) / kNsPerSecond) +
                       " s: see systemctl status flamed-push";
    return component;
  }
  for (const PushStream& stream : last_->streams) {
    component.ok = component.ok && is_well(stream);
    component.detail += (component.detail.empty() ? "" : "; ") + describe(stream);
  }
  if (!component.ok) component.detail += ". journalctl -u flamed-push has more";
  return component;
}

void PushReports::append_metrics(std::vector<Metric>& metrics) const {
  const std::lock_guard lock(mutex_);
  if (!last_) return;
  const auto add = [&](std::string name, std::string help, std::uint64_t PushStream::*member) {
    Metric metric{std::move(name), std::move(help), Metric::Type::kCounter, {}};
    for (const PushStream& stream : last_->streams) {
      metric.values.push_back(
          {{{"receiver", stream.receiver}, {"measure", stream.measure}}, static_cast<double>(stream.*member)});
    }
    metrics.push_back(std::move(metric));
  };
  add("flamed_push_requests_total", "Requests of flamed-push that receivers answered with 2xx.", &PushStream::requests);
  add("flamed_push_bytes_total", "Their bodies.", &PushStream::bytes);
  add("flamed_push_resent_total", "Requests that were sent again, which a receiver may count twice.",
      &PushStream::resent);
  add("flamed_push_samples_total", "Samples in requests that were answered with 2xx; of waiting time, units of 0.1 ms.",
      &PushStream::samples);
  add("flamed_push_rejected_total", "Profiles that receivers said they did not take.", &PushStream::rejected);
  Metric dropped{
      "flamed_push_dropped_samples_total", "Samples that receivers do not have.", Metric::Type::kCounter, {}};
  Metric until{
      "flamed_push_until_seconds", "Unix time up to which everything was sent or dropped.", Metric::Type::kGauge, {}};
  for (const PushStream& stream : last_->streams) {
    for (std::size_t i = 0; i < kPushDrops.size(); ++i) {
      dropped.values.push_back(
          {{{"receiver", stream.receiver}, {"measure", stream.measure}, {"reason", std::string(kPushDrops[i])}},
           static_cast<double>(stream.dropped[i])});
    }
    until.values.push_back({{{"receiver", stream.receiver}, {"measure", stream.measure}},
                            static_cast<double>(stream.until.ns) / kNsPerSecond});
  }
  metrics.push_back(std::move(dropped));
  metrics.push_back(std::move(until));
}

std::string PushReports::render() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("reported").boolean(last_.has_value()).key("receivers").begin_array();
  for (const PushStream& stream : last_ ? last_->streams : std::vector<PushStream>()) {
    json.begin_object().key("name").string(stream.receiver).key("measure").string(stream.measure);
    json.key("outcome").string(name_of(stream.outcome)).key("status").number(std::int64_t{stream.status});
    json.key("until_ms").number(stream.until.ns / kNsPerMs);
    json.key("requests").number(stream.requests).key("bytes").number(stream.bytes);
    json.key("resent").number(stream.resent).key("samples").number(stream.samples);
    json.key("rejected").number(stream.rejected).key("dropped").begin_object();
    for (std::size_t i = 0; i < kPushDrops.size(); ++i) json.key(kPushDrops[i]).number(stream.dropped[i]);
    json.end_object().end_object();
  }
  json.end_array().end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
