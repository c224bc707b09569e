// SPDX-License-Identifier: Apache-2.0
//
// V8 exports numbers for debuggers (tools/gen-postmortem-metadata.py), each a variable of 32 bits: `v8dbg_...`. What
// they lack is in the table below, by version. Sources: src/objects/*.h and *.tq, src/execution/frame-constants.h of
// each version, and what processes of these versions have in their memory.
#include "runtimes/v8/detect.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace flamed::runtimes {
namespace {

/// What a version does not say of itself.
struct KnownVersion {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint16_t shared_data = 8;
  bool scope_has_small_flags = true;  ///< a small integer, else a plain one
  bool scope_starts_early = false;
  std::uint16_t bytecode_positions = 32;
  V8CodeHead code_head_kind = V8CodeHead::kDescriptor;
  std::uint16_t code_start = 40;
  std::uint16_t code_size = 0;
  std::uint16_t code_flags = 0;
  std::uint16_t code_data = 0;
  std::uint16_t code_positions = 0;
  std::uint16_t data_shared = 6;  ///< its number in the array
  std::uint16_t wrapped_shared = 0;
};
constexpr std::array<KnownVersion, 4> kKnownVersions{{
    {.major = 10,
     .minor = 2,
     .code_head_kind = V8CodeHead::kCode,
     .code_size = 40,
     .code_flags = 48,
     .code_data = 16,
     .code_positions = 24},
    {.major = 11, .minor = 3, .code_size = 56, .code_flags = 48, .code_data = 16, .code_positions = 24},
    {.major = 12,
     .minor = 4,
     .bytecode_positions = 24,
     .code_size = 52,
     .code_flags = 48,
     .code_data = 8,
     .code_positions = 16},
    {.major = 13,
     .minor = 6,
     .scope_has_small_flags = false,
     .scope_starts_early = true,
     .bytecode_positions = 24,
     .code_size = 56,
     .code_flags = 52,
     .code_data = 8,
     .code_positions = 16,
     .data_shared = 7,
     .wrapped_shared = 8},
}};

std::string supported_versions() {
  std::string text = "supported are";
  for (const KnownVersion& version : kKnownVersions) {
    text += (version.major == kKnownVersions.front().major ? " " : ", ") + std::to_string(version.major) + "." +
            std::to_string(version.minor);
  }
  return text;
}

class Detector {
 public:
  explicit Detector(ProgramImage& image) : image_(image) {}

  Result<V8Layout> run() {
    if (!image_.is_x86_64()) return Error("V8 is read on x86-64 only");
    if (!find_version()) return Error("V8: its version has no bytes in the file");
    const V8Version& version = layout_.version;
    const auto known = std::find_if(kKnownVersions.begin(), kKnownVersions.end(), [&](const KnownVersion& each) {
      return each.major == version.major && each.minor == version.minor;
    });
    if (known == kKnownVersions.end()) return Error("V8 " + version.text() + ": " + supported_versions());
    // Compressed pointers have 32 bits.
    if (number("SmiShiftSize") != 31 || number("HeapObjectTag") != 1) {
      return Error("V8 " + version.text() + ": its pointers are compressed");
    }
    find_frames();
    find_objects(*known);
    find_code(*known);
    find_types();
    if (!missing_.empty()) return Error("V8 " + version.text() + ": it does not export " + missing_);
    if (!is_plausible_) return Error("V8 " + version.text() + ": its numbers for debuggers are damaged");
    return layout_;
  }

 private:
  static constexpr std::int32_t kMostOffset = 1023;

  bool find_version() {
    const auto part = [&](const char* name, std::uint16_t& to) {
      const auto symbol = image_.symbol("_ZN2v88internal7Version" + std::string(name));
      const auto value = symbol ? read_number<std::uint32_t>(image_, symbol->address) : std::nullopt;
      if (!value || *value > 0xffff) return false;
      to = static_cast<std::uint16_t>(*value);
      return true;
    };
    V8Version& version = layout_.version;
    return part("6major_E", version.major) && part("6minor_E", version.minor) && part("6build_E", version.build);
  }

  std::optional<std::int32_t> number(std::string_view name) {
    const auto symbol = image_.symbol("v8dbg_" + std::string(name));
    return symbol ? read_number<std::int32_t>(image_, symbol->address) : std::nullopt;
  }

  /// Under the first of these names that there is: they have changed.
  std::uint16_t find(std::initializer_list<const char*> names, std::int32_t most = kMostOffset) {
    for (const char* const name : names) {
      const std::optional<std::int32_t> value = number(name);
      if (!value) continue;
      if (*value < 0 || *value > most) is_plausible_ = false;
      return static_cast<std::uint16_t>(*value);
    }
    if (missing_.empty()) missing_ = "v8dbg_" + std::string(*names.begin());
    return 0;
  }

  /// A place in a frame, in words below the frame pointer.
  std::uint8_t slot(const char* name) {
    const std::optional<std::int32_t> value = number(name);
    if (!value && missing_.empty()) missing_ = "v8dbg_" + std::string(name);
    if (value && (*value >= 0 || *value < -128 || *value % 8 != 0)) is_plausible_ = false;
    return static_cast<std::uint8_t>(-value.value_or(0) / 8);
  }

  std::uint16_t type(std::initializer_list<const char*> names) {
    constexpr std::int32_t kMostType = 0xffff;
    return find(names, kMostType);
  }

