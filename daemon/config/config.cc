// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/units.h"
#include "daemon/config/refusal.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kConfigLimitBytes = 1U << 20;
constexpr std::array<std::string_view, 6> kLogLevels{"trace", "debug", "info", "warning", "error", "critical"};

constexpr unsigned kMinFrequencyHz = 1;
constexpr unsigned kMaxFrequencyHz = 1000;
constexpr double kMinCpuShare = 0.0001;
constexpr double kMinPressure = 0.01;
constexpr std::int64_t kMinRetentionNs = kNsPerMinute;
constexpr std::int64_t kMaxRetentionNs = 31LL * 24 * 60 * kNsPerMinute;
constexpr std::uint64_t kMinBudgetBytes = 8U << 20;
constexpr std::uint64_t kMaxBudgetBytes = 1ULL << 40;
constexpr std::uint64_t kMinUnwindBytes = 1U << 20;
constexpr std::uint64_t kMaxUnwindBytes = 512U << 20;  ///< FLAMED_MAX_SLABS

constexpr std::uint64_t kMinHistoryBytes = 16U << 20;
constexpr std::int64_t kMinHistoryAgeNs = 24LL * 60 * kNsPerMinute;
constexpr std::int64_t kMaxHistoryAgeNs = 3660LL * 24 * 60 * kNsPerMinute;

constexpr std::size_t kMostListenAddresses = 16;
constexpr std::size_t kMostContainerEngines = 8;

/// One setting: its key in the file, its flag, and its parser.
struct Setting {
  std::string_view key;
  std::string_view flag;
  std::string_view placeholder;
  std::string_view help;
  std::string_view allowed;
  Status (*set)(Config&, std::string_view);
  bool (*differs)(const Config&, const Config&);
  /// For a setting with several values: clears the earlier ones, of the file or the default.
  void (*clear)(Config&) = nullptr;
};

Status set_listen(Config& config, std::string_view text) {
  Result<api::ListenAddress> address = api::parse_listen_address(text);
  if (!address) return std::move(address).error();
  if (config.listen.size() >= kMostListenAddresses) return Error("too many addresses");
  if (std::find(config.listen.begin(), config.listen.end(), *address) != config.listen.end()) {
    return Error("given twice");
  }
  config.listen.push_back(std::move(address).value());
  return {};
}

void clear_listen(Config& config) { config.listen.clear(); }

Status set_token_file(Config& config, std::string_view text) {
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) return Error("not an absolute path");
  config.token_file = std::string(text);
  return {};
}

Status set_frequency(Config& config, std::string_view text) {
  unsigned hz = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hz);
  if (error != std::errc{} || end != text.data() + text.size()) return Error("not a whole number");
  if (hz < kMinFrequencyHz || hz > kMaxFrequencyHz) return Error("out of range");
  config.frequency_hz = hz;
  return {};
}

/// "0.3%" is 0.003.
Result<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) return Error("without a percent sign");
  text.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return Error("not a number of percent");
  return percent / 100;
}

Status set_cpu_budget(Config& config, std::string_view text) {
  if (text == "off") {
    config.cpu_budget.reset();
    return {};
  }
  const Result<double> share = parse_percent(text);
  if (!share) return Error(share.error());
  if (!(*share >= kMinCpuShare && *share <= 1)) return Error("out of range");
  config.cpu_budget = *share;
  return {};
}

Status set_retention(Config& config, std::string_view text) {
  Result<std::int64_t> ns = parse_duration_ns(text);
  if (!ns) return std::move(ns).error();
  if (*ns < kMinRetentionNs || *ns > kMaxRetentionNs) return Error("out of range");
  config.retention_ns = *ns;
  return {};
}

Status set_budget(Config& config, std::string_view text) {
  Result<std::uint64_t> bytes = parse_size_bytes(text);
  if (!bytes) return std::move(bytes).error();
  if (*bytes < kMinBudgetBytes || *bytes > kMaxBudgetBytes) return Error("out of range");
  config.memory_budget_bytes = *bytes;
  return {};
}

