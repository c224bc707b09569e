// SPDX-License-Identifier: Apache-2.0
//
// Objects (src/objects/*.h and *.tq of V8): a word is a small integer, in its upper 32 bits, if its lowest bit is 0,
// else the address of an object plus 1. An object's first word is its map, which has its type.
#include "runtimes/v8/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "runtimes/utf8.h"
#include "runtimes/v8/positions.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint64_t kTag = 1;
constexpr std::uint64_t kWord = 8;

// In a string's type: how it is stored.
constexpr std::uint16_t kFirstNonString = 128;
constexpr std::uint16_t kIsOneByte = 8;
constexpr std::uint16_t kFormMask = 7;
enum class Form : std::uint8_t { kSequential = 0, kConcatenated = 1, kExternal = 2, kPart = 3, kForwarded = 5 };

constexpr int kMostStringDepth = 16;
constexpr std::size_t kMostTableBytes = std::size_t{64} << 10;
constexpr std::uint64_t kMostSourceBytes = std::uint64_t{64} << 20;  ///< read for one request
constexpr std::size_t kSourceChunk = std::size_t{64} << 10;
constexpr std::size_t kMostSources = 4096;
constexpr std::uint64_t kMostLocals = 100'000;
/// From so many locals on, ScopeInfos have their names in a table of their own.
constexpr std::uint64_t kMostInlinedLocals = 74;

/// The parts of objects that are read twice.
constexpr std::size_t kKeptWords = 8;
using Kept = std::array<std::uint64_t, kKeptWords>;

bool is_small(std::uint64_t word) { return (word & 0xffff'ffff) == 0; }
std::int32_t small(std::uint64_t word) { return static_cast<std::int32_t>(word >> 32); }

template <typename T, std::size_t kSize>
T number_in(const std::array<std::uint64_t, kSize>& words, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= sizeof(words)) {
    std::memcpy(&value, reinterpret_cast<const std::byte*>(words.data()) + offset, sizeof(T));
  }
  return value;
}

}  // namespace

/// What a ScopeInfo says of its function. Behind the locals' names and as many numbers for them come, if its flags say
/// so: a number of a class, the function's name and a number, the name that V8 has inferred, and in older versions two
/// positions.
struct V8Reader::Scope {
  std::string name;
  std::int32_t start = -1;
};

std::optional<std::uint64_t> V8Reader::object(std::uint64_t word) {
  if ((word & 3) != kTag) return std::nullopt;
  return word - kTag;
}

std::optional<std::uint16_t> V8Reader::type_of(std::uint64_t object_address) {
  const std::optional<std::uint64_t> map_word = word(object_address);
  const std::optional<std::uint64_t> map = map_word ? object(*map_word) : std::nullopt;
  return map ? read_number<std::uint16_t>(memory_, *map + objects_.map_instance_type) : std::nullopt;
}

bool V8Reader::has_type(std::uint64_t object_word, std::uint16_t type) {
  const std::optional<std::uint64_t> address = object(object_word);
  return address && type_of(*address) == type;
}

