// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/coarsening.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "archive/codec/additions.h"
#include "archive/codec/names.h"
#include "archive/codec/stretch.h"
#include "archive/codec/sum.h"
#include "archive/files/period_names.h"
#include "archive/reading/check.h"

namespace flamed::archive {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
constexpr store::WallWindow kAlways{{std::numeric_limits<std::int64_t>::min()}, {kAll}};
/// As of all databases.
constexpr mode_t kRights = 0640;

Error damaged(const std::string& what) { return Error("damaged: " + what, EBADMSG); }

}  // namespace

Coarsening::Coarsening(std::string folder, std::uint64_t number)
    : folder_(std::move(folder)), number_(number), path_(unfinished_path(folder_, number)), index_(folder_) {}

Coarsening::~Coarsening() {
  into_.reset();
  if (file_ && !is_whole_) ::unlink(path_.c_str());
}

Result<std::unique_ptr<Coarsening>> Coarsening::begin(const std::string& folder, std::uint64_t number) {
  std::unique_ptr<Coarsening> coarsening(new Coarsening(folder, number));
  // Of all files: the last minute of one that could not be finished may be in the next.
  if (const Status read = coarsening->index_.refresh(); !read) return read.error();
  for (const MinuteIndex::Row& row : coarsening->index_.rows()) {
    if (row.session.file == Period{number}) coarsening->rows_.push_back(row);
  }
  coarsening->index_.close();
  if (coarsening->rows_.empty()) return damaged("it has no minutes");
  const Result<PeriodReader*> reader = coarsening->index_.reader(Period{number});
  if (!reader) return reader.error();
  coarsening->reader_ = *reader;
  if (const Status whole = coarsening->reader_->check(); !whole) return whole.error();
  if (const Status created = coarsening->create(); !created) return created.error();
  return coarsening;
}

Status Coarsening::create() {
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kRights));
  if (!file_ || ::fchmod(file_.get(), kRights) != 0) return Error::from_errno("cannot create " + path_);
  Result<std::unique_ptr<PeriodFile>> into = PeriodFile::create(path_);
  if (!into) return std::move(into).error();
  into_ = std::move(*into);
  return {};
}

Result<bool> Coarsening::step() {
  const auto do_step = [&]() -> Status {
    if (next_ == rows_.size()) {
      if (Status ended = end_session(); !ended) return ended;
      return finish();
    }
    const MinuteIndex::Row& row = rows_[next_];
    const bool is_of_other_session = next_ == 0 || rows_[next_ - 1].session != row.session;
    if (is_of_other_session) {
      if (Status ended = end_session(); !ended) return ended;
      if (Status begun = begin_session(row.session); !begun) return begun;
    }
    ++next_;
    return read_minute(row);
  };
  if (const Status done = do_step(); !done) {
    Error error = Error(done.error()).with_context(period_path(folder_, {number_}));
    return error.code() == 0 ? std::move(error).with_code(EBADMSG) : error;
  }
  return is_whole_;
}

Status Coarsening::begin_session(const MinuteIndex::SessionKey& session) {
  renumbering_.emplace(kAlways, Folding::kThreadsAndFrames);
  places_ = {};
  read_until_ = 0;
  const MinuteIndex::Session& of = index_.session(session);
  into_->begin_session({of.boot_id, of.run, of.program, of.host});
  if (!has_whole_sums(session)) new_sums_.emplace();
  states_.clear();
  Status read = reader_->for_each_states(session.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    Result<std::vector<ProcessState>> states = decode_states(block);
    if (!states) return states.error();
    for (ProcessState& state : *states) {
      const ProcessId id = state.info.id;
      states_.insert_or_assign(id, std::move(state));
    }
    return {};
  });
  if (!read) return read;
  return reader_->for_each_names(session.id, 0, kAll, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    const Result<std::vector<Name>> names = decode_names(block, std::numeric_limits<std::uint32_t>::max());
    if (!names) return names.error();
    for (const Name& name : *names) renumbering_->name(name.frame, name.chain);
    return {};
  });
}

