// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "archive/files/period_names.h"
#include "archive/files/period_reader.h"

namespace flamed::archive {
namespace {

Status check_blocks(const PeriodReader::SumRow& row, const PeriodReader::SumBlocks& blocks, DictionarySize& size) {
  const Result<Additions> additions = decode_additions(blocks.additions, size);
  if (!additions) return additions.error();
  size = additions->after();
  const auto check_minute = [&](std::span<const std::byte> block, const DictionarySize& known) -> Status {
    const Result<Minute> sum = decode_minute(block, known);
    if (!sum) return sum.error();
    const bool agrees = sum->wall_start() == row.start && sum->wall_end() == row.end && sum->sequence == row.last;
    return agrees ? Status() : Error("it disagrees with its row");
  };
  if (Status read = check_minute(blocks.pairs, size); !read || blocks.short_pairs.empty()) return read;
  const Result<Additions> own = decode_additions(blocks.short_additions, {});
  return own ? check_minute(blocks.short_pairs, own->after()) : own.error();
}

/// `size`: of the dictionary before.
Status check_sum(PeriodReader& reader, const PeriodReader::SumRow& row, DictionarySize& size) {
  return reader.for_each_sum(
      row.session, row.id - 1, row.id, true,
      [&](std::int64_t, const PeriodReader::SumBlocks& blocks) { return check_blocks(row, blocks, size); });
}

class FileCheck {
 public:
  FileCheck(std::string path, Checked& into) : path_(std::move(path)), into_(into) {}

  void run() {
    Result<PeriodReader> reader = PeriodReader::open(path_);
    if (!reader) return add(reader.error());
    if (const Status whole = reader->check(); !whole) return add(whole.error());
    const Result<std::vector<PeriodReader::MinuteRow>> rows = reader->minutes(0);
    if (!rows) return add(rows.error());
    for (const PeriodReader::MinuteRow& row : *rows) {
      if (const Status read = check(*reader, row)) {
        into_.minutes += row.first ? row.sequence - *row.first + 1 : 1;
      } else {
        add(Error(read.error()).with_context("minute " + std::to_string(row.id)));
      }
    }
    check_states(*reader);
    check_sums(*reader);
  }

 private:
  Status check(PeriodReader& reader, const PeriodReader::MinuteRow& row) {
    StackPlaces& places = places_[row.session];
    Status read = reader.for_each_additions(
        row.session, row.id - 1, row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
          const Result<Additions> additions = decode_additions(block, places.size());
          if (!additions) return additions.error();
          places.add(*additions);
          return {};
        });
    if (!read) return read;
    read = reader.names_of(row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
      const Result<std::vector<Name>> names = decode_names(block, places.size().frames);
      return names ? Status() : names.error();
    });
    if (!read) return read;
    bool has_pairs = false;
    read = reader.pairs_of(row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
      has_pairs = true;
      const Result<Minute> minute = decode_minute(block, places);
      if (!minute) return minute.error();
      if (minute->wall_start() != row.start || minute->wall_end() != row.end || minute->first != row.first) {
        return Error("it disagrees with its row");
      }
      for (const Pair& pair : minute->pairs) into_.samples += pair.count;
      return reader.samples_of(row.id, [&](std::int64_t, std::span<const std::byte> samples) -> Status {
        const Result<std::vector<Sample>> read_samples = decode_samples(samples, *minute);
        return read_samples ? Status() : read_samples.error();
      });
    });
    if (read && !has_pairs) return Error("its block is missing");
    return read;
  }

  void check_states(PeriodReader& reader) {
    const Result<std::vector<PeriodReader::SessionRow>> sessions = reader.sessions();
    if (!sessions) return add(sessions.error());
    for (const PeriodReader::SessionRow& session : *sessions) {
      std::int64_t minute = 0;
      const Status read = reader.for_each_states(session.id, [&](std::int64_t id, std::span<const std::byte> block) {
        minute = id;
        const Result<std::vector<ProcessState>> states = decode_states(block);
        return states ? Status() : Status(states.error());
      });
      if (!read) add(Error(read.error()).with_context("states after minute " + std::to_string(minute)));
    }
  }

  void check_sums(PeriodReader& reader) {
    const Result<std::vector<PeriodReader::SumRow>> rows = reader.sums(0);
    if (!rows) return add(rows.error());
    std::map<std::int64_t, DictionarySize> sizes;  // by session
    for (const PeriodReader::SumRow& row : *rows) {
      if (const Status read = check_sum(reader, row, sizes[row.session]); !read) {
        add(Error(read.error()).with_context("sum " + std::to_string(row.id)));
      }
    }
  }

  void add(const Error& error) {
    const std::string& message = error.message();
    into_.problems.push_back(message.find(path_) == std::string::npos ? path_ + ": " + message : message);
  }

  const std::string path_;
  Checked& into_;
  std::map<std::int64_t, StackPlaces> places_;  ///< by session
};

}  // namespace

Result<Checked> check_history(const std::string& folder) {
  const Result<Periods> found = list_periods(folder);
  if (!found) return found.error();
  Checked checked;
  std::map<std::uint64_t, Checked> most;  // of minutes and their stretches, by number
  for (const Period& period : found->periods) {
    ++checked.files;
    const Checked file = check_file(period_path(folder, period));
    checked.problems.insert(checked.problems.end(), file.problems.begin(), file.problems.end());
    Checked& of_both = most[period.number];
    of_both.minutes = std::max(of_both.minutes, file.minutes);
    of_both.samples = std::max(of_both.samples, file.samples);
  }
  for (const auto& [number, of_both] : most) {
    checked.minutes += of_both.minutes;
    checked.samples += of_both.samples;
  }
  return checked;
}

Status check_sums(PeriodReader& reader, std::int64_t session) {
  const Result<std::vector<PeriodReader::SumRow>> rows = reader.sums(0);
  if (!rows) return rows.error();
  DictionarySize size;
  for (const PeriodReader::SumRow& row : *rows) {
    if (row.session != session) continue;
    if (Status read = check_sum(reader, row, size); !read) return read;
  }
  return {};
}

Checked check_file(const std::string& path) {
  Checked checked;
  checked.files = 1;
  FileCheck(path, checked).run();
  return checked;
}

}  // namespace flamed::archive