Status set_unwind(Config& config, std::string_view text) {
  if (text != "tables" && text != "frame-pointers") return Error("not a known choice");
  config.use_unwind_tables = text == "tables";
  return {};
}

Status set_unwind_memory(Config& config, std::string_view text) {
  Result<std::uint64_t> bytes = parse_size_bytes(text);
  if (!bytes) return std::move(bytes).error();
  if (*bytes < kMinUnwindBytes || *bytes > kMaxUnwindBytes) return Error("out of range");
  config.unwind_budget_bytes = *bytes;
  return {};
}

Status set_command_lines(Config& config, std::string_view text) {
  if (text == "full")
    config.command_lines = symbolizer::CommandLines::kFull;
  else if (text == "redacted")
    config.command_lines = symbolizer::CommandLines::kRedacted;
  else if (text == "off")
    config.command_lines = symbolizer::CommandLines::kOff;
  else
    return Error("not a known choice");
  return {};
}

Status set_runtimes(Config& config, std::string_view text) {
  runtimes::RuntimeKinds kinds = text == "on" ? runtimes::RuntimeKinds::all() : runtimes::RuntimeKinds();
  bool is_known = text == "on" || text == "off";
  for (std::string_view rest = text; !is_known && !rest.empty();) {
    const std::string_view key = rest.substr(0, rest.find(','));
    const auto kind = std::find_if(runtimes::kRuntimeKinds.begin(), runtimes::kRuntimeKinds.end(),
                                   [&](runtimes::RuntimeKind each) { return runtimes::key_of(each) == key; });
    if (kind == runtimes::kRuntimeKinds.end()) break;
    kinds.add(*kind);
    is_known = key.size() == rest.size();
    rest.remove_prefix(std::min(key.size() + 1, rest.size()));
  }
  if (!is_known) return Error("not a known choice");
  config.runtimes = kinds;
  return {};
}

Status set_pressure(Config& config, std::string_view text) {
  PressureLimits limits;
  for (std::size_t begin = 0; text != "off" && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = part.find('=');
    const auto* const name = std::find(kResourceNames.begin(), kResourceNames.end(), part.substr(0, equals));
    if (name == kResourceNames.end() || equals == std::string_view::npos) return Error("not a known choice");
    std::optional<double>& limit = limits[static_cast<std::size_t>(name - kResourceNames.begin())];
    if (limit) return Error("given twice");
    const Result<double> share = parse_percent(part.substr(equals + 1));
    if (!share) return Error(share.error());
    if (!(*share >= kMinPressure && *share <= 1)) return Error("out of range");
    limit = *share;
  }
  config.pressure = limits;
  return {};
}

template <auto kMember>
Status set_switch(Config& config, std::string_view text) {
  if (text != "on" && text != "off") return Error("neither");
  config.*kMember = text == "on";
  return {};
}

Status set_debuginfod(Config& config, std::string_view text) {
  config.debuginfod_urls.clear();
  if (text == "off") return {};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view url = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (url.empty()) continue;
    const bool known = url.starts_with("http://") || url.starts_with("https://") || url.starts_with("file://");
    const bool plain = std::all_of(url.begin(), url.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    if (!known || !plain) return Error("not the address of a server");
    if (!config.debuginfod_urls.empty()) config.debuginfod_urls += ' ';
    config.debuginfod_urls += url;
  }
  if (config.debuginfod_urls.empty()) return Error("no address");
  return {};
}

Status set_container_engines(Config& config, std::string_view text) {
  using symbolizer::EngineProtocol;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view protocol = text.substr(0, colon);
  const std::string_view path = text.substr(std::min(colon + 1, text.size()));
  if (protocol != "cri" && protocol != "docker") return Error("neither cri: nor docker:");
  if (!path.starts_with('/') || path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) {
    return Error("not an absolute path");
  }
  const symbolizer::ContainerEngine engine{protocol == "cri" ? EngineProtocol::kCri : EngineProtocol::kDocker,
                                           std::string(path)};
  auto& engines = config.container_engines;
  if (std::find(engines.begin(), engines.end(), engine) != engines.end()) return Error("given twice");
  if (engines.size() >= kMostContainerEngines) return Error("too many engines");
  engines.push_back(engine);
  return {};
}

