// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_pprof.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/render/stack_frames.h"
#include "api/text/gzip.h"
#include "api/text/utf8.h"
#include "base/keyed_hash.h"
#include "base/protobuf_writer.h"
#include "store/model/container_text.h"
#include "store/model/wait_reason.h"

namespace flamed::api {
namespace {

// Numbers of the fields in profile.proto.
namespace profile_field {
constexpr std::uint32_t kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5, kStringTable = 6,
                        kTimeNanos = 9, kDurationNanos = 10, kPeriodType = 11, kPeriod = 12, kComment = 13,
                        kDefaultSampleType = 14;
}
namespace value_type_field {
constexpr std::uint32_t kType = 1, kUnit = 2;
}
namespace sample_field {
constexpr std::uint32_t kLocationId = 1, kValue = 2, kLabel = 3;
}
namespace label_field {
constexpr std::uint32_t kKey = 1, kText = 2, kNumber = 3;
}
namespace mapping_field {
constexpr std::uint32_t kId = 1, kMemoryLimit = 3, kFileName = 5, kBuildId = 6, kHasFunctions = 7, kHasFileNames = 8,
                        kHasLineNumbers = 9, kHasInlineFrames = 10;
}
namespace location_field {
constexpr std::uint32_t kId = 1, kMappingId = 2, kAddress = 3, kLine = 4;
}
namespace line_field {
constexpr std::uint32_t kFunctionId = 1, kLine = 2;
}
namespace function_field {
constexpr std::uint32_t kId = 1, kName = 2, kSystemName = 3, kFileName = 4;
}

class Encoder {
 public:
  Encoder(const store::StackProfile& profile, std::span<const store::StackCount> counts, bool has_labels)
      : profile_(profile), counts_(counts), has_labels_(has_labels) {
    text("");
  }

  std::string encode() {
    ProtobufWriter out(out_);
    if (!is_off_cpu()) out.bytes(profile_field::kSampleType, value_type("samples", "count"));
    for (const std::string_view type : types()) {
      out.bytes(profile_field::kSampleType, value_type(type, "nanoseconds"));
    }
    locations_.assign(profile_.frames.size(), 0);
    append_samples();
    const std::int64_t duration_ns = profile_.used.to.ns - profile_.used.from.ns;
    out.number(profile_field::kTimeNanos, static_cast<std::uint64_t>(profile_.used.from.ns));
    out.number(profile_field::kDurationNanos, static_cast<std::uint64_t>(duration_ns));
    if (!is_off_cpu()) {
      out.bytes(profile_field::kPeriodType, value_type(types().front(), "nanoseconds"));
      out.number(profile_field::kPeriod, static_cast<std::uint64_t>(profile_.period_ns));
    }
    for (const std::string& warning : profile_.warnings) out.number(profile_field::kComment, text(warning));
    out.number(profile_field::kDefaultSampleType, text(types().front()));
    // Entries may come after the fields that refer to them.
    for (const std::string_view entry : strings_) out.bytes(profile_field::kStringTable, entry);
    return std::move(out_);
  }

 private:
  std::uint64_t text(std::string_view raw) {
    const auto [entry, is_new] = string_ids_.try_emplace(repair_utf8(raw), strings_.size());
    if (is_new) strings_.push_back(entry->first);
    return entry->second;
  }

  [[nodiscard]] bool is_off_cpu() const { return !has_labels_ && profile_.measure == store::Measure::kWait; }

  /// Beside the number of samples.
  [[nodiscard]] std::span<const std::string_view> types() const {
    static constexpr std::array<std::string_view, 2> kTypes{"cpu", "wait"};
    static constexpr std::array<std::string_view, 1> kOffCpu{"off_cpu"};
    const std::span<const std::string_view> all(kTypes);
    if (is_off_cpu()) return kOffCpu;
    if (profile_.measure == store::Measure::kWall) return all;
    return all.subspan(profile_.measure == store::Measure::kCpu ? 0 : 1, 1);
  }

  /// A stack that waits has the reason as its innermost frame.
  [[nodiscard]] bool waits(const store::StackCount& count) const {
    return count.stack != 0 &&
           store::wait_reason_in(profile_.frames[profile_.nodes[count.stack].frame].address).has_value();
  }

  std::string value_type(std::string_view type, std::string_view unit) {
    std::string encoded;
    ProtobufWriter(encoded).number(value_type_field::kType, text(type)).number(value_type_field::kUnit, text(unit));
    return encoded;
  }

  void append_samples() {
    std::vector<std::string> labels;
    if (has_labels_) {
      labels.reserve(profile_.threads.size());
      for (const store::StackThread& thread : profile_.threads) labels.push_back(labels_of(thread));
    }
    std::string ids;
    std::string values;
    std::string sample;
    for (const store::StackCount& count : counts_) {
      ids.clear();
      values.clear();
      sample.clear();
      ProtobufWriter id_list(ids);
      for (std::uint32_t stack = count.stack; stack != 0; stack = profile_.nodes[stack].caller) {
        id_list.varint(location_of(profile_.nodes[stack].frame));
      }
      if (count.truncation) id_list.varint(marker(store::marker_of(*count.truncation)));
      if (ids.empty()) id_list.varint(marker(kNoStack));
      ProtobufWriter value_list(values);
      if (!is_off_cpu()) value_list.varint(count.samples);
      const bool is_other = types().size() > 1 && waits(count);
      if (is_other) value_list.varint(0);
      value_list.varint(count.ns);
      if (types().size() > 1 && !is_other) value_list.varint(0);
      ProtobufWriter(sample).bytes(sample_field::kLocationId, ids).bytes(sample_field::kValue, values);
      if (has_labels_) sample += labels[count.thread];
      ProtobufWriter(out_).bytes(profile_field::kSample, sample);
    }
  }

