// SPDX-License-Identifier: Apache-2.0
//
// Where in a function the samples are, by instruction. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/machine_code.h"
#include "store/query/function_places.h"

namespace flamed::api {

struct InstructionRow {
  /// Of the file's own tables, or of the process or the kernel where there is no file; empty: not known, or not shown.
  std::optional<std::uint64_t> address{};
  std::string bytes{};  ///< raw; empty: not known
  std::string text{};
  std::string file{};      ///< of a sample there
  std::uint32_t line = 0;  ///< likewise; 0 if not known
  std::uint64_t self = 0;
  std::uint64_t callees = 0;  ///< samples in functions that it calls, or that were inlined there
};

/// Code of the function in one file, or compiled into one other function there.
struct CodePart {
  std::string module{};
  std::string build_id{};
  std::string around{};  ///< the function that it is compiled into, if that is another one
  std::string reason{};  ///< why there are addresses alone; empty with instructions
  std::uint64_t self = 0;
  std::vector<InstructionRow> rows{};  ///< by address
};

/// The questions for the code of a function: one for each module, in the order of the places.
std::vector<CodeQuestion> code_questions(const store::FunctionPlaces& places);

/// The sums of `self` are the function's. `codes` are the answers to code_questions(). The part with the most samples
/// comes first.
std::vector<CodePart> code_parts(const store::FunctionPlaces& places, std::span<const MachineCode> codes);

/// The facts of an answer, function (null: it is in no stack), self, total, and parts: [{module, build_id, around,
/// reason, self, instructions: [{address, bytes, text, file, line, self, callees}]}].
std::string render_instructions_json(const store::FunctionPlaces& places, std::span<const CodePart> parts,
                                     double frequency_hz);

/// "self self% callees address instruction file:line", a line each, below a line for each part.
std::string render_instructions_text(const store::FunctionPlaces& places, std::span<const CodePart> parts);

}  // namespace flamed::api
