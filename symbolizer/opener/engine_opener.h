// SPDX-License-Identifier: Apache-2.0
//
// Connects to the socket of a container engine, and asks. What connects also sends the question, so that the process
// that reads the answer need not write to the socket, and its sandbox forbids it.
#pragma once

#include <string>
#include <string_view>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::symbolizer {

/// A connection on which `question` was sent as a whole. Only to a socket of root's or of flamed's own user, at which a
/// process of one of these two listens, and by a path without symbolic links. Waits for nobody; reads of the connection
/// do.
Result<Fd> connect_engine(const std::string& path, std::string_view question);

}  // namespace flamed::symbolizer
