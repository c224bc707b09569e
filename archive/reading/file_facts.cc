// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/file_facts.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "archive/codec/minute.h"
#include "archive/files/period_reader.h"
#include "base/clock.h"

namespace flamed::archive {
namespace {

constexpr std::size_t kMostHostBytes = 253;  // of a name in DNS

/// The name is the file's.
std::string printable(std::string_view host) {
  std::string text(host.substr(0, kMostHostBytes));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text;
}

/// What a minute says of itself.
Result<Minute> read_head(PeriodReader& reader, std::int64_t id) {
  Result<Minute> minute = Error("its block is missing", EBADMSG);
  const Status read = reader.pairs_of(id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    minute = decode_head(block);
    return {};
  });
  if (!read) return read.error();
  return minute;
}

}  // namespace

Result<FileFacts> read_facts(MinuteIndex& index) {
  if (const Status read = index.refresh(); !read) return read.error();
  const std::vector<MinuteIndex::Row>& rows = index.rows();
  if (rows.empty()) return Error("it has no minutes", ENODATA);
  FileFacts facts;
  facts.stretch = {rows.front().start, rows.front().end};
  std::string why;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    facts.stretch = {std::min(facts.stretch.from, row->start), std::max(facts.stretch.to, row->end)};
    facts.minutes += row->minutes();
    if (facts.cpus != 0) continue;
    const Result<PeriodReader*> reader = index.reader(row->session.file);
    if (!reader) return reader.error();
    const Result<Minute> newest = read_head(**reader, row->id);
    if (!newest) {
      if (why.empty()) why = newest.error().message();
      continue;
    }
    const MinuteIndex::Session& session = index.session(row->session);
    facts.host = printable(session.host);
    facts.boot_id = session.boot_id;
    facts.cpus = std::max(newest->cpus, 1U);
    facts.period_ns = newest->period_ns;
  }
  if (facts.cpus == 0) return Error("damaged: none of its minutes can be read: " + why, EBADMSG);
  return facts;
}

}  // namespace flamed::archive
