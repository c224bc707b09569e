// SPDX-License-Identifier: Apache-2.0
#include "push/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/units.h"

namespace flamed::push {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNameBytes = 64;
constexpr std::size_t kMostSecretBytes = 16384;
constexpr std::int64_t kShortestAgeNs = 5 * kNsPerMinute;
constexpr std::int64_t kLongestAgeNs = 24 * 60 * kNsPerMinute;

struct FormatSpec {
  Format format;
  std::string_view name;
  std::string_view path;  ///< where receivers take it
};
constexpr std::array<FormatSpec, 3> kFormats{{
    {Format::kPyroscope, "pyroscope", "/push.v1.PusherService/Push"},
    {Format::kOtlp, "otlp", "/v1development/profiles"},
    {Format::kOtlpBefore110, "otlp-1.9", "/v1development/profiles"},
}};

const FormatSpec& spec_of(Format format) {
  return *std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatSpec& row) { return row.format == format; });
}

bool is_plain(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           also.find(c) != std::string_view::npos;
  });
}

/// Of a header's value: one line, so that no value becomes two headers.
bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_plain(std::string_view(&c, 1), "-._~")) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
  }
  return encoded;
}

Error bad(const std::string& key, const std::string& allowed) {
  return Error("bad value of " + key + "; allowed is " + allowed);
}

Result<std::string> text_of(const Json& value, const std::string& key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) return bad(key, "a text that is not empty");
  return value.get<std::string>();
}

Status set_name(Receiver& receiver, const Json& value) {
  Result<std::string> name = text_of(value, "name");
  // It becomes part of a file's name.
  if (!name || !is_plain(*name, "-_") || name->size() > kMostNameBytes) {
    return bad("name", "up to 64 letters, digits, - and _");
  }
  receiver.name = std::move(*name);
  return {};
}

Status set_format(Receiver& receiver, const Json& value) {
  const auto* const row = std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatSpec& spec) {
    return value.is_string() && value.get_ref<const std::string&>() == spec.name;
  });
  if (row == kFormats.end()) return bad("format", "pyroscope, otlp or otlp-1.9");
  receiver.format = row->format;
  return {};
}

Status set_url(Receiver& receiver, const Json& value) {
  const Error error = bad("url", "http://HOST:PORT or https://HOST:PORT, with a path or without");
  const Result<std::string> url = text_of(value, "url");
  if (!url || !is_plain(*url, ":/.-_~[]%")) return error;
  const std::size_t scheme = url->starts_with("https://") ? 8 : url->starts_with("http://") ? 7 : 0;
  if (scheme == 0) return error;
  const std::size_t slash = std::min(url->find('/', scheme), url->size());
  if (slash == scheme) return error;
  receiver.origin = url->substr(0, slash);
  receiver.path = url->substr(slash);
  return {};
}

Status set_interval(Receiver& receiver, const Json& value) {
  constexpr std::array<std::int64_t, 6> kIntervals{5, 10, 15, 20, 30, 60};  // minutes have a whole number of each
  const Result<std::string> text = text_of(value, "interval");
  const Result<std::int64_t> ns = text ? parse_duration_ns(*text) : Result<std::int64_t>(Error("no text"));
  if (!ns || std::find(kIntervals.begin(), kIntervals.end(), *ns / kNsPerSecond) == kIntervals.end()) {
    return bad("interval", "5s, 10s, 15s, 20s, 30s or 60s");
  }
  receiver.interval_ns = *ns;
  return {};
}

Status set_max_age(Receiver& receiver, const Json& value) {
  const Result<std::string> text = text_of(value, "max_age");
  const Result<std::int64_t> ns = text ? parse_duration_ns(*text) : Result<std::int64_t>(Error("no text"));
  if (!ns || *ns < kShortestAgeNs || *ns > kLongestAgeNs) return bad("max_age", "a duration from 5m to 24h");
  receiver.max_age_ns = *ns;
  return {};
}

