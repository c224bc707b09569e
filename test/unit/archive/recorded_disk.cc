// SPDX-License-Identifier: Apache-2.0
#include "test/unit/archive/recorded_disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "test/catch.h"

namespace flamed::archive::test {
namespace {

using Step = RecordedDisk::Step;
using Kind = Step::Kind;

/// Less is written by a disk whole or not at all.
constexpr std::size_t kSectorBytes = 512;

RecordedDisk* recording = nullptr;
sqlite3_vfs* real_vfs = nullptr;

/// SQLite's memory: our part, then the real file.
struct File {
  sqlite3_file base{};
  std::string* name = nullptr;

  static std::size_t real_offset() { return (sizeof(File) + 15) / 16 * 16; }
};

sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + File::real_offset());
}

std::string name_of(const char* path) {
  const std::string_view text = path == nullptr ? std::string_view() : path;
  return std::string(text.substr(text.rfind('/') + 1));
}

void record(sqlite3_file* file, Kind kind, std::size_t at = 0, std::string bytes = {}) {
  const std::string& name = *reinterpret_cast<File*>(file)->name;
  if (recording != nullptr && !name.empty()) recording->record({kind, name, at, std::move(bytes)});
}

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
  record(file, Kind::kWrite, static_cast<std::size_t>(at),
         {static_cast<const char*>(bytes), static_cast<std::size_t>(size)});
  return real_of(file)->pMethods->xWrite(real_of(file), bytes, size, at);
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  record(file, Kind::kTruncate, static_cast<std::size_t>(size));
  return real_of(file)->pMethods->xTruncate(real_of(file), size);
}
int sync(sqlite3_file* file, int flags) {
  const int result = real_of(file)->pMethods->xSync(real_of(file), flags);
  record(file, Kind::kSync);
  return result;
}
int close(sqlite3_file* file) {
  delete reinterpret_cast<File*>(file)->name;
  return real_of(file)->pMethods->xClose(real_of(file));
}

/// A method that is the real file's.
template <auto kMethod, typename... Args>
int pass(sqlite3_file* file, Args... args) {
  return (real_of(file)->pMethods->*kMethod)(real_of(file), args...);
}

const sqlite3_io_methods kMethods = {
    2,
    close,
    pass<&sqlite3_io_methods::xRead>,
    write,
    truncate,
    sync,
    pass<&sqlite3_io_methods::xFileSize>,
    pass<&sqlite3_io_methods::xLock>,
    pass<&sqlite3_io_methods::xUnlock>,
    pass<&sqlite3_io_methods::xCheckReservedLock>,
    pass<&sqlite3_io_methods::xFileControl>,
    pass<&sqlite3_io_methods::xSectorSize>,
    pass<&sqlite3_io_methods::xDeviceCharacteristics>,
    pass<&sqlite3_io_methods::xShmMap>,
    pass<&sqlite3_io_methods::xShmLock>,
    [](sqlite3_file* file) { real_of(file)->pMethods->xShmBarrier(real_of(file)); },
    pass<&sqlite3_io_methods::xShmUnmap>,
    nullptr,
    nullptr,
};

int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
  const int result = real_vfs->xOpen(real_vfs, path, real_of(file), flags, out);
  file->pMethods = result == SQLITE_OK ? &kMethods : nullptr;
  if (result == SQLITE_OK) reinterpret_cast<File*>(file)->name = new std::string(name_of(path));
  return result;
}

int remove(sqlite3_vfs*, const char* path, int sync_folder) {
  if (recording != nullptr) recording->record({Kind::kDelete, name_of(path), 0, {}});
  return real_vfs->xDelete(real_vfs, path, sync_folder);
}

sqlite3_vfs& own_vfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs own = *real_vfs;
    own.szOsFile = static_cast<int>(File::real_offset()) + real_vfs->szOsFile;
    own.pNext = nullptr;
    own.zName = "recorded";
    own.xOpen = open;
    own.xDelete = remove;
    return own;
  }();
  return vfs;
}

void apply(const Step& step, const std::string& bytes, std::size_t at, std::map<std::string, std::string>& files) {
  if (step.kind == Kind::kSync) return;
  if (step.kind == Kind::kDelete) {
    files.erase(step.file);
    return;
  }
  std::string& content = files[step.file];
  if (step.kind == Kind::kTruncate) {
    content.resize(std::min(content.size(), step.at));
    return;
  }
  content.resize(std::max(content.size(), at + bytes.size()));
  content.replace(at, bytes.size(), bytes);
}

/// Some of the write's sectors.
void apply_torn(const Step& step, std::mt19937& random, std::map<std::string, std::string>& files) {
  for (std::size_t begin = 0; begin < step.bytes.size();) {
    const std::size_t at = step.at + begin;
    const std::size_t size = std::min(kSectorBytes - at % kSectorBytes, step.bytes.size() - begin);
    if (random() % 2 == 0) apply(step, step.bytes.substr(begin, size), at, files);
    begin += size;
  }
}

}  // namespace

RecordedDisk::RecordedDisk() {
  REQUIRE(recording == nullptr);
  if (real_vfs == nullptr) real_vfs = sqlite3_vfs_find(nullptr);
  recording = this;
  sqlite3_vfs_register(&own_vfs(), 1);
}

RecordedDisk::~RecordedDisk() {
  sqlite3_vfs_unregister(&own_vfs());
  recording = nullptr;
}

void RecordedDisk::cut_power(const std::vector<Step>& steps, std::size_t count, Unsynced unsynced, std::mt19937& random,
                             const std::string& folder) {
  std::map<std::string, std::size_t> synced;  // by file: the steps before that one are on the disk
  std::size_t folder_synced = 0;              // likewise, what was deleted
  std::set<std::string> known;
  for (std::size_t i = 0; i < count; ++i) {
    if (steps[i].kind == Kind::kDelete) known.erase(steps[i].file);
    if (steps[i].kind != Kind::kSync) continue;
    synced[steps[i].file] = i;
    // SQLite's VFS for Unix syncs the folder with a new journal or log (UNIXFILE_DIRSYNC).
    const bool is_database = steps[i].file.ends_with(".db");
    if (!is_database && known.insert(steps[i].file).second) folder_synced = i;
  }
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    const auto on_disk = synced.find(step.file);
    const bool is_on_disk =
        step.kind == Kind::kDelete ? i < folder_synced : on_disk != synced.end() && i < on_disk->second;
    if (is_on_disk || unsynced == Unsynced::kDone) {
      apply(step, step.bytes, step.at, files);
    } else if (unsynced == Unsynced::kAnyOfIt) {
      switch (random() % 3) {
        case 0:
          break;
        case 1:
          apply(step, step.bytes, step.at, files);
          break;
        default:
          if (step.kind == Kind::kWrite) apply_torn(step, random, files);
          break;
      }
    }
  }
  for (const auto& [name, content] : files) {
    std::ofstream(std::filesystem::path(folder) / name, std::ios::binary) << content;
  }
}

}  // namespace flamed::archive::test
