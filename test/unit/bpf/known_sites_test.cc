// SPDX-License-Identifier: Apache-2.0
//
// The places that the kernel program remembers from a process's stacks: which process they belong to, and how long they
// are kept.
#include <cstdint>
#include <memory>
#include <vector>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"

#define bpf_probe_read_user(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#define FLAMED_THREAD_POINTER() 0
#include "bpf/walk/known_sites.h"

namespace flamed {
namespace {

constexpr std::uint32_t kNow = 1000;
constexpr std::uint64_t kPlace = 0x401000;
constexpr std::uint32_t kModule = 5;
constexpr std::uint32_t kHop = FLAMED_HOP_BY_RULE | 1 << FLAMED_HOP_RA_SHIFT | 2 << FLAMED_HOP_CFA_SHIFT;

flamed_sample sample_of_process() {
  flamed_sample sample{};
  sample.tgid = 4711;
  sample.start_boottime_ns = 77;
  sample.exec_id = 3;
  sample.tables = 9;
  return sample;
}

/// As in most compilers' code: CFA = sp + 16, the return address below it.
flamed_unwind_rule common_rule() {
  flamed_unwind_rule rule{};
  rule.cfa = FLAMED_CFA_SP_OFFSET;
  rule.fp = FLAMED_FP_SAME;
  rule.ra = FLAMED_RA_AT_CFA;
  rule.cfa_offset = 16;
  rule.ra_offset = -8;
  return rule;
}

void remember(known_sites* known, std::uint64_t place) { remember_site(known, place, kHop, kModule, kNow); }

std::uint32_t hop_at(known_sites* known, std::uint64_t place) {
  const known_site* site = find_site(known, place);
  return site == nullptr ? 0 : site->hop;
}

TEST_CASE("only a remembered place is found") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  CHECK(hop_at(known.get(), kPlace) == 0);
  remember(known.get(), kPlace);
  CHECK(hop_at(known.get(), kPlace) == kHop);
  for (std::uint64_t other = kPlace + 1; other < kPlace + 4096; ++other) {
    if (hop_at(known.get(), other) != 0) FAIL("found " << other);
  }
  CHECK(hop_at(known.get(), kPlace + (1ULL << 32)) == 0);  // only the lower half chooses the set
}

TEST_CASE("places of memory that was never written are not found") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  CHECK(hop_at(known.get(), 0) == 0);
}

TEST_CASE("the two places of a set that were remembered last are found") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  std::vector<std::uint64_t> same_set;
  for (std::uint64_t place = kPlace; same_set.size() < 3; ++place) {
    if (site_set(place) == site_set(kPlace)) same_set.push_back(place);
  }
  for (const std::uint64_t place : same_set) remember(known.get(), place);
  CHECK(hop_at(known.get(), same_set[0]) == 0);
  CHECK(hop_at(known.get(), same_set[1]) == kHop);
  CHECK(hop_at(known.get(), same_set[2]) == kHop);
}

TEST_CASE("a place that is remembered again evicts no other") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  std::uint64_t neighbour = kPlace + 1;
  while (site_set(neighbour) != site_set(kPlace)) ++neighbour;
  for (const std::uint64_t again : {kPlace, neighbour}) {
    CAPTURE(again);
    remember(known.get(), neighbour);
    remember(known.get(), kPlace);
    remember_site(known.get(), again, kHop, kModule, kNow + 1);
    CHECK(hop_at(known.get(), kPlace) == kHop);
    CHECK(hop_at(known.get(), neighbour) == kHop);
  }
}