void clear_container_engines(Config& config) { config.container_engines.clear(); }

Status set_history(Config& config, std::string_view text) {
  if (text == "off") {
    config.history_folder = "";
    return {};
  }
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) return Error("not an absolute path");
  config.history_folder = std::string(text);
  return {};
}

Status set_history_size(Config& config, std::string_view text) {
  Result<std::uint64_t> bytes = parse_size_bytes(text);
  if (!bytes) return std::move(bytes).error();
  if (*bytes < kMinHistoryBytes || *bytes > kMaxBudgetBytes) return Error("out of range");
  config.history_bytes = *bytes;
  return {};
}

Status set_history_age(Config& config, std::string_view text) {
  Result<std::int64_t> ns = parse_duration_ns(text);
  if (!ns) return std::move(ns).error();
  if (*ns < kMinHistoryAgeNs || *ns > kMaxHistoryAgeNs) return Error("out of range");
  config.history_age_ns = *ns;
  return {};
}

Status set_log_level(Config& config, std::string_view text) {
  if (std::find(kLogLevels.begin(), kLogLevels.end(), text) == kLogLevels.end()) return Error("no such level");
  config.log_level = std::string(text);
  return {};
}

template <auto kMember>
bool is_different(const Config& a, const Config& b) {
  return a.*kMember != b.*kMember;
}

constexpr std::array<Setting, 19> kSettings{{
    {"listen", "--listen", "ADDRESS", "HOST:PORT or unix:/PATH, may be repeated; default 127.0.0.1:9090",
     "HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:9091 or [::1]:9090, or a path, such as "
     "unix:/run/flamed/flamed.sock; at most 16 different ones",
     set_listen, is_different<&Config::listen>, clear_listen},
    {"token_file", "--token-file", "FILE", "tokens with which other hosts may ask; none by default",
     "the absolute path of a file", set_token_file, is_different<&Config::token_file>},
    {"frequency_hz", "--frequency", "HZ", "samples per second and CPU; default 99", "a whole number from 1 to 1000",
     set_frequency, is_different<&Config::frequency_hz>},
    {"cpu_budget", "--cpu-budget", "SHARE", "of all CPUs' time, for flamed itself, or off; default 0.3%",
     "off, or a share from 0.01% to 100% of the CPU time of all CPUs, such as 0.3%", set_cpu_budget,
     is_different<&Config::cpu_budget>},
    {"retention", "--retention", "DURATION", "how far back answers reach; default 24h",
     "a duration from 1m to 31d, such as 90m or 24h", set_retention, is_different<&Config::retention_ns>},
    {"memory_budget", "--memory-budget", "SIZE", "memory for stored samples; default 256MiB",
     "a size from 8MiB to 1024GiB, such as 256MiB", set_budget, is_different<&Config::memory_budget_bytes>},
    {"unwind", "--unwind", "HOW", "user stacks by unwind tables (default) or frame pointers alone",
     "tables or frame-pointers", set_unwind, is_different<&Config::use_unwind_tables>},
    {"unwind_memory", "--unwind-memory", "SIZE", "kernel memory for unwind rows; default 128MiB",
     "a size from 1MiB to 512MiB, such as 128MiB", set_unwind_memory, is_different<&Config::unwind_budget_bytes>},
    {"stack_slices", "--stack-slices", "on|off", "keep parts of new programs' stacks until they are walked; default on",
     "on or off", set_switch<&Config::stack_slices>, is_different<&Config::stack_slices>},
    {"waits", "--waits", "on|off", "visit waiting threads; default on", "on or off", set_switch<&Config::waits>,
     is_different<&Config::waits>},
    {"pressure", "--pressure", "LIMITS",
     "mark minutes in which threads waited for so much of the time; default cpu=50%,io=50%,memory=10%",
     "off, or shares from 1% to 100% for some of cpu, io and memory, such as cpu=50%,io=50%,memory=10%", set_pressure,
     is_different<&Config::pressure>},
    {"command_lines", "--command-lines", "HOW", "full (default), redacted (no values of options), or off",
     "full, redacted or off", set_command_lines, is_different<&Config::command_lines>},
    {"runtimes", "--runtimes", "WHICH",
     "show functions of managed runtimes: on (default), off, or some of python,node,java",
     "on, off, or some of python, node and java, with commas between them", set_runtimes,
     is_different<&Config::runtimes>},
    {"debuginfod", "--debuginfod", "URLS", "servers to fetch debug files from; default off",
     "off, or addresses that begin with http://, https:// or file://, separated by spaces", set_debuginfod,
     is_different<&Config::debuginfod_urls>},
    {"container_engines", "--container-engines", "SOCKET",
     "cri:/PATH or docker:/PATH, asked for names of containers, may be repeated; none by default",
     "cri: or docker: and the absolute path of a socket, such as cri:/run/containerd/containerd.sock; at most 8 "
     "different ones",
     set_container_engines, is_different<&Config::container_engines>, clear_container_engines},
    {"history", "--history", "FOLDER", "minutes on disk, or off; default: of the service, /var/lib/flamed/history",
     "off, or the absolute path of a folder", set_history, is_different<&Config::history_folder>},
    {"history_size", "--history-size", "SIZE", "bytes of these; default 1GiB",
     "a size from 16MiB to 1024GiB, such as 1GiB", set_history_size, is_different<&Config::history_bytes>},
    {"history_age", "--history-age", "DURATION", "age of the oldest of these; default 30d",
     "a duration from 1d to 3660d, such as 30d", set_history_age, is_different<&Config::history_age_ns>},
    {"log_level", "--log-level", "LEVEL", "default info", "one of trace, debug, info, warning, error, critical",
     set_log_level, is_different<&Config::log_level>},
}};

