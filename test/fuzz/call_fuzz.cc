// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a call of Grafana's data source: a request in protocol buffers or JSON, packed or not, and the selectors
// in it, against labels of a process.
//
// The first byte chooses the method and the encoding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "api/querier/call_request.h"
#include "api/querier/label_selector.h"
#include "api/querier/labels.h"
#include "api/text/gzip.h"
#include "api/text/utf8.h"

namespace {

using namespace flamed;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr unsigned kMethods = 7;

void require(bool condition) {
  if (!condition) std::abort();
}

void select(std::string_view text) {
  const auto selector = api::LabelSelector::parse(text);
  if (!selector.ok()) {
    require(!selector.error().message().empty());
    return;
  }
  require(selector->matchers().size() <= api::LabelSelector::kMostMatchers);
  store::ProcessInfo process{{123, 4567}, "worker", "/usr/bin/worker", 0, {}, {}};
  process.unit = "worker.service";
  static_cast<void>(api::ProcessLabels({process, api::profile_types().front(), "host"}).match(*selector));
}

void decode(api::CallMethod method, api::CallEncoding encoding, std::string_view body) {
  const auto outcome = api::decode_call(method, encoding, body);
  if (const auto* problem = std::get_if<api::Problem>(&outcome)) {
    require(problem->status == 400 || problem->status == 501);
    return;
  }
  const auto& request = std::get<api::CallRequest>(outcome);
  require(request.matchers.size() <= api::kMostCallSelectors && request.labels.size() <= api::kMostCallLabels);
  require(api::is_utf8(request.profile_type) && api::is_utf8(request.label));
  select(request.selector);
  for (const std::string& selector : request.matchers) select(selector);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto method = static_cast<api::CallMethod>(data[0] % kMethods);
  const auto encoding = (data[0] / kMethods) % 2 == 0 ? api::CallEncoding::kProtobuf : api::CallEncoding::kJson;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  decode(method, encoding, body);
  if (const auto plain = api::gunzip({data + 1, size - 1}, kMostBytes)) {
    require(plain->size() <= kMostBytes);
    decode(method, encoding, *plain);
  }
  // Most inputs are no request. Selectors alone are useful inputs, too.
  select(body);
  return 0;
}
