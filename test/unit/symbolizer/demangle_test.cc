// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/demangle.h"

#include <chrono>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("C names are not changed") {
  for (const char* name : {"", "_", "main", "_start", "_Z", "__libc_start_main", "foo.cold", "_Zed", "_ROOT"}) {
    CHECK(demangle(name) == name);
  }
}

TEST_CASE("C++ names lose parameters and return types and keep template arguments") {
  CHECK(demangle("_ZN3foo3barEi") == "foo::bar");
  CHECK(demangle("_Z1fIiEvT_") == "f<int>");
  CHECK(demangle("_ZNKSt6vectorIiSaIiEE4sizeEv") == "std::vector<int, std::allocator<int> >::size");
  CHECK(demangle("_ZN6victim12_GLOBAL__N_16hiddenEi") == "victim::(anonymous namespace)::hidden");
}

TEST_CASE("a compiler's copy of a C++ function keeps its mark") {
  CHECK(demangle("_ZN3foo3barEi.cold") == "foo::bar [clone .cold]");
  CHECK(demangle("_ZN3foo3barEi.isra.0.cold") == "foo::bar [clone .isra.0.cold]");
}

TEST_CASE("legacy Rust names lose their hash and their escapes") {
  CHECK(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE") == "core::fmt::Write::write_fmt");
  CHECK(demangle("_ZN1a1m10S$LT$T$GT$2go17h509cfc22dba2dad0E") == "a::m::S<T>::go");
  CHECK(demangle("_ZN1a4main28_$u7b$$u7b$closure$u7d$$u7d$17hfe261b5676254dfeE") == "a::main::{{closure}}");
  CHECK(demangle("_ZN1a4main17h1854dee5fd9945b4E.llvm.1234567890") == "a::main");
}

TEST_CASE("Rust v0 names are demangled") {
  CHECK(demangle("_RNvNtNtCsfEOYDRpO4Ta_11miniz_oxide7inflate4core10decompress") ==
        "miniz_oxide::inflate::core::decompress");
  CHECK(demangle("_RINvNtNtCsgEmfK2I1SDS_4core5slice5index5rangeINtNtNtB6_3ops5range14RangeInclusivejEECsfEOYDRpO4Ta_"
                 "11miniz_oxide") == "core::slice::index::range::<core::ops::range::RangeInclusive<usize>>");
}

TEST_CASE("a Rust v0 identifier outside ASCII comes out as UTF-8") {
  CHECK(demangle("_RNvC6_123foou8gdel_5qa") == "123foo::gödel");
}

TEST_CASE("a name that only looks mangled is not changed") {
  for (const char* name : {"_ZN", "_ZN3fo", "_R", "_RNv", "_ZNSt", "_RNvC6_123foo3ba"}) {
    CHECK(demangle(name) == name);
  }
}

TEST_CASE("templates of more than 1,024 bytes are demangled too") {
  std::string name = "_Z1fI";
  for (int i = 0; i < 600; ++i) name += "1A";
  name += "EvT_";
  REQUIRE(name.size() > 1024);
  CHECK(demangle(name).substr(0, 8) == "f<A, A, ");
}

TEST_CASE("a name longer than the limit is not changed") {
  const std::string name = "_ZN" + std::string(kMaxMangledBytes, '1') + "Ev";
  CHECK(demangle(name) == name);
}

/// Runs demangle() and fails when that takes absurdly long: the limit on output is what bounds the time.
std::string demangle_in_time(const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  std::string out = demangle(name);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  return out;
}

TEST_CASE("a C++ name that stands for gigabytes is shown mangled, quickly") {
  // f<A<int, int>, B<S1, S1>, B<S3, S3>, B<S4, S4>, ...>: S<n> is the previous argument, so each doubles.
  std::string name = "_Z1fI1AIiiE1BIS1_S1_E";
  for (int i = 3; i < 35; ++i) {
    const char previous = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i];
    for (const char c : {'S', '2', '_', 'I', 'S', previous, '_', 'S', previous, '_', 'E'}) name += c;
  }
  name += "Evv";
  CHECK(demangle_in_time(name) == name);
  CHECK(
      demangle("_Z1fI1AIiiE1BIS1_S1_ES2_IS3_S3_EEvv") ==
      "f<A<int, int>, B<A<int, int>, A<int, int> >, B<B<A<int, int>, A<int, int> >, B<A<int, int>, A<int, int> > > >");
}

/// A Rust v0 name of pairs (T, T) of pairs, where T is a back reference to the pair before.
std::string nested_pairs(int levels) {
  const auto base62 = [](std::size_t n) {
    constexpr const char* kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (n == 0) return std::string("_");
    --n;
    std::string text = "_";
    do {
      text.insert(text.begin(), kDigits[n % 62]);
      n /= 62;
    } while (n != 0);
    return text;
  };
  std::string name = "_RIC1a";
  std::size_t previous = name.size() - 2;  // positions count from after "_R"
  name += "TyyE";
  for (int i = 0; i < levels; ++i) {
    const std::size_t here = name.size() - 2;
    const std::string reference = "B" + base62(previous);
    name += 'T';
    name += reference;
    name += reference;
    name += 'E';
    previous = here;
  }
  return name + "E";
}

TEST_CASE("a Rust name that stands for gigabytes is shown mangled, quickly") {
  CHECK(demangle_in_time(nested_pairs(60)) == nested_pairs(60));
  CHECK(demangle(nested_pairs(1)) == "a::<(u64, u64), ((u64, u64), (u64, u64))>");
}

TEST_CASE("deep nesting doesn't run out of stack") {
  CHECK(demangle_in_time("_Z1f" + std::string(4000, 'P') + "i").size() <= kMaxDemangledBytes);
  CHECK(demangle_in_time("_RMC0" + std::string(4000, 'R') + "p").size() <= kMaxDemangledBytes);
  std::string nested = "_Z1f";
  for (int i = 0; i < 800; ++i) nested += "1AI";
  nested += "i" + std::string(800, 'E');
  CHECK(demangle_in_time(nested).size() <= kMaxDemangledBytes);
}

}  // namespace
}  // namespace flamed::symbolizer
