// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/runtime_stacks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

namespace flamed::daemon {
namespace {

using runtimes::LinkedFrames;
using runtimes::RuntimeKind;
using symbolizer::RuntimeCode;
using symbolizer::RuntimeFunctions;

/// Of all processes; then all are read again.
constexpr std::size_t kMostCodes = 262'144;
/// A process of which so many code objects can't be read, and none can, is not asked for more.
constexpr std::size_t kHopeless = 16;
constexpr std::size_t kMostWaiting = 4096;
/// How often, and how long after, an object is read again that could not be read.
constexpr std::uint8_t kMostFailures = 8;
constexpr std::int64_t kAskAgainNs = kNsPerSecond;
/// The collector may have moved code by then, and other code may be in its place.
constexpr std::int64_t kCompiledNs = 5 * kNsPerSecond;
constexpr std::size_t kMostCompiled = 16'384;
/// Of all processes: 4.5 MiB.
constexpr std::size_t kMostCopies = 4096;
constexpr std::int64_t kTidyNs = 10 * kNsPerSecond;

constexpr std::uint64_t kCheckMask = (std::uint64_t{1} << FLAMED_CHECK_BITS) - 1;

constexpr const char* kNotReadInTime = "its name was not read in time: the program had ended, or there was no CPU time";
constexpr const char* kUnreadable = "its code object could not be read";

symbolizer::SymbolKind frame_kind_of(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kPython:
      return symbolizer::SymbolKind::kPython;
    case RuntimeKind::kV8:
      return symbolizer::SymbolKind::kJavaScript;
    case RuntimeKind::kJava:
      break;
  }
  return symbolizer::SymbolKind::kJava;
}

/// What the worker has to know of the process.
symbolizer::RuntimeProcess process_of(const RuntimeModules::Loaded& loaded) {
  symbolizer::RuntimeProcess process;
  process.kind = loaded.runtime->kind();
  process.base = loaded.base;
  switch (process.kind) {
    case RuntimeKind::kPython: {
      const auto& layout = std::get<runtimes::PythonLayout>(loaded.runtime->layout);
      process.check = layout.frames.check;
      process.python = layout.objects;
      break;
    }
    case RuntimeKind::kV8: {
      const auto& layout = std::get<runtimes::V8Layout>(loaded.runtime->layout);
      process.check = layout.frames.check;
      process.v8 = layout.objects;
      break;
    }
    case RuntimeKind::kJava:
      break;  // see JavaStacks
  }
  return process;
}

}  // namespace

RuntimePlace RuntimeStacks::place_of(const symbolizer::Process& process) const {
  if (process.maps == nullptr) return {};
  const std::optional<RuntimeModules::Loaded> loaded = parts_.modules.find(*process.maps);
  return loaded ? RuntimePlace{loaded->layout, loaded->base} : RuntimePlace{};
}

RuntimeCode RuntimeStacks::code_of(const flamed_linked_frame& frame) {
  return {frame.code >> FLAMED_INSTRUCTION_BITS << 3, frame.check & kCheckMask, 0};
}

RuntimeStacks::Known* RuntimeStacks::known_of(symbolizer::Process& process, MonotonicTime time) {
  auto found = known_.find(process.id);
  if (found == known_.end() || found->second.exec_id != process.exec_id) {
    if (process.maps == nullptr) return nullptr;
    std::optional<RuntimeModules::Loaded> loaded = parts_.modules.find(*process.maps);
    if (!loaded) return nullptr;
    found =
        known_.insert_or_assign(process.id, Known{process.exec_id, *std::move(loaded), {}, {}, {}, 0, 0, time}).first;
  }
  found->second.anonymous = process.anonymous;
  found->second.used_at = std::max(found->second.used_at, time);
  return &found->second;
}

