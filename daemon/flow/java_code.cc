// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/java_code.h"

#include <limits>

namespace flamed::daemon {
namespace {

/// No code has this number of compilation.
constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();
/// How often, and how long after, an interpreted method is read again that could not be read: the JVM may have been
/// changing it.
constexpr std::uint8_t kMostFailures = 8;
constexpr std::int64_t kAskAgainNs = kNsPerSecond;

}  // namespace

JavaCode::Knowledge JavaCode::knowledge_of(std::uint64_t address, MonotonicTime time, bool by_last_reading) const {
  const auto place = places_.find(address);
  if (place == places_.end()) return Knowledge::kNone;
  if (place->second.code == 0) return Knowledge::kKnown;
  const auto code = codes_.find(place->second.code);
  if (code == codes_.end() || code->second.compile_id != place->second.compile_id) return Knowledge::kNone;
  if (time < code->second.since) return Knowledge::kReplaced;
  return by_last_reading || time <= code->second.seen_at ? Knowledge::kKnown : Knowledge::kNone;
}

JavaCode::Knowledge JavaCode::knowledge_of(const runtimes::HotSpotInterpreted& method, MonotonicTime time,
                                           bool by_last_reading) const {
  const auto found = interpreted_.find(method);
  if (found == interpreted_.end()) return Knowledge::kNone;
  const Interpreted& known = found->second;
  const bool may_be_asked_again =
      !known.frame && known.failures < kMostFailures && time.ns - known.seen_at.ns >= kAskAgainNs;
  if (may_be_asked_again && !by_last_reading) return Knowledge::kNone;
  const bool is_certain = method.check != 0 || by_last_reading;
  return is_certain || time <= known.seen_at ? Knowledge::kKnown : Knowledge::kNone;
}

void JavaCode::Question::add(std::uint64_t address, MonotonicTime time) {
  if (code_.knowledge_of(address, time) != Knowledge::kNone) return;
  const auto place = code_.places_.find(address);
  const auto code = place == code_.places_.end() ? code_.codes_.end() : code_.codes_.find(place->second.code);
  if (code == code_.codes_.end() || code->second.compile_id != place->second.compile_id) {
    if (places_.size() < symbolizer::kMostHotSpotPlaces && places_.insert(address).second)
      question_.places.push_back(address);
  } else if (codes_.size() < symbolizer::kMostHotSpotChecks && codes_.insert(code->first).second) {
    question_.known.push_back({code->first, code->second.bytes, code->second.compile_id});
  }
}

void JavaCode::Question::add(const runtimes::HotSpotInterpreted& method, MonotonicTime time) {
  if (code_.knowledge_of(method, time) != Knowledge::kNone) return;
  if (interpreted_.size() < symbolizer::kMostHotSpotInterpreted && interpreted_.insert(method).second)
    question_.interpreted.push_back(method);
}

void JavaCode::learn(const symbolizer::HotSpotQuestion& question, const symbolizer::HotSpotNames& names,
                     MonotonicTime began,
                     const std::function<Frame(const symbolizer::HotSpotFunction&, std::uint32_t)>& frame_of) {
  // Since when new code is there is not known: perhaps since a moment before this reading.
  std::unordered_set<std::uint64_t> gone;
  for (std::size_t i = 0; i < question.known.size(); ++i) {
    const auto code = codes_.find(question.known[i].address);
    if (code == codes_.end() || code->second.compile_id != question.known[i].compile_id) continue;
    code->second.seen_at = began;
    if (names.is_there[i] == 0) {
      code->second = {0, kGone, began, began};
      gone.insert(code->first);
    }
  }
  for (const symbolizer::HotSpotNamedPlace& named : names.places) {
    if (named.kind == Kind::kOther) continue;
    const auto [code, is_new] = codes_.try_emplace(named.blob.address);
    Code& entered = code->second;
    if (!is_new && entered.compile_id != named.blob.compile_id) {
      entered.since = began;
      gone.insert(code->first);
    }
    entered = {named.blob.bytes, named.blob.compile_id, began, entered.since};
  }
  if (!gone.empty()) std::erase_if(places_, [&](const auto& each) { return gone.count(each.second.code) != 0; });
  for (std::size_t i = 0; i < question.places.size(); ++i) {
    const symbolizer::HotSpotNamedPlace& named = names.places[i];
    Place place;
    place.kind = named.kind;
    if (named.kind != Kind::kOther) {
      place.code = named.blob.address;
      place.compile_id = named.blob.compile_id;
    }
    for (std::uint32_t k = 0; k < named.frame_count; ++k) {
      const symbolizer::HotSpotFrame& frame = names.frames[named.first_frame + k];
      place.frames.push_back(frame_of(names.functions[frame.function], frame.line));
    }
    places_.insert_or_assign(question.places[i], std::move(place));
  }
  for (std::size_t i = 0; i < question.interpreted.size(); ++i) {
    const auto& [function, line] = names.interpreted[i];
    Interpreted& method = interpreted_[question.interpreted[i]];
    method.seen_at = began;
    method.frame.reset();
    if (function != symbolizer::HotSpotFrame::kUnreadable)
      method.frame = frame_of(names.functions[function], line);
    else if (method.failures < kMostFailures)
      ++method.failures;
  }
}

void JavaCode::clear() {
  places_.clear();
  codes_.clear();
  interpreted_.clear();
}

void JavaCode::append_frames(std::vector<Frame>& frames) const {
  for (const auto& [address, place] : places_) frames.insert(frames.end(), place.frames.begin(), place.frames.end());
  for (const auto& [key, method] : interpreted_) {
    if (method.frame) frames.push_back(*method.frame);
  }
}

}  // namespace flamed::daemon
