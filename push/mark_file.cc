// SPDX-License-Identifier: Apache-2.0
#include "push/mark_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/file.h"
#include "base/handle.h"

namespace flamed::push {
namespace {

std::string path_of(const std::string& folder, const std::string& name) { return folder + "/" + name + ".mark"; }

}  // namespace

Result<std::optional<Mark>> load_mark(const std::string& folder, const std::string& name) {
  constexpr std::size_t kMostBytes = 256;
  const std::string path = path_of(folder, name);
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text && text.error().code() == ENOENT) return std::optional<Mark>();
  if (!text) return text.error();
  const Result<Mark> mark = parse_mark(*text);
  if (!mark) return Error(mark.error()).with_context(path);
  return std::optional(*mark);
}

Status save_mark(const std::string& folder, const std::string& name, const Mark& mark) {
  const std::string path = path_of(folder, name);
  const std::string beside = path + ".new";
  const std::string text = to_text(mark);
  const Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::from_errno("cannot write " + beside);
  const bool is_written = ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                          ::fdatasync(file.get()) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  return is_written ? Status() : Status(Error::from_errno("cannot write " + path));
}

}  // namespace flamed::push
