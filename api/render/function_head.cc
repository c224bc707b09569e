// SPDX-License-Identifier: Apache-2.0
#include "api/render/function_head.h"

#include <array>
#include <cstdio>

#include "api/render/render_common.h"

namespace flamed::api {

void append_function(JsonWriter& json, const store::FunctionPlaces& places) {
  json.key("function");
  if (places.frame) {
    store::NamedFrame frame = *places.frame;
    // These are the rows'.
    frame.file.clear();
    frame.line = 0;
    frame.inlined = false;
    json.begin_object();
    append_frame(json, frame);
    json.end_object();
  } else {
    json.null();
  }
  json.key("self").number(places.function.self_samples);
  json.key("total").number(places.function.total_samples);
}

std::string function_head(const store::FunctionPlaces& places) {
  std::string out = text_head(places, places.samples, places.cpu_ns(places.samples));
  if (!places.frame) return out;
  out += one_line(places.frame->name);
  if (!places.frame->module.empty()) out += " (" + one_line(places.frame->module) + ")";
  return out + ": " + std::to_string(places.function.self_samples) + " self, " +
         std::to_string(places.function.total_samples) + " total\n";
}

std::string own_columns(std::uint64_t self, const store::FunctionPlaces& places) {
  std::array<char, 48> columns{};
  if (self == 0) {
    std::snprintf(columns.data(), columns.size(), "%17s", "");
  } else {
    const double percent = 100 * static_cast<double>(self) / static_cast<double>(places.function.self_samples);
    std::snprintf(columns.data(), columns.size(), "%10llu %5.1f%%", static_cast<unsigned long long>(self), percent);
  }
  return columns.data();
}

}  // namespace flamed::api