void RuntimeStacks::keep(std::span<const flamed_code_copy> copies, MonotonicTime now) {
  for (const flamed_code_copy& copy : copies) {
    if (copy_count_ >= kMostCopies) return;
    symbolizer::CopiedCode code{{copy.code, copy.check, 0}};
    for (std::size_t i = 0; i < code.places.size(); ++i) {
      code.places[i] = {copy.places[i].address, std::min<std::uint64_t>(copy.places[i].bytes, code.kPartBytes)};
      std::memcpy(code.parts[i].data(), copy.parts[i], code.places[i].bytes);
    }
    const ProcessId process{static_cast<std::int32_t>(copy.tgid), copy.start_boottime_ns / ProcessId::kNsPerTick};
    Copies& of_process = copies_[process];
    of_process.kept_at = now;
    of_process.codes.push_back(code);
    ++copy_count_;
  }
}

void RuntimeStacks::take_copy(ProcessId process, const RuntimeCode& code, std::vector<symbolizer::CopiedCode>& to) {
  const auto copies = copies_.find(process);
  if (copies == copies_.end()) return;
  std::vector<symbolizer::CopiedCode>& codes = copies->second.codes;
  const auto copy = std::find_if(codes.begin(), codes.end(), [&](const auto& each) { return each.code == code; });
  if (copy == codes.end()) return;
  to.push_back(*copy);
  codes.erase(copy);
  --copy_count_;
}

bool RuntimeStacks::take(symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
                         const LinkedStack& linked) {
  if ((linked.layout & FLAMED_INTERPRETED) != 0) return false;
  if (linked.frames.empty() && (linked.layout & FLAMED_SLOTS) == 0) return false;
  Known* const known = known_of(process, sample.time);
  if (known == nullptr || known->loaded.layout != linked.layout) return false;
  if (known->named == 0 && known->unnamed >= kHopeless) return false;
  const std::span<const Frame> user = sample.frames.first(native);
  if (linked.frames.empty() && !innermost_code(*known, user, linked)) return false;
  if (are_known(*known, user, linked, sample.time)) {
    store_joined(*known, sample, native, linked);
    return true;
  }
  want(*known, process, user, linked, sample.time);
  if (waiting_.size() >= kMostWaiting) {
    store_joined(*known, sample, native, linked);
    return true;
  }
  waiting_.push_back({sample,
                      std::string(sample.comm),
                      {sample.frames.begin(), sample.frames.end()},
                      native,
                      KeptLinkedStack(linked)});
  has_changed_ = true;
  return true;
}

/// In code that was compiled at run time: of which function is the innermost instruction? Its frame may not stand yet,
/// or not any more, and then the frame pointer is the caller's, which need not be a frame of a function.
std::optional<RuntimeCode> RuntimeStacks::innermost_code(const Known& known, std::span<const Frame> native,
                                                         const LinkedStack& linked) {
  if ((linked.layout & FLAMED_SLOTS) == 0 || native.empty()) return std::nullopt;
  if (native.back().module != known.anonymous) return std::nullopt;
  RuntimeCode code;
  if (!linked.frames.empty() && linked.frames.front().check >> FLAMED_CHECK_BITS == 0)
    code = code_of(linked.frames.front());
  code.pc = native.back().offset;
  return code;
}

const RuntimeStacks::Compiled* RuntimeStacks::find_compiled(const Known& known, std::uint64_t pc, MonotonicTime time) {
  const auto after = known.compiled.upper_bound(pc);
  if (after == known.compiled.begin()) return nullptr;
  const Compiled& compiled = std::prev(after)->second;
  const bool is_new = time.ns - compiled.learned_at.ns < kCompiledNs;
  return pc < compiled.end && is_new ? &compiled : nullptr;
}

bool RuntimeStacks::are_known(const Known& known, std::span<const Frame> native, const LinkedStack& linked,
                              MonotonicTime time) const {
  const auto is_known = [&](const RuntimeCode& code) {
    const auto found = known.codes.find(code);
    return found != known.codes.end() && found->second.state != Code::State::kAsked &&
           !found->second.may_be_asked_again(time);
  };
  const std::optional<RuntimeCode> innermost = innermost_code(known, native, linked);
  if (innermost && find_compiled(known, innermost->pc, time) == nullptr && !is_known(*innermost)) return false;
  return std::all_of(linked.frames.begin(), linked.frames.end(),
                     [&](const flamed_linked_frame& frame) { return is_known(code_of(frame)); });
}

