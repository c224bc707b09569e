// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_services.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <span>
#include <unordered_map>

#include "api/render/render_pprof.h"
#include "api/render/services.h"
#include "api/render/stack_frames.h"
#include "api/text/gzip.h"
#include "api/text/utf8.h"
#include "base/keyed_hash.h"
#include "base/protobuf_writer.h"

namespace flamed::api {
namespace {

using Labels = std::map<std::string, std::string>;
using ProfileId = std::array<std::uint64_t, 2>;

/// How the receiver calls them.
struct LabelNames {
  std::string_view service;
  std::string_view unit;
  std::string_view container_id;  ///< empty: it gets the name alone
  std::string_view container;
  std::string_view pod;
  std::string_view pod_namespace;
  std::string_view host;
};
constexpr LabelNames kPyroscopeNames{"service_name", "unit", "", "container", "pod", "namespace", "host"};
/// https://opentelemetry.io/docs/specs/semconv/resource/
constexpr LabelNames kOtlpNames{"service.name", "systemd.unit",       "container.id", "container.name",
                                "k8s.pod.name", "k8s.namespace.name", "host.name"};

Labels labels_of(const Service& service, const HostLabels& host, const LabelNames& names) {
  Labels labels;
  const auto put = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) labels.insert_or_assign(std::string(name), repair_utf8(value));
  };
  put(names.service, service.name);
  put(names.unit, service.unit);
  if (!names.container_id.empty()) put(names.container_id, service.container_id);
  if (names.container_id.empty() || service.container != service.container_id) put(names.container, service.container);
  put(names.pod, service.pod);
  put(names.pod_namespace, service.pod_namespace);
  put(names.host, host.host);
  for (const auto& [name, value] : host.labels) put(name, value);
  return labels;
}

/// The same for the same window and labels of one machine, and most likely no others.
ProfileId id_of(const store::StackProfile& profile, const Labels& labels, const HostLabels& host) {
  // Any odd numbers: nobody gains by two profiles with one id but the host that sends them.
  constexpr std::array<std::uint64_t, 2> kKeys{0x9e3779b97f4a7c15, 0xd6e8feb86659fd93};
  ProfileId id{};
  for (std::size_t i = 0; i < id.size(); ++i) {
    KeyedDigest digest(kKeys[i]);
    const auto add = [&](std::string_view text) {
      digest.add(std::as_bytes(std::span(text)));
      digest.add(std::as_bytes(std::span("\0", 1)));
    };
    add(host.machine);
    add(name_of(profile.measure));
    for (const std::int64_t edge : {profile.used.from.ns, profile.used.to.ns}) add(std::to_string(edge));
    for (const auto& [name, value] : labels) {
      add(name);
      add(value);
    }
    id[i] = digest.value();
  }
  return id;
}

/// A UUID of version 8, whose bits are its maker's own (RFC 9562, 5.8).
std::string uuid_of(const ProfileId& id) {
  const std::uint64_t high = (id[0] & ~std::uint64_t{0xf000}) | 0x8000;
  const std::uint64_t low = (id[1] & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{1} << 63U);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%08llx-%04llx-%04llx-%04llx-%012llx",
                static_cast<unsigned long long>(high >> 32U), static_cast<unsigned long long>(high >> 16U & 0xffff),
                static_cast<unsigned long long>(high & 0xffff), static_cast<unsigned long long>(low >> 48U),
                static_cast<unsigned long long>(low & 0xffffffffffff));
  return text.data();
}

// Numbers of the fields of push.v1 and types.v1.
namespace push_field {
constexpr std::uint32_t kSeries = 1, kLabels = 1, kSamples = 2, kName = 1, kValue = 2, kRawProfile = 1, kId = 2;
}

std::string pyroscope_label(std::string_view name, std::string_view value) {
  std::string label;
  ProtobufWriter(label).bytes(push_field::kName, name).bytes(push_field::kValue, value);
  return label;
}

