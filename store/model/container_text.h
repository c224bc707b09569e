// SPDX-License-Identifier: Apache-2.0
//
// The text of ProcessInfo::container: an id of 64 hex digits; or an id, a blank, and what the container is called; or a
// name alone. In Kubernetes a container is called "namespace/pod/container", elsewhere it is one name without a slash.
// One text, since the name comes with the id everywhere: in the store, in the history on disk, in answers. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::store {

inline constexpr std::size_t kContainerIdDigits = 64;

struct ContainerText {
  std::string_view id;    ///< or the name, where there is no id
  std::string_view name;  ///< empty: not known, or there is no id

  /// What to show and to group by: containers that follow each other under one name are one.
  [[nodiscard]] std::string_view shown() const { return name.empty() ? id : name; }
};

inline ContainerText split_container(std::string_view text) {
  const bool has_name = text.size() > kContainerIdDigits + 1 && text[kContainerIdDigits] == ' ' &&
                        text.find_first_not_of("0123456789abcdef") == kContainerIdDigits;
  if (!has_name) return {text, {}};
  return {text.substr(0, kContainerIdDigits), text.substr(kContainerIdDigits + 1)};
}

inline std::string join_container(std::string_view id, std::string_view name) {
  return std::string(id) + (name.empty() ? "" : " ") + std::string(name);
}

/// The parts of a name; the first two are empty outside of Kubernetes.
struct ContainerParts {
  std::string_view pod_namespace;
  std::string_view pod;
  std::string_view container;
};

inline ContainerParts parts_of_container(std::string_view name) {
  const std::size_t first = name.find('/');
  const std::size_t second = first == std::string_view::npos ? first : name.find('/', first + 1);
  if (second == std::string_view::npos) return {{}, {}, name};
  return {name.substr(0, first), name.substr(first + 1, second - first - 1), name.substr(second + 1)};
}

}  // namespace flamed::store
