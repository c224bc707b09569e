// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/refusal.h"

#include <linux/capability.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "daemon/machine/locked_memory.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kMostBytes = 64U << 10;
/// The number of ids in /proc/PID/uid_map of the initial user namespace.
constexpr std::uint64_t kAllIds = 4'294'967'295;
/// The highest level of mainline kernels; above it, kernels of Debian and Ubuntu require CAP_SYS_ADMIN.
constexpr int kMainlineParanoid = 2;

std::string text_of(const char* path) {
  Result<std::string> text = read_file(path, kMostBytes);
  return text ? std::move(text).value() : std::string();
}

/// The number after "Name:" in /proc/self/status.
std::uint64_t field(std::string_view status, std::string_view name, int base) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  status.remove_prefix(at + name.size());
  while (status.starts_with(' ') || status.starts_with('\t')) status.remove_prefix(1);
  std::uint64_t value = 0;
  std::from_chars(status.data(), status.data() + status.size(), value, base);
  return value;
}

bool is_whole_id_map(std::string_view map) {
  // first inside, first outside, count
  std::uint64_t numbers[3] = {};
  for (std::uint64_t& number : numbers) {
    while (map.starts_with(' ')) map.remove_prefix(1);
    const auto [end, error] = std::from_chars(map.data(), map.data() + map.size(), number);
    if (error != std::errc{}) return true;  // there are no user namespaces
    map.remove_prefix(static_cast<std::size_t>(end - map.data()));
  }
  return numbers[0] == 0 && numbers[1] == 0 && numbers[2] == kAllIds;
}

std::string missing_capabilities(const RefusalFacts& facts) {
  std::string missing;
  if (!facts.has_cap_bpf) missing = "CAP_BPF";
  if (!facts.has_cap_perfmon) missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  return missing;
}

enum class Cause : std::size_t {
  kUserNamespace,
  kNoCapability,
  kParanoid,
  kSeccompRefuses,
  kSecurityModule,
  kSeccompHides,
  kNotBuilt,
  kOpenFiles,
  kMemory,
  kNoBtf,
  kLockdown,
  kUnknown,
  kCount
};

/// In the order of Cause.
constexpr std::array<RefusalText, static_cast<std::size_t>(Cause::kCount)> kTexts{{
    {ExitStatus::kForbidden,
     "it runs in a user namespace, such as that of an unprivileged container, where no capability counts for the "
     "machine: run it on the host, or in a container that is privileged"},
    {ExitStatus::kNoCapability, "it lacks {}: run it as root or as the installed service"},
    {ExitStatus::kParanoid,
     "kernel.perf_event_paranoid is {}, at which this kernel asks for CAP_SYS_ADMIN: either `sysctl "
     "kernel.perf_event_paranoid=2`, as flamed's own file in sysctl.d does when the machine starts; or leave it at {} "
     "and give flamed that right: `systemctl edit flamed`, with the lines [Service], AmbientCapabilities=CAP_SYS_ADMIN "
     "and CapabilityBoundingSet=CAP_SYS_ADMIN"},
    {ExitStatus::kForbidden,
     "it has the capabilities, and a seccomp filter is in force: let it allow bpf and perf_event_open (Docker: "
     "--security-opt seccomp=..., systemd: SystemCallFilter=bpf perf_event_open)"},
    {ExitStatus::kForbidden,
     "it has the capabilities: a security module (SELinux, AppArmor, ...) refuses; its log says which rule"},
    {ExitStatus::kForbidden, "a seccomp filter is in force: let it allow bpf and perf_event_open"},
    {ExitStatus::kKernelLacks, "the kernel must be built with CONFIG_BPF_SYSCALL and CONFIG_PERF_EVENTS"},
    {ExitStatus::kNoResources, "raise the limit of open files (LimitNOFILE= in a unit, `ulimit -n` in a shell)"},
    {ExitStatus::kNoResources, "raise the limit of memory (MemoryMax= in a unit), or free some"},
    {ExitStatus::kKernelLacks,
     "there is no /sys/kernel/btf/vmlinux: the kernel must be built with CONFIG_DEBUG_INFO_BTF, as those of Debian 11 "
     "and later, Ubuntu 20.10 and later, Fedora and RHEL 8.2 and later are"},
    {ExitStatus::kLockdown,
     "the kernel is locked down in confidentiality mode, and too old to show its memory to BPF by type (5.15): boot it "
     "with lockdown=integrity"},
    {ExitStatus::kCannotSample,
     "flamed knows no cause for this: report it with the output of `uname -r` and what it logs with --log-level "
     "debug"},
}};

