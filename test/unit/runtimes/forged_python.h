// SPDX-License-Identifier: Apache-2.0
//
// Where objects of CPython 3.12 have what their names are read from, with types at made-up places of a module.
#pragma once

#include "runtimes/python/layout.h"

namespace flamed::runtimes {

inline constexpr PythonObjects kForgedPython{.type = 8,
                                             .name = 128,
                                             .file = 112,
                                             .first_line = 68,
                                             .lines = 136,
                                             .string_length = 16,
                                             .string_state = 32,
                                             .ascii_text = 40,
                                             .other_text = 56,
                                             .bytes_length = 16,
                                             .bytes_text = 32,
                                             .code_type = 0x100,
                                             .string_type = 0x200,
                                             .bytes_type = 0x300};

}  // namespace flamed::runtimes