std::optional<std::string> V8Reader::text(std::uint64_t string_word, int depth) {
  const std::optional<std::uint64_t> string = object(string_word);
  const std::optional<std::uint16_t> type = string ? type_of(*string) : std::nullopt;
  const auto length = string ? read_number<std::uint32_t>(memory_, *string + objects_.string_length) : std::nullopt;
  if (!type || *type >= kFirstNonString || !length || depth > kMostStringDepth) return std::nullopt;
  const auto part = [&](std::uint16_t offset) {
    const std::optional<std::uint64_t> to = word(*string + offset);
    return to ? text(*to, depth + 1) : std::nullopt;
  };
  std::uint64_t characters = 0;
  switch (static_cast<Form>(*type & kFormMask)) {
    case Form::kSequential:
      characters = *string + objects_.string_text;
      break;
    case Form::kExternal:
      characters = word(*string + objects_.string_resource).value_or(0);
      break;
    case Form::kForwarded:
      return part(objects_.string_actual);
    case Form::kConcatenated: {
      std::optional<std::string> first = part(objects_.string_first);
      if (!first || first->size() >= kMostTextBytes) return first;
      const std::optional<std::string> second = part(objects_.string_second);
      if (!second) return std::nullopt;
      first->append(*second, 0, kMostTextBytes - first->size());
      return first;
    }
    case Form::kPart:
    default:
      return std::nullopt;
  }
  const std::size_t size = (*type & kIsOneByte) != 0 ? 1 : 2;
  std::vector<std::byte> bytes(std::min<std::size_t>(*length, kMostTextBytes) * size);
  if (!memory_.read(characters, bytes)) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < bytes.size() && text.size() + 4 <= kMostTextBytes; i += size) {
    std::uint32_t point = std::to_integer<std::uint32_t>(bytes[i]);
    if (size == 2) point |= std::to_integer<std::uint32_t>(bytes[i + 1]) << 8;
    const bool is_first_half = (point & 0xfc00) == 0xd800 && i + 3 < bytes.size();
    if (size == 2 && is_first_half) {
      const auto low = std::to_integer<std::uint32_t>(bytes[i + 2]) | std::to_integer<std::uint32_t>(bytes[i + 3]) << 8;
      if ((low & 0xfc00) == 0xdc00) {
        point = 0x10000 + ((point & 0x3ff) << 10 | (low & 0x3ff));
        i += size;
      }
    }
    append_utf8(text, point);
  }
  return text;
}

bool V8Reader::read_scope(std::uint64_t scope, Scope& to) {
  constexpr std::uint32_t kHasClassVariable = 1U << 10;
  constexpr std::uint32_t kHasFunctionName = 3U << 12;
  constexpr std::uint32_t kHasInferredName = 1U << 14;
  const auto flags = read_number<std::uint32_t>(memory_, scope + objects_.scope_flags);
  const std::optional<std::uint64_t> locals = word(scope + objects_.scope_locals);
  if (!flags || !locals || !is_small(*locals) || small(*locals) < 0) return false;
  const auto count = static_cast<std::uint64_t>(small(*locals));
  if (count > kMostLocals) return false;
  std::uint64_t at = scope + objects_.scope_names + kWord * (count + (count > kMostInlinedLocals ? 1 : count));
  if ((*flags & kHasClassVariable) != 0) at += kWord;
  const auto read_name = [&](std::uint64_t bytes) {
    const std::optional<std::uint64_t> name = word(at);
    at += bytes;
    if (!name) return false;
    std::optional<std::string> read = text(*name);
    if (to.name.empty() && read) to.name = *std::move(read);
    return true;
  };
  if ((*flags & kHasFunctionName) != 0 && !read_name(2 * kWord)) return false;
  if ((*flags & kHasInferredName) != 0 && !read_name(kWord)) return false;
  const std::optional<std::uint64_t> start = word(objects_.scope_start != 0 ? scope + objects_.scope_start : at);
  if (start && is_small(*start)) to.start = small(*start);
  return true;
}

V8Source& V8Reader::source_of(std::uint64_t script) {
  if (sources_.size() >= kMostSources) sources_.clear();
  const auto [at, is_new] = sources_.try_emplace(script);
  if (is_new) open_source(script, at->second);
  return at->second;
}