Status set_measures(Receiver& receiver, const Json& value) {
  receiver.sends_cpu = receiver.sends_wait = false;
  const Error error = bad("measures", "[\"cpu\"], [\"wait\"] or [\"cpu\", \"wait\"]");
  if (!value.is_array() || value.empty()) return error;
  for (const Json& measure : value) {
    if (measure == "cpu") {
      receiver.sends_cpu = true;
    } else if (measure == "wait") {
      receiver.sends_wait = true;
    } else {
      return error;
    }
  }
  return {};
}

Status set_naming(Receiver& receiver, const Json& value) {
  if (value != "quick" && value != "all") return bad("naming", "\"quick\" or \"all\"");
  receiver.names_all = value == "all";
  return {};
}

/// {"unit": "nginx.service"} or {"unit": ["nginx", "redis"]}
Status set_selection(Receiver& receiver, const Json& value) {
  constexpr std::array<std::string_view, 8> kKeys{"comm", "exe", "unit", "container", "cgroup", "uid", "tree", "side"};
  const Error error =
      bad("select", "an object of texts or lists of texts, by comm, exe, unit, container, cgroup, uid, tree or side");
  if (!value.is_object()) return error;
  for (const auto& [key, texts] : value.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) return error;
    for (const Json& text : texts.is_array() ? texts : Json::array({texts})) {
      if (!text.is_string()) return error;
      receiver.selection += "&" + key + "=" + percent_encoded(text.get<std::string>());
    }
  }
  return {};
}

Status set_labels(Receiver& receiver, const Json& value) {
  const Error error = bad("labels", "an object of texts, with names of letters, digits, _ and .");
  if (!value.is_object()) return error;
  for (const auto& [name, text] : value.items()) {
    if (!is_plain(name, "_.") || name.starts_with("__") || !text.is_string() || text.get<std::string>().empty())
      return error;
    receiver.selection += "&label=" + percent_encoded(name + "=" + text.get<std::string>());
  }
  return {};
}

/// "text" or {"file": "name"}
Result<Secret> secret_of(const Json& value, const std::string& key) {
  if (value.is_string() && is_one_line(value.get<std::string>())) return Secret{value.get<std::string>()};
  if (value.is_object() && value.size() == 1 && value.contains("file")) {
    Result<std::string> file = text_of(value["file"], key);
    if (!file) return std::move(file).error();
    return Secret{"", std::move(*file)};
  }
  return bad(key, "a text of one line, or {\"file\": \"NAME\"}");
}

Result<Secret> secret_file_of(const Json& value, const std::string& key) {
  Result<std::string> file = text_of(value, key);
  if (!file) return std::move(file).error();
  return Secret{"", std::move(*file)};
}

Status set_headers(Receiver& receiver, const Json& value) {
  if (!value.is_object()) return bad("headers", "an object");
  for (const auto& [name, text] : value.items()) {
    if (!is_plain(name, "-_")) return bad("headers", "names of letters, digits, - and _");
    Result<Secret> secret = secret_of(text, "the header " + name);
    if (!secret) return std::move(secret).error();
    receiver.headers.emplace_back(name, std::move(*secret));
  }
  return {};
}

Status set_basic_auth(Receiver& receiver, const Json& value) {
  const Error error = bad("basic_auth", "{\"user\": \"NAME\", \"password_file\": \"FILE\"}");
  if (!value.is_object() || value.size() != 2 || !value.contains("user") || !value.contains("password_file"))
    return error;
  Result<std::string> user = text_of(value["user"], "user");
  Result<Secret> password = secret_file_of(value["password_file"], "password_file");
  if (!user || !password || !is_one_line(*user) || user->find(':') != std::string::npos) return error;
  receiver.user = std::move(*user);
  receiver.password = std::move(*password);
  return {};
}

Status set_bearer(Receiver& receiver, const Json& value) {
  Result<Secret> token = secret_file_of(value, "bearer_token_file");
  if (!token) return std::move(token).error();
  receiver.bearer_token = std::move(*token);
  return {};
}

Status set_ca_file(Receiver& receiver, const Json& value) {
  Result<std::string> file = text_of(value, "ca_file");
  if (!file) return std::move(file).error();
  receiver.ca_file = std::move(*file);
  return {};
}

