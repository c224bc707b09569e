// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/excerpt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/files/period_file.h"
#include "archive/files/period_names.h"
#include "archive/files/period_reader.h"
#include "archive/reading/minute_index.h"
#include "archive/reading/renumbering.h"
#include "archive/reading/single_samples.h"
#include "base/handle.h"
#include "store/query/slot_selection.h"

namespace flamed::archive {
namespace {

using Rows = std::vector<MinuteIndex::Row>;

/// A file beside the one that is to be, which is removed unless it is published.
class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> create(const std::string& path) {
    if (::access(path.c_str(), F_OK) == 0) return exists(path);
    std::unique_ptr<NewFile> file(new NewFile(path));
    file->fd_.reset(::mkostemp(file->written_.data(), O_CLOEXEC));
    if (!file->fd_) return Error::from_errno("cannot create " + path);
    return file;
  }
  ~NewFile() {
    if (fd_) ::unlink(written_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] const std::string& path() const { return written_; }

  /// On the disk, and by its own name.
  Status publish() {
    if (::fsync(fd_.get()) != 0) return Error::from_errno("cannot write " + path_);
    if (::renameat2(AT_FDCWD, written_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0) {
      // File systems without RENAME_NOREPLACE have links.
      if (errno == EINVAL && ::link(written_.c_str(), path_.c_str()) == 0) return {};
      return errno == EEXIST ? exists(path_) : Error::from_errno("cannot write " + path_);
    }
    fd_.reset();
    return {};
  }

 private:
  explicit NewFile(const std::string& path) : path_(path), written_(path + ".XXXXXX") {}

  static Error exists(const std::string& path) {
    return Error(path + " exists, and is not overwritten: remove it, or choose another name", EEXIST);
  }

  const std::string path_;
  std::string written_;
  Fd fd_;
};

/// Copies one session's minutes.
class SessionCopy {
 public:
  SessionCopy(PeriodReader& reader, PeriodFile& into, Excerpt& excerpt)
      : reader_(reader), into_(into), excerpt_(excerpt), renumbering_(excerpt.stretch) {}

  /// An Error: the file can't be written.
  Status run(std::span<const MinuteIndex::Row> rows) {
    const std::int64_t session = rows.front().session.id;
    Status read = reader_.for_each_names(session, 0, std::numeric_limits<std::int64_t>::max(),
                                         [&](std::int64_t, std::span<const std::byte> block) -> Status {
                                           // The frames may be some that no minute of the excerpt has.
                                           const Result<std::vector<Name>> names =
                                               decode_names(block, std::numeric_limits<std::uint32_t>::max());
                                           if (!names) return {};  // these frames have no names
                                           for (const Name& name : *names) renumbering_.name(name.frame, name.chain);
                                           return {};
                                         });
    if (read) {
      read = reader_.for_each_states(session, [&](std::int64_t minute, std::span<const std::byte> block) -> Status {
        Result<std::vector<ProcessState>> states = decode_states(block);
        if (!states) return Error(states.error()).with_code(EBADMSG);
        for (ProcessState& state : *states) renumbering_.know(std::move(state), minute);
        return {};
      });
      if (!read && read.error().code() == EBADMSG) {
        excerpt_.problems.push_back("when some processes ended is not known: " + read.error().message());
        read = {};
      }
    }
    const auto* next = rows.data();
    const auto* const end = next + rows.size();
    if (read) {
      read = reader_.for_each_additions(
          session, 0, rows.back().id, [&](std::int64_t minute, std::span<const std::byte> block) -> Status {
            const Result<Additions> additions = decode_additions(block, renumbering_.known().size());
            if (!additions) return additions.error();
            renumbering_.add(*additions, minute);
            while (next != end && next->id < minute) miss(*next++, Error("its dictionary is missing"));
            if (next == end || next->id != minute) return {};
            return copy(*next++);
          });
    }
    if (failed_) return *failed_;
    for (; next != end; ++next) miss(*next, read ? Error("its dictionary is missing") : read.error());
    return {};
  }

 private:
  Status copy(const MinuteIndex::Row& row) {
    bool is_copied = false;
    const Status read = reader_.pairs_of(row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
      Result<Minute> minute = decode_minute(block, renumbering_.known());
      if (!minute) return std::move(minute).error();
      if (minute->wall_start() != row.start || minute->wall_end() != row.end || minute->first != row.first) {
        return Error("it disagrees with its row");
      }
      is_copied = true;
      std::optional<std::vector<Sample>> samples = read_samples(reader_, row.id, *minute);
      if (Status written = write(std::move(*minute), std::move(samples)); !written)
        failed_ = std::move(written).error();
      return {};
    });
    if (failed_) return *failed_;
    if (!read || !is_copied) miss(row, read ? Error("its block is missing") : read.error());
    return {};
  }

  Status write(Minute minute, std::optional<std::vector<Sample>> samples) {
    const Renumbering::Renumbered numbered = renumbering_.take(std::move(minute), std::move(samples));
    const Result<std::vector<std::byte>> additions = encode(numbered.additions);
    if (!additions) return additions.error();
    // An older flamed can open it, too.
    const Result<std::vector<std::byte>> pairs = encode(numbered.minute);
    if (!pairs) return pairs.error();
    std::vector<std::byte> names;
    if (!numbered.names.empty()) {
      Result<std::vector<std::byte>> block = encode(std::span<const Name>(numbered.names));
      if (!block) return std::move(block).error();
      names = std::move(*block);
    }
    std::vector<std::byte> single;
    if (numbered.samples) {
      Result<std::vector<std::byte>> block = encode(std::span<const Sample>(*numbered.samples));
      if (!block) return std::move(block).error();
      single = std::move(*block);
    }
    if (Status appended = into_.append(numbered.minute, {*additions, *pairs, names, single}); !appended)
      return appended;
    excerpt_.minutes += numbered.minute.first ? numbered.minute.sequence - *numbered.minute.first + 1 : 1;
    return {};
  }

  void miss(const MinuteIndex::Row& row, const Error& why) {
    excerpt_.problems.push_back("the minute from " + store::to_text(row.start) + " on: " + why.message());
  }

  PeriodReader& reader_;
  PeriodFile& into_;
  Excerpt& excerpt_;
  Renumbering renumbering_;
  std::optional<Error> failed_;
};

Status copy_all(MinuteIndex& index, const Rows& rows, PeriodFile& into, Excerpt& excerpt) {
  for (std::size_t first = 0, next = 0; first < rows.size(); first = next) {
    const MinuteIndex::SessionKey key = rows[first].session;
    while (next < rows.size() && rows[next].session == key) ++next;
    const std::span<const MinuteIndex::Row> of_session(rows.data() + first, next - first);
    const Result<PeriodReader*> reader = index.reader(key.file);
    if (!reader) {
      excerpt.problems.push_back(reader.error().message());
      continue;
    }
    const MinuteIndex::Session& session = index.session(key);
    into.begin_session({session.boot_id, session.run, session.program, session.host});
    if (Status copied = SessionCopy(**reader, into, excerpt).run(of_session); !copied) return copied;
  }
  return {};
}

}  // namespace

Result<Excerpt> write_excerpt(const std::string& folder, const store::WallWindow& window, const std::string& path) {
  MinuteIndex index(folder);
  if (const Status read = index.refresh(); !read) return Error(read.error()).with_context("there is no history");
  Rows rows;
  std::optional<store::WallWindow> all;
  for (const MinuteIndex::Row& row : index.rows()) {
    if (!index.counts(row.session, MinuteIndex::Prefer::kMinutes)) continue;
    if (!all) all = {row.start, row.end};
    *all = {std::min(all->from, row.start), std::max(all->to, row.end)};
    if (row.start < window.to && window.from < row.end) rows.push_back(row);
  }
  Excerpt excerpt;
  for (const Error& error : index.unusable()) excerpt.problems.push_back(error.message());
  if (rows.empty()) {
    return Error("no minute from " + store::to_text(window.from) + " to " + store::to_text(window.to) + " is in " +
                     folder +
                     (all ? ", which has some from " + store::to_text(all->from) + " to " + store::to_text(all->to)
                          : ", nor any other") +
                     (excerpt.problems.empty() ? "" : "; " + excerpt.problems.front()),
                 ENODATA);
  }
  excerpt.stretch = {rows.front().start, rows.front().end};
  for (const MinuteIndex::Row& row : rows) {
    excerpt.stretch = {std::min(excerpt.stretch.from, row.start), std::max(excerpt.stretch.to, row.end)};
  }
  Result<std::unique_ptr<NewFile>> file = NewFile::create(path);
  if (!file) return std::move(file).error();
  {
    Result<std::unique_ptr<PeriodFile>> into = PeriodFile::create((*file)->path());
    if (!into) return std::move(into).error().with_context("cannot write " + path);
    if (const Status copied = copy_all(index, rows, **into, excerpt); !copied) {
      return Error(copied.error()).with_context("cannot write " + path);
    }
  }
  if (excerpt.minutes == 0) {
    return Error("none of the minutes can be read: " + excerpt.problems.front(), EBADMSG);
  }
  if (const Status published = (*file)->publish(); !published) return published.error();
  return excerpt;
}

}  // namespace flamed::archive
