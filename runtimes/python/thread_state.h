// SPDX-License-Identifier: Apache-2.0
//
// Where CPython keeps the state of the running thread, from 3.12 on: in a thread-local variable without a symbol and,
// for threads that have released the interpreter's lock, in the value of a pthread key or another such variable. The
// functions that return them are exported and have a few instructions.
#pragma once

#include <optional>
#include <string_view>

#include "runtimes/linked_frames.h"
#include "runtimes/program_image.h"

namespace flamed::runtimes {

/// The thread-local variable that a function returns. Empty: it does something else, or in another way than compilers
/// are known to.
std::optional<ThreadStatePlace> returned_thread_local(ProgramImage& image, std::string_view function);

/// The pthread key of a Py_tss_t in _PyRuntime, whose value a function returns. Empty: as above.
std::optional<ThreadStatePlace> returned_key_value(ProgramImage& image, std::string_view function,
                                                   const ProgramImage::Symbol& runtime);

}  // namespace flamed::runtimes
