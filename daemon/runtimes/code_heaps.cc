// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/code_heaps.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtimes/hotspot/interpreter.h"
#include "symbolizer/model/reading_purpose.h"

namespace flamed::daemon {
namespace {

/// Walks that failed for another reason than missing rows.
constexpr std::int64_t kFailedPauseNs = 10 * kNsPerSecond;
constexpr unsigned kMostFailures = 8;
constexpr std::size_t kMostLibraries = 4096;
/// What the thread keeps of heaps, so that only new code is read. A JVM with 20,000 methods takes 4 MiB.
constexpr std::size_t kMostHeapBytes = std::size_t{64} << 20;
constexpr std::size_t kMostHeaps = 64;
constexpr std::int64_t kTidyNs = 10 * kNsPerSecond;

constexpr std::uint64_t kPageBytes = std::uint64_t{1} << FLAMED_PAGE_SHIFT;
/// A heap grows in steps; so much more of it is covered by each reading.
constexpr std::uint64_t kSlackBytes = std::uint64_t{1} << 20;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

unwinder::Rule pending_rule() {
  unwinder::Rule rule;
  rule.cfa = unwinder::CfaKind::kPending;
  return rule;
}

/// Nothing of the code has been read yet.
const CodePlacePtr& unread() {
  static const CodePlacePtr place = std::make_shared<const CodePlace>();
  return place;
}

}  // namespace

bool CodeHeaps::is_library(ModuleId module) {
  if (module == kNoModule) return false;
  const auto found = is_library_.find(module);
  if (found != is_library_.end()) return found->second;
  if (is_library_.size() >= kMostLibraries) is_library_.clear();
  const symbolizer::ModulePtr file = parts_.modules.find(module);
  if (file == nullptr) return false;
  const bool is = std::string_view(file->path).substr(file->path.rfind('/') + 1) == "libjvm.so";
  is_library_.emplace(module, is);
  return is;
}

const symbolizer::Mapping* CodeHeaps::find_library(const symbolizer::MappingSet& maps) {
  const std::vector<symbolizer::Mapping>& mappings = maps.mappings();
  const auto found = std::find_if(mappings.begin(), mappings.end(),
                                  [&](const symbolizer::Mapping& mapping) { return is_library(mapping.module); });
  return found == mappings.end() ? nullptr : &*found;
}

bool CodeHeaps::has_library(const symbolizer::Process& process) {
  return process.maps != nullptr && find_library(*process.maps) != nullptr;
}

CodePlacePtr CodeHeaps::place_of(const symbolizer::Process& process) {
  if (process.maps == nullptr) return find(process.id);
  const auto found = known_.find(process.id);
  const bool is_known = found != known_.end() && (found->second.exec_id == process.exec_id ||
                                                  found->second.exec_id == 0 || process.exec_id == 0);
  if (is_known) {
    if (process.exec_id != 0) found->second.exec_id = process.exec_id;
    return found->second.place;
  }
  const symbolizer::Mapping* const library = find_library(*process.maps);
  if (found != known_.end()) {
    if (found->second.place != nullptr && found->second.place->rows != kNoModule)
      old_rows_.push_back(found->second.place->rows);
    known_.erase(found);
  }
  if (library == nullptr) return nullptr;
  Known known;
  known.exec_id = process.exec_id;
  known.library = library->module;
  known.mapping = {library->start, library->file_offset};
  known.user = process.user;
  known.place = unread();
  known_.emplace(process.id, std::move(known));
  processes_ = known_.size();
  return unread();
}

CodePlacePtr CodeHeaps::find(const ProcessId& process) const {
  const auto found = known_.find(process);
  return found == known_.end() ? nullptr : found->second.place;
}

bool CodeHeaps::missed(const symbolizer::Process& process, MonotonicTime now, Miss miss) {
  const auto found = known_.find(process.id);
  if (found == known_.end() || found->second.place == nullptr) return false;
  Known& known = found->second;
  known.used_at = std::max(known.used_at, now);
  known.user = process.user;
  if (miss == Miss::kFailed && now.ns - known.pace.read_at().ns < kFailedPauseNs) return true;
  if (known.is_wanted) return true;
  known.is_wanted = true;
  ++waiting_;
  return true;
}

const symbolizer::Mapping* CodeHeaps::library_of(const symbolizer::Process& process) const {
  const auto found = known_.find(process.id);
  if (found == known_.end() || process.maps == nullptr) return nullptr;
  const symbolizer::Mapping* const mapping = process.maps->find(found->second.mapping.start);
  return mapping != nullptr && mapping->module == found->second.library ? mapping : nullptr;
}

void CodeHeaps::ask(const ProcessId& process, Known& known) {
  Request request{{{process, known.exec_id, known.user}, known.library, known.mapping}, known.place};
  if (!requests_.try_push(std::move(request))) return;
  known.is_asked = true;
  known.is_wanted = false;
}

void CodeHeaps::look_again(MonotonicTime now, std::vector<ProcessId>& changed) {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers = std::exchange(answers_, {});
  }
  for (Answer& answer : answers) {
    const ModuleId rows = answer.place == nullptr ? kNoModule : answer.place->rows;
    const auto found = known_.find(answer.process);
    if (found != known_.end()) found->second.is_asked = false;
    if (found == known_.end() || found->second.exec_id != answer.exec_id || found->second.place == nullptr) {
      if (rows != kNoModule) old_rows_.push_back(rows);
      continue;
    }
    Known& known = found->second;
    const bool has_failed = answer.place == nullptr;
    known.failures = has_failed ? known.failures + 1 : 0;
    known.pace.read(now, answer.took_ns, known.failures);
    if (!has_failed) {
      if (answer.place == known.place) continue;
      if (known.place->rows != kNoModule) old_rows_.push_back(known.place->rows);
      known.place = std::move(answer.place);
      changed.push_back(answer.process);
    } else if (answer.is_for_good || known.failures >= kMostFailures) {
      if (known.place->rows != kNoModule) old_rows_.push_back(known.place->rows);
      known.place = nullptr;
      changed.push_back(answer.process);
    }
  }
  waiting_ = 0;
  for (auto& [process, known] : known_) {
    if (known.is_wanted && !known.is_asked && known.pace.may_read(now) && parts_.may_work()) ask(process, known);
    if (known.is_wanted || known.is_asked) ++waiting_;
  }
}

