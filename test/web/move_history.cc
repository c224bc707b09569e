// SPDX-License-Identifier: Apache-2.0
//
// Copies what a daemon has recorded to other times, as if it had run then: a history that is as old as a test needs it,
// with content that is known.
//
//   move_history FROM INTO SECONDS...
//
// FROM: the folder of a daemon that has ended. INTO: another one, which gets a database for each of SECONDS, with all
// minutes so much earlier, without their single samples and sums.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/stack_places.h"
#include "archive/files/period_file.h"
#include "archive/files/period_names.h"
#include "archive/files/period_reader.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/model/gap.h"

namespace flamed::archive {
namespace {

using Bytes = std::vector<std::byte>;

Status copy_minute(PeriodReader& reader, std::int64_t row, const Additions& additions, const StackPlaces& known,
                   std::int64_t earlier_ns, PeriodFile& into) {
  Minute minute;
  Status has_pairs = reader.pairs_of(row, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    Result<Minute> decoded = decode_minute(block, known);
    if (!decoded) return std::move(decoded).error();
    minute = std::move(*decoded);
    minute.wall_offset_ns -= earlier_ns;
    return {};
  });
  if (!has_pairs) return has_pairs;
  Bytes names;
  Status has_names = reader.names_of(row, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    const Result<std::vector<Name>> decoded = decode_names(block, known.size().frames);
    if (!decoded) return decoded.error();
    Result<Bytes> encoded = encode(std::span<const Name>(*decoded));
    if (!encoded) return std::move(encoded).error();
    names = std::move(*encoded);
    return {};
  });
  if (!has_names) return has_names;
  const Result<Bytes> dictionary = encode(additions);
  if (!dictionary) return dictionary.error();
  const Result<Bytes> pairs = encode(minute, known);
  if (!pairs) return pairs.error();
  return into.append(minute, {*dictionary, *pairs, names});
}

Status copy(PeriodReader& reader, std::int64_t earlier_ns, PeriodFile& into) {
  const Result<std::vector<PeriodReader::SessionRow>> sessions = reader.sessions();
  if (!sessions) return sessions.error();
  for (const PeriodReader::SessionRow& session : *sessions) {
    // A minute of the same run would be this one, written again.
    into.begin_session({session.boot_id, session.run ^ earlier_ns, session.program, session.host});
    StackPlaces known;
    const auto copy_one = [&](std::int64_t row, std::span<const std::byte> block) -> Status {
      Result<Additions> additions = decode_additions(block, known.size());
      if (!additions) return std::move(additions).error();
      known.add(*additions);
      for (store::Gap& gap : additions->gaps) {
        gap.from.ns -= earlier_ns;
        gap.to.ns -= earlier_ns;
      }
      return copy_minute(reader, row, *additions, known, earlier_ns, into);
    };
    constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
    if (Status copied = reader.for_each_additions(session.id, 0, kAll, copy_one); !copied) return copied;
  }
  return {};
}

Status move_all(const std::string& from, const std::string& into, std::span<char* const> all_seconds) {
  const Result<Periods> periods = list_periods(from);
  if (!periods) return periods.error();
  std::filesystem::create_directories(into);
  std::uint64_t number = 0;
  for (const char* seconds : all_seconds) {
    Result<std::unique_ptr<PeriodFile>> file = PeriodFile::open(period_path(into, {++number}));
    if (!file) return std::move(file).error();
    for (const Period& period : periods->periods) {
      Result<PeriodReader> reader = PeriodReader::open(period_path(from, period));
      if (!reader) return std::move(reader).error();
      if (Status copied = copy(*reader, std::atoll(seconds) * kNsPerSecond, **file); !copied) return copied;
    }
  }
  return {};
}

}  // namespace
}  // namespace flamed::archive

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: move_history FROM INTO SECONDS...\n", stderr);
    return 2;
  }
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  const flamed::Status moved = flamed::archive::move_all(argv[1], argv[2], arguments.subspan(3));
  if (!moved) std::fprintf(stderr, "%s\n", moved.error().message().c_str());
  return moved ? 0 : 1;
}
