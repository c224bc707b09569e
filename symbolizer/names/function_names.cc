// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/function_names.h"

#include <utility>

namespace flamed::symbolizer {

FunctionNames::FunctionNames(CachingSymbolizer& known, ModuleSymbolizer& modules, const Clock& clock)
    : known_(known), modules_(modules), functions_(modules), kept_(functions_, clock, {kBudgetBytes}) {}

std::vector<SymbolChainPtr> FunctionNames::symbolise(std::span<const Frame> frames) {
  // A debug file has appeared, which may have names that were missing.
  const std::uint64_t edition = known_.forgotten();
  if (edition_.exchange(edition) != edition) kept_.forget_all();

  std::vector<SymbolChainPtr> chains = known_.known(frames);
  std::vector<std::size_t> places;
  std::vector<Frame> missing;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (chains[i] != nullptr) continue;
    places.push_back(i);
    missing.push_back(frames[i]);
  }
  if (missing.empty()) return chains;
  std::vector<SymbolChainPtr> named = kept_.symbolise(modules_.functions_of(missing));
  for (std::size_t i = 0; i < places.size(); ++i) chains[places[i]] = std::move(named[i]);
  return chains;
}

}  // namespace flamed::symbolizer
