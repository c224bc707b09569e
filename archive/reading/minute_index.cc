// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/minute_index.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "archive/files/period_names.h"

namespace flamed::archive {
namespace {

/// The newest one is written, and the one before may have been when it was read last.
constexpr std::size_t kWritten = 2;
constexpr std::size_t kMostOpen = 8;
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;

bool is_sane(const PeriodReader::MinuteRow& row) {
  return -kMostNs < row.start.ns && row.start < row.end && row.end.ns < kMostNs;
}

}  // namespace

Status MinuteIndex::refresh() {
  if (folder_.empty()) {
    File& only = files_[kOnly];
    read_rows(kOnly, only);
    return only.problem ? *only.problem : Status();
  }
  const Result<std::vector<std::uint64_t>> numbers = list_periods(folder_);
  if (!numbers) return numbers.error();
  std::vector<std::uint64_t> gone;
  for (const auto& [number, file] : files_) {
    if (!std::binary_search(numbers->begin(), numbers->end(), number)) gone.push_back(number);
  }
  for (const std::uint64_t number : gone) forget(number);
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const std::uint64_t number = (*numbers)[i];
    const auto [place, is_new] = files_.try_emplace(number);
    const std::optional<Error>& problem = place->second.problem;
    const bool may_pass = problem && problem->code() != EBADMSG && problem->code() != ENOTSUP;
    if (is_new || may_pass || i + kWritten >= numbers->size()) read_rows(number, place->second);
  }
  return {};
}

void MinuteIndex::read_rows(std::uint64_t number, File& file) {
  file.problem.reset();
  const auto fail = [&](const Error& error) {
    const std::string path = folder_.empty() ? "" : period_path(folder_, number);
    const bool names_it = error.message().find(path) != std::string::npos;
    file.problem = names_it ? error : Error(error).with_context(path);
  };
  const Result<PeriodReader*> reader = this->reader(number);
  if (!reader) return fail(reader.error());
  const Result<std::vector<PeriodReader::MinuteRow>> rows = (*reader)->minutes(file.newest);
  if (!rows) return fail(rows.error());
  if (rows->empty()) return;
  const Result<std::vector<PeriodReader::SessionRow>> sessions = (*reader)->sessions();
  if (!sessions) return fail(sessions.error());
  for (const PeriodReader::SessionRow& row : *sessions) {
    sessions_.insert_or_assign(SessionKey{number, row.id}, Session{row.boot_id, row.run, row.program, row.host});
  }
  const auto at = std::upper_bound(rows_.begin(), rows_.end(), number, [](std::uint64_t file_number, const Row& row) {
    return file_number < row.session.file;
  });
  const auto first = at - rows_.begin();
  std::vector<Row> added;
  for (const PeriodReader::MinuteRow& row : *rows) {
    file.newest = row.id;
    const SessionKey session{number, row.session};
    if (!is_sane(row) || !sessions_.contains(session)) continue;
    Row next{session, row.id, row.sequence, row.start, row.end, 0};
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

bool MinuteIndex::is_same_minute(const Row& a, const Row& b) const {
  return a.sequence == b.sequence && session(a.session).run == session(b.session).run;
}

std::vector<Error> MinuteIndex::unusable() const {
  std::vector<Error> problems;
  for (const auto& [number, file] : files_) {
    if (file.problem) problems.push_back(*file.problem);
  }
  return problems;
}

void MinuteIndex::forget(std::uint64_t number) {
  const auto is_in_it = [&](const auto& row) { return row.session.file == number; };
  rows_.erase(std::remove_if(rows_.begin(), rows_.end(), is_in_it), rows_.end());
  std::erase_if(sessions_, [&](const auto& session) { return session.first.file == number; });
  readers_.erase(number);
  files_.erase(number);
}

Result<PeriodReader*> MinuteIndex::reader(std::uint64_t file) {
  if (const auto known = readers_.find(file); known != readers_.end()) return &known->second;
  if (folder_.empty()) return Error("there is no such database", ENOENT);
  Result<PeriodReader> opened = PeriodReader::open(period_path(folder_, file));
  if (!opened) return std::move(opened).error();
  // The oldest ones are asked for least.
  if (readers_.size() >= kMostOpen) readers_.erase(readers_.begin());
  return &readers_.emplace(file, std::move(*opened)).first->second;
}

}  // namespace flamed::archive
