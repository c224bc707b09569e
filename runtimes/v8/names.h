// SPDX-License-Identifier: Apache-2.0
//
// V8Reader: reads what functions in a process with a V8 are called, where they come from, and the lines of their
// bytecode. V8's collector moves objects while they are read, so each is checked by its type, and read once more at the
// end. Lives on one thread; the memory and the objects must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "runtimes/remote_memory.h"
#include "runtimes/runtime_function.h"
#include "runtimes/v8/layout.h"

namespace flamed::runtimes {

/// The text of a script, as far as its lines are known.
struct V8Source {
  std::uint64_t text = 0;  ///< address of the characters; 0: they can't be read
  std::uint64_t length = 0;
  std::uint32_t character_bytes = 1;
  std::uint64_t scanned = 0;          ///< characters
  std::vector<std::uint32_t> ends{};  ///< of lines, ascending
  std::uint32_t first_line = 1;
};

class V8Reader {
 public:
  V8Reader(RemoteMemory& memory, const V8Objects& objects) : memory_(memory), objects_(objects) {}

  /// The function of the SharedFunctionInfo at this address. Lines are those of bytecode, in bytes from its start;
  /// where V8 has not kept them, there is only the first one. Empty: it is code of V8 itself, or of native code.
  Result<std::optional<RuntimeFunction>> function(std::uint64_t address);

  /// Code that was compiled at run time.
  struct Code {
    std::uint64_t start = 0;   ///< of its instructions
    std::uint64_t size = 0;    ///< in bytes
    std::uint64_t shared = 0;  ///< the SharedFunctionInfo of its function; 0: that is not known
    bool is_own = false;       ///< it is of no function: V8's own, such as a regular expression's
  };
  /// The code that contains an instruction. `expected`: the SharedFunctionInfo that it may be of; 0: it may be no code
  /// of V8 at all, so less memory is searched.
  Result<Code> code_at(std::uint64_t pc, std::uint64_t expected);

 private:
  struct Scope;

  std::optional<std::uint64_t> word(std::uint64_t address) { return read_number<std::uint64_t>(memory_, address); }
  /// The address of the object, if the word is one's.
  static std::optional<std::uint64_t> object(std::uint64_t word);
  std::optional<std::uint16_t> type_of(std::uint64_t object);
  [[nodiscard]] bool has_type(std::uint64_t word, std::uint16_t type);

  std::optional<std::string> text(std::uint64_t word, int depth = 0);
  bool read_scope(std::uint64_t scope, Scope& to);
  V8Source& source_of(std::uint64_t script);
  void open_source(std::uint64_t script, V8Source& source);
  bool scan(V8Source& source, std::uint64_t up_to);
  std::uint32_t line_of(std::uint64_t script, std::uint64_t position);
  std::optional<std::uint64_t> bytecode_of(std::uint64_t shared);
  std::vector<LineRun> lines_of(std::uint64_t bytecode, std::uint64_t script);

  RemoteMemory& memory_;
  const V8Objects& objects_;
  std::unordered_map<std::uint64_t, V8Source> sources_;  ///< by script
  std::uint64_t source_bytes_ = 0;                       ///< that were read
};

}  // namespace flamed::runtimes
