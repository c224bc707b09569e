// SPDX-License-Identifier: Apache-2.0
//
// Any file of kept rows, beside any module: it is refused, or it is what flamed has written for a module with these
// bytes. The first two bytes are the module's size; then the module, then the file. What decodes as a value is then
// kept as flamed would, and comes back.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/handle.h"
#include "symbolizer/worker/kept_rows.h"
#include "symbolizer/worker/value_codec.h"

namespace {

using namespace flamed;
using symbolizer::SourcedRows;
using Bytes = std::vector<std::byte>;

void require(bool holds) {
  if (!holds) std::abort();
}

void fill(const Fd& file, std::span<const std::byte> bytes) {
  require(::ftruncate(file.get(), 0) == 0);
  require(::pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  require(::lseek(file.get(), 0, SEEK_SET) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fd module(::memfd_create("module", MFD_CLOEXEC));
  static const Fd kept(::memfd_create("kept", MFD_CLOEXEC));
  std::uint16_t module_size = 0;
  if (size < sizeof(module_size)) return 0;
  std::memcpy(&module_size, data, sizeof(module_size));
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(sizeof(module_size));
  fill(module, bytes.first(std::min<std::size_t>(module_size, bytes.size())));
  const auto rest = bytes.subspan(std::min<std::size_t>(module_size, bytes.size()));

  fill(kept, rest);
  if (const Result<SourcedRows> read = symbolizer::read_kept_rows(module.get(), kept.get())) {
    require(read->was_kept && !read->source.ranges.empty());
  }

  SourcedRows value;
  symbolizer::MemorySource source(rest);
  symbolizer::WireReader reader(source, rest.size());
  if (!symbolizer::ValueCodec::decode(reader, value)) return 0;
  const Result<std::uint64_t> digest = symbolizer::digest_of(module.get(), value.source.ranges, value.source.key);
  if (digest) value.source.digest = *digest;
  fill(kept, symbolizer::kept_rows_of(value).bytes());
  const Result<SourcedRows> again = symbolizer::read_kept_rows(module.get(), kept.get());
  require(again.ok() == (digest.ok() && !value.source.ranges.empty()));
  if (again) require(again->source == value.source && again->rows.rows.size() == value.rows.rows.size());
  return 0;
}