// Numbers of the fields of opentelemetry.proto.
namespace otlp_field {
constexpr std::uint32_t kResourceProfiles = 1, kDictionary = 2;
constexpr std::uint32_t kResource = 1, kScopeProfiles = 2, kAttributes = 1;
constexpr std::uint32_t kKey = 1, kValue = 2, kStringValue = 1;
constexpr std::uint32_t kScope = 1, kProfiles = 2, kScopeName = 1;
constexpr std::uint32_t kSampleType = 1, kSamples = 2, kTime = 3, kDuration = 4, kPeriodType = 5, kPeriod = 6, kId = 7;
constexpr std::uint32_t kMappingTable = 1, kLocationTable = 2, kFunctionTable = 3, kLinkTable = 4, kStringTable = 5,
                        kAttributeTable = 6, kStackTable = 7;
constexpr std::uint32_t kType = 1, kUnit = 2;
constexpr std::uint32_t kStack = 1;  // of a Sample
constexpr std::uint32_t kMemoryLimit = 2, kFileName = 4, kMappingAttributes = 5;
constexpr std::uint32_t kMapping = 1, kAddress = 2, kLines = 3, kLocationAttributes = 4;
constexpr std::uint32_t kFunction = 1, kLine = 2;
constexpr std::uint32_t kFunctionName = 1, kSystemName = 2, kFunctionFile = 3;
constexpr std::uint32_t kLocations = 1;  // of a Stack
constexpr std::uint32_t kAttributeKey = 1, kAttributeValue = 2;
}  // namespace otlp_field

std::uint32_t values_field(OtlpLayout layout) { return layout == OtlpLayout::kCurrent ? 4 : 2; }

std::string any_text(std::string_view text) {
  std::string value;
  ProtobufWriter(value).bytes(otlp_field::kStringValue, text);
  return value;
}

/// As the semantic conventions call kinds of frames; empty: none of theirs.
std::string_view frame_type_of(store::FrameKind kind) {
  switch (kind) {
    case store::FrameKind::kNative:
    case store::FrameKind::kVdso:
      return "native";
    case store::FrameKind::kGo:
      return "go";
    case store::FrameKind::kKernel:
      return "kernel";
    case store::FrameKind::kPython:
      return "cpython";
    case store::FrameKind::kJavaScript:
      return "v8js";
    case store::FrameKind::kJava:
      return "jvm";
    default:
      return "";
  }
}

/// One of the dictionary's tables: entries without duplicates. The first one is empty, which stands for none.
class Table {
 public:
  Table() { entries_.push_back(&index_of_.try_emplace("", 0).first->first); }

  std::uint64_t put(std::string entry) {
    const auto [found, is_new] = index_of_.try_emplace(std::move(entry), entries_.size());
    if (is_new) entries_.push_back(&found->first);
    return found->second;
  }
  void write(std::uint32_t field, ProtobufWriter& out) const {
    for (const std::string* entry : entries_) out.bytes(field, *entry);
  }

 private:
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> index_of_;
  std::vector<const std::string*> entries_;  ///< keys of index_of_, which do not move
};

class OtlpEncoder {
 public:
  OtlpEncoder(const store::StackProfile& profile, const HostLabels& host, OtlpLayout layout)
      : profile_(profile), host_(host), layout_(layout), locations_(profile.frames.size(), 0) {}

