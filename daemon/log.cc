// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <spdlog/sinks/dup_filter_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

namespace flamed::daemon {
namespace {

constexpr std::chrono::seconds kRepeatPeriod{10};

}  // namespace

void start_logging(const std::string& level) {
  // systemd sets JOURNAL_STREAM where standard error goes to the journal; sd_journal_send() keeps the level.
  const bool journal = std::getenv("JOURNAL_STREAM") != nullptr && std::getenv("INVOCATION_ID") != nullptr;
  spdlog::sink_ptr sink;
  if (journal) {
    sink = std::make_shared<spdlog::sinks::systemd_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  }
  auto once = std::make_shared<spdlog::sinks::dup_filter_sink_mt>(kRepeatPeriod);
  once->add_sink(std::move(sink));
  auto logger = std::make_shared<spdlog::logger>("flamed", std::move(once));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace flamed::daemon