void V8Reader::open_source(std::uint64_t script, V8Source& source) {
  if (const auto line_offset = word(script + objects_.script_line_offset); line_offset && is_small(*line_offset)) {
    source.first_line = static_cast<std::uint32_t>(std::max(0, small(*line_offset))) + 1;
  }
  std::optional<std::uint64_t> string_word = word(script + objects_.script_source);
  std::uint64_t skipped = 0;
  std::optional<std::uint32_t> length;
  for (int depth = 0; string_word && depth < kMostStringDepth; ++depth) {
    const std::optional<std::uint64_t> string = object(*string_word);
    const std::optional<std::uint16_t> type = string ? type_of(*string) : std::nullopt;
    if (!type || *type >= kFirstNonString) return;
    if (!length) length = read_number<std::uint32_t>(memory_, *string + objects_.string_length);
    if (!length) return;
    source.character_bytes = (*type & kIsOneByte) != 0 ? 1 : 2;
    switch (static_cast<Form>(*type & kFormMask)) {
      case Form::kSequential:
        source.text = *string + objects_.string_text + skipped * source.character_bytes;
        source.length = *length;
        return;
      case Form::kExternal:
        source.text = word(*string + objects_.string_resource).value_or(0);
        if (source.text != 0) source.text += skipped * source.character_bytes;
        source.length = *length;
        return;
      case Form::kPart: {
        const std::optional<std::uint64_t> offset = word(*string + objects_.string_offset);
        if (!offset || !is_small(*offset) || small(*offset) < 0) return;
        skipped += static_cast<std::uint64_t>(small(*offset));
        string_word = word(*string + objects_.string_parent);
        break;
      }
      case Form::kConcatenated:
        // V8 makes it one string before it compiles it; the second one is empty then.
        string_word = word(*string + objects_.string_first);
        break;
      case Form::kForwarded:
        string_word = word(*string + objects_.string_actual);
        break;
      default:
        return;
    }
  }
}

namespace {

/// `text` may have a character more than `characters`: a line may end with two. Sources of megabytes are common, so
/// that it matters how fast this is.
template <typename Found>
void for_each_line_end(std::string_view text, std::size_t characters, Found&& found) {
  const bool has_returns = text.find('\r') != std::string_view::npos;
  const auto next = [&](std::size_t from) {
    return has_returns ? text.find_first_of("\n\r", from) : text.find('\n', from);
  };
  for (std::size_t at = next(0); at < characters; at = next(at + 1)) {
    const bool is_first_of_two = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (!is_first_of_two) found(at);
  }
}

/// Characters of two bytes.
template <typename Found>
void for_each_wide_line_end(std::span<const std::byte> text, std::size_t characters, Found&& found) {
  const auto at = [&](std::size_t i) -> std::uint32_t {
    if (2 * i + 1 >= text.size()) return 0;
    return std::to_integer<std::uint32_t>(text[2 * i]) | std::to_integer<std::uint32_t>(text[2 * i + 1]) << 8;
  };
  for (std::size_t i = 0; i < characters; ++i) {
    const std::uint32_t character = at(i);
    if (character == '\n' || (character == '\r' && at(i + 1) != '\n') || character == 0x2028 || character == 0x2029)
      found(i);
  }
}

}  // namespace

bool V8Reader::scan(V8Source& source, std::uint64_t up_to) {
  if (source.text == 0 || up_to > source.length) return false;
  std::vector<std::byte> chunk;
  while (source.scanned < up_to) {
    // A line may end with two characters, so the chunk has one more, if there is one.
    const std::uint64_t left = source.length - source.scanned;
    const std::uint64_t characters = std::min<std::uint64_t>(left, kSourceChunk);
    const std::uint64_t shown = std::min<std::uint64_t>(left, characters + 1);
    chunk.resize(static_cast<std::size_t>(shown) * source.character_bytes);
    source_bytes_ += chunk.size();
    const bool is_read =
        source_bytes_ <= kMostSourceBytes && memory_.read(source.text + source.scanned * source.character_bytes, chunk);
    if (!is_read) {
      source.text = 0;
      return false;
    }
    const auto ends_line = [&](std::uint64_t at) {
      source.ends.push_back(static_cast<std::uint32_t>(source.scanned + at));
    };
    if (source.character_bytes == 1) {
      const std::string_view text(reinterpret_cast<const char*>(chunk.data()), chunk.size());
      for_each_line_end(text, characters, ends_line);
    } else {
      for_each_wide_line_end(chunk, characters, ends_line);
    }
    source.scanned += characters;
  }
  return true;
}

