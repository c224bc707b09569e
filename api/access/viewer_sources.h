// SPDX-License-Identifier: Apache-2.0
//
// ViewerSources: the daemon's data that one viewer may see. Every answer is made from this and nothing else, so no
// route, format or error text can reveal more.
//
// A local of one request; must not outlive the sources that it filters.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/access/group_members.h"
#include "api/http/viewer.h"
#include "api/sources.h"

namespace flamed::api {

class ViewerSources final : public Sources {
 public:
  using GroupsOf = std::vector<gid_t> (*)(uid_t user);

  ViewerSources(Sources& all, const Viewer& viewer, GroupsOf groups_of = groups_of_user)
      : all_(all),
        viewer_(viewer),
        groups_of_(groups_of),
        careful_namer_(all.namer()),
        careful_quick_namer_(all.quick_namer()) {}

  [[nodiscard]] store::Snapshot await_snapshot() const override;
  /// Of a snapshot that the viewer may see.
  [[nodiscard]] store::Snapshot with_history(const store::Snapshot& snapshot,
                                             std::span<const store::WallWindow> windows,
                                             const store::Detail& detail) const override {
    return all_.with_history(snapshot, windows, detail);
  }
  [[nodiscard]] std::uint64_t await_revision() const override { return all_.await_revision(); }
  [[nodiscard]] store::FrameNamer& namer() override;
  [[nodiscard]] store::FrameNamer& quick_namer() override;
  /// Of a module in stacks that the viewer may see.
  [[nodiscard]] MachineCode code_at(const CodeQuestion& question) override { return all_.code_at(question); }
  /// Of the viewer's own processes; root's are all of them.
  [[nodiscard]] SourceFile source_file(const SourceQuestion& question) override;
  [[nodiscard]] std::optional<std::uint32_t> user_of(std::int32_t pid) const override;
  /// Of processes of the viewer alone.
  [[nodiscard]] std::optional<OffCpuRefusal> begin_off_cpu(const OffCpuRequest& request) override;
  void cancel_off_cpu(WallTime asked) override { all_.cancel_off_cpu(asked); }
  [[nodiscard]] std::optional<OffCpuAnswer> take_off_cpu(WallTime asked) override;
  [[nodiscard]] CpuAccount machine_cpu(const store::WallWindow& window) const override;
  [[nodiscard]] ThreadTime thread_time(const store::WallWindow& window) const override;
  /// Of a process that the snapshot shows.
  [[nodiscard]] CpuAccount process_cpu(const store::WallWindow& window,
                                       const store::ProcessInfo& process) const override {
    return all_.process_cpu(window, process);
  }

  // Open to everybody. The kernel shows pressure to all users.
  [[nodiscard]] std::vector<PressedMinute> pressed_minutes(const store::WallWindow& window) const override {
    return all_.pressed_minutes(window);
  }
  [[nodiscard]] Health health() const override { return all_.health(); }
  [[nodiscard]] std::vector<Metric> metrics() const override { return all_.metrics(); }
  [[nodiscard]] const Clock& clock() const override { return all_.clock(); }
  [[nodiscard]] std::optional<HistoryFile> file() const override { return all_.file(); }
  [[nodiscard]] std::string version() const override { return all_.version(); }
  [[nodiscard]] double frequency_hz() const override { return all_.frequency_hz(); }
  [[nodiscard]] WallTime started() const override { return all_.started(); }
  [[nodiscard]] std::size_t cpus() const override { return all_.cpus(); }

 private:
  /// Names without kernel addresses, which would undo address space randomisation (KASLR).
  class CarefulNamer final : public store::FrameNamer {
   public:
    explicit CarefulNamer(store::FrameNamer& all) : all_(all) {}
    std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;

   private:
    store::FrameNamer& all_;
  };

  [[nodiscard]] bool sees_everything() const { return viewer_.sees == Viewer::Sees::kEverything; }

  Sources& all_;
  const Viewer viewer_;
  const GroupsOf groups_of_;
  CarefulNamer careful_namer_, careful_quick_namer_;
};

}  // namespace flamed::api
