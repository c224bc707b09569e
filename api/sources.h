// SPDX-License-Identifier: Apache-2.0
//
// What the API needs from the rest of the daemon. The API declares it; the daemon implements it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/machine_code.h"
#include "base/pressure.h"
#include "base/source_text.h"
#include "store/model/process_info.h"
#include "store/model/profile.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::api {

/// The health of one part of the daemon.
struct Component {
  std::string name;  ///< "sampler", "reader", "side_band", "store", "symbols"
  bool ok = true;
  std::string detail;  ///< a sentence: its state, or what is wrong and what to do
};

struct Health {
  bool healthy = true;  ///< false makes /healthz answer 503
  bool ready = true;    ///< false makes /readyz answer 503
  std::vector<Component> components;
  bool has_waits = false;            ///< waiting time is measured
  std::optional<WallTime> oldest{};  ///< start of the oldest minute that answers may have, in memory or on disk
};

struct Metric {
  enum class Type : std::uint8_t { kCounter, kGauge };
  struct Value {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
  };
  std::string name;  ///< Prometheus style: flamed_samples_total
  std::string help;
  Type type = Type::kCounter;
  std::vector<Value> values;
};

/// CPU time in the kernel's own accounts.
struct CpuAccount {
  std::optional<std::uint64_t> ns{};  ///< empty if it is not known
  std::string reason{};               ///< then the reason, a phrase
};

/// For how long the threads of programs existed, all together.
struct ThreadTime {
  std::optional<std::uint64_t> ns{};  ///< empty if it is not known
  std::uint64_t error_ns = 0;         ///< by how much it may be wrong
  std::string reason{};               ///< why it is not known, a phrase
};

/// A file with minutes of a host, in the place of this one.
struct HistoryFile {
  std::string name;  ///< without its folder
  std::string host;  ///< safe to print; empty: not known
  store::WallWindow stretch;
};

/// Waiting is to be measured exactly from now on.
struct OffCpuRequest {
  std::vector<std::int32_t> processes{};  ///< pids
  std::int64_t length_ns = 0;
  WallTime asked{};         ///< when the request arrived: names the measurement
  bool is_limited = false;  ///< for a user who does not see everything
  bool with_wakers = false;
  std::optional<std::uint32_t> only_user{};  ///< wakers of other users have no names
};

/// Why it is not.
struct OffCpuRefusal {
  enum class Why : std::uint8_t {
    kBusy,            ///< another time
    kUnavailable,     ///< not on this machine
    kUnknownProcess,  ///< or another user's
  };
  Why why = Why::kUnavailable;
  std::string reason{};      ///< a sentence without its full stop
  std::int32_t process = 0;  ///< with kUnknownProcess
};

struct OffCpuAnswer {
  store::Snapshot snapshot;  ///< of its waiting time alone
  store::WallWindow window;
  std::vector<std::string> warnings{};
  std::vector<std::string> wakers{};  ///< names of frames: store::waker_frame()
};

/// Every function may be called from any HTTP thread at once.
class Sources {
 public:
  virtual ~Sources() = default;
  /// Waits until all samples up to a second ago are stored, and returns a snapshot with them.
  [[nodiscard]] virtual store::Snapshot await_snapshot() const = 0;
  /// The snapshot, with what is on disk and not in it of the windows, as far as `detail` needs it. As it is if there is
  /// nothing.
  [[nodiscard]] virtual store::Snapshot with_history(const store::Snapshot& snapshot,
                                                     std::span<const store::WallWindow> /*windows*/,
                                                     const store::Detail& /*detail*/) const {
    return snapshot;
  }
  /// Waits likewise. The number changes when anything is stored. A snapshot taken later has at least the samples of
  /// this revision.
  [[nodiscard]] virtual std::uint64_t await_revision() const = 0;
  [[nodiscard]] virtual store::FrameNamer& namer() = 0;
  /// With inlined calls and lines only where they are known already, for next to nothing.
  [[nodiscard]] virtual store::FrameNamer& quick_namer() { return namer(); }
  /// Machine code of a module that stored stacks have.
  [[nodiscard]] virtual MachineCode code_at(const CodeQuestion& /*question*/) {
    return {"a file of minutes has no programs", {}};
  }
  /// A source file, if its reader could trace the process and read the file himself.
  [[nodiscard]] virtual SourceFile source_file(const SourceQuestion& /*question*/) {
    return {"a file of minutes has no sources"};
  }
  [[nodiscard]] virtual Health health() const = 0;
  [[nodiscard]] virtual std::vector<Metric> metrics() const = 0;
  [[nodiscard]] virtual const Clock& clock() const = 0;
  /// If the answers are from a file, nothing comes after its end, which is where the clock stands.
  [[nodiscard]] virtual std::optional<HistoryFile> file() const { return std::nullopt; }
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual double frequency_hz() const = 0;
  /// When the daemon began to sample.
  [[nodiscard]] virtual WallTime started() const = 0;
  /// CPUs that are sampled.
  [[nodiscard]] virtual std::size_t cpus() const = 0;
  /// The owner of the process that has this pid now, root if the process is not dumpable; empty if there is none. A
  /// process that was never sampled is in no snapshot.
  [[nodiscard]] virtual std::optional<std::uint32_t> user_of(std::int32_t pid) const = 0;
  /// CPU time that a program of flamed's own, another than the daemon, has used since it said so last.
  virtual void spend(std::int64_t /*cpu_ns*/) {}
  /// Begins to measure the waits of some processes exactly. Empty: it has begun.
  [[nodiscard]] virtual std::optional<OffCpuRefusal> begin_off_cpu(const OffCpuRequest& /*request*/) {
    return OffCpuRefusal{OffCpuRefusal::Why::kUnavailable, "there are no threads to measure", 0};
  }
  /// Who asked then does not wait any more. Does not wait.
  virtual void cancel_off_cpu(WallTime /*asked*/) {}
  /// What was measured for the request that arrived then. Empty: nothing was.
  [[nodiscard]] virtual std::optional<OffCpuAnswer> take_off_cpu(WallTime /*asked*/) { return std::nullopt; }
  /// Minutes that began in the window in which the machine was under pressure, oldest first.
  [[nodiscard]] virtual std::vector<PressedMinute> pressed_minutes(const store::WallWindow& /*window*/) const {
    return {};
  }
  /// CPU time of all threads of the machine, or of one process, in the window.
  [[nodiscard]] virtual CpuAccount machine_cpu(const store::WallWindow& window) const = 0;
  [[nodiscard]] virtual CpuAccount process_cpu(const store::WallWindow& window,
                                               const store::ProcessInfo& process) const = 0;
  /// Of the machine, in the window.
  [[nodiscard]] virtual ThreadTime thread_time(const store::WallWindow& /*window*/) const {
    return {.reason = "waiting threads are not visited"};
  }
};

}  // namespace flamed::api
