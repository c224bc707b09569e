// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/runtime_modules.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/unwind/program_layout.h"

namespace flamed::daemon {
namespace {

using runtimes::RuntimeKind;

constexpr std::size_t kMost = 4096;

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string how_of(const runtimes::PythonLayout& layout) {
  using Kind = runtimes::ThreadStatePlace::Kind;
  const runtimes::LinkedFrames& frames = layout.frames;
  const Kind kind = frames.thread_states.front().kind;
  std::string how = kind == Kind::kGlobal        ? "the state of the thread that has the GIL"
                    : kind == Kind::kThreadBlock ? "a thread-local variable of the library"
                                                 : "a thread-local variable";
  if (frames.thread_states.size() > 1) how += ", else that of PyGILState";
  return how;
}

std::string how_of(const runtimes::V8Layout& /*layout*/) { return "the words below its frame pointers"; }

/// In the names of its files. Empty: it has none here. JVMs are met by CodeHeaps.
constexpr std::string_view file_name_of(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kPython:
      return "python";
    case RuntimeKind::kV8:
      return "node";
    case RuntimeKind::kJava:
      break;
  }
  return {};
}

/// Of samples that have frames of this kind.
constexpr std::uint32_t mark_of(RuntimeKind kind) { return kind == RuntimeKind::kV8 ? FLAMED_SLOTS : 0; }

}  // namespace

bool RuntimeModules::may_have_runtime(std::string_view path) const {
  const std::string_view name = name_of(path);
  return std::any_of(runtimes::kRuntimeKinds.begin(), runtimes::kRuntimeKinds.end(), [&](RuntimeKind kind) {
    const std::string_view part = file_name_of(kind);
    return !part.empty() && kinds_.has(kind) && name.find(part) != std::string_view::npos;
  });
}

bool RuntimeModules::is_known(ModuleId module) const {
  const std::lock_guard lock(mutex_);
  return known_.count(module) != 0;
}

/// Returns why it could not be entered into the kernel program.
template <typename Frames>
std::string RuntimeModules::enter(Known& known, const symbolizer::FileKey& file, const Frames& frames) {
  const auto layout = as_program_layout(frames);
  if (!layout) return "its frames have an unknown layout";
  if (layouts_ + 1 >= FLAMED_MAX_LINKED_LAYOUTS) return "there are too many different runtimes";
  if (const Status put = program_.put_layout(layouts_ + 1, *layout); !put) return put.error().message();
  known.layout = ++layouts_ | mark_of(known.runtime->kind());
  ++edition_;
  if (known.runtime->kind() == RuntimeKind::kPython)
    programs_.has_runtime(file, {known.layout, known.runtime->first_code});
  return {};
}

void RuntimeModules::add(ModuleId module, std::string path, const symbolizer::FileKey& file,
                         const Result<std::optional<symbolizer::RuntimeModule>>& found) {
  Known known{std::move(path), nullptr, 0, {}};
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) std::erase_if(known_, [](const auto& each) { return each.second.runtime == nullptr; });
  if (known_.size() >= kMost || known_.count(module) != 0) return;
  if (!found) {
    known.problem = found.error().message();
  } else if (*found && kinds_.has((*found)->kind())) {
    known.runtime = std::make_shared<const symbolizer::RuntimeModule>(**found);
    known.problem =
        std::visit([&](const auto& layout) { return enter(known, file, layout.frames); }, known.runtime->layout);
  }
  if (!known.problem.empty()) spdlog::info("{}: the frames of its runtime are not read: {}", known.path, known.problem);
  known_.emplace(module, std::move(known));
}

std::uint32_t RuntimeModules::enter_interpreter(const runtimes::FrameSlots& slots) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(interpreters_.begin(), interpreters_.end(), [&](const auto& each) { return each.first == slots; });
  if (known != interpreters_.end()) return known->second;
  const auto layout = as_program_layout(slots);
  if (!layout || layouts_ + 1 >= FLAMED_MAX_LINKED_LAYOUTS) return 0;
  if (const Status put = program_.put_layout(layouts_ + 1, *layout); !put) {
    spdlog::info("interpreted methods of Java are not read: {}", put.error().message());
    return 0;
  }
  ++layouts_;
  return interpreters_.emplace_back(slots, layouts_ | FLAMED_SLOTS | FLAMED_INTERPRETED).second;
}

std::optional<RuntimeModules::Loaded> RuntimeModules::find(const symbolizer::MappingSet& maps) const {
  if (edition_ == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const symbolizer::Mapping& mapping : maps.mappings()) {
    const auto found = known_.find(mapping.module);
    if (found == known_.end() || found->second.layout == 0) continue;
    const Known& known = found->second;
    return Loaded{mapping.module, known.runtime, known.layout,
                  mapping.start - mapping.file_offset - known.runtime->code_bias};
  }
  return std::nullopt;
}

void RuntimeModules::note_failure(ModuleId module, std::string why) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(module);
  if (found == known_.end()) return;
  if (found->second.problem.empty()) spdlog::info("{}: {}", found->second.path, why);
  found->second.problem = std::move(why);
}

void RuntimeModules::note_success(ModuleId module) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(module);
  if (found == known_.end()) return;
  found->second.problem.clear();
}

std::vector<RuntimeModules::Fact> RuntimeModules::facts() const {
  std::vector<Fact> facts;
  const std::lock_guard lock(mutex_);
  for (const auto& [module, known] : known_) {
    if (known.runtime == nullptr && known.problem.empty()) continue;
    Fact fact{known.path, {}, {}, known.problem, false};
    if (known.runtime != nullptr) {
      const symbolizer::RuntimeModule& runtime = *known.runtime;
      fact.version = std::string(runtimes::name_of(runtime.kind())) + " " +
                     std::visit([](const auto& layout) { return layout.version.text(); }, runtime.layout);
      fact.is_by_slots = (known.layout & FLAMED_SLOTS) != 0;
      if (known.layout != 0) fact.how = std::visit([](const auto& layout) { return how_of(layout); }, runtime.layout);
    }
    facts.push_back(std::move(fact));
  }
  std::sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.path < b.path; });
  return facts;
}

}  // namespace flamed::daemon
