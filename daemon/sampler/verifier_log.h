// SPDX-License-Identifier: Apache-2.0
//
// VerifierLog: the log of the kernel's verifier for a refused program, as a value: each instruction on the path to the
// wrong one, then the reason, then statistics.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::daemon {

struct VerifierLog {
  /// The log has the one wrong path, mostly some 10 KiB; with loops it has up to the million instructions after which
  /// the verifier gives up: some 100 MiB, on 5.10 some 500.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  static constexpr std::size_t kLastLines = 30;

  std::string program;
  std::string text;           ///< whole lines, the last ones: kMostBytes at most
  std::size_t bytes = 0;      ///< of the whole log
  std::size_t lines = 0;      ///< likewise
  std::size_t cut_lines = 0;  ///< the first lines, which `text` does not have
};

VerifierLog keep_verifier_log(std::string_view program, std::string_view log);

/// "invalid access to map value, value_size=8 off=8 size=8": the text after the last instruction. Empty if there is
/// none.
std::string reason(const VerifierLog& log);

/// For the log at level error: the reason, and the last kLastLines lines.
std::string describe_end(const VerifierLog& log);
/// For the log at level debug: all kept lines, and the number of missing ones.
std::string describe_whole(const VerifierLog& log);

}  // namespace flamed::daemon
