// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as blocks of the archive: a value that can be written and read again, or an error, never a crash. The first
// byte says whether the rest is a block, or columns of up to three blocks, each after its size in two bytes: bytes that
// were changed at random have no valid checksum, so that they would not get far. It also says which version a minute
// has.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/block.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "archive/reading/renumbering.h"

namespace {

using flamed::Result;
using flamed::archive::Additions;
using flamed::archive::Column;
using flamed::archive::Minute;
using flamed::archive::Name;
using flamed::archive::ProcessState;
using flamed::archive::Sample;
using flamed::archive::StackPlaces;

using Bytes = std::vector<std::byte>;

StackPlaces use_additions(std::span<const std::byte> block) {
  const Result<Additions> additions = flamed::archive::decode_additions(block, {});
  if (!additions.ok()) {
    if (additions.error().message().empty()) std::abort();
    return {};
  }
  const Result<Bytes> again = flamed::archive::encode(*additions);
  if (!again.ok()) std::abort();
  const Result<Additions> read = flamed::archive::decode_additions(*again, {});
  if (!read.ok() || read->stacks != additions->stacks || read->frames != additions->frames ||
      read->threads != additions->threads || read->modules != additions->modules || read->gaps != additions->gaps ||
      read->processes.size() != additions->processes.size()) {
    std::abort();
  }
  StackPlaces places;
  places.add(*additions);
  for (std::uint32_t stack = 0; stack < places.size().stacks; ++stack) {
    const StackPlaces::Place place = places.of(stack);
    if (places.group(place.group)[place.rank] != stack) std::abort();
  }
  return places;
}

void use_states(std::span<const std::byte> block) {
  const Result<std::vector<ProcessState>> states = flamed::archive::decode_states(block);
  if (!states.ok()) {
    if (states.error().message().empty()) std::abort();
    return;
  }
  const Result<std::vector<ProcessState>> again =
      flamed::archive::decode_states(flamed::archive::encode_states(*states).value());
  if (!again.ok() || again->size() != states->size()) std::abort();
  flamed::archive::Renumbering renumbering({{}, {std::numeric_limits<std::int64_t>::max()}});
  for (const ProcessState& state : *states) renumbering.know(state, 1);
  Additions additions;
  for (std::uint32_t process = 0; process < 10; ++process) {
    additions.processes.push_back({process, {}});
    additions.processes.back().info.id = states->empty() ? flamed::ProcessId{} : states->front().info.id;
  }
  renumbering.add(additions, 1);
}

/// With a hundred of each kind.
StackPlaces some_places() {
  Additions additions;
  additions.frames.resize(100);
  additions.threads.resize(100);
  for (std::uint32_t stack = 1; stack < 100; ++stack) additions.stacks.push_back({stack % 7 == 0 ? 0 : stack / 2, 0});
  StackPlaces places;
  places.add(additions);
  return places;
}

void use_minute(std::span<const std::byte> block, const StackPlaces& dictionary) {
  const Result<Minute> minute = flamed::archive::decode_minute(block, dictionary);
  if (!minute.ok()) {
    if (minute.error().message().empty()) std::abort();
    return;
  }
  for (const Result<Bytes>& again : {flamed::archive::encode(*minute), flamed::archive::encode(*minute, dictionary)}) {
    if (!again.ok()) std::abort();
    const Result<Minute> read = flamed::archive::decode_minute(*again, dictionary);
    if (!read.ok() || read->pairs != minute->pairs || read->end != minute->end) std::abort();
  }
  const Result<Minute> head = flamed::archive::decode_head(block);
  if (!head.ok() || head->end != minute->end || !head->pairs.empty()) std::abort();
}

std::optional<std::vector<Sample>> use_samples(std::span<const std::byte> block, const Minute& minute) {
  Result<std::vector<Sample>> samples = flamed::archive::decode_samples(block, minute);
  if (!samples.ok()) {
    if (samples.error().message().empty()) std::abort();
    return std::nullopt;
  }
  const Result<Bytes> again = flamed::archive::encode(std::span<const Sample>(*samples));
  if (!again.ok()) std::abort();
  const Result<std::vector<Sample>> read = flamed::archive::decode_samples(*again, minute);
  if (!read.ok() || *read != *samples) std::abort();
  return std::move(*samples);
}

/// As a stretch has them, where threads and frames are folded.
void use_folded(const Additions& additions, const Minute& minute) {
  flamed::archive::Renumbering renumbering({{}, {std::numeric_limits<std::int64_t>::max()}},
                                           flamed::archive::Folding::kThreadsAndFrames);
  renumbering.add(additions, 1);
  const flamed::archive::Renumbering::Renumbered numbered = renumbering.take(minute);
  StackPlaces places;
  places.add(numbered.additions);
  const Result<Bytes> pairs = flamed::archive::encode(numbered.minute, places);
  if (!pairs.ok()) std::abort();
  const Result<Minute> again = flamed::archive::decode_minute(*pairs, places);
  if (!again.ok() || again->pairs != numbered.minute.pairs) std::abort();
}

/// A minute of its own, as an excerpt has it, has the same samples and can be read.
void use_renumbered(std::span<const std::byte> additions_block, std::span<const std::byte> minute_block,
                    std::span<const std::byte> samples_block) {
  const Result<Additions> additions = flamed::archive::decode_additions(additions_block, {});
  if (!additions.ok()) return;
  StackPlaces places;
  places.add(*additions);
  const Result<Minute> minute = flamed::archive::decode_minute(minute_block, places);
  if (!minute.ok()) return;
  use_folded(*additions, *minute);
  flamed::archive::Renumbering renumbering({{}, {std::numeric_limits<std::int64_t>::max()}});
  renumbering.add(*additions, 1);
  std::optional<std::vector<Sample>> samples = use_samples(samples_block, *minute);
  const flamed::archive::Renumbering::Renumbered numbered = renumbering.take(*minute, samples);
  const Result<Bytes> block = flamed::archive::encode(numbered.additions);
  const Result<Bytes> pairs = flamed::archive::encode(numbered.minute);
  if (!block.ok() || !pairs.ok()) std::abort();
  const Result<Additions> read = flamed::archive::decode_additions(*block, {});
  if (!read.ok() || read->after() != numbered.additions.after()) std::abort();
  const Result<Minute> again = flamed::archive::decode_minute(*pairs, read->after());
  if (!again.ok() || again->pairs != numbered.minute.pairs || again->pairs.size() != minute->pairs.size()) std::abort();
  if (samples && !use_samples(*flamed::archive::encode(std::span<const Sample>(*numbered.samples)), *again))
    std::abort();
}

void use_names(std::span<const std::byte> block) {
  const Result<std::vector<Name>> names = flamed::archive::decode_names(block, 100);
  if (!names.ok()) {
    if (names.error().message().empty()) std::abort();
    return;
  }
  const Result<Bytes> again = flamed::archive::encode(std::span<const Name>(*names));
  if (!again.ok()) std::abort();
  const Result<std::vector<Name>> read = flamed::archive::decode_names(*again, 100);
  if (!read.ok() || read->size() != names->size()) std::abort();
  const auto is_even = [](std::uint32_t frame) { return frame % 2 == 0; };
  const Result<std::vector<Name>> some = flamed::archive::decode_names(*again, 100, is_even);
  if (!some.ok()) std::abort();
  auto next = some->begin();
  const std::optional<std::uint32_t> lowest = flamed::archive::lowest_frame_in(*again);
  for (const Name& name : *names) {
    if (!lowest || name.frame < *lowest) std::abort();
    if (!is_even(name.frame)) continue;
    if (next == some->end() || next->frame != name.frame || *next->chain != *name.chain) std::abort();
    ++next;
  }
  if (next != some->end()) std::abort();
  for (std::size_t i = 0; i < names->size(); ++i) {
    if ((*read)[i].frame != (*names)[i].frame || *(*read)[i].chain != *(*names)[i].chain) std::abort();
  }
}

/// The next `count` columns as a block.
Bytes take_block(std::span<const std::uint8_t>& data, std::size_t count, std::uint8_t version = 1) {
  std::vector<Column> columns(count);
  for (Column& column : columns) {
    if (data.size() < 2) break;
    const std::size_t size = std::min(std::size_t{data[0]} | std::size_t{data[1]} << 8, data.size() - 2);
    const auto bytes = data.subspan(2, size);
    column.put_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    data = data.subspan(2 + size);
  }
  Result<Bytes> block = flamed::archive::pack_block(version, columns);
  if (!block.ok()) std::abort();
  return std::move(*block);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto block = std::as_bytes(rest);
    use_additions(block);
    static const StackPlaces kSome = some_places();
    use_minute(block, kSome);
    use_names(block);
    use_states(block);
  } else if (data[0] % 8 == 7) {
    use_states(take_block(rest, 12));
  } else if (data[0] % 4 == 3) {
    use_names(take_block(rest, 10));
  } else {
    const Bytes additions = take_block(rest, 12);
    const bool has_places = data[0] % 8 == 5;
    const Bytes minute = has_places ? take_block(rest, 5, 2) : take_block(rest, 4);
    use_minute(minute, use_additions(additions));
    const Bytes samples = take_block(rest, 4);
    use_renumbered(additions, minute, samples);
  }
  return 0;
}
