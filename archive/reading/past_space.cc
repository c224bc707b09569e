// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/past_space.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "archive/codec/minute.h"
#include "archive/codec/samples.h"
#include "archive/codec/stretch.h"
#include "archive/codec/sum.h"
#include "archive/reading/single_samples.h"
#include "base/clock.h"

namespace flamed::archive {
namespace {

using store::FrameId;
using store::PackedFrame;
using store::ProcessRecord;
using store::StackId;
using store::ThreadRecord;

// As many per chunk as the store's arrays have.
constexpr std::uint32_t kNodesPerChunk = 2048;
constexpr std::uint32_t kFramesPerChunk = 1024;
constexpr std::uint32_t kThreadsPerChunk = 256;
constexpr std::uint32_t kProcessesPerChunk = 64;

/// Start times of processes of other boots are told apart by a number of their boot above this bit, so that no process
/// is taken for another one. A CPU counts 43 years in so many bits, and a browser all of the number.
constexpr unsigned kBootShift = 37;
constexpr std::uint64_t kBoots = std::uint64_t{1} << 15;

/// Users whom the system or a container makes up as it needs them: the next boot may give the number to somebody else.
/// systemd's dynamic users are the first of them (https://systemd.io/UIDS-GIDS/).
constexpr std::uint32_t kFirstFleetingUser = 61184;

/// The newest minute that the sum has, by which a process's states are ordered. Sums before the first that is asked for
/// are older.
std::int64_t newest_row_of(std::span<const MinuteIndex::Sum* const> sums, std::int64_t id) {
  const auto found = std::find_if(sums.begin(), sums.end(), [&](const MinuteIndex::Sum* sum) { return sum->id == id; });
  return found != sums.end() ? (*found)->newest_row : 0;
}

/// Of each kind of sums.
constexpr std::size_t kSumBytes = std::size_t{4} << 20;

/// Room for as many again, so that the store can grow for a while.
std::uint32_t base_above(std::uint32_t limit, std::uint32_t per_chunk) {
  return (2 * limit / per_chunk + 64) * per_chunk;
}

/// FNV-1a; 0 is this boot.
std::uint64_t number_of_boot(std::string_view id) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return 1 + hash % (kBoots - 1);
}

/// A process that this run has not sampled, with what an earlier one knew of it.
ProcessRecord with_past(const ProcessRecord& now, const ProcessRecord& past) {
  ProcessRecord both = now;
  // Unless it has become another user's.
  if (now.uid == store::kNoUser || now.uid == past.owner) both.owner = past.owner;
  both.is_hidden = now.is_hidden || past.is_hidden;
  if (both.uid == store::kNoUser) both.uid = past.uid;
  if (!both.executable) both.executable = past.executable;
  if (!both.command_line) both.command_line = past.command_line;
  if (!both.place) {
    both.place = past.place;
    both.cgroup_id = past.cgroup_id;
  }
  return both;
}

std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace

PastSpace::PastSpace(const store::SnapshotData& recent, Boot boot, First first)
    : boot_(std::move(boot)),
      first_sequence_(first.sequence),
      first_sum_(first.sum),
      next_(first),
      node_base_(base_above(recent.tree.nodes.limit(), kNodesPerChunk)),
      frame_base_(base_above(recent.tree.frames.limit(), kFramesPerChunk)),
      thread_base_(base_above(recent.threads.limit(), kThreadsPerChunk)),
      process_base_(base_above(recent.processes.limit(), kProcessesPerChunk)) {
  const std::uint32_t frame = frames_.allocate().value_or(0);
  frames_.writable(frame) = PackedFrame(Frame{kHiddenModule, 0});
  const std::uint32_t node = nodes_.allocate().value_or(0);
  nodes_.writable(node) = {store::kEmptyStack, FrameId{frame_base_ + frame}};
  hidden_ = node_base_ + node;
}

bool PastSpace::is_above(const store::SnapshotData& recent) const {
  return recent.tree.nodes.limit() <= node_base_ && recent.tree.frames.limit() <= frame_base_ &&
         recent.threads.limit() <= thread_base_ && recent.processes.limit() <= process_base_;
}

std::size_t PastSpace::bytes() const {
  std::size_t numbers = 0;
  for (const auto* dictionaries : {&dictionaries_, &sum_dictionaries_}) {
    for (const auto& [session, known] : *dictionaries) {
      numbers += known.frames.size() + known.stacks.size() + known.threads.size() + known.processes.size();
    }
  }
  constexpr std::size_t kRowOfMaps = 128;  // of a process's or a thread's rows in the maps
  const std::size_t places = places_ ? places_->stacks.bytes() : 0;
  const std::size_t sums = sums_ == nullptr ? 0 : sums_->used_bytes() + side_sums_->used_bytes();
  return budget_.used_bytes() + slot_bytes_ + text_bytes_ + names_->bytes() + sums + places +
         numbers * sizeof(std::uint32_t) + later_state_bytes_ +
         (process_ids_.size() * 2 + thread_ids_.size() + several_.size() * 2) * kRowOfMaps;
}

Status PastSpace::load(MinuteIndex& index, const MinuteIndex::Row& row) {
  if (has(row)) return {};
  const std::size_t before = bytes();
  const bool is_first = !dictionaries_.contains(row.session);
  Dictionary& known = dictionary_in(dictionaries_, index, row.session);
  if (known.problem) return *known.problem;
  if (Status read = read_dictionary(index, row, known); !read) {
    if (read.error().code() == EBADMSG) known.problem = read.error();
    return read;
  }
  if (is_first) last_dictionary_ = bytes() - std::min(bytes(), before);
  const Result<PeriodReader*> reader = index.reader(row.session.file);
  if (!reader) return reader.error();
  return (*reader)->pairs_of(row.id, [&](std::int64_t, std::span<const std::byte> block) -> Status {
    Result<Minute> minute = decode_minute(block, places_->stacks);
    if (!minute) return std::move(minute).error();
    // What the row says was used to find the minute.
    if (minute->wall_start() != row.start || minute->wall_end() != row.end || minute->first != row.first) {
      return Error("damaged: a minute that disagrees with its row", EBADMSG);
    }
    store::Slot slot;
    slot.bounds = {minute->start, minute->end, minute->wall_offset_ns, minute->period_ns};
    slot.sequence = first_sequence_ + row.ordinal;
    next_.sequence = std::max(next_.sequence, slot.sequence + 1);
    slot.quality = minute->quality;
    slot.cpu_ns_accounted = minute->cpu_ns_accounted;
    if (minute->first) slot.resolution_ns = kStretchNs;
    std::vector<store::HistogramEntry> entries;
    add_entries(*minute, known, entries);
    std::vector<std::uint32_t> places;
    slot.histogram = store::Histogram(entries, &places);
    store::SealedSlot sealed;
    if (const std::optional<std::vector<Sample>> samples = read_samples(**reader, row.id, *minute)) {
      std::vector<store::LoggedSample> logged;
      logged.reserve(samples->size());
      for (const Sample& sample : *samples) logged.push_back({sample.time, places[sample.pair], sample.cpu});
      sealed.log = std::make_shared<const store::SampleLog>(std::move(logged));
      slot_bytes_ += sealed.log->bytes();
    }
    slot_bytes_ += slot.bytes() + 128;
    sealed.slot = std::make_shared<const store::Slot>(std::move(slot));
    Loaded& loaded = slots_[{row.session, row.id}];
    loaded.slot = std::move(sealed);
    note_bytes(loaded, before);
    return {};
  });
}

/// Queries may add to the names and sums meanwhile, and drop sums.
void PastSpace::note_bytes(Loaded& loaded, std::size_t before) {
  const std::size_t now = bytes();
  loaded.bytes = now - std::min(now, before);
  loaded_bytes_ += loaded.bytes;
}

PastSpace::Dictionary PastSpace::dictionary_of(std::uint64_t boot) const {
  Dictionary known;
  known.names = names_->add_dictionary();
  known.boot = boot;
  known.stacks.push_back(store::kEmptyStack.value);
  return known;
}

PastSpace::Dictionary& PastSpace::dictionary_in(std::map<MinuteIndex::SessionKey, Dictionary>& dictionaries,
                                                const MinuteIndex& index,
                                                const MinuteIndex::SessionKey& session) const {
  const auto found = dictionaries.find(session);
  if (found != dictionaries.end()) return found->second;
  const std::string& boot = index.session(session).boot_id;
  return dictionaries.emplace(session, dictionary_of(boot == boot_.id ? 0 : number_of_boot(boot))).first->second;
}

void PastSpace::add_entries(const Minute& minute, const Dictionary& known,
                            std::vector<store::HistogramEntry>& entries) {
  entries.reserve(entries.size() + minute.pairs.size());
  for (const Pair& pair : minute.pairs) {
    const store::StackRef stack{StackId{known.stacks[pair.stack]}, pair.is_cut};
    entries.push_back({known.threads[pair.thread], stack.key(), pair.count});
  }
}

Status PastSpace::load(MinuteIndex& index, std::span<const MinuteIndex::Sum* const> sums, Processes processes) {
  const auto is_missing = [&](const MinuteIndex::Sum* sum) { return !has(*sum, processes); };
  const auto first = std::find_if(sums.begin(), sums.end(), is_missing);
  if (first == sums.end()) return {};
  const MinuteIndex::SessionKey key = (*first)->session;
  Dictionary& known = dictionary_in(sum_dictionaries_, index, key);
  const Result<PeriodReader*> reader = index.reader(key.file);
  if (!reader) return reader.error();
  if (Status states = read_states(**reader, key); !states) return states;
  auto next = first;
  std::size_t before = bytes();
  const auto take = [&](std::int64_t id, const PeriodReader::SumBlocks& blocks) -> Status {
    if (id > known.read_until) {
      const Result<Additions> additions = decode_additions(blocks.additions, known.size);
      if (!additions) return Error(additions.error()).with_code(EBADMSG);
      for (const ProcessState& state : additions->processes) {
        if (state.number == known.several.size()) known.several.push_back(is_several(state.info.id));
      }
      for (const ThreadAddition& thread : additions->threads) {
        known.threads_of_several.push_back(known.several[thread.process]);
      }
      add(*additions, known, key, newest_row_of(sums, id));
      known.read_until = id;
    }
    while (next != sums.end() && (*next)->id < id) ++next;
    if (next == sums.end() || (*next)->id != id || !is_missing(*next)) return {};
    if (Status added = add_sum(blocks, **next, processes, known); !added) return added;
    note_bytes(sum_slots_.at({key, id, processes}), before);
    before = bytes();
    return {};
  };
  Status read = (*reader)->for_each_sum(key.id, std::min(known.read_until, (*first)->id - 1), sums.back()->id,
                                        processes == Processes::kEach, take);
  if (read && std::any_of(sums.begin(), sums.end(), is_missing)) read = Error("damaged: a sum is missing", EBADMSG);
  return read;
}

Status PastSpace::add_sum(const PeriodReader::SumBlocks& blocks, const MinuteIndex::Sum& row, Processes processes,
                          Dictionary& known) {
  const auto decode = [&](std::span<const std::byte> block, const DictionarySize& size) -> Result<Minute> {
    Result<Minute> sum = decode_minute(block, size);
    if (!sum) return Error(std::move(sum).error()).with_code(EBADMSG);
    // What the row says was used to find the sum, and to leave out its minutes.
    if (sum->wall_start() != row.start || sum->wall_end() != row.end || sum->sequence != row.last) {
      return Error("damaged: a sum that disagrees with its row", EBADMSG);
    }
    return sum;
  };
  Result<Minute> sum = decode(blocks.pairs, known.size);
  if (!sum) return std::move(sum).error();
  std::vector<store::HistogramEntry> entries;
  if (processes == Processes::kEach && !blocks.short_pairs.empty()) {
    const Result<Additions> additions = decode_additions(blocks.short_additions, {});
    if (!additions) return Error(additions.error()).with_code(EBADMSG);
    const Result<Minute> short_sum = decode(blocks.short_pairs, additions->after());
    if (!short_sum) return short_sum.error();
    Dictionary own = dictionary_of(known.boot);
    add(*additions, own, row.session, row.newest_row);
    add_entries(*short_sum, own, entries);
    std::erase_if(sum->pairs, [&](const Pair& pair) { return known.threads_of_several[pair.thread]; });
  }
  add_entries(*sum, known, entries);
  store::Slot slot;
  slot.bounds = {sum->start, sum->end, sum->wall_offset_ns, sum->period_ns};
  slot.sequence = first_sum_ + row.ordinal;
  slot.edition = processes == Processes::kEach ? 1 : 0;
  slot.resolution_ns = kStretchNs;
  next_.sum = std::max(next_.sum, slot.sequence + 1);
  slot.quality = sum->quality;
  slot.cpu_ns_accounted = sum->cpu_ns_accounted;
  slot.histogram = store::Histogram(entries);
  slot_bytes_ += slot.bytes() + 128;
  sum_slots_[{row.session, row.id, processes}].slot = {std::make_shared<const store::Slot>(std::move(slot))};
  return {};
}

Status PastSpace::read_dictionary(MinuteIndex& index, const MinuteIndex::Row& row, Dictionary& known) {
  if (!places_ || places_->session != row.session) places_ = Places{.session = row.session, .stacks = {}};
  if (row.id <= places_->read_until) return {};
  const Result<PeriodReader*> reader = index.reader(row.session.file);
  if (!reader) return reader.error();
  if (Status states = read_states(**reader, row.session); !states) return states;
  std::map<std::int64_t, std::uint32_t> frames;  // that are known after a minute
  const auto take = [&](std::int64_t minute, std::span<const std::byte> block) -> Status {
    const Result<Additions> additions = decode_additions(block, places_->stacks.size());
    if (!additions) return Error(additions.error()).with_code(EBADMSG);
    places_->stacks.add(*additions);
    places_->read_until = minute;
    if (minute <= known.read_until) return {};
    if (additions->before != known.size) return Error("damaged: additions that were other ones before", EBADMSG);
    add(*additions, known, row.session, minute);
    known.read_until = minute;
    frames[minute] = known.size.frames;
    return {};
  };
  if (Status read = (*reader)->for_each_additions(row.session.id, places_->read_until, row.id, take); !read)
    return read;
  places_->read_until = row.id;
  known.read_until = std::max(known.read_until, row.id);
  const std::int64_t until = index.names_until(row.session, row.id, known.size.frames);
  return (*reader)->for_each_names(row.session.id, known.names_until, until,
                                   [&](std::int64_t minute, std::span<const std::byte> block) -> Status {
                                     known.names_until = minute;
                                     const auto of_minute = frames.find(minute);
                                     std::uint32_t most = known.size.frames;
                                     if (of_minute != frames.end()) most = of_minute->second;
                                     if (minute > row.id) most = std::numeric_limits<std::uint32_t>::max();
                                     names_->add_block(known.names, block, most);
                                     return {};
                                   });
}

Status PastSpace::read_states(PeriodReader& reader, const MinuteIndex::SessionKey& session) {
  const auto [place, is_new] = later_states_.try_emplace(session);
  if (!is_new) return {};
  LaterStates& later = place->second;
  std::size_t later_bytes = 0;
  Status read = reader.for_each_states(session.id, [&](std::int64_t row, std::span<const std::byte> block) -> Status {
    Result<std::vector<ProcessState>> states = decode_states(block);
    if (!states) return {};  // less is known of these processes
    for (ProcessState& state : *states) {
      later_bytes += sizeof(ProcessState) + text_bytes_of(state);
      if (later_bytes > kMostStateBytes) return {};
      const ProcessId id = state.info.id;
      later.insert_or_assign(id, LaterState{row, std::move(state)});
    }
    return {};
  });
  later_state_bytes_ += std::min(later_bytes, kMostStateBytes);
  // What is damaged costs what was known of these processes, and no minute.
  if (read || read.error().code() == EBADMSG) return {};
  later_states_.erase(place);
  return read;
}

void PastSpace::add(const Additions& additions, Dictionary& known, MinuteIndex::SessionKey session,
                    std::int64_t minute) {
  for (const Module& module : additions.modules) {
    known.modules.push_back(next_.module++);
    known.module_names.push_back(
        std::make_shared<const std::string>(module.kind == ModuleKind::kAnonymous ? "[anon]" : file_name(module.path)));
  }
  std::vector<PastNames::NewFrame> frames;
  for (const FrameAddition& added : additions.frames) add_frame(added, known, frames);
  names_->add(known.names, frames);
  for (const StackAddition& added : additions.stacks) {
    const std::uint32_t id = nodes_.allocate().value_or(0);
    nodes_.writable(id) = {StackId{known.stacks[added.caller]}, FrameId{known.frames[added.frame]}};
    known.stacks.push_back(node_base_ + id);
  }
  const LaterStates& later = later_states_[session];
  for (const ProcessState& state : additions.processes) {
    add_process(state, known, {session, minute});
    const auto more = later.find(state.info.id);
    if (more == later.end() || more->second.row < minute) continue;
    ProcessState latest = more->second.state;
    latest.number = state.number;
    add_process(latest, known, {session, more->second.row});
  }
  for (const ThreadAddition& added : additions.threads) add_thread(added, known);
  gaps_.insert(gaps_.end(), additions.gaps.begin(), additions.gaps.end());
  known.size = additions.after();
}

void PastSpace::add_frame(const FrameAddition& added, Dictionary& known, std::vector<PastNames::NewFrame>& to_name) {
  Frame frame{ModuleId{added.module}, added.offset};
  const bool is_of_other_kernel = known.boot != 0 || !boot_.has_kernel;
  const bool stays = boot_.stays == nullptr || frame.module != kKernelModule || boot_.stays(frame.offset);
  static const auto kKernel = std::make_shared<const std::string>("[kernel]");
  static const auto kVdso = std::make_shared<const std::string>("[vdso]");
  static const auto kRuntime = std::make_shared<const std::string>("[runtime]");
  const std::shared_ptr<const std::string>* module = nullptr;  // none: it is named as one of this boot
  if (added.module >= kFirstFreeModule.value) {
    const std::uint32_t number = added.module - kFirstFreeModule.value;
    frame.module = ModuleId{known.modules[number]};
    module = &known.module_names[number];
  } else if (frame.module == kKernelModule && (is_of_other_kernel || !stays)) {
    frame.offset = next_.kernel_frame++;
    module = &kKernel;
  } else if (frame.module == kVdsoModule && is_of_other_kernel) {
    frame.module = ModuleId{next_.module++};
    module = &kVdso;
  } else if (frame.module == kRuntimeModule) {
    // Functions have other numbers after each start.
    frame.module = ModuleId{next_.module++};
    module = &kRuntime;
  }
  const std::uint32_t id = frames_.allocate().value_or(0);
  frames_.writable(id) = PackedFrame(frame);
  known.frames.push_back(frame_base_ + id);
  if (module != nullptr) {
    to_name.push_back({without_mark(frame), static_cast<std::uint32_t>(known.frames.size() - 1), *module});
  }
}

store::SharedValue<std::string> PastSpace::shared(std::string_view text) {
  const auto [place, is_new] = texts_.try_emplace(std::string(text));
  if (is_new) {
    place->second = store::SharedValue<std::string>(std::string(text));
    text_bytes_ += 2 * text.size() + 128;
  }
  return place->second;
}

std::uint32_t PastSpace::owner_of(std::uint32_t user, const Dictionary& known) const {
  return known.boot != 0 && user >= kFirstFleetingUser ? store::kNoUser : user;
}

void PastSpace::add_process(const ProcessState& state, Dictionary& known,
                            std::pair<MinuteIndex::SessionKey, std::int64_t> from) {
  const store::ProcessInfo& info = state.info;
  ProcessKey key{known.boot, info.id};
  if (is_several(key.id)) {
    const Program program{known.boot,     info.comm,   info.executable,
                          info.cgroup,    state.owner, info.uid.value_or(store::kNoUser),
                          state.is_hidden};
    key.id.start_ticks = several_.try_emplace(program, several_.size() + 1).first->second;
  }
  const auto [place, is_new] = process_ids_.try_emplace(key, 0);
  if (is_new) place->second = processes_.allocate().value_or(0);
  const std::uint32_t id = place->second;
  if (state.number == known.processes.size()) known.processes.push_back(process_base_ + id);
  // Sessions are not read in their order: the latest state counts.
  const auto [latest, is_first] = state_from_.try_emplace(id, from);
  if (!is_first && from < latest->second) return;
  latest->second = from;
  ProcessRecord record;
  record.id = key.id;
  record.id.start_ticks += known.boot << kBootShift;
  record.owner = owner_of(state.owner, known);
  record.uid = info.uid.value_or(state.owner);
  record.comm = shared(info.comm);
  if (!info.executable.empty()) record.executable = shared(info.executable);
  if (!info.command_line.empty()) record.command_line = shared(info.command_line);
  if (!info.cgroup.empty()) {
    record.place = store::SharedValue<ProcessRecord::Place>({info.cgroup, info.unit, info.container});
    text_bytes_ += sizeof(ProcessRecord::Place) + info.cgroup.size() + info.unit.size() + info.container.size();
  }
  record.cgroup_id = info.cgroup_id;
  record.parent_pid = info.parent_pid;
  record.parent_start_ticks = info.parent_start_ticks;
  if (info.parent_start_ticks != 0) record.parent_start_ticks += known.boot << kBootShift;
  if (info.started) record.started_ns = info.started->ns;
  if (info.ended) record.ended_ns = info.ended->ns;
  record.is_hidden = state.is_hidden;
  processes_.writable(id) = std::move(record);
}

void PastSpace::add_thread(const ThreadAddition& added, Dictionary& known) {
  ThreadRecord record;
  record.process = known.processes[added.process] & 0x7fffffffU;
  record.is_hidden = added.is_hidden ? 1 : 0;
  record.tid = added.tid;
  record.owner = owner_of(added.owner, known);
  std::memcpy(record.comm.data(), added.comm.data(), std::min(added.comm.size(), record.comm.size() - 1));
  const auto [place, is_new] =
      thread_ids_.try_emplace({std::uint32_t{record.process}, added.tid, added.comm, record.owner, added.is_hidden}, 0);
  if (is_new) {
    const std::uint32_t id = threads_.allocate().value_or(0);
    threads_.writable(id) = record;
    place->second = thread_base_ + id;
  }
  known.threads.push_back(place->second);
}

/// Sums are by process. A process of the past that the snapshot has as well goes by the snapshot's id, so sums hold for
/// snapshots that have the same ones, and for no others: a process that was sampled meanwhile has no record here.
void PastSpace::give_sums(store::SnapshotData& data, std::unordered_map<std::uint32_t, std::uint32_t> same) {
  if (sums_ == nullptr || same != same_) {
    sums_ = std::make_shared<store::SlotSums>(kSumBytes);
    side_sums_ = std::make_shared<store::SlotSums>(kSumBytes);
    same_ = std::move(same);
  }
  data.sums = sums_;
  data.side_sums = side_sums_;
}

void PastSpace::join(store::SnapshotData& data) {
  store::ThreadTable::Records::View threads = threads_.view();
  store::ProcessTable::Records::View processes = processes_.view();
  std::unordered_map<std::uint32_t, std::uint32_t> same;  // a process here and in the snapshot
  data.processes.for_each_place([&](std::uint32_t id, const ProcessRecord& record) {
    if (!record.in_use()) return;
    const auto found = process_ids_.find(ProcessKey{0, record.id});
    if (found != process_ids_.end()) same.emplace(found->second, id);
  });
  for (const auto& [here, there] : same) {
    const ProcessRecord& now = data.processes[there];
    // The parent of another one: its own properties are read when it is sampled.
    if (!now.has_run && !now.has_waited) data.processes.set(there, with_past(now, processes[here]));
    processes.set(here, ProcessRecord{});
  }
  for (const auto& [key, id] : thread_ids_) {
    const auto found = same.find(std::get<0>(key) - process_base_);
    if (found == same.end()) continue;
    ThreadRecord record = threads[id - thread_base_];
    record.process = found->second & 0x7fffffffU;
    threads.set(id - thread_base_, record);
  }
  give_sums(data, std::move(same));
  using Nodes = store::CallTree::Nodes::View;
  using Frames = store::CallTree::Frames::View;
  data.tree.nodes = Nodes::joined(data.tree.nodes, node_base_, nodes_.view());
  data.tree.frames = Frames::joined(data.tree.frames, frame_base_, frames_.view());
  if (data.tree.hidden == store::kEmptyStack) data.tree.hidden = StackId{hidden_};
  data.threads = store::ThreadTable::Records::View::joined(data.threads, thread_base_, threads);
  data.processes = store::ProcessTable::Records::View::joined(data.processes, process_base_, processes);
  if (gaps_.empty()) return;
  auto gaps = std::make_shared<std::vector<store::Gap>>(*data.gaps);
  for (const store::Gap& gap : gaps_) {
    const auto is_same = [&](const store::Gap& other) {
      return other.from == gap.from && other.reason == gap.reason && other.cpu == gap.cpu;
    };
    const auto known = std::find_if(gaps->begin(), gaps->end(), is_same);
    if (known == gaps->end()) {
      gaps->push_back(gap);
    } else if (known->to < gap.to) {
      *known = gap;
    }
  }
  data.gaps = std::move(gaps);
}

}  // namespace flamed::archive
