// SPDX-License-Identifier: Apache-2.0
#include "store/index/function_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace flamed::store {
namespace {

std::string_view last_component(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view annotation_of(const NamedFrame& frame) {
  if (frame.kind == FrameKind::kKernel) return "_[k]";
  if (frame.inlined) return "_[i]";
  if (frame.kind == FrameKind::kJit) return "_[j]";
  return {};
}

std::size_t bytes_of(const NamedFrame& frame) {
  std::size_t bytes = sizeof(frame);
  for (const std::string* text :
       {&frame.name, &frame.module, &frame.reason, &frame.full_name, &frame.build_id, &frame.file}) {
    // Short strings live inside the object.
    if (text->capacity() > std::string().capacity()) bytes += text->capacity() + 1;
  }
  return bytes;
}

std::uint64_t hash_of(const FunctionTable::Variant& variant) {
  std::uint64_t hash = 0;
  for (const std::uint32_t part : {variant.function, variant.line, variant.full_name, variant.build_id, variant.file}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
  }
  return mix(hash);
}

}  // namespace

FunctionTable::FunctionTable(const ProfileOptions& options)
    : lines_(options.lines), full_names_(options.full_names), annotate_(options.annotate), inlines_(options.inlines) {}

void FunctionTable::reserve(std::size_t functions) {
  if (functions == 0) return;
  functions_.reserve(functions_.size() + functions);
  hashes_.reserve(hashes_.size() + functions);
  static_cast<void>(ids_.make_room([&](std::uint32_t other) { return hashes_[other]; }, functions));
}

void FunctionTable::append_chain(const std::shared_ptr<const InlineChain>& chain,
                                 std::vector<std::uint32_t>& variants) {
  bool used = false;
  if (chain == nullptr || chain->empty()) {
    static const NamedFrame kUnnamed{"[unknown]", "", FrameKind::kUnknown, "it has no name"};
    variants.push_back(intern(kUnnamed, kUnnamed.name, kUnnamed.name.size(), &used));
    return;
  }
  for (const NamedFrame& frame : *chain) {
    variants.push_back(intern_code(frame, &used));
    if (!inlines_) break;
  }
  if (used) owned_->chains.push_back(chain);
}

std::uint32_t FunctionTable::intern_mark(const NamedFrame& frame) {
  bool used = false;
  const std::uint32_t found = intern(frame, frame.name, frame.name.size(), &used);
  if (used) frames_[found] = own(frame);
  return variants_[found].function;
}

FunctionTable::Key FunctionTable::key_of(const NamedFrame& frame, std::string_view name) const {
  Key key{name, frame.module, frame.reason, {}, {}, 0, frame.kind, frame.inlined};
  if (frame.kind == FrameKind::kUnnamed) key.build_id = frame.build_id;
  if (lines_) {
    key.file = frame.file;
    key.line = frame.line;
  }
  return key;
}

std::uint32_t FunctionTable::intern_code(const NamedFrame& frame, bool* used) {
  const std::string& name = full_names_ && !frame.full_name.empty() ? frame.full_name : frame.name;
  if (!lines_ && !annotate_) return intern(frame, name, name.size(), used);
  std::string shown = name;
  if (lines_ && !frame.file.empty()) {
    shown += ' ';
    shown += last_component(frame.file);
    if (frame.line != 0) shown += ':' + std::to_string(frame.line);
  }
  if (annotate_) shown += annotation_of(frame);
  return intern(frame, shown, name.size(), used);
}

std::uint32_t FunctionTable::intern(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool* used) {
  const bool hash_is_known = frame.hash != 0 && name.data() == frame.name.data();
  const std::uint64_t hash = mix(hash_is_known ? frame.hash : flamed::hash_of(name, frame.module));
  std::uint32_t function = ids_.find(hash, [&](std::uint32_t id) {
    if (hashes_[id] != hash) return false;
    const NamedFrame& other = (*this)[id];
    return &other == &frame || key_of(other, other.name) == key_of(frame, name);
  });
  const bool is_new = function == IdIndex::kNone;
  if (is_new) function = static_cast<std::uint32_t>(functions_.size());
  const Variant variant{function, frame.line, number_of(frame.full_name), number_of(frame.build_id),
                        number_of(frame.file)};
  const std::uint64_t variant_hash = hash_of(variant);
  if (!is_new) {
    const std::uint32_t found =
        variant_ids_.find(variant_hash, [&](std::uint32_t id) { return variants_[id] == variant; });
    if (found != IdIndex::kNone) return found;
  }
  const auto id = static_cast<std::uint32_t>(variants_.size());
  variants_.push_back(variant);
  variant_hashes_.push_back(variant_hash);
  if (!is_new) {
    frames_.push_back(nullptr);
  } else if (name.data() != frame.name.data()) {
    NamedFrame renamed = frame;
    renamed.name = name;
    renamed.hash = 0;
    frames_.push_back(own(std::move(renamed)));
  } else {
    frames_.push_back(&frame);
    *used = true;
  }
  static_cast<void>(variant_ids_.make_room([&](std::uint32_t other) { return variant_hashes_[other]; }));
  variant_ids_.insert(variant_hash, id);
  if (!is_new) return id;
  functions_.push_back({id, static_cast<std::uint32_t>(bare_size)});
  hashes_.push_back(hash);
  static_cast<void>(ids_.make_room([&](std::uint32_t other) { return hashes_[other]; }));
  ids_.insert(hash, function);
  return id;
}

std::uint32_t FunctionTable::number_of(const std::string& text) {
  if (text.empty()) return 0;
  const auto found = number_of_.find(text);
  if (found != number_of_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  number_of_.emplace(texts_.emplace_back(text), number);
  own_bytes_ += text.size();
  return number;
}

const NamedFrame& FunctionTable::frame(std::uint32_t variant) {
  const NamedFrame*& known = frames_[variant];
  if (known == nullptr) {
    const Variant& of = variants_[variant];
    NamedFrame frame = (*this)[of.function];
    frame.line = of.line;
    frame.full_name = texts_[of.full_name];
    frame.build_id = texts_[of.build_id];
    frame.file = texts_[of.file];
    known = own(std::move(frame));
  }
  return *known;
}

const NamedFrame* FunctionTable::own(NamedFrame frame) {
  own_bytes_ += bytes_of(frame);
  return &owned_->frames.emplace_back(std::move(frame));
}

const NamedFrame& FunctionTable::common(std::uint32_t variant, Differences differences) {
  if (differences == Differences{}) return frame(variant);
  const auto make = [&] {
    NamedFrame common = frame(variant);
    if (differences.line) common.line = 0;
    if (differences.full_name) common.full_name.clear();
    if (differences.build_id) common.build_id.clear();
    return own(std::move(common));
  };
  const std::uint32_t function = variants_[variant].function;
  if (commons_.size() < functions_.size()) commons_.resize(functions_.size());
  Common& first = commons_[function];
  if (first.frame == nullptr) first = {make(), variant, differences};
  if (first.variant == variant && first.differences == differences) return *first.frame;
  const std::uint64_t key = std::uint64_t{variant} << 3 | (differences.line ? 4U : 0U) |
                            (differences.full_name ? 2U : 0U) | (differences.build_id ? 1U : 0U);
  const NamedFrame*& known = other_commons_[key];
  if (known == nullptr) known = make();
  return *known;
}

FunctionTable::Beginning FunctionTable::beginning_of(std::string_view name) {
  Beginning words{};
  for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 16); ++i) {
    words[i / 8] |= std::uint64_t{static_cast<unsigned char>(name[i])} << (56 - 8 * (i % 8));
  }
  return words;
}

