// The standby of a server on another host: a task that follows the server, and makes in its own memory file
// whatever the server changes, until its supervisor tells it to take over. Others hear nothing of it before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "remote/shared_endpoint.h"
#include "replication.h"
#include "server/serving/parameter_server.h"
#include "server/serving/task_progress.h"
#include "store_copy.h"

namespace cohort::server {

class Standby final : private remote::Handler, private ServerOutput {
 public:
  /// @throws InvalidArgument for a place without memory or supervisor.
  explicit Standby(const remote::TaskPlace& place);
  ~Standby() override;

  /// Until the supervisor says so: then the memory file is the server's, and what it had prepared is
  /// returned. Nothing: the job is over.
  /// @throws InvalidArgument when the server refuses this task; DataLoss when the copy is damaged, or the
  /// two do not do the same; Unavailable when memory is short.
  [[nodiscard]] std::optional<Preparations> run();

 private:
  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  [[nodiscard]] bool wants_values() const noexcept override { return false; }
  void changed(MessageKind kind, std::span<const std::byte> body) override;
  void answer(remote::Peer& peer, MessageKind kind, std::uint64_t number,
              std::span<const std::byte> body) override;

  /// What is there once the copy is complete.
  struct Copy {
    Copy(int memory, const remote::TaskPlace& place, Preparations prepared, ServerOutput& output);
    Store store;
    ParameterServer server;
    Farewells farewells;
  };

  void connect();
  void begin(const remote::Message& message);
  void complete(const remote::Message& message);
  void apply(remote::Peer& peer, const remote::Message& message);
  [[nodiscard]] Preparations take_over();

  remote::TaskPlace place_;
  remote::Address server_;  ///< without the addresses at which this task listens
  std::optional<StoreCopyTarget> incoming_;
  Preparations prepared_;
  std::unique_ptr<Copy> copy_;
  bool changed_ = false;  ///< by the request that is being applied
  bool job_over_ = false;
  std::uint64_t applied_ = 0;
  std::uint64_t acknowledged_ = 0;
  remote::Peer* peer_ = nullptr;
  std::chrono::milliseconds attempt_;  ///< how long the next attempt to connect may take
  std::atomic<bool> told_{false};      ///< to take over
  std::unique_ptr<remote::SharedEndpoint> endpoint_;
  std::unique_ptr<SupervisorWatch> watch_;  ///< last, so that it ends first
};

}  // namespace cohort::server
