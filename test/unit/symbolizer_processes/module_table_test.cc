// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/module_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::symbolizer {
namespace {

constexpr FileKey kLibc{8, 1, 100};
constexpr FileKey kOther{8, 1, 101};
constexpr ProcessId kOwner{42, 1000};

Fd some_file() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
KeptNamesPtr some_names(std::uint64_t offset = 0x10, const std::string& name = "f") {
  return std::make_shared<const KeptNames>(
      std::vector<KeptNames::Named>{{offset, share({Symbol{name, "tool", SymbolKind::kNative, {}}})}});
}
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

JitFiles jit_files(int files) {
  JitFiles found;
  for (int i = 0; i < files; ++i) {
    auto file = std::make_shared<JitFile>();
    file->file = some_file();
    found.files.push_back(std::move(file));
  }
  if (files == 0) found.why_none = "no map";
  return found;
}

struct Fixture {
  explicit Fixture(std::size_t limit = 100, std::size_t names_bytes = ModuleTable::kDefaultNamesBudgetBytes)
      : table(limit, clock, names_bytes) {}

  /// The next request to the `modules` thread, or nothing.
  std::optional<OpenRequest> next() {
    std::stop_source stopped;
    stopped.request_stop();
    return table.next_request(stopped.get_token());
  }
  ModuleTable::Wanted want(ModuleId module, std::int32_t pid = 42, std::uint32_t user = kNobodys) {
    return table.want({module, {}, {}, pid, 1, 0x1000, 0x2000, user});
  }
  /// Requests the module's file and answers the request.
  ModuleId open(ModuleId module, std::uint32_t user = kNobodys) { return open_as(module, some_file(), user); }
  ModuleId open_as(ModuleId module, Fd file, std::uint32_t user = kNobodys) {
    want(module, 42, user);
    std::optional<OpenRequest> request = next();
    REQUIRE(request);
    return table.finish(*request, std::move(file));
  }
  /// Closes files that are not mapped.
  ModulePtr close(ModuleId module, KeptNamesPtr names = some_names()) {
    table.note_mapped({});
    for (const ModuleTable::Abandoned& abandoned : table.abandoned(clock.monotonic())) {
      if (abandoned.module->id == module) return table.close(abandoned.module, std::move(names), "closed");
    }
    return nullptr;
  }
  void fail(ModuleId module) {
    want(module);
    std::optional<OpenRequest> request = next();
    REQUIRE(request);
    table.finish(*request, Error("no such file"));
  }

  ManualClock clock{MonotonicTime{1000 * kNsPerSecond}, WallTime{0}};
  ModuleTable table;
};

TEST_CASE("kernel and vdso are modules from the start") {
  Fixture fixture;
  REQUIRE(fixture.table.find(kKernelModule) != nullptr);
  CHECK(fixture.table.find(kKernelModule)->kind == ModuleKind::kKernel);
  CHECK(fixture.table.find(kVdsoModule)->kind == ModuleKind::kVdso);
  CHECK(fixture.table.find(kNoModule) == nullptr);
}

TEST_CASE("the same file at another path is the same module, and under another name another one") {
  Fixture fixture;
  const ModuleId first = fixture.table.file(kLibc, "/usr/lib/libc.so.6").module;
  CHECK(first >= kFirstFreeModule);
  CHECK(fixture.table.file(kLibc, "/snap/libc.so.6").module == first);
  CHECK(fixture.table.file(kOther, "/usr/lib/libc.so.6").module != first);

  const ModuleId renamed = fixture.table.file(kLibc, "/home/alice/project-x").module;
  CHECK(renamed != first);
  CHECK(fixture.table.file(kLibc, "/project-x").module == renamed);
  CHECK(fixture.table.file(kLibc, "/usr/lib/libc.so.6").module == first);
  fixture.open(first);
  CHECK(fixture.table.file(kLibc, "/home/alice/project-x").module == renamed);
  CHECK(fixture.table.find(renamed)->path == "/home/alice/project-x");
  CHECK_FALSE(fixture.table.find(renamed)->file);
}

TEST_CASE("a dropped name leaves the file's other names") {
  Fixture fixture;
  const ModuleId first = fixture.table.file(kLibc, "/usr/lib/libc.so.6").module;
  const ModuleId second = fixture.table.file(kLibc, "/usr/lib/libc-2.so").module;
  fixture.table.retain(std::vector<ModuleId>{second});
  CHECK(fixture.table.find(first) == nullptr);
  CHECK(fixture.table.file(kLibc, "/usr/lib/libc-2.so").module == second);
  CHECK(fixture.table.file(kLibc, "/usr/lib/libc.so.6").module != first);
  fixture.table.retain({});
  CHECK(fixture.table.file(kLibc, "/usr/lib/libc-2.so").module != second);
}

TEST_CASE("a file's newest path counts until the file is open") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/tmp/tool").module;
  fixture.table.file(kLibc, "/usr/bin/tool");
  CHECK(fixture.table.find(id)->path == "/usr/bin/tool");
  fixture.open(id);
  fixture.table.file(kLibc, "/other/tool");
  CHECK(fixture.table.find(id)->path == "/usr/bin/tool");
  CHECK(fixture.table.find(id)->file);
}

