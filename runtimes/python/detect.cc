// SPDX-License-Identifier: Apache-2.0
//
// Sources of the numbers: Include/internal/pycore_debug_offsets.h (in 3.13 pycore_runtime.h), pycore_frame.h, pystate.h
// and unicodeobject.h of each version, and what builds of 3.9 to 3.15 say of themselves.
#include "runtimes/python/detect.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "runtimes/python/thread_state.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint32_t kOldestMinor = 9;
constexpr std::uint32_t kNewestMinor = 15;
constexpr std::uint32_t kFirstSelfDescribed = 13;

/// The numbers of versions that don't describe themselves.
struct KnownVersion {
  std::uint32_t minor = 0;
  std::uint16_t current_state = 0;  ///< in _PyRuntime: the thread state of the thread with the lock; 0: thread-local
  std::uint16_t state_key = 0;      ///< in _PyRuntime; 0: see thread_state.h
  std::uint16_t thread_id = 0;
  std::vector<std::uint16_t> innermost;
  std::uint16_t code = 0;
  std::uint16_t previous = 0;
  std::uint16_t instruction = 0;
  std::uint16_t boundary = 0;
  std::uint16_t first_instruction = 0;
  std::uint16_t ascii_text = 0;
};

const std::array<KnownVersion, 4>& known_versions() {
  static const std::array<KnownVersion, 4> versions{{
      {.minor = 9,
       .current_state = 568,
       .state_key = 588,
       .thread_id = 176,
       .innermost = {24},
       .code = 32,
       .previous = 24,
       .instruction = 104,
       .ascii_text = 48},
      {.minor = 10,
       .current_state = 568,
       .state_key = 588,
       .thread_id = 176,
       .innermost = {24},
       .code = 32,
       .previous = 24,
       .instruction = 96,
       .ascii_text = 48},
      {.minor = 11,
       .current_state = 576,
       .state_key = 596,
       .thread_id = 152,
       .innermost = {56, 8},
       .code = 32,
       .previous = 48,
       .instruction = 56,
       .boundary = 68,
       .first_instruction = 184,
       .ascii_text = 48},
      {.minor = 12,
       .thread_id = 136,
       .innermost = {56, 0},
       .code = 0,
       .previous = 8,
       .instruction = 56,
       .boundary = 70,
       .first_instruction = 192,
       .ascii_text = 40},
  }};
  return versions;
}