  std::string labels_of(const store::StackThread& thread) {
    const store::ProcessInfo& process = profile_.processes[thread.process];
    std::string encoded;
    const auto append_text = [&](std::string_view key, std::string_view value) {
      if (value.empty()) return;
      std::string label;
      ProtobufWriter(label).number(label_field::kKey, text(key)).number(label_field::kText, text(value));
      ProtobufWriter(encoded).bytes(sample_field::kLabel, label);
    };
    const auto append_number = [&](std::string_view key, std::int64_t value) {
      std::string label;
      ProtobufWriter(label)
          .number(label_field::kKey, text(key))
          .number(label_field::kNumber, static_cast<std::uint64_t>(value));
      ProtobufWriter(encoded).bytes(sample_field::kLabel, label);
    };
    append_text("process", process.comm);
    append_text("thread", thread.comm);
    append_text("unit", process.unit);
    const auto [id, name] = store::split_container(process.container);
    append_text("container", id);
    append_text("container_name", name);
    append_number("pid", process.id.pid);
    append_number("tid", thread.tid);
    return encoded;
  }

  std::uint64_t location_of(std::uint32_t frame) {
    std::uint64_t& known = locations_[frame];
    if (known != 0) return known;
    const store::StackFrame& place = profile_.frames[frame];
    const store::NamedFrame& outermost = place.chain->front();
    std::string encoded;
    ProtobufWriter location(encoded);
    known = ++last_location_;
    location.number(location_field::kId, known)
        .number(location_field::kMappingId, mapping_of(outermost))
        .number(location_field::kAddress, place.address.offset);
    for (auto function = place.chain->rbegin(); function != place.chain->rend(); ++function) {
      std::string line;
      ProtobufWriter(line)
          .number(line_field::kFunctionId, function_of(*function))
          .number(line_field::kLine, function->line);
      location.bytes(location_field::kLine, line);
    }
    ProtobufWriter(out_).bytes(profile_field::kLocation, encoded);
    return known;
  }

  /// A location that is not code.
  std::uint64_t marker(std::string_view name) {
    std::uint64_t& known = markers_[std::string(name)];
    if (known != 0) return known;
    known = ++last_location_;
    std::string line;
    ProtobufWriter(line).number(line_field::kFunctionId, function_of({std::string(name), "", {}, ""}));
    std::string encoded;
    ProtobufWriter(encoded).number(location_field::kId, known).bytes(location_field::kLine, line);
    ProtobufWriter(out_).bytes(profile_field::kLocation, encoded);
    return known;
  }

  std::uint64_t mapping_of(const store::NamedFrame& frame) {
    if (frame.module.empty()) return 0;
    std::uint64_t& known = mappings_[frame.module + '\0' + frame.build_id];
    if (known != 0) return known;
    known = mappings_.size();
    std::string encoded;
    // pprof uses the limits only to find the mapping of an address, which each location has anyway. Names are resolved
    // here, so that pprof does not search for such files on its own host.
    ProtobufWriter(encoded)
        .number(mapping_field::kId, known)
        .number(mapping_field::kMemoryLimit, ~std::uint64_t{0})
        .number(mapping_field::kFileName, text(frame.module))
        .number(mapping_field::kBuildId, text(frame.build_id))
        .number(mapping_field::kHasFunctions, 1)
        .number(mapping_field::kHasFileNames, 1)
        .number(mapping_field::kHasLineNumbers, 1)
        .number(mapping_field::kHasInlineFrames, 1);
    ProtobufWriter(out_).bytes(profile_field::kMapping, encoded);
    return known;
  }

  std::uint64_t function_of(const store::NamedFrame& frame) {
    std::uint64_t& known = functions_[frame.name + '\0' + frame.module + '\0' + frame.file];
    if (known != 0) return known;
    known = functions_.size();
    const std::string& whole = frame.full_name.empty() ? frame.name : frame.full_name;
    std::string encoded;
    ProtobufWriter(encoded)
        .number(function_field::kId, known)
        .number(function_field::kName, text(frame.name.empty() ? "[unnamed]" : frame.name))
        .number(function_field::kSystemName, text(whole))
        .number(function_field::kFileName, text(frame.file));
    ProtobufWriter(out_).bytes(profile_field::kFunction, encoded);
    return known;
  }

  const store::StackProfile& profile_;
  const std::span<const store::StackCount> counts_;
  const bool has_labels_;
  std::string out_;
  std::vector<std::string_view> strings_;  ///< views of keys of string_ids_, which do not move
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> string_ids_;
  std::vector<std::uint64_t> locations_;  ///< by frame; 0: not written yet
  std::uint64_t last_location_ = 0;
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> markers_;
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> mappings_;
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> functions_;
};

}  // namespace

std::string encode_pprof(const store::StackProfile& profile) {
  return Encoder(profile, profile.counts, /*has_labels=*/true).encode();
}

std::string encode_unlabelled_pprof(const store::StackProfile& profile, std::span<const store::StackCount> counts) {
  return Encoder(profile, counts, /*has_labels=*/false).encode();
}

Result<std::string> render_pprof(const store::StackProfile& profile) { return gzip(encode_pprof(profile)); }

}  // namespace flamed::api
