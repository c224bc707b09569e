// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/sample_ring.h"

#include <bpf/bpf.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "bpf/sample_ring.h"
#include "daemon/machine/locked_memory.h"

namespace flamed::daemon {

Result<SampleRing> SampleRing::make(int cpu) {
  const std::string what = "the ring of samples of CPU " + std::to_string(cpu);
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  Fd map(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "flamed_samples", sizeof(std::uint32_t), sizeof(flamed_sample_ring), 1,
                          &options));
  if (!map) {
    return explain_bpf_memory(
        Error::from_errno("making a BPF map of " + std::to_string(sizeof(flamed_sample_ring)) + " bytes for " + what));
  }
  Result<MappedMemory> memory =
      MappedMemory::map(map.get(), sizeof(flamed_sample_ring), MappedMemory::Access::kReadAndWrite, what);
  if (!memory) return std::move(memory).error();
  auto* ring = reinterpret_cast<flamed_sample_ring*>(memory->data());
  const RecordRing records(std::as_bytes(std::span(ring->words)), reinterpret_cast<const std::uint64_t*>(&ring->head),
                           reinterpret_cast<std::uint64_t*>(&ring->tail));
  return SampleRing(cpu, std::move(map), std::move(memory).value(), records);
}

flamed_slice_ring& SampleRing::slices() { return reinterpret_cast<flamed_sample_ring*>(memory_.data())->slices; }

SampleRing::SampleRing(int cpu, Fd map, MappedMemory memory, RecordRing records)
    : cpu_(cpu), map_(std::move(map)), memory_(std::move(memory)), records_(std::move(records)) {}

}  // namespace flamed::daemon
