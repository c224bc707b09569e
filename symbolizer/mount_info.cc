// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/mount_info.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace flamed::symbolizer {
namespace {

constexpr std::array<std::string_view, 24> kLocal{"bcachefs", "btrfs",    "cramfs", "devtmpfs", "erofs",     "exfat",
                                                  "ext2",     "ext3",     "ext4",   "f2fs",     "hugetlbfs", "iso9660",
                                                  "jfs",      "nilfs2",   "ntfs3",  "overlay",  "ramfs",     "reiserfs",
                                                  "rootfs",   "squashfs", "tmpfs",  "vfat",     "xfs",       "zfs"};

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool is_device(std::string_view text, const FileKey& key) {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc{} || colon == end || *colon != ':') return false;
  if (std::from_chars(colon + 1, end, minor).ec != std::errc{}) return false;
  return major == key.device_major && minor == key.device_minor;
}

}  // namespace

std::string_view file_system_of(std::string_view mountinfo, const FileKey& key) {
  while (!mountinfo.empty()) {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    take_word(line);
    take_word(line);
    if (!is_device(take_word(line), key)) continue;
    // Blanks in paths are escaped: the first word that is a dash ends the optional fields.
    while (!line.empty() && take_word(line) != "-") {
    }
    return take_word(line);
  }
  return {};
}

bool may_hang(std::string_view file_system) {
  return std::find(kLocal.begin(), kLocal.end(), file_system) == kLocal.end();
}

}  // namespace flamed::symbolizer
