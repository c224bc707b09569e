// SPDX-License-Identifier: Apache-2.0
//
// Any text as the configuration file, and as the values in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/units.h"
#include "daemon/config/config.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  flamed::daemon::Config config;
  const flamed::Status applied = flamed::daemon::apply_json(text, config);
  require(applied.ok() || !applied.error().message().empty());
  require(config.frequency_hz >= 1 && config.frequency_hz <= 1000);
  require(config.retention_ns >= flamed::kNsPerMinute);
  require(config.memory_budget_bytes >= 8U << 20);
  for (const flamed::api::ListenAddress& address : config.listen) {
    require(address.is_unix() || (!address.host.empty() && address.port != 0));
  }

  const auto listen = flamed::api::parse_listen_address(text);
  require(!listen.ok() || flamed::api::parse_listen_address(flamed::api::to_string(*listen)).ok());
  if (const auto ns = flamed::parse_duration_ns(text); ns.ok()) {
    require(*ns >= 0 && flamed::parse_duration_ns(flamed::format_duration(*ns)).value() == *ns);
  }
  if (const auto bytes = flamed::parse_size_bytes(text); bytes.ok()) {
    require(flamed::parse_size_bytes(flamed::format_size(*bytes)).value() == *bytes);
  }
  return 0;
}
