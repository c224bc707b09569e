// SPDX-License-Identifier: Apache-2.0
//
// folded_name: a function's name, escaped for folded stacks. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace flamed::api {

/// `;` becomes `:`, control characters become `_`, what is not UTF-8 becomes U+FFFD, an empty name becomes [unnamed].
std::string folded_name(std::string_view raw);

}  // namespace flamed::api
