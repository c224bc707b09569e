// SPDX-License-Identifier: Apache-2.0
#include "api/querier/answers.h"

#include "api/querier/message_writer.h"

namespace flamed::api {
namespace {

template <typename Message>
void write(Message& out, const TypesAnswer& answer) {
  out.messages({1, "profileTypes"}, answer.types, [](auto& message, const ProfileType& type) {
    message.text({1, "ID"}, type.id);
    message.text({2, "name"}, type.name);
    message.text({4, "sampleType"}, type.sample_type);
    message.text({5, "sampleUnit"}, type.sample_unit);
    message.text({6, "periodType"}, type.period_type);
    message.text({7, "periodUnit"}, type.period_unit);
  });
}

template <typename Message>
void write(Message& out, const NamesAnswer& answer) {
  out.texts({1, "names"}, answer.names);
}

template <typename Message>
void write(Message& out, const Labels& labels) {
  out.messages({1, "labels"}, labels, [](auto& message, const Label& label) {
    message.text({1, "name"}, label.name);
    message.text({2, "value"}, label.value);
  });
}

template <typename Message>
void write(Message& out, const LabelSetsAnswer& answer) {
  out.messages({2, "labelsSet"}, answer.sets, [](auto& message, const Labels& labels) { write(message, labels); });
}

template <typename Message>
void write(Message& out, const SeriesAnswer& answer) {
  out.messages({1, "series"}, answer.series, [](auto& message, const LabelledSeries& series) {
    write(message, series.labels);
    message.messages({2, "points"}, series.points, [](auto& point, const SeriesPoint& value) {
      point.real({1, "value"}, value.value);
      point.number({2, "timestamp"}, value.time_ms);
    });
  });
}

template <typename Message>
void write(Message& out, const LevelsAnswer& answer) {
  out.message({1, "flamegraph"}, [&](auto& graph) {
    graph.texts({1, "names"}, answer.names);
    graph.messages({2, "levels"}, answer.levels, [](auto& level, const std::vector<std::int64_t>& values) {
      level.numbers({1, "values"}, values);
    });
    graph.number({3, "total"}, answer.total);
    graph.number({4, "maxSelf"}, answer.max_self);
  });
}

template <typename Message>
void write(Message& out, const StatsAnswer& answer) {
  out.flag({1, "dataIngested"}, answer.has_data);
  out.number({2, "oldestProfileTime"}, answer.oldest_ms);
  out.number({3, "newestProfileTime"}, answer.newest_ms);
}

template <typename Answer>
std::string encoded(const Answer& answer, CallEncoding encoding) {
  std::string out;
  if (encoding == CallEncoding::kProtobuf) {
    ProtobufMessage message(out);
    write(message, answer);
    return out;
  }
  JsonWriter json(out);
  JsonMessage message(json);
  json.begin_object();
  write(message, answer);
  json.end_object();
  return out;
}

}  // namespace

std::string encode(const TypesAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }
std::string encode(const NamesAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }
std::string encode(const LabelSetsAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }
std::string encode(const SeriesAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }
std::string encode(const LevelsAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }
std::string encode(const StatsAnswer& answer, CallEncoding encoding) { return encoded(answer, encoding); }

}  // namespace flamed::api
