// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/walk_loader.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/sampler/kernel_orc.h"
#include "daemon/unwind/unwind_publisher.h"

namespace flamed::daemon {
namespace {

Result<flamed_kernel_orc> find_orc(symbolizer::KernelSymbols& kernel_symbols) {
  const auto addresses = [&](const std::vector<std::string_view>& names) { return kernel_symbols.addresses(names); };
  try {
    return find_kernel_orc(addresses);
  } catch (const std::exception& e) {
    return Error(e.what());  // no memory for the message
  }
}

}  // namespace

void load_walks(WalkPrograms& walks, symbolizer::KernelSymbols& kernel_symbols, bool by_tables, bool with_runtimes) {
  if (by_tables) {
    const Status loaded = walks.load_user_walk();
    if (!loaded) UnwindPublisher::log_no_tables(loaded.error().message());
  }
  if (by_tables && with_runtimes && walks.walks_by_tables()) {
    if (const Status loaded = walks.load_linked_walk(); !loaded)
      spdlog::warn("functions of managed runtimes are not shown: {}", loaded.error().message());
  }
  // It only makes samples cheaper, so it comes last.
  if (const Status loaded = walks.load_kernel_walk(find_orc(kernel_symbols)); !loaded) {
    spdlog::info("kernel stacks are walked by the kernel: {}", loaded.error().message());
  }
}

}  // namespace flamed::daemon
