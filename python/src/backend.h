// The backend "cohort" of torch.distributed: one rank's part of a process group. PyTorch's tensors are moved
// where they are, by Cohort's communicators; what it asks for beyond these is composed here (all_to_all.cpp,
// reductions.h, sparse.cpp).
//
// Collectives are made in the order in which the program starts them (CallQueue). Messages have a
// communicator of their own, so that a thread may wait for one while another is in a collective.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cohort/collective/communicator.h>

#include "call_queue.h"
#include "cluster.h"

namespace cohort::pytorch {

class CohortBackend final : public c10d::Backend {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  struct Options final : c10d::Backend::Options {
    explicit Options(Milliseconds limit) : c10d::Backend::Options("cohort", limit) {}
  };

  /// Some ranks of a group, whose connections they have.
  struct Subgroup {
    CohortBackend& parent;
    std::vector<int> ranks;  ///< in the parent
    std::string name;
  };

  /// Collective over the ranks of the group. Those of a subgroup are connected already; otherwise they find
  /// each other through `store`.
  CohortBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                c10::intrusive_ptr<c10d::Backend::Options> options,
                const std::optional<Subgroup>& subgroup = {});
  ~CohortBackend() override;

  const std::string getBackendName() const override { return "cohort"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() { return options_; }
  void setTimeout(Milliseconds timeout) { options_->timeout = timeout; }
  bool supportsSplitting() const { return true; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& options);
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;

  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer gather_into_tensor(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options);
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ScatterOptions& options) override;

  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                              const c10d::ReduceScatterOptions& options) override;

  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;

  WorkPointer send(Tensors& tensors, int destination, int tag) override;
  WorkPointer recv(Tensors& tensors, int source, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;

  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  /// Ends all calls, also those of other threads and of the other ranks.
  void abort();
  /// Leaves the group, after the calls that were started; the others need not come along. What is called
  /// afterwards is refused.
  void shutdown();
  /// Of all process groups of this process: before it ends, so that the others do not take it for lost.
  static void shut_down_all();

 private:
  struct CallLabel {
    c10d::OpType type;
    const char* title;
    Milliseconds timeout;
    bool is_async;
  };
  /// A collective, given what it waits at most.
  using Body = std::function<void(const CallOptions&)>;

  /// The label of a call with such options of PyTorch's.
  template <class OptionsOfCall>
  [[nodiscard]] CallLabel label(c10d::OpType type, const char* title, const OptionsOfCall& options) const {
    bool is_async = true;
    // Not in all versions of PyTorch, and not of all calls.
    if constexpr (requires { options.asyncOp; }) is_async = options.asyncOp;
    return {type, title, options.timeout == c10d::kUnsetTimeout ? options_->timeout : options.timeout,
            is_async};
  }
  WorkPointer start(const CallLabel& label, Body body, const Tensors& inputs, const Tensors& outputs);
  [[nodiscard]] CallOptions call_options(Milliseconds timeout) const;
  [[nodiscard]] std::string who() const;
  [[nodiscard]] Communicator& messages() const;
  void require_open() const;
  void leave() noexcept;

  void exchange_blocks(std::span<const at::Tensor> to, std::span<const at::Tensor> from,
                       const CallOptions& options) const;
  void exchange_by_messages(std::span<const at::Tensor> to, std::span<const at::Tensor> from,
                            const CallOptions& options) const;

  const c10::intrusive_ptr<c10d::Backend::Options> options_;
  std::unique_ptr<rendezvous::Group> cluster_;
  std::unique_ptr<Communicator> collectives_;
  std::unique_ptr<Communicator> messages_;
  mutable std::mutex starting_message_;
  std::atomic<bool> is_open_{true};
  std::int64_t monitored_barriers_ = 0;
  std::atomic<std::uint64_t> sequence_{0};
  std::shared_ptr<CallQueue> queue_;  ///< ends first
};

}  // namespace cohort::pytorch
