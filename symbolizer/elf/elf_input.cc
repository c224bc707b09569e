// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_input.h"

#include <elf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace flamed::symbolizer {
namespace {

// The largest known programs have far fewer.
constexpr std::uint64_t kMaxSections = 200'000;
constexpr std::uint64_t kMaxProgramHeaders = 1'000;

/// `Header` and `Section` are the 32- or the 64-bit structures.
template <typename Header, typename Section>
Status check_counts(const ElfInput& input) {
  Header header{};
  if (!input.read(0, &header, sizeof(header))) return Error("truncated: the ELF header is cut off");

  std::uint64_t sections = header.e_shnum;
  std::uint64_t program_headers = header.e_phnum;
  if (header.e_shoff != 0) {
    // Numbers too large for 16 bits are in section 0 (System V ABI, "ELF header": e_shnum, e_phnum).
    Section first{};
    if (!input.read(header.e_shoff, &first, sizeof(first))) {
      return Error("truncated or damaged: the section headers lie outside the file");
    }
    if (sections == 0) sections = first.sh_size;
    if (program_headers == PN_XNUM) program_headers = first.sh_info;
    if (sections > kMaxSections) {
      return Error("claims " + std::to_string(sections) + " sections, more than the limit of " +
                   std::to_string(kMaxSections));
    }
    if (header.e_shentsize != sizeof(Section)) return Error("damaged: section headers of a wrong size");
    if (sections * sizeof(Section) > input.size() - header.e_shoff) {
      return Error("truncated or damaged: " + std::to_string(sections) + " section headers don't fit into the file");
    }
  } else if (sections != 0) {
    return Error("damaged: the header counts sections but says none are there");
  }
  if (program_headers > kMaxProgramHeaders) {
    return Error("claims " + std::to_string(program_headers) + " program headers, more than the limit of " +
                 std::to_string(kMaxProgramHeaders));
  }
  if (program_headers != 0) {
    if (header.e_phentsize !=
        sizeof(std::conditional_t<sizeof(Header) == sizeof(Elf64_Ehdr), Elf64_Phdr, Elf32_Phdr>)) {
      return Error("damaged: program headers of a wrong size");
    }
    if (header.e_phoff > input.size() || program_headers * header.e_phentsize > input.size() - header.e_phoff) {
      return Error("truncated or damaged: the program headers lie outside the file");
    }
  }
  return {};
}

}  // namespace

Error libelf_error(const char* what) {
  const char* why = ::elf_errmsg(-1);
  return Error(std::string(what) + ": " + (why != nullptr ? why : "unknown libelf error"));
}

Result<ElfInput> ElfInput::from_fd(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Error::from_errno("fstat");
  if (!S_ISREG(status.st_mode)) return Error("not a regular file");
  ElfInput input;
  input.fd_ = fd;
  input.size_ = static_cast<std::uint64_t>(status.st_size);
  return input;
}

ElfInput ElfInput::from_memory(std::span<const std::byte> image) {
  ElfInput input;
  input.image_ = image;
  input.size_ = image.size();
  return input;
}

bool ElfInput::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return false;
  if (fd_ < 0) {
    std::memcpy(to, image_.data() + offset, bytes);
    return true;
  }
  // A single pread() returns at most 2 GiB; a file that shrinks meanwhile has fewer bytes than expected.
  auto* out = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t got = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

Status check_elf_header(const ElfInput& input) {
  std::array<unsigned char, EI_NIDENT> ident{};
  if (input.size() == 0) return Error("the file is empty", ENOEXEC);
  if (!input.read(0, ident.data(), SELFMAG) || std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) {
    return Error("not an ELF file", ENOEXEC);
  }
  if (!input.read(0, ident.data(), ident.size())) return Error("truncated: the ELF header is cut off");
  constexpr unsigned char kNative = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (ident[EI_DATA] != kNative) return Error("an ELF file of another byte order");
  if (ident[EI_CLASS] == ELFCLASS64) return check_counts<Elf64_Ehdr, Elf64_Shdr>(input);
  if (ident[EI_CLASS] == ELFCLASS32) return check_counts<Elf32_Ehdr, Elf32_Shdr>(input);
  return Error("damaged: neither a 32-bit nor a 64-bit ELF file");
}

}  // namespace flamed::symbolizer
