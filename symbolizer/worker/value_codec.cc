// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/value_codec.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kMaxBuildIdDigits = 256;
constexpr std::size_t kMaxPathBytes = 4096;
constexpr std::size_t kMaxSegments = 0xffff;  // PN_XNUM: the limit of a header
constexpr std::size_t kMaxRules = unwinder::RuleTable::kMaxRules;
constexpr std::size_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxRanges = 64;
constexpr std::size_t kMaxFramesPerChain = 4096;
constexpr std::size_t kMaxSourceTextBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxTexts = 4'000'000;
/// A name that fails to demangle is returned unchanged; others get the mark of a clone.
constexpr std::size_t kMaxDemangledTextBytes = kMaxDemangledBytes + 2 * kMaxMangledBytes;

constexpr std::size_t kMaxReasonBytes = 1024;
constexpr std::uint8_t kThreadLibraries = 3;
constexpr std::uint8_t kInstructionKinds = 3;
constexpr std::uint8_t kBoundaryKinds = 3;

/// An enum of bytes that has this many values, from 0 on.
template <typename Enum>
bool read_enum(WireReader& from, Enum& value, std::uint8_t values) {
  std::uint8_t number = 0;
  if (!from.number(number)) return false;
  if (number >= values) return from.damaged("a value is of no known kind");
  value = static_cast<Enum>(number);
  return true;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool decode_build_id(WireReader& from, std::string& build_id) {
  if (!from.text(build_id, kMaxBuildIdDigits)) return false;
  return is_hex(build_id) || from.damaged("a build-id is not in hex");
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// These stop the build with -Wswitch when a value is added.
bool is_valid(ElfSymbols::Source source) {
  switch (source) {
    case ElfSymbols::Source::kNone:
    case ElfSymbols::Source::kDynsym:
    case ElfSymbols::Source::kMiniDebugInfo:
    case ElfSymbols::Source::kDebugFile:
    case ElfSymbols::Source::kGo:
    case ElfSymbols::Source::kSymtab:
      return true;
  }
  return false;
}

bool is_valid(const unwinder::Rule& rule) {
  const auto& [cfa, fp, ra, signal_frame, ra_signed, base_words, other_register, plt_threshold, cfa_offset, cfa_addend,
               fp_offset, ra_offset] = rule;
  // Registers and offsets may have any value: stack walks check what they read.
  static_cast<void>(base_words);
  static_cast<void>(other_register);
  static_cast<void>(plt_threshold);
  static_cast<void>(cfa_offset);
  static_cast<void>(cfa_addend);
  static_cast<void>(fp_offset);
  static_cast<void>(ra_offset);
  return static_cast<std::size_t>(cfa) < unwinder::kCfaKinds && fp <= unwinder::FpKind::kUnknown &&
         static_cast<std::size_t>(ra) < unwinder::kRaKinds && signal_frame <= 1 && ra_signed <= 1;
}

/// Numbers distinct texts. 0 is the empty one.
class TextTable {
 public:
  TextTable() { static_cast<void>(number_of({})); }
  std::uint32_t number_of(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(sizes_.size()));
    if (is_new) {
      sizes_.push_back(static_cast<std::uint32_t>(text.size()));
      blob_ += text;
    }
    return found->second;
  }
  void encode(WireWriter& to) const {
    to.array(std::span(sizes_));
    to.text(blob_);
  }

 private:
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  ///< views into the caller's data
  std::vector<std::uint32_t> sizes_;
  std::string blob_;
};

struct WireFrame {
  std::uint32_t function;
  std::uint32_t file;
  std::uint32_t line;
  std::uint32_t inlined;
};

std::size_t memory_of(const SourceFrame& frame) {
  return sizeof(SourceFrame) + frame.function.size() + frame.file.size();
}

}  // namespace

// ---- ElfFacts ----

