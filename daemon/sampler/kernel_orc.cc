// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/kernel_orc.h"

#include <bpf/btf.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "base/handle.h"

namespace flamed::daemon {
namespace {

struct BitField {
  std::string_view name;
  std::uint32_t bit;
  std::uint32_t bits;
  bool operator==(const BitField& other) const = default;
};

constexpr BitField kSpOffset{"sp_offset", 0, 16};
constexpr BitField kBpOffset{"bp_offset", 16, 16};
constexpr BitField kSpReg{"sp_reg", 32, 4};
constexpr BitField kBpReg{"bp_reg", 36, 4};

struct Layout {
  flamed_orc_layout layout;
  std::vector<BitField> fields;
};

const std::vector<Layout>& known_layouts() {
  static const std::vector<Layout> layouts{
      {FLAMED_ORC_END, {kSpOffset, kBpOffset, kSpReg, kBpReg, {"type", 40, 2}, {"end", 42, 1}}},
      {FLAMED_ORC_SIGNAL_END,
       {kSpOffset, kBpOffset, kSpReg, kBpReg, {"type", 40, 2}, {"signal", 42, 1}, {"end", 43, 1}}},
      {FLAMED_ORC_SIGNAL, {kSpOffset, kBpOffset, kSpReg, kBpReg, {"type", 40, 3}, {"signal", 43, 1}}},
  };
  return layouts;
}

std::vector<BitField> fields_of(const btf& types, const btf_type& record) {
  std::vector<BitField> fields;
  const std::span members(btf_members(&record), btf_vlen(&record));
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    const char* name = ::btf__name_by_offset(&types, members[i].name_off);
    const std::int64_t bytes = ::btf__resolve_size(&types, members[i].type);
    std::uint32_t bits = btf_member_bitfield_size(&record, i);
    if (bits == 0 && bytes > 0) bits = static_cast<std::uint32_t>(bytes) * 8;
    fields.push_back({name == nullptr ? "" : name, btf_member_bit_offset(&record, i), bits});
  }
  return fields;
}

/// 5.12 changed a row's SP_INDIRECT from *(sp + offset) to *sp + offset, together with switching stacks within a
/// function, which needs this variable.
bool reads_before_adding(const btf& types) {
  return ::btf__find_by_name_kind(&types, "hardirq_stack_inuse", BTF_KIND_VAR) > 0 ||
         ::btf__find_by_name_kind(&types, "pcpu_hot", BTF_KIND_VAR) > 0;  // 6.2 moved it into this
}

void destroy_btf(btf* types) { ::btf__free(types); }

}  // namespace

flamed_orc_layout orc_layout(const btf& types) {
  const std::int32_t id = ::btf__find_by_name_kind(&types, "orc_entry", BTF_KIND_STRUCT);
  const btf_type* record = id > 0 ? ::btf__type_by_id(&types, static_cast<std::uint32_t>(id)) : nullptr;
  if (record == nullptr || record->size != sizeof(flamed_orc_row)) return FLAMED_ORC_UNKNOWN;
  const std::vector<BitField> fields = fields_of(types, *record);
  for (const Layout& known : known_layouts()) {
    if (fields != known.fields) continue;
    return known.layout == FLAMED_ORC_END && !reads_before_adding(types) ? FLAMED_ORC_UNKNOWN : known.layout;
  }
  return FLAMED_ORC_UNKNOWN;
}

Result<flamed_kernel_orc> find_kernel_orc(const FindKernelSymbols& find_symbols) {
  const Handle<btf*, destroy_btf> types(::btf__load_vmlinux_btf());
  if (!types) return Error::from_errno("reading the kernel's types");
  const flamed_orc_layout layout = orc_layout(*types.get());
  if (layout == FLAMED_ORC_UNKNOWN) {
    return Error("the kernel has no unwind tables of its own (ORC), or some of an unknown layout");
  }

  const Result<std::vector<std::uint64_t>> found =
      find_symbols({"__start_orc_unwind_ip", "__stop_orc_unwind_ip", "__start_orc_unwind", "__stop_orc_unwind",
                    "_stext", "_etext", "schedule",
                    // ftrace's, and kretprobes' under all their names.
                    "return_to_handler", "arch_rethook_trampoline", "__kretprobe_trampoline", "kretprobe_trampoline"});
  if (!found) return Error(found.error());
  const std::vector<std::uint64_t>& at = *found;
  flamed_kernel_orc orc{};
  orc.row_places = at[0];
  orc.rows = at[2];
  orc.row_count = (at[1] - at[0]) / sizeof(std::int32_t);
  orc.text_start = at[4];
  orc.text_end = at[5];
  orc.function = at[6];
  std::copy(at.begin() + 7, at.end(), std::begin(orc.trampolines));
  orc.layout = layout;
  const bool is_whole = std::all_of(at.begin(), at.begin() + 7, [](std::uint64_t address) { return address != 0; }) &&
                        at[1] > at[0] && at[3] - at[2] == orc.row_count * sizeof(flamed_orc_row) &&
                        orc.row_count < std::uint64_t{1} << FLAMED_ORC_SEARCH_STEPS && orc.text_end > orc.text_start &&
                        orc.text_end - orc.text_start < std::uint64_t{1} << 31;
  if (!is_whole) return Error("/proc/kallsyms has no addresses of the kernel's unwind tables (ORC)");
  return orc;
}

}  // namespace flamed::daemon
