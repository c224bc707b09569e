// SPDX-License-Identifier: Apache-2.0
//
// Who used CPU, and who waited, as tables for reading: one line for each process, group or thread, most first, below
// the same head as format=top-text. Pure; any thread.
#pragma once

#include <string>

#include "store/query/usage.h"

namespace flamed::api {

std::string render_processes_text(const store::UsageTable<store::ProcessUsage>& usage);
std::string render_process_groups_text(const store::UsageTable<store::GroupUsage>& usage);
std::string render_threads_text(const store::UsageTable<store::ThreadUsage>& usage);

}  // namespace flamed::api
