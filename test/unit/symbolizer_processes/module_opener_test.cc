// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/module_opener.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "base/file.h"
#include "symbolizer/process/proc_text.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

constexpr std::int32_t kPid = 4242;
constexpr std::int32_t kParent = 4241;

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

FileKey key_of(const std::string& path) {
  const struct stat status = status_of(path);
  return {major(status.st_dev), minor(status.st_dev), status.st_ino};
}

/// The file's identity in a mapping, which on btrfs and overlayfs differs from stat(2).
FileKey shown_in_mapping(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file.get(), 0);
  REQUIRE(memory != MAP_FAILED);
  const std::string maps = read_file("/proc/self/maps", 1 << 24).value();
  ::munmap(memory, 4096);
  std::istringstream lines(maps);
  for (std::string text; std::getline(lines, text);) {
    const auto line = parse_maps_line(text);
    if (line && line->path == path) return line->file;
  }
  return {};
}

bool is_on_overlayfs(const std::string& path) {
  struct statfs system {};
  REQUIRE(::statfs(path.c_str(), &system) == 0);
  return static_cast<std::uint32_t>(system.f_type) == OVERLAYFS_SUPER_MAGIC;
}

/// A line of maps that names the file `key`.
std::string maps_line(const char* range, const FileKey& key, const std::string& path) {
  char text[128];
  std::snprintf(text, sizeof text, "%s r-xp 00000000 %02x:%02x %llu  ", range, key.device_major, key.device_minor,
                static_cast<unsigned long long>(key.inode));
  return text + path + "\n";
}

/// A process with a folder of the test as its root, and its parent with another one.
struct Fixture {
  Fixture() {
    std::filesystem::create_directories(root());
    std::filesystem::create_directories(proc.path() + "/" + std::to_string(kParent) + "/root");
  }
  [[nodiscard]] std::string process() const { return proc.path() + "/" + std::to_string(kPid); }
  [[nodiscard]] std::string root() const { return process() + "/root"; }
  std::string write(const std::string& name, const std::string& text) const {
    return proc.directory().write(std::to_string(kPid) + "/root" + name, text);
  }
  [[nodiscard]] OpenRequest request(const FileKey& key, const std::string& path) const {
    return {ModuleId{16}, key, path, kPid, kParent, 0x1000, 0x2000};
  }
  [[nodiscard]] Result<Fd> open(const FileKey& key, const std::string& path) const {
    return open_module(request(key, path), proc.path());
  }

  test::FakeProc proc;
};

std::string text_of(const Result<Fd>& file) {
  REQUIRE(file.ok());
  return read_fd(file->get(), 1 << 20).value();
}

TEST_CASE("a file is found by its path in the process's root") {
  const Fixture fixture;
  const std::string file = fixture.write("/usr/lib/a.so", "code");
  CHECK(text_of(fixture.open(key_of(file), "/usr/lib/a.so")) == "code");
}

TEST_CASE("a file is found in the parent's root when the process is gone") {
  const Fixture fixture;
  const std::string file = fixture.proc.directory().write(std::to_string(kParent) + "/root/lib/a.so", "code");
  std::filesystem::remove_all(fixture.process());
  CHECK(text_of(fixture.open(key_of(file), "/lib/a.so")) == "code");
}

TEST_CASE("a file is found on the host when process and parent have ended") {
  const Fixture fixture;
  const test::TemporaryDirectory host;
  const std::string file = host.write("a.so", "code");
  std::filesystem::remove_all(fixture.process());
  CHECK(text_of(fixture.open(key_of(file), file)) == "code");
}

