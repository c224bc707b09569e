// SPDX-License-Identifier: Apache-2.0
//
// FunctionTable: the distinct functions of addresses, and their variants: a function with the line, file and build id
// of an address. It only grows, and may serve many answers. A frame that is shown unchanged is not copied: the table
// shares its chain. One thread at a time; results of FrameTable::list() may outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"

namespace flamed::store {

class FunctionTable {
 public:
  /// The values of a variant that don't hold for the whole function.
  struct Differences {
    bool line = false, full_name = false, build_id = false;
    friend bool operator==(const Differences&, const Differences&) = default;
  };
  /// Texts are numbers here, so that variants are compared without reading them.
  struct Variant {
    std::uint32_t function = 0;
    std::uint32_t line = 0;
    std::uint32_t full_name = 0, build_id = 0, file = 0;  ///< 0: empty
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  /// The first bytes of a name, in an order that compares like names; shorter names are padded with zeroes.
  using Beginning = std::array<std::uint64_t, 2>;
  struct Place {
    Beginning beginning{};
    std::uint32_t function = 0;
  };

  /// `lines`, `full_names`, `annotate` and `inlines` of the options decide how code is shown.
  explicit FunctionTable(const ProfileOptions& options);
  FunctionTable(const FunctionTable&) = delete;
  FunctionTable& operator=(const FunctionTable&) = delete;

  /// Appends a chain's variants, outermost first. A chain that is null or empty is shown as unknown.
  void append_chain(const std::shared_ptr<const InlineChain>& chain, std::vector<std::uint32_t>& variants);
  /// The function of a frame that is not code: a mark.
  std::uint32_t intern_mark(const NamedFrame& frame);
  /// The expected number of additional functions.
  void reserve(std::size_t functions);

  [[nodiscard]] std::size_t size() const { return functions_.size(); }
  [[nodiscard]] const Variant& variant(std::uint32_t variant) const { return variants_[variant]; }
  [[nodiscard]] const NamedFrame& frame(std::uint32_t variant);
  /// The function as it was first seen.
  [[nodiscard]] const NamedFrame& operator[](std::uint32_t function) const {
    return *frames_[functions_[function].first];
  }
  /// Without what `lines` and `annotate` appended to the name.
  [[nodiscard]] std::string_view bare_name(std::uint32_t function) const {
    return std::string_view((*this)[function].name).substr(0, functions_[function].bare_size);
  }
  /// A variant without the values that differ within its function.
  [[nodiscard]] const NamedFrame& common(std::uint32_t variant, Differences differences);

  /// All functions sorted by name, then by the other distinguishing values.
  [[nodiscard]] std::span<const Place> in_order();
  /// The function's place in in_order(), which must have been called since it was added.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t function) const { return place_of_[function]; }
  [[nodiscard]] static Beginning beginning_of(std::string_view name);
  /// The order of frames with the same Beginning.
  [[nodiscard]] static bool is_before(const NamedFrame& a, const NamedFrame& b);

  /// One for each function, all 0; the caller must reset them to 0.
  [[nodiscard]] std::vector<std::uint32_t>& counters();

  /// The owner of the frames.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return owned_; }
  /// The approximate memory of the table, without shared chains.
  [[nodiscard]] std::size_t bytes() const;

 private:
  /// Functions with equal keys are one function, even if other values differ. File and line are empty without `lines`.
  /// The build id counts where a name is only a place in a file: in another build another function is there.
  struct Key {
    std::string_view name, module, reason, build_id, file;
    std::uint32_t line = 0;
    FrameKind kind = FrameKind::kUnknown;
    bool inlined = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Function {
    std::uint32_t first = 0;  ///< variant
    std::uint32_t bare_size = 0;
  };
  struct Common {
    const NamedFrame* frame = nullptr;  ///< null: not requested yet
    std::uint32_t variant = 0;
    Differences differences;
  };
  struct Owned {
    std::deque<NamedFrame> frames;
    std::vector<std::shared_ptr<const InlineChain>> chains;
  };

  [[nodiscard]] Key key_of(const NamedFrame& frame, std::string_view name) const;
  /// The first `bare_size` bytes of the shown `name` are the function's. `*used`: the table points to the frame.
  std::uint32_t intern(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool* used);
  std::uint32_t intern_code(const NamedFrame& frame, bool* used);
  /// 0 only for the empty text.
  std::uint32_t number_of(const std::string& text);
  const NamedFrame* own(NamedFrame frame);

  const bool lines_;
  const bool full_names_;
  const bool annotate_;
  const bool inlines_;
  std::shared_ptr<Owned> owned_ = std::make_shared<Owned>();
  std::vector<Variant> variants_;
  std::vector<const NamedFrame*> frames_;      ///< by variant; null until requested, except each function's first one
  std::vector<std::uint64_t> variant_hashes_;  ///< likewise
  std::vector<Function> functions_;
  std::vector<std::uint64_t> hashes_;                           ///< by function, contiguous for searching
  std::deque<std::string> texts_ = std::deque<std::string>(1);  ///< by number
  std::unordered_map<std::string_view, std::uint32_t, KeyedTextHash> number_of_;
  std::vector<Common> commons_;                                         ///< by function: the first that was requested
  std::unordered_map<std::uint64_t, const NamedFrame*> other_commons_;  ///< by variant and differences
  std::vector<Place> order_;                                            ///< of the first functions
  std::vector<std::uint32_t> place_of_;                                 ///< by function: place in order_
  std::vector<std::uint32_t> counters_;
  std::size_t own_bytes_ = 0;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex ids_{unlimited_};
  IdIndex variant_ids_{unlimited_};
};

}  // namespace flamed::store
