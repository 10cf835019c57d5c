// The connections of a task to the other tasks of its job, over one SharedEndpoint. Requests to parameter
// servers go through here: one whose server is lost is repeated when the server has come back, since servers
// know which commits they have made. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/remote/endpoint.h>
#include <cohort/remote/task_place.h>

#include "remote/shared_endpoint.h"
#include "server/serving/protocol.h"
#include "server/store/store.h"

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
  std::optional<Tensor> end = {};   ///< its bytes follow the body; not copied, so they stay until the answer
  std::optional<Tensor> into = {};  ///< gets a large value at the end of the answer, if it is as large
};

class Connections final : private remote::Handler, private remote::Upkeep {
 public:
  /// `offered`, a descriptor, is given to the processes of this node; -1: none. @throws what Endpoint throws.
  explicit Connections(remote::TaskPlace place, int offered = -1);
  ~Connections() override;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  [[nodiscard]] const remote::TaskPlace& place() const noexcept { return place_; }
  [[nodiscard]] int servers() const noexcept { return static_cast<int>(servers_.size()); }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return shared_->incarnation(); }

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

  /// As SharedEndpoint's.
  template <class Function>
  decltype(auto) exclusively(Function&& function) {
    return shared_->exclusively(std::forward<Function>(function));
  }
  template <class Condition>
  void wait_until(Condition condition) {
    shared_->wait_until(std::move(condition));
  }
  template <class Condition>
  void poll_until(Condition condition) {
    shared_->poll_until(std::move(condition));
  }
  void poll() { shared_->poll(); }
  void notify() noexcept { shared_->notify(); }

 private:
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

  /// Whether a request is for a server that this task is not connected to.
  [[nodiscard]] bool is_due() const override;
  /// Connects to those servers.
  void run() override;

  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;
  [[nodiscard]] std::span<std::byte> destination(remote::Peer& peer, std::uint16_t kind, std::uint64_t number,
                                                 std::span<const std::byte> head,
                                                 std::size_t large_bytes) override;

  void set_empty(int server, const remote::Peer& peer);
  [[nodiscard]] std::string what_is_lost_with(int server) const;
  void settle(Pending& pending);
  void identify(remote::Peer& peer, std::span<const std::byte> body);
  void send(std::uint64_t number, Pending& pending);
  void fail_requests_to(int server, const Error& error);
  void give_up(std::span<const std::uint64_t> numbers) noexcept;
  [[nodiscard]] int server_of(const remote::Peer& peer) const noexcept;

  remote::TaskPlace place_;
  TaskPart* part_ = nullptr;
  std::vector<remote::Peer*> peers_;  ///< all that are not lost
  std::vector<EarlyMessage> early_;
  std::atomic<bool> job_is_over_{false};
  NamesOn names_on_ = {};
  std::vector<Server> servers_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t next_number_ = 1;
  std::map<const remote::Peer*, Tensor> arriving_;  ///< values that are being written, also if nobody waits
  std::unique_ptr<remote::SharedEndpoint> shared_;  ///< last, so that it ends first
};

}  // namespace cohort::server
