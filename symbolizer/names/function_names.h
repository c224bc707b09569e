// SPDX-License-Identifier: Apache-2.0
//
// FunctionNames: names frames at once and for next to nothing, for profiles that are made all day and that nobody may
// ever look at. Inlined calls and lines are there only where another query has made them known; otherwise it is the
// function of the symbol table, which is the outermost one of the whole chain, under the same name. No debug
// information is read and no debug file is looked for, and a function is named once, not each of its addresses.
//
// Any thread. The constructor's arguments must outlive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "symbolizer/model/symbol.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/names/module_symbolizer.h"

namespace flamed::symbolizer {

class FunctionNames final : public Symbolizer {
 public:
  /// `known` has the whole chains, of `modules`.
  FunctionNames(CachingSymbolizer& known, ModuleSymbolizer& modules, const Clock& clock);

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override;

 private:
  static constexpr std::size_t kBudgetBytes = std::size_t{4} << 20;

  class Functions final : public Symbolizer {
   public:
    explicit Functions(ModuleSymbolizer& modules) : modules_(modules) {}
    std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
      return modules_.name_functions(frames);
    }

   private:
    ModuleSymbolizer& modules_;
  };

  CachingSymbolizer& known_;
  ModuleSymbolizer& modules_;
  Functions functions_;
  CachingSymbolizer kept_;  ///< names of functions, by their first byte
  std::atomic<std::uint64_t> edition_ = 0;
};

}  // namespace flamed::symbolizer
