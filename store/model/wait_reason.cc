// SPDX-License-Identifier: Apache-2.0
#include "store/model/wait_reason.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace flamed::store {
namespace {

/// A function whose name begins so. Compilers append ".isra.0" and the like, and kernels rename functions: an entry is
/// the part that has stayed the same from 5.10 to 6.18.
struct Function {
  std::string_view prefix;
  WaitReason reason;
};

/// These decide wherever they are on the stack: what a page fault waits for is inside of it.
constexpr std::array kFaults{
    Function{"handle_mm_fault", WaitReason::kPageFault},
    Function{"do_user_addr_fault", WaitReason::kPageFault},
    Function{"exc_page_fault", WaitReason::kPageFault},
    Function{"asm_exc_page_fault", WaitReason::kPageFault},
    Function{"do_page_fault", WaitReason::kPageFault},  // arm64
    Function{"handle_userfault", WaitReason::kPageFault},
    Function{"faultin_page", WaitReason::kPageFault},  // of another process's memory
};

/// The innermost one decides.
constexpr std::array kPlaces{
    Function{"futex_", WaitReason::kLock},
    Function{"__futex_", WaitReason::kLock},
    Function{"do_futex", WaitReason::kLock},
    Function{"fcntl_setlk", WaitReason::kLock},
    Function{"flock_lock_inode_wait", WaitReason::kLock},
    Function{"posix_lock_inode_wait", WaitReason::kLock},
    Function{"locks_lock_inode_wait", WaitReason::kLock},
    Function{"__do_semtimedop", WaitReason::kLock},
    Function{"do_semtimedop", WaitReason::kLock},

    Function{"hrtimer_nanosleep", WaitReason::kSleep},
    Function{"common_nsleep", WaitReason::kSleep},
    Function{"do_cpu_nanosleep", WaitReason::kSleep},

    Function{"pipe_", WaitReason::kPipe},
    Function{"anon_pipe_", WaitReason::kPipe},
    Function{"fifo_", WaitReason::kPipe},
    Function{"wait_for_partner", WaitReason::kPipe},
    Function{"splice_from_pipe", WaitReason::kPipe},

    // accept() waits for work, not for an answer.
    Function{"inet_csk_accept", WaitReason::kPoll},
    Function{"unix_accept", WaitReason::kPoll},
    Function{"do_accept", WaitReason::kPoll},
    Function{"__sys_accept4", WaitReason::kPoll},

    Function{"tcp_", WaitReason::kNetwork},
    Function{"udp_", WaitReason::kNetwork},
    Function{"udpv6_", WaitReason::kNetwork},
    Function{"unix_", WaitReason::kNetwork},
    Function{"netlink_", WaitReason::kNetwork},
    Function{"packet_", WaitReason::kNetwork},
    Function{"vsock_", WaitReason::kNetwork},
    Function{"sk_wait_data", WaitReason::kNetwork},
    Function{"sk_stream_wait_", WaitReason::kNetwork},
    Function{"sock_alloc_send_pskb", WaitReason::kNetwork},
    Function{"__skb_wait_for_more_packets", WaitReason::kNetwork},
    Function{"__skb_recv_", WaitReason::kNetwork},
    Function{"inet_stream_connect", WaitReason::kNetwork},
    Function{"__inet_stream_connect", WaitReason::kNetwork},
    Function{"inet_wait_for_connect", WaitReason::kNetwork},
    Function{"sock_recvmsg", WaitReason::kNetwork},
    Function{"sock_sendmsg", WaitReason::kNetwork},
    Function{"sock_read_iter", WaitReason::kNetwork},
    Function{"sock_write_iter", WaitReason::kNetwork},

    Function{"ep_poll", WaitReason::kPoll},
    Function{"do_epoll_wait", WaitReason::kPoll},
    Function{"poll_schedule_timeout", WaitReason::kPoll},
    Function{"do_sys_poll", WaitReason::kPoll},
    Function{"do_select", WaitReason::kPoll},
    Function{"io_cqring_wait", WaitReason::kPoll},
    Function{"__do_sys_io_uring_enter", WaitReason::kPoll},
    Function{"do_sigtimedwait", WaitReason::kPoll},
    Function{"sigsuspend", WaitReason::kPoll},
    Function{"__x64_sys_pause", WaitReason::kPoll},
    Function{"__do_sys_pause", WaitReason::kPoll},
    Function{"eventfd_read", WaitReason::kPoll},
    Function{"signalfd_read", WaitReason::kPoll},
    Function{"timerfd_read", WaitReason::kPoll},
    Function{"inotify_read", WaitReason::kPoll},
    Function{"fanotify_read", WaitReason::kPoll},
    Function{"n_tty_read", WaitReason::kPoll},
    Function{"kmsg_read", WaitReason::kPoll},
    Function{"devkmsg_read", WaitReason::kPoll},
    Function{"fuse_dev_do_read", WaitReason::kPoll},

    Function{"folio_wait_", WaitReason::kDisk},
    Function{"__folio_lock", WaitReason::kDisk},
    Function{"wait_on_page_", WaitReason::kDisk},
    Function{"__lock_page", WaitReason::kDisk},
    Function{"filemap_", WaitReason::kDisk},
    Function{"__filemap_", WaitReason::kDisk},
    Function{"generic_file_", WaitReason::kDisk},
    Function{"__wait_on_buffer", WaitReason::kDisk},
    Function{"blk_", WaitReason::kDisk},
    Function{"blkdev_", WaitReason::kDisk},
    Function{"submit_bio", WaitReason::kDisk},
    Function{"rq_qos_wait", WaitReason::kDisk},
    Function{"wbt_wait", WaitReason::kDisk},
    Function{"balance_dirty_pages", WaitReason::kDisk},
    Function{"wait_sb_inodes", WaitReason::kDisk},
    Function{"writeback_", WaitReason::kDisk},
    Function{"wb_wait_for_completion", WaitReason::kDisk},
    Function{"read_events", WaitReason::kDisk},  // io_getevents()
    Function{"jbd2_", WaitReason::kDisk},
    Function{"ext4_", WaitReason::kDisk},
    Function{"xfs_", WaitReason::kDisk},
    Function{"xlog_", WaitReason::kDisk},
    Function{"btrfs_", WaitReason::kDisk},
    Function{"f2fs_", WaitReason::kDisk},
    Function{"nfs_", WaitReason::kDisk},
    Function{"nfs4_", WaitReason::kDisk},
    Function{"rpc_wait_bit_killable", WaitReason::kDisk},
    Function{"cifs_", WaitReason::kDisk},
    Function{"fuse_", WaitReason::kDisk},
    Function{"request_wait_answer", WaitReason::kDisk},
    Function{"__fuse_", WaitReason::kDisk},
    Function{"p9_client_", WaitReason::kDisk},
    Function{"iomap_", WaitReason::kDisk},
    Function{"vfs_fsync_range", WaitReason::kDisk},
};

template <std::size_t kCount>
const Function* find(const std::array<Function, kCount>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Function& function) { return name.starts_with(function.prefix); });
  return found == table.end() ? nullptr : &*found;
}

constexpr std::array<std::string_view, kWaitReasons> kNames{"run_queue", "disk",  "lock", "condition",  "network",
                                                            "pipe",      "sleep", "poll", "page_fault", "other"};

}  // namespace

std::string_view name_of(WaitReason reason) { return kNames[static_cast<std::size_t>(reason)]; }

WaitPlace wait_place_of(std::string_view function) {
  WaitPlace place;
  if (const Function* found = find(kFaults, function)) place.fault = found->reason;
  if (const Function* found = find(kPlaces, function)) place.place = found->reason;
  return place;
}

WaitReason wait_reason_of(std::span<const WaitPlace> places) {
  for (const WaitPlace& place : places) {
    if (place.fault) return *place.fault;
  }
  for (const WaitPlace& place : places) {
    if (place.place) return *place.place;
  }
  return WaitReason::kOther;
}

WaitReason wait_reason_of(std::span<const std::string_view> functions) {
  std::vector<WaitPlace> places;
  places.reserve(functions.size());
  for (const std::string_view function : functions) places.push_back(wait_place_of(function));
  return wait_reason_of(places);
}

}  // namespace flamed::store
