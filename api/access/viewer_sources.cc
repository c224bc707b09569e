// SPDX-License-Identifier: Apache-2.0
#include "api/access/viewer_sources.h"

#include <algorithm>

#include "store/query/query.h"

namespace flamed::api {

store::Snapshot ViewerSources::await_snapshot() const {
  store::Snapshot snapshot = all_.await_snapshot();
  if (sees_everything()) return snapshot;
  return store::seen_by(snapshot, viewer_.sees == Viewer::Sees::kOwn ? viewer_.uid : store::kNoUser);
}

std::optional<OffCpuRefusal> ViewerSources::begin_off_cpu(const OffCpuRequest& request) {
  for (const std::int32_t process : request.processes) {
    if (!user_of(process)) return OffCpuRefusal{OffCpuRefusal::Why::kUnknownProcess, {}, process};
  }
  OffCpuRequest limited = request;
  limited.is_limited = !sees_everything();
  if (limited.is_limited) limited.only_user = viewer_.sees == Viewer::Sees::kOwn ? viewer_.uid : store::kNoUser;
  return all_.begin_off_cpu(limited);
}

std::optional<OffCpuAnswer> ViewerSources::take_off_cpu(WallTime asked) {
  std::optional<OffCpuAnswer> answer = all_.take_off_cpu(asked);
  if (answer && !sees_everything()) {
    answer->snapshot =
        store::seen_by(answer->snapshot, viewer_.sees == Viewer::Sees::kOwn ? viewer_.uid : store::kNoUser);
  }
  return answer;
}

SourceFile ViewerSources::source_file(const SourceQuestion& question) {
  if (viewer_.has_token) return {"text of sources is not shown to clients with a token"};
  if (viewer_.uid == store::kNoUser) return {"it is not known who asks"};
  const std::optional<std::uint32_t> owner = all_.user_of(question.process.pid);
  if (!owner) return {"its process has ended"};
  // Members of the group see what others' processes do, but may not read their files.
  if (viewer_.uid != 0 && owner != viewer_.uid) return {"its process belongs to another user"};
  SourceQuestion asked = question;
  asked.viewer = viewer_.uid;
  if (viewer_.uid != 0) asked.groups = groups_of_(viewer_.uid);
  return all_.source_file(asked);
}

store::FrameNamer& ViewerSources::namer() {
  if (sees_everything()) return all_.namer();
  return careful_namer_;
}

store::FrameNamer& ViewerSources::quick_namer() {
  if (sees_everything()) return all_.quick_namer();
  return careful_quick_namer_;
}

std::optional<std::uint32_t> ViewerSources::user_of(std::int32_t pid) const {
  const std::optional<std::uint32_t> user = all_.user_of(pid);
  const bool is_own = viewer_.sees == Viewer::Sees::kOwn && user == viewer_.uid;
  return sees_everything() || is_own ? user : std::nullopt;
}

ThreadTime ViewerSources::thread_time(const store::WallWindow& window) const {
  if (sees_everything()) return all_.thread_time(window);
  return {.reason = "threads are counted for the whole machine, not for one user"};
}

CpuAccount ViewerSources::machine_cpu(const store::WallWindow& window) const {
  if (sees_everything()) return all_.machine_cpu(window);
  return {{}, "the machine's CPU time is not compared with the samples of one user: ask by pid"};
}

std::vector<std::shared_ptr<const store::InlineChain>> ViewerSources::CarefulNamer::name(
    std::span<const Frame> frames) {
  auto chains = all_.name(frames);
  for (std::size_t i = 0; i < std::min(chains.size(), frames.size()); ++i) {
    const auto& chain = chains[i];
    if (frames[i].module != kKernelModule || chain == nullptr || chain->empty()) continue;
    const store::NamedFrame& frame = chain->front();
    if (frame.kind != store::FrameKind::kUnknown) continue;
    chains[i] = share({store::NamedFrame{"[unknown] (kernel)", frame.module, frame.kind, frame.reason}});
  }
  return chains;
}

}  // namespace flamed::api
