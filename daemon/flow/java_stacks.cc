// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/java_stacks.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <span>
#include <unordered_set>

namespace flamed::daemon {
namespace {

using symbolizer::RuntimeFunctions;

/// Of all processes; then all are read again. With its frames one takes some 150 bytes.
constexpr std::size_t kMostPlaces = 262'144;
constexpr std::size_t kMostWaiting = 16'384;
/// A process that can't be read so often in a row is not asked for more.
constexpr unsigned kHopeless = 8;
constexpr std::int64_t kTidyNs = 10 * kNsPerSecond;

constexpr const char* kNotReadInTime =
    "its method was not read in time: the program had ended, or there was no CPU time";
constexpr const char* kUnreadable = "its method could not be read";
constexpr const char* kReplaced = "another method had its place shortly before or after";
constexpr const char* kInterpreted = "a method that is not compiled: its frame did not say which one";

}  // namespace

JavaStacks::Known* JavaStacks::known_of(const symbolizer::Process& process, MonotonicTime time) {
  CodePlacePtr heap = parts_.heaps.find(process.id);
  const auto found = known_.find(process.id);
  if (found != known_.end() && found->second.exec_id == process.exec_id) {
    found->second.used_at = std::max(found->second.used_at, time);
    // That of a process that has just ended is not told any more.
    if (heap != nullptr) found->second.heap = std::move(heap);
    return &found->second;
  }
  const symbolizer::Mapping* const library = parts_.heaps.library_of(process);
  if (heap == nullptr || library == nullptr || process.anonymous == kNoModule) return nullptr;
  Known known;
  known.exec_id = process.exec_id;
  known.user = process.user;
  known.memory = process.anonymous;
  known.library = library->module;
  known.mapping = {library->start, library->file_offset};
  known.heap = std::move(heap);
  known.used_at = time;
  return &known_.insert_or_assign(process.id, std::move(known)).first->second;
}

bool JavaStacks::is_running(const ProcessId& process) const {
  const symbolizer::Process* const running = parts_.processes.known().find_running(process.pid);
  return running != nullptr && running->id == process;
}

bool JavaStacks::is_code(const Known& known, const Frame& frame) {
  if (frame.module != known.memory) return false;
  const std::vector<CodePlace::Area>& areas = known.heap->areas;
  return areas.empty() || std::any_of(areas.begin(), areas.end(), [&](const CodePlace::Area& area) {
           return frame.offset >= area.start && frame.offset < area.end;
         });
}

bool JavaStacks::take(const symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
                      const LinkedStack& linked) {
  constexpr std::uint64_t kCheckMask = (std::uint64_t{1} << FLAMED_CHECK_BITS) - 1;
  interpreted_.clear();
  if ((linked.layout & FLAMED_INTERPRETED) != 0) {
    for (const flamed_linked_frame& frame : linked.frames) {
      interpreted_.push_back({frame.check >> FLAMED_CHECK_BITS,
                              {frame.code >> FLAMED_INSTRUCTION_BITS << 3, frame.check & kCheckMask,
                               frame.code & FLAMED_MOST_INSTRUCTION}});
    }
  }
  return take(process, sample, native, interpreted_);
}

bool JavaStacks::take(const symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
                      std::span<const InterpretedFrame> interpreted) {
  // Nearly all processes are none.
  const std::span<const Frame> user = sample.frames.first(native);
  const auto is_anonymous = [&](const Frame& frame) { return frame.module == process.anonymous; };
  if (process.anonymous == kNoModule || std::none_of(user.begin(), user.end(), is_anonymous)) return false;
  Known* const known = known_of(process, sample.time);
  if (known == nullptr || known->failures >= kHopeless) return false;
  if (std::none_of(user.begin(), user.end(), [&](const Frame& frame) { return is_code(*known, frame); })) return false;
  Waiting waiting{sample,
                  std::string(sample.comm),
                  {sample.frames.begin(), sample.frames.end()},
                  native,
                  {interpreted.begin(), interpreted.end()}};
  if (waiting_.size() >= kMostWaiting) {
    store_named(*known, waiting, true);
    return true;
  }
  waiting_.push_back(std::move(waiting));
  has_changed_ = true;
  return true;
}

bool JavaStacks::may_run(const Known& known, const Waiting& sample, const InterpretedFrame& each) {
  if (each.number >= sample.native) return false;
  const Frame& runner = sample.frames[sample.native - 1 - each.number];
  if (!is_code(known, runner)) return false;
  return known.code.knowledge_of(runner.offset, sample.value.time) != JavaCode::Knowledge::kKnown ||
         known.code.at(runner.offset).kind == JavaCode::Kind::kInterpreter;
}

bool JavaStacks::are_known(const Known& known, const Waiting& sample) {
  const MonotonicTime time = sample.value.time;
  const auto is_named = [&](const Frame& frame) {
    return !is_code(known, frame) || known.code.knowledge_of(frame.offset, time) != JavaCode::Knowledge::kNone;
  };
  const auto is_known = [&](const InterpretedFrame& each) {
    return !may_run(known, sample, each) || known.code.knowledge_of(each.method, time) != JavaCode::Knowledge::kNone;
  };
  return std::all_of(sample.frames.begin(), sample.frames.begin() + static_cast<std::ptrdiff_t>(sample.native),
                     is_named) &&
         std::all_of(sample.interpreted.begin(), sample.interpreted.end(), is_known);
}

/// For all samples of the process that wait.
void JavaStacks::ask(const ProcessId& process, Known& known, MonotonicTime now) {
  JavaCode::Question question(known.code);
  for (const Waiting& waiting : waiting_) {
    if (waiting.value.process != process) continue;
    for (const Frame& frame : std::span(waiting.frames).first(waiting.native)) {
      if (is_code(known, frame)) question.add(frame.offset, waiting.value.time);
    }
    for (const InterpretedFrame& each : waiting.interpreted) {
      if (may_run(known, waiting, each)) question.add(each.method, waiting.value.time);
    }
  }
  HotSpotNamer::Request request{{{process, known.exec_id, known.user}, known.library, known.mapping}, question.take()};
  if (request.question.places.empty() && request.question.known.empty() && request.question.interpreted.empty()) return;
  known.asked_at = now;
  known.is_asked = parts_.namer.ask(std::move(request));
}

void JavaStacks::learn(const HotSpotNamer::Answer& answer) {
  const ProcessMemories::Owner& asked = answer.request.jvm.owner;
  const auto found = known_.find(asked.process);
  if (found == known_.end() || found->second.exec_id != asked.exec_id) return;
  Known& known = found->second;
  known.is_asked = false;
  if (!answer.names) {
    known.why_not = answer.names.error().message();
    if (answer.names.error().code() != EAGAIN) ++known.failures;
    return;
  }
  known.failures = 0;
  places_ -= known.code.places();
  known.code.learn(answer.request.question, *answer.names, answer.began,
                   [&](const symbolizer::HotSpotFunction& function, std::uint32_t line) {
                     const std::optional<std::uint32_t> number = parts_.functions.enter(
                         symbolizer::SymbolKind::kJava, function.name, function.file, known.user);
                     return RuntimeFunctions::frame_of(number.value_or(RuntimeFunctions::kNoRoom), line);
                   });
  places_ += known.code.places();
}

void JavaStacks::look_again(MonotonicTime now) {
  for (const HotSpotNamer::Answer& answer : parts_.namer.take_answers()) learn(answer);
  const auto is_done = [&](Waiting& waiting) {
    if (waiting.since.ns == 0) waiting.since = now;
    const auto found = known_.find(waiting.value.process);
    if (found == known_.end()) {
      store_unnamed(waiting);
      return true;
    }
    const Known& known = found->second;
    const bool is_over = now.ns - waiting.since.ns >= kLongestWaitNs || known.failures >= kHopeless ||
                         (!known.is_asked && !is_running(found->first));
    if (!is_over && !are_known(known, waiting)) return false;
    store_named(known, waiting, false);
    return true;
  };
  if (std::erase_if(waiting_, is_done) != 0) has_changed_ = true;
  std::unordered_set<ProcessId> processes;
  for (const Waiting& waiting : waiting_) {
    if (!processes.insert(waiting.value.process).second) continue;
    Known& known = known_.at(waiting.value.process);
    if (!known.is_asked && now.ns - known.asked_at.ns >= kBetweenReadingsNs) ask(waiting.value.process, known, now);
  }
}

void JavaStacks::finish() {
  for (const Waiting& waiting : waiting_) {
    if (const auto found = known_.find(waiting.value.process); found != known_.end())
      store_named(found->second, waiting, true);
    else
      store_unnamed(waiting);
  }
  waiting_.clear();
  has_changed_ = true;
}

void JavaStacks::append_pending(std::vector<store::PendingSample>& pending) const {
  for (const Waiting& waiting : waiting_) {
    pending.push_back({waiting.value.time, waiting.value.process, waiting.value.tid});
  }
}

Frame JavaStacks::unnamed(const char* name, const std::string& reason, std::uint32_t user) {
  const std::optional<std::uint32_t> number = parts_.functions.enter_unnamed(name, reason, user);
  return RuntimeFunctions::frame_of(number.value_or(RuntimeFunctions::kNoRoom), 0);
}

/// `method`: null if the frame did not say which one it is.
Frame JavaStacks::interpreted_frame(const Known& known, const runtimes::HotSpotInterpreted* method, MonotonicTime time,
                                    bool by_last_reading) {
  constexpr const char* kName = "interpreted";
  const bool is_known =
      method != nullptr && known.code.knowledge_of(*method, time, by_last_reading) != JavaCode::Knowledge::kNone;
  if (is_known && known.code.at(*method)) {
    ++named_frames_;
    return *known.code.at(*method);
  }
  ++interpreted_frames_;
  if (method == nullptr) return unnamed(kName, kInterpreted, known.user);
  if (is_known) return unnamed(kName, kUnreadable, known.user);
  return unnamed(kName, known.why_not.empty() ? kNotReadInTime : known.why_not, known.user);
}

void JavaStacks::store_unnamed(const Waiting& sample) {
  store::StackSample stored = sample.value;
  stored.comm = sample.comm;
  stored.frames = sample.frames;
  parts_.store.add(stored);
}

/// `by_last_reading`: code counts that was there at the last reading, even if the sample is younger.
void JavaStacks::store_named(const Known& known, const Waiting& sample, bool by_last_reading) {
  frames_.clear();
  ++samples_;
  std::size_t left = sample.interpreted.size();
  for (std::size_t i = 0; i < sample.native; ++i) {
    const Frame& frame = sample.frames[i];
    const std::uint64_t number = sample.native - 1 - i;
    while (left > 0 && sample.interpreted[left - 1].number > number) --left;  // of frames that are not known
    const bool has_method = left > 0 && sample.interpreted[left - 1].number == number;
    if (!is_code(known, frame)) {
      frames_.push_back(frame);
      continue;
    }
    switch (known.code.knowledge_of(frame.offset, sample.value.time, by_last_reading)) {
      case JavaCode::Knowledge::kNone:
        ++unnamed_frames_;
        frames_.push_back(unnamed("java", known.why_not.empty() ? kNotReadInTime : known.why_not, known.user));
        continue;
      case JavaCode::Knowledge::kReplaced:
        ++unnamed_frames_;
        ++replaced_frames_;
        frames_.push_back(unnamed("java", kReplaced, known.user));
        continue;
      case JavaCode::Knowledge::kKnown:
        break;
    }
    const JavaCode::Place& place = known.code.at(frame.offset);
    switch (place.kind) {
      case JavaCode::Kind::kOther:
        frames_.push_back(frame);
        break;
      case JavaCode::Kind::kUnreadable:
        ++unnamed_frames_;
        frames_.push_back(unnamed("java", kUnreadable, known.user));
        break;
      case JavaCode::Kind::kInterpreter:
        frames_.push_back(interpreted_frame(known, has_method ? &sample.interpreted[left - 1].method : nullptr,
                                            sample.value.time, by_last_reading));
        break;
      case JavaCode::Kind::kMethod:
      case JavaCode::Kind::kRuntime:
        named_frames_ += place.frames.size();
        frames_.insert(frames_.end(), place.frames.rbegin(), place.frames.rend());
        break;
    }
  }
  const std::span<const Frame> kernel = std::span(sample.frames).subspan(sample.native);
  frames_.insert(frames_.end(), kernel.begin(), kernel.end());
  store::StackSample stored = sample.value;
  stored.comm = sample.comm;
  stored.frames = frames_;
  parts_.store.add(stored);
}

void JavaStacks::tidy(MonotonicTime now) {
  if (now.ns - tidied_at_.ns < kTidyNs) return;
  tidied_at_ = now;
  const auto is_gone = [&](const auto& each) {
    return !is_running(each.first) && now.ns - each.second.used_at.ns >= kTidyNs;
  };
  std::erase_if(known_, is_gone);
  std::size_t places = 0;
  for (const auto& [process, known] : known_) places += known.code.places();
  if (places > kMostPlaces) {
    for (auto& [process, known] : known_) known.code.clear();
    places = 0;
  }
  places_ = places;
}

void JavaStacks::append_used(std::vector<Frame>& used) const {
  for (const auto& [process, known] : known_) known.code.append_frames(used);
}

}  // namespace flamed::daemon
