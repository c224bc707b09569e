// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/runtime_functions.h"

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kLineBits = 24;
constexpr std::uint32_t kLast = 0xffff'ffff;
constexpr const char* kNoPlace = "too many functions of runtimes are stored to keep its name";
constexpr const char* kForgotten = "its name is not kept any more";

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// `what`: the runtime.
Symbol unnamed(std::string_view what, std::string reason) {
  std::string name = "[" + std::string(what) + "]";
  std::string module = name;
  return {std::move(name), std::move(module), SymbolKind::kUnknown, std::move(reason)};
}

/// Where it is not known which runtime it was.
Symbol unnamed(std::string reason) { return unnamed("runtime", std::move(reason)); }

}  // namespace

std::optional<std::uint32_t> RuntimeFunctions::enter(SymbolKind kind, std::string_view name, std::string_view file,
                                                     std::uint32_t user) {
  std::string path = clean_name(file);
  std::string module(path.empty() ? "[" + std::string(name_of(kind)) + "]" : std::string(last_component(path)));
  Symbol symbol{clean_name(name), std::move(module), kind, {}};
  symbol.file = std::move(path);
  return enter_symbol(std::move(symbol), user);
}

std::optional<std::uint32_t> RuntimeFunctions::enter_unnamed(SymbolKind kind, std::string_view reason,
                                                             std::uint32_t user) {
  return enter_unnamed(name_of(kind), reason, user);
}

std::optional<std::uint32_t> RuntimeFunctions::enter_unnamed(std::string_view name, std::string_view reason,
                                                             std::uint32_t user) {
  return enter_symbol(unnamed(name, clean_name(reason)), user);
}

std::optional<std::uint32_t> RuntimeFunctions::enter_symbol(Symbol symbol, std::uint32_t user) {
  std::string key(1, static_cast<char>(symbol.kind));
  key += symbol.name;
  for (const std::string& text : {symbol.file, symbol.reason}) (key += '\0') += text;
  const std::unique_lock lock(mutex_);
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  const std::size_t bytes = sizeof(Function) + 2 * key.size() + 64;
  if (bytes_ + bytes > budget_bytes_ || held_by(user) + bytes > budget_bytes_ - bytes_ || last_ == kLast) {
    ++refused_;
    return std::nullopt;
  }
  const std::uint32_t number = ++last_;
  const auto entered = functions_.emplace(number, Function{std::move(symbol), std::move(key), user, bytes}).first;
  numbers_.emplace(entered->second.key, number);
  bytes_of_[user] += bytes;
  bytes_ += bytes;
  return number;
}

std::size_t RuntimeFunctions::held_by(std::uint32_t user) const {
  const auto found = bytes_of_.find(user);
  return found == bytes_of_.end() ? 0 : found->second;
}

SymbolChainPtr RuntimeFunctions::name(const Frame& frame) const {
  const std::uint64_t number = frame.offset >> kLineBits;
  SymbolChain chain;
  {
    const std::shared_lock lock(mutex_);
    const auto found = functions_.find(static_cast<std::uint32_t>(number));
    if (number == kNoRoom)
      chain.push_back(unnamed(kNoPlace));
    else if (number > kLast || found == functions_.end())
      chain.push_back(unnamed(kForgotten));
    else
      chain.push_back(found->second.symbol);
  }
  chain.front().line = static_cast<std::uint32_t>(frame.offset & kMostLine);
  return share(std::move(chain));
}

void RuntimeFunctions::retain(std::span<const Frame> frames) {
  std::unordered_set<std::uint64_t> used;
  for (const Frame& frame : frames) used.insert(static_cast<std::uint32_t>(frame.offset >> kLineBits));
  const std::unique_lock lock(mutex_);
  for (auto at = functions_.begin(); at != functions_.end();) {
    const Function& function = at->second;
    if (used.count(at->first) != 0) {
      ++at;
      continue;
    }
    numbers_.erase(function.key);
    bytes_ -= function.bytes;
    const auto share = bytes_of_.find(function.user);
    share->second -= function.bytes;
    if (share->second == 0) bytes_of_.erase(share);
    at = functions_.erase(at);
  }
}

bool RuntimeFunctions::is_crowded() const {
  const std::shared_lock lock(mutex_);
  return bytes_ > budget_bytes_ / 4;
}

RuntimeFunctions::Stats RuntimeFunctions::stats() const {
  const std::shared_lock lock(mutex_);
  return {functions_.size(), bytes_, refused_};
}

}  // namespace flamed::symbolizer