/// The line of the value of `key` in a JSON object with comments, counted from 1; of several the last, which is used.
/// 0: none.
std::size_t line_of_key(std::string_view text, std::string_view key) {
  std::size_t line = 1;
  std::size_t found = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (text[i] == '\n') {
      ++line;
    } else if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size()) - 1;
    } else if (rest.starts_with("/*")) {
      const std::size_t end = std::min(rest.find("*/", 2), rest.size() - 1);
      line += static_cast<std::size_t>(std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      i += end;
    } else if (text[i] == '{' || text[i] == '[') {
      ++depth;
    } else if (text[i] == '}' || text[i] == ']') {
      --depth;
    } else if (text[i] == '"') {
      const std::size_t begin = ++i;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      const std::size_t after = text.find_first_not_of(" \t\r\n", std::min(i + 1, text.size()));
      const bool is_key = after != std::string_view::npos && text[after] == ':';
      if (depth == 1 && is_key && text.substr(begin, i - begin) == key) found = line;
    }
  }
  return found;
}

Error on_line_of(std::string_view text, std::string_view key, Error error) {
  const std::size_t line = line_of_key(text, key);
  return line == 0 ? error : std::move(error).with_context("line " + std::to_string(line));
}

Error bad_value(std::string_view name, std::string_view value, const Setting& setting, const Error& why) {
  return Error("bad value '" + std::string(value) + "' for " + std::string(name) + ": " + why.message() +
               "; allowed is " + std::string(setting.allowed));
}

std::string known_keys() {
  std::string keys;
  for (const Setting& setting : kSettings) {
    if (!keys.empty()) keys += ", ";
    keys += setting.key;
  }
  return keys;
}

/// Begins the values of one setting in a source that overrides earlier ones.
void begin_values(const Setting& setting, Config& config) {
  if (setting.clear != nullptr) setting.clear(config);
}

