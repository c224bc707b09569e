// SPDX-License-Identifier: Apache-2.0
//
// The cost of entering modules into the unwind tables, by the number of modules there. Row counts are like those of a
// Debian system's files, tables are in plain memory. One JSON object on stdout.
//
//   tables_bench [modules]      (default 5000)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/unwind/unwind_publisher.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/unwind/fake_unwind_maps.h"

namespace flamed::bench {
namespace {

double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// 1,211 files of Debian 12 had 795 rows in the median, and 149,000 in one of a hundred: a log-normal distribution of
/// that width. Counts above 100,000 are cut, so that 5,000 modules fit into the default budget.
std::size_t draw_rows(std::mt19937_64& random) {
  std::lognormal_distribution<double> rows(std::log(795.0), 2.25);
  return static_cast<std::size_t>(std::clamp(rows(random), 8.0, 100'000.0));
}

/// About 60 bytes of code for each row, and rules that most files share.
unwinder::UnwindRows make_rows(std::size_t count, std::mt19937_64& random) {
  unwinder::UnwindRows rows;
  for (int i = 0; i < 60; ++i) {
    unwinder::Rule rule;
    rule.cfa = unwinder::CfaKind::kSpOffset;
    rule.cfa_offset = static_cast<std::int32_t>(8 + 8 * (i < 50 ? i : static_cast<int>(random() % 2000)));
    rule.ra_offset = -8;
    rows.rules.push_back(rule);
  }
  std::uint32_t offset = 0x1000;
  for (std::size_t i = 0; i < count; ++i) {
    offset += 4 + static_cast<std::uint32_t>(random() % 112);
    rows.rows.push_back({offset, unwinder::RuleId{static_cast<std::uint16_t>(random() % rows.rules.size())}});
  }
  return rows;
}

int run(std::size_t modules) {
  const ManualClock clock{MonotonicTime{1000 * kNsPerSecond}, WallTime{0}};
  const auto maps = std::make_unique<test::FakeUnwindMaps>();
  daemon::UnwindPublisher publisher(*maps, 128U << 20, clock);
  std::mt19937_64 random(1);
  nlohmann::json steps = nlohmann::json::array();
  std::size_t done = 0, all_rows = 0, refused = 0;
  double all_ns = 0;
  std::size_t step_rows = 0;
  double step_ns = 0;
  for (std::size_t until = std::max<std::size_t>(modules / 100, 1); done < modules;) {
    const unwinder::UnwindRows rows = make_rows(draw_rows(random), random);
    const double begin = cpu_ns();
    const auto outcome = publisher.publish_rows(ModuleId{static_cast<std::uint32_t>(1000 + done)}, rows);
    step_ns += cpu_ns() - begin;
    step_rows += rows.rows.size();
    refused += outcome == daemon::UnwindPublisher::Outcome::kDone ? 0 : 1;
    ++done;
    if (done < until && done < modules) continue;
    // The figures are for the modules since the last step, with all earlier ones in the tables.
    steps.push_back({{"modules", done}, {"ns_per_row", step_ns / static_cast<double>(step_rows)}});
    all_ns += std::exchange(step_ns, 0);
    all_rows += std::exchange(step_rows, 0);
    until = std::min(modules, until * 10 / 3 + 1);
  }
  const auto stats = publisher.stats();
  const nlohmann::json report = {{"modules", modules},
                                 {"rows", all_rows},
                                 {"refused", refused},
                                 {"rules", stats.rules},
                                 {"slab_bytes", stats.slab_bytes},
                                 {"milliseconds", all_ns / 1e6},
                                 {"microseconds_per_module", all_ns / 1e3 / static_cast<double>(modules)},
                                 {"steps", steps}};
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::bench

int main(int argc, char** argv) try {
  return flamed::bench::run(static_cast<std::size_t>(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5000));
} catch (const std::exception& exception) {
  std::fprintf(stderr, "tables_bench: %s\n", exception.what());
  return 1;
}
