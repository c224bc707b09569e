// SPDX-License-Identifier: Apache-2.0
//
// The command line of flamed-top. Pure.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "top/view.h"

namespace flamed::top {

struct Options {
  std::string address{};  ///< empty: usual_address()
  Question question{};
  double delay_s = 3;
  bool plain = false;      ///< even on a terminal
  std::size_t rounds = 0;  ///< of plain text; 0: one, or without end if a delay is given
  std::size_t rows = 20;   ///< of plain text
  bool shows_help = false;
  bool shows_version = false;
};

/// `arguments` are without the program's name.
Result<Options> parse_options(std::span<const char* const> arguments);

extern const char* const kUsage;

}  // namespace flamed::top
