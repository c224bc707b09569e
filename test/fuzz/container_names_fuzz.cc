// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a container runtime has written, and as the name of a link to a container's log.
//
// The first byte chooses the format.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "symbolizer/model/clean_name.h"
#include "symbolizer/reader/container_names.h"

namespace {

using namespace flamed::symbolizer;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const ContainerNames& names) {
  for (const std::string& name : {names.name, names.pod, names.pod_namespace}) {
    require(name.size() <= kMaxContainerNameBytes && name == clean_name(name) && name.find('/') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string id(64, 'a');
  const auto names = parse_container_file(text, ContainerFormat(data[0] % kContainerFormats), id);
  if (names) {
    check(*names);
  } else {
    // The file may have secrets.
    require(names.error().message().size() < 64);
  }
  check(parse_container_log_name(text, id));
  check(parse_container_log_name(std::string(text) + "-" + id + ".log", id));
  return 0;
}