struct Setting {
  std::string_view key;
  Status (*set)(Receiver&, const Json&);
};
constexpr std::array<Setting, 13> kSettings{{{"name", set_name},
                                             {"format", set_format},
                                             {"url", set_url},
                                             {"interval", set_interval},
                                             {"max_age", set_max_age},
                                             {"measures", set_measures},
                                             {"naming", set_naming},
                                             {"select", set_selection},
                                             {"labels", set_labels},
                                             {"headers", set_headers},
                                             {"basic_auth", set_basic_auth},
                                             {"bearer_token_file", set_bearer},
                                             {"ca_file", set_ca_file}}};

Error unknown_key(const std::string& key, std::string known) {
  return Error("unknown key '" + key + "'; known are " + std::move(known));
}

Result<Receiver> receiver_of(const Json& json) {
  if (!json.is_object()) return Error("not an object");
  Receiver receiver;
  for (const auto& [key, value] : json.items()) {
    const auto* const setting =
        std::find_if(kSettings.begin(), kSettings.end(), [&name = key](const Setting& row) { return row.key == name; });
    if (setting == kSettings.end()) {
      std::string known;
      for (const Setting& row : kSettings) known += (known.empty() ? "" : ", ") + std::string(row.key);
      return unknown_key(key, std::move(known));
    }
    if (Status set = setting->set(receiver, value); !set) return set.error();
  }
  for (const char* needed : {"name", "format", "url"}) {
    if (!json.contains(needed)) return Error(std::string(needed) + " is missing");
  }
  if (receiver.path.empty() || receiver.path == "/") receiver.path = spec_of(receiver.format).path;
  if (!receiver.user.empty() && !receiver.bearer_token.file.empty()) {
    return Error("basic_auth and bearer_token_file exclude each other");
  }
  return receiver;
}

Status read_secret(Secret& secret, const std::string& credentials) {
  if (secret.file.empty()) return {};
  std::string path = secret.file;
  if (path.find('/') == std::string::npos) {
    if (credentials.empty()) {
      return Error("the credential " + path + " is not there: name it in LoadCredential= of the unit, or give a path");
    }
    path = credentials + "/" + path;
  }
  Result<std::string> text = read_file(path, kMostSecretBytes);
  if (!text) return std::move(text).error();
  secret.text = text->substr(0, text->find_first_of("\r\n"));
  if (secret.text.empty() || !is_one_line(secret.text)) return Error(path + " has no line of text");
  return {};
}

}  // namespace

std::string_view name_of(Format format) { return spec_of(format).name; }

Result<Config> parse_config(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& exception) {
    return Error(std::string("not valid JSON: ") + exception.what());
  }
  if (!json.is_object()) return Error("not a JSON object; write { \"receivers\": [] }");
  Config config;
  std::set<std::string> names;
  for (const auto& [key, value] : json.items()) {
    if (key == "socket") {
      Result<std::string> path = text_of(value, key);
      if (!path || !path->starts_with('/')) return bad(key, "an absolute path");
      config.socket = std::move(*path);
    } else if (key == "receivers") {
      if (!value.is_array() || value.size() > kMostReceivers) return bad(key, "a list of at most 8 objects");
      for (const Json& item : value) {
        const std::string where = "receiver " + std::to_string(config.receivers.size() + 1);
        Result<Receiver> receiver = receiver_of(item);
        if (!receiver) return std::move(receiver).error().with_context(where);
        if (!names.insert(receiver->name).second) return Error(where + " has the name of another one");
        config.receivers.push_back(std::move(*receiver));
      }
    } else {
      return unknown_key(key, "socket, receivers");
    }
  }
  return config;
}

Status read_secrets(Config& config, const std::string& credentials) {
  for (Receiver& receiver : config.receivers) {
    std::vector<Secret*> secrets{&receiver.password, &receiver.bearer_token};
    for (auto& [name, secret] : receiver.headers) secrets.push_back(&secret);
    for (Secret* secret : secrets) {
      if (Status read = read_secret(*secret, credentials); !read) {
        return Error(read.error()).with_context("receiver " + receiver.name);
      }
    }
  }
  return {};
}

}  // namespace flamed::push
