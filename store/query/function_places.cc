// SPDX-License-Identifier: Apache-2.0
#include "store/query/function_places.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "store/query/stack_profile.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

/// The places of one kind, numbered, and which of them each frame of the profile has.
class Numbering {
 public:
  explicit Numbering(std::size_t frames) : of_frame_(frames), innermost_(frames, kNone) {}

  /// From the outermost to the innermost function of the frame.
  void add(std::size_t frame, std::uint32_t place, bool is_innermost) {
    std::vector<std::uint32_t>& places = of_frame_[frame];
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    if (is_innermost) innermost_[frame] = place;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& of(std::size_t frame) const { return of_frame_[frame]; }
  /// kNone: the innermost function is another one.
  [[nodiscard]] std::uint32_t innermost(std::size_t frame) const { return innermost_[frame]; }

 private:
  std::vector<std::vector<std::uint32_t>> of_frame_;
  std::vector<std::uint32_t> innermost_;
};

/// Adds the samples of all stacks to places, each once for a stack.
template <typename Place>
void count(const StackProfile& profile, const std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& below,
           const Numbering& numbering, std::vector<Place>& places) {
  const auto has_outside = [&](std::uint32_t node, std::uint32_t place) {
    for (std::uint32_t at = profile.nodes[node].caller; at != 0; at = profile.nodes[at].caller) {
      const std::vector<std::uint32_t>& others = numbering.of(profile.nodes[at].frame);
      if (std::find(others.begin(), others.end(), place) != others.end()) return true;
    }
    return false;
  };
  for (std::uint32_t node = 1; node < profile.nodes.size(); ++node) {
    const std::uint32_t frame = profile.nodes[node].frame;
    for (const std::uint32_t place : numbering.of(frame)) {
      if (!has_outside(node, place)) places[place].total_samples += below[node];
    }
    if (numbering.innermost(frame) != kNone) places[numbering.innermost(frame)].self_samples += own[node];
  }
}

template <typename Place, typename Key>
void sort_by(std::vector<Place>& places, Key key) {
  std::erase_if(places, [](const Place& place) { return place.total_samples == 0; });
  std::sort(places.begin(), places.end(), [&](const Place& a, const Place& b) { return key(a) < key(b); });
}

/// The known source files of `lines`, which are numbered as in `by_line`.
std::vector<FilePlace> files_of(const StackProfile& profile, const Numbering& by_line,
                                const std::vector<LinePlace>& lines, QueryBudget& budget) {
  std::vector<FilePlace> files;
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> number_of;
  std::vector<std::uint32_t> file_of_line;
  for (const LinePlace& line : lines) {
    if (line.file.empty()) {
      file_of_line.push_back(kNone);
      continue;
    }
    const auto [file, is_new] =
        number_of.try_emplace({line.module, line.file}, static_cast<std::uint32_t>(files.size()));
    if (is_new) files.push_back({line.module, line.file});
    file_of_line.push_back(file->second);
  }
  // A stack that is in a file several times counts as often: only the order depends on it.
  std::vector<std::uint64_t> weights(files.size());
  std::map<std::tuple<std::uint32_t, std::uint32_t, ModuleId>, std::uint64_t> uses;  // of a file by a process
  for (const StackCount& row : profile.counts) {
    for (std::uint32_t node = row.stack; node != 0; node = profile.nodes[node].caller) {
      if (!budget.visit()) return {};
      const std::uint32_t frame = profile.nodes[node].frame;
      for (const std::uint32_t line : by_line.of(frame)) {
        const std::uint32_t file = file_of_line[line];
        if (file == kNone) continue;
        weights[file] += row.ns;
        uses[{file, profile.threads[row.thread].process, profile.frames[frame].address.module}] += row.ns;
      }
    }
  }
  std::vector<std::pair<std::uint64_t, decltype(uses)::key_type>> by_weight;
  by_weight.reserve(uses.size());
  for (const auto& [use, weight] : uses) by_weight.emplace_back(weight, use);
  const auto is_heavier = [](const auto& a, const auto& b) { return a.first > b.first; };
  std::stable_sort(by_weight.begin(), by_weight.end(), is_heavier);
  for (const auto& [weight, use] : by_weight) {
    const auto& [file, process, code] = use;
    const ProcessInfo& info = profile.processes[process];
    files[file].uses.push_back({info.id, info.started, code});
  }
  std::vector<std::pair<std::uint64_t, FilePlace>> ordered;
  for (std::size_t i = 0; i < files.size(); ++i) ordered.emplace_back(weights[i], std::move(files[i]));
  std::stable_sort(ordered.begin(), ordered.end(), is_heavier);
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = std::move(ordered[i].second);
  return files;
}

}  // namespace

