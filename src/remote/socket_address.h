// Addresses of sockets as text and as the system wants them, and the sockets that listen there.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "cluster/sockets.h"

namespace cohort::remote {

using watch::SocketAddress;

/// `127.0.0.1:4000` or `[::1]:4000`; nothing when the text is neither.
[[nodiscard]] std::optional<SocketAddress> parse_network_address(const std::string& text);

/// Nothing when the name does not fit.
[[nodiscard]] std::optional<SocketAddress> abstract_local_address(const std::string& name);

/// Both make a socket that does not block and ends with this program's image.
/// @throws Unavailable when the system refuses.
[[nodiscard]] watch::Fd listen_on_network();
[[nodiscard]] watch::Fd listen_locally();

/// Prepares a listener that another process may have made.
/// @throws InvalidArgument when `listener` is none of `family` (AF_UNIX, or AF_INET for both kinds of it).
[[nodiscard]] watch::Fd take_over(int listener, int family);

/// Where others reach a listener: all addresses of this host, unless it is bound to one.
[[nodiscard]] std::vector<std::string> network_addresses(int listener);
[[nodiscard]] std::string local_name(int listener);

}  // namespace cohort::remote
