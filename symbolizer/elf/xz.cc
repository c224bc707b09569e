// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/xz.h"

#include <lzma.h>

#include <algorithm>
#include <cstdint>

#include "base/handle.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kDecoderBytes = std::uint64_t{80} << 20;
constexpr std::size_t kFirstBytes = std::size_t{256} << 10;

const char* reason_of(::lzma_ret result) {
  switch (result) {
    case LZMA_MEM_ERROR:
      return "out of memory";
    case LZMA_MEMLIMIT_ERROR:
      return "it asks for more memory than the limit";
    case LZMA_FORMAT_ERROR:
      return "not in the .xz format";
    case LZMA_OPTIONS_ERROR:
      return "unknown options";
    case LZMA_BUF_ERROR:
      return "truncated";
    default:
      return "damaged";
  }
}

}  // namespace

Result<std::string> unpack_xz(std::string_view packed, std::size_t limit_bytes) {
  ::lzma_stream stream = LZMA_STREAM_INIT;
  const ::lzma_ret started = ::lzma_stream_decoder(&stream, kDecoderBytes, LZMA_TELL_UNSUPPORTED_CHECK);
  if (started != LZMA_OK) return Error(std::string("cannot unpack xz: ") + reason_of(started));
  const Handle<::lzma_stream*, ::lzma_end> ending(&stream);

  std::string out;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  for (;;) {
    // Grows with the actual output, not with the stream's claim.
    const std::size_t done = out.size();
    if (done == limit_bytes) {
      return Error("cannot unpack xz: it holds more than the limit of " + std::to_string(limit_bytes) + " bytes");
    }
    out.resize(std::min(limit_bytes, std::max(kFirstBytes, 2 * done)));
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data()) + done;
    stream.avail_out = out.size() - done;
    const ::lzma_ret result = ::lzma_code(&stream, LZMA_FINISH);
    out.resize(out.size() - stream.avail_out);
    if (result == LZMA_STREAM_END) return out;
    if (result != LZMA_OK) return Error(std::string("cannot unpack xz: ") + reason_of(result));
    if (stream.avail_out != 0) return Error("cannot unpack xz: truncated");
  }
}

}  // namespace flamed::symbolizer