void ValueCodec::encode(WireWriter& to, const ElfFacts& value) {
  const auto& [build_id, debug_link, debug_link_crc, alternate_link, alternate_build_id, has_symtab, has_debug_info,
               has_mini_debug_info, is_go] = value;
  to.text(build_id);
  to.text(debug_link);
  to.number(debug_link_crc);
  to.text(alternate_link);
  to.text(alternate_build_id);
  for (const bool flag : {has_symtab, has_debug_info, has_mini_debug_info, is_go}) to.number(flag);
}

bool ValueCodec::decode(WireReader& from, ElfFacts& value) {
  auto& [build_id, debug_link, debug_link_crc, alternate_link, alternate_build_id, has_symtab, has_debug_info,
         has_mini_debug_info, is_go] = value;
  if (!decode_build_id(from, build_id) || !from.text(debug_link, kMaxPathBytes) || !from.number(debug_link_crc) ||
      !from.text(alternate_link, kMaxPathBytes) || !decode_build_id(from, alternate_build_id) ||
      !from.flag(has_symtab) || !from.flag(has_debug_info) || !from.flag(has_mini_debug_info) || !from.flag(is_go)) {
    return false;
  }
  // It is searched in directories that the daemon may read, but maybe not the file's owner.
  if (debug_link == "." || debug_link == ".." || debug_link.find('/') != std::string::npos || has_nul(debug_link)) {
    return from.damaged("a debug link is not a file name");
  }
  return !has_nul(alternate_link) || from.damaged("a path holds NUL");
}

// ---- SymbolTable ----

void ValueCodec::encode(WireWriter& to, const SymbolTable& value) {
  const auto& [base, narrow, wide, names, resumed, blob, named_ranges] = value;
  static_cast<void>(named_ranges);  // recomputed
  to.number(base);
  to.array(std::span(narrow));
  to.array(std::span(wide));
  to.array(std::span(names));
  to.array(std::span(resumed));
  to.text(blob);
}

bool ValueCodec::decode(WireReader& from, SymbolTable& value) {
  auto& [base, narrow, wide, names, resumed, blob, named_ranges] = value;
  if (!from.number(base) || !from.array(narrow, kNoLimit) || !from.array(wide, kNoLimit) ||
      !from.array(names, kNoLimit) || !from.array(resumed, kNoLimit) || !from.text(blob, kNoLimit)) {
    return false;
  }
  const auto ascends = [](const auto& starts) {
    return std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  };
  if (!narrow.empty() && !wide.empty()) return from.damaged("a symbol table has two sets of ranges");
  if (names.size() != std::max(narrow.size(), wide.size())) return from.damaged("ranges and names differ in number");
  if (!ascends(narrow) || !ascends(wide)) return from.damaged("the ranges are not in order");
  if (names.empty()) {
    return (resumed.empty() && blob.empty()) || from.damaged("a symbol table without ranges has names");
  }
  const std::uint64_t last_start = narrow.empty() ? wide.back() : narrow.back();
  if (last_start > std::numeric_limits<std::uint64_t>::max() - base) return from.damaged("a range is out of bounds");
  if (names.back() != SymbolTable::kNoName) return from.damaged("the last range has no end");

  if (blob.empty() || blob.front() != '\0' || blob.back() != '\0') return from.damaged("a name has no end");
  // Many ranges may share a name, and users copy names: a long one would use too much memory.
  for (std::size_t start = 0; start < blob.size();) {
    const std::size_t length = blob.find('\0', start) - start;
    if (length > kMaxNameBytes) return from.damaged("a name is too long");
    start += length + 1;
  }
  named_ranges = 0;
  for (const std::uint32_t name : names) {
    if (name >= blob.size()) return from.damaged("a name is out of range");
    if (name != SymbolTable::kNoName && blob[name] == '\0') return from.damaged("a name is empty");
    named_ranges += name != SymbolTable::kNoName ? 1 : 0;
  }
  for (std::size_t i = 0; i < resumed.size(); ++i) {
    const auto& [range, function_start] = resumed[i];
    if (range >= names.size() || (i != 0 && resumed[i - 1].range >= range)) {
      return from.damaged("the resumed ranges are not in order");
    }
    if (function_start > value.range_start(range)) return from.damaged("a function starts behind its code");
  }
  return true;
}

