// SPDX-License-Identifier: Apache-2.0
#include "push/pusher.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/text/time_expression.h"
#include "api/text/utf8.h"

namespace flamed::push {
namespace {

/// After these, samples are stored and their stacks are walked.
constexpr std::int64_t kCpuLagMs = 5'000;
/// Waits are added by later visits, see docs/design/0026-waiting.md.
constexpr std::int64_t kWaitLagMs = 30'000;
/// What was missed is sent so many times as fast as time passes.
constexpr std::int64_t kCatchUp = 4;

Headers headers_of(Format format) {
  if (format == Format::kPyroscope) return {{"Content-Type", "application/proto"}};
  return {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}};
}

/// "2026-01-31T14:05:00.000Z/2026-01-31T14:05:15.000Z"
std::optional<Stretch> parse_window(const std::string& text, WallTime now) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const api::TimeContext context{now, [](WallTime) { return std::int64_t{0}; }};
  const auto from = api::parse_time(text.substr(0, slash), context);
  const auto to = api::parse_time(text.substr(slash + 1), context);
  if (!from || !to) return std::nullopt;
  return Stretch{from->moment.ns / kNsPerMs, to->moment.ns / kNsPerMs};
}

/// "samples=12, truncated=0, ..."
std::optional<std::uint64_t> parse_samples(std::string_view text) {
  constexpr std::string_view kKey = "samples=";
  if (!text.starts_with(kKey)) return std::nullopt;
  std::uint64_t samples = 0;
  const auto [end, error] = std::from_chars(text.data() + kKey.size(), text.data() + text.size(), samples);
  return error == std::errc{} ? std::optional(samples) : std::nullopt;
}

std::string window_of(const Stretch& stretch) {
  return "from=" + std::to_string(stretch.from_ms) + "&to=" + std::to_string(stretch.to_ms);
}

std::string without_labels(const std::string& selection) {
  std::string kept;
  for (std::size_t begin = 0; begin < selection.size();) {
    const std::size_t end = std::min(selection.find('&', begin + 1), selection.size());
    const std::string_view part = std::string_view(selection).substr(begin, end - begin);
    if (!part.starts_with("&label=")) kept += part;
    begin = end;
  }
  return kept;
}

/// As they may come back in an answer.
std::vector<std::string> secrets_of(const Receiver& receiver) {
  std::vector<std::string> secrets;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) secrets.push_back(text);
  };
  add(receiver.password.text);
  add(receiver.bearer_token.text);
  for (const auto& [name, value] : receiver.headers) add(value.text);
  if (!receiver.user.empty()) {
    const std::string both = receiver.user + ":" + receiver.password.text;
    std::string encoded(4 * ((both.size() + 2) / 3) + 1, '\0');
    encoded.resize(static_cast<std::size_t>(::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                                              reinterpret_cast<const unsigned char*>(both.data()),
                                                              static_cast<int>(both.size()))));
    add(encoded);
  }
  return secrets;
}

}  // namespace

Pusher::Pusher(const Receiver& receiver, Outside outside)
    : receiver_(receiver),
      outside_(std::move(outside)),
      headers_(headers_of(receiver.format)),
      secrets_(secrets_of(receiver)) {
  const auto add = [&](std::string_view measure, std::int64_t step_ms, std::int64_t lag_ms) {
    const std::string name = receiver_.name + "." + std::string(measure);
    const Progress::Options options{step_ms, lag_ms, receiver_.max_age_ns / kNsPerMs};
    const std::optional<Mark> mark = outside_.load(name);
    streams_.push_back({measure, step_ms / kCatchUp, Progress(options, mark, now_ms())});
    // A receiver that does not answer until the next start is to get what was sampled meanwhile.
    if (!mark) outside_.save(name, streams_.back().progress.mark());
    Figures figures;
    figures.measure = measure;
    figures.until_ms = streams_.back().progress.mark().until_ms;
    figures_.push_back(figures);
  };
  if (receiver.sends_cpu) add("cpu", receiver.interval_ns / kNsPerMs, kCpuLagMs);
  if (receiver.sends_wait) add("wait", kMinuteMs, kWaitLagMs);
}

std::string Pusher::mark_name(const Stream& stream) const { return receiver_.name + "." + std::string(stream.measure); }

std::vector<Figures> Pusher::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

template <typename F>
void Pusher::change(const Stream& stream, F&& apply) {
  const std::lock_guard lock(mutex_);
  for (Figures& figures : figures_) {
    if (figures.measure == stream.measure) apply(figures);
  }
}

void Pusher::run() {
  constexpr std::int64_t kLongestWaitMs = 60'000;
  while (true) {
    for (Stream& stream : streams_) {
      if (now_ms() >= stream.not_before_ms && !advance(stream)) return;
    }
    // A clock that is set back must not stop it.
    const std::int64_t now = now_ms();
    std::int64_t due_ms = now + kLongestWaitMs;
    for (Stream& stream : streams_) {
      stream.not_before_ms = std::min(stream.not_before_ms, now + stream.pause_ms);
      due_ms = std::min(due_ms, std::max({stream.progress.due_ms(), stream.not_before_ms, now + 1}));
    }
    if (!outside_.wait((due_ms - now) * kNsPerMs)) return;
  }
}

