// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a container engine about a container, and the names in its answer. The answer also has annotations,
// from Docker and Podman the environment as well, and so secrets.
//
// Docker, Podman: HTTP/1.0, so that the end of the answer is that of the connection.
//
//   GET /containers/ID/json HTTP/1.0        HTTP/1.0 200 OK, head, the JSON of parse_container_file()
//
// containerd, CRI-O: see cri_exchange.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "symbolizer/model/container_engine.h"
#include "symbolizer/model/container_file.h"

namespace flamed::symbolizer {

/// Of the whole answer. Kubernetes allows 256 KiB of annotations.
inline constexpr std::size_t kMaxEngineAnswerBytes = std::size_t{4} << 20;

/// All that is ever sent on a connection, see connect_engine(). Less than 1 KiB.
std::string engine_question(EngineProtocol protocol, std::string_view id);

/// Of a whole answer, from its first byte. Names as those of parse_container_file(); empty if the engine does not know
/// the container. Errors have no text of the answer. Pure.
Result<ContainerNames> parse_engine_answer(std::string_view answer, EngineProtocol protocol, std::string_view id);

/// The same from a connection, as far as it takes to know the names. Blocks until they have arrived or the engine hangs
/// up: the worker's limits end that.
Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, std::string_view id);

}  // namespace flamed::symbolizer
