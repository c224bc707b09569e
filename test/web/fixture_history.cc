// SPDX-License-Identifier: Apache-2.0
#include "test/web/fixture_history.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "store/model/wait_reason.h"

namespace flamed::api {
namespace {

using Names = std::vector<std::string>;

constexpr int kHistory = 3 * 3600;
constexpr int kFuture = 3600;
/// The last quarter of an hour, which the page requests first.
constexpr int kRecent = -900;
constexpr int kBurst = -140;
constexpr int kSleepFrom = -5700;
constexpr int kSleepTo = -5100;
constexpr int kLossAt = -1800;
constexpr int kVisitEvery = 10;
/// The newest hour and a half, as single samples, about 70 a second.
constexpr store::Limits kLimits{.exact_budget_bytes = 768U << 10};

constexpr ProcessId kCheckout{4242, 90'000};
constexpr ProcessId kHostile{777, 500};
constexpr ProcessId kMirrored{778, 501};
constexpr ProcessId kJava{31'337, 70'000};
constexpr ProcessId kSleepy{600, 400};
constexpr ProcessId kDeep{5150, 80'000};
constexpr ProcessId kBatchd{8999, 60'000};
constexpr ProcessId kBackup{2222, 30'000};
constexpr ProcessId kMake{2300, 31'000};

/// price_with_tax() at the line where it searches: an address of its own, with the same name.
constexpr const char* kPriceAtSearch = "price_with_tax(Item const&) at its search";

struct Line {
  std::string_view function;
  const char* file;
  std::uint32_t line;
};
constexpr std::array<Line, 5> kLines{{{"price_with_tax(Item const&)", "/srv/checkout/cart.cc", 88},
                                      {kPriceAtSearch, "/srv/checkout/cart.cc", 93},
                                      {"json::Parser::string()", "/srv/checkout/json.cc", 204},
                                      {"Session::lock()", "/srv/checkout/session.cc", 31},
                                      {"com.shop.Stock.scan", "Stock.java", 57}}};

double always(int /*second*/) { return 1; }

/// Visitors come in waves of some minutes, and once all together for two seconds.
double visitors(int second) {
  if (second >= kBurst && second < kBurst + 2) return 14;
  return 1 + 0.45 * std::sin(second / 53.0) + 0.25 * std::sin(second / 11.0);
}

double burst_only(int second) { return second >= kBurst && second < kBurst + 2 ? 60 : 1; }

double every_tenth(int second) { return second % 10 == 0 ? 8 : 0.4; }

/// The time before: the load of a working day's last hours.
double afternoon(int second) { return 1.2 + 0.6 * std::sin(second / 900.0) + 0.3 * std::sin(second / 140.0); }

}  // namespace

MachineCode FixtureSources::code_at(const CodeQuestion& question) {
  if (question.module == kKernelModule) return {"the kernel's code is in no file that is read", {}};
  MachineCode code;
  for (const std::uint64_t offset : question.offsets) {
    constexpr std::uint64_t kAddress = 0x401000;
    code.functions.push_back(
        {offset - 1,
         3,
         kAddress + offset - 1,
         {{offset - 1, "\x55", "push %rbp"}, {offset, "\x90", "nop"}, {offset + 1, "\xc3", "ret"}}});
  }
  return code;
}

SourceFile FixtureSources::source_file(const SourceQuestion& question) {
  if (question.file != "/srv/checkout/cart.cc") return {"No such file or directory"};
  std::string text;
  for (int line = 1; line <= 120; ++line) {
    text += line % 7 == 0 ? "\n" : "\treturn price(" + std::to_string(line) + ");  // <b>&amp;</b>\n";
  }
  return {{}, std::move(text), true};
}

CpuAccount FixtureSources::machine_cpu(const store::WallWindow& window) const {
  std::uint64_t samples = 0;
  for (std::int64_t second = window.from.ns / kNsPerSecond; second * kNsPerSecond < window.to.ns; ++second) {
    const std::int64_t place = second - first_second;
    if (place >= 0 && place < std::ssize(samples_by_second)) {
      samples += samples_by_second[static_cast<std::size_t>(place)];
    }
  }
  return {samples * static_cast<std::uint64_t>(kPeriodNs) / 997 * 1000, {}};
}

/// The thread that holds the lock.
constexpr const char* kHolder = "worker-3";

std::vector<std::shared_ptr<const store::InlineChain>> WaitNamer::name(std::span<const Frame> frames) {
  std::vector<std::shared_ptr<const store::InlineChain>> chains = others_.name(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::optional<store::WaitReason> reason = store::wait_reason_in(frames[i]);
    const std::optional<store::HolderFrame> holder = store::holder_in(frames[i]);
    if (!reason && !holder) continue;
    const std::string name = reason ? std::string(name_of(*reason))
                                    : "held by " + std::string(kHolder) + " (" + std::to_string(holder->tid) + ")";
    chains[i] =
        std::make_shared<store::InlineChain>(store::InlineChain{{"[" + name + "]", "", store::FrameKind::kKernel, ""}});
  }
  return chains;
}

FixtureHistory::FixtureHistory() : sources_(kLimits, kHistory * kNsPerSecond) {
  now_s_ = -kHistory;
  sources_.first_second = FakeSources::kNowNs / kNsPerSecond - kHistory;
  sources_.samples_by_second.resize(kHistory + kFuture);
  add_services();
  add_past();
  add_hostile();
  add_batches();
  add_waits();
  name_kinds();
  sources_.health_.has_waits = true;
  sources_.running_[kCheckout.pid] = ::getuid();
  replay(-kHistory, 0);
  // An ended process is not kept until samples name it.
  for (const store::ProcessInfo& info : known_) sources_.store_.update_process(info);
}

void FixtureHistory::add_services() {
  know(kCheckout, "checkout-api", "checkout.service");
  const Names request{"_start", "main", "Server::run()", "Server::handle(Request const&)"};
  const auto serve = [&](const Names& below, std::uint64_t total, Load more = {}) {
    Names names = request;
    names.insert(names.end(), below.begin(), below.end());
    Load load = std::move(more);
    load.process = kCheckout;
    load.comm = "checkout-api";
    load.threads = 4;
    load.frames = sources_.frames_of(names);
    load.total = total;
    load.from = kRecent;
    if (!load.weight) load.weight = visitors;
    add(load);
    // The same mixture before and after it.
    load.truncation.reset();
    load.weight = afternoon;
    load.from = -kHistory;
    load.to = kRecent;
    load.total = total * 9;
    add(load);
    load.weight = always;
    load.from = 0;
    load.to = kFuture;
    load.total = total * 4;
    add(load);
  };
  const std::string rates = "std::map<std::string, Rate>::find(std::string const&)";
  serve({"Cart::total() const", "price_with_tax(Item const&)"}, 4200);
  serve({"Cart::total() const", kPriceAtSearch, rates}, 2100, {.weight = burst_only});
  serve({"Cart::total() const"}, 300);
  serve({"json::parse(std::string_view)", "json::Parser::object()", "json::Parser::string()"}, 1300);
  serve({"json::parse(std::string_view)", "json::Parser::object()"}, 500);
  // Answers are written at the same time, twice a second.
  serve({"write", "entry_SYSCALL_64", "ksys_write", "vfs_write", "tcp_sendmsg", "tcp_write_xmit", "__tcp_transmit_skb"},
        900, {.phase_from_ms = 240, .phase_to_ms = 330});
  serve({"read", "entry_SYSCALL_64", "ksys_read", "vfs_read", "copy_page_to_iter"}, 500,
        {.phase_from_ms = 740, .phase_to_ms = 830});
  serve({"clock_gettime", "__vdso_clock_gettime"}, 200);
  serve({"[libvendor.so+0x1a20]"}, 250);
  for (int i = 0; i < 40; ++i) serve({"Plugin<" + std::to_string(i) + ">::visit(Node const&)"}, 4);
  add({.process = kCheckout,
       .comm = "checkout-api",
       .threads = 4,
       .frames = {{kFirstFreeModule, 3}},
       .total = 60,
       .from = kRecent,
       .truncation = store::Truncation::kDepthLimit});

  know(kJava, "java", "");
  const auto java = [&](const Names& names, std::uint64_t total, const Weight& weight, int phase_from_ms,
                        int phase_to_ms) {
    for (const auto& [from, to, times] : {std::tuple{kRecent, 0, 1}, {-kHistory, kRecent, 10}, {0, kFuture, 4}}) {
      add({.process = kJava,
           .comm = "java",
           .threads = 2,
           .frames = sources_.frames_of(names),
           .total = total * static_cast<std::uint64_t>(times),
           .from = from,
           .to = to,
           .phase_from_ms = phase_from_ms,
           .phase_to_ms = phase_to_ms,
           .weight = weight});
    }
  };
  java({"start_thread", "JavaThread::run()", "com.shop.Stock.reserve", "com.shop.Stock.scan"}, 2500, always, 0, 400);
  java({"start_thread", "GCTaskThread::run()"}, 600, every_tenth, 600, 900);

  know(kDeep, "recursive", "app-demo-77.scope");
  Names recursion{"main"};
  for (int depth = 0; depth < 300; ++depth) recursion.push_back(depth % 2 == 0 ? "even(int)" : "odd(int)");
  add({.process = kDeep,
       .comm = "recursive",
       .frames = sources_.frames_of(recursion),
       .total = 400,
       .from = -600,
       .to = -300});
  add({.process = kDeep,
       .comm = "recursive",
       .frames = sources_.frames_of({"main", "even(int)"}),
       .total = 100,
       .from = -600,
       .to = -300});
  know(kSleepy, "sleepy", "sleepy.service");
}

void FixtureHistory::add_past() {
  know(kBackup, "backup", "backup.service", -2400);
  const auto backup = [&](const Names& names, std::uint64_t total) {
    add({.process = kBackup,
         .comm = "backup",
         .frames = sources_.frames_of(names),
         .total = total,
         .from = -3600,
         .to = -2400});
  };
  backup({"main", "pack(Block&)", "ZSTD_compressBlock"}, 30'000);
  backup({"main", "store(Block&)", "write", "entry_SYSCALL_64", "ksys_write", "vfs_write"}, 52'000);

  know(kMake, "make", "user@1000.service", -7000);
  add({.process = kMake,
       .comm = "make",
       .frames = sources_.frames_of({"main", "new_job"}),
       .total = 900,
       .from = -8200,
       .to = -7000});
  for (int i = 0; i < 12; ++i) {
    const ProcessId compiler{2301 + i, 31'100 + static_cast<std::uint64_t>(i)};
    know(compiler, "cc1plus", "user@1000.service", -8100 + 90 * (i + 1));
    add({.process = compiler,
         .comm = "cc1plus",
         .frames = sources_.frames_of({"main", "toplev::main(int, char**)", "do_compile()", "c_parse_file()"}),
         .total = 16'000,
         .from = -8200 + 90 * i,
         .to = -8100 + 90 * (i + 1)});
  }
}

void FixtureHistory::add_hostile() {
  // Names that would be markup, or would reorder their neighbours, if they were not shown as text.
  know(kHostile, "<img onerror=x>", "<b>evil<b>.service");
  add({.process = kHostile,
       .comm = "<img onerror=x>",
       .frames = sources_.frames_of(
           {"main", "<script>alert(1)</script>", "\"quoted\" & 'more';", "line\nbreak", "bad \xff utf-8"}),
       .total = 700,
       .from = kRecent});
  know(kMirrored, "\u202Egnp.exe", "");
  add({.process = kMirrored,
       .comm = "\u202Egnp.exe",
       .frames = sources_.frames_of({"main", "\u202Ereversed\u202C", std::string(10'000, 'x')}),
       .total = 350,
       .from = kRecent});
}

void FixtureHistory::add_batches() {
  know(kBatchd, "batchd", "batch.service");
  for (int i = 0; i < 60; ++i) {
    const ProcessId id{9000 + i, 95'000};
    const std::string comm = "batch-" + std::to_string(i);
    know(id, comm, "batch.service", kRecent + 15 * (i + 1));
    add({.process = id,
         .comm = comm,
         .frames = sources_.frames_of({"main", "work"}),
         .total = static_cast<std::uint64_t>(i) + 1,
         .from = kRecent + 15 * i,
         .to = kRecent + 15 * (i + 1)});
  }
}

void FixtureHistory::add(const Load& load) {
  Load added = load;
  if (!added.weight) added.weight = always;
  for (int second = added.from; second < added.to; ++second) added.weight_sum += added.weight(second);
  loads_.push_back(std::move(added));
}

void FixtureHistory::know(const ProcessId& id, const std::string& comm, const std::string& unit,
                          std::optional<int> ended) {
  const auto at = [](int second) { return WallTime{FakeSources::kNowNs + second * kNsPerSecond}; };
  store::ProcessInfo info{id, comm, "/usr/bin/" + comm, 0, at(-kHistory), {}};
  if (ended) info.ended = at(*ended);
  info.uid = unit.starts_with("user@") || unit.ends_with(".scope") ? 1000U : 33U;
  info.command_line = "/usr/bin/" + comm + " --config /etc/" + comm + ".conf";
  info.unit = unit;
  info.cgroup = unit.empty() ? "/" : "/system.slice/" + unit;
  if (id == kJava) {
    info.container = "3f1c9a0b7d2e4c5f8a6b1d0e9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1c0b";
    info.cgroup = "/system.slice/docker-" + info.container + ".scope";
    info.command_line = "java -Xmx2g -jar /srv/stock.jar";
  }
  if (id == kDeep) {
    info.container = "stage-7";
    info.cgroup = "/lxc.payload.stage-7/" + unit;
  }
  if (id == kHostile) info.command_line = "/usr/bin/evil '<script>alert(2)</script>' " + std::string(3000, 'y');
  const ProcessId* parent = nullptr;
  if (id.pid >= 9000 && id.pid < 9060) parent = &kBatchd;
  if (comm == "cc1plus") parent = &kMake;
  if (parent != nullptr) {
    info.parent_pid = parent->pid;
    info.parent_start_ticks = parent->start_ticks;
  }
  sources_.store_.update_process(info);
  known_.push_back(std::move(info));
}

/// Names come from the store's content. Each frame's kind and line follow from its name.
void FixtureHistory::name_kinds() {
  std::set<std::uint64_t> kernel_offsets;
  for (auto& [offset, frame] : sources_.namer_.names) {
    const std::string& name = frame.name;
    const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (starts("entry_SYSCALL") || starts("ksys_") || starts("vfs_") || starts("tcp_") || starts("__tcp") ||
        starts("copy_page")) {
      frame.module = "[kernel]";
      frame.kind = store::FrameKind::kKernel;
      kernel_offsets.insert(offset);
    } else if (starts("__vdso")) {
      frame.module = "[vdso]";
      frame.kind = store::FrameKind::kVdso;
    } else if (starts("com.shop")) {
      frame.module = "";
      frame.kind = store::FrameKind::kJit;
    } else if (starts("[libvendor.so")) {
      frame.module = "libvendor.so";
      frame.kind = store::FrameKind::kUnnamed;
      frame.offset = 0x1a20;
      frame.reason = "the file has no symbols";
    } else if (starts("write") || starts("read") || starts("clock_") || starts("start_thread")) {
      frame.module = "libc.so.6";
    }
    const auto line =
        std::find_if(kLines.begin(), kLines.end(), [&](const Line& each) { return each.function == name; });
    if (line != kLines.end()) {
      frame.file = line->file;
      frame.line = line->line;
    }
    if (name == kPriceAtSearch) frame.name = kLines.front().function;
  }
  for (Load& load : loads_) {
    for (Frame& frame : load.frames) {
      if (kernel_offsets.contains(frame.offset)) frame.module = kKernelModule;
    }
  }
}

void FixtureHistory::replay(int from, int to) {
  struct Due {
    std::int64_t offset_ns = 0;
    const Load* load = nullptr;
    std::uint64_t number = 0;
  };
  std::vector<Due> due;
  for (int second = from; second < to; ++second) {
    if (second == kSleepFrom) sources_.clock_.step_wall_ns((kSleepTo - kSleepFrom) * kNsPerSecond);
    const bool asleep = second >= kSleepFrom && second < kSleepTo;
    due.clear();
    for (Load& load : loads_) {
      if (second < load.from || second >= load.to) continue;
      const auto share = [&] { return load.weight_so_far / load.weight_sum * static_cast<double>(load.total); };
      const auto before = static_cast<std::uint64_t>(share());
      load.weight_so_far += load.weight(second);
      const std::uint64_t after = second + 1 == load.to ? load.total : static_cast<std::uint64_t>(share());
      if (asleep) continue;
      const std::int64_t phase_ns = (load.phase_to_ms - load.phase_from_ms) * kNsPerMs;
      for (std::uint64_t number = before; number < after; ++number) {
        // Multiples of the golden ratio spread evenly, and differently in each second.
        const double place =
            static_cast<double>(number) * 0.6180339887 + static_cast<double>(&load - loads_.data()) * 0.7548776662;
        const double part = place - std::floor(place);
        due.push_back({load.phase_from_ms * kNsPerMs + static_cast<std::int64_t>(part * static_cast<double>(phase_ns)),
                       &load, number});
      }
    }
    if (asleep) continue;
    std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
      return a.offset_ns != b.offset_ns ? a.offset_ns < b.offset_ns : a.load < b.load;
    });
    const MonotonicTime start = sources_.clock_.monotonic();
    for (const Due& sample : due) {
      const Load& load = *sample.load;
      const auto thread = static_cast<std::int32_t>(sample.number % static_cast<std::uint64_t>(load.threads));
      const std::string comm = thread == 0 ? load.comm : "worker-" + std::to_string(thread);
      sources_.store_.add(
          {{start.ns + sample.offset_ns}, load.process, load.process.pid + thread, comm, load.frames, load.truncation});
    }
    if (second >= kRecent && second % kVisitEvery == 0) visit_threads(second);
    const std::int64_t place = std::int64_t{second} + kHistory;
    sources_.samples_by_second[static_cast<std::size_t>(place)] = due.size();
    if (second == kLossAt) sources_.store_.add_lost(store::Loss::kRingFull, 5000, start);
    if (second == -10) sources_.store_.add_lost(store::Loss::kRingFull, 12, start);
    sources_.clock_.advance_ns(kNsPerSecond);
    sources_.store_.advance(sources_.clock_.monotonic());
  }
  now_s_ = to;
}

void FixtureHistory::add_waits() {
  const auto know_wait = [&](store::WaitReason reason, const Names& functions) {
    Names names{"_start", "main", "Server::run()"};
    names.insert(names.end(), functions.begin(), functions.end());
    waits_.push_back(sources_.frames_of(names));
    if (reason == store::WaitReason::kLock) waits_.back().push_back(store::holder_frame(1, kCheckout.pid + 3));
    waits_.back().push_back(store::wait_frame(reason));
  };
  using store::WaitReason;
  know_wait(WaitReason::kPoll, {"Pool::next()", "epoll_wait"});
  know_wait(WaitReason::kLock, {"Session::lock()", "pthread_mutex_lock"});
  know_wait(WaitReason::kDisk, {"Journal::commit()", "fsync"});
  know_wait(WaitReason::kNetwork, {"Payment::charge()", "recv"});
}

void FixtureHistory::visit_threads(int second) {
  const bool is_odd = second / kVisitEvery % 2 != 0;
  const std::array<std::size_t, 4> wait_of{0, 1, is_odd ? 2U : 1U, 3};
  const MonotonicTime now = sources_.clock_.monotonic();
  for (std::int32_t thread = 0; thread < std::ssize(wait_of); ++thread) {
    const std::string comm = thread == 0 ? "checkout-api" : "worker-" + std::to_string(thread);
    store::WaitSample visit;
    visit.sample = {now, kCheckout, kCheckout.pid + thread, comm, waits_[wait_of[static_cast<std::size_t>(thread)]],
                    {}};
    visit.last_seen = {now.ns - 4 * kNsPerSecond};
    visit.waited_ns = 3 * kNsPerSecond;
    sources_.store_.add_wait(visit);
  }
  sources_.store_.set_waits_seen(now);
}

void FixtureHistory::go_on(int seconds) { replay(now_s_, std::min(now_s_ + seconds, kFuture)); }

}  // namespace flamed::api
