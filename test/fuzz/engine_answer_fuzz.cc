// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a container engine answers, at once and in pieces.
//
// The first byte chooses the protocol.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "symbolizer/model/clean_name.h"
#include "symbolizer/reader/cri_exchange.h"
#include "symbolizer/reader/engine_answer.h"

namespace {

using namespace flamed;
using namespace flamed::symbolizer;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Result<ContainerNames>& names) {
  // The answer may have secrets.
  if (!names) return require(names.error().message().size() < 128);
  for (const std::string& name : {names->name, names->pod, names->pod_namespace}) {
    require(name.size() <= kMaxContainerNameBytes && name == clean_name(name) && name.find('/') == std::string::npos);
  }
}

Result<ContainerNames> parse_pieces(std::string_view answer, const std::string& id) {
  CriExchange exchange(id);
  for (std::size_t at = 0, size = 1; at < answer.size(); at += size, size = size % 37 + 1) {
    if (Status taken = exchange.take(answer.substr(at, size)); !taken) return taken.error();
  }
  return exchange.names();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string id(64, 'a');
  const EngineProtocol protocol{static_cast<std::uint8_t>(data[0] % kEngineProtocols)};
  const Result<ContainerNames> names = parse_engine_answer(answer, protocol, id);
  check(names);
  if (protocol == EngineProtocol::kCri) {
    const Result<ContainerNames> pieces = parse_pieces(answer, id);
    check(pieces);
    require(names.ok() == pieces.ok() && (!names || *names == *pieces));
  }
  return 0;
}