TEST_CASE("memory without a file is one module per process, and unmapped addresses another one") {
  Fixture fixture;
  const ModuleId anonymous = fixture.table.anonymous(kOwner);
  CHECK(fixture.table.anonymous(kOwner) == anonymous);
  CHECK(fixture.table.anonymous({42, 1001}) != anonymous);
  CHECK(fixture.table.unmapped(kOwner) != anonymous);
  REQUIRE(fixture.table.find(anonymous) != nullptr);
  CHECK(fixture.table.find(anonymous)->kind == ModuleKind::kAnonymous);
  CHECK(fixture.table.find(anonymous)->owner == kOwner);
}

TEST_CASE("a module has a reason for its missing file, until it has one") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  CHECK_FALSE(fixture.table.find(id)->file);
  CHECK(fixture.table.find(id)->why_no_file == "its file has not been opened yet");
  fixture.open(id);
  CHECK(fixture.table.find(id)->file);
  CHECK(fixture.table.find(id)->why_no_file.empty());
  CHECK(fixture.table.find(id)->path == "/lib/a.so");
  CHECK(fixture.table.stats().open_files == 1);
}

TEST_CASE("a request has the file's identity and path, and the process and mapping where it was seen") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.want(id, 77);
  const auto request = fixture.next();
  REQUIRE(request);
  CHECK(request->module == id);
  CHECK(request->file == kLibc);
  CHECK(request->path == "/lib/a.so");
  CHECK(request->pid == 77);
  CHECK(request->start == 0x1000);
}

TEST_CASE("a file is requested once, however often it is needed") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.want(id);
  fixture.want(id);
  const auto request = fixture.next();
  REQUIRE(request);
  CHECK_FALSE(fixture.next());
  fixture.want(id);
  CHECK_FALSE(fixture.next());
  fixture.table.finish(*request, some_file());
  fixture.want(id);
  CHECK_FALSE(fixture.next());
}

TEST_CASE("a module without a file is never requested") {
  Fixture fixture;
  fixture.want(kKernelModule);
  fixture.want(kVdsoModule);
  fixture.want(fixture.table.anonymous(kOwner));
  fixture.want(ModuleId{999});
  CHECK_FALSE(fixture.next());
}

TEST_CASE("a file that could not be opened is requested again, each time after a longer wait") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.fail(id);
  CHECK(fixture.table.find(id)->why_no_file == "no such file");
  CHECK(fixture.table.stats().failed_opens == 1);

  for (const std::int64_t wait_seconds : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512, 512}) {
    CAPTURE(wait_seconds);
    fixture.clock.advance_ns(wait_seconds * kNsPerSecond - 1);
    fixture.want(id);
    CHECK_FALSE(fixture.next());
    fixture.clock.advance_ns(1);
    fixture.fail(id);
  }
}

TEST_CASE("a file that opens at the second attempt is open") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.fail(id);
  fixture.clock.advance_ns(kNsPerSecond);
  fixture.open(id);
  CHECK(fixture.table.find(id)->file);
  CHECK(fixture.table.find(id)->why_no_file.empty());
}