/// `name` is the key or the flag, `by` the file or the flag.
Status apply(const Setting& setting, std::string_view name, std::string_view value, const std::string& by,
             Config& config) {
  Status set = setting.set(config, value);
  if (!set) return bad_value(name, value, setting, set.error());
  config.set_by.insert_or_assign(setting.key, by);
  return {};
}

Status apply_json_value(const Setting& setting, const nlohmann::json& value, const std::string& file, Config& config) {
  if (!value.is_string() && !value.is_number()) {
    // dump() is recursive, and the nesting can be as deep as the file has bytes.
    const std::string shown = value.is_structured() ? value.type_name() : value.dump();
    return bad_value(setting.key, shown, setting, Error("not a string or a number"));
  }
  return apply(setting, setting.key, value.is_string() ? value.get<std::string>() : value.dump(), file, config);
}

/// A flag with its value, as "--flag value" or "--flag=value".
class Arguments {
 public:
  explicit Arguments(std::span<const char* const> arguments) : rest_(arguments) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }

  std::string_view take_flag() {
    const std::string_view word = rest_.front();
    rest_ = rest_.subspan(1);
    const std::size_t equals = word.find('=');
    has_attached_value_ = false;
    if (word.starts_with("--") && equals != std::string_view::npos) {
      attached_ = word.substr(equals + 1);
      has_attached_value_ = true;
      return word.substr(0, equals);
    }
    return word;
  }

  Result<std::string_view> take_value(std::string_view flag) {
    if (std::exchange(has_attached_value_, false)) return attached_;
    if (rest_.empty()) return Error(std::string(flag) + " needs a value; see flamed --help");
    const std::string_view value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }

  [[nodiscard]] bool has_attached_value() const { return has_attached_value_; }

 private:
  std::span<const char* const> rest_;
  std::string_view attached_;
  bool has_attached_value_ = false;
};

}  // namespace

std::string where_set(const Config& config, std::string_view key) {
  const auto found = config.set_by.find(key);
  return found == config.set_by.end() ? "default" : found->second;
}

Status apply_json(std::string_view text, Config& config, const std::string& file) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& exception) {
    return Error(std::string("not valid JSON: ") + exception.what());
  }
  if (!document.is_object()) return Error("not a JSON object; write { \"listen\": \"127.0.0.1:9090\" }");
  for (const auto& [key, value] : document.items()) {
    const auto setting = std::find_if(kSettings.begin(), kSettings.end(),
                                      [&name = key](const Setting& candidate) { return candidate.key == name; });
    if (setting == kSettings.end()) {
      return on_line_of(text, key, Error("unknown key '" + key + "'; known are " + known_keys()));
    }
    begin_values(*setting, config);
    if (value.is_array() && setting->clear != nullptr) {
      for (const nlohmann::json& item : value) {
        if (Status set = apply_json_value(*setting, item, file, config); !set)
          return on_line_of(text, key, set.error());
      }
    } else if (Status set = apply_json_value(*setting, value, file, config); !set) {
      return on_line_of(text, key, set.error());
    }
  }
  return {};
}

