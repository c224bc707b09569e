// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_processes.h"

#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {

std::string render_processes(const store::UsageTable<store::ProcessUsage>& usage, double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, usage, frequency_hz, usage.total_samples, usage.total_ns);
  json.key("processes").begin_array();
  for (const store::ProcessUsage& row : usage.rows) {
    json.begin_object();
    append_process(json, row.info);
    json.key("samples").number(row.samples);
    json.key("cpu_seconds").number(cpu_seconds(row.cpu_ns));
    if (usage.measure != store::Measure::kCpu) append_waits(json, row.waits_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

std::string render_process_groups(const store::UsageTable<store::GroupUsage>& usage, double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, usage, frequency_hz, usage.total_samples, usage.total_ns);
  json.key("groups").begin_array();
  for (const store::GroupUsage& row : usage.rows) {
    json.begin_object();
    json.key("name").string(row.name);
    json.key("select");
    if (row.parameter.empty()) {
      json.null();
    } else {
      json.begin_object().key(row.parameter).string(row.value).end_object();
    }
    json.key("processes").number(std::uint64_t{row.processes});
    json.key("ended").number(std::uint64_t{row.ended});
    json.key("samples").number(row.samples);
    json.key("cpu_seconds").number(cpu_seconds(row.cpu_ns));
    if (usage.measure != store::Measure::kCpu) append_waits(json, row.waits_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
