// SPDX-License-Identifier: Apache-2.0
//
// The DWARF expressions (DWARF 5 section 2.5) that call frame information uses in practice. A kernel program can't
// interpret expressions, so the few shapes that compilers, linkers and assembly writers produce are recognised whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unwinder/cfa_program.h"

namespace flamed::unwinder {

/// The expression as a CFA: `reg + offset`, `*(reg + offset) + addend`, or the linkers' expression for PLT stubs.
CfaState recognise_cfa_expression(std::span<const std::byte> expression, Architecture architecture);

/// The expression as what DW_CFA_expression gives (`is_value` false: where the register was saved) or
/// DW_CFA_val_expression (true: the register itself).
RegisterState recognise_register_expression(std::span<const std::byte> expression, bool is_value);

}  // namespace flamed::unwinder
