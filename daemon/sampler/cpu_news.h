// SPDX-License-Identifier: Apache-2.0
//
// CpuNews: the kernel's notifications of CPUs that went offline or came online.
//
// A netlink socket (NETLINK_KOBJECT_UEVENT); a filter in the kernel drops the messages of all other devices, so that
// they wake no thread. Belongs to one thread.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

class CpuNews {
 public:
  /// Fails if netlink is not available: then the CPUs have to be polled.
  static Result<CpuNews> open();

  /// Readable when there are messages.
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Numbers of the CPUs that have come or gone since the last call, in that order, once for each change. Empty if
  /// messages were lost: then it may be any CPU.
  [[nodiscard]] std::optional<std::vector<int>> take();

 private:
  explicit CpuNews(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

/// The CPU of a message; empty if it is about something else. Source: kobject_uevent_env() in lib/kobject_uevent.c of
/// the kernel: "online@/devices/system/cpu/cpu3", then a NUL and variables.
std::optional<int> parse_cpu_news(std::string_view message);

}  // namespace flamed::daemon