/// Inserts `value` in all places of the text.
Refusal refusal(Cause cause, std::string_view value = {}) {
  constexpr std::string_view kPlace = "{}";
  const RefusalText& text = kTexts.at(static_cast<std::size_t>(cause));
  Refusal refusal{text.status, std::string(text.remedy)};
  for (std::size_t at = 0; (at = refusal.remedy.find(kPlace, at)) != std::string::npos; at += value.size()) {
    refusal.remedy.replace(at, kPlace.size(), value);
  }
  return refusal;
}

Refusal explain_no_permission(const RefusalFacts& facts) {
  if (facts.in_user_namespace) return refusal(Cause::kUserNamespace);
  if (!facts.has_cap_sys_admin && !(facts.has_cap_bpf && facts.has_cap_perfmon)) {
    return refusal(Cause::kNoCapability, missing_capabilities(facts));
  }
  if (!facts.has_cap_sys_admin && facts.paranoid > kMainlineParanoid) {
    return refusal(Cause::kParanoid, std::to_string(facts.paranoid));
  }
  return refusal(facts.has_seccomp_filter ? Cause::kSeccompRefuses : Cause::kSecurityModule);
}

}  // namespace

RefusalFacts read_refusal_facts() {
  RefusalFacts facts;
  const std::string status = text_of("/proc/self/status");
  if (!status.empty()) {
    const std::uint64_t capabilities = field(status, "CapEff:", 16);
    const auto has = [&](int capability) { return (capabilities >> capability & 1) != 0; };
    facts.has_cap_bpf = has(CAP_BPF);
    facts.has_cap_perfmon = has(CAP_PERFMON);
    facts.has_cap_sys_admin = has(CAP_SYS_ADMIN);
    constexpr std::uint64_t kFilter = 2;  // SECCOMP_MODE_FILTER
    facts.has_seccomp_filter = field(status, "Seccomp:", 10) == kFilter;
  }
  facts.in_user_namespace = !is_whole_id_map(text_of("/proc/self/uid_map"));
  const std::string paranoid = text_of("/proc/sys/kernel/perf_event_paranoid");
  std::from_chars(paranoid.data(), paranoid.data() + paranoid.size(), facts.paranoid);
  facts.confidential = text_of("/sys/kernel/security/lockdown").find("[confidentiality]") != std::string::npos;
  facts.has_btf = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  return facts;
}

Refusal explain_refusal(const Error& error, const RefusalFacts& facts) {
  switch (error.code()) {
    case EPERM:
    case EACCES:
      return explain_no_permission(facts);
    case ENOSYS:
      return refusal(facts.has_seccomp_filter ? Cause::kSeccompHides : Cause::kNotBuilt);
    case EMFILE:
    case ENFILE:
      return refusal(Cause::kOpenFiles);
    case ENOMEM:
      return refusal(Cause::kMemory);
    case kLockedMemoryIsShort:
      return {ExitStatus::kNoResources, ""};  // the error itself says what to do
    default:
      break;
  }
  if (!facts.has_btf) return refusal(Cause::kNoBtf);
  if (facts.confidential) return refusal(Cause::kLockdown);
  return refusal(Cause::kUnknown);
}

std::span<const RefusalText> refusal_texts() { return kTexts; }

std::span<const ExitStatusMeaning> exit_statuses() {
  static constexpr ExitStatusMeaning kMeanings[] = {
      {ExitStatus::kEnded, "told to exit", false},
      {ExitStatus::kUnexpected, "an unexpected error", true},
      {ExitStatus::kUsage, "a bad flag or configuration", false},
      {ExitStatus::kCannotSample, "it cannot sample, for another cause than those below", true},
      {ExitStatus::kCannotListen, "it cannot listen", true},
      {ExitStatus::kNoCapability, "CAP_BPF or CAP_PERFMON is missing", false},
      {ExitStatus::kParanoid, "kernel.perf_event_paranoid is above what the capabilities allow", false},
      {ExitStatus::kLockdown, "the kernel is locked down in confidentiality mode and older than 5.15", false},
      {ExitStatus::kForbidden, "a seccomp filter, a user namespace or a security module forbids it", false},
      {ExitStatus::kKernelLacks, "the kernel was built without BTF, BPF or perf events", false},
      {ExitStatus::kNoResources, "open files, memory or locked memory are limited too narrowly", true},
  };
  return kMeanings;
}

}  // namespace flamed::daemon
