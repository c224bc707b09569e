// SPDX-License-Identifier: Apache-2.0
//
// The governor's test covers the decisions. This one covers the messages about them.
#include "daemon/budget/budget_keeper.h"

#include <string>

#include "test/catch.h"
#include "test/support/captured_log.h"
#include "test/unit/daemon/budget/budgeted_machine.h"

namespace flamed::daemon {
namespace {

TEST_CASE("a step down is logged with the measurement, the limit, and where the limit was set") {
  BudgetedMachine machine({0.003, "--cpu-budget"});
  const test::CapturedLog log;
  machine.run(3, 0.004);
  CHECK(
      log.text() ==
      "info: sampling at 49.5 Hz instead of 99 Hz: it took 0.4 % of the machine's CPU time in the last 5 s; its limit "
      "is 0.27 %, which is 90 % of cpu_budget (0.3 % by --cpu-budget)\n");
}

TEST_CASE("a step up is logged in the same way, with the budget in force") {
  BudgetedMachine machine({0.003, "--cpu-budget"});
  machine.run(3, 0.004);
  machine.keeper.set_budget({0.01, "/etc/flamed/flamed.json"});
  const test::CapturedLog log;
  machine.run(35, 0.002);
  CHECK(
      log.text() ==
      "info: sampling at 99 Hz again instead of 49.5 Hz: it took 0.2 % of the machine's CPU time in the last 5 s; its "
      "limit is 0.9 %, which is 90 % of cpu_budget (1 % by /etc/flamed/flamed.json)\n");
}

TEST_CASE("waiting tables are logged with the time that they used up, and again when they go on") {
  BudgetedMachine machine({0.003, "default"});
  machine.run(40, 0.001, 0.001);
  {
    const test::CapturedLog log;
    machine.run(40, 0.001, 0.01);
    CHECK(log.text() ==
          "info: new unwind tables have to wait: the part of cpu_budget (0.3 % by default) that was left for them in "
          "the last minute "
          "is used up; in the last 5 s they took 1 % of the machine's CPU time, and sampling 0.1 %\n");
  }
  const test::CapturedLog log;
  machine.run(600, 0.001);
  CHECK(log.text() ==
        "info: new unwind tables no longer wait: half of the part of cpu_budget (0.3 % by default) that they have in a "
        "minute is available again; in the last 5 s they took 0 % of the machine's CPU time, and sampling 0.1 %\n");
}

TEST_CASE("names of managed runtimes are told apart where the frequency is lowered for them") {
  BudgetedMachine machine({0.003, "default"});
  machine.run(40, 0.002);
  const test::CapturedLog log;
  machine.run(60, 0.002, 0, 0.008);
  CHECK(log.text().find("in the last 5 s they took 0 % of the machine's CPU time, names of managed runtimes 0.8 %, and "
                        "sampling 0.2 %\n") != std::string::npos);
  CHECK(log.text().find("it took 0.36 % of the machine's CPU time in the last 5 s, 0.16 % of it for names of managed "
                        "runtimes; its limit is 0.27 %") != std::string::npos);
}

TEST_CASE("the state in force is reported with the same limit") {
  BudgetedMachine machine({0.003, "default"});
  machine.run(3, 0.004);
  CHECK(
      describe(machine.keeper.state()) ==
      "to keep the budget samples are taken at 49.5 Hz instead of 99 Hz: flamed uses 0.4 % of the machine's CPU time; "
      "its limit is cpu_budget (0.3 % by default)");
}

}  // namespace
}  // namespace flamed::daemon
