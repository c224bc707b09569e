// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flamed::test {

/// Stolen seconds of all CPUs since boot: a thread of this machine was ready, but the hypervisor ran something else
/// ("steal" in /proc/stat, in hundredths). The kernel charges them to no process, but a timer that is due meanwhile
/// fires right after, in the thread that waited. So samples may weigh more than the kernel's accounts, by this at most.
double stolen_seconds();

}  // namespace flamed::test
