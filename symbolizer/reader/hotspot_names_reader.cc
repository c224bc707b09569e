// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtimes/hotspot/code_finder.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/paged_memory.h"
#include "runtimes/remote_memory.h"
#include "symbolizer/reader/hotspot_reader.h"
#include "symbolizer/reader/open_memory.h"

namespace flamed::symbolizer {
namespace {

using Kind = HotSpotNamedPlace::Kind;

class NamesReader {
 public:
  NamesReader(runtimes::RemoteMemory& memory, runtimes::RemoteMemory& present, const runtimes::HotSpotLayout& layout,
              runtimes::HotSpotCodeFinder finder)
      : names_(memory, present, layout), finder_(std::move(finder)) {}

  HotSpotNames answer(const HotSpotQuestion& question) {
    for (const std::uint64_t place : question.places) answer_.places.push_back(name(place));
    for (const runtimes::HotSpotKnownBlob& known : question.known) {
      const Result<runtimes::HotSpotNamedCode> code = names_.code(known.address);
      answer_.is_there.push_back(code && code->bytes == known.bytes && code->compile_id == known.compile_id ? 1 : 0);
    }
    for (const runtimes::HotSpotInterpreted& frame : question.interpreted)
      answer_.interpreted.push_back(name(frame).value_or(HotSpotFrame{HotSpotFrame::kUnreadable, 0}));
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

  std::optional<HotSpotFrame> name(const runtimes::HotSpotInterpreted& frame) {
    const std::uint64_t const_method = frame.check != 0 ? frame.object : names_.const_method_of(frame.object);
    const Method* const method = method_of(const_method);
    if (method == nullptr) return std::nullopt;
    // It may have gone meanwhile, and another one be in its place.
    const Result<std::int32_t> bytecode = names_.bytecode_of(frame, const_method);
    if (!bytecode) return std::nullopt;
    return frame_of(*method, *bytecode);
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
    const Method* const method = method_of(names_.const_method_of(call.method));
    if (method == nullptr || answer_.frames.size() >= kMostHotSpotFrames) return false;
    answer_.frames.push_back(frame_of(*method, call.bytecode));
    return true;
  }

  /// Null: it can't be read, or there is no room.
  const Method* method_of(std::uint64_t const_method) {
    const auto found = methods_.find(const_method);
    if (found != methods_.end()) return &found->second;
    Result<runtimes::RuntimeFunction> function = names_.const_method(const_method);
    if (!function || answer_.functions.size() >= kMostHotSpotFrames) return nullptr;
    const auto number = static_cast<std::uint32_t>(answer_.functions.size());
    answer_.functions.push_back({function->name, function->file});
    return &methods_.emplace(const_method, Method{std::move(function).value(), number}).first->second;
  }

  static HotSpotFrame frame_of(const Method& method, std::int32_t bytecode) {
    const bool has_line = bytecode != runtimes::HotSpotCall::kNotKnown;
    return {method.number, has_line ? method.function.line_at(bytecode) : 0};
  }

  bool add(HotSpotFunction function, std::uint32_t line) {
    if (answer_.frames.size() >= kMostHotSpotFrames || answer_.functions.size() >= kMostHotSpotFrames) return false;
    answer_.frames.push_back({static_cast<std::uint32_t>(answer_.functions.size()), line});
    answer_.functions.push_back(std::move(function));
    return true;
  }

  runtimes::HotSpotNames names_;
  runtimes::HotSpotCodeFinder finder_;
  std::unordered_map<std::uint64_t, Method> methods_;  ///< by the address of the ConstMethod
  HotSpotNames answer_;
};

}  // namespace

Result<HotSpotNames> read_hotspot_names(int memory, const runtimes::HotSpotLayout& layout, std::uint64_t base,
                                        const HotSpotQuestion& question) {
  OpenMemory process(memory);
  runtimes::PagedMemory pages(process);
  Result<runtimes::HotSpotCodeFinder> finder = runtimes::HotSpotCodeFinder::open(pages, layout, base);
  if (!finder) return std::move(finder).error();
  return NamesReader(pages, process, layout, std::move(finder).value()).answer(question);
}

}  // namespace flamed::symbolizer
