// SPDX-License-Identifier: Apache-2.0
//
// A heap is a run of blocks, in units of segments: a head with the length, and a CodeBlob if it is used
// (src/hotspot/share/memory/heap.hpp). Behind the last block that was ever used is zeroed memory.
#include "runtimes/hotspot/code_heap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtimes/hotspot/code_rows.h"

namespace flamed::runtimes {
namespace {

using unwinder::RuleTable;

/// A block's head and a CodeBlob, as far as layouts describe it; nmethods have 400 bytes.
constexpr std::size_t kHeadBytes = 512;
/// Read at once: pieces of code are short, and lie one behind the other.
constexpr std::size_t kStretchBytes = std::size_t{64} << 10;
/// Of all code that is read at once. A cache of 240 MiB has less.
constexpr std::uint64_t kMostCodeBytes = std::uint64_t{512} << 20;
/// Of an nmethod: it has not been installed yet, and its code may be incomplete.
constexpr std::int64_t kNotInstalled = -1;

Error unreadable(const std::string& why) { return Error("HotSpot's code heap: " + why); }

/// A heap's memory, read from its start to its end.
class Stretches {
 public:
  explicit Stretches(RemoteMemory& memory) : memory_(memory) {}

  /// Nothing is read from `end` on.
  void begin(std::uint64_t end) {
    bytes_.clear();
    end_ = end;
  }
  /// The bytes at `address`, until the next call. Empty: they can't be read.
  std::span<const std::byte> at(std::uint64_t address, std::uint64_t bytes) {
    if (address < start_ || address - start_ > bytes_.size() || bytes > bytes_.size() - (address - start_)) {
      const std::uint64_t left = end_ > address ? end_ - address : 0;
      if (bytes > left || !read(address, std::max(bytes, std::min<std::uint64_t>(left, kStretchBytes)), bytes)) {
        bytes_.clear();
        return {};
      }
    }
    return std::span(bytes_).subspan(static_cast<std::size_t>(address - start_), static_cast<std::size_t>(bytes));
  }

 private:
  /// `most` bytes if all of them can be read, otherwise `least`.
  bool read(std::uint64_t address, std::uint64_t most, std::uint64_t least) {
    start_ = address;
    bytes_.resize(static_cast<std::size_t>(most));
    if (memory_.read(address, bytes_)) return true;
    bytes_.resize(static_cast<std::size_t>(least));
    return memory_.read(address, bytes_);
  }

  RemoteMemory& memory_;
  std::uint64_t end_ = 0;
  std::uint64_t start_ = 0;
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  Reader(RemoteMemory& memory, const HotSpotLayout& layout, std::uint64_t base, std::span<const HotSpotKnownBlob> known)
      : memory_(memory), stretches_(memory), layout_(layout), base_(base), known_(known) {}

  Result<HotSpotCode> run() {
    if (const Status found = find_heaps(); !found) return found.error();
    find_interpreter();
    for (const Heap& heap : heaps_) {
      if (const Status read = read_heap(heap); !read) return read.error();
    }
    const auto is_before = [](const HotSpotBlob& a, const HotSpotBlob& b) { return a.address < b.address; };
    std::sort(code_.blobs.begin(), code_.blobs.end(), is_before);
    code_.rules.assign(rules_.rules().begin(), rules_.rules().end());
    return std::move(code_);
  }

 private:
  struct Heap {
    HotSpotHeapRange range;
    unsigned log2_segment_bytes = 0;
  };
  enum class Use : std::uint8_t { kCompiled, kNative, kInterpreter, kAdapter, kStub, kTemporary };

  std::optional<std::uint64_t> word(std::uint64_t address) { return read_number<std::uint64_t>(memory_, address); }
  std::optional<std::uint64_t> at(std::uint64_t address, const HotSpotPlace& place) {
    std::uint64_t value = 0;
    if (place.bytes > sizeof(value)) return std::nullopt;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(place.bytes);
    if (!memory_.read(address + place.offset, bytes)) return std::nullopt;
    return value;
  }

