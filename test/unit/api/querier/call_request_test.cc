// SPDX-License-Identifier: Apache-2.0
#include "api/querier/call_request.h"

#include <string>
#include <vector>

#include "base/protobuf_reader.h"
#include "base/protobuf_writer.h"
#include "test/catch.h"

namespace flamed::api {
namespace {

using Fields = std::vector<ProtobufField>;

/// A message's fields, which point into it; none if it is refused.
std::optional<Fields> fields_of(std::string_view message) {
  ProtobufReader reader(message);
  Fields fields;
  while (true) {
    const auto field = reader.next();
    if (!field.ok()) return std::nullopt;
    if (!field->has_value()) return fields;
    fields.push_back(**field);
  }
}

CallRequest decoded(CallMethod method, CallEncoding encoding, std::string_view body) {
  auto outcome = decode_call(method, encoding, body);
  if (const auto* problem = std::get_if<Problem>(&outcome)) FAIL(problem->detail);
  return std::get<CallRequest>(outcome);
}

int status_of(CallMethod method, CallEncoding encoding, std::string_view body) {
  const auto outcome = decode_call(method, encoding, body);
  const auto* problem = std::get_if<Problem>(&outcome);
  return problem == nullptr ? 200 : problem->status;
}

constexpr auto kProtobuf = CallEncoding::kProtobuf;
constexpr auto kJson = CallEncoding::kJson;
constexpr auto kSeriesCall = CallMethod::kSelectSeries;
constexpr auto kGraphCall = CallMethod::kSelectMergeStacktraces;

std::string select_series() {
  std::string body;
  ProtobufWriter(body)
      .bytes(1, "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
      .bytes(2, "{}")
      .number(3, 1000)
      .number(4, 4000)
      .bytes(5, "service_name")
      .bytes(5, "host")
      .real(6, 15.5)
      .number(9, 2);
  return body;
}

}  // namespace

TEST_CASE("the fields of a message are read one after the other") {
  const std::string message = select_series();
  const auto fields = fields_of(message);
  REQUIRE(fields.has_value());
  REQUIRE(fields->size() == 8);
  CHECK((*fields)[0].number == 1);
  CHECK((*fields)[0].bytes == "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  CHECK((*fields)[2].value == 1000);
  CHECK((*fields)[6].type == WireType::kFixed64);
  CHECK(fields_of("")->empty());
  CHECK(fields_of("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")->at(0).value == ~std::uint64_t{0});
  CHECK(fields_of(std::string("\x0d\x01\x00\x00\x80", 5))->at(0).value == 0x80000001U);
}

TEST_CASE("groups are skipped, whatever is in them") {
  // Field 1 is 5, then group 3 has a field and an empty group 4, then field 2 is 6.
  const auto fields = fields_of("\x08\x05\x1b\x08\x07\x23\x24\x1c\x10\x06");
  REQUIRE(fields.has_value());
  REQUIRE(fields->size() == 2);
  CHECK((*fields)[1].value == 6);
  CHECK_FALSE(fields_of("\x1b\x08\x07").has_value());  // does not end
  CHECK_FALSE(fields_of("\x1c").has_value());          // did not begin
  CHECK_FALSE(fields_of("\x1b\x24").has_value());      // another one ends
  CHECK_FALSE(fields_of(std::string(10'000, '\x1b')).has_value());
}

TEST_CASE("a message that is cut anywhere is refused, or has fewer fields") {
  const std::string whole = select_series();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto fields = fields_of(whole.substr(0, size));
    if (fields) CHECK(fields->size() < 8);
  }
}

TEST_CASE("lengths and numbers that can't be are refused") {
  CHECK_FALSE(fields_of("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").has_value());  // 2^64 - 1 bytes
  CHECK_FALSE(fields_of("\x0a\x02z").has_value());
  CHECK_FALSE(fields_of(std::string("\x00\x01", 2)).has_value());                          // field 0
  CHECK_FALSE(fields_of("\x0e\x01").has_value());                                          // wire type 6
  CHECK_FALSE(fields_of("\x80\x80\x80\x80\x10\x01").has_value());                          // field 2^29
  CHECK_FALSE(fields_of("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").has_value());  // 11 bytes
}

TEST_CASE("a call is the same in protocol buffers and in JSON") {
  const std::string json =
      R"({"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":"1000",)"
      R"("end":4000,"groupBy":["service_name","host"],"step":15.5,"limit":"2","later":{"x":[1]}})";
  const std::string other_names = R"({"profile_typeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds",)"
                                  R"("label_selector":"{}","start":1000,"end":"4000",)"
                                  R"("group_by":["service_name","host"],"step":"15.5","limit":2,"aggregation":null})";
  for (const CallRequest& request : {decoded(kSeriesCall, kProtobuf, select_series()),
                                     decoded(kSeriesCall, kJson, json), decoded(kSeriesCall, kJson, other_names)}) {
    CHECK(request.profile_type == "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    CHECK(request.selector == "{}");
    CHECK(request.start_ms == 1000);
    CHECK(request.end_ms == 4000);
    CHECK(request.labels == std::vector<std::string>{"service_name", "host"});
    CHECK(request.step_s == 15.5);
    CHECK(request.limit == 2);
  }
  CHECK(decoded(CallMethod::kGetProfileStats, kProtobuf, "").start_ms == 0);
  CHECK(decoded(CallMethod::kGetProfileStats, kJson, "{}").start_ms == 0);
}

TEST_CASE("unknown fields of every wire type are skipped") {
  std::string body = select_series();
  ProtobufWriter(body).bytes(100, "x").number(101, 7).real(102, 1.5);
  body += std::string("\xbd\x06\x01\x02\x03\x04\xc3\x06\x08\x01\xc4\x06", 12);  // 103: four bytes, 104: a group
  CHECK(decoded(kSeriesCall, kProtobuf, body).limit == 2);
}

TEST_CASE("a request that can't be decoded has status 400") {
  std::string number_as_text;
  ProtobufWriter(number_as_text).bytes(3, "1000");
  std::string text_as_number;
  ProtobufWriter(text_as_number).number(1, 5);
  std::string no_utf8;
  ProtobufWriter(no_utf8).bytes(2, "\xff");
  for (const std::string& body : {number_as_text, text_as_number, no_utf8, std::string("\x0a\x05z")}) {
    CHECK(status_of(kSeriesCall, kProtobuf, body) == 400);
  }
  for (const std::string_view body :
       {"", "[]", "7", "{", R"({"start":"x"})", R"({"start":[1]})", R"({"start":1.5})", R"({"labelSelector":7})",
        R"({"groupBy":"host"})", R"({"groupBy":[7]})", R"({"step":"fast"})", "{\"labelSelector\":\"\xff\"}"}) {
    CAPTURE(body);
    CHECK(status_of(kSeriesCall, kJson, body) == 400);
  }
  CHECK(status_of(kSeriesCall, kJson, std::string(1U << 20, '[')) == 400);
  std::string many;
  for (int i = 0; i < 6; ++i) ProtobufWriter(many).bytes(1, "{}");
  CHECK(status_of(CallMethod::kSeries, kProtobuf, many) == 400);
}

TEST_CASE("what flamed does not have is refused with status 501, unless it is empty") {
  std::string tree;
  ProtobufWriter(tree).number(6, 2);
  CHECK(status_of(kGraphCall, kProtobuf, tree) == 501);
  std::string span;
  ProtobufWriter(span).bytes(11, "9a517183f26a089d");
  CHECK(status_of(kGraphCall, kProtobuf, span) == 501);
  std::string average;
  ProtobufWriter(average).number(7, 1);
  CHECK(status_of(kSeriesCall, kProtobuf, average) == 501);
  std::string nothing;
  ProtobufWriter(nothing).number(6, 1).bytes(7, "");
  CHECK(status_of(kGraphCall, kProtobuf, nothing) == 200);

  for (const std::string_view body : {R"({"format":"PROFILE_FORMAT_TREE"})", R"({"format":3})",
                                      R"({"stackTraceSelector":{"callSite":[{"name":"f"}]}})",
                                      R"({"profileIdSelector":["x"]})", R"({"span_selector":["9a517183f26a089d"]})"}) {
    CAPTURE(body);
    CHECK(status_of(kGraphCall, kJson, body) == 501);
  }
  CHECK(status_of(kGraphCall, kJson,
                  R"({"format":"PROFILE_FORMAT_FLAMEGRAPH","stackTraceSelector":{"callSite":[]},"spanSelector":[]})") ==
        200);
}

}  // namespace flamed::api