// ---- FunctionRanges ----

void ValueCodec::encode(WireWriter& to, const FunctionRanges& value) {
  const auto& [base, ranges] = value;
  to.number(base);
  to.array(std::span(ranges));
}

bool ValueCodec::decode(WireReader& from, FunctionRanges& value) {
  auto& [base, ranges] = value;
  if (!from.number(base) || !from.array(ranges, FunctionRanges::kMost)) return false;
  const auto begins_later = [](const auto& a, const auto& b) { return a.start >= b.start; };
  if (std::adjacent_find(ranges.begin(), ranges.end(), begins_later) != ranges.end()) {
    return from.damaged("the functions are not in order");
  }
  constexpr std::uint64_t kReach = 2 * std::uint64_t{std::numeric_limits<std::uint32_t>::max()};
  return base <= FunctionRanges::kNoEnd - kReach || from.damaged("a function is out of bounds");
}

// ---- ElfSymbols ----

void ValueCodec::encode(WireWriter& to, const ElfSymbols& value) {
  const auto& [table, segments, build_id, source, go_code, unnamed] = value.parts();
  encode(to, table);
  to.array(std::span(segments));
  to.text(build_id);
  to.number(source);
  to.number(go_code.start);
  to.number(go_code.end);
  encode(to, unnamed);
}

bool ValueCodec::decode(WireReader& from, ElfSymbols& value) {
  ElfSymbols::Parts parts;
  auto& [table, segments, build_id, source, go_code, unnamed] = parts;
  std::uint8_t source_number = 0;
  if (!decode(from, table) || !from.array(segments, kMaxSegments) || !decode_build_id(from, build_id) ||
      !from.number(source_number) || !from.number(go_code.start) || !from.number(go_code.end) ||
      !decode(from, unnamed)) {
    return false;
  }
  source = static_cast<ElfSymbols::Source>(source_number);
  if (!is_valid(source)) return from.damaged("the symbols have no known source");
  if (go_code.start > go_code.end) return from.damaged("Go's code ends before it starts");
  value = ElfSymbols(std::move(parts));
  return true;
}

// ---- SourceChains ----

void ValueCodec::encode(WireWriter& to, const std::vector<SourceChain>& value) {
  TextTable texts;
  std::vector<std::uint32_t> sizes;
  std::vector<WireFrame> frames;
  sizes.reserve(value.size());
  std::size_t memory = 0;
  for (const SourceChain& chain : value) {
    std::size_t chain_memory = 0;
    bool fits = chain.size() <= kMaxFramesPerChain;
    for (const SourceFrame& frame : chain) {
      chain_memory += memory_of(frame);
      fits = fits && frame.function.size() <= kMaxSourceTextBytes && frame.file.size() <= kMaxSourceTextBytes;
    }
    if (!fits || chain_memory > kMaxChainBytes - memory) {
      sizes.push_back(0);
      continue;
    }
    memory += chain_memory;
    sizes.push_back(static_cast<std::uint32_t>(chain.size()));
    for (const SourceFrame& frame : chain) {
      const auto& [function, file, line, inlined] = frame;
      frames.push_back({texts.number_of(function), texts.number_of(file), line, inlined ? 1U : 0U});
    }
  }
  // These arrays end with this function; the writer must not refer to them.
  WireWriter own;
  texts.encode(own);
  own.array(std::span<const std::uint32_t>(sizes));
  own.array(std::span<const WireFrame>(frames));
  to.copy(own);
}

