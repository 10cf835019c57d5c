// The connections of a task to the other tasks of its job, over one Endpoint. Requests to parameter servers
// go through here: one whose server is lost is repeated when the server has come back, since servers know
// which commits they have made.
//
// Threads share the endpoint: one of those that wait polls it, for all of them. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/event_count.h>
#include <cohort/remote/endpoint.h>
#include <cohort/remote/task_place.h>

#include "server/protocol.h"
#include "server/store_reader.h"

namespace cohort::server {

/// What a task does beside asking servers: its part as a server, as a worker, or as the coordinator. Called
/// by the thread that polls; it may send, but not wait.
class TaskPart {
 public:
  virtual ~TaskPart() = default;
  virtual void on_connected(remote::Peer& /*peer*/) {}
  virtual void on_message(remote::Peer& peer, const remote::Message& message) = 0;
  virtual void on_lost(remote::Peer& /*peer*/, const Error& /*error*/) {}
};

struct Request {
  int server = 0;
  MessageKind kind = MessageKind::kRead;
  std::vector<std::byte> body = {};
};

class Connections final : private remote::Handler {
 public:
  /// `offered`, a descriptor, is given to the processes of this node; -1: none. @throws what Endpoint throws.
  explicit Connections(remote::TaskPlace place, int offered = -1);
  ~Connections() override;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  [[nodiscard]] const remote::TaskPlace& place() const noexcept { return place_; }
  [[nodiscard]] int servers() const noexcept { return static_cast<int>(servers_.size()); }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return endpoint_->incarnation(); }

  /// `part`, which outlives this object, gets what no request of this task asked for. Before the first wait.
  void set_part(TaskPart& part) noexcept { part_ = &part; }
  void clear_part();

  /// Sends the requests and waits for all answers, in the order of the requests.
  /// @throws the error that a server answers; Unavailable naming a server that is lost and does not come
  /// back, or that has come back without its variables.
  std::vector<std::vector<std::byte>> ask(std::vector<Request> requests);
  std::vector<std::byte> ask(Request request);

  /// Sends a message without an answer to all servers that are there.
  void tell_servers(MessageKind kind);

  /// Reads variables of a server of this node without asking it; null for one of another node.
  [[nodiscard]] std::shared_ptr<const StoreReader> reader(int server);

  /// Connects to another task than a server. @throws as Endpoint::connect.
  remote::Peer& connect(const ClusterTask& task, Deadline deadline);

  /// Calls `function` while no other thread uses the endpoint: for sending.
  template <class Function>
  decltype(auto) exclusively(Function&& function) {
    const Turn turn(*this);
    return std::forward<Function>(function)();
  }

  /// Polls, or lets another thread poll, until the condition is true. It reads atomically.
  template <class Condition>
  void wait_until(Condition condition) {
    waiting_.fetch_add(1);
    wait(condition, [] { return false; });
    waiting_.fetch_sub(1);
  }

  /// The same for a thread that polls only while no other one waits.
  template <class Condition>
  void poll_until(Condition condition) {
    wait(condition, [this] { return waiting_.load() > 0; });
  }

  /// Handles what has arrived, if no other thread is about to.
  void poll();

  /// Has those who wait look at their conditions.
  void notify() noexcept;

 private:
  /// The use of the endpoint by one thread.
  class Turn {
   public:
    explicit Turn(Connections& connections);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Connections& connections_;
  };

  struct Server {
    remote::Peer* peer = nullptr;
    std::shared_ptr<const StoreReader> reader = {};
    std::uint64_t identity = 0;  ///< of its store; 0: not asked yet
  };

  /// A request that was not answered yet.
  struct Pending {
    Request request;
    std::vector<std::byte> answer = {};
    std::unique_ptr<Error> failure = {};
    std::atomic<int>* left = nullptr;  ///< of those that the same caller waits for
    bool done = false;
  };

  template <class Condition, class GiveWay>
  void wait(Condition& condition, GiveWay give_way);
  [[nodiscard]] bool wants_servers() const;

  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void settle(Pending& pending);
  void identify(remote::Peer& peer, std::span<const std::byte> body);
  void connect_servers();
  void send(std::uint64_t number, const Pending& pending);
  void fail_requests_to(int server, const Error& error);
  [[nodiscard]] int server_of(const remote::Peer& peer) const noexcept;

  remote::TaskPlace place_;
  TaskPart* part_ = nullptr;
  std::mutex mutex_;                 ///< held by the thread that uses the endpoint
  std::atomic<int> at_the_door_{0};  ///< threads that want to use it for a moment
  std::atomic<int> waiting_{0};      ///< threads in wait_until
  std::atomic<bool> polled_{false};
  EventCount progress_;
  std::vector<Server> servers_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t next_number_ = 1;
  std::unique_ptr<remote::Endpoint> endpoint_;  ///< last, so that it ends first
};

template <class Condition, class GiveWay>
void Connections::wait(Condition& condition, GiveWay give_way) {
  while (!condition()) {
    if (give_way() || !mutex_.try_lock()) {
      progress_.wait_until([&] { return condition() || (!give_way() && !polled_.load()); });
      continue;
    }
    polled_.store(true);
    connect_servers();
    endpoint_->wait_until([&] {
      progress_.notify();
      return condition() || at_the_door_.load() > 0 || give_way() || wants_servers();
    });
    polled_.store(false);
    mutex_.unlock();
    progress_.notify();
    // Those at the door go first; they are quick.
    while (at_the_door_.load() > 0) std::this_thread::yield();
  }
}

}  // namespace cohort::server
