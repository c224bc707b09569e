// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flamed::test {

/// Seconds, all CPUs together, since boot, in which a thread of this machine would have run and the hypervisor had the
/// CPU elsewhere: "steal" of /proc/stat, in ticks of a hundredth. The kernel charges them to nobody, but a timer that
/// comes due meanwhile goes off as soon as they are over, in the thread that waited. So samples may weigh more than
/// the kernel's accounts, by this at most.
double stolen_seconds();

}  // namespace flamed::test
