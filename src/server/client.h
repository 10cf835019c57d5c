// A task as the client of the parameter servers: it reads variables and writes them, at once or as part of
// the execution that is running. Any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <cohort/device/tensor.h>
#include <cohort/server/parameter_server_strategy.h>

#include "server/connections.h"
#include "server/transaction.h"

namespace cohort::server {

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

  /// The value, after the writes of the execution that is running.
  [[nodiscard]] Tensor read(int server, VariableIndex variable, const Shape& shape, DType dtype);
  [[nodiscard]] Tensor read_rows(int server, VariableIndex variable, const Tensor& rows, const Shape& shape,
                                 DType dtype);
  void write(int server, const Write& write);

  /// The version that `read` gave last; Write::kNotRead for none.
  [[nodiscard]] std::uint64_t last_read(int server, VariableIndex variable) const;
  [[nodiscard]] GradientStaleness gradient_staleness() const;

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

  Connections connections_;
  Transaction* running_ = nullptr;          ///< of the execution that is running
  std::function<void()> before_read_ = {};  ///< likewise

  mutable std::mutex mutex_;
  std::map<std::pair<int, VariableIndex>, std::uint64_t> last_read_;
  std::uint64_t gradients_ = 0;
  std::uint64_t sum_of_ages_ = 0;
  std::uint64_t largest_age_ = 0;
  std::uint64_t next_write_ = std::uint64_t{1} << 63;  ///< outside executions, whose numbers are lower
  std::set<std::uint64_t> not_answered_;               ///< such writes
};

}  // namespace cohort::server
