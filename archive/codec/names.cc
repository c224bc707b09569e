// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/names.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "archive/codec/block.h"
#include "archive/codec/texts.h"

namespace flamed::archive {
namespace {

constexpr std::uint8_t kVersion = 1;
/// Of names, chains, their frames, and texts in one block.
constexpr std::uint64_t kMostRows = 1U << 20;
constexpr std::uint64_t kTrustedRows = 1U << 16;
constexpr std::uint64_t kKinds = static_cast<std::uint64_t>(kLastFrameKind) + 1;

// The columns. A text is a number in the block's own list of texts.
enum : std::size_t {
  kHead,       // how many names, chains, and texts
  kTextSizes,  // of each text
  kTexts,      // one after the other
  kFrames,     // of each name: difference to the frame before
  kChains,     // of each name: the next chain - chain; the next chain is the one after the highest so far, at first 0
  kLengths,    // of each chain: number of its frames - 1
  kFunctions,  // of each frame of a chain: name, full name
  kPlaces,     // module, build id, reason, kind << 1 | inlined
  kLines,      // file, line
  kOffsets,    // of kUnnamed
  kColumns
};

Error damaged() { return Error("damaged names"); }

}  // namespace

Result<std::vector<std::byte>> encode(std::span<const Name> names) {
  std::array<Column, kColumns> columns;
  TextWriter text(columns[kTextSizes], columns[kTexts]);
  std::unordered_map<const InlineChain*, std::uint64_t> chains;
  std::int64_t previous = 0;
  std::size_t frames = 0;
  for (const Name& name : names) {
    columns[kFrames].put_signed(name.frame - std::exchange(previous, std::int64_t{name.frame}));
    const auto [place, is_new] = chains.try_emplace(name.chain.get(), chains.size());
    columns[kChains].put(chains.size() - (is_new ? 1 : 0) - place->second);
    if (!is_new) continue;
    columns[kLengths].put(name.chain->size() - 1);
    frames += name.chain->size();
    for (const NamedFrame& frame : *name.chain) {
      columns[kFunctions].put(text(frame.name));
      columns[kFunctions].put(text(frame.full_name));
      columns[kPlaces].put(text(frame.module));
      columns[kPlaces].put(text(frame.build_id));
      columns[kPlaces].put(text(frame.reason));
      columns[kPlaces].put(static_cast<std::uint64_t>(frame.kind) << 1 | (frame.inlined ? 1U : 0U));
      columns[kLines].put(text(frame.file));
      columns[kLines].put(frame.line);
      if (frame.kind == FrameKind::kUnnamed) columns[kOffsets].put(frame.offset);
    }
  }
  if (std::max({names.size(), frames, text.count()}) > kMostRows) return Error("a minute has too many names");
  columns[kHead].put(names.size());
  columns[kHead].put(chains.size());
  columns[kHead].put(text.count());
  const Result<std::vector<std::byte>> block = pack_block(kVersion, columns);
  if (!block) return block.error();
  std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();
  for (const Name& name : names) lowest = std::min(lowest, name.frame);
  return stamped(*block, lowest);
}

std::optional<std::uint32_t> lowest_frame_in(std::span<const std::byte> block) { return take_stamp(block).stamp; }

namespace {

class Decoder {
 public:
  Decoder(BlockReader& columns, const WantsName& wants) : columns_(columns), wants_(wants) {}

  Result<std::vector<Name>> decode(std::uint32_t frames) {
    const std::uint64_t names = take_count();
    const std::uint64_t chains = take_count();
    take_texts(take_count());
    require(chains <= columns_[kLengths].left());
    if (!is_wrong_) chains_.resize(chains);
    take_names(names, frames);
    take_chains();
    if (is_wrong_ || !columns_.ok()) return damaged();
    std::vector<Name> decoded;
    decoded.reserve(wanted_.size());
    for (const Wanted& name : wanted_) decoded.push_back({name.frame, chains_[name.chain].chain});
    return decoded;
  }

 private:
  struct Chain {
    bool is_wanted = false;
    std::shared_ptr<const InlineChain> chain;
  };
  struct Wanted {
    std::uint32_t frame = 0;
    std::uint64_t chain = 0;
  };

  /// Whether another row should be read, which begins in that column: so there are no more rows than it has bytes. That
  /// another one has ended is seen in the end.
  [[nodiscard]] bool goes_on(std::size_t column) const { return !is_wrong_ && columns_[column].ok(); }
  void require(bool condition) { is_wrong_ = is_wrong_ || !condition; }

