// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/go_runtime_code.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "test/catch.h"
#include "unwinder/rule.h"

namespace flamed::symbolizer {
namespace {

using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::RaKind;
using unwinder::Rule;
using unwinder::RuledCode;

/// What record_go_runtime.py wrote.
struct Recording {
  struct Call {
    std::string function;
    std::uint64_t returns_to = 0;
    std::string called;
  };
  std::int32_t goroutine = 0;  ///< m.curg
  std::vector<GoRuntimeFunction> functions;
  std::vector<Call> calls;

  [[nodiscard]] bool has(const std::string& name) const {
    return std::any_of(functions.begin(), functions.end(), [&](const auto& function) { return function.name == name; });
  }
  /// Addresses that the calls of one function in another return to.
  [[nodiscard]] std::vector<std::uint64_t> returns(const std::string& name, const std::string& called) const {
    std::vector<std::uint64_t> found;
    for (const Call& call : calls) {
      if (call.function == name && call.called == called) found.push_back(call.returns_to);
    }
    return found;
  }
};

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Recording recording(const std::string& version) {
  Recording recording;
  std::istringstream lines(read_file(std::string(GO_RUNTIMES) + "/" + version, std::size_t{1} << 20).value());
  std::string word;
  while (lines >> word) {
    if (word == "goroutine") {
      lines >> recording.goroutine;
    } else if (word == "function") {
      GoRuntimeFunction& function = recording.functions.emplace_back();
      std::string depths;
      std::string code;
      lines >> function.name >> std::hex >> function.entry >> std::dec >> depths >> code;
      function.code = bytes_of(code);
      std::replace_if(
          depths.begin(), depths.end(), [](char letter) { return letter == ':' || letter == ','; }, ' ');
      std::istringstream numbers(depths);
      GoLineTable::StackDepth depth;
      while (numbers >> depth.distance >> depth.size >> depth.bytes) function.depths.push_back(depth);
    } else {
      REQUIRE(word == "returns");
      const GoRuntimeFunction& function = recording.functions.back();
      Recording::Call call{function.name, 0, {}};
      lines >> call.returns_to >> call.called;
      call.returns_to += function.entry;
      recording.calls.push_back(call);
    }
  }
  REQUIRE_FALSE(recording.functions.empty());
  return recording;
}

/// The rule of a return address, or of none.
std::optional<Rule> rule_of(const std::vector<RuledCode>& rules, std::uint64_t address) {
  std::optional<Rule> found;
  for (const RuledCode& ruled : rules) {
    if (address - 1 - ruled.range.address >= ruled.range.size) continue;
    REQUIRE_FALSE(found);
    found = ruled.rule;
  }
  return found;
}

struct Version {
  std::string name;
  bool saves_fp;  ///< systemstack and asmcgocall do, since Go 1.21
};

Version any_version() {
  return GENERATE(values<Version>(
      {{"1.17", false}, {"1.18", false}, {"1.19", false}, {"1.20", false}, {"1.21", true}, {"1.26", true}}));
}

Rule goroutine_rule(const Version& version, std::int32_t owner, std::int32_t above_sp) {
  Rule rule;
  rule.cfa = CfaKind::kGoSaved;
  rule.cfa_addend = owner;
  rule.cfa_offset = above_sp;
  rule.other_register = 1;
  rule.ra_offset = -8;
  if (version.saves_fp) {
    rule.fp = FpKind::kAtCfa;
    rule.fp_offset = -16;
  }
  return rule;
}

TEST_CASE("from Go's systemstack a stack goes on in the goroutine") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  const std::vector<std::uint64_t> returns = go.returns("runtime.systemstack", "*");
  REQUIRE_FALSE(returns.empty());
  // The first call is that of the function; the other one, if any, that of a fatal error.
  CHECK(rule_of(rules, returns[0]) == goroutine_rule(version, go.goroutine, version.saves_fp ? 16 : 8));
  for (std::size_t i = 1; i < returns.size(); ++i) CHECK_FALSE(rule_of(rules, returns[i]));
  for (const std::uint64_t saving : go.returns("runtime.systemstack", "gosave_systemstack_switch")) {
    CHECK_FALSE(rule_of(rules, saving));
  }
}

TEST_CASE("from the code that enlarges a Go stack it goes on in the function that needs it") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  Rule expected = goroutine_rule(version, go.goroutine, 0);
  expected.ra = RaKind::kInGo;
  expected.ra_offset = 64;
  expected.fp = FpKind::kUnknown;
  expected.fp_offset = 0;
  const std::vector<std::uint64_t> returns = go.returns("runtime.morestack", "runtime.newstack");
  REQUIRE(returns.size() == 1);
  CHECK(rule_of(rules, returns[0]) == expected);
  for (const std::uint64_t fatal : go.returns("runtime.morestack", "runtime.badmorestackg0")) {
    CHECK_FALSE(rule_of(rules, fatal));
  }
}

TEST_CASE("where Go leaves a goroutine, and where its threads and goroutines begin, stacks end") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  Rule outermost;
  outermost.cfa = CfaKind::kOutermost;
  const std::vector<std::uint64_t> mcall = go.returns("runtime.mcall", "*");
  REQUIRE(mcall.size() == 1);
  CHECK(rule_of(rules, mcall[0]) == outermost);
  for (const GoRuntimeFunction& function : go.functions) {
    if (function.name == "runtime.mcall") CHECK_FALSE(rule_of(rules, function.entry + 1));
    if (function.name != "runtime.mstart" && function.name != "runtime.goexit" && function.name != "runtime.rt0_go") {
      continue;
    }
    INFO(function.name);
    CHECK(rule_of(rules, function.entry + 1) == outermost);
    CHECK(rule_of(rules, function.entry + function.code.size()) == outermost);
  }
  CHECK(go.has("runtime.mstart"));
  CHECK(go.has("runtime.goexit"));
}