TEST_CASE("open files are limited: the oldest is closed with a reason, and may be opened again later") {
  Fixture fixture(1);
  const ModuleId first = fixture.table.file(kLibc, "/lib/a.so").module;
  const ModuleId second = fixture.table.file(kOther, "/lib/b.so").module;
  fixture.open(first);
  fixture.open(second);
  CHECK(fixture.table.find(second)->file);
  CHECK_FALSE(fixture.table.find(first)->file);
  CHECK(fixture.table.find(first)->why_no_file ==
        "its file was closed to make room: flamed holds its limit of 1 open files, most of them for processes with "
        "several users");
  CHECK(fixture.table.stats().open_files == 1);
  CHECK(fixture.table.stats().files_crowded_out == 1);

  fixture.want(first);
  CHECK_FALSE(fixture.next());
  fixture.clock.advance_ns(30 * kNsPerSecond);
  fixture.open(first);
  CHECK(fixture.table.find(first)->file);
  CHECK_FALSE(fixture.table.find(second)->file);
}

TEST_CASE("the user with the most open files loses some of their own, and others open theirs") {
  Fixture fixture(10);
  std::vector<ModuleId> many;
  for (std::uint64_t i = 0; i < 20; ++i) {
    many.push_back(fixture.table.file({8, 1, 1000 + i}, "/tmp/many").module);
    fixture.open(many.back(), 1000);
  }
  CHECK(fixture.table.stats().open_files == 10);
  for (std::size_t i = 0; i < many.size(); ++i) {
    CHECK(static_cast<bool>(fixture.table.find(many[i])->file) == (i >= 10));
  }
  CHECK(fixture.table.find(many[0])->why_no_file.ends_with("most of them for user 1000"));
  std::vector<ModuleId> roots;
  for (std::uint64_t i = 0; i < 5; ++i) {
    roots.push_back(fixture.table.file({8, 1, i + 1}, "/lib/root.so").module);
    fixture.open(roots.back(), 0);
  }
  for (std::uint64_t i = 0; i < 20; ++i) fixture.open(fixture.table.file({8, 1, 2000 + i}, "/tmp/more").module, 1000);
  for (const ModuleId id : roots) CHECK(fixture.table.find(id)->file);
}

TEST_CASE("JIT files count for their user, and are closed like others") {
  Fixture fixture(2);
  const ModuleId memory = fixture.table.anonymous(kOwner);
  fixture.table.want_jit(kOwner, 1000);
  REQUIRE(fixture.next());
  fixture.table.finish_jit(kOwner, jit_files(2));
  CHECK(fixture.table.stats().open_files == 2);
  fixture.open(fixture.table.file(kLibc, "/lib/a.so").module, 0);
  CHECK(fixture.table.stats().open_files == 1);
  CHECK(fixture.table.find(memory)->jit->files.empty());
  CHECK(fixture.table.find(memory)->jit->why_none.find("for user 1000") != std::string::npos);
  // Too many for the whole limit.
  Fixture small(1);
  small.table.anonymous(kOwner);
  small.table.want_jit(kOwner);
  small.table.finish_jit(kOwner, jit_files(2));
  CHECK(small.table.jit_files(kOwner)->why_none.find("LimitNOFILE") != std::string::npos);
}

TEST_CASE("a module that nothing names any more is dropped and its file closed") {
  Fixture fixture;
  const ModuleId gone = fixture.table.file(kLibc, "/lib/a.so").module;
  const ModuleId kept = fixture.table.file(kOther, "/lib/b.so").module;
  const ModuleId memory = fixture.table.anonymous(kOwner);
  fixture.open(gone);
  fixture.open(kept);
  const int fd = fixture.table.find(gone)->file.get();
  fixture.table.retain(std::vector<ModuleId>{kept});

  CHECK(fixture.table.find(gone) == nullptr);
  CHECK_FALSE(is_open(fd));
  CHECK(fixture.table.find(memory) == nullptr);
  CHECK(fixture.table.find(kept) != nullptr);
  CHECK(fixture.table.find(kKernelModule) != nullptr);
  CHECK(fixture.table.find(kVdsoModule) != nullptr);
  CHECK(fixture.table.file(kOther, "/lib/b.so").module == kept);
  CHECK(fixture.table.file(kLibc, "/lib/a.so").module != gone);
  CHECK(fixture.table.anonymous(kOwner) != memory);
}