bool RuntimeStacks::Code::may_be_asked_again(MonotonicTime time) const {
  return state == State::kUnnamed && failures < kMostFailures && time.ns - failed_at.ns >= kAskAgainNs;
}

void RuntimeStacks::want(Known& known, const symbolizer::Process& process, std::span<const Frame> native,
                         const LinkedStack& linked, MonotonicTime time) {
  static_assert(FLAMED_MAX_LINKED_FRAMES < symbolizer::kMostRuntimeCodes);
  if (wanted_[process.id].codes.size() + linked.frames.size() >= symbolizer::kMostRuntimeCodes) ask();
  RuntimeNamer::Request& request = wanted_[process.id];
  // Another program has replaced the one that was to be asked.
  if (request.codes.empty() || request.owner.exec_id != known.exec_id) {
    request = {{process.id, known.exec_id, process.user}, process_of(known.loaded), {}};
  }
  const auto is_to_be_asked = [&](const RuntimeCode& code) {
    const auto [at, is_new] = known.codes.try_emplace(code);
    if (is_new) ++codes_;
    if (is_new || !at->second.may_be_asked_again(time)) return is_new;
    at->second.state = Code::State::kAsked;
    return true;
  };
  for (const flamed_linked_frame& frame : linked.frames) {
    const RuntimeCode code = code_of(frame);
    if (!is_to_be_asked(code)) continue;
    request.codes.push_back(code);
    take_copy(process.id, code, request.copies);
  }
  const std::optional<RuntimeCode> innermost = innermost_code(known, native, linked);
  if (innermost && find_compiled(known, innermost->pc, time) == nullptr && is_to_be_asked(*innermost)) {
    request.codes.push_back(*innermost);
  }
}

void RuntimeStacks::ask() {
  for (auto& [process, request] : wanted_) {
    if (request.codes.empty()) continue;
    const std::vector<RuntimeCode> codes = request.codes;
    if (parts_.namer.ask(std::move(request))) continue;
    const auto known = known_.find(process);
    if (known == known_.end()) continue;
    for (const RuntimeCode& code : codes) codes_ -= known->second.codes.erase(code);
  }
  wanted_.clear();
}

std::uint32_t RuntimeStacks::unnamed(RuntimeKind kind, const std::string& reason, std::uint32_t user) {
  return parts_.functions.enter_unnamed(frame_kind_of(kind), reason, user).value_or(RuntimeFunctions::kNoRoom);
}

void RuntimeStacks::learn(RuntimeNamer::Answer& answer, MonotonicTime now) {
  const auto found = known_.find(answer.request.owner.process);
  if (found == known_.end()) return;
  Known& known = found->second;
  const std::uint32_t user = answer.request.owner.user;
  const RuntimeKind kind = known.loaded.runtime->kind();
  for (std::size_t i = 0; i < answer.request.codes.size(); ++i) {
    const auto code = known.codes.find(answer.request.codes[i]);
    if (code == known.codes.end()) continue;
    const bool is_named = answer.names && !(*answer.names)[i].function.name.empty();
    const bool is_native = answer.names && !is_named && (*answer.names)[i].why_not.empty();
    Code& to = code->second;
    std::uint32_t number = RuntimeFunctions::kNoRoom;
    if (is_named) {
      const runtimes::RuntimeFunction& function = (*answer.names)[i].function;
      number = parts_.functions.enter(frame_kind_of(kind), function.name, function.file, user)
                   .value_or(RuntimeFunctions::kNoRoom);
    }
    if (code->first.pc != 0 && (is_named || is_native)) {
      const symbolizer::RuntimeAnswer& compiled = (*answer.names)[i];
      std::optional<Frame> frame;
      if (is_named) frame = RuntimeFunctions::frame_of(number, compiled.function.first_line);
      if (known.compiled.size() >= kMostCompiled) known.compiled.clear();
      known.compiled.insert_or_assign(compiled.code_start, Compiled{compiled.code_end, compiled.owner, frame, now});
      codes_ -= known.codes.erase(code->first);
      continue;
    }
    if (is_named) {
      runtimes::RuntimeFunction& function = (*answer.names)[i].function;
      to.state = Code::State::kNamed;
      to.function = number;
      to.first_line = function.first_line;
      to.lines = std::move(function.lines);
      ++known.named;
      continue;
    }
    if (is_native) {
      to.state = Code::State::kNative;
      continue;
    }
    const std::string why = answer.names ? (*answer.names)[i].why_not : answer.names.error().message();
    to.state = Code::State::kUnnamed;
    to.function = unnamed(kind, std::string(kUnreadable) + ": " + why, user);
    to.failed_at = now;
    if (++to.failures > 1 || code->first.pc != 0) continue;
    ++known.unnamed;
    if (known.named == 0 && known.unnamed == kHopeless) {
      parts_.modules.note_failure(known.loaded.module, std::string(runtimes::name_of(kind)) + " functions of process " +
                                                           std::to_string(answer.request.owner.process.pid) +
                                                           " can't be read: " + why);
    }
  }
  if (known.named != 0) parts_.modules.note_success(known.loaded.module);
}