TEST_CASE("a child's and its parent's return address is in a register while they share a stack") {
  // Go 1.27.
  GoRuntimeFunction vfork;
  vfork.name = "syscall.rawVforkSyscall";
  vfork.entry = 0x4ad940;
  vfork.code =
      bytes_of("488b7c2410488b742418488b54242041ba0000000041b80000000041b900000000488b442408415c0f0541544883f8ff");
  constexpr std::uint64_t kCall = 0x4ad968;
  const std::vector<RuledCode> rules = go_runtime_code(std::vector{vfork});
  Rule expected;
  expected.cfa = CfaKind::kSpOffset;
  expected.ra = RaKind::kInRegister;
  expected.other_register = 12;
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].range.address == kCall);
  // The system call, and the instruction behind it.
  CHECK(rules[0].range.size == 4);
  CHECK(rules[0].rule == expected);
}

TEST_CASE("from C that Go called a stack goes on in the goroutine, or on the same stack") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  // Until Go 1.26 C is called directly.
  std::vector<std::uint64_t> returns = go.returns("runtime.asmcgocall", "*");
  if (returns.empty()) returns = go.returns("runtime.asmcgocall", "runtime.asmcgocall_landingpad");
  REQUIRE(returns.size() == 2);
  Rule expected;
  expected.cfa = CfaKind::kGoDepth;
  expected.cfa_addend = version.saves_fp ? 16 : 8;
  expected.ra_offset = -8;
  if (version.saves_fp) {
    expected.fp = FpKind::kAtCfa;
    expected.fp_offset = -16;
  }
  std::optional<Rule> found = rule_of(rules, returns[0]);
  REQUIRE(found);
  // Windows needed room below it.
  CHECK((found->cfa_offset == 0 || found->cfa_offset == 40));
  expected.cfa_offset = found->cfa_offset;
  CHECK(*found == expected);
  expected.cfa = CfaKind::kSpDeref;
  CHECK(rule_of(rules, returns[1]) == expected);
}

TEST_CASE("from Go that C called a stack goes on in C") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  Rule expected = goroutine_rule({version.name, true}, 0, 40);
  std::size_t ruled = 0;
  // One of its calls is that of the Go function. The others are on the thread's stack.
  for (const std::uint64_t address : go.returns("runtime.cgocallback", "*")) {
    const std::optional<Rule> found = rule_of(rules, address);
    if (!found) continue;
    CHECK(*found == expected);
    ++ruled;
  }
  CHECK(ruled == 1);
}

TEST_CASE("Go's calls of the vdso, on the thread's stack, are left by the frame pointer") {
  const Version version = any_version();
  INFO(version.name);
  const Recording go = recording(version.name);
  const std::vector<RuledCode> rules = go_runtime_code(go.functions);
  Rule expected;
  expected.cfa = CfaKind::kGoFrame;
  expected.cfa_offset = 16;
  expected.fp = FpKind::kAtCfa;
  expected.fp_offset = -16;
  expected.ra_offset = -8;
  for (const char* name : {"runtime.nanotime1", "time.now"}) {
    INFO(name);
    const std::vector<std::uint64_t> returns = go.returns(name, "*");
    REQUIRE_FALSE(returns.empty());
    CHECK(rule_of(rules, returns[0]) == expected);
  }
}

TEST_CASE("code of Go's runtime that is not as known gets no rule") {
  Recording go = recording("1.26");
  const auto rules_with = [&](const std::string& name, const std::string& code) {
    std::vector<GoRuntimeFunction> functions = go.functions;
    for (GoRuntimeFunction& function : functions) {
      if (function.name == name) function.code = code;
    }
    return go_runtime_code(functions);
  };
  const std::size_t all = go_runtime_code(go.functions).size();
  const std::string nops(64, '\x90');
  // Without systemstack it is not known where the thread's goroutine is.
  std::size_t unsupported = 0;
  for (const RuledCode& ruled : rules_with("runtime.systemstack", nops)) {
    CHECK(ruled.rule.cfa != CfaKind::kGoSaved);
    unsupported += ruled.rule.cfa == CfaKind::kUnsupported ? 1 : 0;
  }
  CHECK(unsupported >= 3);
  CHECK(rules_with("runtime.asmcgocall", nops).size() == all - 2);
  for (const char* name : {"runtime.morestack", "runtime.mcall", "runtime.cgocallback", "runtime.nanotime1"}) {
    INFO(name);
    CHECK(rules_with(name, nops).size() == all - 1);
    CHECK(rules_with(name, "").size() == all - 1);
  }
  // Cut off anywhere, a rule stays within the code.
  for (const GoRuntimeFunction& function : go.functions) {
    for (std::size_t size = 0; size < function.code.size(); ++size) {
      for (const RuledCode& ruled : rules_with(function.name, function.code.substr(0, size))) {
        if (ruled.range.address - function.entry >= function.code.size()) continue;
        CHECK(ruled.range.address + ruled.range.size <= function.entry + size);
      }
    }
  }
}

}  // namespace
}  // namespace flamed::symbolizer
