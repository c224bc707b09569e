// SPDX-License-Identifier: Apache-2.0
#include "api/socket/socket_owners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace flamed::api {
namespace {

constexpr std::size_t kMappedPrefixBytes = 12;
/// An answer has about 200 bytes; unrequested attributes may follow.
constexpr std::size_t kAnswerBytes = 4096;
/// Answers to earlier, abandoned requests, before the expected one.
constexpr int kMostAnswers = 8;
/// The index of `lo`, the interface of loopback addresses: the same in every network namespace (loopback_net_init() of
/// the kernel), even if it was renamed.
constexpr std::uint32_t kLoopbackInterface = 1;

void put_address(const IpEndpoint& endpoint, bool ipv4, __be32 (&words)[4]) {
  const std::size_t skipped = ipv4 ? kMappedPrefixBytes : 0;
  std::memcpy(words, endpoint.address.data() + skipped, endpoint.address.size() - skipped);
}

IpEndpoint endpoint_of(const __be32 (&words)[4], __be16 port, std::uint8_t family) {
  IpEndpoint endpoint;
  endpoint.port = ntohs(port);
  if (family == AF_INET) {
    endpoint.address[10] = endpoint.address[11] = 0xff;
    std::memcpy(endpoint.address.data() + kMappedPrefixBytes, words, sizeof words[0]);
  } else {
    std::memcpy(endpoint.address.data(), words, sizeof words);
  }
  return endpoint;
}

/// Was it connected, and is it not closed on both sides?
bool is_connected(std::uint8_t state) {
  return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSE_WAIT;
}

template <typename T>
std::optional<T> take(std::span<const std::byte>& bytes) {
  if (bytes.size() < NLMSG_ALIGN(sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(NLMSG_ALIGN(sizeof(T)));
  return value;
}

}  // namespace

std::vector<std::byte> encode_owner_question(const TcpEnds& ends, std::uint32_t interface, std::uint32_t sequence) {
  nlmsghdr header{};
  inet_diag_req_v2 question{};
  header.nlmsg_len = NLMSG_LENGTH(sizeof question);
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_flags = NLM_F_REQUEST;
  header.nlmsg_seq = sequence;
  const bool ipv4 = is_ipv4(ends.client);
  question.sdiag_family = ipv4 ? AF_INET : AF_INET6;
  question.sdiag_protocol = IPPROTO_TCP;
  // The client's socket has the client's address as source and ours as destination.
  question.id.idiag_sport = htons(ends.client.port);
  question.id.idiag_dport = htons(ends.server.port);
  put_address(ends.client, ipv4, question.id.idiag_src);
  put_address(ends.server, ipv4, question.id.idiag_dst);
  question.id.idiag_if = interface;
  question.id.idiag_cookie[0] = question.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;

  std::vector<std::byte> bytes(header.nlmsg_len);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + NLMSG_HDRLEN, &question, sizeof question);
  return bytes;
}

std::optional<OwnedSocket> decode_owner(std::span<const std::byte> answer, const TcpEnds& ends,
                                        std::uint32_t sequence) {
  const auto header = take<nlmsghdr>(answer);
  if (!header || header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_seq != sequence) return std::nullopt;
  const auto found = take<inet_diag_msg>(answer);
  if (!found) return std::nullopt;
  if (found->idiag_family != AF_INET && found->idiag_family != AF_INET6) return std::nullopt;
  const IpEndpoint own = endpoint_of(found->id.idiag_src, found->id.idiag_sport, found->idiag_family);
  const IpEndpoint other = endpoint_of(found->id.idiag_dst, found->id.idiag_dport, found->idiag_family);
  if (own != ends.client || other != ends.server || !is_connected(found->idiag_state)) return std::nullopt;
  // inet_diag_msg_attrs_fill() and inet_twsk_diag_fill() of the kernel: a socket without a file has inode 0, and uid 0
  // even if it was another user's.
  if (found->idiag_inode == 0) return std::nullopt;
  return OwnedSocket{found->idiag_uid, std::uint64_t{found->id.idiag_cookie[1]} << 32 | found->id.idiag_cookie[0]};
}

Result<KernelSocketOwners> KernelSocketOwners::open() {
  Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!netlink) return Error::from_errno("cannot ask the kernel who owns sockets: netlink sock_diag");
  // Connected to the kernel, so that answers can only come from it.
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::connect(netlink.get(), reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) != 0) {
    return Error::from_errno("cannot ask the kernel who owns sockets: connect netlink");
  }
  return KernelSocketOwners(std::move(netlink));
}

Result<std::unique_ptr<SocketOwners>> open_kernel_socket_owners() {
  Result<KernelSocketOwners> opened = KernelSocketOwners::open();
  if (!opened) return std::move(opened).error();
  return std::unique_ptr<SocketOwners>(std::make_unique<KernelSocketOwners>(std::move(*opened)));
}

std::optional<uid_t> KernelSocketOwners::owner_of(const TcpEnds& ends) {
  const std::optional<OwnedSocket> anywhere = find(ends, 0);
  if (!anywhere || find(ends, kLoopbackInterface) != anywhere) return std::nullopt;
  return anywhere->uid;
}

std::optional<OwnedSocket> KernelSocketOwners::find(const TcpEnds& ends, std::uint32_t interface) {
  const std::uint32_t sequence = ++sequence_;
  const std::vector<std::byte> question = encode_owner_question(ends, interface, sequence);
  if (::send(netlink_.get(), question.data(), question.size(), 0) != static_cast<ssize_t>(question.size())) {
    return std::nullopt;
  }
  // The kernel answers within send(): an answer that is not there now will not come.
  for (int i = 0; i < kMostAnswers; ++i) {
    alignas(nlmsghdr) std::array<std::byte, kAnswerBytes> answer;
    const ssize_t count = ::recv(netlink_.get(), answer.data(), answer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    nlmsghdr header{};
    std::memcpy(&header, answer.data(), std::min(sizeof header, static_cast<std::size_t>(count)));
    if (header.nlmsg_seq != sequence) continue;
    return decode_owner(std::span(answer).first(static_cast<std::size_t>(count)), ends, sequence);
  }
  return std::nullopt;
}

}  // namespace flamed::api
