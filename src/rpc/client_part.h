// A client's connection to the server of another task, and the calls that are not answered. Any thread may
// call.
//
// One of the threads that wait for answers polls the endpoint, for all of them. A thread of its own, the
// keeper, sees to calls that nobody waits for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/event_count.h>
#include <cohort/remote/task_place.h>
#include <cohort/rpc/client.h>

#include "remote/shared_endpoint.h"
#include "rpc/protocol.h"

namespace cohort::rpc {

/// A call, from its beginning to its answer. What is below `settled` does not change after that.
struct CallState {
  std::uint64_t number = 0;
  std::string method = {};
  const detail::SignatureText* signature = nullptr;  ///< what the caller takes for the method's
  Deadline deadline = Deadline::never();
  std::size_t bytes = 0;  ///< that count as unanswered

  std::atomic<bool> settled{false};
  std::vector<std::byte> result = {};
  std::unique_ptr<Error> failure = {};
};

class ClientPart final : private remote::Handler {
 public:
  /// @throws as Client's constructor.
  ClientPart(const remote::TaskPlace& place, const ClusterTask& server, const ClientOptions& options);
  ~ClientPart() override;
  ClientPart(const ClientPart&) = delete;
  ClientPart& operator=(const ClientPart&) = delete;

  [[nodiscard]] std::shared_ptr<CallState> call(const MethodCall& method,
                                                const detail::SignatureText& signature,
                                                std::vector<std::byte> arguments);
  [[nodiscard]] std::shared_ptr<CallState> list_methods();

  /// Whether the call is settled; one whose deadline has passed is from now on.
  [[nodiscard]] bool is_settled(CallState& call);

  /// Waits until it is, or the deadline has passed; true if it came first.
  bool wait(CallState& call, Deadline deadline);

 private:
  void on_connected(remote::Peer& /*peer*/) override {}
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  [[nodiscard]] std::shared_ptr<CallState> new_call(const MethodCall& method);
  [[nodiscard]] bool may_be_sent(CallState& call);
  void send(const std::shared_ptr<CallState>& call, RpcMessage kind, std::span<const std::byte> head,
            std::vector<std::byte> arguments);
  void keep();

  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept;
  void expire(CallState& call);
  void fail(CallState& call, ErrorCode code, std::string_view why);
  void settle(CallState& call);
  void take_answer(CallState& call, const remote::Message& message);

  remote::Address server_;
  ClientOptions options_;
  remote::Peer* peer_ = nullptr;
  std::optional<std::string> loss_ = {};
  std::map<std::uint64_t, std::shared_ptr<CallState>> unanswered_;
  std::uint64_t next_number_ = 1;
  std::atomic<std::size_t> unanswered_calls_{0};
  std::atomic<std::size_t> unanswered_bytes_{0};
  std::atomic<bool> is_lost_{false};
  std::atomic<bool> stopping_{false};
  EventCount keeper_wakes_;
  std::unique_ptr<remote::SharedEndpoint> shared_;
  std::thread keeper_;
};

}  // namespace cohort::rpc