TEST_CASE("places of another process, program or edition of tables are forgotten") {
  const flamed_sample sample = sample_of_process();
  std::vector<flamed_sample> others(4, sample);
  others[0].tgid++;
  others[1].start_boottime_ns++;
  others[2].exec_id++;
  others[3].tables++;
  for (const flamed_sample& other : others) {
    const auto known = std::make_unique<known_sites>();
    open_sites(known.get(), &sample, kNow);
    remember(known.get(), kPlace);
    open_sites(known.get(), &other, kNow);
    CHECK(hop_at(known.get(), kPlace) == 0);
    remember(known.get(), kPlace);
    open_sites(known.get(), &other, kNow);
    CHECK(hop_at(known.get(), kPlace) == kHop);
    open_sites(known.get(), &sample, kNow);
    CHECK(hop_at(known.get(), kPlace) == 0);
  }
}

TEST_CASE("old places are forgotten however many other processes were sampled in between") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  flamed_sample other = sample;
  open_sites(known.get(), &sample, kNow);
  remember(known.get(), kPlace);
  for (int i = 0; i < 3 * 256; ++i) {
    other.tgid++;
    open_sites(known.get(), &other, kNow);
    if (hop_at(known.get(), kPlace) != 0) FAIL("found by the process " << i + 1 << " later");
  }
}

TEST_CASE("a process's tables are read from its places until any process's tables change") {
  constexpr std::uint32_t kEdition = 12;
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  CHECK_FALSE(sites_are_of(known.get(), &sample, kEdition));
  open_sites(known.get(), &sample, kNow);
  known->edition = kEdition;
  CHECK(sites_are_of(known.get(), &sample, kEdition));
  CHECK_FALSE(sites_are_of(known.get(), &sample, kEdition + 1));
  std::vector<flamed_sample> others(3, sample);
  others[0].tgid++;
  others[1].start_boottime_ns++;
  others[2].exec_id++;
  for (const flamed_sample& other : others) CHECK_FALSE(sites_are_of(known.get(), &other, kEdition));
  forget_sites(known.get());
  CHECK_FALSE(sites_are_of(known.get(), &sample, kEdition));
}

TEST_CASE("places are looked up again after a while, in case better rows exist") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  remember(known.get(), kPlace);
  open_sites(known.get(), &sample, kNow + FLAMED_SITES_SECONDS - 1);
  CHECK(hop_at(known.get(), kPlace) == kHop);
  open_sites(known.get(), &sample, kNow + FLAMED_SITES_SECONDS);
  CHECK(hop_at(known.get(), kPlace) == 0);
}

TEST_CASE("a used place marks its module before the module counts as unused") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  // Seconds are kept in 8 bits: check also where they wrap to 0.
  for (const std::uint32_t now : {kNow, 255U, 256U, 511U}) {
    CAPTURE(now);
    open_sites(known.get(), &sample, now);
    remember_site(known.get(), kPlace, kHop, kModule, now);
    CHECK_FALSE(site_is_stale(find_site(known.get(), kPlace), now + FLAMED_SITE_FRESH_SECONDS - 1));
    CHECK(site_is_stale(find_site(known.get(), kPlace), now + FLAMED_SITE_FRESH_SECONDS));
  }
  remember_site(known.get(), kPlace, FLAMED_HOP_BY_FRAME_POINTER, FLAMED_NO_MODULE, kNow);
  CHECK_FALSE(site_is_stale(find_site(known.get(), kPlace), kNow + FLAMED_SITES_SECONDS));
}

TEST_CASE("places from a run that took so long that its tables may have changed are forgotten") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  remember(known.get(), kPlace);
  forget_sites(known.get());
  open_sites(known.get(), &sample, kNow);
  CHECK(hop_at(known.get(), kPlace) == 0);
}