bool ValueCodec::decode(WireReader& from, std::vector<SourceChain>& value, std::size_t count) {
  std::vector<std::uint32_t> text_sizes;
  std::string blob;
  std::vector<std::uint32_t> chain_sizes;
  std::vector<WireFrame> frames;
  if (!from.array(text_sizes, kMaxTexts) || !from.text(blob, kNoLimit) || !from.array(chain_sizes, kNoLimit) ||
      !from.array(frames, kNoLimit)) {
    return false;
  }
  if (chain_sizes.size() != count) return from.damaged("it does not have one chain for each address");

  std::vector<std::string_view> texts;
  texts.reserve(text_sizes.size());
  std::size_t text_at = 0;
  for (const std::uint32_t size : text_sizes) {
    if (size > kMaxSourceTextBytes || size > blob.size() - text_at) return from.damaged("a text is out of range");
    texts.emplace_back(blob.data() + text_at, size);
    text_at += size;
  }
  if (text_at != blob.size()) return from.damaged("there is unused text");

  value.clear();
  value.resize(count);
  std::size_t memory = 0;
  std::size_t next_frame = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = chain_sizes[i];
    if (size > kMaxFramesPerChain || size > frames.size() - next_frame) return from.damaged("a chain is too long");
    value[i].reserve(size);
    for (std::size_t k = 0; k < size; ++k) {
      const WireFrame& frame = frames[next_frame++];
      if (frame.function >= texts.size() || frame.file >= texts.size() || frame.inlined > 1) {
        return from.damaged("a frame without a function");
      }
      memory += sizeof(SourceFrame) + texts[frame.function].size() + texts[frame.file].size();
      if (memory > kMaxChainBytes) return from.damaged("the chains are too large");
      value[i].push_back(
          {std::string(texts[frame.function]), std::string(texts[frame.file]), frame.line, frame.inlined == 1});
    }
  }
  return next_frame == frames.size() || from.damaged("there are unused frames");
}

// ---- UnwindRows ----

void ValueCodec::encode(WireWriter& to, const unwinder::UnwindRows& value) {
  const auto& [base, rows, rules, stats] = value;
  const auto& [functions, rows_before_merging, skipped, cut_short] = stats;
  to.number(base);
  to.array(std::span(rows));
  to.array(std::span(rules));
  to.number(functions);
  to.number(rows_before_merging);
  for (const std::uint64_t count : skipped) to.number(count);
  to.number(cut_short);
}

bool ValueCodec::decode(WireReader& from, unwinder::UnwindRows& value) {
  auto& [base, rows, rules, stats] = value;
  auto& [functions, rows_before_merging, skipped, cut_short] = stats;
  if (!from.number(base) || !from.array(rows, kNoLimit) || !from.array(rules, kMaxRules) || !from.number(functions) ||
      !from.number(rows_before_merging)) {
    return false;
  }
  for (std::uint64_t& count : skipped) {
    if (!from.number(count)) return false;
  }
  if (!from.flag(cut_short)) return false;

  if (!rows.empty() && base > std::numeric_limits<std::uint64_t>::max() - rows.back().offset) {
    return from.damaged("a row is out of range");
  }
  if (!std::all_of(rules.begin(), rules.end(), [](const unwinder::Rule& rule) { return is_valid(rule); })) {
    return from.damaged("a rule is of no known kind");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].rule.value >= rules.size()) return from.damaged("a row has no rule");
    if (i != 0 && rows[i - 1].offset >= rows[i].offset) return from.damaged("the rows are not in order");
  }
  return rows.empty() || rows.back().rule == unwinder::kNoneRule || from.damaged("the last row has no end");
}

void ValueCodec::encode(WireWriter& to, const SourcedRows& value) {
  const auto& [rows, source, was_kept] = value;
  const auto& [ranges, key, digest] = source;
  encode(to, rows);
  to.array(std::span(ranges));
  to.number(key);
  to.number(digest);
  to.number(was_kept);
}

bool ValueCodec::decode(WireReader& from, SourcedRows& value) {
  auto& [rows, source, was_kept] = value;
  auto& [ranges, key, digest] = source;
  return decode(from, rows) && from.array(ranges, kMaxRanges) && from.number(key) && from.number(digest) &&
         from.flag(was_kept);
}

void ValueCodec::encode(WireWriter& to, const std::vector<unwinder::UnwindRows>& value) {
  for (const unwinder::UnwindRows& rows : value) encode(to, rows);
}

