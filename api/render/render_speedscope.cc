// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_speedscope.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "api/render/stack_frames.h"
#include "api/text/json_writer.h"
#include "base/keyed_hash.h"

namespace flamed::api {
namespace {

/// The table of functions that all profiles of the file share.
class FrameList {
 public:
  std::uint64_t index_of(const store::NamedFrame& frame) {
    const std::string key = frame.name + '\0' + frame.file + '\0' + std::to_string(frame.line);
    const auto [entry, is_new] = indices_.try_emplace(key, indices_.size());
    if (is_new) {
      json_.begin_object().key("name").string(frame.name.empty() ? "[unnamed]" : frame.name);
      if (!frame.file.empty()) json_.key("file").string(frame.file);
      if (frame.line != 0) json_.key("line").number(std::uint64_t{frame.line});
      json_.end_object();
    }
    return entry->second;
  }
  [[nodiscard]] const std::string& json() const { return text_; }

 private:
  std::string text_;
  JsonWriter json_{text_};
  std::unordered_map<std::string, std::uint64_t, KeyedTextHash> indices_;
};

/// One profile of the file.
struct Part {
  std::string name;
  std::vector<const store::StackCount*> counts;
};

std::vector<Part> parts_of(const store::StackProfile& profile, store::Group group, const std::string& name) {
  std::map<std::uint64_t, Part> parts;
  for (const store::StackCount& count : profile.counts) {
    const store::StackThread& thread = profile.threads[count.thread];
    const store::ProcessInfo& process = profile.processes[thread.process];
    const std::string pid = std::to_string(process.id.pid);
    std::uint64_t key = 0;
    std::string label = name;
    if (group == store::Group::kThread) {
      key = count.thread;
      label = thread.comm + " (" + pid + "/" + std::to_string(thread.tid) + ")";
    } else if (group == store::Group::kProcess) {
      key = thread.process;
      label = process.comm + " (" + pid + ")";
    }
    Part& part = parts[key];
    if (part.counts.empty()) part.name = std::move(label);
    part.counts.push_back(&count);
  }
  if (parts.empty()) return {{name, {}}};
  std::vector<Part> list;
  for (auto& [key, part] : parts) list.push_back(std::move(part));
  const auto weight = [](const Part& part) {
    std::uint64_t ns = 0;
    for (const store::StackCount* count : part.counts) ns += count->ns;
    return ns;
  };
  std::stable_sort(list.begin(), list.end(), [&](const Part& a, const Part& b) { return weight(a) > weight(b); });
  return list;
}

/// Outermost first.
void append_stack(JsonWriter& json, const store::StackProfile& profile, const store::StackCount& count,
                  FrameList& frames) {
  std::vector<std::uint64_t> functions;
  for (std::uint32_t stack = count.stack; stack != 0; stack = profile.nodes[stack].caller) {
    const store::InlineChain& chain = *profile.frames[profile.nodes[stack].frame].chain;
    for (auto function = chain.rbegin(); function != chain.rend(); ++function) {
      functions.push_back(frames.index_of(*function));
    }
  }
  if (count.truncation) functions.push_back(frames.index_of({store::marker_of(*count.truncation), "", {}, ""}));
  if (functions.empty()) functions.push_back(frames.index_of({std::string(kNoStack), "", {}, ""}));
  json.begin_array();
  for (auto function = functions.rbegin(); function != functions.rend(); ++function) json.number(*function);
  json.end_array();
}

}  // namespace

std::string render_speedscope(const store::StackProfile& profile, store::Group group, const std::string& name) {
  FrameList frames;
  std::string profiles;
  JsonWriter json(profiles);
  json.begin_array();
  for (const Part& part : parts_of(profile, group, name)) {
    std::uint64_t end = 0;
    json.begin_object();
    json.key("type").string("sampled");
    json.key("name").string(part.name);
    json.key("unit").string("nanoseconds");
    json.key("samples").begin_array();
    for (const store::StackCount* count : part.counts) append_stack(json, profile, *count, frames);
    json.end_array();
    json.key("weights").begin_array();
    for (const store::StackCount* count : part.counts) {
      json.number(count->ns);
      end += count->ns;
    }
    json.end_array();
    json.key("startValue").number(std::uint64_t{0});
    json.key("endValue").number(end);
    json.end_object();
  }
  json.end_array();

  std::string out;
  JsonWriter file(out);
  file.begin_object();
  file.key("$schema").string("https://www.speedscope.app/file-format-schema.json");
  file.key("exporter").string("flamed");
  file.key("name").string(name);
  file.key("activeProfileIndex").number(std::uint64_t{0});
  file.key("shared").begin_object().key("frames").begin_array();
  if (!frames.json().empty()) file.raw(frames.json());
  file.end_array().end_object();
  file.key("profiles").raw(profiles);
  file.end_object();
  out += '\n';
  return out;
}

}  // namespace flamed::api
