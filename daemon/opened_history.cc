// SPDX-License-Identifier: Apache-2.0
#include "daemon/opened_history.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "api/server/server.h"
#include "archive/files/period_file.h"
#include "base/heap.h"
#include "daemon/file_sources.h"
#include "store/query/slot_selection.h"
#include "symbolizer/worker/sandbox.h"
#include "symbolizer/worker/unused_user.h"

namespace flamed::daemon {
namespace {

/// So that a daemon may have its own.
const api::ListenAddress kDefaultAddress{"127.0.0.1", 9091};
/// Cached between queries.
constexpr std::size_t kIndexBytes = std::size_t{64} << 20;
/// Of Linux: owns nothing, but may have processes.
constexpr uid_t kNobody = 65534;

Result<archive::Connection> open_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Error::from_errno("cannot open " + path);
  if (!S_ISREG(status.st_mode)) return Error("cannot open " + path + ": not a file");
  struct stat log {};
  if (::stat((path + "-wal").c_str(), &log) == 0 && log.st_size != 0) {
    return Error(path +
                 " is being written: its newest minutes are in another file. Copy what you want to see with "
                 "flamed --export FROM TO FILE, and open that");
  }
  return archive::connect_unread(path);
}

/// Of the process, forever.
Status give_up_rights() {
  uid_t user = ::getuid();
  if (user == 0) user = symbolizer::find_unused_user_of_host(static_cast<std::uint32_t>(::getpid())).value_or(kNobody);
  ::tzset();  // reads a file
  const symbolizer::Hello steps = symbolizer::give_up_rights(user, user);
  if (steps.own_user_error != 0) return Error::from_errno("cannot stop being root", steps.own_user_error);
  if (steps.no_capabilities_error != 0)
    return Error::from_errno("cannot drop capabilities", steps.no_capabilities_error);
  if (steps.outside_world_error != 0) {
    spdlog::warn("{}, so this process could open other files of uid {}",
                 Error::from_errno("no Landlock", steps.outside_world_error).message(), steps.uid);
  }
  return {};
}

}  // namespace

class OpenedHistory::Parts {
 public:
  explicit Parts(const std::string& path) : sources(path.substr(path.rfind('/') + 1), kIndexBytes) {}

  FileSources sources;
  std::unique_ptr<api::Server> server;
};

OpenedHistory::OpenedHistory(const Config& config, std::string path) : config_(config), path_(std::move(path)) {}

OpenedHistory::~OpenedHistory() = default;

std::optional<ExitStatus> OpenedHistory::start() {
  const auto refuse = [](const Error& error, ExitStatus status) {
    spdlog::critical("{}", error.message());
    return status;
  };
  Result<archive::Connection> connection = open_file(path_);
  if (!connection) return refuse(connection.error(), ExitStatus::kUsage);
  parts_ = std::make_unique<Parts>(path_);
  api::ServerOptions options;
  options.when_quiet = give_back_freed_memory;
  options.addresses = {kDefaultAddress};
  if (!config_.listen.empty()) options.addresses = config_.listen;
  const uid_t owner = ::getuid();
  options.owner = owner;
  bool is_bound = false;
  options.when_bound = [&]() -> Status {
    is_bound = true;
    if (Status given_up = give_up_rights(); !given_up) return given_up;
    const Status read = parts_->sources.read(std::move(*connection));
    return read ? read : Error(read.error()).with_context("cannot show " + path_);
  };
  Result<std::unique_ptr<api::Server>> server = api::Server::listen(std::move(options), parts_->sources);
  if (!server) return refuse(server.error(), is_bound ? ExitStatus::kUsage : ExitStatus::kCannotListen);
  parts_->server = std::move(*server);
  const archive::FileFacts& facts = parts_->sources.facts();
  spdlog::info("{}: {} minutes of {}, from {} to {}; on {} for {}", path_, facts.minutes,
               facts.host.empty() ? "an unknown host" : facts.host, store::to_text(facts.stretch.from),
               store::to_text(facts.stretch.to), parts_->server->addresses(),
               owner == 0 ? "root alone" : "you and root");
  return std::nullopt;
}

void OpenedHistory::run(const sigset_t& signals) {
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT) signal = ::sigwaitinfo(&signals, nullptr);
}

}  // namespace flamed::daemon