  Status find_heaps() {
    const HotSpotCodeHeaps& heaps = layout_.heaps;
    std::vector<std::uint64_t> addresses;
    const auto first = word(base_ + (heaps.one_heap != 0 ? heaps.one_heap : heaps.heaps));
    if (!first) return unreadable("its list can't be read");
    if (*first == 0) return Error("HotSpot's code heap: there is none yet", EBUSY);
    if (heaps.one_heap != 0) {
      addresses.push_back(*first);
    } else {
      const auto count = at(*first, heaps.array_length);
      const auto data = at(*first, heaps.array_data);
      if (!count || !data || *count > kMostHotSpotHeaps) return unreadable("its list is damaged");
      if (*count == 0) return Error("HotSpot's code heap: there is none yet", EBUSY);
      for (std::uint64_t i = 0; i < *count; ++i) {
        const auto heap = word(*data + i * sizeof(std::uint64_t));
        if (!heap) return unreadable("its list can't be read");
        addresses.push_back(*heap);
      }
    }
    for (const std::uint64_t address : addresses) {
      const std::uint64_t memory = address + heaps.memory.offset;
      const auto log2 = at(address, heaps.log2_segment_bytes);
      const auto low = at(memory, heaps.low);
      const auto high = at(memory, heaps.high);
      auto end = heaps.high_boundary.is_there() ? at(memory, heaps.high_boundary) : high;
      if (!log2 || !low || !high || !end) return unreadable("it can't be read");
      constexpr unsigned kLeastLog2 = 5;
      constexpr unsigned kMostLog2 = 16;
      if (*log2 < kLeastLog2 || *log2 > kMostLog2 || *low >= *high || *high > *end || *end >> 47 != 0 ||
          *end - *low > kMostHotSpotHeapBytes) {
        return unreadable("it is damaged");
      }
      heaps_.push_back({{*low, *high, *end}, static_cast<unsigned>(*log2)});
    }
    const auto is_before = [](const Heap& a, const Heap& b) { return a.range.low < b.range.low; };
    std::sort(heaps_.begin(), heaps_.end(), is_before);
    for (std::size_t i = 1; i < heaps_.size(); ++i) {
      if (heaps_[i].range.low < heaps_[i - 1].range.end) return unreadable("its parts overlap");
    }
    if (heaps_.back().range.end - heaps_.front().range.low > kMostHotSpotHeapBytes) {
      return unreadable("it is larger than HotSpot's limit");
    }
    for (const Heap& heap : heaps_) code_.heaps.push_back(heap.range);
    return {};
  }

  void find_interpreter() {
    const auto queue = word(base_ + layout_.interpreter);
    if (!queue || *queue == 0) return;
    const auto buffer = at(*queue, layout_.stub_buffer);
    const auto bytes = at(*queue, layout_.stub_buffer_end);
    constexpr std::uint64_t kMostBytes = 16U << 20;
    if (!buffer || !bytes || *bytes > kMostBytes) return;
    interpreter_ = {*buffer, *buffer + *bytes};
  }

  Status read_heap(const Heap& heap) {
    const std::uint64_t segment = std::uint64_t{1} << heap.log2_segment_bytes;
    const HotSpotCodeHeaps& heaps = layout_.heaps;
    std::array<std::byte, kHeadBytes> head{};
    stretches_.begin(heap.range.high);
    for (std::uint64_t block = heap.range.low; block < heap.range.high;) {
      const std::uint64_t left = heap.range.high - block;
      const auto bytes = std::span(head).first(std::min<std::uint64_t>(head.size(), left));
      const std::span<const std::byte> read = stretches_.at(block, bytes.size());
      if (read.empty()) return unreadable("its blocks can't be read");
      std::copy(read.begin(), read.end(), bytes.begin());
      const std::uint64_t segments = heaps.block_segments.in(bytes);
      // The end, or it has changed meanwhile: what follows is left to the next reading.
      if (segments == 0 || segments > left >> heap.log2_segment_bytes) return {};
      const std::uint64_t block_bytes = segments * segment;
      if (heaps.block_is_used.in(bytes) != 0 && heaps.block_head_bytes < bytes.size()) {
        if (code_.blobs.size() >= kMostHotSpotBlobs) return unreadable("it has too many blocks");
        add_blob(block + heaps.block_head_bytes, bytes.subspan(heaps.block_head_bytes), block + block_bytes);
      }
      block += block_bytes;
    }
    return {};
  }

