// SPDX-License-Identifier: Apache-2.0
//
// Where the running kernel keeps the tables that its own unwinder goes by (ORC, on x86-64), and how their rows are laid
// out: what bpf/kernel_walk.h needs to walk kernel stacks. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bpf/kernel_tables.h"

struct btf;

namespace flamed::daemon {

/// Addresses of the kernel's symbols of these names, in their order; 0 for what it does not have.
using FindKernelSymbols = std::function<Result<std::vector<std::uint64_t>>(const std::vector<std::string_view>& names)>;

/// Fails where the kernel has no such tables, or some of a layout that is not known here.
Result<flamed_kernel_orc> find_kernel_orc(const FindKernelSymbols& find_symbols);

/// How struct orc_entry is laid out in the kernel that `types` describes.
flamed_orc_layout orc_layout(const btf& types);

}  // namespace flamed::daemon
