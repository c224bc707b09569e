// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_marks.h"

#include "api/render/render_common.h"
#include "api/render/summary_words.h"
#include "api/text/json_writer.h"
#include "api/text/time_expression.h"
#include "store/model/container_text.h"

namespace flamed::api {
namespace {

void append_uid(JsonWriter& json, std::string_view name, std::optional<std::uint32_t> uid) {
  json.key(name);
  if (uid) {
    json.number(std::uint64_t{*uid});
  } else {
    json.null();
  }
}

void append_text(JsonWriter& json, std::string_view name, const std::string& text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.string(text);
  }
}

std::string id_of(const store::ProcessInfo& process) {
  return std::to_string(process.id.pid) + "@" + std::to_string(process.id.start_ticks);
}

std::string_view kind_of(const Mark& mark) {
  if (mark.pressure) return "pressure";
  return mark.is_note ? "note" : "restart";
}

void append_pressure(JsonWriter& json, const PressureMark& mark) {
  json.key("to_ms").number((mark.minute.start.ns + kNsPerMinute) / kNsPerMs);
  json.key("pressure").begin_object();
  for (std::size_t i = 0; i < kResources; ++i) json.key(kResourceNames[i]).number(mark.minute.shares[i]);
  json.end_object();
  json.key("waits");
  if (!mark.waits) {
    json.null();
    return;
  }
  json.begin_array();
  for (const store::WorstWait& wait : *mark.waits) {
    json.begin_object();
    json.key("id").string(id_of(wait.process)).key("comm").string(wait.process.comm);
    json.key("reason").string(store::name_of(wait.reason));
    json.key("seconds").number(cpu_seconds(wait.ns));
    json.end_object();
  }
  json.end_array();
}

void append_mark(JsonWriter& json, const Mark& mark) {
  json.begin_object();
  json.key("time").time(mark.time);
  json.key("time_ms").number(mark.time.ns / kNsPerMs);
  json.key("kind").string(kind_of(mark));
  json.key("text").string(mark.text);
  if (mark.is_note) append_uid(json, "uid", mark.uid);
  if (mark.pressure) append_pressure(json, *mark.pressure);
  if (mark.restart) {
    const store::ProcessInfo& after = mark.restart->after;
    const store::ProcessInfo& before = mark.restart->before;
    json.key("program").string(after.executable);
    append_text(json, "unit", after.unit);
    const auto [id, name] = store::split_container(after.container);
    append_text(json, "container", std::string(id));
    append_text(json, "container_name", std::string(name));
    json.key("id").string(id_of(after));
    json.key("id_before").string(id_of(before));
    json.key("ended_ms").number(before.ended.value_or(WallTime{}).ns / kNsPerMs);
  }
  json.end_object();
}

}  // namespace

std::string render_mark(const Mark& mark) {
  std::string out;
  JsonWriter json(out);
  append_mark(json, mark);
  out += '\n';
  return out;
}

std::string render_marks(const std::vector<Mark>& marks, const store::WallWindow& window,
                         std::optional<std::uint32_t> only_user) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_window(json.key("window"), window);
  append_uid(json, "visible_uid", only_user);
  json.key("marks").begin_array();
  for (const Mark& mark : marks) append_mark(json, mark);
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

std::string render_marks_text(const std::vector<Mark>& marks, const store::WallWindow& window,
                              std::optional<std::uint32_t> only_user) {
  std::string out = words::count_of(marks.size(), "mark", "marks") + ", " + format_time(window.from) + " to " +
                    format_time(window.to);
  if (only_user) out += ", processes of uid " + std::to_string(*only_user) + " only";
  out += '\n';
  for (const Mark& mark : marks) {
    out += format_time(mark.time) + "  " + std::string(kind_of(mark)) + "  " + words::shown(mark.text);
    if (mark.restart) out += "  " + id_of(mark.restart->before) + " -> " + id_of(mark.restart->after);
    if (mark.pressure && mark.pressure->waits) {
      for (const store::WorstWait& wait : *mark.pressure->waits) {
        out += "; " + words::shown(wait.process.comm) + " (" + id_of(wait.process) + ") " +
               std::string(store::name_of(wait.reason)) + " " + words::seconds(wait.ns);
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
