// SPDX-License-Identifier: Apache-2.0
#include "api/answer/shared_answers.h"

#include <utility>

namespace flamed::api {
namespace {

constexpr std::int64_t kYoungNs = kNsPerSecond;
/// The age limit while the next one is being made. If an answer takes long to make, the one before gets old.
constexpr std::int64_t kOldestNs = 5 * kNsPerSecond;
/// Memory of an answer without its body: its question, its headers, and the tables' entries.
constexpr std::size_t kBesideBody = 2048;

std::size_t cost_of(const SharedAnswer& answer) { return answer.body.size() + kBesideBody; }

}  // namespace

struct SharedAnswers::Flight {
  Question question;
  std::int64_t begun_ns;
  std::uint64_t revision;
  std::vector<Asker> askers{};  ///< guarded by SharedAnswers' mutex
  bool others_asked = false;    ///< likewise: while it was being made
};

SharedAnswers::Verdict SharedAnswers::ask(const Question& question, Asker& asker, std::uint64_t revision) {
  const std::int64_t now_ns = clock_.monotonic().ns;
  std::vector<Answer> gone;
  const std::lock_guard lock(mutex_);
  gone = drop_old(now_ns);
  Entry& entry = entries_[question];
  if (entry.kept != nullptr) {
    const std::int64_t age_ns = now_ns - entry.moment_ns;
    const bool is_current = entry.revision == revision && age_ns <= kYoungNs;
    const bool has_heir = entry.flight != nullptr && entry.flight->begun_ns - entry.landed_ns <= kYoungNs;
    if (entry.flight != nullptr) entry.flight->others_asked = true;
    if (is_current || has_heir) return {entry.kept, nullptr, false};
  }
  if (entry.flight != nullptr && now_ns - entry.flight->begun_ns <= kYoungNs) {
    entry.flight->askers.push_back(std::move(asker));
    entry.flight->others_asked = true;
    return {};
  }
  entry.flight = std::make_shared<Flight>(Flight{question, now_ns, revision});
  const bool is_fresh = entry.kept != nullptr && now_ns - entry.landed_ns <= kYoungNs;
  return {is_fresh && entry.is_popular ? entry.kept : nullptr, entry.flight, !is_fresh};
}

std::vector<SharedAnswers::Asker> SharedAnswers::land(const std::shared_ptr<Flight>& flight, const Answer& answer) {
  const std::int64_t now_ns = clock_.monotonic().ns;
  std::vector<Answer> gone;
  const std::lock_guard lock(mutex_);
  // A client that asked a second later has begun another one, which may have landed before and dropped the entry.
  const auto at = entries_.find(flight->question);
  if (at == entries_.end()) return std::exchange(flight->askers, {});
  Entry& entry = at->second;
  if (entry.flight == flight) entry.flight.reset();
  if (entry.kept == nullptr || entry.moment_ns <= flight->begun_ns) {
    if (entry.kept != nullptr) gone.push_back(drop_kept(at));
    if (answer != nullptr && answer->head.status == 200 && cost_of(*answer) <= limit_bytes_) {
      entry.kept = answer;
      entry.moment_ns = flight->begun_ns;
      entry.landed_ns = now_ns;
      entry.revision = flight->revision;
      entry.is_popular = flight->others_asked;
      by_age_.emplace(entry.moment_ns, &at->first);
      bytes_ += cost_of(*answer);
    }
  }
  if (entry.kept == nullptr && entry.flight == nullptr) entries_.erase(at);
  while (bytes_ > limit_bytes_) gone.push_back(drop_oldest());
  return std::exchange(flight->askers, {});
}

void SharedAnswers::clear() {
  std::vector<Answer> gone;
  const std::lock_guard lock(mutex_);
  while (!by_age_.empty()) gone.push_back(drop_oldest());
}

std::size_t SharedAnswers::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

SharedAnswers::Answer SharedAnswers::drop_kept(Entries::iterator at) {
  Entry& entry = at->second;
  by_age_.erase({entry.moment_ns, &at->first});
  bytes_ -= cost_of(*entry.kept);
  return std::exchange(entry.kept, nullptr);
}

SharedAnswers::Answer SharedAnswers::drop_oldest() {
  const auto at = entries_.find(*by_age_.begin()->second);
  Answer answer = drop_kept(at);
  if (at->second.flight == nullptr) entries_.erase(at);
  return answer;
}

/// Removes answers that are too old to be used.
std::vector<SharedAnswers::Answer> SharedAnswers::drop_old(std::int64_t now_ns) {
  std::vector<Answer> gone;
  while (!by_age_.empty() && now_ns - by_age_.begin()->first > kOldestNs) gone.push_back(drop_oldest());
  return gone;
}

}  // namespace flamed::api