bool ValueCodec::decode(WireReader& from, std::vector<unwinder::UnwindRows>& value, std::size_t count) {
  value.resize(count);
  return std::all_of(value.begin(), value.end(), [&](unwinder::UnwindRows& rows) { return decode(from, rows); });
}

// ---- Disassembly ----

void ValueCodec::encode(WireWriter& to, const Disassembly& value) {
  const auto& [build_id, functions] = value;
  to.text(build_id);
  for (const FunctionCode& function : functions) {
    const auto& [offset, size, address, instructions] = function;
    to.number(offset);
    to.number(size);
    to.number(address);
    to.number(std::uint64_t{instructions.size()});
    for (const Instruction& instruction : instructions) {
      const auto& [begin, bytes, text] = instruction;
      to.number(begin);
      to.text(bytes);
      to.text(text);
    }
  }
}

bool ValueCodec::decode(WireReader& from, Disassembly& value, const DisassemblyQuestion& question) {
  auto& [build_id, functions] = value;
  if (!decode_build_id(from, build_id)) return false;
  functions.clear();
  for (const CodeRange& asked : question.functions) {
    auto& [offset, size, address, instructions] = functions.emplace_back();
    std::uint64_t count = 0;
    if (!from.number(offset) || !from.number(size) || !from.number(address) || !from.number(count)) return false;
    if (offset != asked.start || size > asked.end - asked.start)
      return from.damaged("a function is not the one asked for");
    if (count > size) return from.damaged("a function has more instructions than bytes");
    std::uint64_t at = offset;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto& [begin, bytes, text] = instructions.emplace_back();
      if (!from.number(begin) || !from.text(bytes, Disassembly::kMaxInstructionBytes) ||
          !from.text(text, Disassembly::kMaxTextBytes)) {
        return false;
      }
      if (begin < at || bytes.empty() || begin - offset > size || bytes.size() > size - (begin - offset)) {
        return from.damaged("an instruction is outside of its function, or not in order");
      }
      at = begin + bytes.size();
    }
  }
  return true;
}

// ---- DemangledNames ----

void ValueCodec::encode(WireWriter& to, const std::vector<DemangledName>& value) {
  to.number(std::uint64_t{value.size()});
  for (const DemangledName& demangled : value) {
    const auto& [name, full_name] = demangled;
    to.text(name);
    to.text(full_name);
  }
}

bool ValueCodec::decode(WireReader& from, std::vector<DemangledName>& value, std::size_t count) {
  std::uint64_t names = 0;
  if (!from.number(names)) return false;
  if (names != count) return from.damaged("it does not have one name for each request");
  value.clear();
  value.resize(count);
  for (DemangledName& demangled : value) {
    auto& [name, full_name] = demangled;
    if (!from.text(name, kMaxDemangledTextBytes) || !from.text(full_name, kMaxDemangledTextBytes)) return false;
  }
  return true;
}

// ---- ContainerNames ----

void ValueCodec::encode(WireWriter& to, const ContainerNames& value) {
  const auto& [name, pod, pod_namespace] = value;
  for (const std::string& text : {name, pod, pod_namespace}) to.text(text);
}

bool ValueCodec::decode(WireReader& from, ContainerNames& value) {
  auto& [name, pod, pod_namespace] = value;
  for (std::string* text : {&name, &pod, &pod_namespace}) {
    if (!from.text(*text, kMaxContainerNameBytes)) return false;
    if (*text != clean_name(*text) || text->find('/') != std::string::npos) {
      return from.damaged("a container's name is not safe to print");
    }
  }
  return true;
}

// ---- RuntimeModule ----

