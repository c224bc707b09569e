// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/bpf_unwind_maps.h"

#include <bpf/bpf.h>

#include <string>
#include <utility>

#include "base/handle.h"
#include "daemon/machine/locked_memory.h"

namespace flamed::daemon {

namespace {

Result<MappedMemory> map_table(int fd, std::size_t bytes, const char* what) {
  return MappedMemory::map(fd, bytes, MappedMemory::Access::kReadAndWrite, std::string("the unwind tables' ") + what);
}

}  // namespace

Result<std::unique_ptr<BpfUnwindMaps>> BpfUnwindMaps::open(const UnwindMapFds& fds) {
  std::unique_ptr<BpfUnwindMaps> maps(new BpfUnwindMaps(fds));
  const struct {
    MappedMemory& to;
    int fd;
    std::size_t bytes;
    const char* what;
  } arrays[] = {
      {maps->mappings_, fds.mapping_blocks,
       std::size_t{FLAMED_MAPPING_BLOCKS} * FLAMED_BLOCK_MAPPINGS * sizeof(flamed_mapping), "mappings"},
      {maps->modules_, fds.modules, FLAMED_MAX_MODULES * sizeof(flamed_unwind_module), "modules"},
      {maps->pages_, fds.pages, FLAMED_MAX_PAGES * sizeof(flamed_unwind_page), "pages"},
      {maps->rules_, fds.rules, FLAMED_MAX_RULES * sizeof(flamed_unwind_rule), "rules"},
  };
  for (const auto& array : arrays) {
    Result<MappedMemory> mapped = map_table(array.fd, array.bytes, array.what);
    if (!mapped) return std::move(mapped).error();
    array.to = std::move(mapped).value();
  }
  return maps;
}

BpfUnwindMaps::~BpfUnwindMaps() = default;

Result<std::span<std::uint32_t>> BpfUnwindMaps::slab(std::uint32_t index) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = slabs_.find(index);
    if (found != slabs_.end()) return found->second.as<std::uint32_t>();
  }
  constexpr std::size_t kBytes = FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  Fd map(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "flamed_rows", sizeof(std::uint32_t), kBytes, 1, &options));
  if (!map) return explain_bpf_memory(Error::from_errno("making a BPF map of 256 KiB for unwind rows"));
  Result<MappedMemory> rows = map_table(map.get(), kBytes, "rows");
  if (!rows) return std::move(rows).error();
  const int fd = map.get();
  if (::bpf_map_update_elem(fds_.slabs, &index, &fd, BPF_ANY) != 0) {
    return Error::from_errno("entering a map of unwind rows");
  }
  const std::lock_guard lock(mutex_);
  return slabs_.emplace(index, std::move(rows).value()).first->second.as<std::uint32_t>();
}

void BpfUnwindMaps::drop_slab(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  if (slabs_.erase(index) != 0) ::bpf_map_delete_elem(fds_.slabs, &index);
}

std::span<const std::uint32_t> BpfUnwindMaps::find_slab(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  const auto found = slabs_.find(index);
  return found == slabs_.end() ? std::span<const std::uint32_t>() : found->second.as<const std::uint32_t>();
}

Status BpfUnwindMaps::put_layout(std::uint32_t number, const flamed_linked_layout& layout) {
  if (::bpf_map_update_elem(fds_.layouts, &number, &layout, BPF_ANY) == 0) return {};
  return Error::from_errno("entering the layout of a runtime's frames");
}

Status BpfUnwindMaps::put_layout(std::uint32_t number, const flamed_slot_layout& layout) {
  if (::bpf_map_update_elem(fds_.slot_layouts, &number, &layout, BPF_ANY) == 0) return {};
  return Error::from_errno("entering the layout of a runtime's frames");
}

Status BpfUnwindMaps::put_program(const flamed_program_file& file, const flamed_known_program& program) {
  if (::bpf_map_update_elem(fds_.known_programs, &file, &program, BPF_ANY) == 0) return {};
  return Error::from_errno("entering a program");
}

void BpfUnwindMaps::remove_program(const flamed_program_file& file) {
  ::bpf_map_delete_elem(fds_.known_programs, &file);
}

Status BpfUnwindMaps::put_process(std::uint32_t tgid, const flamed_process& process) {
  if (::bpf_map_update_elem(fds_.processes, &tgid, &process, BPF_ANY) != 0) {
    return Error::from_errno("entering process " + std::to_string(tgid) + " into the unwind tables");
  }
  count_change();
  return {};
}

void BpfUnwindMaps::remove_process(std::uint32_t tgid) {
  ::bpf_map_delete_elem(fds_.processes, &tgid);
  count_change();
}

}  // namespace flamed::daemon
