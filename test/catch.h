// SPDX-License-Identifier: Apache-2.0
//
// Catch2, v2 (Debian 12) or v3 (Debian 13): the one place that knows the difference.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as v2 has it
#else
#include <catch2/catch.hpp>
#endif
