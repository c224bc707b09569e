// SPDX-License-Identifier: Apache-2.0
//
// The reasons of waits, by kernel stacks as they are on several kernels.
#include "store/model/wait_reason.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

/// Of names that are divided by spaces, innermost first.
std::string_view reason_of(std::string_view stack) {
  std::vector<std::string_view> functions;
  for (std::size_t begin = 0; begin < stack.size();) {
    const std::size_t end = std::min(stack.find(' ', begin), stack.size());
    functions.push_back(stack.substr(begin, end - begin));
    begin = end + 1;
  }
  return name_of(wait_reason_of(functions));
}

struct Stack {
  const char* functions;
  const char* reason;
};

TEST_CASE("the reason of a wait follows from its kernel functions") {
  const auto [functions, reason] = GENERATE(values<Stack>({
      // Locks: before 6.7 and since.
      {"futex_wait_queue_me futex_wait do_futex __x64_sys_futex do_syscall_64", "lock"},
      {"futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex do_syscall_64", "lock"},
      {"futex_lock_pi do_futex __x64_sys_futex do_syscall_64", "lock"},
      {"flock_lock_inode_wait locks_lock_inode_wait __do_sys_flock do_syscall_64", "lock"},
      {"fcntl_setlk do_fcntl __x64_sys_fcntl do_syscall_64", "lock"},
      {"__do_semtimedop do_semtimedop do_syscall_64", "lock"},
      // Time.
      {"hrtimer_nanosleep __x64_sys_nanosleep do_syscall_64", "sleep"},
      {"hrtimer_nanosleep common_nsleep __x64_sys_clock_nanosleep do_syscall_64", "sleep"},
      // Pipes: before 6.15 and since.
      {"pipe_read new_sync_read vfs_read ksys_read do_syscall_64", "pipe"},
      {"anon_pipe_read vfs_read ksys_read do_syscall_64", "pipe"},
      {"pipe_write new_sync_write vfs_write ksys_write do_syscall_64", "pipe"},
      {"wait_for_partner fifo_open do_dentry_open path_openat do_filp_open do_sys_openat2", "pipe"},
      // Sockets.
      {"sk_wait_data tcp_recvmsg_locked tcp_recvmsg inet_recvmsg sock_recvmsg __sys_recvfrom", "network"},
      {"tcp_recvmsg inet_recvmsg sock_recvmsg sock_read_iter vfs_read ksys_read", "network"},
      {"__skb_wait_for_more_packets __skb_recv_udp udp_recvmsg inet_recvmsg", "network"},
      {"unix_stream_read_generic unix_stream_recvmsg sock_recvmsg __sys_recvfrom", "network"},
      {"sk_stream_wait_memory tcp_sendmsg_locked tcp_sendmsg sock_sendmsg", "network"},
      {"inet_wait_for_connect __inet_stream_connect inet_stream_connect __sys_connect", "network"},
      // Whatever comes first.
      {"ep_poll do_epoll_wait __x64_sys_epoll_wait do_syscall_64", "poll"},
      {"do_epoll_wait __x64_sys_epoll_wait do_syscall_64", "poll"},
      {"poll_schedule_timeout.constprop.0 do_sys_poll __x64_sys_ppoll do_syscall_64", "poll"},
      {"poll_schedule_timeout.constprop.0 do_select core_sys_select __x64_sys_pselect6", "poll"},
      {"inet_csk_accept inet_accept do_accept __sys_accept4 __x64_sys_accept4", "poll"},
      {"sigsuspend.isra.0 __x64_sys_rt_sigsuspend do_syscall_64", "poll"},
      {"do_sigtimedwait __x64_sys_rt_sigtimedwait do_syscall_64", "poll"},
      {"n_tty_read tty_read new_sync_read vfs_read ksys_read", "poll"},
      {"io_cqring_wait __do_sys_io_uring_enter do_syscall_64", "poll"},
      // Files.
      {"folio_wait_bit_common filemap_get_pages filemap_read vfs_read ksys_read", "disk"},
      {"wait_on_page_bit_common generic_file_buffered_read ext4_file_read_iter vfs_read", "disk"},
      {"jbd2_log_wait_commit jbd2_complete_transaction ext4_sync_file vfs_fsync_range do_fsync", "disk"},
      {"xfs_log_force_seq xfs_file_fsync do_fsync __x64_sys_fsync", "disk"},
      {"folio_wait_writeback __filemap_fdatawait_range file_write_and_wait_range", "disk"},
      {"rpc_wait_bit_killable nfs_wait_on_request nfs_file_fsync", "disk"},
      {"request_wait_answer fuse_simple_request fuse_lookup_name", "disk"},
      // Memory: what a fault waits for does not matter.
      {"folio_wait_bit_common filemap_fault __do_fault do_read_fault __handle_mm_fault handle_mm_fault "
       "do_user_addr_fault exc_page_fault asm_exc_page_fault",
       "page_fault"},
      {"do_user_addr_fault exc_page_fault asm_exc_page_fault", "page_fault"},
      {"handle_userfault do_anonymous_page __handle_mm_fault handle_mm_fault", "page_fault"},
      {"ext4_filemap_fault __do_fault handle_mm_fault do_page_fault do_mem_abort el0_da", "page_fault"},
      // The rest.
      {"do_wait kernel_wait4 __do_sys_wait4 do_syscall_64", "other"},
      {"do_signal_stop get_signal arch_do_signal_or_restart", "other"},
      {"", "other"},
  }));
  CAPTURE(functions);
  CHECK(reason_of(functions) == std::string_view(reason));
}

TEST_CASE("the innermost known function decides") {
  CHECK(reason_of("pipe_read splice_file_to_pipe ext4_file_splice_read") == "pipe");
  CHECK(reason_of("submit_bio_wait blkdev_issue_flush ext4_sync_file") == "disk");
  CHECK(reason_of("unknown_function folio_wait_bit_common") == "disk");
}

TEST_CASE("every reason has a name of its own") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kWaitReasons; ++i) names.insert(name_of(static_cast<WaitReason>(i)));
  CHECK(names.size() == kWaitReasons);
  CHECK(names.count("") == 0);
}

}  // namespace
}  // namespace flamed::store