TEST_CASE("the holder of a module keeps its file open after the table dropped it") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.open(id);
  ModulePtr held = fixture.table.find(id);
  const int fd = held->file.get();
  fixture.table.retain({});
  CHECK(is_open(fd));
  held.reset();
  CHECK_FALSE(is_open(fd));
}

TEST_CASE("an answer for a module that was dropped meanwhile is discarded") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/lib/a.so").module;
  fixture.want(id);
  const auto request = fixture.next();
  REQUIRE(request);
  fixture.table.retain({});
  Fd file = some_file();
  const int fd = file.get();
  fixture.table.finish(*request, std::move(file));
  CHECK(fixture.table.find(id) == nullptr);
  CHECK_FALSE(is_open(fd));
  CHECK(fixture.table.stats().open_files == 0);
}

TEST_CASE("files without samples can be dropped separately") {
  Fixture fixture;
  const ModuleId never_wanted = fixture.table.file({8, 1, 1}, "/tmp/conftest").module;
  const ModuleId mapped = fixture.table.file({8, 1, 2}, "/lib/mapped.so").module;
  const ModuleId wanted = fixture.table.file({8, 1, 3}, "/bin/stored").module;
  const ModuleId memory = fixture.table.anonymous(kOwner);
  fixture.want(wanted);
  fixture.table.forget_unwanted(std::vector<ModuleId>{mapped});
  CHECK(fixture.table.find(never_wanted) == nullptr);
  CHECK(fixture.table.find(mapped) != nullptr);
  CHECK(fixture.table.find(wanted) != nullptr);
  CHECK(fixture.table.find(memory) != nullptr);
  CHECK(fixture.table.find(kKernelModule) != nullptr);
  CHECK(fixture.table.file({8, 1, 1}, "/tmp/conftest").module != never_wanted);
}

