// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot/code_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "runtimes/hotspot/layout.h"

namespace flamed::runtimes {
namespace {

using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::RaKind;
using unwinder::Rule;

constexpr int kWord = 8;
constexpr std::uint8_t kRbx = 3;
constexpr std::uint8_t kR13 = 13;

/// The return address is `words` words below the CFA's end of the frame: at the stack pointer if it is 1.
Rule by_sp(std::uint32_t words, bool fp_is_saved) {
  Rule rule{.cfa = CfaKind::kSpOffset};
  rule.cfa_offset = static_cast<std::int32_t>(words * kWord);
  rule.ra_offset = -kWord;
  if (fp_is_saved) {
    rule.fp = FpKind::kAtCfa;
    rule.fp_offset = -2 * kWord;
  }
  return rule;
}

/// Behind `push %rbp; mov %rsp,%rbp`.
Rule by_fp() {
  Rule rule{.cfa = CfaKind::kFpOffset, .fp = FpKind::kAtCfa};
  rule.cfa_offset = 2 * kWord;
  rule.ra_offset = -kWord;
  rule.fp_offset = -2 * kWord;
  return rule;
}

/// A frame of the interpreter: the caller's locals may lie between its frame and the return address.
Rule interpreted() {
  Rule rule{.cfa = CfaKind::kFpDeref, .fp = FpKind::kAtFp, .ra = RaKind::kAtFp};
  rule.cfa_offset = HotSpotInterpreterFrame::kSenderSp * kWord;
  rule.ra_offset = kWord;
  return rule;
}

/// The caller's stack pointer is in a register, and the return address at the stack pointer.
Rule by_register(std::uint8_t number) {
  Rule rule{.cfa = CfaKind::kRegisterOffset, .ra = RaKind::kAtSp};
  rule.other_register = number;
  return rule;
}

Rule unknown() { return {.cfa = CfaKind::kUnsupported}; }

using Pattern = std::initializer_list<std::uint8_t>;

/// Are these bytes there?
bool is_at(std::span<const std::byte> code, std::size_t at, Pattern pattern) {
  if (at > code.size() || pattern.size() > code.size() - at) return false;
  return std::equal(pattern.begin(), pattern.end(), code.begin() + static_cast<std::ptrdiff_t>(at),
                    [](std::uint8_t wanted, std::byte found) { return std::byte{wanted} == found; });
}

template <typename T>
std::optional<T> number_at(std::span<const std::byte> code, std::size_t at) {
  T value{};
  if (at > code.size() || sizeof(T) > code.size() - at) return std::nullopt;
  std::memcpy(&value, code.data() + at, sizeof(T));
  return value;
}

/// An instruction that changes the stack pointer by a constant.
struct Change {
  std::int64_t by = 0;
  std::size_t bytes = 0;
};
/// `sub` and `add` of %rsp differ in one byte.
std::optional<Change> change_at(std::span<const std::byte> code, std::size_t at, std::uint8_t which) {
  if (is_at(code, at, {0x48, 0x83, which})) {
    const auto by = number_at<std::int8_t>(code, at + 3);
    if (by) return Change{*by, 4};
  }
  if (is_at(code, at, {0x48, 0x81, which})) {
    const auto by = number_at<std::int32_t>(code, at + 3);
    if (by) return Change{*by, 7};
  }
  return std::nullopt;
}
std::optional<Change> sub_at(std::span<const std::byte> code, std::size_t at) { return change_at(code, at, 0xec); }
std::optional<Change> add_at(std::span<const std::byte> code, std::size_t at) { return change_at(code, at, 0xc4); }

/// The bytes of `mov %rbp,offset(%rsp)`, if it is there.
std::size_t save_of_fp_at(std::span<const std::byte> code, std::size_t at, std::int64_t offset) {
  if (offset == 0 && is_at(code, at, {0x48, 0x89, 0x2c, 0x24})) return 4;
  if (is_at(code, at, {0x48, 0x89, 0x6c, 0x24}) && number_at<std::int8_t>(code, at + 4) == offset) return 5;
  if (is_at(code, at, {0x48, 0x89, 0xac, 0x24}) && number_at<std::int32_t>(code, at + 4) == offset) return 8;
  return 0;
}

/// A return, or a jump away, maybe behind a safepoint poll: the end of it. 0: something else is there.
std::size_t exit_end_at(std::span<const std::byte> code, std::size_t at) {
  if (is_at(code, at, {0xc5, 0xf8, 0x77})) at += 3;  // vzeroupper
  std::size_t poll = 0;
  if (is_at(code, at, {0x49, 0x3b, 0x67})) poll = 4;  // cmp offset(%r15),%rsp
  if (is_at(code, at, {0x49, 0x3b, 0xa7})) poll = 7;
  if (poll != 0) {
    at += poll;
    if (!is_at(code, at, {0x0f, 0x87})) return 0;  // ja
    at += 6;
  }
  poll = 0;
  if (is_at(code, at, {0x4d, 0x8b, 0x57})) poll = 4;  // mov offset(%r15),%r10
  if (is_at(code, at, {0x4d, 0x8b, 0x97})) poll = 7;
  if (poll != 0) {
    at += poll;
    if (!is_at(code, at, {0x41, 0x85, 0x02})) return 0;  // test %eax,(%r10)
    at += 3;
  }
  if (is_at(code, at, {0x85, 0x05})) at += 6;  // test %eax,offset(%rip)
  if (is_at(code, at, {0xc3})) return at + 1;
  if (is_at(code, at, {0xe9})) return at + 5;  // jmp
  for (const std::uint8_t jump : {std::uint8_t{0xe0}, std::uint8_t{0xe1}, std::uint8_t{0xe2}, std::uint8_t{0xe3},
                                  std::uint8_t{0xe6}, std::uint8_t{0xe7}}) {
    if (is_at(code, at, {0xff, jump})) return at + 2;  // jmp *register
    if (is_at(code, at, {0x41, 0xff, jump})) return at + 3;
  }
  return 0;
}

/// The end of the next jump to an address in a register, or return, within a few instructions.
std::optional<std::size_t> jump_end_after(std::span<const std::byte> code, std::size_t at) {
  constexpr std::size_t kMostBytes = 40;
  for (std::size_t i = at; i + 1 < std::min(code.size(), at + kMostBytes); ++i) {
    if (code[i] == std::byte{0xc3}) return i + 1;
    if (code[i] == std::byte{0xff} && (code[i + 1] & std::byte{0xf8}) == std::byte{0xe0}) return i + 2;
  }
  return std::nullopt;
}

/// Where the frame of a virtual thread returns to whose caller is in the heap: its end. It takes the stack pointer of
/// the thread's entry, whose frame pointer was restored by then. 0: something else is there.
std::size_t return_barrier_end_at(std::span<const std::byte> code, std::size_t at) {
  constexpr std::size_t kLoadBytes = 7;  // mov offset(%r15),%rsp
  const bool is_barrier = is_at(code, at, {0x49, 0x8b, 0xa7}) &&
                          is_at(code, at + kLoadBytes, {0x50, 0x48, 0x83, 0xec, 0x10});  // push %rax; sub $16,%rsp
  return is_barrier ? at + kLoadBytes : 0;
}

/// `leave` or `pop %rbp`.
bool is_leave(std::byte byte) { return byte == std::byte{0xc9} || byte == std::byte{0x5d}; }

}  // namespace

void HotSpotRows::add(std::size_t offset, const Rule& rule) {
  // A full table has no room for a rule: nothing is known there.
  const unwinder::RuleId id = rules_.intern(rule).value_or(unwinder::kUnsupportedRule);
  while (!rows_.empty() && rows_.back().offset >= offset) rows_.pop_back();
  if (!rows_.empty() && rows_.back().rule == id) return;
  rows_.push_back({static_cast<std::uint32_t>(offset), id});
}

std::vector<unwinder::Row> HotSpotRows::take() { return std::exchange(rows_, {}); }

void HotSpotRows::add_unknown() { add(0, unknown()); }

bool HotSpotRows::add_compiled(std::span<const std::byte> code, std::uint32_t frame_words,
                               std::int64_t frame_complete) {
  constexpr std::uint32_t kMostWords = 16'000;
  if (frame_words < 2 || frame_words > kMostWords) return false;
  const std::int64_t locals = std::int64_t{frame_words - 2} * kWord;
  const Rule frame = by_sp(frame_words, true);

  // Where the frame is set up: at the start, and where another thread of the method's code enters (on-stack
  // replacement).
  bool is_set_up = false;
  const auto set_up_at = [&](std::size_t at) -> std::size_t {
    if (is_at(code, at, {0x55})) {  // push %rbp
      std::size_t next = at + 1;
      if (is_at(code, next, {0x48, 0x8b, 0xec})) next += 3;  // mov %rsp,%rbp
      const std::optional<Change> sub = sub_at(code, next);
      if (locals != 0 && (!sub || sub->by != locals)) return 0;
      const bool is_start = at == 0 || static_cast<std::int64_t>(at) < frame_complete;
      if (locals == 0 && !(is_start && !is_set_up)) return 0;
      if (!is_set_up) add(0, by_sp(1, false));
      add(at + 1, by_sp(2, true));
      next += locals != 0 ? sub->bytes : (sub && sub->by == 0 ? sub->bytes : 0);
      add(next, frame);
      return next;
    }
    const std::optional<Change> sub = sub_at(code, at);
    if (!sub || sub->by != locals + kWord) return 0;
    const std::size_t save = save_of_fp_at(code, at + sub->bytes, locals);
    if (save == 0) return 0;
    if (!is_set_up) add(0, by_sp(1, false));
    add(at + sub->bytes, by_sp(frame_words, false));
    add(at + sub->bytes + save, frame);
    return at + sub->bytes + save;
  };
  for (std::size_t at = 0; at < code.size(); ++at) {
    const std::byte byte = code[at];
    if (byte == std::byte{0x55} || byte == std::byte{0x48}) {
      if (const std::size_t end = set_up_at(at); end != 0) {
        is_set_up = true;
        at = end - 1;
        continue;
      }
    }
    if (!is_set_up) continue;
    // Where it is left.
    std::size_t pop = at;
    if (byte == std::byte{0x48} && locals != 0) {
      const std::optional<Change> change = add_at(code, at);
      if (!change || change->by != locals) continue;
      pop = at + change->bytes;
    } else if (!(byte == std::byte{0x5d} && locals == 0) && byte != std::byte{0xc9}) {
      continue;
    }
    if (pop >= code.size() || !is_leave(code[pop])) continue;
    const std::size_t end = exit_end_at(code, pop + 1);
    if (end == 0) continue;
    if (pop != at) add(pop, by_sp(2, true));
    add(pop + 1, by_sp(1, false));
    add(end, frame);
    at = end - 1;
  }
  return is_set_up;
}

void HotSpotRows::add_stub(std::span<const std::byte> code) {
  // Where frames are set up and left, in order.
  struct Event {
    std::size_t at;
    std::size_t end;
    bool is_enter;
    bool is_barrier = false;
  };
  std::vector<Event> events;
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (const std::size_t barrier_end = return_barrier_end_at(code, at); barrier_end != 0 && at > 0) {
      // It is returned to and not called: it is looked up by the byte before it.
      events.push_back({at - 1, barrier_end, true, true});
      at = barrier_end - 1;
    } else if (is_at(code, at, {0x55, 0x48, 0x8b, 0xec})) {  // push %rbp; mov %rsp,%rbp
      constexpr std::size_t kEnterBytes = 4;
      events.push_back({at, at + kEnterBytes, true});
      at += kEnterBytes - 1;
    } else if (is_leave(code[at])) {
      const std::size_t end = exit_end_at(code, at + 1);
      if (end == 0) continue;
      events.push_back({at, end, false});
      at = end - 1;
    }
  }
  // What comes before the first one takes frames out of the heap, with that of the virtual thread's entry below it.
  const auto first = std::find_if(events.begin(), events.end(), [](const Event& event) { return event.is_enter; });
  const bool is_thaw = first != events.end() && first->is_barrier;
  add(0, is_thaw ? by_fp() : by_sp(1, false));
  bool has_frame = is_thaw;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.is_barrier) {
      add(event.at, by_fp());
      has_frame = true;
    } else if (event.is_enter) {
      // Code in front of it, behind a return, is only known to have no frame where it enters.
      add(event.at, by_sp(1, false));
      add(event.at + 1, by_sp(2, true));
      add(event.end, by_fp());
      has_frame = true;
    } else if (has_frame) {
      add(event.at + 1, by_sp(1, false));
      // The frame stands in what follows if that leaves it once more.
      const bool goes_on = i + 1 < events.size() && !events[i + 1].is_enter;
      add(event.end, goes_on ? by_fp() : unknown());
      has_frame = goes_on;
    }
  }
}

