// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/minute_index.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>
#include <utility>

#include "archive/files/period_names.h"

namespace flamed::archive {
namespace {

/// The newest one is written, and the one before may have been when it was read last.
constexpr std::size_t kWritten = 2;
constexpr std::size_t kMostOpen = 8;
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;

template <typename Row>
bool is_sane(const Row& row) {
  return -kMostNs < row.start.ns && row.start < row.end && row.end.ns < kMostNs;
}

/// The place after all rows of the databases up to that one.
template <typename Row>
auto end_of(std::vector<Row>& rows, const Period& last) {
  return std::upper_bound(rows.begin(), rows.end(), last,
                          [](const Period& file, const Row& row) { return file < row.session.file; });
}

}  // namespace

Status MinuteIndex::refresh() {
  if (folder_.empty()) {
    File& only = files_[kOnly];
    read(kOnly, only);
    return only.problem ? *only.problem : Status();
  }
  const Result<Periods> found = list_periods(folder_);
  if (!found) return found.error();
  const std::vector<Period>& periods = found->periods;
  std::vector<Period> gone;
  for (const auto& [period, file] : files_) {
    if (!std::binary_search(periods.begin(), periods.end(), period)) gone.push_back(period);
  }
  for (const Period& period : gone) forget(period);
  for (std::size_t i = 0; i < periods.size(); ++i) {
    const Period& period = periods[i];
    const auto [place, is_new] = files_.try_emplace(period);
    const std::optional<Error>& problem = place->second.problem;
    const bool may_pass = problem && problem->code() != EBADMSG && problem->code() != ENOTSUP;
    if (is_new || may_pass || i + kWritten >= periods.size()) read(period, place->second);
  }
  return {};
}

bool MinuteIndex::counts(const SessionKey& session, Prefer prefer) const {
  const Period& file = session.file;
  const auto other = files_.find({file.number, !file.is_coarse});
  const bool has_both = other != files_.end() && other->second.rows != 0 && !other->second.problem;
  return !has_both || file.is_coarse == (prefer == Prefer::kStretches);
}

std::int64_t MinuteIndex::names_until(const SessionKey& session, std::int64_t row, std::uint32_t frames) const {
  const auto late = late_names_.find(session);
  if (late == late_names_.end()) return row;
  const auto last = std::find_if(late->second.rbegin(), late->second.rend(),
                                 [&](const LateNames& names) { return names.from < frames; });
  return last == late->second.rend() ? row : std::max(row, last->row);
}

std::uint64_t MinuteIndex::bytes_of(const Row& row) const {
  const File& file = files_.at(row.session.file);
  return file.bytes / std::max<std::uint64_t>(file.rows, 1);
}

void MinuteIndex::read(const Period& period, File& file) {
  file.problem.reset();
  const auto fail = [&](const Error& error) {
    const std::string path = folder_.empty() ? "" : period_path(folder_, period);
    const bool names_it = error.message().find(path) != std::string::npos;
    file.problem = names_it ? error : Error(error).with_context(path);
  };
  const Result<PeriodReader*> reader = this->reader(period);
  if (!reader) return fail(reader.error());
  const Result<std::uint64_t> bytes = (*reader)->bytes();
  if (!bytes) return fail(bytes.error());
  file.bytes = *bytes;
  const Result<std::vector<PeriodReader::MinuteRow>> rows = (*reader)->minutes(file.newest);
  if (!rows) return fail(rows.error());
  // What can't be read of sums is known from their minutes.
  Result<std::vector<PeriodReader::SumRow>> known = (*reader)->sums(file.newest_sum);
  const std::vector<PeriodReader::SumRow> sums = known ? std::move(*known) : std::vector<PeriodReader::SumRow>();
  if (rows->empty() && sums.empty()) return;
  const Result<std::vector<PeriodReader::SessionRow>> sessions = (*reader)->sessions();
  if (!sessions) return fail(sessions.error());
  for (const PeriodReader::SessionRow& row : *sessions) {
    sessions_.insert_or_assign(SessionKey{period, row.id}, Session{row.boot_id, row.run, row.program, row.host});
  }
  add_rows(period, file, *rows);
  add_sums(period, file, sums);
}

void MinuteIndex::add_rows(const Period& period, File& file, const std::vector<PeriodReader::MinuteRow>& rows) {
  const auto first = end_of(rows_, period) - rows_.begin();
  std::vector<Row> added;
  for (const PeriodReader::MinuteRow& row : rows) {
    file.newest = row.id;
    const SessionKey session{period, row.session};
    if (!is_sane(row) || row.first.value_or(0) > row.sequence || !sessions_.contains(session)) continue;
    ++file.rows;
    if (row.names_from) late_names_[session].push_back({row.id, *row.names_from});
    Row next{session, row.id, row.sequence, row.start, row.end, 0, row.first};
    Row* const last = !added.empty() ? &added.back()
                      : first != 0   ? &rows_[static_cast<std::size_t>(first) - 1]
                                     : nullptr;
    if (last != nullptr && is_same_minute(*last, next)) {
      next.ordinal = last->ordinal;
      *last = next;
    } else {
      next.ordinal = next_ordinal_++;
      added.push_back(next);
    }
  }
  rows_.insert(rows_.begin() + first, added.begin(), added.end());
}

void MinuteIndex::add_sums(const Period& period, File& file, const std::vector<PeriodReader::SumRow>& sums) {
  std::vector<Sum> added;
  auto minute =
      std::partition_point(rows_.begin(), rows_.end(), [&](const Row& row) { return row.session.file < period; });
  const auto end = end_of(rows_, period);
  for (const PeriodReader::SumRow& row : sums) {
    file.newest_sum = row.id;
    const SessionKey session{period, row.session};
    if (!is_sane(row) || row.last < row.first || !sessions_.contains(session)) continue;
    Sum sum{session, row.id, row.first, row.last, row.start, row.end};
    const auto is_before = [&](const Row& other) {
      return other.session < session || (other.session == session && other.sequence < row.last);
    };
    while (minute != end && is_before(*minute)) ++minute;
    if (minute != end && minute->session == session && minute->sequence == row.last) sum.newest_row = minute->id;
    sum.ordinal = next_sum_++;
    added.push_back(sum);
  }
  sums_.insert(end_of(sums_, period), added.begin(), added.end());
}

bool MinuteIndex::is_same_minute(const Row& a, const Row& b) const {
  return a.sequence == b.sequence && !a.first && !b.first && session(a.session).run == session(b.session).run;
}

std::vector<Error> MinuteIndex::unusable() const {
  std::vector<Error> problems;
  for (const auto& [period, file] : files_) {
    if (file.problem) problems.push_back(*file.problem);
  }
  return problems;
}

void MinuteIndex::forget(const Period& period) {
  const auto is_in_it = [&](const auto& row) { return row.session.file == period; };
  std::erase_if(rows_, is_in_it);
  std::erase_if(sums_, is_in_it);
  std::erase_if(sessions_, [&](const auto& session) { return session.first.file == period; });
  std::erase_if(late_names_, [&](const auto& session) { return session.first.file == period; });
  readers_.erase(period);
  files_.erase(period);
}

Result<PeriodReader*> MinuteIndex::reader(const Period& file) {
  if (const auto known = readers_.find(file); known != readers_.end()) return &known->second;
  if (folder_.empty()) return Error("there is no such database", ENOENT);
  Result<PeriodReader> opened = PeriodReader::open(period_path(folder_, file));
  if (!opened) return std::move(opened).error();
  // The oldest ones are asked for least.
  if (readers_.size() >= kMostOpen) readers_.erase(readers_.begin());
  return &readers_.emplace(file, std::move(*opened)).first->second;
}

std::future<MinuteIndex> read_index(std::string folder) {
  std::promise<MinuteIndex> promise;
  std::future<MinuteIndex> coming = promise.get_future();
  // The future of std::async() would wait for a disk that does not answer when nobody wants the index any more.
  std::thread([folder = std::move(folder), promise = std::move(promise)]() mutable {
    MinuteIndex index(folder);
    static_cast<void>(index.refresh());  // whoever uses it looks again
    index.close();
    promise.set_value(std::move(index));
  }).detach();
  return coming;
}

}  // namespace flamed::archive