TEST_CASE("a place beyond which nothing is mapped is new once, until the process has other tables") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  constexpr std::uint64_t kPage = kPlace >> 12;
  open_sites(known.get(), &sample, kNow);
  CHECK(look_at_unmapped(known.get(), kPage, kNow) == FLAMED_UNMAPPED_NEW);
  CHECK(look_at_unmapped(known.get(), kPage, kNow) == FLAMED_UNMAPPED_AWAITED);
  CHECK(look_at_unmapped(known.get(), kPage + 1, kNow) == FLAMED_UNMAPPED_NEW);
  CHECK(look_at_unmapped(known.get(), kPage, kNow + FLAMED_AWAITED_SECONDS - 1) == FLAMED_UNMAPPED_AWAITED);
  for (const std::uint32_t later : {std::uint32_t{FLAMED_AWAITED_SECONDS}, std::uint32_t{FLAMED_SITES_SECONDS - 1}}) {
    open_sites(known.get(), &sample, kNow + later);
    CHECK(look_at_unmapped(known.get(), kPage, kNow + later) == FLAMED_UNMAPPED_FOR_GOOD);
  }
  // It is no place that a walk finds.
  CHECK(find_site(known.get(), kPage) == nullptr);
  CHECK(find_site(known.get(), kPlace) == nullptr);

  flamed_sample remapped = sample;
  remapped.tables++;
  open_sites(known.get(), &remapped, kNow + 10);
  CHECK(look_at_unmapped(known.get(), kPage, kNow + 10) == FLAMED_UNMAPPED_NEW);
}

TEST_CASE("only a rule that fits into a word becomes one") {
  CHECK(hop_of_rule(std::make_unique<flamed_unwind_rule>(common_rule()).get()) != 0);
  struct Case {
    const char* what;
    void (*change)(flamed_unwind_rule&);
    bool fits;
  };
  for (const Case& c : {
           Case{"no CFA offset", [](auto& rule) { rule.cfa_offset = 0; }, true},
           Case{"the largest CFA offset", [](auto& rule) { rule.cfa_offset = 8 * 16383; }, true},
           Case{"one word more", [](auto& rule) { rule.cfa_offset = 8 * 16384; }, false},
           Case{"below the stack pointer", [](auto& rule) { rule.cfa_offset = -8; }, false},
           Case{"a part of a word", [](auto& rule) { rule.cfa_offset = 12; }, false},
           Case{"the farthest return address", [](auto& rule) { rule.ra_offset = -8 * 127; }, true},
           Case{"one word farther", [](auto& rule) { rule.ra_offset = -8 * 128; }, false},
           Case{"a return address at the CFA", [](auto& rule) { rule.ra_offset = 0; }, false},
           Case{"above the CFA", [](auto& rule) { rule.ra_offset = 8; }, false},
           Case{"half a word below it", [](auto& rule) { rule.ra_offset = -4; }, false},
           Case{"in a register", [](auto& rule) { rule.ra = FLAMED_RA_IN_REGISTER; }, false},
           Case{"signed", [](auto& rule) { rule.ra_signed = 1; }, true},
           Case{"a signal frame", [](auto& rule) { rule.signal_frame = 1; }, false},
           Case{"keeps the base register", [](auto& rule) { rule.base_words = FLAMED_SAME_BASE; }, false},
           Case{"a PLT stub", [](auto& rule) { rule.cfa = FLAMED_CFA_PLT; }, false},
           Case{"the outermost frame", [](auto& rule) { rule.cfa = FLAMED_CFA_OUTERMOST; }, true},
           Case{"no information", [](auto& rule) { rule.cfa = FLAMED_CFA_NONE; }, true},
       }) {
    CAPTURE(c.what);
    flamed_unwind_rule rule = common_rule();
    c.change(rule);
    CHECK((hop_of_rule(&rule) != 0) == c.fits);
  }
  flamed_unwind_rule saves_fp = common_rule();
  saves_fp.fp = FLAMED_FP_AT_CFA;
  for (const int words : {1, 255}) {
    saves_fp.fp_offset = -8 * words;
    CHECK(hop_of_rule(&saves_fp) != 0);
  }
  for (const int bytes : {0, 8, -4, -8 * 256}) {
    saves_fp.fp_offset = bytes;
    CHECK(hop_of_rule(&saves_fp) == 0);
  }
}

}  // namespace
}  // namespace flamed
