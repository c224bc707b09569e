// SPDX-License-Identifier: Apache-2.0
//
// Writes a small profile in pprof's format to standard output, to check it with tools that aren't flamed's.
#include <cstdio>

#include "api/render/render_pprof.h"
#include "test/unit/api/render/stack_profile_builder.h"

int main() {
  const auto profile = flamed::api::render_pprof(flamed::api::example_stacks());
  if (!profile) return 1;
  return std::fwrite(profile->data(), 1, profile->size(), stdout) == profile->size() ? 0 : 1;
}
