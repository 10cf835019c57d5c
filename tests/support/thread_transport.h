// A Transport between threads. A send completes when its receive has copied the data from the sender's
// buffer, as for long messages over a network, so that an algorithm which reuses a buffer too early shows
// under the thread sanitizer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "collective/network/transport.h"

namespace cohort::testing {

/// What the transports of all members share.
class Switchboard {
 public:
  explicit Switchboard(int members) : control_messages_(static_cast<std::size_t>(members)) {}

 private:
  friend class ThreadTransport;

  struct Envelope {
    explicit Envelope(std::span<const std::byte> bytes) : data(bytes) {}
    std::span<const std::byte> data;
    bool taken = false;
  };
  using Line = std::tuple<int, int, Transport::Channel, int>;  ///< from, to, channel, tag

  std::mutex mutex_;
  std::map<Line, std::deque<std::shared_ptr<Envelope>>> sent_;
  std::vector<std::deque<Transport::ControlMessage>> control_messages_;  ///< by receiver
  /// Of groups, by their members and numbers.
  std::map<std::pair<std::vector<int>, int>, std::weak_ptr<Switchboard>> groups_;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Switchboard> board, int rank) : board_(std::move(board)), rank_(rank) {}
  ~ThreadTransport() override {
    if (group_ != 0) context_ids_->give_back(group_);
  }

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override;
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override;
  [[nodiscard]] bool cancel(Ticket ticket) override;
  void send_control(int member, std::string_view text) override;
  [[nodiscard]] std::optional<ControlMessage> receive_control() override;
  [[nodiscard]] ContextIdSet free_context_ids() const override { return context_ids_->free_ids(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members, const ContextId& id) override;
  [[nodiscard]] bool any_thread() const noexcept override { return true; }

 private:
  struct Pending {
    std::shared_ptr<Switchboard::Envelope> sent;  ///< null for a receive
    Switchboard::Line line;
    std::span<std::byte> into;
    std::optional<std::size_t> received;
  };
  void deliver(const Switchboard::Line& line);

  std::shared_ptr<Switchboard> board_;
  int rank_;
  int group_ = 0;
  std::shared_ptr<ContextIdPool> context_ids_ = std::make_shared<ContextIdPool>(ContextIdSet::kIds);
  Ticket next_ = 0;
  std::map<Ticket, Pending> pending_;  ///< receives of one line complete in the order of their tickets
};

}  // namespace cohort::testing
