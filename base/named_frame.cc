// SPDX-License-Identifier: Apache-2.0
#include "base/named_frame.h"

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
    case FrameKind::kUnknown:
      return "unknown";
    case FrameKind::kMarker:
      return "marker";
  }
  return "unknown";
}

}  // namespace flamed