TEST_CASE("requests to a full queue are counted and can be repeated") {
  Fixture fixture;
  std::vector<ModuleId> ids;
  for (std::uint64_t inode = 1; fixture.table.stats().refused_requests == 0; ++inode) {
    REQUIRE(inode < 100'000);
    ids.push_back(fixture.table.file({8, 1, inode}, "/lib/a.so").module);
    fixture.want(ids.back());
  }
  while (fixture.next()) {
  }
  fixture.want(ids.back());
  const auto request = fixture.next();
  REQUIRE(request);
  CHECK(request->module == ids.back());
}

TEST_CASE("JIT files are requested once, and then used by all of the process's memory without a file") {
  Fixture fixture;
  fixture.table.want_jit(kOwner);
  CHECK_FALSE(fixture.next());  // no sample needs it yet
  const ModuleId anonymous = fixture.table.anonymous(kOwner);
  CHECK(fixture.table.find(anonymous)->jit == nullptr);
  fixture.table.want_jit(kOwner);
  fixture.table.want_jit(kOwner);
  const std::optional<OpenRequest> request = fixture.next();
  REQUIRE(request);
  CHECK(request->jit_owner == kOwner);
  CHECK_FALSE(fixture.next());

  fixture.table.finish_jit(kOwner, jit_files(1));
  REQUIRE(fixture.table.find(anonymous)->jit != nullptr);
  CHECK(fixture.table.find(anonymous)->jit->files.size() == 1);
  CHECK(fixture.table.find(anonymous)->owner == kOwner);
  CHECK(fixture.table.find(anonymous)->path == "[anon]");
  CHECK(fixture.table.find(fixture.table.unmapped(kOwner))->jit == fixture.table.find(anonymous)->jit);
  CHECK(fixture.table.jit_files(kOwner) == fixture.table.find(anonymous)->jit);
  CHECK(fixture.table.stats().open_files == 1);
}

TEST_CASE("JIT files are searched again at growing intervals, and now and then once they were found") {
  Fixture fixture;
  fixture.table.anonymous(kOwner);
  const auto asks_after = [&](std::int64_t seconds) {
    fixture.clock.advance_ns(seconds * kNsPerSecond - 1);
    fixture.table.want_jit(kOwner);
    const bool early = fixture.next().has_value();
    fixture.clock.advance_ns(1);
    fixture.table.want_jit(kOwner);
    return !early && fixture.next().has_value();
  };
  fixture.table.want_jit(kOwner);
  REQUIRE(fixture.next());
  for (const std::int64_t seconds : {1, 2, 4, 8, 16, 32, 32, 32}) {
    CAPTURE(seconds);
    fixture.table.finish_jit(kOwner, jit_files(0));
    CHECK(asks_after(seconds));
  }
  fixture.table.finish_jit(kOwner, jit_files(1));
  CHECK(asks_after(30));
}

TEST_CASE("JIT files are closed with the last module that they name") {
  Fixture fixture;
  const ModuleId anonymous = fixture.table.anonymous(kOwner);
  const ModuleId unmapped = fixture.table.unmapped(kOwner);
  fixture.table.want_jit(kOwner);
  const JitFiles found = jit_files(2);
  const int fd = found.files[0]->file.get();
  fixture.table.finish_jit(kOwner, found);
  CHECK(fixture.table.stats().open_files == 2);
  fixture.table.retain(std::vector<ModuleId>{unmapped});
  CHECK(fixture.table.find(anonymous) == nullptr);
  CHECK(fixture.table.find(unmapped)->jit->files[0]->file.get() == fd);
  fixture.table.retain({});
  CHECK(fixture.table.stats().open_files == 0);
  CHECK(fixture.table.jit_files(kOwner) == nullptr);
  fixture.table.finish_jit(kOwner, jit_files(1));  // comes late
  CHECK(fixture.table.stats().open_files == 0);
}

TEST_CASE("a file that is not mapped is reported, closed, and known by its kept names") {
  Fixture fixture;
  const ModuleId gone = fixture.table.file(kLibc, "/mnt/tool").module;
  const ModuleId mapped = fixture.table.file(kOther, "/lib/b.so").module;
  const ModuleId never_open = fixture.table.file({8, 1, 1}, "/lib/c.so").module;
  fixture.open(gone);
  fixture.open(mapped);
  const int fd = fixture.table.find(gone)->file.get();
  CHECK(fixture.table.abandoned(fixture.clock.monotonic()).empty());
  fixture.table.note_mapped(std::vector<ModuleId>{mapped, kNoModule, mapped});
  const MonotonicTime since = fixture.clock.monotonic();
  CHECK(fixture.table.await_abandoned({}));
  CHECK(fixture.table.abandoned({since.ns - 1}).empty());
  auto abandoned = fixture.table.abandoned(since);
  REQUIRE(abandoned.size() == 1);
  CHECK(abandoned[0].module->id == gone);
  CHECK(abandoned[0].since == since);
  CHECK(abandoned[0].names == nullptr);

  const ModulePtr closed = fixture.table.close(abandoned[0].module, some_names(), "closed");
  abandoned.clear();
  REQUIRE(closed != nullptr);
  CHECK(closed == fixture.table.find(gone));
  CHECK(closed->is_closed());
  CHECK(closed->names->find(0x10)->front().name == "f");
  CHECK(closed->why_no_file == "closed");
  CHECK_FALSE(is_open(fd));
  CHECK(fixture.table.stats().open_files == 1);
  CHECK(fixture.table.stats().names_bytes == closed->names->bytes());
  CHECK(fixture.table.find(gone)->is_closed());
  CHECK_FALSE(fixture.table.find(mapped)->is_closed());
  CHECK_FALSE(fixture.table.find(never_open)->is_closed());
  CHECK(fixture.table.abandoned(since).empty());
  std::stop_source stopped;
  stopped.request_stop();
  CHECK_FALSE(fixture.table.await_abandoned(stopped.get_token()));

  CHECK(fixture.table.file(kLibc, "/mnt/tool").module == gone);
  CHECK(fixture.table.file(kLibc, "/mnt/tool").is_closed);
  CHECK_FALSE(fixture.table.file(kOther, "/lib/b.so").is_closed);

  fixture.table.retain(std::vector<ModuleId>{mapped});
  CHECK(fixture.table.stats().names_bytes == 0);
  CHECK(fixture.table.find(gone) == nullptr);
}

TEST_CASE("a file that is mapped again within the delay stays open") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/bin/cc1").module;
  fixture.open(id);
  fixture.table.note_mapped({});
  auto abandoned = fixture.table.abandoned(fixture.clock.monotonic());
  REQUIRE(abandoned.size() == 1);
  SECTION("by a mapping") { CHECK(fixture.table.file(kLibc, "/bin/cc1").module == id); }
  SECTION("by a sample") { fixture.want(id); }
  SECTION("by the next scan") { fixture.table.note_mapped(std::vector<ModuleId>{id}); }
  CHECK(fixture.table.abandoned(fixture.clock.monotonic()).empty());
  CHECK(fixture.table.close(abandoned[0].module, some_names(), "closed") == nullptr);
  CHECK(fixture.table.find(id)->file);
}

