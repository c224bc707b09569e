// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/python_modules.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/unwind/program_layout.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kMost = 4096;

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string how_of(const runtimes::LinkedFrames& frames) {
  using Kind = runtimes::ThreadStatePlace::Kind;
  const Kind kind = frames.thread_states.front().kind;
  std::string how = kind == Kind::kGlobal        ? "the state of the thread that has the GIL"
                    : kind == Kind::kThreadBlock ? "a thread-local variable of the library"
                                                 : "a thread-local variable";
  if (frames.thread_states.size() > 1) how += ", else that of PyGILState";
  return how;
}

}  // namespace

bool PythonModules::may_be_python(std::string_view path) {
  return name_of(path).find("python") != std::string_view::npos;
}

bool PythonModules::is_known(ModuleId module) const {
  const std::lock_guard lock(mutex_);
  return known_.count(module) != 0;
}

void PythonModules::add(ModuleId module, std::string path, const symbolizer::FileKey& file,
                        const Result<std::optional<symbolizer::PythonModule>>& found) {
  Known known{std::move(path), nullptr, 0, {}};
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) std::erase_if(known_, [](const auto& each) { return each.second.python == nullptr; });
  if (known_.size() >= kMost || known_.count(module) != 0) return;
  if (!found) {
    known.problem = found.error().message();
  } else if (*found) {
    known.python = std::make_shared<const symbolizer::PythonModule>(**found);
    const std::optional<flamed_linked_layout> layout = as_program_layout(known.python->layout.frames);
    if (!layout) {
      known.problem = "its frames have an unknown layout";
    } else if (layouts_ + 1 >= FLAMED_MAX_LINKED_LAYOUTS) {
      known.problem = "there are too many different Pythons";
    } else if (const Status put = program_.put_layout(layouts_ + 1, *layout); !put) {
      known.problem = put.error().message();
    } else {
      known.layout = ++layouts_;
      ++edition_;
      const std::uint64_t device = std::uint64_t{file.device_major} << FLAMED_DEVICE_MINOR_BITS | file.device_minor;
      // If there is no room, only programs that end within a moment lack their functions.
      static_cast<void>(program_.put_program({file.inode, device}, {known.layout, known.python->first_code}).ok());
    }
  }
  if (!known.problem.empty()) spdlog::info("{}: its Python frames are not read: {}", known.path, known.problem);
  known_.emplace(module, std::move(known));
}

std::optional<PythonModules::Loaded> PythonModules::find(const symbolizer::MappingSet& maps) const {
  if (edition_ == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (const symbolizer::Mapping& mapping : maps.mappings()) {
    const auto found = known_.find(mapping.module);
    if (found == known_.end() || found->second.layout == 0) continue;
    const Known& known = found->second;
    return Loaded{mapping.module, known.python, known.layout,
                  mapping.start - mapping.file_offset - known.python->code_bias};
  }
  return std::nullopt;
}

void PythonModules::note_failure(ModuleId module, std::string why) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(module);
  if (found == known_.end()) return;
  if (found->second.problem.empty()) spdlog::info("{}: {}", found->second.path, why);
  found->second.problem = std::move(why);
}

void PythonModules::note_success(ModuleId module) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(module);
  if (found == known_.end()) return;
  found->second.problem.clear();
}

std::vector<PythonModules::Fact> PythonModules::facts() const {
  std::vector<Fact> facts;
  const std::lock_guard lock(mutex_);
  for (const auto& [module, known] : known_) {
    if (known.python == nullptr && known.problem.empty()) continue;
    Fact fact{known.path, {}, {}, known.problem};
    if (known.python != nullptr) {
      fact.version = known.python->layout.version.text();
      if (known.layout != 0) fact.how = how_of(known.python->layout.frames);
    }
    facts.push_back(std::move(fact));
  }
  std::sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.path < b.path; });
  return facts;
}

}  // namespace flamed::daemon