/// Places in _Py_DebugOffsets, in words of 8 bytes.
struct SelfDescription {
  std::uint32_t minor;
  std::uint8_t generation, interpreter;  ///< 0: it has none
  std::uint8_t innermost, thread_id;
  std::uint8_t previous, code, instruction, owner;
  std::uint8_t file, qualified_name, lines, first_line, first_instruction;
  std::uint8_t type;
  std::uint8_t bytes_length, bytes_text;
  std::uint8_t string_state, string_length, ascii_size;
};
constexpr std::array<SelfDescription, 3> kSelfDescriptions{{
    {13, 0, 22, 23, 24, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
    {14, 20, 25, 26, 27, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
    {15, 20, 25, 26, 30, 40, 41, 42, 44, 48, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92},
}};
constexpr std::size_t kSelfDescriptionWords = 93;
constexpr std::string_view kCookie = "xdebugpy";

// 3.13 counts the code objects that an interpreter has made, from 1 on: `func_state`, whose first values are in the
// file.
constexpr std::uint32_t kFunctionState = 17000;       // in an interpreter
constexpr std::uint64_t kMainInterpreter313 = 88352;  // in _PyRuntime

// A frame that native code called, from 3.12 on: FRAME_OWNED_BY_CSTACK, later FRAME_OWNED_BY_INTERPRETER.
constexpr std::uint8_t kOwnedByNativeCode = 3;

std::string supported_versions() {
  return "supported are 3." + std::to_string(kOldestMinor) + " to 3." + std::to_string(kNewestMinor);
}

Error too_old() { return Error("Python before 3.9: " + supported_versions()); }

Error unreadable(const PythonVersion& version, const std::string& why) {
  return Error("Python " + version.text() + ": " + why);
}

class Detector {
 public:
  Detector(ProgramImage& image, const ProgramImage::Symbol& runtime) : image_(image), runtime_(runtime) {}

  Result<PythonLayout> run() {
    if (!image_.is_x86_64()) return Error("Python is read on x86-64 only");
    if (Status status = find_version(); !status) return std::move(status).error();
    const PythonVersion& version = layout_.version;
    if (version.hex >> 24 != 3 || version.minor() < kOldestMinor || version.minor() > kNewestMinor) {
      return unreadable(version, supported_versions());
    }
    if (Status status = version.minor() < kFirstSelfDescribed ? fill_by_table() : fill_by_description(); !status) {
      return std::move(status).error();
    }
    if (Status status = find_types(); !status) return std::move(status).error();
    set_check();
    if (layout_.frames.thread_states.empty()) {
      if (Status status = find_thread_states(); !status) return std::move(status).error();
    }
    if (image_.needs("libc.so.6")) layout_.frames.thread_library = ThreadLibrary::kGlibc;
    if (image_.needs("libc.musl-x86_64.so.1")) layout_.frames.thread_library = ThreadLibrary::kMusl;
    if (const auto interpreter = image_.symbol("_PyEval_EvalFrameDefault")) {
      layout_.interpreter = interpreter->address;
      layout_.interpreter_bytes = interpreter->size;
    }
    return layout_;
  }

 private:
  Status find_version() {
    std::array<std::uint64_t, 2> head{};
    if (!image_.read(runtime_.address, std::as_writable_bytes(std::span(head)))) {
      return Error("Python: _PyRuntime has no bytes in the file");
    }
    is_described_ = std::memcmp(head.data(), kCookie.data(), kCookie.size()) == 0;
    if (is_described_) {
      layout_.version.hex = static_cast<std::uint32_t>(head[1]);
      return {};
    }
    if (const auto symbol = image_.symbol("Py_Version")) {
      const auto hex = read_number<std::uint32_t>(image_, symbol->address);
      if (!hex) return Error("Python: Py_Version has no bytes in the file");
      layout_.version.hex = *hex;
      return {};
    }
    // Functions that the two versions have added to the stable interface.
    if (!image_.symbol("PyFrame_GetBack")) return too_old();
    layout_.version.knows_micro = false;
    layout_.version.hex = image_.symbol("PyIter_Send") ? 0x030a0000 : 0x03090000;
    return {};
  }

  Status fill_by_table() {
    const std::uint32_t minor = layout_.version.minor();
    const auto known = std::find_if(known_versions().begin(), known_versions().end(),
                                    [&](const KnownVersion& version) { return version.minor == minor; });
    using Kind = ThreadStatePlace::Kind;
    LinkedFrames& frames = layout_.frames;
    if (known->current_state != 0) {
      frames.thread_states = {{Kind::kGlobal, 0, runtime_.address + known->current_state},
                              {Kind::kThreadKey, 0, runtime_.address + known->state_key}};
    }
    frames.thread_id = known->thread_id;
    frames.innermost = known->innermost;
    frames.code = known->code;
    frames.previous = known->previous;
    frames.instruction = known->instruction;
    frames.first_instruction = known->first_instruction;
    frames.boundary = known->boundary;
    switch (minor) {
      case 9:
      case 10:
        frames.instruction_kind =
            minor == 9 ? LinkedFrames::Instruction::kByteOffset : LinkedFrames::Instruction::kIndex;
        frames.boundary_kind = LinkedFrames::Boundary::kEachFrame;
        break;
      case 11:
        frames.boundary_kind = LinkedFrames::Boundary::kMarked;
        frames.first_call = 56;
        frames.next_call = 16;
        break;
      default:
        frames.boundary_value = kOwnedByNativeCode;
    }
    PythonObjects& objects = layout_.objects;
    objects.type = 8;
    objects.string_length = 16;
    objects.string_state = 32;
    objects.ascii_text = known->ascii_text;
    objects.bytes_length = 16;
    objects.bytes_text = 32;
    if (minor == 9) objects.lines_kind = PythonLines::kLineNumbers;
    if (minor == 10) objects.lines_kind = PythonLines::kRanges;
    set_other_text();
    return find_code_members();
  }

  /// Strings that are not ASCII have further members before their text.
  void set_other_text() {
    const bool is_before_12 = layout_.version.minor() < 12;
    layout_.objects.other_text = static_cast<std::uint16_t>(layout_.objects.ascii_text + (is_before_12 ? 24 : 16));
  }

  /// PyCode_Type's table of members: {name, type (32 bits), offset, flags, text}, 40 bytes each, ends with an empty
  /// one.
  Status find_code_members() {
    constexpr std::uint64_t kMembers = 240;  // in a PyTypeObject
    constexpr std::uint64_t kMemberBytes = 40;
    constexpr std::uint64_t kOffset = 16;
    constexpr int kMostMembers = 64;
    const auto type = image_.symbol("PyCode_Type");
    const auto table = type ? read_number<std::uint64_t>(image_, type->address + kMembers) : std::nullopt;
    if (!table) return unreadable(layout_.version, "PyCode_Type has no table of members");
    PythonObjects& objects = layout_.objects;
    const bool has_qualified_name = layout_.version.minor() >= 11;
    for (int i = 0; i < kMostMembers; ++i) {
      const std::uint64_t member = *table + static_cast<std::uint64_t>(i) * kMemberBytes;
      const auto name_at = read_number<std::uint64_t>(image_, member);
      const auto offset = read_number<std::uint64_t>(image_, member + kOffset);
      if (!name_at || !offset || *name_at == 0 || *offset > kMostOffset) break;
      const auto value = static_cast<std::uint16_t>(*offset);
      const std::string name = text_at(*name_at);
      if (name == (has_qualified_name ? "co_qualname" : "co_name")) objects.name = value;
      if (name == "co_filename") objects.file = value;
      if (name == "co_firstlineno") objects.first_line = value;
      if (name == "co_linetable" || name == "co_lnotab") objects.lines = value;
    }
    if (objects.name == 0 || objects.file == 0 || objects.first_line == 0 || objects.lines == 0) {
      return unreadable(layout_.version, "PyCode_Type's table of members lacks some");
    }
    return {};
  }

  /// A name of a member; empty if it is longer than those that are looked for.
  std::string text_at(std::uint64_t address) {
    std::array<char, 16> text{};
    if (!image_.read(address, std::as_writable_bytes(std::span(text)))) return {};
    const auto end = std::find(text.begin(), text.end(), '\0');
    return end == text.end() ? std::string() : std::string(text.begin(), end);
  }

  Status fill_by_description() {
    if (!is_described_) return unreadable(layout_.version, "_PyRuntime does not describe itself");
    std::array<std::uint64_t, kSelfDescriptionWords> words{};
    if (!image_.read(runtime_.address, std::as_writable_bytes(std::span(words)))) {
      return unreadable(layout_.version, "_PyRuntime's description of itself is cut");
    }
    constexpr std::size_t kIsFreeThreaded = 2;
    if (words[kIsFreeThreaded] != 0) return unreadable(layout_.version, "free-threaded builds can't be read");
    const std::uint32_t minor = layout_.version.minor();
    const auto* const at = std::find_if(kSelfDescriptions.begin(), kSelfDescriptions.end(),
                                        [&](const SelfDescription& version) { return version.minor == minor; });
    bool is_plausible = true;
    const auto offset = [&](std::uint8_t place) {
      if (words[place] > kMostOffset) is_plausible = false;
      return static_cast<std::uint16_t>(words[place]);
    };
    LinkedFrames& frames = layout_.frames;
    frames.thread_id = offset(at->thread_id);
    frames.innermost = {offset(at->innermost)};
    frames.code = offset(at->code);
    frames.previous = offset(at->previous);
    frames.instruction = offset(at->instruction);
    frames.first_instruction = offset(at->first_instruction);
    frames.boundary = offset(at->owner);
    frames.boundary_value = kOwnedByNativeCode;
    PythonObjects& objects = layout_.objects;
    objects.type = offset(at->type);
    objects.name = offset(at->qualified_name);
    objects.file = offset(at->file);
    objects.first_line = offset(at->first_line);
    objects.lines = offset(at->lines);
    objects.string_length = offset(at->string_length);
    objects.string_state = offset(at->string_state);
    objects.ascii_text = offset(at->ascii_size);
    objects.bytes_length = offset(at->bytes_length);
    objects.bytes_text = offset(at->bytes_text);
    frames.interpreter = offset(at->interpreter);
    frames.generation = at->generation != 0 ? generation_at(words[at->generation]) : made_code_objects();
    set_other_text();
    if (!is_plausible) return unreadable(layout_.version, "_PyRuntime's description of itself is damaged");
    return {};
  }

  /// Larger than any interpreter. 0: it is not a place of one.
  static std::uint32_t generation_at(std::uint64_t offset) {
    constexpr std::uint64_t kMost = 1 << 20;
    return offset < kMost ? static_cast<std::uint32_t>(offset) : 0;
  }

  /// 0 if it is not where it was in the build that was looked at.
  std::uint32_t made_code_objects() {
    std::array<std::uint64_t, 8> words{};
    const std::uint64_t at = runtime_.address + kMainInterpreter313 + kFunctionState;
    if (!image_.read(at, std::as_writable_bytes(std::span(words)))) return 0;
    const bool is_at_start =
        words[0] == 1 && std::all_of(words.begin() + 1, words.end(), [](auto word) { return word == 0; });
    return is_at_start ? kFunctionState : 0;
  }

  /// From the first line to the table of lines. From 3.12 on there is a number among them that each code object has for
  /// itself. Before, all that they point to may have been replaced in the same places.
  void set_check() {
    const PythonObjects& objects = layout_.objects;
    CodeCheck& check = layout_.frames.check;
    check.at = static_cast<std::uint16_t>(objects.first_line / 8 * 8);
    const int words = (objects.lines - check.at) / 8 + 1;
    check.words = static_cast<std::uint16_t>(std::clamp<int>(words, 1, kMostCheckWords));
    if (layout_.version.minor() < 12) {
      check.name = objects.name;
      check.file = objects.file;
      check.text = objects.ascii_text;
    }
    layout_.frames.parts = {objects.name, objects.file, objects.lines};
  }

  Status find_types() {
    const auto code = image_.symbol("PyCode_Type");
    const auto string = image_.symbol("PyUnicode_Type");
    const auto bytes = image_.symbol("PyBytes_Type");
    if (!code || !string || !bytes) return unreadable(layout_.version, "it does not export its types");
    layout_.objects.code_type = code->address;
    layout_.objects.string_type = string->address;
    layout_.objects.bytes_type = bytes->address;
    return {};
  }

  Status find_thread_states() {
    auto current = returned_thread_local(image_, "_PyThreadState_GetCurrent");
    if (!current) return unreadable(layout_.version, "_PyThreadState_GetCurrent() has unknown instructions");
    layout_.frames.thread_states.push_back(*current);
    // Without it, threads that have released the lock have no frames.
    constexpr std::string_view kOfThread = "PyGILState_GetThisThreadState";
    auto own = returned_thread_local(image_, kOfThread);
    if (!own) own = returned_key_value(image_, kOfThread, runtime_);
    if (own) layout_.frames.thread_states.push_back(*own);
    return {};
  }

  /// Larger than any of the structures.
  static constexpr std::uint64_t kMostOffset = 1023;

  ProgramImage& image_;
  const ProgramImage::Symbol runtime_;
  bool is_described_ = false;
  PythonLayout layout_;
};

}  // namespace

std::string PythonVersion::text() const {
  std::string text = std::to_string(hex >> 24) + "." + std::to_string(minor());
  if (knows_micro) text += "." + std::to_string(hex >> 8 & 0xff);
  return text;
}

Result<std::optional<PythonLayout>> detect_python(ProgramImage& image) {
  const std::optional<ProgramImage::Symbol> runtime = image.symbol("_PyRuntime");
  if (!runtime) {
    // 2.7 to 3.6 have this one, and no runtime structure.
    if (image.symbol("PyEval_EvalFrameEx")) return too_old();
    return std::optional<PythonLayout>();
  }
  Result<PythonLayout> layout = Detector(image, *runtime).run();
  if (!layout) return std::move(layout).error();
  return std::optional(std::move(layout).value());
}

}  // namespace flamed::runtimes
