// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/flood_filter.h"

#include <cctype>
#include <utility>

namespace flamed::daemon {
namespace {

constexpr std::size_t kShapeBytes = 96;

}  // namespace

std::string FloodFilter::shape_of(std::string_view message) {
  std::string shape;
  bool in_path = false;
  bool in_quotes = false;
  for (const char c : message) {
    if (shape.size() >= kShapeBytes) break;
    if (c == '\'' || c == '"') in_quotes = !in_quotes;
    if (c == '/') in_path = true;
    if (c == ' ' || c == ':') in_path = false;
    if (in_path || in_quotes) continue;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (shape.empty() || shape.back() != '0') shape += '0';
      continue;
    }
    shape += c;
  }
  return shape;
}

FloodFilter::Decision FloodFilter::admit(std::string_view message, MonotonicTime now) {
  std::string key = shape_of(message);
  if (shapes_.size() >= kMostShapes && shapes_.count(key) == 0) {
    std::erase_if(shapes_, [&](const auto& entry) {
      return entry.second.left_out == 0 && now.ns - entry.second.since.ns >= kPeriodNs;
    });
    if (shapes_.size() >= kMostShapes) key.clear();
  }
  Shape& shape = shapes_.try_emplace(std::move(key), Shape{now}).first->second;
  Decision decision;
  if (now.ns - shape.since.ns >= kPeriodNs) {
    decision.left_out = std::exchange(shape.left_out, 0);
    shape.since = now;
    shape.written = 0;
  }
  if (shape.written >= kBurst) {
    ++shape.left_out;
    decision.write = false;
    return decision;
  }
  ++shape.written;
  return decision;
}

}  // namespace flamed::daemon
