// SPDX-License-Identifier: Apache-2.0
#include "daemon/containers/container_namer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "store/model/container_text.h"
#include "symbolizer/model/reading_purpose.h"
#include "symbolizer/reader/container_names.h"
#include "symbolizer/reader/engine_answer.h"

namespace flamed::daemon {
namespace {

/// The kubelet links a log, and runtimes write their files, before or just after the container starts.
constexpr std::size_t kTries = 3;
/// The others are for engines that could not be asked: they restart, and are set up after flamed.
constexpr std::array<std::int64_t, 6> kAgainAfterNs{2 * kNsPerSecond,   10 * kNsPerSecond,  60 * kNsPerSecond,
                                                    300 * kNsPerSecond, 900 * kNsPerSecond, 3600 * kNsPerSecond};
/// After an engine has not answered as it should. Waiting for it takes one of two places of background work.
constexpr std::int64_t kPauseNs = 30 * kNsPerSecond;

/// A helper was not available, or flamed is ending: that says nothing about an engine.
bool is_about_flamed(const Error& error) { return error.code() == EAGAIN || error.code() == ECANCELED; }

}  // namespace

std::string container_name_of(const symbolizer::ContainerNames& names) {
  if (names.pod.empty() || names.pod_namespace.empty()) return names.name;
  // The container that only holds the pod's namespaces has no name.
  return names.pod_namespace + "/" + names.pod + "/" + (names.name.empty() ? "[pod]" : names.name);
}

ContainerNamer::ContainerNamer(symbolizer::GuardedOpener& opener, symbolizer::ModuleReader& reader, const Clock& clock,
                               const std::vector<symbolizer::ContainerEngine>& engines)
    : opener_(opener), reader_(reader), clock_(clock) {
  for (const symbolizer::ContainerEngine& engine : engines) engines_.push_back({engine});
}

std::string ContainerNamer::text_of(const std::string& container) {
  if (!symbolizer::is_container_id(container)) return container;
  if (known_.size() >= kMostKnown) known_.clear();
  const auto [entry, is_new] = known_.try_emplace(container);
  if (is_new && !requests_.try_push({container, 0, {}})) known_.erase(entry);
  return is_new ? container : store::join_container(container, entry->second);
}

std::unordered_set<std::string> ContainerNamer::take_named() {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers = std::exchange(answers_, {});
  }
  std::unordered_set<std::string> named;
  for (Answer& answer : answers) {
    known_[answer.id] = std::move(answer.name);
    named.insert(std::move(answer.id));
  }
  return named;
}

void ContainerNamer::run(const std::stop_token& stop) {
  const symbolizer::ReadingFor background(symbolizer::ReadingPurpose::kBackground);
  std::vector<Request> later;
  while (!stop.stop_requested()) {
    if (later.empty()) {
      std::optional<Request> request = requests_.pop(stop);
      if (!request) return;
      later.push_back(std::move(*request));
    } else {
      const auto next = std::min_element(
          later.begin(), later.end(), [](const Request& a, const Request& b) { return a.not_before < b.not_before; });
      const std::int64_t wait_ns = std::max<std::int64_t>(next->not_before.ns - clock_.monotonic().ns, 0);
      requests_.await(stop, std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_ns));
      while (std::optional<Request> request = requests_.try_pop()) later.push_back(std::move(*request));
    }
    const MonotonicTime now = clock_.monotonic();
    const auto first_due =
        std::partition(later.begin(), later.end(), [&](const Request& request) { return now < request.not_before; });
    std::vector<Request> due(std::make_move_iterator(first_due), std::make_move_iterator(later.end()));
    later.erase(first_due, later.end());
    for (Request& request : due) {
      if (stop.stop_requested()) return;
      Found found = find(request.id);
      if (!found.name.empty()) {
        const std::lock_guard lock(mutex_);
        answers_.push_back({std::move(request.id), std::move(found.name)});
      } else if (request.tries < (found.is_incomplete ? kAgainAfterNs.size() : kTries) && later.size() < kMostWaiting) {
        request.not_before = {clock_.monotonic().ns + kAgainAfterNs[request.tries++]};
        later.push_back(std::move(request));
      }
    }
  }
}

ContainerNamer::Found ContainerNamer::find(const std::string& id) {
  Found found;
  if (Result<symbolizer::ContainerFiles> files = opener_.find_container_files(id)) {
    found.name = container_name_of(symbolizer::parse_container_log_name(files->log_name, id));
    for (const symbolizer::ContainerFiles::File& file : files->files) {
      if (!found.name.empty()) break;
      const Result<symbolizer::ContainerNames> names = reader_.read_container(file.file.get(), file.format, id);
      if (names) found.name = container_name_of(*names);
    }
  }
  if (found.name.empty()) ask_engines(id, found);
  return found;
}

void ContainerNamer::ask_engines(const std::string& id, Found& found) {
  for (Engine& engine : engines_) {
    if (clock_.monotonic() < engine.not_before) {
      found.is_incomplete = true;
      continue;
    }
    Result<std::string> name = ask(engine, id);
    if (!name) {
      found.is_incomplete = true;
      if (!is_about_flamed(name.error()) && !std::exchange(engine.is_failing, true)) {
        spdlog::warn("cannot ask the container engine at {}: {}", engine.at.socket, name.error().message());
      }
      continue;
    }
    if (std::exchange(engine.is_failing, false)) {
      spdlog::info("the container engine at {} answers again", engine.at.socket);
    }
    if (!name->empty()) {
      found.name = std::move(*name);
      return;
    }
  }
}

Result<std::string> ContainerNamer::ask(Engine& engine, const std::string& id) {
  const std::string question = symbolizer::engine_question(engine.at.protocol, id);
  const Result<Fd> connection = opener_.connect_engine(engine.at.socket, question);
  if (!connection) return connection.error();
  const Result<symbolizer::ContainerNames> names =
      reader_.read_engine_answer(connection->get(), engine.at.protocol, id);
  if (names) return container_name_of(*names);
  if (!is_about_flamed(names.error())) engine.not_before = {clock_.monotonic().ns + kPauseNs};
  return names.error();
}

}  // namespace flamed::daemon
