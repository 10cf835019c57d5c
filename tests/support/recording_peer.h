// The other end of a connection that there is not: it keeps what it is sent.
#pragma once

#include <string>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "server/serving/protocol.h"

namespace cohort::test {

class RecordingPeer final : public remote::Peer {
 public:
  struct Sent {
    server::MessageKind kind = server::MessageKind::kGoodbye;
    std::uint64_t number = 0;
    std::vector<std::byte> body = {};
  };

  explicit RecordingPeer(ClusterTask task = {"worker", 0})
      : task_(std::move(task)), name_(fmt::format("{} {}", task_.type, task_.id)) {}

  [[nodiscard]] const ClusterTask& task() const noexcept override { return task_; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept override { return 1; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] bool on_this_node() const noexcept override { return true; }
  [[nodiscard]] bool lost() const noexcept override { return false; }
  [[nodiscard]] int offered_descriptor() const noexcept override { return -1; }
  [[nodiscard]] std::size_t backlog() const noexcept override { return backlog_bytes; }
  void send(std::uint16_t kind, std::uint64_t number,
            std::span<const std::span<const std::byte>> parts) override {
    Sent& added = sent.emplace_back(Sent{static_cast<server::MessageKind>(kind), number, {}});
    for (const std::span<const std::byte> part : parts)
      added.body.insert(added.body.end(), part.begin(), part.end());
  }
  void send_shared(std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head,
                   std::span<const std::byte> large, std::shared_ptr<const void> /*owner*/) override {
    const std::array parts{head, large};
    send(kind, number, parts);
  }
  [[nodiscard]] bool is_open() const noexcept override { return open; }
  [[nodiscard]] bool read_memory(std::uint64_t /*address*/, std::span<std::byte> /*to*/) override {
    ++reads;
    return open;
  }

  /// What was sent since the last call.
  [[nodiscard]] std::vector<Sent> take() { return std::exchange(sent, {}); }

  std::vector<Sent> sent;
  std::size_t backlog_bytes = 0;
  int reads = 0;
  bool open = true;

 private:
  ClusterTask task_;
  std::string name_;
};

}  // namespace cohort::test