TEST_CASE("the descriptor is read-only and closed on exec") {
  const Fixture fixture;
  const std::string file = fixture.write("/a.so", "code");
  const Result<Fd> opened = fixture.open(key_of(file), "/a.so");
  REQUIRE(opened.ok());
  CHECK((::fcntl(opened->get(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  CHECK((::fcntl(opened->get(), F_GETFL) & O_PATH) == 0);
  CHECK((::fcntl(opened->get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("another file at the same path is refused with a readable reason") {
  const Fixture fixture;
  const std::string file = fixture.write("/usr/bin/tool", "new");
  FileKey old = key_of(file);
  old.inode += 1;
  const Result<Fd> opened = fixture.open(old, "/usr/bin/tool");
  REQUIRE_FALSE(opened.ok());
  // The host has no such file. The process's root has another one in its place.
  CHECK(opened.error().message().find("open tool: ") != std::string::npos);
  // Others may have the same file mapped, at another place.
  CHECK(opened.error().message().find("/usr/bin") == std::string::npos);
}

TEST_CASE("the error for a replaced file on the host says that it was replaced") {
  const Fixture fixture;
  const test::TemporaryDirectory host;
  const std::string file = host.write("tool", "old");
  const FileKey old = key_of(file);
  host.write("tool.new", "new");
  std::filesystem::rename(host.path("tool.new"), file);
  const Result<Fd> opened = fixture.open(old, file);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message().find("tool was deleted or replaced since it was mapped") != std::string::npos);
}

TEST_CASE("a file that was deleted on the host is named in the error") {
  const Fixture fixture;
  const test::TemporaryDirectory host;
  const std::string file = host.write("tool", "old");
  const FileKey old = key_of(file);
  std::filesystem::remove(file);
  const Result<Fd> opened = fixture.open(old, file);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message().find("open tool: No such file or directory") != std::string::npos);
}

TEST_CASE("a file that is not regular is not opened, and a FIFO does not block") {
  const Fixture fixture;
  const std::string fifo = fixture.root() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(fixture.open(key_of(fifo), "/fifo").ok());
  const std::string folder = fixture.root() + "/folder";
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  CHECK_FALSE(fixture.open(key_of(folder), "/folder").ok());

  const test::TemporaryDirectory host;
  const std::string host_fifo = host.path("fifo");
  REQUIRE(::mkfifo(host_fifo.c_str(), 0600) == 0);
  const Result<Fd> opened = fixture.open(key_of(host_fifo), host_fifo);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message().find("is not a regular file") != std::string::npos);
}

TEST_CASE("a device is not opened") {
  const Fixture fixture;
  const Result<Fd> opened = fixture.open(key_of("/dev/null"), "/dev/null");
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message().find("is not a regular file") != std::string::npos);
}

TEST_CASE("links in a container lead only to files of that container") {
  const Fixture fixture;
  const test::TemporaryDirectory host;
  const std::string secret = host.write("secret", "of the host");
  std::filesystem::create_symlink(secret, fixture.root() + "/absolute");
  std::filesystem::create_symlink("../../../../../../../../../.." + secret, fixture.root() + "/relative");
  for (const std::string path : {"/absolute", "/relative"}) {
    CAPTURE(path);
    CHECK_FALSE(fixture.open(key_of(secret), path).ok());
  }
  // The same link, with a file of the container at its end.
  const std::string inside = fixture.write(secret, "of the container");
  CHECK(text_of(fixture.open(key_of(inside), "/absolute")) == "of the container");
}

TEST_CASE("dots in a path do not lead out of the process's root") {
  const Fixture fixture;
  const std::string outside = fixture.proc.directory().write("outside", "x");
  CHECK_FALSE(fixture.open(key_of(outside), "/../../outside").ok());
}

TEST_CASE("names that are not paths are not looked up") {
  const Fixture fixture;
  for (const std::string path : {"", "[vdso]", "//anon", "a.so", "/"}) {
    CAPTURE(path);
    CHECK_FALSE(fixture.open({8, 1, 5}, path).ok());
  }
}

TEST_CASE("a mapping's own file is used even if its path leads to another one") {
  const Fixture fixture;
  const test::TemporaryDirectory elsewhere;
  const std::string mapped = elsewhere.write("mapped", "old");
  fixture.write("/bin/tool", "new");
  std::filesystem::create_directory(fixture.process() + "/map_files");
  std::filesystem::create_symlink(mapped, fixture.process() + "/map_files/1000-2000");
  const FileKey key = key_of(mapped);
  fixture.proc.directory().write(std::to_string(kPid) + "/maps", maps_line("1000-2000", key, "/bin/tool (deleted)"));
  CHECK(text_of(fixture.open(key, "/bin/tool")) == "old");
}

TEST_CASE("a mapping that was split or moved is found by its file") {
  const Fixture fixture;
  const test::TemporaryDirectory elsewhere;
  const std::string mapped = elsewhere.write("mapped", "code");
  std::filesystem::create_directory(fixture.process() + "/map_files");
  std::filesystem::create_symlink(mapped, fixture.process() + "/map_files/1000-1800");
  const FileKey key = key_of(mapped);
  fixture.proc.directory().write(std::to_string(kPid) + "/maps", maps_line("1000-1800", key, "/bin/tool"));
  CHECK(text_of(fixture.open(key, "/gone")) == "code");
}

TEST_CASE("another process's file at the same addresses is not mistaken for it") {
  // The pid was reused, and programs that are not position-independent are all mapped at the same address.
  const Fixture fixture;
  const test::TemporaryDirectory elsewhere;
  const std::string other = elsewhere.write("other", "of another process");
  std::filesystem::create_directory(fixture.process() + "/map_files");
  std::filesystem::create_symlink(other, fixture.process() + "/map_files/1000-2000");
  fixture.proc.directory().write(std::to_string(kPid) + "/maps", maps_line("1000-2000", key_of(other), "/bin/other"));
  FileKey gone = key_of(other);
  gone.inode += 1;
  const Result<Fd> opened = fixture.open(gone, "/bin/tool");
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().message().find("has ended or unmapped it") != std::string::npos);
}

TEST_CASE("another file in a mapping's place is another file, whatever its path") {
  const Fixture fixture;
  const test::TemporaryDirectory elsewhere;
  const std::string mapped = elsewhere.write("mapped", "code");
  std::filesystem::create_directory(fixture.process() + "/map_files");
  std::filesystem::create_symlink(mapped, fixture.process() + "/map_files/1000-2000");
  const FileKey now = key_of(mapped);
  fixture.proc.directory().write(std::to_string(kPid) + "/maps", maps_line("1000-2000", now, "/bin/tool"));
  FileKey before = now;
  before.inode += 1;
  CHECK_FALSE(fixture.open(before, "/bin/tool").ok());
  before = now;
  before.device_minor += 1;
  CHECK(fixture.open(before, "/bin/tool").ok() == is_on_overlayfs(mapped));
  CHECK(text_of(fixture.open(now, "/bin/tool")) == "code");
}

TEST_CASE("on overlayfs, where the kernel reports two files for one, the same path and addresses are enough") {
  const Fixture fixture;
  const test::TemporaryDirectory elsewhere;
  const std::string mapped = elsewhere.write("mapped", std::string(4096, 'x'));
  if (!is_on_overlayfs(mapped)) {
    std::cout << "SKIP overlayfs: the temporary directory lies on another file system\n";
    return;
  }
  std::filesystem::create_directory(fixture.process() + "/map_files");
  std::filesystem::create_symlink(mapped, fixture.process() + "/map_files/1000-2000");
  const FileKey shown = shown_in_mapping(mapped);
  fixture.proc.directory().write(std::to_string(kPid) + "/maps", maps_line("1000-2000", shown, "/bin/tool"));
  // The layer's device, and its inode where the file was copied up.
  CHECK(text_of(fixture.open({shown.device_major, shown.device_minor + 1, shown.inode + 1}, "/bin/tool")) ==
        std::string(4096, 'x'));
  CHECK_FALSE(fixture.open({shown.device_major, shown.device_minor + 1, shown.inode + 1}, "/bin/other").ok());
  // Overlayfs reports both, so they are two files.
  CHECK_FALSE(fixture.open({shown.device_major, shown.device_minor, shown.inode + 1}, "/bin/tool").ok());
}

TEST_CASE("a deleted file that is still mapped is opened through its mapping") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("victim", std::string(4096, 'x'));
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    std::cout << "SKIP: files of the temporary directory can't be mapped as code (noexec)\n";
    return;
  }
  std::filesystem::remove(path);

  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const std::string maps = read_file("/proc/self/maps", 1 << 24).value();
  OpenRequest request;
  for (const MapsLine& line : parse_executable_maps(maps)) {
    if (line.start == address) {
      request = {ModuleId{16}, line.file, std::string(line.path), ::getpid(), ::getppid(), line.start, line.end};
    }
  }
  REQUIRE(request.path == path);
  const Result<Fd> opened = open_module(request, "/proc");
  ::munmap(memory, 4096);
  if (!opened.ok() && opened.error().message().find("Operation not permitted") != std::string::npos) {
    std::cout << "SKIP map-files: the kernel forbids /proc/PID/map_files without CAP_CHECKPOINT_RESTORE\n";
    return;
  }
  CHECK(text_of(opened) == std::string(4096, 'x'));
}

TEST_CASE("a file that is no longer mapped is found by its path and its mapping's identity") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("victim", std::string(4096, 'x'));
  OpenRequest request{ModuleId{16}, shown_in_mapping(path), path, ::getpid(), ::getppid(), 0x1000, 0x2000};
  REQUIRE(request.file.is_file());
  CHECK(text_of(open_module(request, "/proc")) == std::string(4096, 'x'));
  request.file.inode += 1;
  CHECK_FALSE(open_module(request, "/proc").ok());
}

TEST_CASE("a file that replaces another one while that is being opened is never used in its place") {
  const test::FakeProc files;
  const std::string paths[] = {files.directory().write("one", "1"), files.directory().write("two", "2")};
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(place != MAP_FAILED);
  std::jthread churn([&](const std::stop_token& stop) {
    const Fd open_files[] = {Fd(::open(paths[0].c_str(), O_RDONLY | O_CLOEXEC)),
                             Fd(::open(paths[1].c_str(), O_RDONLY | O_CLOEXEC))};
    for (unsigned i = 0; !stop.stop_requested(); ++i) {
      static_cast<void>(
          ::mmap(place, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, open_files[i % 2].get(), 0));
    }
  });
  const auto start = reinterpret_cast<std::uint64_t>(place);
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    const OpenRequest request{ModuleId{16}, key_of(paths[0]), paths[0], ::getpid(), ::getppid(), start, start + bytes};
    const Result<Fd> opened = open_module(request, "/proc");
    if (opened && read_fd(opened->get(), 16).value() != "1") ++wrong;
  }
  churn.request_stop();
  churn.join();
  ::munmap(place, bytes);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace flamed::symbolizer
