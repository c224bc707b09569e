// SPDX-License-Identifier: Apache-2.0
//
// The members that more than one answer has, so that a client reads them the same way everywhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/text/json_writer.h"
#include "store/model/profile.h"

namespace flamed::api {

/// {"from": RFC 3339, "to": RFC 3339, "from_ms": unix milliseconds, "to_ms": unix milliseconds}
void append_window(JsonWriter& json, const store::WallWindow& window);

/// {"whole": n, "truncated": {reason: n, ...}, "lost": {reason: n, ...}}, with every reason, also those that are 0.
void append_quality(JsonWriter& json, const store::AnswerFacts& facts);

/// Members of a process's object: id ("pid@start_ticks", as the parameter pid takes it), pid, start_ticks, comm,
/// executable, started, ended, command_line, uid, unit, container, cgroup, parent (an id, or a pid where its start is
/// not known); null where not known.
void append_process(JsonWriter& json, const store::ProcessInfo& process);

double cpu_seconds(std::uint64_t ns);

/// Members that every answer about samples begins with: window {asked, used}, resolution_ms (0: exact to the sample),
/// period_ns, frequency_hz, samples, cpu_seconds, quality, visible_uid (null: everybody's processes), matched_ever
/// (null: not known), warnings.
void append_facts(JsonWriter& json, const store::AnswerFacts& facts, double frequency_hz, std::uint64_t samples,
                  std::uint64_t cpu_ns);

/// The member processes: a list of objects.
void append_processes(JsonWriter& json, std::span<const store::ProcessInfo> processes);

/// Of the functions in all stacks, weighted by samples, the part that has a name; 1 where there is none.
double symbolised_share(const store::Profile& profile);

/// The member coverage: {"cpu_seconds_accounted", "share"}, each null where it is not known, with the reason beside
/// them.
void append_coverage(JsonWriter& json, const store::AnswerFacts& facts);

/// On one line of UTF-8: control characters become `_`.
std::string one_line(std::string_view raw);

/// For texts: a line for each sentence, which begins with `prefix`.
std::string warning_lines(std::string_view prefix, std::span<const std::string> warnings);

/// The members symbolised_share and coverage.
void append_trust(JsonWriter& json, const store::Profile& profile);

/// Members of a frame: name, kind, and where they are known module, reason, build_id, file, line, inlined (true).
void append_frame(JsonWriter& json, const store::NamedFrame& frame);

}  // namespace flamed::api
