// SPDX-License-Identifier: Apache-2.0
//
// Recognises the layout of a kernel's own unwind rows by the kernel's type information.
#include "daemon/sampler/kernel_orc.h"

#include <bpf/btf.h>

#include <vector>

#include "base/handle.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

void destroy(btf* types) { ::btf__free(types); }

/// One of the fields after the offsets.
struct Flag {
  const char* name;
  int bits;
};

/// The types of a kernel whose rows have these fields after the offsets, and which has a variable of this name.
class Types {
 public:
  explicit Types(const std::vector<Flag>& flags, const char* variable = "hardirq_stack_inuse", unsigned bytes = 6) {
    const int offset = ::btf__add_int(types_.get(), "short", 2, BTF_INT_SIGNED);
    const int number = ::btf__add_int(types_.get(), "unsigned int", 4, 0);
    ::btf__add_struct(types_.get(), "orc_entry", bytes);
    ::btf__add_field(types_.get(), "sp_offset", offset, 0, 0);
    ::btf__add_field(types_.get(), "bp_offset", offset, 16, 0);
    unsigned bit = 32;
    for (const Flag& flag : flags) {
      ::btf__add_field(types_.get(), flag.name, number, bit, static_cast<unsigned>(flag.bits));
      bit += static_cast<unsigned>(flag.bits);
    }
    ::btf__add_var(types_.get(), variable, BTF_VAR_GLOBAL_ALLOCATED, number);
  }
  [[nodiscard]] flamed_orc_layout layout() const { return orc_layout(*types_.get()); }

 private:
  Handle<btf*, destroy> types_{::btf__new_empty()};
};

TEST_CASE("the layouts of kernels' unwind rows are recognised by their fields") {
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"type", 2}, {"end", 1}}).layout() == FLAMED_ORC_END);
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"type", 2}, {"signal", 1}, {"end", 1}}).layout() ==
        FLAMED_ORC_SIGNAL_END);
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"type", 3}, {"signal", 1}}).layout() == FLAMED_ORC_SIGNAL);
}

TEST_CASE("an unknown layout is not taken for a known one") {
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"type", 3}, {"signal", 1}, {"end", 1}}).layout() == FLAMED_ORC_UNKNOWN);
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"signal", 1}, {"type", 3}}).layout() == FLAMED_ORC_UNKNOWN);
  CHECK(Types({{"sp_reg", 4}, {"bp_reg", 4}, {"type", 3}, {"signal", 1}}, "any", 8).layout() == FLAMED_ORC_UNKNOWN);
  CHECK(Types({}).layout() == FLAMED_ORC_UNKNOWN);
}

TEST_CASE("rows from before 5.12, which define the indirect stack pointer differently, are refused") {
  const std::vector<Flag> flags{{"sp_reg", 4}, {"bp_reg", 4}, {"type", 2}, {"end", 1}};
  CHECK(Types(flags, "hardirq_stack_ptr").layout() == FLAMED_ORC_UNKNOWN);
  CHECK(Types(flags, "pcpu_hot").layout() == FLAMED_ORC_END);
}

}  // namespace
}  // namespace flamed::daemon
