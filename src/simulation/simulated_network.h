// A network between the members of a cluster that is only simulated: messages take their time by a model, on
// a virtual clock, and arrive in one process. One thread.
//
// A short message is copied and sent at once (eager). A longer one waits until its receive is there and
// both sides know it (rendezvous), and is copied from the sender's memory to the receiver's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cohort/base/monotonic_clock.h>

#include "collective/network/transport.h"

namespace cohort::simulation {

/// How long a message is on its way. It leaves by its node's link, whose direction it has to itself for its
/// bytes, and at least for `gap_seconds`; it crosses the links of both nodes' groups if these differ, and
/// arrives by the other node's link. Members of a node share its link. Each link passes messages in the order
/// in which they were sent.
struct NetworkModel {
  double latency_seconds = 2e-6;                      ///< between any two nodes
  double seconds_per_byte = 0.08e-9;                  ///< of a node's link: 100 Gbit/s
  double gap_seconds = 0.2e-6;                        ///< at least, between two messages of a node
  std::size_t eager_bytes = std::size_t{8} << 10;     ///< longer messages wait for their receives
  int nodes_of_group = 0;                             ///< nodes below one switch; 0: all
  double taper = 1;                                   ///< nodes' bandwidth over that of their group's link
  std::size_t message_bytes = std::size_t{56} << 10;  ///< longest message of a long collective
};

/// What goes wrong, from a time on, counted from the beginning of the simulation.
struct Fault {
  enum class Kind {
    kDelay,      ///< messages of `node` take `seconds` longer
    kKill,       ///< `member` does nothing any more
    kCut,        ///< nothing passes between `node` and `other`
    kPartition,  ///< nothing passes between the nodes up to `node` and those after it
  };
  Kind kind = Kind::kDelay;
  double at_seconds = 0;
  int member = 0;
  int node = 0;
  int other = 0;
  double seconds = 0;
};

struct SimulatedNetworkOptions {
  NetworkModel model = {};
  std::vector<int> node_of = {};  ///< of each member
  std::vector<Fault> faults = {};
  std::size_t copied_bytes = SIZE_MAX;  ///< of each message, where only times matter and not results
};

class SimulatedNetwork {
 public:
  using Ticket = Transport::Ticket;

  explicit SimulatedNetwork(SimulatedNetworkOptions options);

