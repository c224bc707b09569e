// SPDX-License-Identifier: Apache-2.0
//
// The names of members are those of src/hotspot/share/runtime/vmStructs.cpp in JDK 8 to 25.
#include "runtimes/hotspot/detect.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtimes/paged_memory.h"

namespace flamed::runtimes {
namespace {

/// JDK 17 has 2,700 entries in both tables.
constexpr std::size_t kMostEntries = 16'384;
constexpr std::uint64_t kMostEntryBytes = 256;
/// No name that is looked for is longer.
constexpr std::size_t kMostNameBytes = 64;
/// Of any structure.
constexpr std::uint64_t kMostOffset = 65'535;
constexpr std::uint32_t kOldestVersion = 8;

Error unreadable(const std::string& why) { return Error("HotSpot: " + why); }

/// The size of a member by its type, as it is written in vmStructs.cpp.
std::uint32_t bytes_of(std::string_view type) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (is_one_of({"bool", "u1", "jbyte", "char", "unsigned char", "volatile signed char", "CodeBlobKind"})) return 1;
  if (is_one_of({"u2", "jushort", "short", "unsigned short", "int16_t", "uint16_t"})) return 2;
  if (is_one_of({"int", "jint", "juint", "u4", "unsigned int", "int32_t", "uint32_t", "CompLevel", "volatile int"}))
    return 4;
  return 8;
}

struct Member {
  std::string_view type;
  std::string_view name;
  HotSpotPlace* to;
};
struct StaticMember {
  std::string_view type;
  std::string_view name;
  std::uint64_t* to;
};
struct TypeSize {
  std::string_view type;
  std::uint32_t* to;
};

class Reader {
 public:
  Reader(RemoteMemory& memory, const HotSpotTables& tables, std::uint64_t base)
      : memory_(memory), tables_(tables), base_(base) {}

  Result<HotSpotLayout> run() {
    if (const Status read = read_structures(); !read) return read.error();
    if (const Status read = read_types(); !read) return read.error();
    if (const Status read = read_version(); !read) return read.error();
    if (const Status checked = check(); !checked) return checked.error();
    return layout_;
  }

 private:
  /// The value of one of the module's variables.
  std::optional<std::uint64_t> variable(std::uint64_t address) {
    return read_number<std::uint64_t>(memory_, base_ + address);
  }

  struct Entries {
    std::uint64_t first = 0;
    std::uint64_t stride = 0;
  };
  Result<Entries> entries_of(const HotSpotTables::Table& table) {
    const auto first = variable(table.entries);
    const auto stride = variable(table.stride);
    if (!first || !stride) return unreadable("its memory can't be read");
    if (*first == 0 || *stride == 0) return Error("HotSpot: it is still being loaded", EBUSY);
    if (*stride > kMostEntryBytes) return unreadable("its tables are damaged");
    return Entries{*first, *stride};
  }
  /// Offsets in an entry, from the module's variables. Empty: they are damaged.
  template <std::size_t N>
  std::optional<std::array<std::uint64_t, N>> offsets_in(const Entries& entries,
                                                         const std::array<std::uint64_t, N>& variables) {
    std::array<std::uint64_t, N> offsets{};
    for (std::size_t i = 0; i < N; ++i) {
      const auto value = variable(variables[i]);
      if (!value || *value >= entries.stride) return std::nullopt;
      offsets[i] = *value;
    }
    return offsets;
  }
  /// Empty: it is longer than kMostNameBytes, or can't be read.
  std::string text(std::uint64_t address) {
    std::string text;
    while (text.size() < kMostNameBytes) {
      const auto next = read_number<char>(memory_, address + text.size());
      if (!next) return {};
      if (*next == '\0') return text;
      text += *next;
    }
    return {};
  }
  std::string name_at(std::uint64_t pointer_at) {
    const auto pointer = read_number<std::uint64_t>(memory_, pointer_at);
    return pointer && *pointer != 0 ? text(*pointer) : std::string();
  }

