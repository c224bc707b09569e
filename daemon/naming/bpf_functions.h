// SPDX-License-Identifier: Apache-2.0
//
// The functions in the machine code of BPF programs.
#pragma once

#include <vector>

#include "symbolizer/names/kernel_symbols.h"

namespace flamed::daemon {

/// The functions of all BPF programs that are loaded now, unsorted. Without CAP_SYS_ADMIN the kernel does not list
/// programs, without CAP_SYSLOG it does not show their addresses: then they are left out. Any thread.
std::vector<symbolizer::KernelFunction> read_bpf_functions();

}  // namespace flamed::daemon
