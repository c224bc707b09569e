/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return addresses as registers and the stack have them. Code of arm64 may sign them: the signature is in the bits
 * above those of user addresses. Also compiled on the host, where unit tests define USER_ADDRESS_MASK.
 */
#ifndef FLAMED_BPF_RETURN_ADDRESS_H
#define FLAMED_BPF_RETURN_ADDRESS_H

#include <linux/types.h>

#if defined(__TARGET_ARCH_arm64) && !defined(USER_ADDRESS_MASK)
/* flamed::user_address_mask(). Set before loading. */
const volatile __u64 user_address_mask = (1ULL << 48) - 1;
#define USER_ADDRESS_MASK user_address_mask
#endif

static __always_inline __u64 without_signature(__u64 address) {
#if defined(__TARGET_ARCH_arm64)
  return address & USER_ADDRESS_MASK;
#else
  return address;
#endif
}

#endif /* FLAMED_BPF_RETURN_ADDRESS_H */
