// The variables of a job on its parameter servers, as one of its tasks knows them: it makes them in turn on
// the servers, and finds them by the numbers that all tasks know them by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <cohort/server/detail/codec.h>

#include "server/client.h"
#include "server/server_variable.h"

namespace cohort::server {

class ServerVariables final : public VariableKeeper, public VariableTable {
 public:
  /// `gives_values`: whether this task's initial values count. Null `client` for a task that has no
  /// variables.
  ServerVariables(std::shared_ptr<Client> client, bool gives_values)
      : client_(std::move(client)), gives_values_(gives_values) {}

  [[nodiscard]] Client& client() const noexcept { return *client_; }

  /// The one coordinator of the job, at the chief; set by the layer above.
  [[nodiscard]] std::weak_ptr<void>& coordinator() noexcept { return coordinator_; }

  /// For what may outlive this object.
  [[nodiscard]] std::shared_ptr<Connections> shared_connections() const noexcept {
    return {client_, &client_->connections()};
  }

  [[nodiscard]] std::shared_ptr<VariableState> make(VariableOptions options, const Tensor& initial_value,
                                                    const VariableState* beside,
                                                    std::shared_ptr<VariableOwner> owner) override;

  /// What another task needs to know of the variables from number `first` on.
  [[nodiscard]] std::vector<std::byte> describe_from(std::uint64_t first) const;
  void learn(std::span<const std::byte> description, VariableOwner& owner);

  /// How many there are: the number of the next one.
  [[nodiscard]] std::uint64_t size() const;

  [[nodiscard]] Variable variable(std::uint64_t number) const override;

 private:
  std::shared_ptr<Client> client_;
  bool gives_values_;
  std::weak_ptr<void> coordinator_;

  mutable std::mutex mutex_;
  std::uint64_t turn_ = 0;  ///< of servers
  std::vector<std::shared_ptr<ServerVariable>> variables_;
};

}  // namespace cohort::server
