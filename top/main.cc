// SPDX-License-Identifier: Apache-2.0
//
// flamed-top: the summary and the hottest functions in a terminal, or as plain text.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <thread>

#include "top/client.h"
#include "top/look.h"
#include "top/options.h"
#include "top/screen.h"
#include "top/view.h"

namespace flamed::top {
namespace {

constexpr int kFailed = 1;
constexpr int kUsageFailed = 2;

int fail(const Error& error, int status = kFailed) {
  std::fprintf(stderr, "flamed-top: %s\n", error.message().c_str());
  return status;
}

int write_plain(const Client& client, const Options& options) {
  for (std::size_t round = 0; round < std::max<std::size_t>(options.rounds, 1); ++round) {
    if (round != 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.delay_s));
    const Result<View> view = look(client, options.question);
    if (!view) return fail(view.error());
    if (round != 0) std::puts("");
    const std::string text = plain_text(options.question, *view, options.rows);
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      return fail(Error::from_errno("cannot write"));
  }
  return 0;
}

int run(std::span<const char* const> arguments) {
  const Result<Options> options = parse_options(arguments);
  if (!options) return fail(options.error(), kUsageFailed);
  if (options->shows_help) return std::fputs(kUsage, stdout) < 0 ? kFailed : 0;
  if (options->shows_version) return std::puts("flamed-top " FLAMED_VERSION) < 0 ? kFailed : 0;
  std::setlocale(LC_ALL, "");
  // Numbers are written as flamed writes them.
  std::setlocale(LC_NUMERIC, "C");
  const Client client(options->address.empty() ? usual_address() : options->address);
  const bool is_plain =
      options->plain || options->rounds != 0 || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0;
  if (is_plain) return write_plain(client, *options);
  const Status shown = show(client, options->question, options->delay_s);
  return shown ? 0 : fail(shown.error());
}

}  // namespace
}  // namespace flamed::top

int main(int argc, char** argv) {
  try {
    return flamed::top::run({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)});
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "flamed-top: %s\n", exception.what());
    return flamed::top::kFailed;
  }
}
