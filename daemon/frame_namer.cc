// SPDX-License-Identifier: Apache-2.0
#include "daemon/frame_namer.h"

#include <unordered_map>

namespace flamed::daemon {
namespace {

store::FrameKind kind_of(symbolizer::SymbolKind kind) {
  switch (kind) {
    case symbolizer::SymbolKind::kKernel:
      return store::FrameKind::kKernel;
    case symbolizer::SymbolKind::kNative:
      return store::FrameKind::kNative;
    case symbolizer::SymbolKind::kGo:
      return store::FrameKind::kGo;
    case symbolizer::SymbolKind::kVdso:
      return store::FrameKind::kVdso;
    case symbolizer::SymbolKind::kJit:
      return store::FrameKind::kJit;
    case symbolizer::SymbolKind::kUnknown:
      break;
  }
  return store::FrameKind::kUnknown;
}

std::shared_ptr<const store::InlineChain> convert(const symbolizer::SymbolChain& symbols) {
  auto chain = std::make_shared<store::InlineChain>();
  chain->reserve(symbols.size());
  for (const symbolizer::Symbol& symbol : symbols) {
    chain->push_back({symbol.name, symbol.module, kind_of(symbol.kind), symbol.reason, symbol.full_name,
                      symbol.build_id, symbol.file, symbol.line, symbol.inlined});
  }
  return chain;
}

}  // namespace

std::vector<std::shared_ptr<const store::InlineChain>> FrameNamer::name(std::span<const Frame> frames) {
  const std::vector<symbolizer::SymbolChainPtr> symbols = symbolizer_.symbolise(frames);
  std::vector<std::shared_ptr<const store::InlineChain>> chains;
  chains.reserve(symbols.size());
  // Many addresses share a chain: it is converted once.
  std::unordered_map<const symbolizer::SymbolChain*, std::shared_ptr<const store::InlineChain>> converted;
  for (const symbolizer::SymbolChainPtr& chain : symbols) {
    auto& known = converted[chain.get()];
    if (known == nullptr) known = convert(*chain);
    chains.push_back(known);
  }
  return chains;
}

}  // namespace flamed::daemon
