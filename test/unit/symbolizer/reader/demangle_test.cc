// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/demangle.h"

#include <chrono>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

/// The name that is shown by default.
std::string shown(std::string_view mangled) { return demangle(mangled).name; }
/// The name that is shown on demand.
std::string whole(std::string_view mangled) {
  const DemangledName names = demangle(mangled);
  return names.full_name.empty() ? names.name : names.full_name;
}

TEST_CASE("names that no C++ or Rust compiler wrote are not changed") {
  for (const char* name :
       {"", "_", "main", "_start", "_Z", "__libc_start_main", "foo.cold", "_Zed", "_ROOT", "main.(*T).Method",
        "_D3std5stdio7writelnFZv", "Ljava/lang/String;::length", "getppid@plt"}) {
    CHECK(demangle(name) == DemangledName{name, {}});
  }
}

struct Row {
  const char* mangled;
  const char* name;
  const char* full_name;
};

TEST_CASE("C++ names are shown without parameters, and whole on demand") {
  const Row row = GENERATE(values<Row>({
      {"_ZN3foo3barEi", "foo::bar", "foo::bar(int)"},
      {"_Z1fIiEvT_", "f<int>", "f<int>(int)"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int>::push_back",
       "std::vector<int, std::allocator<int> >::push_back(int const&)"},
      {"_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int>::size",
       "std::vector<int, std::allocator<int> >::size() const"},
      {"_ZNSt6vectorIS_IiSaIiEESaIS1_EE5beginEv", "std::vector<std::vector<int>>::begin",
       "std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > "
       ">::begin()"},
      {"_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_ESaISt4pairIKS5_iEEEixERS9_",
       "std::map<std::string, int>::operator[]",
       "std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, int, "
       "std::less<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
       "std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > "
       "const, "
       "int> > >::operator[](std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)"},
      {"_ZN1AI20a_name_of_some_size121a_name_of_some_size12E1fEv", "A<...>::f",
       "A<a_name_of_some_size1, a_name_of_some_size12>::f()"},
      {"_ZN1AIN1BI20a_name_of_some_size121a_name_of_some_size12EEiE1fEv", "A<B<...>, int>::f",
       "A<B<a_name_of_some_size1, a_name_of_some_size12>, int>::f()"},
      {"_ZN6victim12_GLOBAL__N_16hiddenEi", "victim::(anonymous namespace)::hidden",
       "victim::(anonymous namespace)::hidden(int)"},
      {"_ZN1AC2EOS_", "A::A", "A::A(A&&)"},
      {"_ZN1AD1Ev", "A::~A", "A::~A()"},
      {"_ZNKR1A1hEv", "A::h", "A::h() const &"},
      {"_ZNO1A1gEv", "A::g", "A::g() &&"},
      {"_Z1fPFivE", "f", "f(int (*)())"},
      {"_Z1fIPFivEEvT_", "f<int (*)()>", "f<int (*)()>(int (*)())"},
      {"_ZThn8_N1A1fEv", "non-virtual thunk to A::f", "non-virtual thunk to A::f()"},
      {"_Z1fILi3EEiv", "f<3>", "f<3>()"},
      {"_ZSt9__fill_a1IiiEN9__gnu_cxx11__enable_ifIXsr11__is_scalarIT0_EE7__valueEvE6__typeEPT_S6_RKS3_",
       "std::__fill_a1<int, int>",
       "std::__fill_a1<int, int>(int*, int*, __gnu_cxx::__enable_if<__is_scalar<int>::__value, void> const&)"},
  }));
  CHECK(shown(row.mangled) == row.name);
  CHECK(whole(row.mangled) == row.full_name);
}

