// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_source.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "api/render/function_head.h"
#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

void append_texts(JsonWriter& json, const std::vector<SourceExcerpt>& excerpts) {
  json.key("texts").begin_array();
  for (const SourceExcerpt& excerpt : excerpts) {
    json.begin_object();
    json.key("module").string(excerpt.module);
    json.key("file").string(excerpt.file);
    if (excerpt.reason.empty()) {
      json.key("reason").null();
    } else {
      json.key("reason").string(excerpt.reason);
    }
    json.key("newer").boolean(excerpt.is_newer);
    json.key("lines").begin_array();
    for (const auto& [number, text] : excerpt.lines) {
      json.begin_object();
      json.key("line").number(std::uint64_t{number});
      json.key("text").string(text);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

/// Of the line; null: it is not there.
const std::string* text_of(const store::LinePlace& place, std::span<const SourceExcerpt> excerpts) {
  for (const SourceExcerpt& excerpt : excerpts) {
    if (excerpt.module != place.module || excerpt.file != place.file) continue;
    const auto at =
        std::lower_bound(excerpt.lines.begin(), excerpt.lines.end(), place.line,
                         [](const SourceExcerpt::Line& line, std::uint32_t number) { return line.number < number; });
    return at != excerpt.lines.end() && at->number == place.line ? &at->text : nullptr;
  }
  return nullptr;
}

}  // namespace

std::string render_source_json(const store::FunctionPlaces& places, double frequency_hz,
                               const std::vector<SourceExcerpt>* excerpts) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, places, frequency_hz, places.samples, places.cpu_ns(places.samples));
  append_function(json, places);
  json.key("lines").begin_array();
  for (const store::LinePlace& place : places.lines) {
    json.begin_object();
    json.key("module").string(place.module);
    if (place.file.empty()) {
      json.key("file").null();
    } else {
      json.key("file").string(place.file);
    }
    if (place.line == 0) {
      json.key("line").null();
    } else {
      json.key("line").number(std::uint64_t{place.line});
    }
    json.key("self").number(place.self_samples);
    json.key("total").number(place.total_samples);
    json.end_object();
  }
  json.end_array();
  if (excerpts != nullptr) append_texts(json, *excerpts);
  json.end_object();
  out += '\n';
  return out;
}

std::string render_source_text(const store::FunctionPlaces& places, std::span<const SourceExcerpt> excerpts) {
  std::string out = function_head(places);
  out += "      self  self%      total  line\n";
  for (const store::LinePlace& place : places.lines) {
    out += own_columns(place.self_samples, places);
    std::array<char, 32> total{};
    std::snprintf(total.data(), total.size(), " %10llu  ", static_cast<unsigned long long>(place.total_samples));
    out += total.data();
    if (place.file.empty()) {
      out += "[no line is known]";
    } else {
      out += one_line(place.file);
      if (place.line != 0) out += ":" + std::to_string(place.line);
      if (const std::string* text = text_of(place, excerpts); text != nullptr) out += "  " + *text;
    }
    out += '\n';
  }
  for (const SourceExcerpt& excerpt : excerpts) {
    if (excerpt.is_newer) out += one_line(excerpt.file) + ": newer than the program, so lines may have moved\n";
    if (!excerpt.reason.empty()) out += one_line(excerpt.file) + ": no text: " + one_line(excerpt.reason) + "\n";
  }
  return out;
}

}  // namespace flamed::api
