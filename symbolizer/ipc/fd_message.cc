// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/ipc/fd_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace flamed::symbolizer {
namespace {

struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
};

}  // namespace

Status send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return Error::from_errno("sendmsg");
  if (static_cast<std::size_t>(sent) != bytes.size()) return Error("sendmsg: cut short", EIO);
  return {};
}

Result<ReceivedMessage> receive_message(int socket, std::span<std::byte> to) {
  iovec data{to.data(), to.size()};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t received = 0;
  do {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return Error::from_errno("recvmsg");

  ReceivedMessage result;
  result.bytes = static_cast<std::size_t>(received);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      result.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) return Error("recvmsg: the message is too long", EMSGSIZE);
  return result;
}

}  // namespace flamed::symbolizer
