// SPDX-License-Identifier: Apache-2.0
//
// FunctionTable: the distinct functions that addresses are shown as, and their variants: a function as the address has
// it, with a line, a file and a build id of its own. It only grows, and may serve one answer after another. A frame
// that is shown as its chain has it is not copied: the table shares the chain. One thread at a time; what list() of a
// FrameTable gave stays valid without it.
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
  /// `known` and what was `seen` since: what of a variant does not hold for the whole function.
  struct Differences {
    bool line = false, full_name = false, build_id = false;
    friend bool operator==(const Differences&, const Differences&) = default;
  };
  /// Texts are numbers here, so that variants are compared without a look at them.
  struct Variant {
    std::uint32_t function = 0;
    std::uint32_t line = 0;
    std::uint32_t full_name = 0, build_id = 0, file = 0;  ///< 0: empty
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  /// The first bytes of a name, such that they compare as names do; shorter names are filled up with zeroes.
  using Beginning = std::array<std::uint64_t, 2>;
  struct Place {
    Beginning beginning{};
    std::uint32_t function = 0;
  };

  /// `lines`, `full_names`, `annotate` and `inlines` of the options decide how code is shown.
  explicit FunctionTable(const ProfileOptions& options);
  FunctionTable(const FunctionTable&) = delete;
  FunctionTable& operator=(const FunctionTable&) = delete;

  /// Appends the variants that a chain is shown as, outermost first. A chain that is null or empty is shown as unknown.
  void append_chain(const std::shared_ptr<const InlineChain>& chain, std::vector<std::uint32_t>& variants);
  /// The function that a frame which is no code is: a mark.
  std::uint32_t intern_mark(const NamedFrame& frame);
  /// About as many more functions will come.
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
  /// A variant without what does not hold for its function.
  [[nodiscard]] const NamedFrame& common(std::uint32_t variant, Differences differences);

  /// All functions by name, then by what else is told apart.
  [[nodiscard]] std::span<const Place> in_order();
  /// Where in_order() has the function, which must have been called since it came.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t function) const { return place_of_[function]; }
  [[nodiscard]] static Beginning beginning_of(std::string_view name);
  /// The order of frames whose names begin alike.
  [[nodiscard]] static bool is_before(const NamedFrame& a, const NamedFrame& b);

  /// As many as there are functions, all 0; the user leaves them so.
  [[nodiscard]] std::vector<std::uint32_t>& counters();

  /// What the frames live in.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return owned_; }
  /// About what the table takes, without the chains that it shares.
  [[nodiscard]] std::size_t bytes() const;

 private:
  /// Functions are one when these are equal, whatever else is known of them. File and line are empty without `lines`.
  struct Key {
    std::string_view name, module, reason, file;
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
    const NamedFrame* frame = nullptr;  ///< null: none was asked for yet
    std::uint32_t variant = 0;
    Differences differences;
  };
  struct Owned {
    std::deque<NamedFrame> frames;
    std::vector<std::shared_ptr<const InlineChain>> chains;
  };

  [[nodiscard]] Key key_of(const NamedFrame& frame, std::string_view name) const;
  /// Shown as `name`, the first `bare_size` bytes of which are the function's. `*used`: the table points to the frame.
  std::uint32_t intern(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool* used);
  std::uint32_t intern_code(const NamedFrame& frame, bool* used);
  /// 0 for the empty text only.
  std::uint32_t number_of(const std::string& text);
  const NamedFrame* own(NamedFrame frame);

  const bool lines_;
  const bool full_names_;
  const bool annotate_;
  const bool inlines_;
  std::shared_ptr<Owned> owned_ = std::make_shared<Owned>();
  std::vector<Variant> variants_;
  std::vector<const NamedFrame*> frames_;      ///< by variant; null but for a first one until asked for
  std::vector<std::uint64_t> variant_hashes_;  ///< likewise
  std::vector<Function> functions_;
  std::vector<std::uint64_t> hashes_;  ///< by function, beside each other for who looks for one
  std::deque<std::string> texts_ = std::deque<std::string>(1);  ///< by number
  std::unordered_map<std::string_view, std::uint32_t, KeyedTextHash> number_of_;
  std::vector<Common> commons_;                                         ///< by function: the first that was asked for
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
