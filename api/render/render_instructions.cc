// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_instructions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/render/function_head.h"
#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

std::string hex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::string hex_bytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!text.empty()) text += ' ';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Places of one module with names from one build of it.
bool is_same_file(const store::AddressPlace& a, const store::AddressPlace& b) {
  return a.address.module == b.address.module && a.build_id == b.build_id;
}

void add(InstructionRow& row, const store::AddressPlace& place) {
  row.self += place.self_samples;
  row.callees += place.total_samples - place.self_samples;
  if (row.line == 0) {
    row.file = place.file;
    row.line = place.line;
  }
}

std::vector<InstructionRow> rows_of(const FunctionCode& function) {
  std::vector<InstructionRow> rows;
  rows.reserve(function.instructions.size());
  for (const Instruction& instruction : function.instructions) {
    rows.push_back({function.address + (instruction.offset - function.offset), instruction.bytes, instruction.text});
  }
  return rows;
}

/// The index of the instruction that has the place; none: it is in no instruction.
std::optional<std::size_t> instruction_at(const FunctionCode& function, std::uint64_t offset) {
  const auto after = std::upper_bound(function.instructions.begin(), function.instructions.end(), offset,
                                      [](std::uint64_t at, const Instruction& next) { return at < next.offset; });
  if (after == function.instructions.begin() || offset >= std::prev(after)->end()) return std::nullopt;
  return static_cast<std::size_t>(std::prev(after) - function.instructions.begin());
}

/// A runtime's function has none, and a kernel's 0 where it may not be shown.
std::optional<std::uint64_t> shown_address(const Frame& place) {
  const bool has_code = place.module >= kFirstFreeModule || place.module == kVdsoModule;
  if (has_code || (place.module == kKernelModule && place.offset != 0)) return place.offset;
  return std::nullopt;
}

void add_parts(std::span<const store::AddressPlace> places, const MachineCode& code, std::vector<CodePart>& parts) {
  std::vector<std::optional<CodePart>> of_functions(code.functions.size());
  std::vector<CodePart> others;
  for (const store::AddressPlace& place : places) {
    const std::uint64_t offset = place.address.offset;
    const auto after = std::upper_bound(code.functions.begin(), code.functions.end(), offset,
                                        [](std::uint64_t at, const FunctionCode& next) { return at < next.offset; });
    const auto has = static_cast<std::size_t>(after - code.functions.begin());
    const auto row = has == 0 ? std::nullopt : instruction_at(code.functions[has - 1], offset);
    if (row) {
      std::optional<CodePart>& part = of_functions[has - 1];
      if (!part) part = {place.module, place.build_id, place.around, {}, 0, rows_of(code.functions[has - 1])};
      part->self += place.self_samples;
      add(part->rows[*row], place);
      continue;
    }
    if (others.empty() || others.back().around != place.around) {
      others.push_back({place.module, place.build_id, place.around, code.reason});
    }
    others.back().self += place.self_samples;
    add(others.back().rows.emplace_back(InstructionRow{shown_address(place.address)}), place);
  }
  for (std::optional<CodePart>& part : of_functions) {
    if (part) parts.push_back(std::move(*part));
  }
  std::move(others.begin(), others.end(), std::back_inserter(parts));
}

void append_text(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  if (text.empty()) {
    json.null();
  } else {
    json.string(text);
  }
}

std::string place_of(const InstructionRow& row) {
  if (row.line == 0) return {};
  const std::string_view file(row.file);
  return one_line(file.substr(file.find_last_of('/') + 1)) + ":" + std::to_string(row.line);
}

}  // namespace

std::vector<CodeQuestion> code_questions(const store::FunctionPlaces& places) {
  std::vector<CodeQuestion> questions;
  for (std::size_t i = 0; i < places.addresses.size(); ++i) {
    const store::AddressPlace& place = places.addresses[i];
    if (i == 0 || !is_same_file(place, places.addresses[i - 1])) {
      questions.push_back({place.address.module, place.build_id, {}});
    }
    questions.back().offsets.push_back(place.address.offset);
  }
  return questions;
}

std::vector<CodePart> code_parts(const store::FunctionPlaces& places, std::span<const MachineCode> codes) {
  std::vector<CodePart> parts;
  const std::span<const store::AddressPlace> all(places.addresses);
  for (std::size_t first = 0, file = 0; first < all.size() && file < codes.size(); ++file) {
    std::size_t next = first + 1;
    while (next < all.size() && is_same_file(all[next], all[first])) ++next;
    add_parts(all.subspan(first, next - first), codes[file], parts);
    first = next;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const CodePart& a, const CodePart& b) { return a.self > b.self; });
  return parts;
}

std::string render_instructions_json(const store::FunctionPlaces& places, std::span<const CodePart> parts,
                                     double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, places, frequency_hz, places.samples, places.cpu_ns(places.samples));
  append_function(json, places);
  json.key("parts").begin_array();
  for (const CodePart& part : parts) {
    json.begin_object();
    append_text(json, "module", part.module);
    append_text(json, "build_id", part.build_id);
    append_text(json, "around", part.around);
    append_text(json, "reason", part.reason);
    json.key("self").number(part.self);
    json.key("instructions").begin_array();
    for (const InstructionRow& row : part.rows) {
      json.begin_object();
      append_text(json, "address", row.address ? hex(*row.address) : std::string());
      append_text(json, "bytes", hex_bytes(row.bytes));
      append_text(json, "text", row.text);
      if (row.line != 0) {
        json.key("file").string(row.file);
        json.key("line").number(std::uint64_t{row.line});
      }
      json.key("self").number(row.self);
      json.key("callees").number(row.callees);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

std::string render_instructions_text(const store::FunctionPlaces& places, std::span<const CodePart> parts) {
  std::string out = function_head(places);
  for (const CodePart& part : parts) {
    out += "\n" + one_line(part.module);
    if (!part.build_id.empty()) out += "  build-id " + part.build_id;
    if (!part.around.empty()) out += "  in " + one_line(part.around);
    out += '\n';
    if (!part.reason.empty()) out += "addresses alone: " + one_line(part.reason) + "\n";
    out += "      self  self%   callees        address  instruction\n";
    for (const InstructionRow& row : part.rows) {
      out += own_columns(row.self, places);
      const std::string callees = row.callees != 0 ? std::to_string(row.callees) : std::string();
      const std::string address = row.address ? hex(*row.address).substr(2) : "-";
      std::array<char, 64> columns{};
      std::snprintf(columns.data(), columns.size(), " %9s %14s", callees.c_str(), address.c_str());
      out += columns.data();
      const std::string shown = !row.text.empty() ? one_line(row.text) : hex_bytes(row.bytes);
      const std::string at = place_of(row);
      if (!shown.empty()) out += "  " + shown;
      if (!at.empty()) out += "  # " + at;
      out += '\n';
    }
  }
  return out;
}

}  // namespace flamed::api