Status Coarsening::read_minute(const MinuteIndex::Row& row) {
  Status read = reader_->for_each_additions(
      row.session.id, read_until_, row.id, [&](std::int64_t minute, std::span<const std::byte> block) -> Status {
        const Result<Additions> additions = decode_additions(block, renumbering_->known().size());
        if (!additions) return additions.error();
        renumbering_->add(*additions, minute);
        if (new_sums_) {
          new_sums_->dictionary.add(*additions);
          new_sums_->gaps.insert(new_sums_->gaps.end(), additions->gaps.begin(), additions->gaps.end());
        }
        return {};
      });
  if (!read) return read;
  read_until_ = row.id;
  std::optional<Minute> minute;
  read = reader_->pairs_of(row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    Result<Minute> decoded = decode_minute(block, renumbering_->known());
    if (!decoded) return std::move(decoded).error();
    minute = std::move(*decoded);
    return {};
  });
  if (!read) return read;
  if (!minute || minute->wall_start() != row.start || minute->wall_end() != row.end || minute->first != row.first ||
      minute->sequence != row.sequence) {
    return damaged("a minute that disagrees with its row");
  }
  for (const Pair& pair : minute->pairs) samples_ += pair.count;
  std::optional<Sum> sum;
  if (new_sums_) {
    if (!new_sums_->sums.takes(*minute)) sum = new_sums_->sums.finish();
    new_sums_->sums.add(*minute, new_sums_->dictionary, std::exchange(new_sums_->gaps, {}));
  }
  if (stretch_ && goes_on(*stretch_, *minute)) {
    extend(*stretch_, *minute);
    stretch_->pairs.insert(stretch_->pairs.end(), minute->pairs.begin(), minute->pairs.end());
    return {};
  }
  if (Status written = write_stretch(); !written) return written;
  if (Status written = write_sum(sum); !written) return written;
  stretch_ = std::move(minute);
  stretch_->first = row.first_sequence();
  return {};
}

Status Coarsening::write_stretch() {
  if (!stretch_) return {};
  const Renumbering::Renumbered numbered = renumbering_->take(*std::exchange(stretch_, std::nullopt));
  places_.add(numbered.additions);
  const Result<std::vector<std::byte>> additions = encode(numbered.additions);
  if (!additions) return additions.error();
  const Result<std::vector<std::byte>> pairs = encode(numbered.minute, places_);
  if (!pairs) return pairs.error();
  Result<std::vector<std::byte>> names = std::vector<std::byte>();
  if (!numbered.names.empty()) names = encode(std::span<const Name>(numbered.names));
  if (!names) return std::move(names).error();
  last_ = {numbered.minute.sequence, numbered.minute.wall_start(), {}};
  return into_->append(numbered.minute, {*additions, *pairs, *names});
}

/// Of the session, in one block behind its last stretch: its sums don't know them.
Status Coarsening::write_states() {
  if (states_.empty()) return {};
  std::vector<ProcessState> states;
  for (auto& [id, state] : std::exchange(states_, {})) states.push_back(std::move(state));
  Result<std::vector<std::byte>> block = encode_states(std::move(states));
  if (!block) return std::move(block).error();
  last_.block = std::move(*block);
  return into_->add_states(last_);
}

Status Coarsening::end_session() {
  if (!renumbering_) return {};
  if (Status written = write_stretch(); !written) return written;
  if (Status written = write_states(); !written) return written;
  renumbering_.reset();
  if (!new_sums_) return copy_sums(rows_[next_ - 1].session.id);
  return write_sum(std::exchange(new_sums_, std::nullopt)->sums.finish());
}

/// Of each minute, and they can be read. If the disk fails, that is said when they are copied.
bool Coarsening::has_whole_sums(const MinuteIndex::SessionKey& session) {
  std::vector<const MinuteIndex::Sum*> sums;
  for (const MinuteIndex::Sum& sum : index_.sums()) {
    if (sum.session == session) sums.push_back(&sum);
  }
  for (const MinuteIndex::Row& row : rows_) {
    const auto has_it = [&](const MinuteIndex::Sum* sum) { return sum->has(row); };
    if (row.session == session && std::none_of(sums.begin(), sums.end(), has_it)) return false;
  }
  const Status read = check_sums(*reader_, session.id);
  const int code = read ? 0 : read.error().code();
  return read || (code != 0 && code != EBADMSG && code != ENOTSUP);
}

Status Coarsening::write_sum(const std::optional<Sum>& sum) {
  if (!sum) return {};
  const Result<SumBlocks> blocks = encode(*sum);
  return blocks ? into_->add_sum(*blocks) : blocks.error();
}

Status Coarsening::copy_sums(std::int64_t session) {
  const Result<std::vector<PeriodReader::SumRow>> rows = reader_->sums(0);
  if (!rows) return rows.error();
  if (rows->empty()) return {};
  auto row = rows->begin();
  return reader_->for_each_sum(
      session, 0, kAll, true, [&](std::int64_t id, const PeriodReader::SumBlocks& blocks) -> Status {
        while (row != rows->end() && row->id < id) ++row;
        if (row == rows->end() || row->id != id) return damaged("a sum that disagrees with its row");
        const auto copy = [](std::span<const std::byte> block) { return std::vector(block.begin(), block.end()); };
        return into_->add_sum({row->first, row->last, row->start, row->end, copy(blocks.additions), copy(blocks.pairs),
                               copy(blocks.short_additions), copy(blocks.short_pairs)});
      });
}

Status Coarsening::finish() {
  into_.reset();
  index_.close();
  if (::fsync(file_.get()) != 0) return Error::from_errno("cannot write " + path_);
  const Checked checked = check_file(path_);
  if (!checked.problems.empty()) return Error(checked.problems.front(), EIO);
  if (checked.samples != samples_) return Error(path_ + " has not all samples", EIO);
  is_whole_ = true;
  return {};
}

}  // namespace flamed::archive