  std::string encode() {
    ProtobufWriter out(out_);
    for (const Service& service : services_of(profile_)) {
      const Labels labels = labels_of(service, host_, kOtlpNames);
      std::string resource;
      for (const auto& [name, value] : labels) {
        std::string attribute;
        ProtobufWriter(attribute).bytes(otlp_field::kKey, name).bytes(otlp_field::kValue, any_text(value));
        ProtobufWriter(resource).bytes(otlp_field::kAttributes, attribute);
      }
      std::string scope;
      ProtobufWriter(scope).bytes(otlp_field::kScopeName, "flamed");
      std::string scoped;
      ProtobufWriter(scoped).bytes(otlp_field::kScope, scope).bytes(otlp_field::kProfiles, profile_of(service, labels));
      std::string of_resource;
      ProtobufWriter(of_resource).bytes(otlp_field::kResource, resource).bytes(otlp_field::kScopeProfiles, scoped);
      out.bytes(otlp_field::kResourceProfiles, of_resource);
    }
    std::string dictionary;
    ProtobufWriter tables(dictionary);
    mappings_.write(otlp_field::kMappingTable, tables);
    locations_table_.write(otlp_field::kLocationTable, tables);
    functions_.write(otlp_field::kFunctionTable, tables);
    tables.bytes(otlp_field::kLinkTable, "");
    strings_.write(otlp_field::kStringTable, tables);
    attributes_.write(otlp_field::kAttributeTable, tables);
    stacks_.write(otlp_field::kStackTable, tables);
    out.bytes(otlp_field::kDictionary, dictionary);
    return std::move(out_);
  }

 private:
  std::uint64_t text(std::string_view raw) { return strings_.put(repair_utf8(raw)); }

  std::string value_type(std::string_view type, std::string_view unit) {
    std::string encoded;
    ProtobufWriter(encoded).number(otlp_field::kType, text(type)).number(otlp_field::kUnit, text(unit));
    return encoded;
  }

  std::string profile_of(const Service& service, const Labels& labels) {
    const bool is_wait = profile_.measure == store::Measure::kWait;
    std::string encoded;
    ProtobufWriter out(encoded);
    out.bytes(otlp_field::kSampleType, is_wait ? value_type("off_cpu", "nanoseconds") : value_type("samples", "count"));
    for (const store::StackCount& count : service.counts) {
      // In units of one period: samples of several periods may be in one window.
      const std::uint64_t value = is_wait ? count.ns : count.ns / static_cast<std::uint64_t>(profile_.period_ns);
      std::string values;
      ProtobufWriter(values).varint(value);
      std::string sample;
      ProtobufWriter(sample).number(otlp_field::kStack, stack_of(count)).bytes(values_field(layout_), values);
      out.bytes(otlp_field::kSamples, sample);
    }
    out.fixed64(otlp_field::kTime, static_cast<std::uint64_t>(profile_.used.from.ns));
    out.number(otlp_field::kDuration, static_cast<std::uint64_t>(profile_.used.to.ns - profile_.used.from.ns));
    if (!is_wait) {
      out.bytes(otlp_field::kPeriodType, value_type("cpu", "nanoseconds"));
      out.number(otlp_field::kPeriod, static_cast<std::uint64_t>(profile_.period_ns));
    }
    std::string id;
    for (const std::uint64_t word : id_of(profile_, labels, host_)) {
      for (unsigned shift = 64; shift != 0; shift -= 8) id += static_cast<char>(word >> (shift - 8) & 0xFFU);
    }
    out.bytes(otlp_field::kId, id);
    return encoded;
  }

  std::uint64_t stack_of(const store::StackCount& count) {
    std::string ids;
    ProtobufWriter list(ids);
    for (std::uint32_t stack = count.stack; stack != 0; stack = profile_.nodes[stack].caller) {
      list.varint(location_of(profile_.nodes[stack].frame));
    }
    if (count.truncation) list.varint(marker(store::marker_of(*count.truncation)));
    if (ids.empty()) list.varint(marker(kNoStack));
    std::string encoded;
    ProtobufWriter(encoded).bytes(otlp_field::kLocations, ids);
    return stacks_.put(std::move(encoded));
  }

  std::uint64_t location_of(std::uint32_t frame) {
    std::uint64_t& known = locations_[frame];
    if (known != 0) return known;
    const store::StackFrame& place = profile_.frames[frame];
    const store::NamedFrame& outermost = place.chain->front();
    std::string encoded;
    ProtobufWriter location(encoded);
    location.number(otlp_field::kMapping, mapping_of(outermost)).number(otlp_field::kAddress, place.address.offset);
    for (auto function = place.chain->rbegin(); function != place.chain->rend(); ++function) {
      location.bytes(otlp_field::kLines, line_of(*function));
    }
    put_attribute(location, otlp_field::kLocationAttributes, "profile.frame.type", frame_type_of(outermost.kind));
    known = locations_table_.put(std::move(encoded));
    return known;
  }

