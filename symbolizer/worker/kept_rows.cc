// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/kept_rows.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "base/keyed_hash.h"
#include "symbolizer/worker/value_codec.h"
#include "unwinder/rows_builder.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kMagic = "flamed rows";
/// As many as the worker may answer with.
constexpr std::size_t kMaxBytes = std::size_t{160} << 20;

}  // namespace

WireWriter kept_rows_of(const SourcedRows& rows) {
  WireWriter to;
  to.text(kMagic);
  to.number(unwinder::kRowsEdition);
  ValueCodec::encode(to, rows);
  KeyedDigest digest(rows.source.key);
  for (const std::span<const std::byte> piece : to.pieces()) digest.add(piece);
  to.number(digest.value());
  return to;
}

Result<SourcedRows> read_kept_rows(int fd, int kept) {
  if (kept < 0) return Error("no rows are kept");
  const Result<std::string> text = read_fd(kept, kMaxBytes);
  if (!text) return text.error();
  const auto bytes = std::as_bytes(std::span(*text));
  MemorySource source(bytes);
  WireReader from(source, bytes.size());
  std::string magic;
  std::uint32_t edition = 0;
  SourcedRows rows;
  std::uint64_t expected = 0;
  if (!from.text(magic, 64) || magic != kMagic) return Error("not a file of rows");
  if (!from.number(edition) || edition != unwinder::kRowsEdition) return Error("of another version of flamed");
  if (!ValueCodec::decode(from, rows) || !from.number(expected) || !from.finished()) {
    return Error(from.damage() != nullptr ? from.damage() : "it ends too early");
  }
  KeyedDigest whole(rows.source.key);
  whole.add(bytes.first(bytes.size() - sizeof(expected)));
  if (whole.value() != expected) return Error("its bytes have changed");
  if (rows.source.ranges.empty()) return Error("it does not say what it follows from");
  const Result<std::uint64_t> digest = digest_of(fd, rows.source.ranges, rows.source.key);
  if (!digest) return digest.error();
  if (*digest != rows.source.digest) return Error("the module's file has changed");
  rows.was_kept = true;
  return rows;
}

}  // namespace flamed::symbolizer