Result<CommandLine> parse_command_line(std::span<const char* const> arguments) {
  CommandLine line;
  std::optional<std::string> file;
  std::vector<std::pair<const Setting*, std::string>> flags;

  for (Arguments words(arguments); !words.empty();) {
    const std::string_view flag = words.take_flag();
    const auto setting = std::find_if(kSettings.begin(), kSettings.end(),
                                      [&](const Setting& candidate) { return candidate.flag == flag; });
    if (setting != kSettings.end() || flag == "--config") {
      const Result<std::string_view> value = words.take_value(flag);
      if (!value) return Error(value.error());
      if (flag == "--config")
        file = std::string(*value);
      else
        flags.emplace_back(&*setting, std::string(*value));
      continue;
    }
    if (flag == "--export" || flag == "--open") {
      line.action = flag == "--open" ? CommandLine::Action::kOpen : CommandLine::Action::kExport;
      const bool is_export = line.action == CommandLine::Action::kExport;
      for (std::string* operand : is_export ? std::vector{&line.from, &line.to, &line.file} : std::vector{&line.file}) {
        const Result<std::string_view> value = words.take_value(flag);
        if (!value && is_export) return Error("--export needs FROM, TO and FILE; see flamed --help");
        if (!value) return Error(value.error());
        *operand = std::string(*value);
      }
      continue;
    }
    if (flag == "--check-config")
      line.action = CommandLine::Action::kCheckConfig;
    else if (flag == "--check-history")
      line.action = CommandLine::Action::kCheckHistory;
    else if (flag == "--version")
      line.action = CommandLine::Action::kVersion;
    else if (flag == "--help" || flag == "-h")
      line.action = CommandLine::Action::kHelp;
    else
      return Error("unknown argument '" + std::string(flag) + "'; see flamed --help");
    if (words.has_attached_value()) return Error(std::string(flag) + " takes no value; see flamed --help");
  }
  if (line.action == CommandLine::Action::kVersion || line.action == CommandLine::Action::kHelp) return line;

  const bool may_read = file || line.action != CommandLine::Action::kOpen;
  Result<std::string> text = may_read ? read_file(file.value_or(kDefaultConfigFile), kConfigLimitBytes)
                                      : Result<std::string>(Error("not read", ENOENT));
  if (text) {
    line.config_file = file.value_or(kDefaultConfigFile);
    if (Status applied = apply_json(*text, line.config, line.config_file); !applied) {
      return Error(applied.error()).with_context(line.config_file);
    }
  } else if (file || text.error().code() != ENOENT) {
    return std::move(text).error().with_context("cannot read the configuration");
  }
  for (const auto& flag : flags) begin_values(*flag.first, line.config);
  for (const auto& [setting, value] : flags) {
    if (Status set = apply(*setting, setting->flag, value, std::string(setting->flag), line.config); !set)
      return Error(set.error());
  }
  for (const api::ListenAddress& address : line.config.listen) {
    if (line.config.token_file.empty() && api::is_beyond_loopback(address)) {
      return api::beyond_loopback(api::to_string(address));
    }
  }
  return line;
}

std::string history_folder(const Config& config) {
  if (config.history_folder) return *config.history_folder;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread writes the environment.
  const char* folder = std::getenv("STATE_DIRECTORY");
  return folder == nullptr ? "" : std::string(folder) + "/history";
}

std::vector<std::string_view> changed_keys(const Config& before, const Config& after) {
  std::vector<std::string_view> keys;
  for (const Setting& setting : kSettings) {
    if (setting.differs(before, after)) keys.push_back(setting.key);
  }
  return keys;
}

std::string help_text() {
  std::string text =
      "flamed: what was this machine's CPU doing, in any process, at any time?\n\n"
      "usage: flamed [options]\n\n"
      "  --config FILE              JSON with comments; default " +
      std::string(kDefaultConfigFile) + " if it exists\n";
  for (const Setting& setting : kSettings) {
    std::string left = "  " + std::string(setting.flag) + " " + std::string(setting.placeholder);
    left.resize(std::max<std::size_t>(left.size() + 1, 29), ' ');
    text += left + std::string(setting.help) + "\n";
  }
  text +=
      "  --check-config             say whether the configuration is good, and end\n"
      "  --check-history            read all minutes on disk, say what is damaged, and end\n"
      "  --export FROM TO FILE      copy a stretch of the minutes on disk to a new file, and end; times as in a URL\n"
      "  --open FILE                answer from such a file, without sampling; default address 127.0.0.1:9091\n"
      "  --version\n"
      "  --help\n\n"
      "exit status:\n";
  for (const ExitStatusMeaning& one : exit_statuses()) {
    const std::string number = std::to_string(static_cast<int>(one.status));
    text += std::string(4 - number.size(), ' ') + number + "  " + std::string(one.meaning) + "\n";
  }
  text +=
      "\n"
      "Then ask: curl 'localhost:9090/profile?pid=PID', or open http://localhost:9090/ in a browser.\n";
  return text;
}

}  // namespace flamed::daemon
