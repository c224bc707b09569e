// SPDX-License-Identifier: Apache-2.0
//
// What the kernel program keeps of the places that a process's stacks go through: whose it is, and for how long.
#include <cstdint>
#include <memory>
#include <vector>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"

#define bpf_probe_read_user(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#include "bpf/known_sites.h"

namespace flamed {
namespace {

constexpr std::uint32_t kNow = 1000;
constexpr std::uint64_t kPlace = 0x401000;
constexpr std::uint32_t kHop = FLAMED_HOP_BY_RULE | 1 << FLAMED_HOP_RA_SHIFT | 2 << FLAMED_HOP_CFA_SHIFT;

flamed_sample sample_of_process() {
  flamed_sample sample{};
  sample.tgid = 4711;
  sample.start_boottime_ns = 77;
  sample.exec_id = 3;
  sample.tables = 9;
  return sample;
}

/// As most compilers' code is: CFA = sp + 16, the return address below it.
flamed_unwind_rule common_rule() {
  flamed_unwind_rule rule{};
  rule.cfa = FLAMED_CFA_SP_OFFSET;
  rule.fp = FLAMED_FP_SAME;
  rule.ra = FLAMED_RA_AT_CFA;
  rule.cfa_offset = 16;
  rule.ra_offset = -8;
  return rule;
}

TEST_CASE("a remembered place is found, and no other one") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  CHECK(find_hop(known.get(), kPlace) == 0);
  remember_hop(known.get(), kPlace, kHop);
  CHECK(find_hop(known.get(), kPlace) == kHop);
  for (std::uint64_t other = kPlace + 1; other < kPlace + 4096; ++other) {
    if (find_hop(known.get(), other) != 0) FAIL("found " << other);
  }
  CHECK(find_hop(known.get(), kPlace + (1ULL << 32)) == 0);  // the set is chosen by the lower half alone
}

TEST_CASE("places of memory that was never written are not found") {
  const auto known = std::make_unique<known_sites>();
  CHECK(find_hop(known.get(), 0) == 0);
}

TEST_CASE("of a set the two places that were remembered last are found") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  std::vector<std::uint64_t> same_set;
  for (std::uint64_t place = kPlace; same_set.size() < 3; ++place) {
    if (site_set(place) == site_set(kPlace)) same_set.push_back(place);
  }
  for (const std::uint64_t place : same_set) remember_hop(known.get(), place, kHop);
  CHECK(find_hop(known.get(), same_set[0]) == 0);
  CHECK(find_hop(known.get(), same_set[1]) == kHop);
  CHECK(find_hop(known.get(), same_set[2]) == kHop);
}

TEST_CASE("what another process, program or edition of tables left is forgotten") {
  const flamed_sample sample = sample_of_process();
  std::vector<flamed_sample> others(4, sample);
  others[0].tgid++;
  others[1].start_boottime_ns++;
  others[2].exec_id++;
  others[3].tables++;
  for (const flamed_sample& other : others) {
    const auto known = std::make_unique<known_sites>();
    open_sites(known.get(), &sample, kNow);
    remember_hop(known.get(), kPlace, kHop);
    open_sites(known.get(), &other, kNow);
    CHECK(find_hop(known.get(), kPlace) == 0);
    remember_hop(known.get(), kPlace, kHop);
    open_sites(known.get(), &other, kNow);
    CHECK(find_hop(known.get(), kPlace) == kHop);
    open_sites(known.get(), &sample, kNow);
    CHECK(find_hop(known.get(), kPlace) == 0);
  }
}

TEST_CASE("places are looked up anew before their modules could be taken for unused") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  remember_hop(known.get(), kPlace, kHop);
  open_sites(known.get(), &sample, kNow + FLAMED_SITES_SECONDS - 1);
  CHECK(find_hop(known.get(), kPlace) == kHop);
  open_sites(known.get(), &sample, kNow + FLAMED_SITES_SECONDS);
  CHECK(find_hop(known.get(), kPlace) == 0);
}

TEST_CASE("what a run that took too long may have read of changing tables is forgotten") {
  const auto known = std::make_unique<known_sites>();
  const flamed_sample sample = sample_of_process();
  open_sites(known.get(), &sample, kNow);
  remember_hop(known.get(), kPlace, kHop);
  forget_sites(known.get());
  open_sites(known.get(), &sample, kNow);
  CHECK(find_hop(known.get(), kPlace) == 0);
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
           Case{"signed", [](auto& rule) { rule.ra_signed = 1; }, false},
           Case{"a signal frame", [](auto& rule) { rule.signal_frame = 1; }, false},
           Case{"a PLT stub", [](auto& rule) { rule.cfa = FLAMED_CFA_PLT; }, false},
           Case{"the outermost frame", [](auto& rule) { rule.cfa = FLAMED_CFA_OUTERMOST; }, false},
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