  /// `end`: of its block.
  void add_blob(std::uint64_t address, std::span<const std::byte> head, std::uint64_t end) {
    const HotSpotBlobs& places = layout_.blobs;
    HotSpotBlob blob;
    blob.address = address;
    const std::uint64_t bytes = places.bytes.in(head);
    if (bytes == 0 || address >= end || bytes > end - address) return;
    blob.bytes = static_cast<std::uint32_t>(bytes);
    if (places.code_begin.is_there()) {
      blob.code_begin = places.code_begin.in(head);
      blob.code_end = places.code_end.in(head);
    } else {
      blob.code_begin = address + places.code_offset.in(head);
      blob.code_end = address + places.data_offset.in(head);
    }
    if (blob.code_begin <= address || blob.code_end <= blob.code_begin || blob.code_end > address + bytes) return;
    const std::optional<Use> use = use_of(places.name.in(head));
    if (!use) return;
    blob.kind = kind_of(*use);
    const bool is_method = *use == Use::kCompiled || *use == Use::kNative;
    if (is_method) {
      if (layout_.nmethods.state.is_there() && layout_.nmethods.state.signed_in(head) == kNotInstalled) return;
      blob.compile_id = static_cast<std::uint32_t>(layout_.nmethods.compile_id.in(head));
    }
    const HotSpotKnownBlob identity{address, blob.bytes, blob.compile_id};
    const auto known = std::lower_bound(known_.begin(), known_.end(), identity,
                                        [](const auto& a, const auto& b) { return a.address < b.address; });
    if (known != known_.end() && *known == identity) {
      blob.is_known = 1;
    } else if (!add_rows(blob, *use, static_cast<std::uint32_t>(places.frame_size.in(head)),
                         places.frame_complete.signed_in(head))) {
      return;
    }
    code_.blobs.push_back(blob);
  }

  /// False: its code can't be read.
  bool add_rows(HotSpotBlob& blob, Use use, std::uint32_t frame_words, std::int64_t frame_complete) {
    HotSpotRows rows(rules_);
    const std::uint64_t bytes = blob.code_end - blob.code_begin;
    if (use == Use::kTemporary) {
      rows.add_unknown();
    } else {
      if (bytes > kMostCodeBytes - code_bytes_) return false;
      code_bytes_ += bytes;
      piece_ = stretches_.at(blob.code_begin, bytes);
      if (piece_.empty()) return false;
      add_rows_of(blob, use, frame_words, frame_complete, rows);
    }
    std::vector<unwinder::Row> found = rows.take();
    // A jump may be cut by the code's end.
    std::erase_if(found, [&](const unwinder::Row& row) { return row.offset >= bytes; });
    blob.first_row = static_cast<std::uint32_t>(code_.rows.size());
    blob.row_count = static_cast<std::uint32_t>(found.size());
    code_.rows.insert(code_.rows.end(), found.begin(), found.end());
    return true;
  }

  void add_rows_of(const HotSpotBlob& blob, Use use, std::uint32_t frame_words, std::int64_t frame_complete,
                   HotSpotRows& rows) {
    switch (use) {
      case Use::kCompiled:
        if (!rows.add_compiled(piece_, frame_words, frame_complete)) rows.add_unknown();
        return;
      case Use::kAdapter:
        return rows.add_adapter(piece_);
      case Use::kInterpreter:
        return rows.add_interpreter(piece_, interpreter_parts(blob));
      case Use::kNative:
      case Use::kStub:
      case Use::kTemporary:
        break;
    }
    // Stubs of the second compiler have frames like its methods.
    if (!rows.add_compiled(piece_, frame_words, frame_complete)) rows.add_stub(piece_);
  }

