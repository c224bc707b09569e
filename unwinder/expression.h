// SPDX-License-Identifier: Apache-2.0
//
// The DWARF expressions (DWARF 5 section 2.5) that call frame information uses in practice. A kernel program can't
// interpret expressions, so the few expressions that compilers, linkers and assembly use are recognised as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwinder/cfa_program.h"

namespace flamed::unwinder {

/// The expression as a CFA: `reg + offset`, `*(reg + offset) + addend`, or the linkers' expression for PLT stubs.
CfaState recognise_cfa_expression(std::span<const std::byte> expression, Architecture architecture);

/// The expression of DW_CFA_expression (`is_value` false: the address where the register was saved) or
/// DW_CFA_val_expression (true: the register's value).
RegisterState recognise_register_expression(std::span<const std::byte> expression, bool is_value);

}  // namespace flamed::unwinder
