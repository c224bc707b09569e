// SPDX-License-Identifier: Apache-2.0
//
// Programs of managed runtimes that print the stack in which they then stay.
#pragma once

#include <string>

#include "test/support/child_process.h"

namespace flamed::test {

std::string last_component(const std::string& path);

/// "&from=": from now on.
std::string since_now();

/// The stack that a thread of the program shows of itself, as it is shown with lines, outermost first. A line for each
/// frame has its name, file and line, with tabs between them, innermost first; the last one is empty.
std::string shown_stack(ChildProcess& program);

}  // namespace flamed::test
