// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace flamed {

Error Error::from_errno(std::string_view what, int code) {
  std::string message(what);
  message += ": ";
  message += std::generic_category().message(code);
  return Error(std::move(message), code);
}

Error Error::with_context(std::string_view what) && {
  std::string message(what);
  message += ": ";
  message += message_;
  return Error(std::move(message), code_);
}

}  // namespace flamed