  void find_frames() {
    constexpr std::uint8_t kHeapObjectBit = 1;  // frames of other kinds have a small integer there
    constexpr std::uint8_t kR9 = 9;
    constexpr std::uint8_t kR12 = 12;
    FrameSlots& frames = layout_.frames;
    frames.mark = slot("off_fp_context_or_frame_type");
    frames.mark_bits = kHeapObjectBit;
    frames.function = slot("off_fp_function");
    frames.instruction = slot("off_fp_bytecode_offset");
    frames.guard = slot("off_fp_bytecode_array");
    if (number("InterpreterBytecodeArrayRegister") == kR12 && number("InterpreterBytecodeOffsetRegister") == kR9) {
      frames.guard_register = kR12;
      frames.instruction_register = kR9;
    } else {
      frames.guard = 0;
    }
    frames.code = find({"class_JSFunction__shared__SharedFunctionInfo"});
    // Bytecode is counted from the tagged address of its array.
    frames.first_instruction = static_cast<std::uint16_t>(find({"class_BytecodeArray__data__uintptr_t"}) - 1);
  }

  void find_objects(const KnownVersion& known) {
    V8Objects& objects = layout_.objects;
    objects.map_instance_type = find({"class_Map__instance_type__uint16_t"});
    objects.shared_data = known.shared_data;
    objects.shared_name = find({"class_SharedFunctionInfo__name_or_scope_info__Object",
                                "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
                                "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"});
    objects.shared_script = find({"class_SharedFunctionInfo__script_or_debug_info__HeapObject",
                                  "class_SharedFunctionInfo__raw_script__Tagged_Object_"});
    objects.shared_token_offset = find({"class_SharedFunctionInfo__raw_function_token_offset__int16_t"});
    // Its name or ScopeInfo, what it knows of feedback, and its script. Among the numbers behind them are flags that
    // change when it is compiled.
    layout_.frames.check = {.at = objects.shared_name, .words = 3};

    constexpr std::uint16_t kHead = 8;
    constexpr std::uint16_t kWord = 8;
    objects.scope_flags = static_cast<std::uint16_t>(known.scope_has_small_flags ? kHead + 4 : kHead);
    objects.scope_locals = static_cast<std::uint16_t>(kHead + kWord * find({"scopeinfo_idx_ncontextlocals"}));
    objects.scope_names = static_cast<std::uint16_t>(kHead + kWord * find({"scopeinfo_idx_first_vars"}));
    if (known.scope_starts_early) objects.scope_start = static_cast<std::uint16_t>(objects.scope_names - 2 * kWord);

    objects.script_source = find({"class_Script__source__Object"});
    objects.script_name = find({"class_Script__name__Object"});
    objects.script_line_offset = static_cast<std::uint16_t>(objects.script_name + kWord);
    objects.bytecode_positions = known.bytecode_positions;

    objects.array_length = find({"class_FixedArrayBase__length__SMI"});
    objects.array_data = find({"class_FixedArray__data__uintptr_t"});
    objects.string_length = find({"class_String__length__int32_t"});
    objects.string_text = find({"class_SeqOneByteString__chars__char"});
    objects.string_first = find({"class_ConsString__first__String"});
    objects.string_second = find({"class_ConsString__second__String"});
    objects.string_actual = find({"class_ThinString__actual__String"});
    objects.string_offset = find({"class_SlicedString__offset__SMI"});
    objects.string_parent = static_cast<std::uint16_t>(objects.string_offset - kWord);
    objects.string_resource = static_cast<std::uint16_t>(find({"class_ExternalString__resource__Object"}) + kWord);
  }

  void find_code(const KnownVersion& known) {
    V8Objects& objects = layout_.objects;
    objects.code_head_kind = known.code_head_kind;
    objects.code_head =
        find({"class_InstructionStream__instruction_start__uintptr_t", "class_Code__instruction_start__uintptr_t"});
    objects.code_descriptor = 8;
    objects.code_start = known.code_start;
    objects.code_size = known.code_size;
    objects.code_flags = known.code_flags;
    objects.code_data = known.code_data;
    objects.code_positions = known.code_positions;
    objects.baseline_kind = find({"CodeKindBaseline"});
    objects.data_shared = static_cast<std::uint16_t>(objects.array_data + 8 * known.data_shared);
    objects.wrapped_shared = known.wrapped_shared;
  }

  void find_types() {
    V8Objects& objects = layout_.objects;
    objects.shared_type = type({"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"});
    objects.scope_type = type({"type_ScopeInfo__SCOPE_INFO_TYPE"});
    objects.script_type = type({"type_Script__SCRIPT_TYPE"});
    objects.bytecode_type = type({"type_BytecodeArray__BYTECODE_ARRAY_TYPE"});
    objects.position_type = type({"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", "type_ByteArray__BYTE_ARRAY_TYPE"});
    objects.descriptor_type = type({"type_Code__CODE_TYPE"});
    objects.code_type = objects.code_head_kind == V8CodeHead::kCode
                            ? objects.descriptor_type
                            : type({"type_InstructionStream__INSTRUCTION_STREAM_TYPE"});
  }

  ProgramImage& image_;
  V8Layout layout_;
  std::string missing_;  ///< the first one
  bool is_plausible_ = true;
};

}  // namespace

std::string V8Version::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(build);
}

Result<std::optional<V8Layout>> detect_v8(ProgramImage& image) {
  // Programs with a V8 that hides its numbers are not taken for one: any program may have such a class.
  if (!image.symbol("v8dbg_off_fp_function")) return std::optional<V8Layout>();
  Result<V8Layout> layout = Detector(image).run();
  if (!layout) return std::move(layout).error();
  return std::optional(std::move(layout).value());
}

}  // namespace flamed::runtimes