  Status read_structures() {
    const Result<Entries> entries = entries_of(tables_.structures);
    if (!entries) return entries.error();
    const auto offsets = offsets_in<6>(*entries, {tables_.type_name, tables_.field_name, tables_.type_string,
                                                  tables_.is_static, tables_.offset, tables_.address});
    if (!offsets) return unreadable("its table of structures is damaged");
    const auto& [type_at, field_at, string_at, static_at, offset_at, address_at] = *offsets;
    const std::vector<Member> members = members_of(layout_);
    const std::vector<StaticMember> statics = statics_of();
    for (std::size_t i = 0; i < kMostEntries; ++i) {
      const std::uint64_t entry = entries->first + i * entries->stride;
      const auto type_pointer = read_number<std::uint64_t>(memory_, entry + type_at);
      if (!type_pointer) return unreadable("its table of structures can't be read");
      if (*type_pointer == 0) return {};
      const std::string type = text(*type_pointer);
      const std::string field = name_at(entry + field_at);
      if (read_number<std::int32_t>(memory_, entry + static_at).value_or(0) != 0) {
        const auto found = std::find_if(statics.begin(), statics.end(), [&](const StaticMember& each) {
          return each.type == type && each.name == field;
        });
        const auto address = read_number<std::uint64_t>(memory_, entry + address_at);
        if (found != statics.end() && address && *address > base_) *found->to = *address - base_;
        continue;
      }
      const auto found = std::find_if(members.begin(), members.end(),
                                      [&](const Member& each) { return each.type == type && each.name == field; });
      if (found == members.end()) continue;
      const auto offset = read_number<std::uint64_t>(memory_, entry + offset_at);
      if (!offset || *offset > kMostOffset) return unreadable("its table of structures is damaged");
      *found->to = {static_cast<std::uint32_t>(*offset), bytes_of(name_at(entry + string_at))};
    }
    return unreadable("its table of structures has no end");
  }

  Status read_types() {
    const Result<Entries> entries = entries_of(tables_.types);
    if (!entries) return entries.error();
    const auto offsets = offsets_in<2>(*entries, {tables_.size_type_name, tables_.size});
    if (!offsets) return unreadable("its table of types is damaged");
    const auto& [type_at, size_at] = *offsets;
    const std::array<TypeSize, 5> sizes{{{"InterpreterCodelet", &layout_.stub_head_bytes},
                                         {"HeapBlock", &layout_.heaps.block_head_bytes},
                                         {"PcDesc", &layout_.nmethods.pc_desc_bytes},
                                         {"ConstMethod", &layout_.methods.const_method_bytes},
                                         {"ConstantPool", &layout_.methods.constant_pool_bytes}}};
    for (std::size_t i = 0; i < kMostEntries; ++i) {
      const std::uint64_t entry = entries->first + i * entries->stride;
      const auto type_pointer = read_number<std::uint64_t>(memory_, entry + type_at);
      if (!type_pointer) return unreadable("its table of types can't be read");
      if (*type_pointer == 0) return {};
      const std::string type = text(*type_pointer);
      const auto* const found =
          std::find_if(sizes.begin(), sizes.end(), [&](const TypeSize& each) { return each.type == type; });
      if (found == sizes.end()) continue;
      const auto size = read_number<std::uint64_t>(memory_, entry + size_at);
      if (!size || *size > kMostOffset) return unreadable("its table of types is damaged");
      *found->to = static_cast<std::uint32_t>(*size);
    }
    return unreadable("its table of types has no end");
  }

