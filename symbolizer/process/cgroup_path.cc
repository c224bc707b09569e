// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/cgroup_path.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kContainerIdDigits = 64;
/// The longest name of a systemd unit (UNIT_NAME_MAX).
constexpr std::size_t kLongestUnit = 255;
/// Types of units with processes, except slices (systemd.unit(5)).
constexpr std::array<std::string_view, 5> kUnitSuffixes{".service", ".scope", ".socket", ".mount", ".swap"};
/// Hierarchies of cgroup v1 that show containers, best first; "name=systemd" has the units.
constexpr std::array<std::string_view, 4> kHierarchies{"name=systemd", "memory", "pids", "cpu"};
/// The kernel's step out of a cgroup namespace (kernfs_path_from_node()). No cgroup is called so.
constexpr std::string_view kUp = "/..";

/// Takes the part up to `separator` off the front of `text`, with the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

bool is_in(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (take_until(list, ',') == word) return true;
  }
  return false;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool is_container_id(std::string_view text) {
  return text.size() == kContainerIdDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return hex_value(c) >= 0; });
}

/// systemd writes bytes that are not allowed in a unit's name as \xNN (systemd.unit(5), "String escaping").
std::string unescape(std::string_view name) {
  std::string plain;
  while (!name.empty()) {
    if (name.size() >= 4 && name[0] == '\\' && name[1] == 'x' && hex_value(name[2]) >= 0 && hex_value(name[3]) >= 0) {
      plain += static_cast<char>(hex_value(name[2]) * 16 + hex_value(name[3]));
      name.remove_prefix(4);
    } else {
      plain += name.front();
      name.remove_prefix(1);
    }
  }
  return plain;
}

bool is_unit(std::string_view part) {
  if (part.size() > kLongestUnit || part.front() == '.') return false;
  return std::any_of(kUnitSuffixes.begin(), kUnitSuffixes.end(),
                     [&](std::string_view suffix) { return part.size() > suffix.size() && part.ends_with(suffix); });
}

std::string_view between(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (text.size() <= prefix.size() + suffix.size() || !text.starts_with(prefix) || !text.ends_with(suffix)) return {};
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

/// The container of one part of a path; empty if it is none. `above` is the part before it.
std::string container_of(std::string_view part, std::string_view above) {
  if (part.starts_with("crio-conmon-") || part.starts_with("libpod-conmon-")) return {};
  if (const std::string_view name = between(part, "lxc.payload.", ""); !name.empty()) return std::string(name);
  if (above == "lxc") return std::string(part);
  if (const std::string_view name = between(part, "machine-", ".scope"); !name.empty()) return unescape(name);
  if (const std::string_view name = between(part, "systemd-nspawn@", ".service"); !name.empty()) return unescape(name);
  // docker-ID.scope, cri-containerd-ID.scope, crio-ID, libpod-ID.scope, and SLICE:cri-containerd:ID where runtimes
  // disagree about who manages cgroups: in all of them the id comes last.
  std::string_view id = part;
  if (id.ends_with(".scope")) id.remove_suffix(std::string_view(".scope").size());
  if (id.size() > kContainerIdDigits) {
    const char before = id[id.size() - kContainerIdDigits - 1];
    if (before != '-' && before != ':') return {};
    id.remove_prefix(id.size() - kContainerIdDigits);
  }
  return is_container_id(id) ? std::string(id) : std::string();
}

}  // namespace

CgroupLine parse_proc_cgroup(std::string_view text) {
  CgroupLine unified;
  std::array<std::string_view, kHierarchies.size()> older;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view id = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (!line.starts_with('/')) continue;
    if (id == "0" && controllers.empty()) unified = {line, true};
    for (std::size_t i = 0; i < kHierarchies.size(); ++i) {
      if (older[i].empty() && is_in(controllers, kHierarchies[i])) older[i] = line;
    }
  }
  if (unified.path.size() > 1) return unified;
  for (const std::string_view path : older) {
    if (path.size() > 1) return {path, false};
  }
  if (!unified.path.empty()) return unified;
  const auto root = std::find_if(older.begin(), older.end(), [](std::string_view path) { return !path.empty(); });
  return root == older.end() ? CgroupLine{} : CgroupLine{*root, false};
}

std::size_t levels_above(std::string_view path) {
  std::size_t levels = 0;
  for (; path == kUp || path.starts_with("/../"); path.remove_prefix(kUp.size())) ++levels;
  return levels;
}

std::string path_in_hierarchy(std::string_view own, std::string_view path) {
  if (own.empty()) return std::string(path);
  const std::size_t levels = levels_above(path);
  path.remove_prefix(levels * kUp.size());
  for (std::size_t i = 0; i < levels && !own.empty(); ++i) own = own.substr(0, own.rfind('/'));
  if (path == "/") path = {};
  std::string whole = std::string(own) + std::string(path);
  return whole.empty() ? "/" : whole;
}

CgroupNames parse_cgroup_path(std::string_view path) {
  CgroupNames names;
  std::string_view above;
  while (!path.empty()) {
    const std::string_view part = take_until(path, '/');
    if (part.empty()) continue;
    const bool is_manager = part == "init.scope" && !names.unit.empty();
    if (is_unit(part) && !is_manager) names.unit = std::string(part);
    if (std::string container = container_of(part, above); !container.empty()) names.container = std::move(container);
    above = part;
  }
  return names;
}

}  // namespace flamed::symbolizer
