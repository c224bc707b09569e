// SPDX-License-Identifier: Apache-2.0
#include "api/text/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <optional>

namespace flamed::api {
namespace {

/// Bits of the window, plus 16 for gzip instead of zlib (zlib.h, deflateInit2).
constexpr int kGzip = 16;
constexpr int kGzipWindowBits = 15 + kGzip;
/// A flame graph of 14 MB becomes 1.6 MB in 104 ms at level 3, and 1.3 MB in 242 ms at level 6, zlib's default.
constexpr int kLevel = 3;
/// The default is 8 for a window of 15 bits.
constexpr int kWindowWithoutMemory = 7;

/// Tables for long texts take longer to make and to clear than a short text to compress, such as the profile of one
/// service of many.
int window_bits_for(std::size_t bytes) { return std::clamp(static_cast<int>(std::bit_width(bytes)), 10, 15); }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Zero in any notation of a weight: 0, 0., 0.000.
bool is_zero_weight(std::string_view parameters) {
  const std::size_t equals = parameters.find("q=");
  if (equals == std::string_view::npos) return false;
  const std::string_view weight = trim(parameters.substr(equals + 2));
  return !weight.empty() && weight.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool accepts_coding(std::string_view accept_encoding, std::string_view coding) {
  std::optional<bool> named;
  bool any = false;
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    accept_encoding = comma == std::string_view::npos ? std::string_view{} : accept_encoding.substr(comma + 1);
    const std::size_t semicolon = item.find(';');
    const std::string_view offered = trim(item.substr(0, semicolon));
    const bool wanted = semicolon == std::string_view::npos || !is_zero_weight(item.substr(semicolon));
    // x-gzip is an old name of gzip (RFC 9110, 8.4.1.3).
    if (offered == coding || (coding == "gzip" && offered == "x-gzip")) named = wanted;
    if (offered == "*") any = wanted;
  }
  return named.value_or(any);
}

bool accepts_gzip(std::string_view accept_encoding) { return accepts_coding(accept_encoding, "gzip"); }

Result<std::string> gzip(std::string_view text) {
  z_stream stream{};
  const int window = window_bits_for(text.size());
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, window + kGzip, window - kWindowWithoutMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return Error("cannot compress the answer: zlib has no memory");
  }
  std::string out;
  std::array<unsigned char, 65536> buffer;
  int state = Z_OK;
  // zlib counts in 32 bits, so a longer text is passed in pieces.
  constexpr std::size_t kPiece = 1U << 30;
  do {
    const std::string_view piece = text.substr(0, kPiece);
    text.remove_prefix(piece.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    const int flush = text.empty() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = buffer.data();
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = ::deflate(&stream, flush);
      out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0 && state != Z_STREAM_END);
  } while (!text.empty());
  ::deflateEnd(&stream);
  if (state != Z_STREAM_END) return Error("cannot compress the answer: zlib state " + std::to_string(state));
  return out;
}

Result<std::string> gunzip(std::span<const unsigned char> compressed, std::size_t most_bytes) {
  z_stream stream{};
  if (::inflateInit2(&stream, kGzipWindowBits) != Z_OK) return Error("cannot decompress: zlib has no memory");
  std::string out;
  std::array<unsigned char, 16384> buffer;
  stream.next_in = const_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most_bytes) {
    stream.next_out = buffer.data();
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (out.size() > most_bytes) return Error("it unpacks to more than " + std::to_string(most_bytes) + " bytes", E2BIG);
  if (state != Z_STREAM_END) return Error("cannot decompress: zlib state " + std::to_string(state));
  return out;
}

}  // namespace flamed::api
