// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_source.h"

#include <array>
#include <cstdint>
#include <cstdio>

#include "api/render/function_head.h"
#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {

std::string render_source_json(const store::FunctionPlaces& places, double frequency_hz) {
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
  json.end_object();
  out += '\n';
  return out;
}

std::string render_source_text(const store::FunctionPlaces& places) {
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
    }
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
