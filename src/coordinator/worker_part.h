// A worker's part in a job with a coordinator: it runs the calls that it is given, one after the other, each
// as one execution, and sends the results back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/coordinator/detail/function.h>

#include "coordinator/protocol.h"
#include "server/server_variables.h"

namespace cohort::coordinator {

class WorkerPart final : private server::TaskPart, private WorkerValues {
 public:
  /// `owner` is the strategy, for variables that the coordinator makes.
  WorkerPart(std::shared_ptr<server::ServerVariables> variables, VariableOwner& owner,
             const InputContext& context);
  ~WorkerPart() override;
  WorkerPart(const WorkerPart&) = delete;
  WorkerPart& operator=(const WorkerPart&) = delete;

  /// Until the coordinator says that the job is over. @throws Unavailable when it is lost; InvalidArgument
  /// when this is not its program.
  void run();

 private:
  /// A call, or elements of PerWorkers that are to be made or freed: a message that waits for its turn.
  struct Work {
    CoordinatorMessage kind;
    std::uint64_t number;
    std::vector<std::byte> body;
  };
  struct Element {
    std::shared_ptr<void> value;
    std::unique_ptr<Error> failure;
  };

  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;
  [[nodiscard]] const InputContext& input_context() const noexcept override { return context_; }
  [[nodiscard]] const std::shared_ptr<void>& element(std::uint64_t number) const override;

  void do_work(const Work& work);
  void take_no_part(const remote::Peer& coordinator);
  void free_elements(std::span<const std::byte> body);
  void make_element(std::uint64_t number, std::span<const std::byte> body);
  [[nodiscard]] std::optional<Work> next_work();
  void give_back(remote::Peer& peer);
  void run_call(const Work& call);
  [[nodiscard]] std::vector<std::byte> execute(const Work& call);
  void send_done(std::uint64_t number, std::span<const std::byte> outcome_and_rest);

  std::shared_ptr<server::ServerVariables> variables_;
  VariableOwner& owner_;
  InputContext context_;
  remote::Peer* coordinator_ = nullptr;
  std::deque<Work> work_;  ///< that was not begun
  std::map<std::uint64_t, Element> elements_;
  std::atomic<std::uint64_t> cancelled_{0};  ///< calls up to this number are not wanted
  std::unique_ptr<Error> loss_;              ///< of the coordinator, or why this worker takes no part
  std::atomic<bool> over_{false};
  std::atomic<bool> has_work_{false};
};

}  // namespace cohort::coordinator
