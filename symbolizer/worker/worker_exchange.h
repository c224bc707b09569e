// SPDX-License-Identifier: Apache-2.0
//
// WorkerExchange: the daemon's side of one request, from sending it to the last byte of the answer. One thread. No call
// waits noticeably longer than the deadline, whatever the child does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "symbolizer/ipc/deadline.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/worker/request.h"
#include "symbolizer/worker/worker_process.h"

namespace flamed::symbolizer {

class WorkerExchange final : public ByteSource {
 public:
  /// Waits end once `stop` is readable. -1: never.
  WorkerExchange(WorkerProcess::Ends ends, Deadline deadline, int stop)
      : ends_(std::move(ends)), deadline_(deadline), stop_(stop) {}

  /// Code ETIMEDOUT: the deadline is over; ECANCELED: `stop`. Other errors: the other end is closed.
  Status send(const RequestHead& head, std::span<const int> fds, const WireWriter& payload);
  Status read(std::span<std::byte> to) override;

  /// Nothing has arrived that was not read. More would be no answer to anything.
  [[nodiscard]] bool has_read_all() const { return arrived_.empty(); }
  /// For the next request to the same child.
  [[nodiscard]] WorkerProcess::Ends take_ends() { return std::move(ends_); }

  /// How a request ended without a complete answer.
  struct Ending {
    enum class Kind : std::uint8_t {
      kCancelled,   ///< by `stop`
      kTimedOut,    ///< a child still works on it; it ends with this object
      kNotStarted,  ///< the deadline is over and the spawner has not started a child
      kRefused,     ///< the spawner could not start a child; `detail` is an errno
      kEnded,       ///< the child has exited, `detail` is the status as of wait(2)
      kLost,        ///< the spawner itself is gone
    };
    Kind kind;
    std::int32_t detail = 0;
  };
  [[nodiscard]] Ending ending();

 private:
  Status wait(short events);
  [[nodiscard]] bool is_cancelled() const;

  WorkerProcess::Ends ends_;
  const Deadline deadline_;
  const int stop_;
  /// Most answers consist of many small values: a system call for each would cost more than all else.
  std::array<std::byte, 16 * 1024> buffer_{};
  std::span<const std::byte> arrived_;  ///< in the buffer, not read yet
};

}  // namespace flamed::symbolizer
