// SPDX-License-Identifier: Apache-2.0
//
// Compares each kernel stack that flamed's program walks by the kernel's tables with bpf_get_stack()'s, under loads
// with system calls, faults, interrupts and changes of stacks.
#include "bpf/kernel_tables.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/handle.h"
#include "daemon/sampler/kernel_orc.h"
#include "daemon/sampler/perf_event.h"
#include "symbolizer/names/kernel_symbols.h"
#include "test/catch.h"
#include "test/kernel/walks/kernel_walk_check.h"
#include "test/support/running_daemon.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "test/kernel/kernel_walk_check.skel.h"
#pragma GCC diagnostic pop

namespace flamed::test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using Skeleton = Handle<kernel_walk_check*, kernel_walk_check::destroy>;

void detach(bpf_link* link) { ::bpf_link__destroy(link); }
using Link = Handle<bpf_link*, detach>;

/// One thread's load until the end.
using Work = std::function<void()>;

void read_files() {
  std::array<char, 65536> bytes{};
  for (const char* path : {"/bin/true", "/proc/self/smaps", "/proc/stat", "/sys/kernel/btf/vmlinux"}) {
    const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
    for (int i = 0; i < 64 && ::read(file.get(), bytes.data(), bytes.size()) > 0; ++i) {
    }
  }
}

void touch_memory() {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  ::munmap(memory, kBytes);
}

void start_programs() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  ::waitpid(child, nullptr, 0);
}

/// Sends packets to itself: they are received in the soft interrupt, on the interrupt stack.
class Packets {
 public:
  Packets() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address_);
    if (::bind(socket_.get(), address(), bytes) != 0 || ::getsockname(socket_.get(), address(), &bytes) != 0) {
      throw std::runtime_error("no socket on 127.0.0.1");
    }
  }
  void exchange() {
    std::array<char, 1400> bytes{};
    for (int i = 0; i < 100; ++i) {
      ::sendto(socket_.get(), bytes.data(), bytes.size(), 0, address(), sizeof(address_));
      ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    }
  }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }
  Fd socket_;
  sockaddr_in address_{};
};

void run_for(seconds duration, const std::vector<Work>& works) {
  const auto end = steady_clock::now() + duration;
  std::vector<std::jthread> threads;
  threads.reserve(works.size());
  for (const Work& work : works) {
    threads.emplace_back([&work, end] {
      while (steady_clock::now() < end) work();
    });
  }
}

kernel_walk_counts sum_of(const kernel_walk_check& program) {
  std::vector<kernel_walk_counts> of_cpus(static_cast<std::size_t>(::libbpf_num_possible_cpus()));
  const std::uint32_t zero = 0;
  if (::bpf_map_lookup_elem(::bpf_map__fd(program.maps.counts), &zero, of_cpus.data()) != 0) {
    throw std::runtime_error("reading the counts");
  }
  kernel_walk_counts sum{};
  for (const kernel_walk_counts& of_cpu : of_cpus) {
    sum.samples += of_cpu.samples;
    sum.equal += of_cpu.equal;
    sum.unequal += of_cpu.unequal;
    sum.beyond_text += of_cpu.beyond_text;
    sum.deep += of_cpu.deep;
    sum.unsupported += of_cpu.unsupported;
    sum.frames += of_cpu.frames;
    sum.walk_ns += of_cpu.walk_ns;
    sum.kernel_ns += of_cpu.kernel_ns;
  }
  return sum;
}

std::string text_of(const kernel_walk_check& program, symbolizer::KernelSymbols& symbols) {
  kernel_walk_example example{};
  const std::uint32_t zero = 0;
  ::bpf_map_lookup_elem(::bpf_map__fd(program.maps.examples), &zero, &example);
  std::ostringstream text;
  const auto list = [&](const char* who, const __u64* addresses, std::uint32_t count) {
    text << who << ":\n";
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto name = symbols.find(addresses[i]);
      text << "  " << std::hex << addresses[i] << std::dec << ' ' << (name ? name->name : "?") << '\n';
    }
  };
  list("our walk", example.walked_addresses, example.walked);
  list("bpf_get_stack()", example.kernels_addresses, example.kernels);
  return text.str();
}