  std::uint64_t take_count() {
    const std::uint64_t count = columns_[kHead].uleb();
    require(count <= kMostRows);
    return is_wrong_ ? 0 : count;
  }
  void take_texts(std::uint64_t count) {
    texts_.reserve(std::min(count, kTrustedRows));
    while (goes_on(kTextSizes) && texts_.size() < count) {
      const std::span<const std::byte> text = columns_[kTexts].take(columns_[kTextSizes].uleb());
      texts_.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
  }
  void take_names(std::uint64_t count, std::uint32_t frames) {
    std::int64_t frame = 0;
    std::uint64_t next = 0;
    for (; goes_on(kFrames) && count > 0; --count) {
      const std::int64_t step = unzigzag(columns_[kFrames].uleb());
      const std::uint64_t back = columns_[kChains].uleb();
      require(-std::int64_t{frames} <= step && step <= std::int64_t{frames} && back <= next);
      if (is_wrong_) return;
      frame += step;
      const std::uint64_t chain = next - back;
      require(0 <= frame && frame < std::int64_t{frames} && chain < chains_.size());
      if (is_wrong_) return;
      if (chain == next) ++next;
      if (wants_ && !wants_(static_cast<std::uint32_t>(frame))) continue;
      chains_[chain].is_wanted = true;
      wanted_.push_back({static_cast<std::uint32_t>(frame), chain});
    }
  }
  std::string_view take_text(std::size_t column) {
    const std::uint64_t number = columns_[column].uleb();
    require(number < texts_.size());
    return is_wrong_ ? std::string_view() : texts_[number];
  }
  void take_chains() {
    std::uint64_t left = kMostRows;
    for (Chain& chain : chains_) {
      const std::uint64_t length = columns_[kLengths].uleb();
      require(length < left);
      if (!goes_on(kLengths)) return;
      left -= length + 1;
      InlineChain frames;
      for (std::uint64_t i = 0; goes_on(kFunctions) && i <= length; ++i) {
        const Texts texts = take_frame();
        if (chain.is_wanted) frames.push_back(texts.named());
      }
      if (chain.is_wanted) chain.chain = share(std::move(frames));
    }
  }
  /// A frame as it is in the block.
  struct Texts {
    std::string_view name, full_name, module, build_id, reason, file;
    FrameKind kind{};
    bool inlined = false;
    std::uint32_t line = 0;
    std::uint64_t offset = 0;

    [[nodiscard]] NamedFrame named() const {
      NamedFrame frame;
      frame.name = name;
      frame.full_name = full_name;
      frame.module = module;
      frame.build_id = build_id;
      frame.reason = reason;
      frame.kind = kind;
      frame.inlined = inlined;
      frame.file = file;
      frame.line = line;
      frame.offset = offset;
      return frame;
    }
  };
  Texts take_frame() {
    Texts frame;
    frame.name = take_text(kFunctions);
    frame.full_name = take_text(kFunctions);
    frame.module = take_text(kPlaces);
    frame.build_id = take_text(kPlaces);
    frame.reason = take_text(kPlaces);
    const std::uint64_t kind = columns_[kPlaces].uleb();
    require(kind >> 1 < kKinds);
    frame.kind = static_cast<FrameKind>(kind >> 1);
    frame.inlined = (kind & 1) != 0;
    frame.file = take_text(kLines);
    const std::uint64_t line = columns_[kLines].uleb();
    require(line <= std::numeric_limits<std::uint32_t>::max());
    frame.line = static_cast<std::uint32_t>(line);
    if (frame.kind == FrameKind::kUnnamed) frame.offset = columns_[kOffsets].uleb();
    return frame;
  }

  BlockReader& columns_;
  const WantsName& wants_;
  std::vector<std::string_view> texts_;  ///< in the block
  std::vector<Chain> chains_;
  std::vector<Wanted> wanted_;
  bool is_wrong_ = false;
};

}  // namespace

Result<std::vector<Name>> decode_names(std::span<const std::byte> block, std::uint32_t frames, const WantsName& wants) {
  Result<BlockReader> columns = BlockReader::open(block, kVersion, kColumns);
  if (!columns) return std::move(columns).error();
  return Decoder(*columns, wants).decode(frames);
}

}  // namespace flamed::archive
