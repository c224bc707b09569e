// SPDX-License-Identifier: Apache-2.0
//
// Finds out who is at the other end of a connection that was accepted. One thread, that of `owners`.
#pragma once

#include "api/peer.h"
#include "api/socket_owners.h"

namespace flamed::api {

/// `owners` is null where the kernel cannot be asked: peers over TCP are nobody then.
Peer look_up_peer(int socket, SocketOwners* owners);

}  // namespace flamed::api
