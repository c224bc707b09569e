// SPDX-License-Identifier: Apache-2.0
#include "base/named_frame.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/keyed_hash.h"

namespace flamed {

std::string_view name_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kRoot:
      return "root";
    case FrameKind::kNative:
      return "native";
    case FrameKind::kGo:
      return "go";
    case FrameKind::kKernel:
      return "kernel";
    case FrameKind::kVdso:
      return "vdso";
    case FrameKind::kJit:
      return "jit";
    case FrameKind::kPython:
      return "python";
    case FrameKind::kJavaScript:
      return "javascript";
    case FrameKind::kJava:
      return "java";
    case FrameKind::kUnnamed:
      return "unnamed";
    case FrameKind::kUnknown:
      return "unknown";
    case FrameKind::kMarker:
      return "marker";
  }
  return "unknown";
}

bool operator==(const NamedFrame& a, const NamedFrame& b) {
  const auto known = [](const NamedFrame& frame) {
    return std::tie(frame.name, frame.module, frame.kind, frame.reason, frame.full_name, frame.build_id, frame.file,
                    frame.line, frame.inlined, frame.pending, frame.offset);
  };
  return known(a) == known(b);
}

std::uint64_t hash_of(std::string_view name, std::string_view module) {
  const std::uint64_t both = hash_with(keyed_hash(name), keyed_hash(module) + 1, process_hash_key());
  return both != 0 ? both : 1;
}

bool may_change(const InlineChain& chain) {
  return std::any_of(chain.begin(), chain.end(), [](const NamedFrame& frame) {
    return frame.pending || !frame.reason.empty() || frame.kind == FrameKind::kJit || frame.module == "[bpf]";
  });
}

std::size_t memory_of(const InlineChain& chain) {
  // Short strings live inside the object.
  const auto heap_bytes = [](const std::string& text) {
    return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
  };
  std::size_t bytes = sizeof(InlineChain) + chain.capacity() * sizeof(NamedFrame);
  for (const NamedFrame& frame : chain) {
    for (const std::string* text :
         {&frame.name, &frame.module, &frame.reason, &frame.full_name, &frame.build_id, &frame.file}) {
      bytes += heap_bytes(*text);
    }
  }
  return bytes;
}

std::shared_ptr<const InlineChain> share(InlineChain chain) {
  for (NamedFrame& frame : chain) frame.hash = hash_of(frame.name, frame.module);
  return std::make_shared<const InlineChain>(std::move(chain));
}

}  // namespace flamed