  /// Where the interpreter's codelets begin, from the code's first byte on. Each has a head with its size.
  std::vector<std::size_t> interpreter_parts(const HotSpotBlob& blob) {
    std::vector<std::size_t> parts;
    const auto& [begin, end] = interpreter_;
    if (begin < blob.code_begin || end > blob.code_end || !layout_.stub_bytes.is_there()) return parts;
    for (std::uint64_t part = begin; part < end;) {
      const std::size_t offset = static_cast<std::size_t>(part - blob.code_begin);
      const std::uint64_t size = layout_.stub_bytes.in(piece_.subspan(offset));
      if (size <= layout_.stub_head_bytes || size > end - part) break;
      parts.push_back(offset + layout_.stub_head_bytes);
      part += size;
    }
    return parts;
  }

  static HotSpotCodeKind kind_of(Use use) {
    switch (use) {
      case Use::kCompiled:
        return HotSpotCodeKind::kCompiled;
      case Use::kNative:
        return HotSpotCodeKind::kNative;
      case Use::kInterpreter:
        return HotSpotCodeKind::kInterpreter;
      case Use::kAdapter:
        return HotSpotCodeKind::kAdapter;
      case Use::kStub:
      case Use::kTemporary:
        break;
    }
    return HotSpotCodeKind::kStub;
  }

  /// By CodeBlob::name(). Empty: it is no name.
  std::optional<Use> use_of(std::uint64_t name) {
    const auto found = uses_.find(name);
    if (found != uses_.end()) return found->second;
    constexpr std::size_t kMostNames = 4096;
    if (uses_.size() >= kMostNames) return std::nullopt;
    std::array<char, 32> text{};
    // It ends somewhere, maybe with the last bytes that can be read.
    if (!memory_.read(name, std::as_writable_bytes(std::span(text)))) {
      text.fill('\0');
      for (std::size_t length = 0; length < text.size(); ++length) {
        const auto next = read_number<char>(memory_, name + length);
        if (!next) return std::nullopt;
        text[length] = *next;
        if (*next == '\0') break;
      }
    }
    const std::size_t length = static_cast<std::size_t>(std::find(text.begin(), text.end(), '\0') - text.begin());
    const std::string_view view(text.data(), length);
    const Use use = use_by_name(view);
    uses_.emplace(name, use);
    return use;
  }
  static Use use_by_name(std::string_view name) {
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (name == "nmethod") return Use::kCompiled;
    if (name == "native nmethod") return Use::kNative;
    if (name == "Interpreter") return Use::kInterpreter;
    if (has("I2C/C2I")) return Use::kAdapter;
    if (has("CodeBuffer") || has("Temp Buffer") || has("Compile::")) return Use::kTemporary;
    return Use::kStub;
  }

  RemoteMemory& memory_;
  Stretches stretches_;
  const HotSpotLayout& layout_;
  const std::uint64_t base_;
  const std::span<const HotSpotKnownBlob> known_;
  std::vector<Heap> heaps_;
  std::pair<std::uint64_t, std::uint64_t> interpreter_{};
  std::unordered_map<std::uint64_t, Use> uses_;  ///< by the address of the name
  RuleTable rules_{kMostHotSpotRules};
  std::span<const std::byte> piece_;  ///< the code whose rows are being added
  std::uint64_t code_bytes_ = 0;
  HotSpotCode code_;
};

}  // namespace

Result<HotSpotCode> read_hotspot_code(RemoteMemory& memory, const HotSpotLayout& layout, std::uint64_t base,
                                      std::span<const HotSpotKnownBlob> known) {
  return Reader(memory, layout, base, known).run();
}

}  // namespace flamed::runtimes
