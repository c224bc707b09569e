// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtimes/hotspot/code_finder.h"
#include "runtimes/hotspot/names.h"
#include "symbolizer/reader/hotspot_reader.h"
#include "symbolizer/reader/open_memory.h"

namespace flamed::symbolizer {
namespace {

using Kind = HotSpotNamedPlace::Kind;

class NamesReader {
 public:
  NamesReader(OpenMemory& memory, const runtimes::HotSpotLayout& layout, runtimes::HotSpotCodeFinder finder)
      : names_(memory, layout), finder_(std::move(finder)) {}

  HotSpotNames answer(const HotSpotQuestion& question) {
    for (const std::uint64_t place : question.places) answer_.places.push_back(name(place));
    for (const runtimes::HotSpotKnownBlob& known : question.known) {
      const Result<runtimes::HotSpotNamedCode> code = names_.code(known.address);
      answer_.is_there.push_back(code && code->bytes == known.bytes && code->compile_id == known.compile_id ? 1 : 0);
    }
    return std::move(answer_);
  }

 private:
  /// A method with its lines, and its number among the functions.
  struct Method {
    runtimes::RuntimeFunction function;
    std::uint32_t number = 0;
  };

  HotSpotNamedPlace name(std::uint64_t at) {
    HotSpotNamedPlace place;
    const std::optional<std::uint64_t> address = finder_.find(at);
    if (!address) return place;
    const Result<runtimes::HotSpotNamedCode> code = names_.code(*address);
    if (!code) return place;
    place.blob = {code->address, static_cast<std::uint32_t>(code->bytes), code->compile_id};
    place.first_frame = static_cast<std::uint32_t>(answer_.frames.size());
    place.kind = add_frames(*code, at);
    // The code may have gone meanwhile, and its methods with it.
    if (place.kind == Kind::kMethod && !names_.is_unchanged(*code)) place.kind = Kind::kUnreadable;
    if (place.kind != Kind::kMethod && place.kind != Kind::kRuntime) answer_.frames.resize(place.first_frame);
    place.frame_count = static_cast<std::uint32_t>(answer_.frames.size()) - place.first_frame;
    return place;
  }

  Kind add_frames(const runtimes::HotSpotNamedCode& code, std::uint64_t at) {
    switch (code.kind) {
      case runtimes::HotSpotCodeKind::kInterpreter:
        return Kind::kInterpreter;
      case runtimes::HotSpotCodeKind::kAdapter:
      case runtimes::HotSpotCodeKind::kStub:
        return add({"[" + code.name + "]", {}}, 0) ? Kind::kRuntime : Kind::kUnreadable;
      case runtimes::HotSpotCodeKind::kNative:
        return add_call({code.method, runtimes::HotSpotCall::kNotKnown}) ? Kind::kMethod : Kind::kUnreadable;
      case runtimes::HotSpotCodeKind::kCompiled:
        break;
    }
    // Its first instructions come before those that the compiler has described.
    const Result<std::vector<runtimes::HotSpotCall>> calls = names_.calls(code, at);
    if (!calls) return Kind::kUnreadable;
    for (const runtimes::HotSpotCall& call : *calls) {
      if (!add_call(call)) return Kind::kUnreadable;
    }
    return Kind::kMethod;
  }

  bool add_call(const runtimes::HotSpotCall& call) {
    auto found = methods_.find(call.method);
    if (found == methods_.end()) {
      Result<runtimes::RuntimeFunction> function = names_.method(call.method);
      if (!function || answer_.functions.size() >= kMostHotSpotFrames) return false;
      const auto number = static_cast<std::uint32_t>(answer_.functions.size());
      answer_.functions.push_back({function->name, function->file});
      found = methods_.emplace(call.method, Method{std::move(function).value(), number}).first;
    }
    if (answer_.frames.size() >= kMostHotSpotFrames) return false;
    const bool has_line = call.bytecode != runtimes::HotSpotCall::kNotKnown;
    answer_.frames.push_back({found->second.number, has_line ? found->second.function.line_at(call.bytecode) : 0});
    return true;
  }

  bool add(HotSpotFunction function, std::uint32_t line) {
    if (answer_.frames.size() >= kMostHotSpotFrames || answer_.functions.size() >= kMostHotSpotFrames) return false;
    answer_.frames.push_back({static_cast<std::uint32_t>(answer_.functions.size()), line});
    answer_.functions.push_back(std::move(function));
    return true;
  }

  runtimes::HotSpotNames names_;
  runtimes::HotSpotCodeFinder finder_;
  std::unordered_map<std::uint64_t, Method> methods_;
  HotSpotNames answer_;
};

}  // namespace

Result<HotSpotNames> read_hotspot_names(int memory, const runtimes::HotSpotLayout& layout, std::uint64_t base,
                                        const HotSpotQuestion& question) {
  OpenMemory process(memory);
  Result<runtimes::HotSpotCodeFinder> finder = runtimes::HotSpotCodeFinder::open(process, layout, base);
  if (!finder) return std::move(finder).error();
  return NamesReader(process, layout, std::move(finder).value()).answer(question);
}

}  // namespace flamed::symbolizer
