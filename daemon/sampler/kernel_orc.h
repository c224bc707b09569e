// SPDX-License-Identifier: Apache-2.0
//
// Addresses and layout of the running kernel's own unwind tables (ORC, on x86-64), which bpf/walk/kernel_walk.h needs
// to walk kernel stacks. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bpf/kernel_tables.h"

struct btf;

namespace flamed::daemon {

/// Addresses of the kernel's symbols with these names, in their order; 0 for missing ones.
using FindKernelSymbols = std::function<Result<std::vector<std::uint64_t>>(const std::vector<std::string_view>& names)>;

/// Fails if the kernel has no such tables, or an unknown layout.
Result<flamed_kernel_orc> find_kernel_orc(const FindKernelSymbols& find_symbols);

/// The layout of struct orc_entry in the kernel that `types` describes.
flamed_orc_layout orc_layout(const btf& types);

}  // namespace flamed::daemon
