// SPDX-License-Identifier: Apache-2.0
//
// Asking a JVM for its perf map by its own attach mechanism, as jcmd does.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/identity.h"
#include "base/result.h"

namespace flamed::symbolizer {

/// Has the JVM write /tmp/perf-PID.map (Compiler.perfmap, JDK 17 and later) and waits for that, at most `limit`.
///
/// This touches the process: a file .attach_pidPID stands in its /tmp for a moment, it gets a SIGQUIT the first time,
/// which starts its thread for such requests, and then it works on the answer, some milliseconds. The signal is sent
/// only to a process that has libjvm.so mapped, handles SIGQUIT, and was not started with -XX:+DisableAttachMechanism:
/// others would end or print their threads.
///
/// The JVM answers to its own user alone, so a child process becomes that (CAP_SETUID, CAP_SETGID), and it does
/// everything that touches paths the process could have chosen. Errors say what is missing. `proc` is where procfs is
/// mounted.
Status ask_for_perf_map(const ProcessId& jvm, const std::string& proc, std::chrono::milliseconds limit);

/// What the JVM's answer says: its first line is 0 where all went well.
Status parse_jvm_answer(std::string_view answer);

}  // namespace flamed::symbolizer
