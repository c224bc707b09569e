// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_metrics.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

/// A help text escapes \ and line feed, a label's value also the double quote (Prometheus, "Exposition formats").
void append_escaped(std::string& out, std::string_view raw, bool is_label) {
  for (char c : repair_utf8(raw)) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && is_label) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (value == std::floor(value) && std::abs(value) < 0x1p53) {
    out += std::to_string(static_cast<std::int64_t>(value));  // 1000000, not 1e+06
  } else {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{}) out.append(text.data(), end);
  }
}

}  // namespace

std::string render_metrics(std::span<const Metric> metrics) {
  std::string out;
  for (const Metric& metric : metrics) {
    out += "# HELP " + metric.name + " ";
    append_escaped(out, metric.help, false);
    out += "\n# TYPE " + metric.name + (metric.type == Metric::Type::kCounter ? " counter\n" : " gauge\n");
    for (const Metric::Value& value : metric.values) {
      out += metric.name;
      if (!value.labels.empty()) {
        char separator = '{';
        for (const auto& [name, text] : value.labels) {
          out += separator;
          out += name;
          out += "=\"";
          append_escaped(out, text, true);
          out += '"';
          separator = ',';
        }
        out += '}';
      }
      out += ' ';
      append_value(out, value.value);
      out += '\n';
    }
  }
  return out;
}

}  // namespace flamed::api
