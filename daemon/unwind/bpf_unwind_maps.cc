// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/bpf_unwind_maps.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <string>
#include <utility>

namespace flamed::daemon {

Result<BpfUnwindMaps::Mapped> BpfUnwindMaps::Mapped::map(int fd, std::size_t bytes, const char* what) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Error::from_errno(std::string("mmap of the unwind tables' ") + what);
  Mapped mapped;
  mapped.memory_ = memory;
  mapped.bytes_ = bytes;
  return mapped;
}

BpfUnwindMaps::Mapped::Mapped(Mapped&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

BpfUnwindMaps::Mapped& BpfUnwindMaps::Mapped::operator=(Mapped&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

BpfUnwindMaps::Mapped::~Mapped() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

Result<std::unique_ptr<BpfUnwindMaps>> BpfUnwindMaps::open(const UnwindMapFds& fds) {
  std::unique_ptr<BpfUnwindMaps> maps(new BpfUnwindMaps(fds));
  const struct {
    Mapped& to;
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
    Result<Mapped> mapped = Mapped::map(array.fd, array.bytes, array.what);
    if (!mapped) return std::move(mapped).error();
    array.to = std::move(mapped).value();
  }
  return maps;
}

BpfUnwindMaps::~BpfUnwindMaps() = default;

Result<std::span<std::uint32_t>> BpfUnwindMaps::slab(std::uint32_t index) {
  const auto found = slabs_.find(index);
  if (found != slabs_.end()) return found->second.as<std::uint32_t>();
  constexpr std::size_t kBytes = FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  Fd map(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "flamed_rows", sizeof(std::uint32_t), kBytes, 1, &options));
  if (!map) return Error::from_errno("making a BPF map of 256 KiB for unwind rows");
  Result<Mapped> rows = Mapped::map(map.get(), kBytes, "rows");
  if (!rows) return std::move(rows).error();
  const int fd = map.get();
  if (::bpf_map_update_elem(fds_.slabs, &index, &fd, BPF_ANY) != 0) {
    return Error::from_errno("entering a map of unwind rows");
  }
  return slabs_.emplace(index, std::move(rows).value()).first->second.as<std::uint32_t>();
}

void BpfUnwindMaps::drop_slab(std::uint32_t index) {
  if (slabs_.erase(index) != 0) ::bpf_map_delete_elem(fds_.slabs, &index);
}

Status BpfUnwindMaps::put_process(std::uint32_t tgid, const flamed_process& process) {
  if (::bpf_map_update_elem(fds_.processes, &tgid, &process, BPF_ANY) != 0) {
    return Error::from_errno("entering process " + std::to_string(tgid) + " into the unwind tables");
  }
  tell_of_change();
  return {};
}

void BpfUnwindMaps::remove_process(std::uint32_t tgid) {
  ::bpf_map_delete_elem(fds_.processes, &tgid);
  tell_of_change();
}

}  // namespace flamed::daemon
