// The connections of a task to the other tasks of its job, over one Endpoint. Requests to parameter servers
// go through here: one whose server is lost is repeated when the server has come back, since servers know
// which commits they have made.
//
// Threads share the endpoint: one of those that wait polls it, for all of them. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
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

  /// `part` gets what no request of this task asked for, until `clear_part`; also what has come already.
  void set_part(TaskPart& part);
  void clear_part();

  /// Tells which of some variables, or of all, are on a server, for messages about its loss.
  using NamesOn = std::function<std::string(int server, std::span<const VariableIndex> some)>;
  void name_variables_by(NamesOn names_on);

  /// Their names, for messages.
  [[nodiscard]] std::string variables_on(int server, std::span<const VariableIndex> some);

  /// Sends the requests and waits for all answers, in the order of the requests.
  /// @throws the error that a server answers; Unavailable naming a server that is lost and does not come
  /// back, or that has come back without its variables; or when the job is over.
  std::vector<std::vector<std::byte>> ask(std::vector<Request> requests);
  std::vector<std::byte> ask(Request request);

  /// Tells the servers that this task's part has ended (kGoodbye) or the job (kJobOver), also one that is
  /// being started again. Does nothing once the job is over.
  void take_leave(MessageKind kind) noexcept;

  /// From now on servers are not asked any more, who have ended or are about to.
  void set_job_over() noexcept { job_is_over_.store(true); }
  [[nodiscard]] bool job_is_over() const noexcept { return job_is_over_.load(); }

  /// Reads variables of a server of this node without asking it; null for one of another node.
  [[nodiscard]] std::shared_ptr<const StoreReader> reader(int server);

  /// Whether a server is asked to read values in the memory of this process: one of this node, until it says
  /// that it cannot.
  [[nodiscard]] bool reads_memory(int server);
  void set_reads_no_memory(int server);

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
    const Waiting waiting(*this);
    wait(condition, [] { return false; });
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

  /// A thread in wait_until. When the last one has gone, another thread must poll.
  class Waiting {
   public:
    explicit Waiting(Connections& connections) noexcept : connections_(connections) {
      connections_.waiting_.fetch_add(1);
    }
    ~Waiting() {
      connections_.waiting_.fetch_sub(1);
      connections_.progress_.notify();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Connections& connections_;
  };

  /// The thread that polls, with the mutex held.
  class Polling {
   public:
    explicit Polling(Connections& connections) noexcept : connections_(connections) {
      connections_.polled_.store(true);
    }
    ~Polling() {
      connections_.polled_.store(false);
      connections_.mutex_.unlock();
      connections_.progress_.notify();
    }
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;

   private:
    Connections& connections_;
  };

  struct Server {
    remote::Peer* peer = nullptr;
    std::shared_ptr<const StoreReader> reader = {};
    std::uint64_t identity = 0;                 ///< of its store; 0: never asked
    bool known = false;                         ///< it has said which store it has
    bool gone = false;                          ///< it did not come back when it was waited for last
    std::shared_ptr<const Error> failure = {};  ///< it has come back without its variables
    bool reads_memory = false;                  ///< of this process
  };

  /// A request that was not answered yet.
  struct Pending {
    Request request;
    std::vector<std::byte> answer = {};
    std::unique_ptr<Error> failure = {};
    std::atomic<int>* left = nullptr;  ///< of those that the same caller waits for
    bool done = false;
  };

  /// A message that came before there was a part to take it.
  struct EarlyMessage {
    remote::Peer* peer;
    std::uint16_t kind;
    std::uint64_t number;
    std::vector<std::byte> body;
  };

  template <class Condition, class GiveWay>
  void wait(Condition& condition, GiveWay give_way);
  [[nodiscard]] bool wants_servers() const;

  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  [[nodiscard]] std::string what_is_lost_with(int server) const;
  void settle(Pending& pending);
  void identify(remote::Peer& peer, std::span<const std::byte> body);
  void connect_servers();
  void send(std::uint64_t number, Pending& pending);
  void fail_requests_to(int server, const Error& error);
  void give_up(std::span<const std::uint64_t> numbers) noexcept;
  [[nodiscard]] int server_of(const remote::Peer& peer) const noexcept;

  remote::TaskPlace place_;
  TaskPart* part_ = nullptr;
  std::vector<remote::Peer*> peers_;  ///< all that are not lost
  std::vector<EarlyMessage> early_;
  std::mutex mutex_;                 ///< held by the thread that uses the endpoint
  std::atomic<int> at_the_door_{0};  ///< threads that want to use it for a moment
  std::atomic<int> waiting_{0};      ///< threads in wait_until
  std::atomic<bool> polled_{false};
  EventCount progress_;
  std::atomic<bool> job_is_over_{false};
  NamesOn names_on_ = {};
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
    {
      const Polling polling(*this);
      connect_servers();
      endpoint_->wait_until([&] {
        progress_.notify();
        return condition() || at_the_door_.load() > 0 || give_way() || wants_servers();
      });
    }
    // Those at the door go first; they are quick.
    while (at_the_door_.load() > 0) std::this_thread::yield();
  }
}

}  // namespace cohort::server
