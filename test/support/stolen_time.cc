// SPDX-License-Identifier: Apache-2.0
#include "test/support/stolen_time.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>

namespace flamed::test {

double stolen_seconds() {
  std::ifstream stat("/proc/stat");
  std::string all;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  stat >> all;
  for (double& state : ticks) stat >> state;
  if (!stat || all != "cpu") throw std::runtime_error("/proc/stat does not begin with eight times of all CPUs");
  return ticks.back() / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace flamed::test