bool Pusher::advance(Stream& stream) {
  const std::optional<Progress::Step> step = stream.progress.next(now_ms());
  if (!step) return true;
  if (step->kind != Progress::Step::Kind::kSend) {
    const std::optional<std::uint64_t> samples = count(stream, *step);
    if (!samples) return outside_.wait(pauses_.next_ns(outside_.chance()));
    const std::uint64_t dropped = stream.progress.count(*step, *samples);
    const auto reason = step->kind == Progress::Step::Kind::kCountOld ? Drop::kTooOld : Drop::kCutMinute;
    change(stream, [&](Figures& figures) { figures.dropped[static_cast<std::size_t>(reason)] += dropped; });
    finish(stream);
    return true;
  }
  const std::optional<Fetched> fetched = fetch(stream, *step);
  if (!fetched) return outside_.wait(pauses_.next_ns(outside_.chance()));
  if (!stream.progress.fits(*step, fetched->used)) return true;
  if (fetched->samples != 0) return send(stream, *step, *fetched);
  stream.progress.done(*step, 0);
  finish(stream);
  return true;
}

bool Pusher::send(Stream& stream, const Progress::Step& step, const Fetched& fetched) {
  const auto drop = [&](Drop reason, std::string_view outcome, int status) {
    change(stream, [&](Figures& figures) {
      figures.outcome = outcome;
      figures.status = status;
      figures.dropped[static_cast<std::size_t>(reason)] += fetched.samples;
    });
  };
  for (bool is_first = true;; is_first = false) {
    if (!is_first) change(stream, [](Figures& figures) { ++figures.resent; });
    const Answer answer = outside_.send(headers_, fetched.body);
    const Verdict verdict = judge(receiver_.format, answer, outside_.clock.wall());
    if (verdict.kind == Verdict::Kind::kAgain) {
      change(stream, [&](Figures& figures) {
        figures.outcome = "unavailable";
        figures.status = answer.status;
      });
      tell("unavailable " + std::to_string(answer.status), excerpt_of(answer));
      if (!outside_.wait(pauses_.next_ns(outside_.chance(), verdict.pause_ns))) return false;
      if (step.stretch.to_ms > now_ms() - receiver_.max_age_ns / kNsPerMs) continue;
      drop(Drop::kTooOld, "unavailable", answer.status);
      break;
    }
    pauses_.reset();
    if (verdict.kind == Verdict::Kind::kRefused) {
      drop(Drop::kRefused, "refused", answer.status);
      tell("refused " + std::to_string(answer.status), excerpt_of(answer));
    } else if (verdict.kind == Verdict::Kind::kMisunderstood) {
      drop(Drop::kMisunderstood, "misunderstood", answer.status);
      tell("misunderstood", "content type '" + answer.content_type + "', " + excerpt_of(answer));
    } else {
      const bool is_all = verdict.kind == Verdict::Kind::kAccepted;
      change(stream, [&](Figures& figures) {
        figures.outcome = is_all ? "accepted" : "partly";
        figures.status = answer.status;
        ++figures.requests;
        figures.bytes += fetched.body.size();
        figures.samples += fetched.samples;
        figures.rejected += verdict.rejected;
      });
      tell(is_all ? "accepted" : "partly", is_all ? "" : excerpt_of(answer));
    }
    break;
  }
  stream.progress.done(step, fetched.samples);
  finish(stream);
  return true;
}

void Pusher::finish(Stream& stream) {
  stream.not_before_ms = now_ms() + stream.pause_ms;
  outside_.save(mark_name(stream), stream.progress.mark());
  change(stream, [&](Figures& figures) { figures.until_ms = stream.progress.mark().until_ms; });
}

std::optional<Pusher::Fetched> Pusher::fetch(const Stream& stream, const Progress::Step& step) {
  LocalAnswer answer = outside_.ask(
      "/profile?format=" + std::string(name_of(receiver_.format)) + "&measure=" + std::string(stream.measure) +
      "&naming=" + (receiver_.names_all ? "all&" : "quick&") + window_of(step.ask) + receiver_.selection);
  const std::optional<Stretch> used = parse_window(answer.window, outside_.clock.wall());
  const std::optional<std::uint64_t> samples = parse_samples(answer.quality);
  if (answer.status != 200 || !used || !samples) {
    tell("daemon", "no answer of flamed: " + (answer.fault.empty() ? "status " + std::to_string(answer.status) + " " +
                                                                         answer.body.substr(0, 300)
                                                                   : answer.fault));
    return std::nullopt;
  }
  pauses_.reset();
  return Fetched{*samples, *used, std::move(answer.body)};
}

std::optional<std::uint64_t> Pusher::count(const Stream& stream, const Progress::Step& step) {
  const std::string target = "/timeline?step=1d&measure=" + std::string(stream.measure) + "&" + window_of(step.ask) +
                             without_labels(receiver_.selection);
  const LocalAnswer answer = outside_.ask(target);
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool has_samples =
      answer.status == 200 && json.is_object() && json.contains("samples") && json["samples"].is_number_unsigned();
  if (has_samples) return json["samples"].get<std::uint64_t>();
  tell("daemon", "flamed does not count what is dropped: " +
                     (answer.fault.empty() ? "status " + std::to_string(answer.status) : answer.fault));
  return std::nullopt;
}

void Pusher::tell(const std::string& state, const std::string& detail) {
  if (state == told_) return;
  told_ = state;
  outside_.log(receiver_.name + ": " + (state == "daemon" ? detail : state + (detail.empty() ? "" : ": " + detail)));
}

std::string Pusher::excerpt_of(const Answer& answer) const {
  constexpr std::size_t kMostBytes = 300;
  std::string text = answer.body.substr(0, kMostBytes);
  if (!answer.fault.empty()) text = answer.fault + (text.empty() ? "" : ": " + text);
  const bool has_secret = std::any_of(secrets_.begin(), secrets_.end(), [&](const std::string& secret) {
    return answer.body.find(secret) != std::string::npos;
  });
  if (has_secret) return "(not shown: it has credentials)";
  std::string line = api::repair_utf8(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return line;
}

}  // namespace flamed::push
