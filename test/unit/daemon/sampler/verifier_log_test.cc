// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/verifier_log.h"

#include <string>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// As 6.1 prints it.
constexpr const char* kLog =
    "reg type unsupported for arg#0 function wrong#5\n"
    "0: R1=ctx(off=0,imm=0) R10=fp0\n"
    "0: (b7) r1 = 0                        ; R1_w=0\n"
    "1: (7b) *(u64 *)(r0 +8) = r1\n"
    "R0 invalid mem access 'scalar'\n"
    "processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n";

std::string numbered_lines(std::size_t count, std::size_t length) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) {
    std::string line = "line " + std::to_string(i);
    line.resize(length - 1, ' ');
    text += line + "\n";
  }
  return text;
}

TEST_CASE("the reason is between the last instruction and the statistics") {
  CHECK(reason(keep_verifier_log("wrong", kLog)) == "R0 invalid mem access 'scalar'");
  CHECK(reason(keep_verifier_log("wrong",
                                 "18: (7b) *(u64 *)(r0 +8) = r1\ninvalid access\nR0 is outside\n R0=1 R1=2\n"
                                 "verification time 25 usec\nstack depth 8\nprocessed 18 insns\n")) ==
        "invalid access, R0 is outside");
  // Linux 5.10
  CHECK(reason(keep_verifier_log("wrong",
                                 "18: (7b) *(u64 *)(r0 +8) = r1\n R0_w=map_value(id=0,off=0,ks=4,vs=8,imm=0) R10=fp0\n"
                                 "invalid access\nR0 is outside\nprocessed 18 insns\n")) ==
        "invalid access, R0 is outside");
  CHECK(reason(keep_verifier_log("wrong", "unknown opcode 8d\nprocessed 0 insns\n")) == "unknown opcode 8d");
  CHECK(reason(keep_verifier_log("wrong", "last insn is not an exit or jmp")) == "last insn is not an exit or jmp");
  CHECK(reason(keep_verifier_log("wrong", "")).empty());
}

TEST_CASE("a short log is shown in full") {
  const VerifierLog log = keep_verifier_log("wrong", kLog);
  const std::string text(kLog, std::string(kLog).size() - 1);
  CHECK(describe_end(log) ==
        "the kernel's verifier refuses the program wrong: R0 invalid mem access 'scalar'; its log:\n" + text);
  CHECK(describe_whole(log) ==
        "the verifier's log of the program wrong, 6 lines, " + std::to_string(text.size() + 1) + " bytes:\n" + text);
}

TEST_CASE("the last 30 lines of a long log are shown, with the number of all") {
  const VerifierLog log = keep_verifier_log("long", numbered_lines(100, 20));
  const std::string end = describe_end(log);
  CHECK(end.find("the last 30 of 100 lines of its log (--log-level debug logs all of them):\nline 71 ") !=
        std::string::npos);
  CHECK(end.find("line 70 ") == std::string::npos);
  CHECK(end.find("line 100 ") != std::string::npos);
  CHECK(describe_whole(log).find(":\nline 1 ") != std::string::npos);
}

TEST_CASE("the last whole lines of a log that is too large are kept, with the number of missing ones") {
  constexpr std::size_t kLine = 1000;  // of which kMostBytes holds 1048 and a half
  const VerifierLog log = keep_verifier_log("long", numbered_lines(2000, kLine));
  CHECK(log.text.starts_with("line 953 "));
  CHECK(log.text.size() <= VerifierLog::kMostBytes);
  CHECK(log.lines == 2000);
  CHECK(log.cut_lines == 952);
  CHECK(
      describe_whole(log).starts_with("the verifier's log of the program long, 2000 lines, 2000000 bytes, without the "
                                      "first 952 lines (the last 1048576 "
                                      "bytes are kept):\nline 953 "));
  CHECK(describe_end(log).find("the last 30 of 2000 lines") != std::string::npos);
}

TEST_CASE("a cut between two lines loses neither") {
  constexpr std::size_t kLine = 1024;
  const VerifierLog log = keep_verifier_log("long", numbered_lines(1025, kLine));
  CHECK(log.cut_lines == 1);
  CHECK(log.text.starts_with("line 2 "));
}

TEST_CASE("one line that is too large keeps its end") {
  const VerifierLog log = keep_verifier_log("long", std::string(2 * VerifierLog::kMostBytes, 'x') + "end\n");
  CHECK(log.text.size() == VerifierLog::kMostBytes - 1);
  CHECK(log.text.ends_with("xend"));
  CHECK(log.cut_lines == 0);
}

}  // namespace
}  // namespace flamed::daemon
