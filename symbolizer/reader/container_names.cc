// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/container_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

using Json = nlohmann::json;

/// With more levels the file is none of a container runtime.
constexpr std::size_t kMaxDepth = 64;

enum class Part : std::uint8_t { kName, kPod, kNamespace };

struct Key {
  std::string_view key;
  Part part;
};
/// As containerd's CRI plugin, CRI-O and the kubelet call them, and nerdctl.
constexpr std::array<Key, 7> kAnnotations{{{"io.kubernetes.cri.container-name", Part::kName},
                                           {"io.kubernetes.cri.sandbox-name", Part::kPod},
                                           {"io.kubernetes.cri.sandbox-namespace", Part::kNamespace},
                                           {"io.kubernetes.container.name", Part::kName},
                                           {"io.kubernetes.pod.name", Part::kPod},
                                           {"io.kubernetes.pod.namespace", Part::kNamespace},
                                           {"nerdctl/name", Part::kName}}};

std::string& part_of(ContainerNames& names, Part part) {
  return part == Part::kName ? names.name : part == Part::kPod ? names.pod : names.pod_namespace;
}

/// Called for each value of the JSON text, in order. False: nothing further is read.
class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(ContainerFormat format, std::string_view id) : format_(format), id_(id) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 1 && format_ == ContainerFormat::kContainerStorage) entry_ = {};
    return go_in();
  }
  bool start_array(std::size_t /*elements*/) override { return go_in(); }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && format_ == ContainerFormat::kContainerStorage && entry_.is_wanted) {
      names_.name = entry_.name;
      return false;
    }
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*exception*/) override {
    is_wrong_ = true;
    return false;
  }

  bool key(string_t& key) override {
    // A path's key is kept as far as it is looked at: at most 3 levels.
    if (depth_ <= path_.size()) path_[depth_ - 1] = key.size() <= kMaxContainerNameBytes ? key : std::string();
    return true;
  }

  bool string(string_t& value) override {
    switch (format_) {
      case ContainerFormat::kOciConfig:
        if (depth_ == 2 && path_[0] == "annotations") take_container_annotation(path_[1], value, names_);
        break;
      case ContainerFormat::kDockerConfig:
        // An engine also finds a container by its name, which may be another one's id.
        if (depth_ == 1 && (path_[0] == "Id" || path_[0] == "ID")) is_other_ = value != id_;
        if (depth_ == 1 && path_[0] == "Name") own_name_ = value.starts_with('/') ? value.substr(1) : value;
        if (depth_ == 3 && path_[0] == "Config" && path_[1] == "Labels") {
          take_container_annotation(path_[2], value, names_);
        }
        break;
      case ContainerFormat::kContainerStorage:
        // Within the array of names depth is 3, and the key is still "names".
        if (depth_ == 2 && path_[1] == "id") entry_.is_wanted = value == id_;
        if (depth_ == 3 && path_[1] == "names" && entry_.name.empty()) entry_.name = clean_container_name(value);
        break;
    }
    return true;
  }

  [[nodiscard]] bool is_wrong() const { return is_wrong_; }
  ContainerNames take() {
    if (is_other_) return {};
    if (names_.name.empty()) names_.name = clean_container_name(own_name_);
    return std::move(names_);
  }

 private:
  struct Entry {
    bool is_wanted = false;
    std::string name;
  };

  bool go_in() {
    is_wrong_ = is_wrong_ || depth_ >= kMaxDepth;
    ++depth_;
    if (depth_ <= path_.size()) path_[depth_ - 1].clear();
    return !is_wrong_;
  }

  const ContainerFormat format_;
  const std::string_view id_;
  std::size_t depth_ = 0;
  std::array<std::string, 3> path_{};  ///< the last keys of the outermost levels
  std::string own_name_;
  Entry entry_;
  ContainerNames names_;
  bool is_other_ = false;
  bool is_wrong_ = false;
};

}  // namespace

std::string clean_container_name(std::string_view name) {
  std::string clean = clean_name(name, kMaxContainerNameBytes);
  std::replace(clean.begin(), clean.end(), '/', '_');
  return clean;
}

void take_container_annotation(std::string_view key, std::string_view value, ContainerNames& names) {
  const auto* const known =
      std::find_if(kAnnotations.begin(), kAnnotations.end(), [&](const Key& row) { return row.key == key; });
  if (known != kAnnotations.end()) part_of(names, known->part) = clean_container_name(value);
}

Result<ContainerNames> parse_container_file(std::string_view json, ContainerFormat format, std::string_view id) {
  if (json.size() > kMaxContainerFileBytes) return Error("it is larger than any such file");
  Handler handler(format, id);
  // False also if the handler has seen enough.
  static_cast<void>(Json::sax_parse(json.begin(), json.end(), &handler));
  // The parser's own words have a part of the text.
  if (handler.is_wrong()) return Error("it is not the JSON of a container runtime");
  return handler.take();
}

Result<ContainerNames> read_container_file(int fd, ContainerFormat format, std::string_view id) {
  const Result<std::string> text = read_fd(fd, kMaxContainerFileBytes);
  if (!text) return text.error();
  return parse_container_file(*text, format, id);
}

ContainerNames parse_container_log_name(std::string_view file, std::string_view id) {
  constexpr std::string_view kEnd = ".log";
  if (!is_container_id(id) || !file.ends_with(kEnd)) return {};
  file.remove_suffix(kEnd.size());
  if (!file.ends_with(id)) return {};
  file.remove_suffix(id.size());
  if (!file.ends_with('-')) return {};
  file.remove_suffix(1);
  // None of the three has an underscore.
  const std::size_t first = file.find('_');
  const std::size_t second = first == std::string_view::npos ? first : file.find('_', first + 1);
  if (second == std::string_view::npos || file.find('_', second + 1) != std::string_view::npos) return {};
  ContainerNames names{clean_container_name(file.substr(second + 1)), clean_container_name(file.substr(0, first)),
                       clean_container_name(file.substr(first + 1, second - first - 1))};
  const bool is_whole = !names.name.empty() && !names.pod.empty() && !names.pod_namespace.empty();
  return is_whole ? names : ContainerNames();
}

}  // namespace flamed::symbolizer