Result<FunctionPlaces> function_places(const Snapshot& snapshot, const Selection& selection,
                                       const ProfileOptions& options, const FunctionName& function, FrameNamer& namer,
                                       QueryBudget& budget) {
  Result<StackProfile> stacks = build_stacks(snapshot, selection, options, namer, budget);
  if (!stacks) return stacks.error();

  FunctionPlaces answer;
  Numbering whole(stacks->frames.size());
  Numbering by_address(stacks->frames.size());
  Numbering by_line(stacks->frames.size());
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint32_t> line_at;
  std::map<Frame, std::uint32_t> address_at;
  for (std::size_t i = 0; i < stacks->frames.size(); ++i) {
    const StackFrame& frame = stacks->frames[i];
    for (std::size_t n = 0; n < frame.chain->size(); ++n) {
      const NamedFrame& named = (*frame.chain)[n];
      if (named.name != function.name || (function.module && named.module != *function.module)) continue;
      const bool is_innermost = n + 1 == frame.chain->size();
      if (!answer.frame) answer.frame = named;
      whole.add(i, 0, is_innermost);

      const auto [address, is_new] =
          address_at.try_emplace(frame.address, static_cast<std::uint32_t>(answer.addresses.size()));
      if (is_new) {
        AddressPlace& place = answer.addresses.emplace_back();
        place.address = frame.address;
        place.module = named.module;
        place.build_id = named.build_id;
        place.file = named.file;
        place.line = named.line;
        if (n != 0) place.around = frame.chain->front().name;
      }
      by_address.add(i, address->second, is_innermost);

      const auto [line, is_new_line] =
          line_at.try_emplace({named.module, named.file, named.line}, static_cast<std::uint32_t>(answer.lines.size()));
      if (is_new_line) answer.lines.push_back({{}, named.module, named.file, named.line});
      by_line.add(i, line->second, is_innermost);
    }
  }

  // As in a profile: a sample of a longer period counts as several.
  const auto unit_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(stacks->period_ns, 1));
  std::vector<std::uint64_t> own(stacks->nodes.size());
  for (const StackCount& row : stacks->counts) own[row.stack] += row.ns / unit_ns;
  std::vector<std::uint64_t> below = own;
  for (std::size_t node = below.size(); node-- > 1;) below[stacks->nodes[node].caller] += below[node];

  std::vector<PlaceCounts> all(1);
  count(*stacks, own, below, whole, all);
  count(*stacks, own, below, by_address, answer.addresses);
  count(*stacks, own, below, by_line, answer.lines);
  if (function.with_files) answer.files = files_of(*stacks, by_line, answer.lines, budget);
  if (!budget.check()) return budget.error();
  answer.function = all.front();
  answer.samples = below.front();
  sort_by(answer.addresses, [](const AddressPlace& place) { return place.address; });
  sort_by(answer.lines, [](const LinePlace& place) { return std::tie(place.module, place.file, place.line); });
  static_cast<AnswerFacts&>(answer) = std::move(static_cast<AnswerFacts&>(*stacks));
  if (!answer.frame && answer.samples != 0) {
    answer.warnings.emplace_back(
        "No stack of the selection has this function: names are matched whole, as answers "
        "show them.");
  }
  return answer;
}

}  // namespace flamed::store
