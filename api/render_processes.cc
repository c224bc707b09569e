// SPDX-License-Identifier: Apache-2.0
#include "api/render_processes.h"

#include "api/json_writer.h"
#include "api/render_common.h"

namespace flamed::api {

std::string render_processes(const store::WallWindow& window, std::span<const store::ProcessUsage> usage,
                             double frequency_hz) {
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;
  for (const store::ProcessUsage& row : usage) {
    samples += row.samples;
    cpu_ns += row.cpu_ns;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_window(json.key("window"), window);
  json.key("frequency_hz").number(frequency_hz);
  json.key("samples").number(samples);
  json.key("cpu_seconds").number(cpu_seconds(cpu_ns));
  json.key("processes").begin_array();
  for (const store::ProcessUsage& row : usage) {
    json.begin_object();
    append_process(json, row.info);
    json.key("samples").number(row.samples);
    json.key("cpu_seconds").number(cpu_seconds(row.cpu_ns));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