bool FunctionTable::is_before(const NamedFrame& a, const NamedFrame& b) {
  return std::tie(a.name, a.module, a.kind, a.inlined, a.reason, a.file, a.build_id) <
         std::tie(b.name, b.module, b.kind, b.inlined, b.reason, b.file, b.build_id);
}

std::span<const FunctionTable::Place> FunctionTable::in_order() {
  if (order_.size() == functions_.size()) return order_;
  // Most names differ within their first bytes, which are compared without reading the strings.
  const auto before = [&](const Place& a, const Place& b) {
    if (a.beginning != b.beginning) return a.beginning < b.beginning;
    const NamedFrame& x = (*this)[a.function];
    const NamedFrame& y = (*this)[b.function];
    if (is_before(x, y)) return true;
    return !is_before(y, x) && a.function < b.function;
  };
  const auto known = static_cast<std::ptrdiff_t>(order_.size());
  for (std::size_t i = order_.size(); i < functions_.size(); ++i) {
    const auto function = static_cast<std::uint32_t>(i);
    order_.push_back({beginning_of((*this)[function].name), function});
  }
  std::sort(order_.begin() + known, order_.end(), before);
  std::inplace_merge(order_.begin(), order_.begin() + known, order_.end(), before);
  place_of_.resize(order_.size());
  for (std::uint32_t place = 0; place < order_.size(); ++place) place_of_[order_[place].function] = place;
  return order_;
}

std::vector<std::uint32_t>& FunctionTable::counters() {
  counters_.resize(functions_.size());
  return counters_;
}

std::size_t FunctionTable::bytes() const {
  constexpr std::size_t kPlaces = 2 * sizeof(std::uint32_t), kMapped = 48;
  return own_bytes_ + owned_->chains.size() * sizeof(std::shared_ptr<void>) +
         variants_.size() * (sizeof(Variant) + sizeof(void*) + sizeof(std::uint64_t) + kPlaces) +
         functions_.size() * (sizeof(Function) + sizeof(Common) + sizeof(std::uint64_t) + sizeof(Place) + 2 * kPlaces) +
         (2 * texts_.size() + other_commons_.size()) * kMapped;
}

}  // namespace flamed::store
