// The process at the other end of a local socket. Every user of the machine can read the names of such
// sockets, connect to them, and take a name that has become free. So both ends look who is there before they
// send or believe anything.
#pragma once

#include <sys/types.h>

#include <optional>

namespace cohort::watch {

/// The number of the process at the other end of a connected local socket, 0 where it is in a PID namespace
/// that this process cannot see. Nothing when it is not a process of this user.
[[nodiscard]] std::optional<pid_t> peer_of_this_user(int socket);

}  // namespace cohort::watch
