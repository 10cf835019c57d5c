// The TCP connections of one member of a communicator to members on other nodes, and which message belongs to
// which receive. The transports of the communicator and of all groups that are split off it share it.
//
// In a small communicator all members that can talk are connected when it is made; in a large one, of which
// most pairs never talk, two are connected by the first message between them. Should both send it at once,
// each connects, and each sends over its own connection.
//
// A message is sent at once, whether or not it is wanted yet: one that finds no receive is kept. Any thread
// may call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>
#include <cohort/remote/endpoint.h>

#include "cluster/peer_watch.h"
#include "remote/connecting.h"
#include "tcp_socket.h"

namespace cohort::rendezvous {

/// The first loss of a connection, of all members of a process.
class LostConnection {
 public:
  void note(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (record_.fault() == nullptr) record_.publish(error);
  }
  [[nodiscard]] const Error* fault() const noexcept { return record_.fault(); }

 private:
  std::mutex mutex_;
  FaultRecord record_;
};

struct TcpNetworkOptions {
  int rank = 0;                            ///< of the member
  std::vector<int> worker_of = {};         ///< of each member
  std::vector<WorkerInfo> workers = {};    ///< by rank, with their nodes
  std::string secret = {};                 ///< of the communicator
  std::shared_ptr<LostConnection> lost = {};
};

class TcpNetwork final : public Receiver {
 public:
  using Ticket = std::uint32_t;

  /// Listens. @throws Unavailable when the system refuses.
  explicit TcpNetwork(TcpNetworkOptions options);
  ~TcpNetwork() override;

  /// Where others connect to this member, as it is exchanged.
  [[nodiscard]] std::string address() const;
  /// Those of all members, by rank; before anything is sent.
  void set_addresses(std::span<const std::string> addresses);

  /// Begins to connect to all members of lower rank on other nodes.
  void start_connecting();
  /// The members on other nodes to which there is no connection.
  [[nodiscard]] std::vector<int> unconnected();
  /// What keeps a member from answering.
  [[nodiscard]] std::string report(int member);

  [[nodiscard]] Ticket send(int to, const Label& label, std::span<const std::byte> data);
  [[nodiscard]] Ticket receive(int from, const Label& label, std::span<std::byte> into);
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket);
  [[nodiscard]] bool cancel(Ticket ticket);

  void send_control(int to, const Label& label, std::string_view text);
  [[nodiscard]] std::optional<std::pair<int, std::string>> receive_control(const Label& label);

  /// Moves everything on.
  void progress();

  /// Messages of the group are expected from now on; without it, those that come early are kept.
  void open_group(std::uint64_t generation);
  /// Nothing reads or writes the memory of its transfers any more, and messages for it are dropped.
  void close_group(std::uint64_t generation);

 private:
  using Clock = std::chrono::steady_clock;

  struct Transfer {
    bool in_use = false;
    bool receives = false;
    bool done = false;
    std::size_t bytes = 0;
    std::span<std::byte> into = {};
    int member = 0;
    Label label = {};
    std::uint64_t polled = 0;  ///< the number of the last round in which somebody polled it
  };
  /// A message that nobody has asked for yet.
  struct Unexpected {
    MessageHeader header;
    std::unique_ptr<std::byte[]> memory;
    bool complete = false;
  };
  /// What arrives over a connection, one message at a time.
  struct Arriving {
    MessageHeader header = {};
    std::optional<Ticket> ticket = {};
    std::shared_ptr<Unexpected> unexpected = {};  ///< also of control messages
  };
  struct Peer {
    /// Messages go over the first. A second one there is where both have connected at once.
    std::vector<std::unique_ptr<TcpSocket>> sockets;
    std::optional<remote::Attempts> attempts;
    std::vector<Ticket> receives;                       ///< that no message has come for, in their order
    std::vector<std::shared_ptr<Unexpected>> arrived;  ///< in their order
    std::optional<Clock::time_point> lost_at;

    [[nodiscard]] bool is_connected() const { return !sockets.empty() && sockets.front()->is_connected(); }
  };

  [[nodiscard]] std::byte* begin(TcpSocket& from, const MessageHeader& header) override;
  void end(TcpSocket& from) override;

  [[nodiscard]] Ticket new_ticket(int member, const Label& label, std::size_t bytes);
  void release(Ticket ticket);
  void complete(Ticket ticket, std::size_t bytes);
  [[nodiscard]] Peer& peer(int member);
  /// The same, and connects to it if nobody has.
  [[nodiscard]] Peer& connected_peer(int member);
  void attach(watch::Fd socket, int member);
  void move_on();
  void move_on(TcpSocket& socket);
  void flush(TcpSocket& socket);
  void look_for_connections(Clock::time_point now);
  void judge_loss(const Transfer& transfer);
  [[nodiscard]] bool is_closed(const Label& label) const;
  [[nodiscard]] bool is_elsewhere(int member) const;
  [[nodiscard]] const WorkerInfo& worker_of(int member) const {
    return options_.workers[static_cast<std::size_t>(options_.worker_of[static_cast<std::size_t>(member)])];
  }

  const TcpNetworkOptions options_;
  std::mutex mutex_;
  remote::Identity identity_;
  std::vector<std::string> listens_at_;
  std::unique_ptr<remote::Lobby> lobby_;
  std::vector<remote::Address> addresses_;  ///< by member
  watch::Fd epoll_;                         ///< of all connections
  std::map<int, Peer> peers_;               ///< those that there is, or shall be, a connection to
  std::vector<TcpSocket*> sockets_;         ///< that are connected
  std::map<const TcpSocket*, Arriving> arriving_;
  int connecting_ = 0;               ///< peers that this member tries to connect to
  std::vector<Transfer> transfers_;  ///< by ticket
  std::vector<Ticket> free_;
  std::map<Label, std::deque<std::pair<int, std::string>>> control_;
  std::uint64_t rounds_ = 1;
  Clock::time_point looked_at_{};  ///< for those who connect
  std::set<std::uint64_t> open_groups_{0};
  std::uint64_t latest_group_ = 0;
};

}  // namespace cohort::rendezvous
