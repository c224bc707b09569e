// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/mount_info.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

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

/// Decodes the kernel's escapes of blanks and the like: "\\040".
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct Mount {
  std::string_view id;      ///< "36"
  std::string_view device;  ///< "98:0"
  std::string_view where;   ///< escaped
  std::string_view type;
};

/// Visits each line until `visit(mount)` is false. Members of a malformed line may be empty.
template <typename Visit>
void visit_mounts(std::string_view mountinfo, Visit&& visit) {
  while (!mountinfo.empty()) {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    Mount mount;
    mount.id = take_word(line);
    take_word(line);
    mount.device = take_word(line);
    take_word(line);
    mount.where = take_word(line);
    // The first word that is a dash ends the optional fields.
    while (!line.empty() && take_word(line) != "-") {
    }
    mount.type = take_word(line);
    if (!visit(mount)) return;
  }
}

bool is_within(std::string_view path, std::string_view folder) {
  return path.substr(0, folder.size()) == folder && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

std::string_view file_system_of(std::string_view mountinfo, const FileKey& key) {
  std::string_view type;
  visit_mounts(mountinfo, [&](const Mount& mount) {
    const bool is_it = is_device(mount.device, key);
    if (is_it) type = mount.type;
    return !is_it;
  });
  return type;
}

std::string_view file_system_of_mount(std::string_view mountinfo, std::uint64_t id) {
  const std::string wanted = std::to_string(id);
  std::string_view type;
  visit_mounts(mountinfo, [&](const Mount& mount) {
    const bool is_it = mount.id == wanted;
    if (is_it) type = mount.type;
    return !is_it;
  });
  return type;
}

std::optional<DoubtfulMount> may_hang_on_the_way(std::string_view mountinfo, std::string_view path) {
  std::optional<DoubtfulMount> found;
  std::size_t found_bytes = 0;
  visit_mounts(mountinfo, [&](const Mount& mount) {
    if (mount.where.empty() || mount.where == "/" || !may_hang(mount.type)) return true;
    const std::string where = unescaped(mount.where);
    if (where.size() < found_bytes || !is_within(path, where)) return true;
    found = {mount.device, mount.type};
    found_bytes = where.size();
    return true;
  });
  return found;
}

bool may_hang(std::string_view file_system) {
  return std::find(kLocal.begin(), kLocal.end(), file_system) == kLocal.end();
}

}  // namespace flamed::symbolizer