namespace {

void encode_layout(WireWriter& to, const runtimes::PythonLayout& layout) {
  const auto& [version, frames, objects, interpreter, interpreter_bytes] = layout;
  const auto& [thread_states, thread_library, thread_id, innermost, code, previous, instruction, instruction_kind,
               first_instruction, check, interpreter_at, generation, parts, boundary_kind, boundary, boundary_value,
               first_call, next_call] = frames;
  to.number(version.hex);
  to.number(version.knows_micro);
  to.array(std::span(&objects, 1));
  to.number(interpreter);
  to.number(interpreter_bytes);
  to.array(std::span(thread_states));
  to.number(thread_library);
  to.number(thread_id);
  to.array(std::span(innermost));
  for (const std::uint16_t offset : {code, previous, instruction, first_instruction, interpreter_at, parts[0], parts[1],
                                     parts[2], boundary, first_call, next_call}) {
    to.number(offset);
  }
  to.array(std::span(&check, 1));
  to.number(generation);
  to.number(instruction_kind);
  to.number(boundary_kind);
  to.number(boundary_value);
}

bool decode_layout(WireReader& from, runtimes::PythonLayout& layout) {
  auto& [version, frames, objects, interpreter, interpreter_bytes] = layout;
  auto& [thread_states, thread_library, thread_id, innermost, code, previous, instruction, instruction_kind,
         first_instruction, check, interpreter_at, generation, parts, boundary_kind, boundary, boundary_value,
         first_call, next_call] = frames;
  std::vector<runtimes::PythonObjects> read_objects;
  if (!from.number(version.hex) || !from.flag(version.knows_micro) || !from.array(read_objects, 1) ||
      !from.number(interpreter) || !from.number(interpreter_bytes) || !from.array(thread_states, 2) ||
      !read_enum(from, thread_library, kThreadLibraries) || !from.number(thread_id) || !from.array(innermost, 2)) {
    return false;
  }
  for (std::uint16_t* const offset : {&code, &previous, &instruction, &first_instruction, &interpreter_at, &parts[0],
                                      &parts[1], &parts[2], &boundary, &first_call, &next_call}) {
    if (!from.number(*offset)) return false;
  }
  std::vector<runtimes::CodeCheck> checks;
  if (!from.array(checks, 1) || !from.number(generation) || !read_enum(from, instruction_kind, kInstructionKinds) ||
      !read_enum(from, boundary_kind, kBoundaryKinds) || !from.number(boundary_value)) {
    return false;
  }
  if (checks.size() != 1) return from.damaged("a Python has no check word");
  check = checks[0];
  if (read_objects.size() != 1 || read_objects[0].lines_kind > runtimes::PythonLines::kLocations) {
    return from.damaged("a Python has no objects");
  }
  objects = read_objects[0];
  const auto is_known = [](const runtimes::ThreadStatePlace& place) {
    return place.kind <= runtimes::ThreadStatePlace::Kind::kGlobal;
  };
  if (!std::all_of(thread_states.begin(), thread_states.end(), is_known)) {
    return from.damaged("a thread state's place is of no known kind");
  }
  return true;
}

void encode_layout(WireWriter& to, const runtimes::V8Layout& layout) { to.array(std::span(&layout, 1)); }

bool decode_layout(WireReader& from, runtimes::V8Layout& layout) {
  std::vector<runtimes::V8Layout> layouts;
  if (!from.array(layouts, 1)) return false;
  if (layouts.size() != 1) return from.damaged("a V8 has no layout");
  layout = layouts[0];
  return layout.objects.code_head_kind <= runtimes::V8CodeHead::kDescriptor ||
         from.damaged("a value is of no known kind");
}

}  // namespace

void ValueCodec::encode(WireWriter& to, const std::optional<RuntimeModule>& value) {
  to.number(value.has_value());
  if (!value) return;
  to.number(value->kind());
  to.number(value->code_bias);
  to.number(value->first_code);
  std::visit([&](const auto& layout) { encode_layout(to, layout); }, value->layout);
}

bool ValueCodec::decode(WireReader& from, std::optional<RuntimeModule>& value) {
  bool is_there = false;
  if (!from.flag(is_there)) return false;
  value.reset();
  if (!is_there) return true;
  value.emplace();
  auto kind = runtimes::RuntimeKind::kPython;
  if (!read_enum(from, kind, runtimes::kRuntimeKinds.size()) || !from.number(value->code_bias) ||
      !from.number(value->first_code)) {
    return false;
  }
  switch (kind) {
    case runtimes::RuntimeKind::kPython:
      return decode_layout(from, value->layout.emplace<runtimes::PythonLayout>());
    case runtimes::RuntimeKind::kV8:
      return decode_layout(from, value->layout.emplace<runtimes::V8Layout>());
    case runtimes::RuntimeKind::kJava:
      break;
  }
  return from.damaged("a runtime has no layout");
}

