// SPDX-License-Identifier: Apache-2.0
//
// go_runtime_code: the parts of Go's runtime at which a stack goes on in another one, begins, or was interrupted. Its
// linker describes them like any other code, or not at all (-w). They are found by their names, which strip keeps, and
// each is recognised by its instructions, which also say where the runtime keeps what the rule needs. So code that is
// not known here gets no rule, or an unsupported one. Pure.
//
// A goroutine's stack is small. Before the runtime calls code that needs more, it switches to the stack of the thread,
// the *system stack*, whose goroutine is called g0:
//
//   systemstack    runs one of the runtime's functions for a goroutine, whose place is in g.sched
//   morestack      the same, from a function's prologue, to enlarge the stack
//   mcall          leaves the goroutine: the system stack then works for no goroutine
//   asmcgocall     calls C; the place is in its own frame, as a distance from the stack's end, since C may call Go
//   cgocallback    C calls Go: from the system stack back to the goroutine's stack
//   nanotime1 ...  call the vdso; a register has the goroutine's stack pointer, and the frame pointer stays
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/go/go_line_table.h"
#include "unwinder/rows_builder.h"

namespace flamed::symbolizer {

/// One of these functions, or one with the same name: that which another calling convention needs jumps to the real
/// one.
struct GoRuntimeFunction {
  std::string name;
  std::uint64_t entry = 0;  ///< virtual address
  std::string code;
  std::vector<GoLineTable::StackDepth> depths;
};

/// `read` fills its second argument with the program's bytes at a virtual address; false if the file does not have
/// them.
std::vector<GoRuntimeFunction> find_go_runtime(
    const GoLineTable& table, const std::function<bool(std::uint64_t address, std::span<char> to)>& read);

/// For x86-64. By virtual address.
std::vector<unwinder::RuledCode> go_runtime_code(std::span<const GoRuntimeFunction> functions);

}  // namespace flamed::symbolizer
