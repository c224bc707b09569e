// SPDX-License-Identifier: Apache-2.0
//
// CpuNews: what the kernel tells by itself of CPUs that went offline or came online, at once and without being asked.
//
// A netlink socket (NETLINK_KOBJECT_UEVENT); a filter in the kernel drops the messages of all other devices, so that
// they wake nobody. Belongs to one thread.
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
  /// Fails where netlink is out of reach: then the CPUs have to be looked at now and then.
  static Result<CpuNews> open();

  /// Readable when there are messages.
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Numbers of the CPUs that have come or gone since the last call, in that order and as often as they did. Empty
  /// where messages were lost: then it may be any.
  [[nodiscard]] std::optional<std::vector<int>> take();

 private:
  explicit CpuNews(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

/// The CPU that one message is about; empty where it is about something else. Source: kobject_uevent_env() in
/// lib/kobject_uevent.c of the kernel: "online@/devices/system/cpu/cpu3", then a NUL and variables.
std::optional<int> parse_cpu_news(std::string_view message);

}  // namespace flamed::daemon
