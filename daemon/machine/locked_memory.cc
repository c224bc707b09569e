// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/locked_memory.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "base/handle.h"
#include "base/units.h"

namespace flamed::daemon {
namespace {

void destroy_btf(btf* types) { ::btf__free(types); }

/// Kernels before 5.11 have `struct bpf_map_memory`, the account of a map; since then maps count for the control group
/// (97306be45fbe, "bpf: switch to memcg-based memory accounting"). libbpf detects that by an equally new helper
/// (probe_memcg_account()), with a program that can be refused itself.
bool kernel_counts_bpf() {
  const Handle<btf*, destroy_btf> types(::btf__parse_raw("/sys/kernel/btf/vmlinux"));
  return types && ::btf__find_by_name_kind(types.get(), "bpf_map_memory", BTF_KIND_STRUCT) > 0;
}

/// A caller with the right to it is told that there can't be a map of size 0.
bool kernel_answers_bpf() {
  const Fd map(::bpf_map_create(BPF_MAP_TYPE_ARRAY, nullptr, sizeof(std::uint32_t), 0, 0, nullptr));
  return map || errno == EINVAL;
}

bool has_cap_sys_resource() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  return (sets[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)) != 0;
}

LockedMemoryFacts read_limit() {
  LockedMemoryFacts facts;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) facts.limit_bytes = limit.rlim_cur;
  facts.may_raise_limit = has_cap_sys_resource();
  return facts;
}

Error too_little(const Error& error, const std::string& what, const LockedMemoryFacts& facts,
                 const std::string& or_else) {
  return Error(error.message() + "; " + what + " as locked memory, and RLIMIT_MEMLOCK is " +
                   format_size(*facts.limit_bytes) +
                   ": raise it (LimitMEMLOCK=infinity in a unit, `ulimit -l unlimited` in a shell)" + or_else,
               kLockedMemoryIsShort);
}

}  // namespace

LockedMemoryFacts read_locked_memory_facts() {
  static const bool counts_bpf = kernel_counts_bpf();
  LockedMemoryFacts facts = read_limit();
  facts.counts_bpf = counts_bpf;
  facts.answers_bpf = kernel_answers_bpf();
  return facts;
}

Error explain_bpf_memory(const Error& error, const LockedMemoryFacts& facts) {
  if (error.code() != EPERM || !facts.limit_bytes || !facts.counts_bpf || !facts.answers_bpf) return error;
  // With the capability, libbpf has tried to raise it already.
  return too_little(error, "this kernel counts BPF maps and programs", facts,
                    facts.may_raise_limit ? "" : ", or give flamed CAP_SYS_RESOURCE, with which it raises it itself");
}

Error explain_bpf_memory(const Error& error) {
  return error.code() == EPERM ? explain_bpf_memory(error, read_locked_memory_facts()) : error;
}

Error explain_perf_memory(const Error& error, const LockedMemoryFacts& facts) {
  if (error.code() != EPERM || !facts.limit_bytes) return error;
  return too_little(error, "the kernel counts perf buffers", facts, ", or kernel.perf_event_mlock_kb");
}

Error explain_perf_memory(const Error& error) {
  return error.code() == EPERM ? explain_perf_memory(error, read_limit()) : error;
}

}  // namespace flamed::daemon
