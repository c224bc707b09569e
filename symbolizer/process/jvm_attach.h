// SPDX-License-Identifier: Apache-2.0
//
// Requests a JVM's perf map by its attach mechanism, as jcmd does.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/identity.h"
#include "base/result.h"

namespace flamed::symbolizer {

/// Makes the JVM write /tmp/perf-PID.map (Compiler.perfmap, JDK 17 and later) and waits for it, at most `limit`.
///
/// This changes something in the process: a file .attach_pidPID is in its /tmp for a moment, it gets a SIGQUIT the
/// first time, which starts its thread for such requests, and then it works on the answer for some milliseconds. The
/// signal is sent only to a process that has libjvm.so mapped, handles SIGQUIT, and was not started with
/// -XX:+DisableAttachMechanism: others would exit or print their threads.
///
/// The JVM answers only to its own user, so a child process changes to that user (CAP_SETUID, CAP_SETGID), and does
/// everything with paths that the process could have chosen. Errors say what is missing. `proc` is where procfs is
/// mounted.
Status ask_for_perf_map(const ProcessId& jvm, const std::string& proc, std::chrono::milliseconds limit);

/// Parses the JVM's answer: its first line is 0 for success.
Status parse_jvm_answer(std::string_view answer);

}  // namespace flamed::symbolizer
