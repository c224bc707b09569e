// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/rule_look_up.h"

#include <bit>

#include "bpf/walk/unwind_search.h"

namespace flamed::daemon {

unwinder::Code look_up_rule(UnwindMaps& maps, std::uint32_t index, std::uint64_t file_offset) {
  using Is = unwinder::Code::Is;
  const flamed_unwind_module& module = maps.modules()[index];
  const std::uint32_t state = __atomic_load_n(&module.state, __ATOMIC_ACQUIRE);
  if (state == FLAMED_MODULE_WITHOUT_ROWS) return {Is::kWithoutRows};
  if (state != FLAMED_MODULE_READY) return {Is::kPending};
  const std::uint64_t page_number = (file_offset >> FLAMED_PAGE_SHIFT) - module.base_page;
  if (page_number >= module.page_count) return {Is::kWithoutRows};
  const flamed_unwind_page& page = maps.pages()[module.first_page + page_number];
  std::uint32_t rule = page.carry_rule;
  if (page.row_count != 0) {
    const std::span<const std::uint32_t> slab = maps.find_slab(page.slab);
    if (slab.empty()) return {Is::kPending};
    const auto place = static_cast<std::uint32_t>(file_offset & ((1U << FLAMED_PAGE_SHIFT) - 1));
    if (slab[page.first_row] >> 16 <= place) {
      rule = find_row(slab.data(), page.first_row, page.row_count, place) & 0xffff;
    }
  }
  if (rule == FLAMED_PENDING_RULE) return {Is::kPending};
  return {Is::kRuled, std::bit_cast<unwinder::Rule>(maps.rules()[rule])};
}

}  // namespace flamed::daemon
