// SPDX-License-Identifier: Apache-2.0
#include "api/socket/port_owner.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace flamed::api {
namespace {

constexpr std::string_view kListenState = "0A";
constexpr std::size_t kIpv4Digits = 8;
constexpr std::size_t kTableLimitBytes = 16U << 20;

template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t", start), line.size());
    words.push_back(line.substr(start, end - start));
    line.remove_prefix(end);
  }
}

std::optional<ListenRow> parse_row(std::string_view line) {
  // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...
  const std::vector<std::string_view> words = split_words(line);
  if (words.size() < 10 || words[3] != kListenState) return std::nullopt;
  const std::size_t colon = words[1].find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(words[1].substr(colon + 1), 16);
  const auto inode = parse_number<std::uint64_t>(words[9], 10);
  if (!port || !inode) return std::nullopt;
  return ListenRow{std::string(words[1].substr(0, colon)), *port, *inode};
}

bool is_unspecified(std::string_view address) { return address.find_first_not_of('0') == std::string_view::npos; }

bool holds_socket(const std::filesystem::path& fd_folder, const std::vector<std::string>& links) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fd_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    const std::string link = std::filesystem::read_symlink(entry->path(), unreadable).string();
    if (std::find(links.begin(), links.end(), link) != links.end()) return true;
  }
  return false;
}

}  // namespace

std::vector<ListenRow> parse_listening_sockets(std::string_view proc_net_tcp) {
  std::vector<ListenRow> sockets;
  while (!proc_net_tcp.empty()) {
    const std::size_t end = proc_net_tcp.find('\n');
    if (auto socket = parse_row(proc_net_tcp.substr(0, end))) sockets.push_back(std::move(*socket));
    if (end == std::string_view::npos) break;
    proc_net_tcp.remove_prefix(end + 1);
  }
  return sockets;
}

std::string proc_net_address(const sockaddr_storage& address) {
  std::array<std::uint32_t, 4> words{};
  std::size_t count = 0;
  if (address.ss_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    words[0] = ipv4.sin_addr.s_addr;
    count = 1;
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof ipv6);
    std::memcpy(words.data(), &ipv6.sin6_addr, sizeof words);
    count = words.size();
  }
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08X", words[i]);
    text += digits.data();
  }
  return text;
}

bool addresses_conflict(std::string_view wanted, std::string_view taken) {
  const bool wanted_ipv4 = wanted.size() == kIpv4Digits;
  const bool taken_ipv4 = taken.size() == kIpv4Digits;
  if (is_unspecified(taken) && (!taken_ipv4 || wanted_ipv4)) return true;
  if (is_unspecified(wanted) && (!wanted_ipv4 || taken_ipv4)) return true;
  return wanted == taken;
}

std::optional<PortOwner> find_port_owner(std::uint16_t port, std::string_view wanted_address,
                                         const std::string& proc_root) {
  std::vector<std::string> links;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    const auto text = read_file(proc_root + table, kTableLimitBytes);
    if (!text) continue;
    for (const ListenRow& socket : parse_listening_sockets(*text)) {
      if (socket.port == port && addresses_conflict(wanted_address, socket.address)) {
        links.push_back("socket:[" + std::to_string(socket.inode) + "]");
      }
    }
  }
  if (links.empty()) return std::nullopt;

  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc_root, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = parse_number<std::int32_t>(entry->path().filename().string(), 10);
    if (!pid || !holds_socket(entry->path() / "fd", links)) continue;
    auto comm = read_file((entry->path() / "comm").string(), 64);
    PortOwner owner{*pid, comm ? std::move(*comm) : std::string("a process")};
    if (!owner.comm.empty() && owner.comm.back() == '\n') owner.comm.pop_back();
    return owner;
  }
  return std::nullopt;
}

}  // namespace flamed::api