void RuntimeStacks::look_again(MonotonicTime now) {
  ask();
  std::vector<RuntimeNamer::Answer> answers = parts_.namer.take_answers();
  for (RuntimeNamer::Answer& answer : answers) learn(answer, now);
  const auto is_done = [&](const Waiting& waiting) {
    const auto found = known_.find(waiting.value.process);
    const bool is_over = now.ns - waiting.value.time.ns >= kLongestWaitNs;
    store::StackSample sample = waiting.value;
    sample.comm = waiting.comm;
    sample.frames = waiting.frames;
    if (found == known_.end() || found->second.loaded.layout != waiting.linked.layout) {
      parts_.store.add(sample);
      return true;
    }
    const LinkedStack linked = waiting.linked.view();
    if (!is_over && !are_known(found->second, sample.frames.first(waiting.native), linked, sample.time)) return false;
    store_joined(found->second, sample, waiting.native, linked);
    return true;
  };
  if (std::erase_if(waiting_, is_done) != 0) has_changed_ = true;
}

void RuntimeStacks::finish() { look_again({std::numeric_limits<std::int64_t>::max()}); }

void RuntimeStacks::append_pending(std::vector<store::PendingSample>& pending) const {
  for (const Waiting& waiting : waiting_) {
    pending.push_back({waiting.value.time, waiting.value.process, waiting.value.tid});
  }
}

Frame RuntimeStacks::frame_of(const Known& known, const flamed_linked_frame& frame, bool is_compiled) {
  const auto code = known.codes.find(code_of(frame));
  if (code == known.codes.end() || code->second.state == Code::State::kAsked) {
    ++counts_of(known).unnamed_frames;
    return RuntimeFunctions::frame_of(unnamed(known.loaded.runtime->kind(), kNotReadInTime, 0), 0);
  }
  const bool is_named = code->second.state == Code::State::kNamed;
  ++(is_named ? counts_of(known).named_frames : counts_of(known).unnamed_frames);
  if (is_compiled) return RuntimeFunctions::frame_of(code->second.function, code->second.first_line);
  const std::uint64_t after = frame.code & FLAMED_MOST_INSTRUCTION;
  const std::uint32_t line = after == FLAMED_MOST_INSTRUCTION
                                 ? 0
                                 : runtimes::line_at(code->second.lines, static_cast<std::int64_t>(after) - 1);
  return RuntimeFunctions::frame_of(code->second.function, line);
}

/// Appends the user stack to frames_.
void RuntimeStacks::join_linked_frames(const Known& known, const store::StackSample& sample, std::size_t native,
                                       const LinkedStack& linked) {
  runtime_frames_.clear();
  for (const flamed_linked_frame& frame : linked.frames) runtime_frames_.push_back(frame_of(known, frame));
  const RuntimeModules::Loaded& loaded = known.loaded;
  const auto& layout = std::get<runtimes::PythonLayout>(loaded.runtime->layout);
  PythonRunner runner{loaded.module};
  if (layout.frames.boundary_kind == LinkedFrames::Boundary::kEachFrame) {
    runner.function = layout.interpreter - loaded.runtime->code_bias;
    runner.function_bytes = layout.interpreter_bytes;
  }
  join_python(runner, sample.frames.first(native), !sample.truncation, linked, runtime_frames_, frames_);
}

