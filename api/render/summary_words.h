// SPDX-License-Identifier: Apache-2.0
//
// Words of which the sentences of a summary are made. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/render/render_summary.h"
#include "store/model/profile.h"
#include "store/model/selection.h"

namespace flamed::api::words {

using Names = std::vector<std::string>;

/// Names in a list, the first ones.
inline constexpr std::size_t kListed = 5;
/// From this share of all stacks on, a fault of the profile is told.
inline constexpr double kWorthTelling = 0.01;
/// With fewer samples, the error of a share is told.
inline constexpr std::uint64_t kFewSamples = 400;
inline constexpr std::string_view kFiltered = "Only stacks left by focus, ignore and root are counted.";

/// As snprintf() does.
std::string format(const char* form, double value);
/// "71 %", "4.2 %"
std::string percent(double share);
/// 0 of nothing.
double share_of(std::uint64_t part, std::uint64_t whole);
/// "0.43 CPUs"
std::string cpus(double count);
/// "12.30 s"
std::string seconds(std::uint64_t ns);
/// "15 min 30 s"
std::string length_of(std::int64_t ns);
/// "1 sample", "2 samples"
std::string count_of(std::uint64_t count, std::string_view one, std::string_view many);
/// In one line, and cut if it is very long.
std::string shown(std::string_view name);
/// The last part of a path.
std::string_view file_name(std::string_view path);
/// "a, b and c"
std::string list(const Names& names);
/// "a, b, c"
std::string commas(const Names& names);
/// "from ... to ... (15 min)"
std::string window_text(const store::WallWindow& window);
/// "name (pid 123)"
std::string name_of(const store::ProcessInfo& process);
/// The process if the selection is one that is known.
const store::ProcessInfo* only_process(const store::Selection& selection,
                                       const std::vector<store::ProcessInfo>& processes);
/// The subject of a sentence, such as "The machine".
std::string subject_of(const SummaryFacts& facts, const store::AnswerFacts& answer,
                       const std::vector<store::ProcessInfo>& processes);
/// The part of the window in which the selection could run.
std::int64_t lifetime_ns(const store::AnswerFacts& answer, const store::Selection& selection,
                         const store::ProcessInfo* process);
/// CPU time per time.
double busy_cpus(std::uint64_t cpu_ns, std::int64_t of_ns);
/// "1.72 of the machine's 4 CPUs (43 %)"; `whose` is "the machine's" or "its".
std::string busy_text(double busy, std::size_t of_cpus, std::string_view whose = "the machine's");
/// "99 Hz"
std::string frequency_of(const store::AnswerFacts& answer);

}  // namespace flamed::api::words
