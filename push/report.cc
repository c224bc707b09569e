// SPDX-License-Identifier: Apache-2.0
#include "push/report.h"

#include "api/text/json_writer.h"

namespace flamed::push {

std::string report(std::int64_t interval_ms, std::int64_t cpu_ns, std::span<const ReceiverFigures> receivers) {
  std::string out;
  api::JsonWriter json(out);
  json.begin_object().key("interval_ms").number(interval_ms).key("cpu_ns").number(cpu_ns);
  json.key("receivers").begin_array();
  for (const ReceiverFigures& receiver : receivers) {
    for (const Figures& figures : receiver.figures) {
      json.begin_object().key("name").string(receiver.name).key("measure").string(figures.measure);
      json.key("outcome").string(figures.outcome).key("status").number(std::int64_t{figures.status});
      json.key("until_ms").number(figures.until_ms);
      json.key("requests").number(figures.requests).key("bytes").number(figures.bytes);
      json.key("resent").number(figures.resent).key("samples").number(figures.samples);
      json.key("rejected").number(figures.rejected).key("dropped").begin_array();
      for (const std::uint64_t samples : figures.dropped) json.number(samples);
      json.end_array().end_object();
    }
  }
  json.end_array().end_object();
  return out;
}

}  // namespace flamed::push
