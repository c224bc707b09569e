// SPDX-License-Identifier: Apache-2.0
//
// Catch2 v2 (Debian 12) or v3 (Debian 13). Only this header knows the difference.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as in v2
#else
#include <catch2/catch.hpp>
#endif
