// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/java_stacks.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <span>

namespace flamed::daemon {
namespace {

using symbolizer::RuntimeFunctions;

/// Of all processes; then all are read again. With its frames one takes some 150 bytes.
constexpr std::size_t kMostPlaces = 262'144;
constexpr std::size_t kMostWaiting = 16'384;
/// A process that can't be read so often in a row is not asked for more.
constexpr unsigned kHopeless = 8;
/// No code has this number of compilation.
constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kTidyNs = 10 * kNsPerSecond;

constexpr const char* kNotReadInTime =
    "its method was not read in time: the program had ended, or there was no CPU time";
constexpr const char* kUnreadable = "its method could not be read";
constexpr const char* kReplaced = "another method had its place shortly before or after";
constexpr const char* kInterpreted = "a method that is not compiled: which one is not recorded";

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
  known.code = process.anonymous;
  known.library = library->module;
  known.mapping = {library->start, library->file_offset};
  known.heap = std::move(heap);
  known.used_at = time;
  return &known_.insert_or_assign(process.id, std::move(known)).first->second;
}

bool JavaStacks::is_code(const Known& known, const Frame& frame) {
  if (frame.module != known.code) return false;
  const std::vector<CodePlace::Area>& areas = known.heap->areas;
  return areas.empty() || std::any_of(areas.begin(), areas.end(), [&](const CodePlace::Area& area) {
           return frame.offset >= area.start && frame.offset < area.end;
         });
}

bool JavaStacks::take(const symbolizer::Process& process, const store::StackSample& sample, std::size_t native) {
  // Nearly all processes are none.
  const std::span<const Frame> user = sample.frames.first(native);
  const auto is_anonymous = [&](const Frame& frame) { return frame.module == process.anonymous; };
  if (process.anonymous == kNoModule || std::none_of(user.begin(), user.end(), is_anonymous)) return false;
  Known* const known = known_of(process, sample.time);
  if (known == nullptr || known->failures >= kHopeless) return false;
  if (std::none_of(user.begin(), user.end(), [&](const Frame& frame) { return is_code(*known, frame); })) return false;
  Waiting waiting{sample, std::string(sample.comm), {sample.frames.begin(), sample.frames.end()}, native};
  if (waiting_.size() >= kMostWaiting) {
    store_named(*known, waiting, true);
    return true;
  }
  waiting_.push_back(std::move(waiting));
  has_changed_ = true;
  return true;
}

JavaStacks::Knowledge JavaStacks::knowledge_of(const Known& known, std::uint64_t address, MonotonicTime time,
                                               bool by_last_reading) {
  const auto place = known.places.find(address);
  if (place == known.places.end()) return Knowledge::kNone;
  if (place->second.code == 0) return Knowledge::kName;
  const auto code = known.codes.find(place->second.code);
  if (code == known.codes.end() || code->second.compile_id != place->second.compile_id) return Knowledge::kNone;
  if (time < code->second.since) return Knowledge::kReplaced;
  return by_last_reading || time <= code->second.seen_at ? Knowledge::kName : Knowledge::kNone;
}

bool JavaStacks::are_known(const Known& known, const Waiting& sample) const {
  return std::all_of(sample.frames.begin(), sample.frames.begin() + static_cast<std::ptrdiff_t>(sample.native),
                     [&](const Frame& frame) {
                       return !is_code(known, frame) ||
                              knowledge_of(known, frame.offset, sample.value.time) != Knowledge::kNone;
                     });
}

/// For all samples of the process that wait.
void JavaStacks::ask(const ProcessId& process, Known& known, MonotonicTime now) {
  HotSpotNamer::Request request{process, known.exec_id, known.user, known.library, known.mapping};
  symbolizer::HotSpotQuestion& question = request.question;
  std::unordered_set<std::uint64_t> places;
  std::unordered_set<std::uint64_t> codes;
  for (const Waiting& waiting : waiting_) {
    if (waiting.value.process != process) continue;
    for (const Frame& frame : std::span(waiting.frames).first(waiting.native)) {
      if (!is_code(known, frame)) continue;
      if (knowledge_of(known, frame.offset, waiting.value.time) != Knowledge::kNone) continue;
      const auto place = known.places.find(frame.offset);
      const auto code = place == known.places.end() ? known.codes.end() : known.codes.find(place->second.code);
      if (code == known.codes.end()) {
        if (places.size() < symbolizer::kMostHotSpotPlaces && places.insert(frame.offset).second)
          question.places.push_back(frame.offset);
      } else if (codes.size() < symbolizer::kMostHotSpotChecks && codes.insert(code->first).second) {
        question.known.push_back({code->first, code->second.bytes, code->second.compile_id});
      }
    }
  }
  if (question.places.empty() && question.known.empty()) return;
  known.asked_at = now;
  known.is_asked = parts_.namer.ask(std::move(request));
}

void JavaStacks::learn(HotSpotNamer::Answer& answer) {
  const auto found = known_.find(answer.request.process);
  if (found == known_.end() || found->second.exec_id != answer.request.exec_id) return;
  Known& known = found->second;
  known.is_asked = false;
  if (!answer.names) {
    known.why_not = answer.names.error().message();
    if (answer.names.error().code() != EAGAIN) ++known.failures;
    return;
  }
  known.failures = 0;
  const symbolizer::HotSpotQuestion& question = answer.request.question;
  const symbolizer::HotSpotNames& names = *answer.names;
  // Since when new code is there is not known: perhaps since a moment before this reading.
  std::unordered_set<std::uint64_t> gone;
  for (std::size_t i = 0; i < question.known.size(); ++i) {
    const auto code = known.codes.find(question.known[i].address);
    if (code == known.codes.end() || code->second.compile_id != question.known[i].compile_id) continue;
    code->second.seen_at = answer.began;
    if (names.is_there[i] == 0) {
      code->second = {0, kGone, answer.began, answer.began};
      gone.insert(code->first);
    }
  }
  for (const symbolizer::HotSpotNamedPlace& named : names.places) {
    if (named.kind == Kind::kOther) continue;
    const auto [code, is_new] = known.codes.try_emplace(named.blob.address);
    Code& entered = code->second;
    if (!is_new && entered.compile_id != named.blob.compile_id) {
      entered.since = answer.began;
      gone.insert(code->first);
    }
    entered = {named.blob.bytes, named.blob.compile_id, answer.began, entered.since};
  }
  if (!gone.empty())
    places_ -= std::erase_if(known.places, [&](const auto& each) { return gone.count(each.second.code) != 0; });
  std::vector<std::optional<std::uint32_t>> numbers(names.functions.size());
  for (std::size_t i = 0; i < question.places.size(); ++i) {
    const symbolizer::HotSpotNamedPlace& named = names.places[i];
    Place place;
    place.kind = named.kind;
    if (named.kind != Kind::kOther) {
      place.code = named.blob.address;
      place.compile_id = named.blob.compile_id;
    }
    for (std::uint32_t k = 0; k < named.frame_count; ++k) {
      const symbolizer::HotSpotFrame& frame = names.frames[named.first_frame + k];
      std::optional<std::uint32_t>& number = numbers[frame.function];
      if (!number) {
        const symbolizer::HotSpotFunction& function = names.functions[frame.function];
        number = parts_.functions.enter(symbolizer::SymbolKind::kJava, function.name, function.file, known.user)
                     .value_or(RuntimeFunctions::kNoRoom);
      }
      place.frames.push_back(RuntimeFunctions::frame_of(*number, frame.line));
    }
    places_ += known.places.insert_or_assign(question.places[i], std::move(place)).second ? 1 : 0;
  }
}

void JavaStacks::look_again(MonotonicTime now) {
  std::vector<HotSpotNamer::Answer> answers = parts_.namer.take_answers();
  for (HotSpotNamer::Answer& answer : answers) learn(answer);
  const auto is_done = [&](Waiting& waiting) {
    if (waiting.since.ns == 0) waiting.since = now;
    const auto found = known_.find(waiting.value.process);
    if (found == known_.end()) {
      store_unnamed(waiting);
      return true;
    }
    const bool is_over = now.ns - waiting.since.ns >= kLongestWaitNs || found->second.failures >= kHopeless;
    if (!is_over && !are_known(found->second, waiting)) return false;
    store_named(found->second, waiting, false);
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
  for (const Frame& frame : std::span(sample.frames).first(sample.native)) {
    if (!is_code(known, frame)) {
      frames_.push_back(frame);
      continue;
    }
    switch (knowledge_of(known, frame.offset, sample.value.time, by_last_reading)) {
      case Knowledge::kNone:
        ++unnamed_frames_;
        frames_.push_back(unnamed("java", known.why_not.empty() ? kNotReadInTime : known.why_not, known.user));
        continue;
      case Knowledge::kReplaced:
        ++unnamed_frames_;
        ++replaced_frames_;
        frames_.push_back(unnamed("java", kReplaced, known.user));
        continue;
      case Knowledge::kName:
        break;
    }
    const Place& place = known.places.at(frame.offset);
    switch (place.kind) {
      case Kind::kOther:
        frames_.push_back(frame);
        break;
      case Kind::kUnreadable:
        ++unnamed_frames_;
        frames_.push_back(unnamed("java", kUnreadable, known.user));
        break;
      case Kind::kInterpreter:
        ++interpreted_frames_;
        frames_.push_back(unnamed("interpreted", kInterpreted, known.user));
        break;
      case Kind::kMethod:
      case Kind::kRuntime:
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
    const symbolizer::Process* const running = parts_.processes.known().find_running(each.first.pid);
    return (running == nullptr || running->id != each.first) && now.ns - each.second.used_at.ns >= kTidyNs;
  };
  std::erase_if(known_, is_gone);
  std::size_t places = 0;
  for (const auto& [process, known] : known_) places += known.places.size();
  if (places > kMostPlaces) {
    for (auto& [process, known] : known_) {
      known.places.clear();
      known.codes.clear();
    }
    places = 0;
  }
  places_ = places;
}

void JavaStacks::append_used(std::vector<Frame>& used) const {
  for (const auto& [process, known] : known_) {
    for (const auto& [address, place] : known.places) used.insert(used.end(), place.frames.begin(), place.frames.end());
  }
}

}  // namespace flamed::daemon