/// Likewise.
void RuntimeStacks::join_frame_slots(const Known& known, const store::StackSample& sample, std::size_t native,
                                     const LinkedStack& linked) {
  const std::span<const Frame> user = sample.frames.first(native);
  const ModuleId module = known.loaded.module;
  if (const std::optional<RuntimeCode> innermost = innermost_code(known, user, linked)) {
    const Compiled* const compiled = find_compiled(known, innermost->pc, sample.time);
    if (compiled != nullptr) {
      if (compiled->frame && compiled->owner != innermost->address) {
        ++counts_of(known).named_frames;
        run_frames_.push_back({0, *compiled->frame});
      }
    } else if (innermost->address != 0) {  // otherwise it may be no code of the runtime: its native frame stays
      const auto failed = known.codes.find(*innermost);
      ++counts_of(known).unnamed_frames;
      const bool is_answered = failed != known.codes.end() && failed->second.state == Code::State::kUnnamed;
      const RuntimeKind kind = known.loaded.runtime->kind();
      run_frames_.push_back(
          {0, RuntimeFunctions::frame_of(is_answered ? failed->second.function : unnamed(kind, kNotReadInTime, 0), 0)});
    }
  }
  for (const flamed_linked_frame& frame : linked.frames) {
    const std::uint64_t number = frame.check >> FLAMED_CHECK_BITS;
    const auto code = known.codes.find(code_of(frame));
    const bool is_native = code != known.codes.end() && code->second.state == Code::State::kNative;
    if (is_native || number >= native) continue;
    const bool is_compiled = user[native - 1 - number].module != module;
    run_frames_.push_back({number, frame_of(known, frame, is_compiled)});
  }
  join_slots(module, user, run_frames_, frames_);
}

void RuntimeStacks::store_joined(const Known& known, const store::StackSample& sample, std::size_t native,
                                 const LinkedStack& linked) {
  frames_.clear();
  run_frames_.clear();
  if ((linked.layout & FLAMED_SLOTS) != 0)
    join_frame_slots(known, sample, native, linked);
  else
    join_linked_frames(known, sample, native, linked);
  const std::span<const Frame> kernel = sample.frames.subspan(native);
  frames_.insert(frames_.end(), kernel.begin(), kernel.end());
  if (!linked.frames.empty() || !run_frames_.empty()) ++counts_of(known).samples;

  store::StackSample joined = sample;
  joined.frames = frames_;
  if (linked.is_cut) {
    ++counts_of(known).cut;
    const bool is_deep = linked.frames.size() >= FLAMED_MAX_LINKED_FRAMES;
    if (!joined.truncation) {
      joined.truncation = is_deep ? store::Truncation::kDepthLimit : store::Truncation::kUnreadableStack;
    }
  }
  parts_.store.add(joined);
}

void RuntimeStacks::tidy(MonotonicTime now) {
  if (now.ns - tidied_at_.ns < kTidyNs) return;
  tidied_at_ = now;
  const auto is_gone = [&](const auto& each) {
    const symbolizer::Process* const running = parts_.processes.known().find_running(each.first.pid);
    return (running == nullptr || running->id != each.first) && now.ns - each.second.used_at.ns >= kTidyNs;
  };
  std::erase_if(known_, is_gone);
  std::erase_if(copies_, [&](const auto& each) {
    if (now.ns - each.second.kept_at.ns < kTidyNs) return false;
    copy_count_ -= each.second.codes.size();
    return true;
  });
  std::size_t codes = 0;
  for (const auto& [process, known] : known_) codes += known.codes.size();
  if (codes > kMostCodes) {
    known_.clear();
    codes = 0;
  }
  codes_ = codes;
}

void RuntimeStacks::append_used(std::vector<Frame>& used) const {
  for (const auto& [process, known] : known_) {
    for (const auto& [address, code] : known.codes) used.push_back(RuntimeFunctions::frame_of(code.function, 0));
    for (const auto& [start, compiled] : known.compiled) {
      if (compiled.frame) used.push_back(*compiled.frame);
    }
  }
}

}  // namespace flamed::daemon