// ---- RuntimeAnswers ----

void ValueCodec::encode(WireWriter& to, const std::vector<RuntimeAnswer>& value) {
  for (const auto& [function, why_not, code_start, code_end, owner] : value) {
    const auto& [name, file, first_line, lines] = function;
    to.text(name);
    to.text(file);
    to.number(first_line);
    to.array(std::span(lines));
    to.text(why_not);
    to.number(code_start);
    to.number(code_end);
    to.number(owner);
  }
}

bool ValueCodec::decode(WireReader& from, std::vector<RuntimeAnswer>& value, std::size_t count) {
  value.clear();
  value.resize(count);
  return std::all_of(value.begin(), value.end(), [&](RuntimeAnswer& answer) {
    auto& [function, why_not, code_start, code_end, owner] = answer;
    auto& [name, file, first_line, lines] = function;
    if (!from.text(name, runtimes::kMostTextBytes) || !from.text(file, runtimes::kMostTextBytes) ||
        !from.number(first_line) || !from.array(lines, runtimes::kMostLineRuns) ||
        !from.text(why_not, kMaxReasonBytes) || !from.number(code_start) || !from.number(code_end) ||
        !from.number(owner)) {
      return false;
    }
    const auto is_after = [](const runtimes::LineRun& a, const runtimes::LineRun& b) { return a.first >= b.first; };
    return std::adjacent_find(lines.begin(), lines.end(), is_after) == lines.end() ||
           from.damaged("the lines are not in order");
  });
}

// ---- HotSpotModule, HotSpotCode ----

void ValueCodec::encode(WireWriter& to, const std::optional<HotSpotModule>& value) {
  to.number(value.has_value());
  if (!value) return;
  const auto& [layout, code_bias] = *value;
  to.array(std::span(&layout, 1));
  to.number(code_bias);
}

bool ValueCodec::decode(WireReader& from, std::optional<HotSpotModule>& value) {
  bool is_there = false;
  if (!from.flag(is_there)) return false;
  value.reset();
  if (!is_there) return true;
  auto& [layout, code_bias] = value.emplace();
  std::vector<runtimes::HotSpotLayout> layouts;
  if (!from.array(layouts, 1) || !from.number(code_bias)) return false;
  if (layouts.size() != 1) return from.damaged("a HotSpot has no layout");
  layout = layouts[0];
  const std::string release = layout.release_text();
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  return std::all_of(release.begin(), release.end(), is_printable) || from.damaged("a release is not printable");
}

void ValueCodec::encode(WireWriter& to, const runtimes::HotSpotCode& value) {
  const auto& [heaps, blobs, rows, rules] = value;
  to.array(std::span(heaps));
  to.array(std::span(blobs));
  to.array(std::span(rows));
  to.array(std::span(rules));
}

