// SPDX-License-Identifier: Apache-2.0
#include "test/kernel/own_stacks.h"

#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

#include "test/catch.h"
#include "test/support/running_daemon.h"

namespace flamed::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string since_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::this_thread::sleep_for(milliseconds(1));  // a window must not be empty
  return "&from=" + std::to_string(std::chrono::duration_cast<milliseconds>(now).count());
}

std::string shown_stack(ChildProcess& program) {
  std::string stack;
  for (;;) {
    const std::optional<std::string> line = program.read_line(seconds(60) * patience());
    if (!line) FAIL("the program has shown no stack");
    if (line->empty()) return stack;
    std::istringstream words(*line);
    std::string name;
    std::string file;
    std::string number;
    std::getline(words, name, '\t');
    std::getline(words, file, '\t');
    std::getline(words, number);
    name.append(" ").append(last_component(file)).append(":").append(number);
    if (!stack.empty()) name.append(";");
    stack.insert(0, name);
  }
}

}  // namespace flamed::test