/// The walk stays off if programs may not read kernel memory.
bool is_locked_down() {
  const Result<std::string> mode = read_file("/sys/kernel/security/lockdown", 256);
  return mode && mode->find("[confidentiality]") != std::string::npos;
}

TEST_CASE("kernel stacks that the program walks equal the kernel's own, and it walks most of them") {
  const SystemClock clock;
  symbolizer::KernelSymbols symbols(clock);
  const Result<flamed_kernel_orc> orc =
      daemon::find_kernel_orc([&](const std::vector<std::string_view>& names) { return symbols.addresses(names); });
  if (!orc || is_locked_down()) {
    WARN("SKIP kernel-unwind-tables: " << (orc ? "the kernel is locked down" : orc.error().message()));
    return;
  }

  Skeleton skeleton(kernel_walk_check::open());
  REQUIRE(skeleton);
  skeleton.get()->rodata_kernel_orc->kernel_orc = *orc;
  ::bpf_map__set_max_entries(skeleton.get()->maps.orc_blocks,
                             static_cast<std::uint32_t>(FLAMED_ORC_BLOCKS(orc->text_end - orc->text_start)));
  REQUIRE(kernel_walk_check::load(skeleton.get()) == 0);

  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 250'000;  // ns: each sample takes 20 us
  attributes.exclude_idle = 1;
  std::vector<Link> links;
  for (int cpu = 0; cpu < ::libbpf_num_possible_cpus(); ++cpu) {
    Result<Fd> timer = daemon::open_perf_event(attributes, cpu, "test");
    if (!timer && timer.error().code() == ENODEV) continue;
    REQUIRE(timer);
    links.emplace_back(::bpf_program__attach_perf_event(skeleton.get()->progs.check_walk, timer->get()));
    REQUIRE(links.back());
    static_cast<void>(timer->release());  // the link has it now
  }
  Packets packets;
  run_for(seconds(6), {read_files, touch_memory, start_programs, [&] { packets.exchange(); }});
  links.clear();

  const kernel_walk_counts counts = sum_of(*skeleton.get());
  std::ostringstream said;
  said << counts.samples << " kernel stacks, of " << counts.frames / std::max<__u64>(counts.equal, 1)
       << " frames: equal " << counts.equal << ", unequal " << counts.unequal << ", beyond the kernel's text "
       << counts.beyond_text << ", too deep " << counts.deep << ", rows not supported " << counts.unsupported
       << "; ns a stack: " << counts.walk_ns / std::max<__u64>(counts.equal, 1) << ", bpf_get_stack() "
       << counts.kernel_ns / std::max<__u64>(counts.equal, 1);
  bpf_prog_info info{};
  std::uint32_t bytes = sizeof(info);
  ::bpf_obj_get_info_by_fd(::bpf_program__fd(skeleton.get()->progs.check_walk), &info, &bytes);
  said << "; " << info.verified_insns << " instructions verified";
  WARN(said.str());
  INFO(text_of(*skeleton.get(), symbols));
  CHECK(counts.unequal == 0);
  CHECK(counts.samples > 1000);
  // File systems and drivers are modules on most hosts.
  CHECK(static_cast<double>(counts.equal) > 0.8 * static_cast<double>(counts.samples - counts.beyond_text));
}

TEST_CASE("the daemon reports whether its program or the kernel walks kernel stacks") {
  const SystemClock clock;
  symbolizer::KernelSymbols symbols(clock);
  const bool may_walk =
      !is_locked_down() && static_cast<bool>(daemon::find_kernel_orc(
                               [&](const std::vector<std::string_view>& names) { return symbols.addresses(names); }));
  const RunningDaemon daemon;
  const std::string said =
      may_walk ? "; kernel stacks by the kernel's own tables" : "; kernel stacks are walked by the kernel: ";
  CHECK(RunningDaemon::eventually(seconds(10) * patience(),
                                  [&] { return daemon.get("/healthz").body.find(said) != std::string::npos; }));
}

}  // namespace
}  // namespace flamed::test
