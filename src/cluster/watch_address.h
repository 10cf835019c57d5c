// How the processes of a PeerWatch find each other: a listener's address as it is exchanged, and the two ways
// to connect to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fd.h"
#include "watch_link.h"

namespace cohort::watch {

/// Where a hub listens. The key and the answer prove to both ends that the other belongs to this job: the
/// name of a local socket can be read by everyone, and an IP address may belong to another machine in another
/// network.
struct Address {
  std::string local_name;          ///< of an abstract local socket; empty: none
  std::uint16_t port = 0;          ///< 0: no TCP
  std::vector<std::string> hosts;  ///< numeric addresses of all interfaces
  std::string key;
  std::string answer;
};

[[nodiscard]] std::string to_blob(const Address& address);
[[nodiscard]] Address parse_address(std::string_view blob);

/// 128 random bits as text.
[[nodiscard]] std::string random_token();

/// Both return no descriptor where the system refuses.
[[nodiscard]] Fd listen_local(const std::string& name);
[[nodiscard]] Fd listen_network(std::uint16_t& port);

/// The addresses of this host by which others may reach it; loopback only if there is nothing else.
[[nodiscard]] std::vector<std::string> own_hosts();

/// A link to the hub at `address`, after hello and welcome; null when it cannot be made in time.
/// Over the network all addresses are tried at once.
[[nodiscard]] std::unique_ptr<Link> connect_local(const Address& address, int own_rank,
                                                  std::chrono::milliseconds limit);
[[nodiscard]] std::unique_ptr<Link> connect_network(const Address& address, int own_rank,
                                                    std::chrono::milliseconds limit);

}  // namespace cohort::watch
