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

#include <cohort/collective/transport.h>

namespace cohort::testing {

/// What the transports of all members share.
class Switchboard {
 public:
  explicit Switchboard(int members) : notes_(static_cast<std::size_t>(members)) {}

 private:
  friend class ThreadTransport;

  struct Parcel {
    explicit Parcel(std::span<const std::byte> bytes) : data(bytes) {}
    std::span<const std::byte> data;
    bool taken = false;
  };
  using Line = std::tuple<int, int, Transport::Channel, int>;  ///< from, to, channel, tag

  std::mutex mutex_;
  std::map<Line, std::deque<std::shared_ptr<Parcel>>> sent_;
  std::vector<std::deque<Transport::Note>> notes_;  ///< by receiver
  /// Of groups, by their members and numbers.
  std::map<std::pair<std::vector<int>, int>, std::weak_ptr<Switchboard>> groups_;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Switchboard> board, int rank) : board_(std::move(board)), rank_(rank) {}
  ~ThreadTransport() override {
    if (group_ != 0) numbers_->give_back(group_);
  }

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override;
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> room) override;
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override;
  void cancel(Ticket ticket) override;
  void tell(int member, std::string_view note) override;
  [[nodiscard]] std::optional<Note> hear() override;
  [[nodiscard]] GroupOffer group_offer() const override { return numbers_->offer(); }
  [[nodiscard]] std::unique_ptr<Transport> split(std::span<const int> members,
                                                 const GroupName& name) override;
  [[nodiscard]] bool any_thread() const noexcept override { return true; }

 private:
  struct Pending {
    std::shared_ptr<Switchboard::Parcel> sent;  ///< null for a receive
    Switchboard::Line line;
    std::span<std::byte> room;
    std::optional<std::size_t> received;
  };
  void deliver(const Switchboard::Line& line);

  std::shared_ptr<Switchboard> board_;
  int rank_;
  int group_ = 0;
  std::shared_ptr<GroupNumbers> numbers_ = std::make_shared<GroupNumbers>(GroupOffer::kNumbers);
  Ticket next_ = 0;
  std::map<Ticket, Pending> pending_;  ///< receives of one line complete in the order of their tickets
};

}  // namespace cohort::testing
