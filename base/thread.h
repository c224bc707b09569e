// SPDX-License-Identifier: Apache-2.0
//
// Named threads.
#pragma once

#include <sys/prctl.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace flamed {

/// Starts `body(std::stop_token)` on a thread whose name (at most 15 bytes) shows in `top -H` and in flamed's own
/// flame graph. The destructor of the returned value requests a stop and joins the thread: declare it after what the
/// thread uses.
template <typename Body>
[[nodiscard]] std::jthread start_thread(std::string name, Body body) {
  return std::jthread([name = std::move(name), body = std::move(body)](std::stop_token stop) mutable {
    ::prctl(PR_SET_NAME, name.c_str());
    body(std::move(stop));
  });
}

inline void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait(lock, stop, [] { return false; });
}

}  // namespace flamed
