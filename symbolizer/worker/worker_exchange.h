// SPDX-License-Identifier: Apache-2.0
//
// WorkerExchange: the daemon's side of one request, from the question to the last byte of the answer. One thread.
// Whatever the child does, nothing here waits beyond the deadline by more than a moment.
#pragma once

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
  /// Once `stop` can be read from, nothing waits any more. -1: it never can.
  WorkerExchange(WorkerProcess::Ends ends, Deadline deadline, int stop)
      : ends_(std::move(ends)), deadline_(deadline), stop_(stop) {}

  /// Code ETIMEDOUT: the deadline is over; ECANCELED: `stop`. Other errors: nobody reads at the other end.
  Status send(const RequestHead& head, std::span<const int> fds, const WireWriter& payload);
  Status read(std::span<std::byte> to) override;

  /// What became of a request whose answer isn't whole.
  struct Ending {
    enum class Kind : std::uint8_t {
      kCancelled,   ///< by `stop`
      kTimedOut,    ///< a child works on it still; it ends when this object does
      kNotStarted,  ///< the deadline is over and the spawner hasn't begun
      kRefused,     ///< the spawner could not start a child; `detail` is an errno
      kEnded,       ///< the child's end, `detail` is the status as of wait(2)
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
};

}  // namespace flamed::symbolizer
