// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of the machine code of BPF programs.
#pragma once

#include <vector>

#include "symbolizer/names/kernel_symbols.h"

namespace flamed::daemon {

/// The functions of all BPF programs that are loaded now, unsorted. Without CAP_SYS_ADMIN the kernel doesn't tell of
/// programs, without CAP_SYSLOG not of their addresses: what it doesn't tell is left out. Any thread.
std::vector<symbolizer::KernelFunction> read_bpf_functions();

}  // namespace flamed::daemon