  static std::vector<Member> members_of(HotSpotLayout& layout) {
    HotSpotCodeHeaps& heaps = layout.heaps;
    HotSpotBlobs& blobs = layout.blobs;
    HotSpotNmethods& nmethods = layout.nmethods;
    HotSpotMethods& methods = layout.methods;
    return {
        {"StubQueue", "_stub_buffer", &layout.stub_buffer},
        {"StubQueue", "_buffer_limit", &layout.stub_buffer_end},
        {"InterpreterCodelet", "_size", &layout.stub_bytes},
        {"GrowableArrayBase", "_len", &heaps.array_length},
        {"GenericGrowableArray", "_len", &heaps.array_length},
        {"GrowableArray<int>", "_data", &heaps.array_data},
        {"CodeHeap", "_memory", &heaps.memory},
        {"CodeHeap", "_segmap", &heaps.segment_map},
        {"CodeHeap", "_log2_segment_size", &heaps.log2_segment_bytes},
        {"VirtualSpace", "_low", &heaps.low},
        {"VirtualSpace", "_high", &heaps.high},
        {"VirtualSpace", "_low_boundary", &heaps.low_boundary},
        {"VirtualSpace", "_high_boundary", &heaps.high_boundary},
        {"HeapBlock::Header", "_length", &heaps.block_segments},
        {"HeapBlock::Header", "_used", &heaps.block_is_used},
        {"CodeBlob", "_name", &blobs.name},
        {"CodeBlob", "_size", &blobs.bytes},
        {"CodeBlob", "_frame_size", &blobs.frame_size},
        {"CodeBlob", "_frame_complete_offset", &blobs.frame_complete},
        {"CodeBlob", "_code_begin", &blobs.code_begin},
        {"CodeBlob", "_code_end", &blobs.code_end},
        {"CodeBlob", "_code_offset", &blobs.code_offset},
        {"CodeBlob", "_data_offset", &blobs.data_offset},
        {"CodeBlob", "_mutable_data", &nmethods.mutable_data},
        {"CodeBlob", "_mutable_data_size", &nmethods.mutable_data_bytes},
        {"CodeBlob", "_relocation_size", &nmethods.relocation_bytes},
        {"CompiledMethod", "_method", &nmethods.method},
        {"nmethod", "_method", &nmethods.method},
        {"nmethod", "_compile_id", &nmethods.compile_id},
        {"nmethod", "_comp_level", &nmethods.comp_level},
        {"nmethod", "_entry_bci", &nmethods.entry_bci},
        {"nmethod", "_state", &nmethods.state},
        {"nmethod", "_verified_entry_point", &nmethods.verified_entry},
        {"nmethod", "_verified_entry_offset", &nmethods.verified_entry_offset},
        {"nmethod", "_orig_pc_offset", &nmethods.orig_pc_offset},
        {"CompiledMethod", "_deopt_handler_begin", &nmethods.deopt_handler},
        {"CompiledMethod", "_deopt_mh_handler_begin", &nmethods.deopt_mh_handler},
        {"nmethod", "_deoptimize_offset", &nmethods.deopt_handler_offset},
        {"nmethod", "_deopt_handler_offset", &nmethods.deopt_handler_offset},
        {"nmethod", "_deopt_mh_handler_offset", &nmethods.deopt_mh_handler_offset},
        {"nmethod", "_stub_offset", &nmethods.stub_offset},
        {"nmethod", "_immutable_data", &nmethods.immutable_data},
        {"nmethod", "_immutable_data_size", &nmethods.immutable_data_bytes},
        {"nmethod", "_scopes_pcs_offset", &nmethods.scopes_pcs_offset},
        {"CompiledMethod", "_scopes_data_begin", &nmethods.scopes_data},
        {"nmethod", "_scopes_data_offset", &nmethods.scopes_data_offset},
        {"nmethod", "_dependencies_offset", &nmethods.dependencies_offset},
        {"nmethod", "_handler_table_offset", &nmethods.handler_table_offset},
        {"nmethod", "_nul_chk_table_offset", &nmethods.nul_chk_table_offset},
        {"nmethod", "_oops_offset", &nmethods.oops_offset},
        {"nmethod", "_metadata_offset", &nmethods.metadata_offset},
        {"PcDesc", "_pc_offset", &nmethods.pc_desc_pc},
        {"PcDesc", "_scope_decode_offset", &nmethods.pc_desc_scope},
        {"Method", "_constMethod", &methods.const_method},
        {"ConstMethod", "_constants", &methods.constants},
        {"ConstMethod", "_code_size", &methods.code_bytes},
        {"ConstMethod", "_name_index", &methods.name_index},
        {"ConstMethod", "_signature_index", &methods.signature_index},
        {"ConstMethod", "_flags", &methods.flags},
        {"ConstMethod", "_flags._flags", &methods.flags},
        {"ConstMethod", "_constMethod_size", &methods.const_method_words},
        {"ConstantPool", "_pool_holder", &methods.pool_holder},
        {"ConstantPool", "_length", &methods.pool_length},
        {"ConstantPool", "_tags", &methods.pool_tags},
        {"ConstantPool", "_source_file_name_index", &methods.pool_source_file},
        {"Array<u1>", "_data", &methods.array_of_bytes},
        {"Klass", "_name", &methods.class_name},
        {"InstanceKlass", "_constants", &methods.class_constants},
        {"InstanceKlass", "_source_file_name_index", &methods.class_source_file},
        {"Symbol", "_length", &methods.symbol_length},
        {"Symbol", "_body", &methods.symbol_text},
    };
  }
  std::vector<StaticMember> statics_of() {
    return {{"CodeCache", "_heaps", &layout_.heaps.heaps},
            {"CodeCache", "_heap", &layout_.heaps.one_heap},
            {"AbstractInterpreter", "_code", &layout_.interpreter},
            {"StubRoutines", "_call_stub_return_address", &layout_.call_stub_return},
            {"Abstract_VM_Version", "_s_vm_release", &release_},
            {"Abstract_VM_Version", "_vm_major_version", &major_}};
  }

