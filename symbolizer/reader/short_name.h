// SPDX-License-Identifier: Apache-2.0
//
// short_name: shortens a demangled name. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

enum class NameLanguage { kCpp, kRust };

/// Longer lists of template arguments become "<...>", longer parameter lists of lambdas "(...)".
inline constexpr std::size_t kMaxListBytes = 32;

/// Of a name as libiberty writes it, without return type:
///   C++: no parameters and what follows them ("f(int) const" -> "f"), also of the functions that a local one stands
///   in. Arguments that the standard library nearly always supplies itself (std::allocator<...> and the like) are left
///   out, and std::string is called so. After that, lists that are still long are cut, inner ones first:
///   "std::vector<int>::push_back", "std::map<int, std::vector<...>>::operator[]", "f::{lambda(int)#1}::operator()".
///   Rust: long lists are cut; "<T as Trait>" is a path and stays. Unknown syntax stays unchanged. Takes time and
/// memory linear in the name.
std::string short_name(std::string_view full, NameLanguage language);

}  // namespace flamed::symbolizer
