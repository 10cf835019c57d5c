// A task as the client of the parameter servers: it reads variables and writes them, at once or as part of
// the execution that is running. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
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

#include <cohort/device/tensor.h>
#include <cohort/server/parameter_server_strategy.h>

#include "connections.h"
#include "server/serving/protocol.h"
#include "server/serving/task_progress.h"
#include "server/serving/write.h"

namespace cohort::server {

struct WritesToSend {
  int server = 0;
  MessageKind kind = MessageKind::kCommit;
  const CommitMessage* message = nullptr;
};

/// Sends the writes of executions to servers and waits until they are taken.
/// Servers of this node read large values where they lie, if the system permits it.
/// Returns what each answers beside: how old its gradients were. @throws what the servers answer, and as
/// Connections::ask.
std::vector<std::vector<std::byte>> send_writes(Connections& connections,
                                                const std::vector<WritesToSend>& all);

/// The writes of one execution: they are kept until the function has ended, and then made all at once. There
/// is at most one in a task at a time, shared by the threads of its replicas.
class Transaction {
 public:
  /// Keeps a copy of the write.
  void add(int server, Write write);

  /// The writes to one variable up to now, in their order.
  [[nodiscard]] std::vector<Write> writes_to(int server, VariableIndex variable) const;

  /// Makes the writes: at one server by one message; at several, all prepare theirs before the first of them
  /// commits, which decides for all. `result` is remembered with the commit. Nothing happens without writes.
  /// @throws what a server answers, before anything is made; Aborted if this task was taken for lost;
  /// Unavailable naming a server that has not made its part of what was decided, with its variables.
  void commit(Connections& connections, const Execution& execution, std::uint64_t forget,
              std::span<const std::byte> result) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::vector<Write>> writes_;  ///< by server
};

/// What a task wants to read of a variable.
struct Wanted {
  int server = 0;
  VariableIndex variable = 0;
  Shape shape = {};  ///< the variable's, as its dtype
  DType dtype = DType::kFloat32;
  std::optional<Tensor> rows = {};  ///< int64, one axis; absent: all of it
  std::optional<std::uint8_t> slot =
      {};  ///< instead: what optimizers keep for it, which has this shape and dtype
};

class Client {
 public:
  /// Waits until all servers answer. @throws Unavailable naming one that does not.
  explicit Client(remote::TaskPlace place);

  /// Says goodbye to the servers.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Connections& connections() noexcept { return connections_; }

  /// Makes variable `number` of the job, or finds it: `value` is null for a task that waits until the chief
  /// has made it.
  [[nodiscard]] VariableIndex make(int server, std::uint64_t number, const std::string& name,
                                   const Shape& shape, DType dtype, const Tensor* value);

  /// The values, after the writes of the execution that is running. All servers are asked at once.
  [[nodiscard]] std::vector<Tensor> read(std::span<const Wanted> wanted);
  [[nodiscard]] Tensor read(const Wanted& wanted) { return std::move(read(std::span(&wanted, 1)).front()); }
  void write(int server, const Write& write);

  /// The version that `read` gave last; Write::kNotRead for none.
  [[nodiscard]] std::uint64_t last_read(int server, VariableIndex variable) const;
  [[nodiscard]] GradientStaleness gradient_staleness() const;

  /// Waits at the first server while this task is more than `staleness` steps ahead of the slowest.
  void end_step(std::int64_t staleness);

  /// Calls `function`; what this thread writes meanwhile outside executions is made together when it has
  /// ended, or not at all if it throws. On several servers this task alone settles it: it repeats what a
  /// server that is started again has forgotten. If the task is lost after the first server has committed,
  /// nobody has the others finish, and their parts are not made: a coordinator settles functions only.
  void write_together(const std::function<void()>& function);

  /// Runs `function` as one execution: what it writes is made when it has ended, with the result that it
  /// returns, or not at all if it throws. Reads call `on_read` first, which may throw.
  /// @throws what `function`, `on_read` and the servers throw.
  std::vector<std::byte> execute(std::uint64_t number, std::uint64_t forget,
                                 const std::function<std::vector<std::byte>()>& function,
                                 const std::function<void()>& on_read);

 private:
  class SingleWrite;
  void note_read(int server, VariableIndex variable, std::uint64_t version);
  void note_ages(std::span<const std::byte> answer);

  /// Out of the memory of a server of this node; nothing where the server must be asked.
  [[nodiscard]] std::optional<Tensor> read_here(const Wanted& wanted, std::span<const Write> writes);

  Connections connections_;
  Transaction* running_ = nullptr;          ///< of the execution that is running
  std::function<void()> before_read_ = {};  ///< likewise

  mutable std::mutex mutex_;
  std::map<std::pair<int, VariableIndex>, std::uint64_t> last_read_;
  std::uint64_t gradients_ = 0;
  std::uint64_t sum_of_ages_ = 0;
  std::uint64_t largest_age_ = 0;
  std::uint64_t next_write_ = 1;          ///< outside executions
  std::set<std::uint64_t> not_answered_;  ///< such writes
  StepEnd last_step_;
};

}  // namespace cohort::server
