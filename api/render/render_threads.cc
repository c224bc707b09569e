// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_threads.h"

#include "api/render/render_common.h"
#include "api/text/json_writer.h"
#include "store/model/wait_reason.h"

namespace flamed::api {

std::string render_threads(const store::UsageTable<store::ThreadUsage>& usage, double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, usage, frequency_hz, usage.total_samples, usage.total_ns);
  json.key("threads").begin_array();
  for (const store::ThreadUsage& row : usage.rows) {
    json.begin_object();
    json.key("tid").number(std::int64_t{row.tid});
    json.key("comm").string(row.comm);
    json.key("process").begin_object();
    append_process(json, row.process);
    json.end_object();
    json.key("samples").number(row.samples);
    json.key("cpu_seconds").number(cpu_seconds(row.cpu_ns));
    if (usage.measure != store::Measure::kCpu) {
      append_waits(json, row.waits_ns);
      json.key("holders").begin_array();
      for (const store::LockHolderUsage& holder : row.holders) {
        json.begin_object();
        json.key("tid").number(std::int64_t{holder.tid});
        json.key("comm");
        if (holder.comm.empty()) {
          json.null();
        } else {
          json.string(holder.comm);
        }
        json.key("seconds").number(cpu_seconds(holder.ns));
        json.end_object();
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