  /// A location that is not code.
  std::uint64_t marker(std::string_view name) {
    std::string encoded;
    ProtobufWriter(encoded).bytes(otlp_field::kLines, line_of({std::string(name), "", {}, ""}));
    return locations_table_.put(std::move(encoded));
  }

  std::string line_of(const store::NamedFrame& frame) {
    const std::string& whole = frame.full_name.empty() ? frame.name : frame.full_name;
    std::string function;
    ProtobufWriter(function)
        .number(otlp_field::kFunctionName, text(frame.name.empty() ? "[unnamed]" : frame.name))
        .number(otlp_field::kSystemName, text(whole))
        .number(otlp_field::kFunctionFile, text(frame.file));
    std::string line;
    ProtobufWriter(line)
        .number(otlp_field::kFunction, functions_.put(std::move(function)))
        .number(otlp_field::kLine, frame.line);
    return line;
  }

  std::uint64_t mapping_of(const store::NamedFrame& frame) {
    if (frame.module.empty()) return 0;
    std::string encoded;
    ProtobufWriter mapping(encoded);
    mapping.number(otlp_field::kMemoryLimit, ~std::uint64_t{0}).number(otlp_field::kFileName, text(frame.module));
    put_attribute(mapping, otlp_field::kMappingAttributes, "process.executable.build_id.gnu", frame.build_id);
    return mappings_.put(std::move(encoded));
  }

  void put_attribute(ProtobufWriter& out, std::uint32_t field, std::string_view key, std::string_view value) {
    if (value.empty()) return;
    std::string attribute;
    ProtobufWriter(attribute)
        .number(otlp_field::kAttributeKey, text(key))
        .bytes(otlp_field::kAttributeValue, any_text(repair_utf8(value)));
    std::string indices;
    ProtobufWriter(indices).varint(attributes_.put(std::move(attribute)));
    out.bytes(field, indices);
  }

  const store::StackProfile& profile_;
  const HostLabels& host_;
  const OtlpLayout layout_;
  std::string out_;
  std::vector<std::uint64_t> locations_;  ///< by frame: index in the table; 0: not there yet
  Table mappings_, locations_table_, functions_, strings_, attributes_, stacks_;
};

}  // namespace

Result<std::string> render_pyroscope(const store::StackProfile& profile, const HostLabels& host) {
  std::string request;
  ProtobufWriter out(request);
  for (const Service& service : services_of(profile)) {
    Result<std::string> pprof = gzip(encode_unlabelled_pprof(profile, service.counts));
    if (!pprof) return std::move(pprof).error();
    Labels labels = labels_of(service, host, kPyroscopeNames);
    labels.insert_or_assign("__name__", profile.measure == store::Measure::kWait ? "off_cpu" : "process_cpu");
    std::string series;
    for (const auto& [name, value] : labels) {
      ProtobufWriter(series).bytes(push_field::kLabels, pyroscope_label(name, value));
    }
    std::string sample;
    ProtobufWriter(sample)
        .bytes(push_field::kRawProfile, *pprof)
        .bytes(push_field::kId, uuid_of(id_of(profile, labels, host)));
    ProtobufWriter(series).bytes(push_field::kSamples, sample);
    out.bytes(push_field::kSeries, series);
  }
  return request;
}

std::string encode_otlp(const store::StackProfile& profile, const HostLabels& host, OtlpLayout layout) {
  return OtlpEncoder(profile, host, layout).encode();
}

Result<std::string> render_otlp(const store::StackProfile& profile, const HostLabels& host, OtlpLayout layout) {
  return gzip(encode_otlp(profile, host, layout));
}

}  // namespace flamed::api
