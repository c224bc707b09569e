// SPDX-License-Identifier: Apache-2.0
//
// Messages about a program that the kernel's verifier refuses. The programs are invalid and really refused. They are
// loaded as the daemon loads its own.
#include <algorithm>
#include <cerrno>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "daemon/sampler/libbpf_log.h"
#include "daemon/sampler/verifier_log.h"
#include "test/catch.h"
#include "test/support/captured_log.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "test/kernel/refused_programs.skel.h"
#pragma GCC diagnostic pop

namespace flamed::test {
namespace {

using daemon::LibbpfLog;
using daemon::VerifierLog;
using Skeleton = Handle<refused_programs*, refused_programs::destroy>;

constexpr const char* kReason = "invalid access to map value, value_size=8 off=8 size=8, R0 min value is ";

constexpr const char* kLastLine = "\ninvalid access to map value, value_size=8 off=8 size=8\nR0 min value is ";

/// Loads one of the programs by its name, and is refused.
Error refused(const char* name, LibbpfLog::Level level = LibbpfLog::Level::kError) {
  LibbpfLog log;
  const Skeleton skeleton(::refused_programs__open());
  REQUIRE(skeleton);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton.get()->obj) {
    ::bpf_program__set_autoload(program, std::string(::bpf_program__name(program)) == name);
  }
  const Status loaded =
      log.load("loading the test's program", level, [&] { return ::refused_programs__load(skeleton.get()); });
  REQUIRE(!loaded);
  return loaded.error();
}

long lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST_CASE("a program that the verifier refuses is named with the verifier's reason") {
  const CapturedLog log(spdlog::level::off);
  const Error error = refused("wrong_at_once");
  CAPTURE(error.message());
  CHECK(error.message().starts_with(
      "loading the test's program: the kernel's verifier refuses the program wrong_at_once: " + std::string(kReason)));
  // The kernel's EACCES would otherwise be taken for a lack of rights.
  CHECK(error.code() == EINVAL);
}

TEST_CASE("only the end of the verifier's log is logged as an error") {
  const CapturedLog log(spdlog::level::info);
  static_cast<void>(refused("wrong_after_a_long_way"));
  const std::string text = log.text();
  CAPTURE(text);
  CHECK(text.starts_with("error: the kernel's verifier refuses the program wrong_after_a_long_way: " +
                         std::string(kReason)));
  CHECK(text.find("; the last 30 of ") != std::string::npos);
  CHECK(text.find("\nprocessed ") != std::string::npos);
  CHECK(lines_of(text) == 1 + 30);
}

TEST_CASE("the whole log of a refused program is logged at debug level") {
  const CapturedLog log(spdlog::level::debug);
  static_cast<void>(refused("wrong_at_once"));
  const std::string text = log.text();
  CAPTURE(text);
  const std::size_t whole = text.find("debug: the verifier's log of the program wrong_at_once, ");
  REQUIRE(whole != std::string::npos);
  CHECK(text.find("without the first", whole) == std::string::npos);
  CHECK(text.find("\n0: ", whole) != std::string::npos);  // the first instruction
  CHECK(text.find(kLastLine, whole) != std::string::npos);
}

TEST_CASE("a log larger than the first buffer keeps its end, with the size of the missing part") {
  const CapturedLog log(spdlog::level::debug);
  static_cast<void>(refused("wrong_after_a_long_way", LibbpfLog::Level::kDebug));
  const std::string text = log.text();
  CAPTURE(text.substr(0, 300));
  CHECK(text.starts_with("debug: the verifier's log of the program wrong_after_a_long_way, "));
  const std::size_t bytes_end = text.find(" bytes, without the first ");
  REQUIRE(bytes_end != std::string::npos);
  const std::size_t bytes_begin = text.rfind(' ', bytes_end - 1) + 1;
  CHECK(std::stoul(text.substr(bytes_begin)) > std::size_t{16} << 20);
  CHECK(text.size() > VerifierLog::kMostBytes - 1024);
  CHECK(text.size() < VerifierLog::kMostBytes + 1024);
  CHECK(text.find(kLastLine) != std::string::npos);
}

}  // namespace
}  // namespace flamed::test
