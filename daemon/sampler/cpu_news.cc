// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/cpu_news.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

namespace flamed::daemon {
namespace {

/// The kernel's own messages; udev's copies go to another group.
constexpr std::uint32_t kKernelGroup = 1;
/// A message has its variables after the path; they may be cut off.
constexpr std::size_t kMessageBytes = 256;

/// Passes messages that begin with "onli" or "offl": few devices but CPUs go online and offline.
Status attach_filter(const Fd& socket) {
  constexpr std::uint32_t kOnline = 0x6f6e6c69;
  constexpr std::uint32_t kOffline = 0x6f66666c;
  std::array<sock_filter, 5> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOnline, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOffline, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0) {
    return Error::from_errno("a filter for device events");
  }
  return {};
}

}  // namespace

std::optional<int> parse_cpu_news(std::string_view message) {
  message = message.substr(0, message.find('\0'));
  const std::size_t at = message.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view action = message.substr(0, at);
  if (action != "online" && action != "offline") return std::nullopt;
  constexpr std::string_view kCpu = "/devices/system/cpu/cpu";
  std::string_view path = message.substr(at + 1);
  if (!path.starts_with(kCpu)) return std::nullopt;
  path.remove_prefix(kCpu.size());
  int cpu = 0;
  const auto [end, problem] = std::from_chars(path.data(), path.data() + path.size(), cpu);
  if (problem != std::errc{} || end != path.data() + path.size() || cpu < 0) return std::nullopt;
  return cpu;
}

Result<CpuNews> CpuNews::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!socket) return Error::from_errno("a socket for device events");
  if (Status filtered = attach_filter(socket); !filtered) return std::move(filtered).error();
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error::from_errno("binding to device events");
  }
  return CpuNews(std::move(socket));
}

std::optional<std::vector<int>> CpuNews::take() {
  std::vector<int> cpus;
  bool were_lost = false;
  for (;;) {
    std::array<char, kMessageBytes> text{};
    sockaddr_nl sender{};
    socklen_t sender_size = sizeof(sender);
    const ssize_t size =
        ::recvfrom(socket_.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&sender), &sender_size);
    if (size < 0 && errno == ENOBUFS) {
      were_lost = true;
      continue;
    }
    if (size < 0) return were_lost ? std::nullopt : std::optional(std::move(cpus));
    if (sender.nl_pid != 0) continue;  // not the kernel
    if (const std::optional<int> cpu = parse_cpu_news({text.data(), static_cast<std::size_t>(size)})) {
      cpus.push_back(*cpu);
    }
  }
}

}  // namespace flamed::daemon