void HotSpotRows::add_adapter(std::span<const std::byte> code) {
  add(0, by_sp(1, false));
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (is_at(code, at, {0x48, 0x83, 0xe4, 0xf0, 0x50})) {  // and $-16,%rsp; push %rax
      add(at, unknown());
      // Only interpreted code and the call stub call these, whose frames are found by the frame pointer.
      add(at + 5, by_sp(1, false));
    } else if (is_at(code, at, {0x48, 0x83, 0xe4, 0xf0})) {  // and $-16,%rsp, to call the JVM
      add(at, unknown());
    } else if (is_at(code, at, {0x49, 0x8b, 0xe5})) {  // mov %r13,%rsp
      add(at + 3, by_sp(1, false));
    } else if (is_at(code, at, {0x58, 0x4c, 0x8b, 0xec})) {  // pop %rax; mov %rsp,%r13
      add(at + 1, unknown());
    } else if (is_at(code, at, {0x48, 0x89, 0x04, 0x24})) {  // mov %rax,(%rsp)
      add(at + 4, by_register(kR13));
    }
  }
}

void HotSpotRows::add_interpreter(std::span<const std::byte> code, std::span<const std::size_t> parts) {
  const Rule frame = interpreted();
  const auto part_of = [&](std::size_t at) {
    const auto after = std::upper_bound(parts.begin(), parts.end(), at);
    return after == parts.begin() ? std::size_t{0} : *(after - 1);
  };
  add(0, frame);
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (is_at(code, at, {0x55, 0x48, 0x8b, 0xec, 0x41, 0x55})) {  // push %rbp; mov %rsp,%rbp; push %r13
      // A method's entry: the caller's stack pointer is in %r13 until it is pushed, but the return address is taken off
      // the stack to make room for the locals.
      const std::size_t begin = part_of(at);
      std::size_t pop = begin;
      for (std::size_t i = begin; i < at; ++i) {
        if (is_at(code, i, {0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8})) pop = i;  // pop %rax; lea -8(%rsp,%rcx,8),%r14
      }
      add(begin, by_register(kR13));
      add(pop == begin ? begin : pop + 1, unknown());
      add(at + 6, frame);
      at += 5;
    } else if (code[at] == std::byte{0xc9}) {  // leave
      // A method's end. Mostly the caller's stack pointer is in %rbx: `pop register; mov %rbx,%rsp` and a jump follow,
      // from JDK 21 on with a store and a check.
      const std::optional<std::size_t> end = jump_end_after(code, at + 1);
      if (!end) continue;
      add(at + 1, unknown());
      for (std::size_t i = at + 1; i < *end; ++i) {
        if (!is_at(code, i + 1, {0x48, 0x8b, 0xe3})) continue;
        add(at + 1, by_register(kRbx));
        add(i + 1, unknown());
        break;
      }
      add(*end, frame);
      at = *end - 1;
    }
  }
}

}  // namespace flamed::runtimes