TEST_CASE("a closed file is the same module when it is mapped again unchanged") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/bin/tool").module;
  const Fd file(::memfd_create("tool", MFD_CLOEXEC));
  const auto again = [&] { return Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); };
  fixture.open_as(id, again());
  REQUIRE(fixture.close(id) != nullptr);

  REQUIRE(fixture.table.file(kLibc, "/opt/tool").module == id);
  CHECK(fixture.table.find(id)->path == "/opt/tool");
  CHECK(fixture.table.find(id)->names->find(0x10) != nullptr);
  CHECK(fixture.want(id).is_in_doubt);
  const auto request = fixture.next();
  REQUIRE(request);

  SECTION("it is open again, and its names are kept") {
    CHECK(fixture.table.finish(*request, again()) == id);
    CHECK(fixture.table.find(id)->file);
    CHECK_FALSE(fixture.table.find(id)->is_closed());
    CHECK_FALSE(fixture.want(id).is_in_doubt);
    fixture.table.note_mapped({});
    const auto abandoned = fixture.table.abandoned(fixture.clock.monotonic());
    REQUIRE(abandoned.size() == 1);
    REQUIRE(abandoned[0].names != nullptr);
    CHECK(abandoned[0].names->find(0x10) != nullptr);
  }
  SECTION("a file that can't be opened keeps its names") {
    fixture.table.finish(*request, Error("no such file"));
    CHECK(fixture.table.find(id)->is_closed());
    CHECK(fixture.table.find(id)->why_no_file == "closed");
    CHECK(fixture.table.find(id)->names->find(0x10) != nullptr);
    fixture.want(id);
    CHECK_FALSE(fixture.next());
    fixture.clock.advance_ns(kNsPerSecond);
    CHECK(fixture.want(id).is_in_doubt);
    CHECK(fixture.next());
  }
}

TEST_CASE("a file that has changed since it was closed is another module") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/bin/tool").module;
  const Fd file(::memfd_create("tool", MFD_CLOEXEC));
  const auto again = [&] { return Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); };
  fixture.open_as(id, again());
  REQUIRE(fixture.close(id) != nullptr);
  REQUIRE(::write(file.get(), "other", 5) == 5);
  const ModuleId other = fixture.open_as(id, again());
  CHECK(other != id);
  CHECK(fixture.table.find(other)->file);
  CHECK(fixture.table.find(other)->path == "/bin/tool");
  CHECK(fixture.table.find(id)->is_closed());
  CHECK(fixture.table.find(id)->names->find(0x10) != nullptr);
  // Users of the old module get a reason.
  CHECK(fixture.want(id).module == other);
  CHECK_FALSE(fixture.next());
  CHECK(fixture.table.file(kLibc, "/bin/tool").module == other);
  // The old module's removal leaves the new module's name.
  fixture.table.retain(std::vector<ModuleId>{other});
  CHECK(fixture.table.file(kLibc, "/bin/tool").module == other);
  CHECK(fixture.table.stats().names_bytes == 0);
}