  Status read_version() {
    const auto release = release_ == 0 ? std::nullopt : variable(release_);
    const std::string version = release && *release != 0 ? text(*release) : std::string();
    const auto is_printable = [](char c) { return std::isgraph(static_cast<unsigned char>(c)) != 0; };
    if (!std::all_of(version.begin(), version.end(), is_printable)) return unreadable("its version is damaged");
    std::copy_n(version.begin(), std::min(version.size(), layout_.release.size() - 1), layout_.release.begin());
    // HotSpot had numbers of its own up to JDK 8: 25.
    const auto major = major_ == 0 ? std::nullopt : read_number<std::int32_t>(memory_, base_ + major_);
    if (layout_.heaps.one_heap != 0)
      layout_.version = kOldestVersion;
    else if (major && *major > 0)
      layout_.version = static_cast<std::uint32_t>(*major);
    else
      return unreadable("it has no version");
    return {};
  }

  /// Are all members there that the code heap can't be read without?
  [[nodiscard]] Status check() const {
    const std::string of = " in version " + layout_.release_text();
    const HotSpotCodeHeaps& heaps = layout_.heaps;
    const HotSpotBlobs& blobs = layout_.blobs;
    const bool has_list = heaps.heaps != 0 && heaps.array_length.is_there() && heaps.array_data.is_there();
    const bool has_heaps = (heaps.one_heap != 0 || has_list) && heaps.memory.is_there() &&
                           heaps.segment_map.is_there() && heaps.log2_segment_bytes.is_there() &&
                           heaps.low.is_there() && heaps.high.is_there() && heaps.block_segments.is_there() &&
                           heaps.block_is_used.is_there() && heaps.block_head_bytes != 0;
    if (!has_heaps) return unreadable("it does not describe its code heaps" + of);
    const bool has_code = (blobs.code_begin.is_there() && blobs.code_end.is_there()) ||
                          (blobs.code_offset.is_there() && blobs.data_offset.is_there());
    if (!has_code || !blobs.name.is_there() || !blobs.bytes.is_there() || !blobs.frame_size.is_there() ||
        !blobs.frame_complete.is_there() || !layout_.nmethods.compile_id.is_there()) {
      return unreadable("it does not describe its code" + of);
    }
    if (layout_.interpreter == 0 || !layout_.stub_buffer.is_there() || !layout_.stub_buffer_end.is_there()) {
      return unreadable("it does not describe its interpreter" + of);
    }
    return {};
  }

  PagedMemory memory_;
  const HotSpotTables& tables_;
  const std::uint64_t base_;
  HotSpotLayout layout_;
  std::uint64_t release_ = 0;
  std::uint64_t major_ = 0;
};

}  // namespace

Result<std::optional<HotSpotTables>> detect_hotspot(ProgramImage& image) {
  if (!image.symbol("gHotSpotVMStructs")) return std::optional<HotSpotTables>();
  if (!image.is_x86_64()) return unreadable("only that of x86-64 can be read");
  HotSpotTables tables;
  const std::pair<std::string_view, std::uint64_t*> symbols[] = {
      {"gHotSpotVMStructs", &tables.structures.entries},
      {"gHotSpotVMStructEntryArrayStride", &tables.structures.stride},
      {"gHotSpotVMTypes", &tables.types.entries},
      {"gHotSpotVMTypeEntryArrayStride", &tables.types.stride},
      {"gHotSpotVMStructEntryTypeNameOffset", &tables.type_name},
      {"gHotSpotVMStructEntryFieldNameOffset", &tables.field_name},
      {"gHotSpotVMStructEntryTypeStringOffset", &tables.type_string},
      {"gHotSpotVMStructEntryIsStaticOffset", &tables.is_static},
      {"gHotSpotVMStructEntryOffsetOffset", &tables.offset},
      {"gHotSpotVMStructEntryAddressOffset", &tables.address},
      {"gHotSpotVMTypeEntryTypeNameOffset", &tables.size_type_name},
      {"gHotSpotVMTypeEntrySizeOffset", &tables.size},
  };
  for (const auto& [name, to] : symbols) {
    const std::optional<ProgramImage::Symbol> symbol = image.symbol(name);
    if (!symbol) return unreadable("it does not export " + std::string(name));
    *to = symbol->address;
  }
  return std::optional(tables);
}

Result<HotSpotLayout> read_hotspot_layout(RemoteMemory& memory, const HotSpotTables& tables, std::uint64_t base) {
  return Reader(memory, tables, base).run();
}

}  // namespace flamed::runtimes