void CodeHeaps::forget_old_rows() {
  std::erase_if(old_rows_, [&](ModuleId rows) { return parts_.unwind.forget_code(rows); });
}

void CodeHeaps::tidy(MonotonicTime now, const std::function<bool(const ProcessId&)>& is_running) {
  if (now.ns - tidied_at_.ns < kTidyNs) return;
  tidied_at_ = now;
  for (auto it = known_.begin(); it != known_.end();) {
    const auto each = it++;
    const auto& [process, known] = *each;
    if (is_running(process) || now.ns - known.used_at.ns < kTidyNs) continue;
    if (known.place != nullptr && known.place->rows != kNoModule) old_rows_.push_back(known.place->rows);
    Request request;
    request.jvm.owner.process = process;
    static_cast<void>(requests_.try_push(std::move(request)));
    known_.erase(each);
  }
  processes_ = known_.size();
}

void CodeHeaps::run(const std::stop_token& stop) {
  const symbolizer::ReadingFor background(symbolizer::ReadingPurpose::kBackground);
  while (!stop.stop_requested()) {
    const std::optional<Request> request = requests_.pop(stop);
    if (!request) return;
    if (request->jvm.library == kNoModule) {
      drop_heap(request->jvm.owner.process);
      continue;
    }
    Answer answer = read(*request);
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
}

CodeHeaps::Answer CodeHeaps::read(const Request& request) {
  const ProcessMemories::Owner& owner = request.jvm.owner;
  Answer answer{owner.process, owner.exec_id, nullptr, 0, false};
  const SystemClock clock;
  const MonotonicTime began = clock.monotonic();
  ProcessMemories& memories = parts_.jvms.memories();
  const bool is_stuck = memories.is_stuck(owner.user);
  Result<CodePlacePtr> place = is_stuck ? ProcessMemories::stuck_error() : read_place(request);
  answer.took_ns = clock.monotonic().ns - began.ns;
  ++readings_;
  reading_ns_ += answer.took_ns;
  if (place) {
    answer.place = std::move(place).value();
    return answer;
  }
  ++failures_;
  answer.is_for_good = is_stuck || place.error().code() == ENOTSUP;
  memories.note_failure(owner, place.error(), answer.took_ns);
  spdlog::debug("process {}: {}", owner.process.pid, place.error().message());
  if (answer.is_for_good) note(request.jvm.library, {}, place.error().message());
  return answer;
}

Result<CodeHeaps::Heap*> CodeHeaps::heap_of(const Request& request) {
  const ProcessMemories::Owner& owner = request.jvm.owner;
  const auto found = heaps_.find(owner.process);
  if (found != heaps_.end() && found->second.exec_id == owner.exec_id) return &found->second;
  if (found != heaps_.end()) drop_heap(owner.process);
  Result<std::shared_ptr<const OpenJvms::Jvm>> jvm = parts_.jvms.open(request.jvm);
  if (!jvm) return std::move(jvm).error();
  Heap heap;
  heap.exec_id = owner.exec_id;
  heap.jvm = std::move(jvm).value();
  note(request.jvm.library, heap.jvm->layout.release_text(), {});
  heap.interpreter = runtimes::interpreter_slots(heap.jvm->layout);
  if (heap.interpreter) heap.layout = parts_.enter_interpreter(*heap.interpreter);
  while (heaps_.size() >= kMostHeaps || heap_bytes_ > kMostHeapBytes) {
    const ProcessId oldest = heaps_by_age_.front();
    drop_heap(oldest);
  }
  heaps_by_age_.push_back(owner.process);
  return &heaps_.emplace(owner.process, std::move(heap)).first->second;
}

void CodeHeaps::drop_heap(const ProcessId& process) {
  const auto found = heaps_.find(process);
  if (found == heaps_.end()) return;
  heap_bytes_ -= found->second.bytes;
  heaps_.erase(found);
  std::erase(heaps_by_age_, process);
}

Result<CodePlacePtr> CodeHeaps::read_place(const Request& request) {
  const ProcessMemories::Owner& owner = request.jvm.owner;
  const Result<Heap*> found = heap_of(request);
  if (!found) return found.error();
  Heap& heap = **found;
  std::vector<runtimes::HotSpotKnownBlob> known;
  known.reserve(heap.pieces.size());
  for (const Piece& piece : heap.pieces) known.push_back({piece.blob.address, piece.blob.bytes, piece.blob.compile_id});
  Result<runtimes::HotSpotCode> code =
      parts_.reader.read_hotspot_code({heap.jvm->memory->get(), owner.user}, heap.jvm->layout, heap.jvm->base, known);
  if (!code) return std::move(code).error();
  const bool has_changed = merge(heap, *code);
  if (heap.bytes > kMostHeapBytes) {
    drop_heap(owner.process);
    return Error("the JVM has too much code", ENOTSUP);
  }
  while (heap_bytes_ > kMostHeapBytes) {
    const bool is_this = heaps_by_age_.front() == owner.process;
    drop_heap(heaps_by_age_[is_this ? 1 : 0]);
  }
  const CodePlacePtr& before = request.place;
  if (!has_changed && before != nullptr && before->rows != kNoModule && parts_.unwind.is_ready(before->rows)) {
    parts_.unwind.listen_for_code(before->rows);
    return before;
  }
  CodePlacePtr place = publish(heap, code->heaps);
  if (place == nullptr) return Error("there is no room for the rows of its code", EAGAIN);
  return place;
}

/// True: there is other code than at the reading before.
bool CodeHeaps::merge(Heap& heap, const runtimes::HotSpotCode& code) {
  std::vector<Piece> pieces;
  pieces.reserve(code.blobs.size());
  std::vector<std::optional<unwinder::RuleId>> numbers(code.rules.size());
  std::size_t kept = 0;
  auto old = heap.pieces.begin();
  std::size_t bytes = 0;
  for (const runtimes::HotSpotBlob& blob : code.blobs) {
    while (old != heap.pieces.end() && old->blob.address < blob.address) ++old;
    if (blob.is_known != 0) {
      const bool is_same = old != heap.pieces.end() && old->blob.address == blob.address &&
                           old->blob.bytes == blob.bytes && old->blob.compile_id == blob.compile_id;
      if (!is_same) continue;  // it was not among the known ones: nothing is known of it
      pieces.push_back(std::move(*old));
      ++kept;
    } else {
      Piece piece{blob, {}};
      piece.rows.reserve(blob.row_count);
      for (std::size_t i = 0; i < blob.row_count; ++i) {
        const unwinder::Row& row = code.rows[blob.first_row + i];
        std::optional<unwinder::RuleId>& number = numbers[row.rule.value];
        if (!number) number = heap.rules.intern(code.rules[row.rule.value]).value_or(unwinder::kUnsupportedRule);
        piece.rows.push_back({row.offset, *number});
      }
      pieces.push_back(std::move(piece));
      ++blobs_;
    }
    bytes += sizeof(Piece) + pieces.back().rows.capacity() * sizeof(unwinder::Row);
  }
  const std::size_t gone = heap.pieces.size() - kept;
  replaced_ += gone;
  const bool has_changed = gone != 0 || pieces.size() != kept;
  heap.pieces = std::move(pieces);
  heap_bytes_ += bytes - heap.bytes;
  heap.bytes = bytes;
  return has_changed;
}

/// Null: there is no room.
CodePlacePtr CodeHeaps::publish(const Heap& heap, const std::vector<runtimes::HotSpotHeapRange>& ranges) {
  CodePlace place;
  place.interpreter = heap.interpreter;
  place.layout = heap.layout;
  unwinder::UnwindRows rows;
  unwinder::RuleTable rules = heap.rules;
  const unwinder::RuleId pending = rules.intern(pending_rule()).value_or(unwinder::kUnsupportedRule);
  std::uint64_t offset = 0;
  auto piece = heap.pieces.begin();
  for (const runtimes::HotSpotHeapRange& range : ranges) {
    const std::uint64_t end = std::min(range.end, range.low + round_up(range.high - range.low) + kSlackBytes);
    place.areas.push_back({range.low, end, offset, true});
    if (end < range.end) place.areas.push_back({end, range.end, 0, false});
    const auto add = [&](std::uint64_t address, unwinder::RuleId rule) {
      const auto at = static_cast<std::uint32_t>(offset + (address - range.low));
      if (!rows.rows.empty() && rows.rows.back().offset >= at) {
        rows.rows.back().rule = rule;
        return;
      }
      rows.rows.push_back({at, rule});
    };
    add(range.low, pending);
    for (; piece != heap.pieces.end() && piece->blob.code_begin < range.high; ++piece) {
      if (piece->blob.code_begin < range.low) continue;
      for (const unwinder::Row& row : piece->rows) add(piece->blob.code_begin + row.offset, row.rule);
      add(piece->blob.code_end, pending);
    }
    offset += round_up(end - range.low);
  }
  if (rows.rows.empty()) return nullptr;
  // So that the pages behind the last code are in the tables.
  const auto last = static_cast<std::uint32_t>(offset - 1);
  if (rows.rows.back().offset < last) rows.rows.push_back({last, pending});
  rows.rules.assign(rules.rules().begin(), rules.rules().end());
  place.rows = parts_.unwind.publish_code(rows);
  if (place.rows == kNoModule) return nullptr;
  return std::make_shared<const CodePlace>(std::move(place));
}

void CodeHeaps::note(ModuleId library, std::string version, std::string missing) {
  const std::lock_guard lock(mutex_);
  const auto found = libraries_.find(library);
  if (found == libraries_.end()) {
    if (libraries_.size() >= kMostLibraries) return;
    const symbolizer::ModulePtr module = parts_.modules.find(library);
    libraries_.emplace(library, Library{module == nullptr ? std::string() : module->path, std::move(version), missing});
  } else {
    if (!version.empty()) found->second.version = std::move(version);
    found->second.missing = missing;
  }
  if (!missing.empty()) spdlog::info("code of a JVM is not read: {}", missing);
}

CodeHeaps::Stats CodeHeaps::stats() const {
  return {processes_.load(), readings_.load(), reading_ns_.load(), failures_.load(), blobs_.load(), replaced_.load()};
}

std::vector<CodeHeaps::Fact> CodeHeaps::facts() const {
  std::vector<Fact> facts;
  const std::lock_guard lock(mutex_);
  for (const auto& [module, library] : libraries_) facts.push_back({library.path, library.version, library.missing});
  std::sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.path < b.path; });
  return facts;
}

}  // namespace flamed::daemon
