// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/container_opener.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace flamed::symbolizer {
namespace {

/// Of one folder: a node has some hundred pods, and links of some restarts of each.
constexpr std::size_t kMostEntries = 16'384;
constexpr std::size_t kMostNamespaces = 64;

/// Where containerd keeps what its tasks were started with, in a folder for each namespace. K3s and RKE2 bring their
/// own containerd.
constexpr std::array<const char*, 2> kTasks{"/run/containerd/io.containerd.runtime.v2.task",
                                            "/run/k3s/containerd/io.containerd.runtime.v2.task"};
/// Of Podman and CRI-O, by storage driver.
constexpr std::array<const char*, 2> kStorage{"overlay-containers", "vfs-containers"};

/// Calls `visit` with each name until it returns false.
template <typename Visit>
void visit_folder(const std::string& path, std::size_t most, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), [](DIR* open) { return ::closedir(open); });
  if (folder == nullptr) return;
  for (std::size_t i = 0; i < most; ++i) {
    const dirent* const entry = ::readdir(folder.get());  // NOLINT(concurrency-mt-unsafe): of this thread alone
    if (entry == nullptr || !visit(std::string_view(entry->d_name))) return;
  }
}

class Finder {
 public:
  explicit Finder(std::string id) : id_(std::move(id)) {}

  void add(const std::string& path, ContainerFormat format) {
    if (found_.files.size() == kMostContainerFiles) return;
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    // What somebody else wrote would name containers of all users.
    const bool is_trusted = status.st_uid == 0 || status.st_uid == ::geteuid();
    if (is_trusted && (status.st_mode & S_IWOTH) == 0) found_.files.push_back({format, std::move(file)});
  }

  void find_log(const std::string& folder) {
    const std::string end = "-" + id_ + ".log";
    visit_folder(folder, kMostEntries, [&](std::string_view name) {
      if (name.ends_with(end)) found_.log_name = name;
      return found_.log_name.empty();
    });
  }

  void find_tasks(const std::string& tasks) {
    visit_folder(tasks, kMostNamespaces, [&](std::string_view name) {
      if (!name.starts_with('.')) {
        add(tasks + "/" + std::string(name) + "/" + id_ + "/config.json", ContainerFormat::kOciConfig);
      }
      return true;
    });
  }

  ContainerFiles take() { return std::move(found_); }
  [[nodiscard]] bool has_log() const { return !found_.log_name.empty(); }

 private:
  const std::string id_;
  ContainerFiles found_;
};

}  // namespace

ContainerFiles find_container_files(const std::string& id, const std::string& root) {
  if (!is_container_id(id)) return {};
  Finder finder(id);
  finder.find_log(root + "/var/log/containers");
  if (finder.has_log()) return finder.take();
  finder.add(root + "/var/lib/docker/containers/" + id + "/config.v2.json", ContainerFormat::kDockerConfig);
  for (const char* tasks : kTasks) finder.find_tasks(root + tasks);
  for (const char* storage : kStorage) {
    const std::string folder = root + "/var/lib/containers/storage/" + storage + "/";
    finder.add(folder + id + "/userdata/config.json", ContainerFormat::kOciConfig);
    finder.add(folder + "containers.json", ContainerFormat::kContainerStorage);
    // Of those that are removed when they end, since Podman 5.
    finder.add(root + "/run/containers/storage/" + storage + "/volatile-containers.json",
               ContainerFormat::kContainerStorage);
  }
  return finder.take();
}

}  // namespace flamed::symbolizer
