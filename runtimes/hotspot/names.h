// SPDX-License-Identifier: Apache-2.0
//
// Reads what code in a HotSpot's code heap is called, and which methods a compiled method has inlined at a place.
//
// A place is looked up among the places (PcDesc) for which the compiler has described the stack: the first at or after
// it. For a return address that is the call itself. For any other instruction it is the next one that may stop the
// thread, or in a loop behind its last one, that; compilers describe no others unless -XX:+DebugNonSafepoints is given.
// An interpreted method's frame says which one it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtimes/frame_slots.h"
#include "runtimes/hotspot/code_heap.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/remote_memory.h"
#include "runtimes/runtime_function.h"

namespace flamed::runtimes {

/// A piece of code in the code heap.
struct HotSpotNamedCode {
  std::uint64_t address = 0;  ///< of its CodeBlob
  std::uint64_t bytes = 0;    ///< likewise, with all that belongs to it
  std::uint64_t code = 0;     ///< of its first instruction
  HotSpotCodeKind kind = HotSpotCodeKind::kStub;
  std::string name;              ///< printable, not empty: what HotSpot calls such code
  std::uint32_t compile_id = 0;  ///< of compiled and native methods: no two of a process have the same
  std::uint64_t method = 0;      ///< likewise: address of the Method
};

/// A method on the stack.
struct HotSpotCall {
  std::uint64_t method = 0;   ///< address of the Method
  std::int32_t bytecode = 0;  ///< index of the instruction in its bytecode; -1: where it is entered

  static constexpr std::int32_t kEntry = -1;
  static constexpr std::int32_t kNotKnown = -2;

  friend bool operator==(const HotSpotCall&, const HotSpotCall&) = default;
};

/// An interpreted method on the stack, as its frame says (interpreter.h).
struct HotSpotInterpreted {
  std::uint64_t object = 0;  ///< address of its ConstMethod, or without a check of its Method
  std::uint64_t check = 0;   ///< check_word() of the ConstMethod; 0: not known
  /// The index of the running bytecode plus 1, or without a check its address. 0: the method is being entered.
  std::uint64_t bytecode = 0;

  friend bool operator==(const HotSpotInterpreted&, const HotSpotInterpreted&) = default;
};

/// More methods inlined in one another than compilers allow.
inline constexpr std::size_t kMostInlinedCalls = 256;

/// The lines of bytecode, by a method's compressed table (LineNumberTable). Ascending, neighbours differ in their
/// lines. Any bytes are a table. `exclude`: see unsigned5.h.
std::vector<LineRun> read_bytecode_lines(std::span<const std::byte> table, std::uint32_t exclude);

/// Reads from one process. Not thread-safe.
class HotSpotNames {
 public:
  /// `memory` may be a copy that was made since the code ran. `present` is not: it tells whether something is still
  /// there. All must outlive it.
  HotSpotNames(RemoteMemory& memory, RemoteMemory& present, const HotSpotLayout& layout);

  /// The code whose CodeBlob is at this address. An error if there is none.
  Result<HotSpotNamedCode> code(std::uint64_t address);
  /// Of a compiled method: those that are running at `pc`, innermost first and not empty. Where the compiler has
  /// described nothing from there on it is the compiled method alone.
  Result<std::vector<HotSpotCall>> calls(const HotSpotNamedCode& code, std::uint64_t pc);
  /// The Method at this address: "java.util.HashMap$Node.getKey", "HashMap.java", if its class says so. Instructions
  /// are indexes into its bytecode. An error if there is none.
  Result<RuntimeFunction> method(std::uint64_t address) { return const_method(const_method_of(address)); }
  /// The same by what a Method has its bytecode and constants in.
  Result<RuntimeFunction> const_method(std::uint64_t address);
  /// 0: it can't be read.
  std::uint64_t const_method_of(std::uint64_t method) { return member(method, layout_.methods.const_method); }
  /// The index of the bytecode that an interpreted method runs, or HotSpotCall::kNotKnown. An error if the ConstMethod
  /// is not that of the frame.
  Result<std::int32_t> bytecode_of(const HotSpotInterpreted& frame, std::uint64_t const_method);
  /// Is the same code still there? Then its methods are as well.
  bool is_unchanged(const HotSpotNamedCode& code);

 private:
  class Object;

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// Of a compiled method. What it does not have is empty.
  struct Tables {
    Range descriptors, scopes, metadata;
  };

  std::optional<Object> object(std::uint64_t address, std::size_t bytes);
  static std::optional<Object> object(RemoteMemory& memory, std::uint64_t address, std::size_t bytes);
  /// 0: it can't be read.
  std::uint64_t member(std::uint64_t address, const HotSpotPlace& place);
  Tables tables_of(const Object& nmethod) const;
  /// 0: the compiler has described nothing from there on.
  Result<std::int32_t> scope_at(const Range& descriptors, const HotSpotNamedCode& code, std::int64_t offset);
  Result<std::vector<HotSpotCall>> calls_of(const Tables& tables, std::int32_t scope);
  std::optional<std::string> blob_name(std::uint64_t address);
  std::optional<std::string> text(std::uint64_t symbol);
  std::optional<std::string> pool_text(const Object& pool, std::uint64_t index);
  std::vector<LineRun> lines_of(const Object& const_method);

  RemoteMemory& memory_;
  RemoteMemory& present_;
  const HotSpotLayout& layout_;
  const std::size_t blob_bytes_;  ///< of a CodeBlob or nmethod: what has to be read to know its members
  const std::uint32_t exclude_;   ///< see unsigned5.h; 1 since JDK 20
  const std::optional<FrameSlots> slots_;
};

}  // namespace flamed::runtimes