  [[nodiscard]] int node_of(int member) const noexcept {
    return options_.node_of[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] ScratchPool& scratch_pool() noexcept { return scratch_pool_; }
  [[nodiscard]] const NetworkModel& model() const noexcept { return options_.model; }

  /// Since the beginning.
  [[nodiscard]] double seconds() const noexcept { return now_; }
  [[nodiscard]] bool is_dead(int member) const noexcept;

  /// From then on this thread's time is the system's again, which is later.
  void end_virtual_time() { clock_.reset(); }

  /// Moves the clock on to the next member that a transfer or a control message is there for, which it
  /// returns; nothing where there is none until `latest`, at which the clock is then.
  [[nodiscard]] std::optional<int> go_on(double latest);

  // What a SimulatedTransport does for its member. `group` is the number of the group's context id, or 0 for
  // the communicator of all members; members have the numbers that they have there.
  [[nodiscard]] Ticket send(int rank, int group, const Transport::Address& to,
                            std::span<const std::byte> data);
  [[nodiscard]] Ticket receive(int rank, int group, const Transport::Address& from,
                               std::span<std::byte> into);
  [[nodiscard]] std::optional<std::size_t> poll(int rank, Ticket ticket);
  [[nodiscard]] bool cancel(int rank, Ticket ticket);
  void send_control(int rank, int group, int to, std::string_view text);
  [[nodiscard]] std::optional<Transport::ControlMessage> receive_control(int rank, int group);

 private:
  using LineKey = std::uint64_t;  ///< of a receiver's messages: sender, channel, group and tag
  using MessageNumber = std::uint32_t;

  /// The first and the last of a queue whose elements have the number of the next one. There are as many
  /// queues as members have partners and tags, so an empty one takes no memory.
  struct Queue {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    [[nodiscard]] bool empty() const noexcept { return first == kNone; }
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Message {
    int from = 0;
    int to = 0;
    int group = 0;  ///< of a control message
    Ticket sender_ticket = 0;
    std::span<const std::byte> data = {};
    std::vector<std::byte> copy = {};  ///< of an eager message
    std::string control = {};          ///< of a control message
    bool is_eager = false;
    bool has_arrived = false;
    double sent_at = 0;
    std::optional<Ticket> receive = {};  ///< once they have met
    MessageNumber next = kNone;          ///< of its line
  };
  struct Transfer {
    bool is_done = false;
    std::size_t bytes = 0;
    std::span<std::byte> into = {};
    LineKey line = 0;
    Ticket next = kNone;  ///< of its line
  };
  /// One of the two is empty.
  struct Line {
    Queue messages;  ///< without a receive, in the order in which they were sent
    Queue receives;  ///< without a message
  };
  struct GroupMessage {
    int group = 0;
    Transport::ControlMessage message;
  };
  struct Member {
    std::vector<Transfer> transfers;
    std::vector<Ticket> free;
    std::unordered_map<LineKey, Line> lines;   ///< that are not empty
    std::list<GroupMessage> control_messages;  ///< mostly none
  };
  /// What happens to a message.
  enum class Step : std::uint8_t {
    kStarts,   ///< waits for its node's link
    kEnters,   ///< its first byte is on the way
    kHasLeft,  ///< its last byte is
    kArrives,  ///< its last byte is there
  };
  struct Event {
    double at = 0;
    std::uint64_t number = 0;  ///< events of one time go in the order in which they were made
    MessageNumber message = 0;
    Step step = Step::kStarts;
    friend bool operator>(const Event& a, const Event& b) {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  using FreeAt = std::vector<double>;  ///< when one direction of each link is free again

  [[nodiscard]] Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Ticket new_transfer(int rank, const Transfer& transfer);
  [[nodiscard]] MessageNumber new_message(int from, int to);
  void forget(MessageNumber number);
  template <class Element>
  static void push(Queue& queue, std::vector<Element>& elements, std::uint32_t number);
  template <class Element>
  static std::uint32_t pop(Queue& queue, const std::vector<Element>& elements);
  void meet(MessageNumber number, Ticket receive);
  void start(MessageNumber number);
  void enter(MessageNumber number);
  void add_event(double at, MessageNumber number, Step step);
  std::optional<int> handle(const Event& event);
  void complete_receive(MessageNumber number);
  [[nodiscard]] std::span<const std::byte> copied_part(std::span<const std::byte> data) const noexcept {
    return data.first(std::min(data.size(), options_.copied_bytes));
  }
  [[nodiscard]] bool is_cut(int from, int to) const noexcept;
  [[nodiscard]] double delay_of(int node) const noexcept;
  void set_time(double seconds);

  SimulatedNetworkOptions options_;
  ScratchPool scratch_pool_;
  std::optional<VirtualClock> clock_;
  MonotonicClock::time_point began_;
  double now_ = 0;
  std::vector<Member> members_;
  std::vector<Message> messages_;
  std::vector<MessageNumber> free_messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  FreeAt out_;  ///< by node
  FreeAt in_;
  FreeAt group_out_;  ///< by group of nodes
  FreeAt group_in_;
};

/// The Transport of one member of a simulated cluster, or of a group of its members. Groups live as long as
/// the cluster, so their context ids are not given back.
class SimulatedTransport final : public Transport {
 public:
  /// `network` outlives it.
  SimulatedTransport(SimulatedNetwork& network, int rank)
      : network_(network), rank_(rank), context_ids_(std::make_shared<ContextIdPool>(ContextIdSet::kIds)) {}

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    return network_.send(rank_, group_, in_cluster(to), data);
  }
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override {
    return network_.receive(rank_, group_, in_cluster(from), into);
  }
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override {
    return network_.poll(rank_, ticket);
  }
  [[nodiscard]] bool cancel(Ticket ticket) override { return network_.cancel(rank_, ticket); }
  void send_control(int member, std::string_view text) override {
    network_.send_control(rank_, group_, rank_in_cluster(member), text);
  }
  [[nodiscard]] std::optional<ControlMessage> receive_control() override;
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return network_.model().message_bytes; }

  [[nodiscard]] ContextIdSet free_context_ids() const override { return context_ids_->free_ids(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members, const ContextId& id) override;
  /// The network is not driven any more when members are destroyed.
  [[nodiscard]] bool ends_transfers() const noexcept override { return true; }
  /// The simulated members' data takes no more memory than they use at a time.
  [[nodiscard]] ScratchPool* shared_scratch_pool() noexcept override { return &network_.scratch_pool(); }
  /// Only the thread that simulates: no progress thread drives its members.
  [[nodiscard]] bool any_thread() const noexcept override { return false; }

 private:
  [[nodiscard]] int rank_in_cluster(int member) const noexcept {
    return cluster_ranks_.empty() ? member : cluster_ranks_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] Address in_cluster(const Address& address) const noexcept {
    return {address.channel, rank_in_cluster(address.member), address.tag};
  }

  SimulatedNetwork& network_;
  int rank_;  ///< in the cluster
  std::shared_ptr<ContextIdPool> context_ids_;
  int group_ = 0;
  std::vector<int> cluster_ranks_;  ///< of the group's members; empty where they are all members
};

}  // namespace cohort::simulation
