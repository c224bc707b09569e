// SPDX-License-Identifier: Apache-2.0
//
// Members that several answers have, the same everywhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/text/json_writer.h"
#include "store/model/profile.h"
#include "store/model/wait_reason.h"
#include "store/query/diff.h"

namespace flamed::api {

/// {"from": RFC 3339, "to": RFC 3339, "from_ms": unix milliseconds, "to_ms": unix milliseconds}
void append_window(JsonWriter& json, const store::WallWindow& window);

/// {"whole": n, "truncated": {reason: n, ...}, "lost": {reason: n, ...}}, with every reason, even those with 0 samples.
void append_quality(JsonWriter& json, const store::AnswerFacts& facts);

/// Members of a process's object: id ("pid@start_ticks", as the parameter pid takes it), pid, start_ticks, comm,
/// executable, started, ended, command_line, uid, unit, container, cgroup, parent (an id, or a pid if its start is not
/// known); null if not known.
void append_process(JsonWriter& json, const store::ProcessInfo& process);

double cpu_seconds(std::uint64_t ns);

/// Members that every answer about samples begins with: measure, disk_account unless it is of CPU time, window {asked,
/// used}, resolution_ms (0: exact to the sample), period_ns, frequency_hz, samples, cpu_seconds, quality, visible_uid
/// (null: everybody's processes), matched_ever (null: not known), warnings.
void append_facts(JsonWriter& json, const store::AnswerFacts& facts, double frequency_hz, std::uint64_t samples,
                  std::uint64_t cpu_ns);

/// The member waits: seconds by reason, without those that do not occur.
void append_waits(JsonWriter& json, const store::WaitSums& waits_ns);

/// The member processes: a list of objects.
void append_processes(JsonWriter& json, std::span<const store::ProcessInfo> processes);

/// The share of functions with a name in all stacks, weighted by samples; 1 if there are no functions.
double symbolised_share(const store::Profile& profile);

/// The member unnamed: a list of the modules with the most code without names, at most five: {"module", "build_id" if
/// known, "samples" (stacks with such code of the module), "reason"}.
void append_unnamed(JsonWriter& json, const store::Profile& profile);
void append_unnamed(JsonWriter& json, const store::ProfileDiff& diff, store::DiffCount store::DiffNode::*side);

/// The member coverage: {"cpu_seconds_accounted", "share"}, each null if it is not known, and then "reason". Unless it
/// is of CPU time also "thread_seconds" and "thread_seconds_error".
void append_coverage(JsonWriter& json, const store::AnswerFacts& facts);

/// On one line of UTF-8: control characters become `_`.
std::string one_line(std::string_view raw);

/// For text formats: one line for each warning, which begins with `prefix`.
std::string warning_lines(std::string_view prefix, std::span<const std::string> warnings);

/// The first line of a table for reading, with the samples, the time and the window, and below it the warnings.
std::string text_head(const store::AnswerFacts& facts, std::uint64_t samples, std::uint64_t cpu_ns);

/// The members symbolised_share, unnamed and coverage.
void append_trust(JsonWriter& json, const store::Profile& profile);

/// Members of a frame: name, kind, and, if known, module, reason, build_id, file, line, inlined (true),
/// offset (of kind unnamed).
void append_frame(JsonWriter& json, const store::NamedFrame& frame);

}  // namespace flamed::api
