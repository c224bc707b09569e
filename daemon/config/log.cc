// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/dup_filter_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "daemon/config/flood_filter.h"

namespace flamed::daemon {
namespace {

constexpr std::chrono::seconds kRepeatPeriod{10};

/// Whether standard error goes to the journal: systemd sets a variable with that file's "device:inode", which a child
/// with another standard error inherits, too.
bool writes_to_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

/// Writes the messages that a FloodFilter passes, and all debug messages.
class FloodSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FloodSink(spdlog::sink_ptr next) : sink_(std::move(next)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (message.level >= spdlog::level::info) {
      const std::string_view text(message.payload.data(), message.payload.size());
      const FloodFilter::Decision decision = filter_.admit(text, clock_.monotonic());
      if (!decision.write) return;
      if (decision.left_out != 0) {
        const std::string note = std::to_string(decision.left_out) + " messages like the next one were left out";
        sink_->log(spdlog::details::log_msg(message.logger_name, message.level, note));
      }
    }
    sink_->log(message);
  }
  void flush_() override { sink_->flush(); }

  const spdlog::sink_ptr sink_;
  const SystemClock clock_;
  FloodFilter filter_;
};

}  // namespace

void set_log_level(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

void start_logging(const std::string& level) {
  spdlog::sink_ptr sink;
  if (writes_to_journal()) {
    // The journal keeps the level of each line, which standard error would lose.
    sink = std::make_shared<spdlog::sinks::systemd_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto once = std::make_shared<spdlog::sinks::dup_filter_sink_mt>(kRepeatPeriod);
  once->add_sink(std::make_shared<FloodSink>(std::move(sink)));
  auto logger = std::make_shared<spdlog::logger>("flamed", std::move(once));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace flamed::daemon