bool ValueCodec::decode(WireReader& from, runtimes::HotSpotCode& value) {
  auto& [heaps, blobs, rows, rules] = value;
  if (!from.array(heaps, runtimes::kMostHotSpotHeaps) || !from.array(blobs, runtimes::kMostHotSpotBlobs) ||
      !from.array(rows, kNoLimit) || !from.array(rules, runtimes::kMostHotSpotRules)) {
    return false;
  }
  std::uint64_t end = 0;
  for (const runtimes::HotSpotHeapRange& heap : heaps) {
    if (heap.low < end || heap.high <= heap.low || heap.end < heap.high || heap.end >> 47 != 0) {
      return from.damaged("the heaps are not in order");
    }
    end = heap.end;
  }
  if (!heaps.empty() && heaps.back().end - heaps.front().low > runtimes::kMostHotSpotHeapBytes) {
    return from.damaged("the heaps are too large");
  }
  if (!std::all_of(rules.begin(), rules.end(), [](const unwinder::Rule& rule) { return is_valid(rule); })) {
    return from.damaged("a rule is of no known kind");
  }
  std::uint64_t code_end = 0;
  auto heap = heaps.begin();
  for (const runtimes::HotSpotBlob& blob : blobs) {
    while (heap != heaps.end() && heap->high <= blob.code_begin) ++heap;
    if (heap == heaps.end() || blob.code_begin < std::max(code_end, heap->low) || blob.code_end <= blob.code_begin ||
        blob.code_end > heap->high) {
      return from.damaged("code is not in order");
    }
    code_end = blob.code_end;
    if (static_cast<std::size_t>(blob.kind) >= runtimes::kHotSpotCodeKinds || blob.is_known > 1 ||
        (blob.is_known == 0) != (blob.row_count != 0) || blob.first_row > rows.size() ||
        blob.row_count > rows.size() - blob.first_row) {
      return from.damaged("code has no rows");
    }
    for (std::size_t i = 0; i < blob.row_count; ++i) {
      const unwinder::Row& row = rows[blob.first_row + i];
      const bool is_in_order = i == 0 ? row.offset == 0 : row.offset > rows[blob.first_row + i - 1].offset;
      if (!is_in_order || row.offset >= blob.code_end - blob.code_begin || row.rule.value >= rules.size())
        return from.damaged("the rows of code are not in order");
    }
  }
  return true;
}

// ---- HotSpotNames ----

void ValueCodec::encode(WireWriter& to, const HotSpotNames& value) {
  const auto& [functions, frames, places, is_there, interpreted] = value;
  to.number(std::uint32_t(functions.size()));
  for (const auto& [name, file] : functions) {
    to.text(name);
    to.text(file);
  }
  to.array(std::span(frames));
  to.array(std::span(places));
  to.array(std::span(is_there));
  to.array(std::span(interpreted));
}

bool ValueCodec::decode(WireReader& from, HotSpotNames& value, const HotSpotQuestion& question) {
  auto& [functions, frames, places, is_there, interpreted] = value;
  std::uint32_t count = 0;
  if (!from.number(count)) return false;
  if (count > kMostHotSpotFrames) return from.damaged("there are too many functions");
  functions.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    auto& [name, file] = functions.emplace_back();
    if (!from.text(name, kMostHotSpotNameBytes) || !from.text(file, kMostHotSpotNameBytes)) return false;
    if (name.empty()) return from.damaged("a function has no name");
  }
  if (!from.array(frames, kMostHotSpotFrames) || !from.array(places, kMostHotSpotPlaces) ||
      !from.array(is_there, kMostHotSpotChecks) || !from.array(interpreted, kMostHotSpotInterpreted)) {
    return false;
  }
  if (places.size() != question.places.size() || is_there.size() != question.known.size() ||
      interpreted.size() != question.interpreted.size()) {
    return from.damaged("not every place has an answer");
  }
  const auto is_known = [count](const HotSpotFrame& frame) { return frame.function < count; };
  const auto is_answered = [&](const HotSpotFrame& frame) {
    return is_known(frame) || frame.function == HotSpotFrame::kUnreadable;
  };
  if (!std::all_of(frames.begin(), frames.end(), is_known) ||
      !std::all_of(interpreted.begin(), interpreted.end(), is_answered)) {
    return from.damaged("a frame has no function");
  }
  using Kind = HotSpotNamedPlace::Kind;
  for (const HotSpotNamedPlace& place : places) {
    const bool needs_frames = place.kind == Kind::kMethod || place.kind == Kind::kRuntime;
    if (place.kind > Kind::kRuntime || place.first_frame > frames.size() ||
        place.frame_count > frames.size() - place.first_frame || needs_frames != (place.frame_count != 0)) {
      return from.damaged("a place has no frames");
    }
  }
  return true;
}

}  // namespace flamed::symbolizer