/// 0: not known.
std::uint32_t V8Reader::line_of(std::uint64_t script, std::uint64_t position) {
  V8Source& source = source_of(script);
  if (!scan(source, position)) return 0;
  const auto end = std::lower_bound(source.ends.begin(), source.ends.end(), position);
  return source.first_line + static_cast<std::uint32_t>(end - source.ends.begin());
}

std::optional<std::uint64_t> V8Reader::bytecode_of(std::uint64_t shared) {
  std::optional<std::uint64_t> data = word(shared + objects_.shared_data);
  if (data && has_type(*data, objects_.descriptor_type)) data = word(*data - kTag + objects_.code_data);
  if (!data || !has_type(*data, objects_.bytecode_type)) return std::nullopt;
  return *data - kTag;
}

std::vector<LineRun> V8Reader::lines_of(std::uint64_t bytecode, std::uint64_t script) {
  const std::optional<std::uint64_t> table_word = word(bytecode + objects_.bytecode_positions);
  if (!table_word || !has_type(*table_word, objects_.position_type)) return {};
  const std::uint64_t table = *table_word - kTag;
  const std::optional<std::uint64_t> length = word(table + objects_.array_length);
  if (!length || !is_small(*length) || small(*length) <= 0) return {};
  std::vector<std::byte> bytes(std::min<std::size_t>(static_cast<std::size_t>(small(*length)), kMostTableBytes));
  if (!memory_.read(table + objects_.array_data, bytes)) return {};
  std::vector<LineRun> lines;
  for (const V8Position& position : read_v8_positions(bytes, kMostLineRuns * std::size_t{4})) {
    const std::uint32_t line = line_of(script, position.source);
    if (!lines.empty() && lines.back().line == line) continue;
    if (!lines.empty() && lines.back().first == position.instruction) {
      lines.back().line = line;
      continue;
    }
    if (lines.size() == kMostLineRuns) break;
    lines.push_back({position.instruction, line});
  }
  return lines;
}

Result<std::optional<RuntimeFunction>> V8Reader::function(std::uint64_t address) {
  Kept head{};
  if (!memory_.read(address, std::as_writable_bytes(std::span(head))) || type_of(address) != objects_.shared_type) {
    return Error("no function");
  }
  const auto script_word = number_in<std::uint64_t>(head, objects_.shared_script);
  if (!has_type(script_word, objects_.script_type)) return std::optional<RuntimeFunction>();
  const std::uint64_t script = script_word - kTag;
  Kept script_head{};
  if (!memory_.read(script, std::as_writable_bytes(std::span(script_head))))
    return Error("a script that can't be read");

  RuntimeFunction function;
  if (const auto file = text(number_in<std::uint64_t>(script_head, objects_.script_name))) function.file = *file;
  const auto name_word = number_in<std::uint64_t>(head, objects_.shared_name);
  if (has_type(name_word, objects_.scope_type)) {
    Scope scope;
    if (!read_scope(name_word - kTag, scope)) return Error("a function whose description can't be read");
    function.name = std::move(scope.name);
    if (scope.start >= 0) {
      // Where its parameters begin; 0xffff: the function's first token is too far away to be known.
      const auto before = number_in<std::uint16_t>(head, objects_.shared_token_offset);
      const std::int32_t start = before != 0xffff && before <= scope.start ? scope.start - before : scope.start;
      function.first_line = line_of(script, static_cast<std::uint64_t>(start));
    }
  } else if (std::optional<std::string> name = text(name_word)) {
    function.name = *std::move(name);
  }
  if (function.name.empty()) function.name = "(anonymous)";
  if (const std::optional<std::uint64_t> bytecode = bytecode_of(address)) function.lines = lines_of(*bytecode, script);
  if (function.lines.empty() && function.first_line != 0) function.lines.push_back({0, function.first_line});

  // All of it belongs to this function only if it was there all the time.
  Kept again{};
  Kept script_again{};
  if (!memory_.read(address, std::as_writable_bytes(std::span(again))) ||
      !memory_.read(script, std::as_writable_bytes(std::span(script_again))) || again != head ||
      script_again != script_head) {
    return Error("it changed while it was read");
  }
  return std::optional(std::move(function));
}