TEST_CASE("a closed file is opened once more for its names if it has not changed") {
  Fixture fixture;
  const ModuleId id = fixture.table.file(kLibc, "/bin/tool").module;
  CHECK_FALSE(fixture.table.reopen(id));
  const Fd file(::memfd_create("tool", MFD_CLOEXEC));
  const auto again = [&] { return Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); };
  fixture.open_as(id, again(), 1000);
  CHECK_FALSE(fixture.table.reopen(id));
  REQUIRE(fixture.close(id) != nullptr);
  CHECK(fixture.table.reopen(id));
  CHECK(fixture.table.reopen(id));
  const auto request = fixture.next();
  REQUIRE(request);
  CHECK_FALSE(fixture.next());
  CHECK(request->file == kLibc);
  CHECK(request->path == "/bin/tool");
  CHECK(request->pid == 0);

  SECTION("and closed again by itself, with new names") {
    CHECK(fixture.table.finish(*request, again()) == id);
    CHECK(fixture.table.find(id)->file);
    CHECK(fixture.table.stats().names_bytes == 0);
    const auto abandoned = fixture.table.abandoned(fixture.clock.monotonic());
    REQUIRE(abandoned.size() == 1);
    CHECK(abandoned[0].names == nullptr);
    CHECK(fixture.table.close(abandoned[0].module, some_names(0x10, "better"), "") != nullptr);
    CHECK(fixture.table.find(id)->names->find(0x10)->front().name == "better");
  }
  SECTION("one that has changed stays closed") {
    REQUIRE(::write(file.get(), "other", 5) == 5);
    CHECK(fixture.table.finish(*request, again()) == id);
    CHECK(fixture.table.find(id)->is_closed());
    CHECK(fixture.table.stats().open_files == 0);
    CHECK_FALSE(fixture.table.reopen(id));
  }
  SECTION("one that is gone stays closed") {
    fixture.table.finish(*request, Error("no such file"));
    CHECK(fixture.table.find(id)->is_closed());
    CHECK_FALSE(fixture.table.reopen(id));
    fixture.clock.advance_ns(kNsPerSecond);
    CHECK(fixture.table.reopen(id));
  }
}

TEST_CASE("names of closed files stay within their budget: the user with the most loses their oldest") {
  const std::size_t one = some_names()->bytes();
  Fixture fixture(100, 4 * one);
  std::vector<ModuleId> users;
  const ModuleId roots = fixture.table.file(kLibc, "/bin/root").module;
  fixture.open(roots, 0);
  fixture.close(roots);
  for (std::uint64_t i = 0; i < 6; ++i) {
    users.push_back(fixture.table.file({8, 1, 1000 + i}, "/tmp/many").module);
    fixture.open(users.back(), 1000);
    fixture.close(users.back());
  }
  CHECK(fixture.table.stats().names_bytes <= 4 * one);
  CHECK(fixture.table.stats().names_dropped == 3);
  CHECK(fixture.table.find(roots)->names->find(0x10) != nullptr);
  CHECK(fixture.table.find(users[0])->names->find(0x10) == nullptr);
  CHECK(fixture.table.find(users[0])->is_closed());
  CHECK(fixture.table.find(users[0])->why_no_file.find("its names were dropped") != std::string::npos);
  CHECK(fixture.table.find(users[5])->names->find(0x10) != nullptr);
}

TEST_CASE("JIT files are closed with the last memory of their process") {
  Fixture fixture;
  const ModuleId anonymous = fixture.table.anonymous(kOwner);
  const ModuleId unmapped = fixture.table.unmapped(kOwner);
  fixture.table.want_jit(kOwner, 1000);
  REQUIRE(fixture.next());
  fixture.table.finish_jit(kOwner, jit_files(1));
  const int fd = fixture.table.jit_files(kOwner)->files[0]->file.get();
  fixture.table.note_mapped(std::vector<ModuleId>{anonymous, unmapped});
  CHECK(fixture.table.abandoned(fixture.clock.monotonic()).empty());
  REQUIRE(fixture.close(anonymous) != nullptr);
  CHECK(is_open(fd));
  REQUIRE(fixture.close(unmapped) != nullptr);
  CHECK_FALSE(is_open(fd));
  CHECK(fixture.table.stats().open_files == 0);
  CHECK(fixture.table.find(anonymous)->is_closed());
  CHECK(fixture.table.find(anonymous)->owner == kOwner);
  // A request in progress comes too late.
  fixture.table.want_jit(kOwner);
  CHECK_FALSE(fixture.next());
  fixture.table.finish_jit(kOwner, jit_files(1));
  CHECK(fixture.table.find(anonymous)->jit == nullptr);
  CHECK(fixture.table.stats().open_files == 0);
  fixture.table.retain({});
  CHECK(fixture.table.stats().names_bytes == 0);
}

}  // namespace
}  // namespace flamed::symbolizer
