// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_memory.h"

#include <sys/mman.h>

#include <utility>

namespace flamed {

Result<MappedMemory> MappedMemory::map(int fd, std::size_t bytes, Access access, const std::string& what) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Error::from_errno("mmap of " + what);
  return MappedMemory(memory, bytes);
}

Result<MappedMemory> MappedMemory::make_secret(std::size_t bytes, const std::string& what) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Error::from_errno("memory for " + what);
  MappedMemory made(memory, bytes);
  if (::madvise(memory, bytes, MADV_DONTDUMP) != 0 || ::madvise(memory, bytes, MADV_DONTFORK) != 0) {
    return Error::from_errno("keeping the memory for " + what + " out of core dumps and child processes");
  }
  return made;
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace flamed