Result<V8Reader::Code> V8Reader::code_at(std::uint64_t pc, std::uint64_t expected) {
  constexpr std::uint64_t kAlignment = 32;
  constexpr std::uint64_t kChunk = std::uint64_t{16} << 10;
  constexpr unsigned kAddressBits = 48;
  const std::uint64_t most_bytes = std::uint64_t{expected != 0 ? 512U : 64U} << 10;
  const bool has_descriptor = objects_.code_head_kind == V8CodeHead::kDescriptor;
  const std::uint64_t head_bytes = objects_.code_head;
  std::vector<std::byte> chunk;
  /// The code that begins at `start`, if there is one with the instruction.
  const auto code_of = [&](std::uint64_t start) -> std::optional<Code> {
    const std::uint64_t object_address = start - head_bytes;
    if (type_of(object_address) != objects_.code_type) return std::nullopt;
    std::uint64_t described = object_address;
    if (has_descriptor) {
      const std::optional<std::uint64_t> descriptor = word(object_address + objects_.code_descriptor);
      if (!descriptor || !has_type(*descriptor, objects_.descriptor_type)) return std::nullopt;
      described = *descriptor - kTag;
      if (word(described + objects_.code_start) != start) return std::nullopt;
    }
    const auto size = read_number<std::uint32_t>(memory_, described + objects_.code_size);
    const auto flags = read_number<std::uint32_t>(memory_, described + objects_.code_flags);
    if (!size || !flags || pc - start >= *size) return std::nullopt;
    Code code{start, *size};
    const std::uint32_t kind = *flags & 0xf;
    code.is_own = kind < objects_.baseline_kind;
    if (code.is_own) return code;
    if (kind == objects_.baseline_kind) {
      const std::optional<std::uint64_t> data = word(expected + objects_.shared_data);
      if (data == described + kTag) code.shared = expected;
      return code;
    }
    const std::optional<std::uint64_t> data = word(described + objects_.code_data);
    const std::optional<std::uint64_t> made_of = data ? object(*data) : std::nullopt;
    std::optional<std::uint64_t> shared = made_of ? word(*made_of + objects_.data_shared) : std::nullopt;
    if (shared && objects_.wrapped_shared != 0 && object(*shared))
      shared = word(*shared - kTag + objects_.wrapped_shared);
    if (shared && has_type(*shared, objects_.shared_type)) code.shared = *shared - kTag;
    return code;
  };
  const std::uint64_t lowest = pc > most_bytes ? pc - most_bytes : kChunk;
  for (std::uint64_t start = pc & ~(kAlignment - 1); start > lowest;) {
    // Less than a chunk is in memory where the code's pages begin.
    std::uint64_t bytes = kChunk;
    const auto read = [&] {
      chunk.resize(bytes);
      return memory_.read(start + kAlignment - head_bytes - bytes, chunk);
    };
    while (!read() && bytes > kAlignment) bytes /= 2;
    if (bytes == kAlignment && !read()) break;
    for (std::uint64_t offset = bytes; offset >= kAlignment; offset -= kAlignment, start -= kAlignment) {
      std::uint64_t map = 0;
      std::memcpy(&map, &chunk[offset - kAlignment], sizeof(map));
      // Few instructions look like an object's address, and each that does costs two reads.
      if (map % kWord != kTag || map >> kAddressBits != 0) continue;
      if (const std::optional<Code> code = code_of(start)) return *code;
    }
  }
  return Error("no code is known there");
}

}  // namespace flamed::runtimes