TEST_CASE("brackets in names of C++ operators are not template brackets") {
  const Row row = GENERATE(values<Row>({
      {"_ZlsRSoRK1A", "operator<<", "operator<<(std::ostream&, A const&)"},
      {"_ZltI1AEbRKT_S3_", "operator< <A>", "operator< <A>(A const&, A const&)"},
      {"_ZlsI1AERSoS1_RKT_", "operator<< <A>", "operator<< <A>(std::ostream&, A const&)"},
      {"_ZrsI1AERSiS1_RKT_", "operator>><A>", "operator>><A>(std::istream&, A const&)"},
      {"_ZssRKiS0_", "operator<=>", "operator<=>(int const&, int const&)"},
      {"_ZNK1AptEv", "A::operator->", "A::operator->() const"},
      {"_ZNK1AclEi", "A::operator()", "A::operator()(int) const"},
      {"_ZNKSt8functionIFvRKiEEclES1_", "std::function<void (int const&)>::operator()",
       "std::function<void (int const&)>::operator()(int const&) const"},
      {"_ZN1AixEi", "A::operator[]", "A::operator[](int)"},
      {"_ZN1AcmEi", "A::operator,", "A::operator,(int)"},
      {"_ZN1AnwEm", "A::operator new", "A::operator new(unsigned long)"},
      {"_ZN1AdaEPv", "A::operator delete[]", "A::operator delete[](void*)"},
      {"_Zli2_kmy", "operator\"\" _k", "operator\"\" _k(unsigned long, unsigned long long)"},
      {"_ZNSsaSEPKc", "std::string::operator=", "std::string::operator=(char const*)"},
      {"_ZN1AcvSt6vectorIiSaIiEEEv", "A::operator std::vector<int>",
       "A::operator std::vector<int, std::allocator<int> >()"},
      {"_ZNK1AcvbEv", "A::operator bool", "A::operator bool() const"},
      {"_ZNK1AcvPFvvEEv", "A::operator void (*)()", "A::operator void (*)()() const"},
  }));
  CHECK(shown(row.mangled) == row.name);
  CHECK(whole(row.mangled) == row.full_name);
}

TEST_CASE("a lambda keeps its distinguishing parts and the function that it is in") {
  CHECK(shown("_ZZ3fooiENKUliE_clEi") == "foo::{lambda(int)#1}::operator()");
  CHECK(whole("_ZZ3fooiENKUliE_clEi") == "foo(int)::{lambda(int)#1}::operator()(int) const");
  CHECK(shown("_ZZ4mainENKUlvE0_clEv") == "main::{lambda()#2}::operator()");
  CHECK(shown("_ZZN1A1fEiENKUlT_E0_clIiEEDaS0_") == "A::f::{lambda(auto:1)#2}::operator()<int>");
  CHECK(shown("_ZZ3fooiENKUl20a_name_of_some_size121a_name_of_some_size12E_clES_S0_") ==
        "foo::{lambda(...)#1}::operator()");
}

TEST_CASE("a compiler's copy of a C++ function keeps its mark") {
  CHECK(demangle("_ZN3foo3barEi.cold") == DemangledName{"foo::bar [clone .cold]", "foo::bar(int) [clone .cold]"});
  CHECK(shown("_ZN3foo3barEi.isra.0.cold") == "foo::bar [clone .isra.0.cold]");
}

TEST_CASE("a stub of a C++ function keeps its mark") {
  CHECK(demangle("_ZN3foo3barEi@plt") == DemangledName{"foo::bar@plt", "foo::bar(int)@plt"});
}

TEST_CASE("legacy Rust names lose their hash and their escapes") {
  CHECK(shown("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE") == "core::fmt::Write::write_fmt");
  CHECK(shown("_ZN1a1m10S$LT$T$GT$2go17h509cfc22dba2dad0E") == "a::m::S<T>::go");
  CHECK(shown("_ZN1a4main28_$u7b$$u7b$closure$u7d$$u7d$17hfe261b5676254dfeE") == "a::main::{{closure}}");
  CHECK(shown("_ZN1a4main17h1854dee5fd9945b4E.llvm.1234567890") == "a::main");
}

