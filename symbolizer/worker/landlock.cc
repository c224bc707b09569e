// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/handle.h"

namespace flamed::symbolizer {
namespace {

/// struct landlock_ruleset_attr of Linux 6.12; the headers here may be older, and older kernels take a shorter one.
struct RulesetAttributes {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};

/// The rights that each version of the interface added. Naming them forbids them, since no rule allows them again.
struct Version {
  RulesetAttributes adds;
  std::size_t attributes_bytes;
};
constexpr std::uint64_t bits(unsigned first, unsigned last) { return (2ULL << last) - (1ULL << first); }
constexpr std::size_t kFilesOnly = offsetof(RulesetAttributes, handled_access_net);
constexpr std::size_t kFilesAndNet = offsetof(RulesetAttributes, scoped);
constexpr std::array kVersions = {
    Version{{bits(0, 12), 0, 0}, kFilesOnly},                // 1, Linux 5.13: EXECUTE to MAKE_SYM
    Version{{bits(13, 13), 0, 0}, kFilesOnly},               // 2, 5.19: REFER
    Version{{bits(14, 14), 0, 0}, kFilesOnly},               // 3, 6.2: TRUNCATE
    Version{{0, bits(0, 1), 0}, kFilesAndNet},               // 4, 6.7: BIND_TCP, CONNECT_TCP
    Version{{bits(15, 15), 0, 0}, kFilesAndNet},             // 5, 6.10: IOCTL_DEV
    Version{{0, 0, bits(0, 1)}, sizeof(RulesetAttributes)},  // 6, 6.12: ABSTRACT_UNIX_SOCKET, SIGNAL
};

}  // namespace

Status forbid_outside_world() {
  const long newest = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (newest < 0) return Error::from_errno("landlock_create_ruleset");
  RulesetAttributes attributes{};
  std::size_t bytes = kFilesOnly;
  for (std::size_t i = 0; i < kVersions.size() && i < static_cast<std::size_t>(newest); ++i) {
    attributes.handled_access_fs |= kVersions[i].adds.handled_access_fs;
    attributes.handled_access_net |= kVersions[i].adds.handled_access_net;
    attributes.scoped |= kVersions[i].adds.scoped;
    bytes = kVersions[i].attributes_bytes;
  }
  const Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, bytes, 0)));
  if (!ruleset) return Error::from_errno("landlock_create_ruleset");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) return Error::from_errno("landlock_restrict_self");
  return {};
}

}  // namespace flamed::symbolizer