TEST_CASE("the path of a Rust method stays whole, its long arguments don't") {
  CHECK(shown("_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE") ==
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop");
  CHECK(demangle("_RINvNtNtCsgEmfK2I1SDS_4core5slice5index5rangeINtNtNtB6_3ops5range14RangeInclusivejEECsfEOYDRpO4Ta_"
                 "11miniz_oxide") ==
        DemangledName{"core::slice::index::range::<...>",
                      "core::slice::index::range::<core::ops::range::RangeInclusive<usize>>"});
}

TEST_CASE("Rust v0 names are demangled") {
  CHECK(shown("_RNvNtNtCsfEOYDRpO4Ta_11miniz_oxide7inflate4core10decompress") ==
        "miniz_oxide::inflate::core::decompress");
}

TEST_CASE("a Rust v0 identifier outside ASCII comes out as UTF-8") {
  CHECK(shown("_RNvC6_123foou8gdel_5qa") == "123foo::gödel");
}

TEST_CASE("a name that only looks mangled is not changed") {
  for (const char* name : {"_ZN", "_ZN3fo", "_R", "_RNv", "_ZNSt", "_RNvC6_123foo3ba"}) {
    CHECK(shown(name) == name);
  }
}

TEST_CASE("templates of more than 1,024 bytes are demangled too") {
  std::string name = "_Z1fI";
  for (int i = 0; i < 600; ++i) name += "1A";
  name += "EvT_";
  REQUIRE(name.size() > 1024);
  CHECK(shown(name) == "f<...>");
  CHECK(whole(name).substr(0, 8) == "f<A, A, ");
}

TEST_CASE("a name longer than the limit is not changed") {
  const std::string name = "_ZN" + std::string(kMaxMangledBytes, '1') + "Ev";
  CHECK(shown(name) == name);
}

/// Runs demangle() and fails if that takes absurdly long. The limit on output bounds the time.
std::string demangle_in_time(const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  std::string out = whole(name);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  return out;
}

TEST_CASE("a C++ name that would expand to gigabytes is shown mangled, quickly") {
  // f<A<int, int>, B<S1, S1>, B<S3, S3>, B<S4, S4>, ...>: S<n> is the previous argument, so each doubles.
  std::string name = "_Z1fI1AIiiE1BIS1_S1_E";
  for (int i = 3; i < 35; ++i) {
    const char previous = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i];
    for (const char c : {'S', '2', '_', 'I', 'S', previous, '_', 'S', previous, '_', 'E'}) name += c;
  }
  name += "Evv";
  CHECK(demangle_in_time(name) == name);
  CHECK(whole("_Z1fI1AIiiE1BIS1_S1_ES2_IS3_S3_EEvv") ==
        "f<A<int, int>, B<A<int, int>, A<int, int> >, B<B<A<int, int>, A<int, int> >, B<A<int, int>, A<int, int> > > "
        ">()");
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

TEST_CASE("a Rust name that would expand to gigabytes is shown mangled, quickly") {
  CHECK(demangle_in_time(nested_pairs(60)) == nested_pairs(60));
  CHECK(whole(nested_pairs(1)) == "a::<(u64, u64), ((u64, u64), (u64, u64))>");
}

TEST_CASE("type arguments of Go are left out, as in Go's own tracebacks") {
  const DemangledName list = demangle("main.(*List[go.shape.[]int,go.shape.string]).Push");
  CHECK(list.name == "main.(*List[...]).Push");
  CHECK(list.full_name == "main.(*List[go.shape.[]int,go.shape.string]).Push");
  CHECK(demangle("slices.Sort[go.shape.int").name == "slices.Sort[...]");
  CHECK(demangle("slices.Sort[...]") == DemangledName{"slices.Sort[...]", {}});
  CHECK(demangle("Array[Symbol.iterator]") == DemangledName{"Array[Symbol.iterator]", {}});
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
