#include <Python.h>

#include "backend.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <fmt/format.h>

#include "reductions.h"
#include "tensors.h"
#include "work.h"

namespace cohort::pytorch {
namespace {

using c10d::OpType;

// Older versions of PyTorch have one name for all calls with several tensors.

template <class Type>
constexpr Type reduce_scatter_tensor_coalesced_type() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; })
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  else
    return Type::COALESCED;
}

template <class Type>
constexpr Type allgather_into_tensor_coalesced_type() {
  if constexpr (requires { Type::ALLGATHER_INTO_TENSOR_COALESCED; })
    return Type::ALLGATHER_INTO_TENSOR_COALESCED;
  else
    return Type::COALESCED;
}

const at::Tensor& only_one(const std::vector<at::Tensor>& tensors, const char* call) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "cohort: ", call, " takes one tensor, not ", tensors.size());
  return tensors.front();
}

/// The tensors of a list of one list; there is one for each rank.
const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists, int size,
                                         const char* call) {
  TORCH_CHECK_VALUE(lists.size() == 1, "cohort: ", call, " takes one list of tensors, not ", lists.size());
  TORCH_CHECK_VALUE(lists.front().size() == static_cast<std::size_t>(size), "cohort: ", call,
                    " takes a tensor for each of the ", size, " ranks, not ", lists.front().size());
  return lists.front();
}

void require_like(const at::Tensor& tensor, const at::Tensor& like, const char* call) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), "cohort: ", call, ": input is ",
                   like.scalar_type(), " but output is ", tensor.scalar_type());
}

void require_elements(const at::Tensor& tensor, std::int64_t elements, const char* call) {
  TORCH_CHECK_VALUE(tensor.numel() == elements, "cohort: ", call, ": a tensor of ", tensor.sizes(), " has ",
                    tensor.numel(), " elements where ", elements, " are needed");
}

void require_all_like(const std::vector<at::Tensor>& tensors, const at::Tensor& like, const char* call) {
  for (const at::Tensor& tensor : tensors) {
    require_like(tensor, like, call);
    require_elements(tensor, like.numel(), call);
  }
}

void require_dense(const std::vector<at::Tensor>& tensors, const char* call) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(tensor.defined() && tensor.layout() == at::kStrided, "cohort: ", call,
                      " takes dense tensors");
    TORCH_CHECK(tensor.is_cpu(), "cohort moves tensors of CPUs; for this one on ", tensor.device(),
                " add a backend of that device, for example init_process_group(\"cpu:cohort,cuda:nccl\")");
  }
}

}  // namespace

/// The process groups of this process, which its end closes.
class OpenBackends {
 public:
  static OpenBackends& of_this_process() {
    static auto* const all = new OpenBackends;
    return *all;
  }

  void add(CohortBackend& backend) {
    const std::lock_guard lock(mutex_);
    backends_.push_back(&backend);
  }
  void remove(CohortBackend& backend) {
    const std::lock_guard lock(mutex_);
    std::erase(backends_, &backend);
  }
  /// Those that were made last come first.
  [[nodiscard]] std::vector<c10::weak_intrusive_ptr<CohortBackend>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<c10::weak_intrusive_ptr<CohortBackend>> found;
    for (CohortBackend* const backend : std::views::reverse(backends_))
      found.emplace_back(c10::intrusive_ptr<CohortBackend>::unsafe_reclaim_from_nonowning(backend));
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<CohortBackend*> backends_;
};

CohortBackend::CohortBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                             c10::intrusive_ptr<c10d::Backend::Options> options,
                             const std::optional<Subgroup>& subgroup)
    : Backend(rank, size), options_(std::move(options)) {
  with_errors_of_pytorch([&] {
    if (subgroup) {
      subgroup->parent.require_open();
      cluster_ = subgroup->parent.cluster_->make_group(subgroup->ranks, subgroup->name);
    } else {
      cluster_ = connect(std::move(store), rank, size, options_->timeout);
    }
    CommunicationOptions communication;
    communication.timeout_seconds = std::chrono::duration<double>(options_->timeout).count();
    // Between hosts, too, what an element becomes does not depend on its place.
    communication.reproducible = true;
    collectives_ = cluster_->make_communicator(communication);
    messages_ = collectives_->split(0, rank);
  });
  queue_ = std::make_shared<CallQueue>();
  OpenBackends::of_this_process().add(*this);
}

CohortBackend::~CohortBackend() {
  // Calls in flight may have callbacks of Python's.
  PyThreadState* const python =
      Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
  OpenBackends::of_this_process().remove(*this);
  leave();
  if (python != nullptr) PyEval_RestoreThread(python);
}

void CohortBackend::leave() noexcept {
  is_open_ = false;
  queue_->end();
  const std::lock_guard lock(starting_message_);
  messages_.reset();
  collectives_.reset();
  cluster_.reset();
}

void CohortBackend::shutdown() { leave(); }

void CohortBackend::shut_down_all() {
  for (const c10::weak_intrusive_ptr<CohortBackend>& backend : OpenBackends::of_this_process().all()) {
    if (const c10::intrusive_ptr<CohortBackend> held = backend.lock()) held->leave();
  }
}

void CohortBackend::require_open() const {
  if (!is_open_) throw WrongContext("the process group was shut down: nothing can be called on it any more");
}

Communicator& CohortBackend::messages() const {
  require_open();
  return *messages_;
}

c10::intrusive_ptr<c10d::Backend> CohortBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto own = std::ranges::find(ranks, rank_);
  if (own == ranks.end()) return nullptr;
  return c10::make_intrusive<CohortBackend>(store, static_cast<int>(own - ranks.begin()),
                                            static_cast<int>(ranks.size()), options);
}

std::string CohortBackend::who() const {
  return describe(rank_, collectives_->members()[static_cast<std::size_t>(rank_)]);
}

void CohortBackend::abort() {
  if (!is_open_) return;
  const Aborted error("{} has called abort() of its process group", who());
  collectives_->abort(error);
  messages_->abort(error);
}

CallOptions CohortBackend::call_options(Milliseconds timeout) const {
  CallOptions options;
  options.timeout_seconds = std::chrono::duration<double>(timeout).count();
  return options;
}

/// A blocking collective is made here and now, and needs no Work.
CohortBackend::WorkPointer CohortBackend::start(const CallLabel& label, Body body, const Tensors& inputs,
                                                const Tensors& outputs) {
  with_errors_of_pytorch([&] { require_open(); });
  const std::uint64_t sequence = ++sequence_;
  const CallOptions options = call_options(label.timeout);
  if (!label.is_async && !at::hasCallbacks()) {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    with_errors_of_pytorch([&] { queue_->run([&] { body(options); }); });
    return nullptr;
  }
  auto work = c10::make_intrusive<CollectiveWork>(
      WorkLabel{rank_, label.type, label.title, sequence, label.timeout}, queue_, inputs, outputs);
  work->start([body = std::move(body), options] {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    body(options);
  });
  return work;
}

// ---- reductions

CohortBackend::WorkPointer CohortBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only_one(tensors, "all_reduce");
  if (tensor.layout() == at::kSparse) return allreduce_sparse(tensors, options);
  require_dense(tensors, "all_reduce");
  return start(
      label(OpType::ALLREDUCE, "cohort:all_reduce", options),
      [this, tensor, reduction = Reduction(options.reduceOp, tensor)](const CallOptions& call) {
        const at::Tensor row = row_major(tensor);
        reduction.all_reduce(*collectives_, row, call);
        put_into(tensor, row);
      },
      tensors, tensors);
}

CohortBackend::WorkPointer CohortBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK_VALUE(!tensors.empty(), "cohort: allreduce_coalesced takes at least one tensor");
  require_dense(tensors, "allreduce_coalesced");
  for (const at::Tensor& tensor : tensors) require_like(tensor, tensors.front(), "allreduce_coalesced");
  return start(
      label(OpType::ALLREDUCE_COALESCED, "cohort:all_reduce", options),
      [this, tensors, reduction = Reduction(options.reduceOp, tensors.front())](const CallOptions& call) {
        const at::Tensor row = room_for(tensors);
        pack(tensors, row);
        reduction.all_reduce(*collectives_, row, call);
        unpack(row, tensors);
      },
      tensors, tensors);
}

CohortBackend::WorkPointer CohortBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only_one(tensors, "reduce");
  require_dense(tensors, "reduce");
  return start(
      label(OpType::REDUCE, "cohort:reduce", options),
      [this, tensor, root = static_cast<int>(options.rootRank),
       reduction = Reduction(options.reduceOp, tensor)](const CallOptions& call) {
        const at::Tensor row = row_major(tensor);
        reduction.reduce(*collectives_, row, root, call);
        if (rank_ == root) put_into(tensor, row);
      },
      tensors, tensors);
}

CohortBackend::WorkPointer CohortBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                         const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only_one(outputs, "reduce_scatter");
  const Tensors& input = only_list(inputs, size_, "reduce_scatter");
  require_dense(outputs, "reduce_scatter");
  require_dense(input, "reduce_scatter");
  for (const at::Tensor& block : input) require_like(output, block, "reduce_scatter");
  require_elements(output, input[static_cast<std::size_t>(rank_)].numel(), "reduce_scatter");
  const bool is_even =
      std::ranges::all_of(input, [&](const at::Tensor& block) { return block.numel() == output.numel(); });
  return start(
      label(OpType::REDUCE_SCATTER, "cohort:reduce_scatter", options),
      [this, output, input, is_even,
       reduction = Reduction(options.reduceOp, output)](const CallOptions& call) {
        // Where blocks differ in size, this member's part of the whole is cut out.
        const at::Tensor row = is_even ? room_for(input) : scratch(total_elements(input), output);
        pack(input, row);
        if (is_even) {
          const at::Tensor result = row_major_result(output);
          reduction.reduce_scatter(*collectives_, row, result, call);
          put_into(output, result);
        } else {
          reduction.all_reduce(*collectives_, row, call);
          const std::int64_t begin = total_elements(std::span(input).first(static_cast<std::size_t>(rank_)));
          unpack(row.narrow(0, begin, output.numel()), std::span(&output, 1));
        }
      },
      input, outputs);
}

CohortBackend::WorkPointer CohortBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                               const c10d::ReduceScatterOptions& options) {
  require_dense({output, input}, "reduce_scatter_tensor");
  require_like(output, input, "reduce_scatter_tensor");
  require_elements(input, output.numel() * size_, "reduce_scatter_tensor");
  return start(
      label(OpType::_REDUCE_SCATTER_BASE, "cohort:_reduce_scatter_base", options),
      [this, output, input, reduction = Reduction(options.reduceOp, output)](const CallOptions& call) {
        const at::Tensor result = row_major_result(output);
        reduction.reduce_scatter(*collectives_, row_major(input), result, call);
        put_into(output, result);
      },
      {input}, {output});
}

CohortBackend::WorkPointer CohortBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(!outputs.empty() && outputs.size() == inputs.size(),
                    "cohort: reduce_scatter_tensor_coalesced takes as many outputs as inputs");
  require_dense(outputs, "reduce_scatter_tensor_coalesced");
  require_dense(inputs, "reduce_scatter_tensor_coalesced");
  std::vector<Reduction> reductions;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require_like(outputs[i], inputs[i], "reduce_scatter_tensor_coalesced");
    require_elements(inputs[i], outputs[i].numel() * size_, "reduce_scatter_tensor_coalesced");
    reductions.emplace_back(options.reduceOp, outputs[i]);
  }
  return start(
      label(reduce_scatter_tensor_coalesced_type<OpType>(), "cohort:reduce_scatter", options),
      [this, outputs, inputs, reductions](const CallOptions& call) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const at::Tensor result = row_major_result(outputs[i]);
          reductions[i].reduce_scatter(*collectives_, row_major(inputs[i]), result, call);
          put_into(outputs[i], result);
        }
      },
      inputs, outputs);
}

// ---- what moves data

CohortBackend::WorkPointer CohortBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_one(tensors, "broadcast");
  require_dense(tensors, "broadcast");
  return start(
      label(OpType::BROADCAST, "cohort:broadcast", options),
      [this, tensor, root = static_cast<int>(options.rootRank)](const CallOptions& call) {
        const at::Tensor row = rank_ == root ? row_major(tensor) : row_major_result(tensor);
        collectives_->broadcast(contents_of(row), root, call);
        if (rank_ != root) put_into(tensor, row);
      },
      tensors, tensors);
}

CohortBackend::WorkPointer CohortBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                    const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only_one(inputs, "all_gather");
  const Tensors& output = only_list(outputs, size_, "all_gather");
  require_dense(inputs, "all_gather");
  require_dense(output, "all_gather");
  require_all_like(output, input, "all_gather");
  return start(
      label(OpType::ALLGATHER, "cohort:all_gather", options),
      [this, input, output](const CallOptions& call) {
        const at::Tensor row = room_for(output);
        collectives_->all_gather(contents_of(row_major(input)), contents_of(row), call);
        unpack(row, output);
      },
      inputs, output);
}

CohortBackend::WorkPointer CohortBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                          const c10d::AllgatherOptions& options) {
  require_dense({output, input}, "all_gather_into_tensor");
  require_like(output, input, "all_gather_into_tensor");
  require_elements(output, input.numel() * size_, "all_gather_into_tensor");
  return start(label(OpType::_ALLGATHER_BASE, "cohort:_all_gather_base", options),
               [this, output, input](const CallOptions& call) {
                 const at::Tensor result = row_major_result(output);
                 collectives_->all_gather(contents_of(row_major(input)), contents_of(result), call);
                 put_into(output, result);
               },
               {input}, {output});
}

CohortBackend::WorkPointer CohortBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                              const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(!inputs.empty() && outputs.size() == static_cast<std::size_t>(size_),
                    "cohort: allgather_coalesced takes a list of outputs for each of the ", size_, " ranks");
  require_dense(inputs, "allgather_coalesced");
  for (const Tensors& list : outputs) {
    TORCH_CHECK_VALUE(list.size() == inputs.size(),
                      "cohort: allgather_coalesced takes as many outputs from each rank as it has inputs");
    require_dense(list, "allgather_coalesced");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      require_like(list[i], inputs[i], "allgather_coalesced");
      require_elements(list[i], inputs[i].numel(), "allgather_coalesced");
    }
  }
  Tensors all_outputs;
  for (const Tensors& list : outputs) all_outputs.insert(all_outputs.end(), list.begin(), list.end());
  return start(
      label(OpType::ALLGATHER_COALESCED, "cohort:all_gather", options),
      [this, inputs, outputs](const CallOptions& call) {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          Tensors of_ranks;
          for (const Tensors& list : outputs) of_ranks.push_back(list[i]);
          const at::Tensor row = room_for(of_ranks);
          collectives_->all_gather(contents_of(row_major(inputs[i])), contents_of(row), call);
          unpack(row, of_ranks);
        }
      },
      inputs, all_outputs);
}

CohortBackend::WorkPointer CohortBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(!outputs.empty() && outputs.size() == inputs.size(),
                    "cohort: allgather_into_tensor_coalesced takes as many outputs as inputs");
  require_dense(outputs, "allgather_into_tensor_coalesced");
  require_dense(inputs, "allgather_into_tensor_coalesced");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require_like(outputs[i], inputs[i], "allgather_into_tensor_coalesced");
    require_elements(outputs[i], inputs[i].numel() * size_, "allgather_into_tensor_coalesced");
  }
  return start(
      label(allgather_into_tensor_coalesced_type<OpType>(), "cohort:all_gather", options),
      [this, outputs, inputs](const CallOptions& call) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const at::Tensor result = row_major_result(outputs[i]);
          collectives_->all_gather(contents_of(row_major(inputs[i])), contents_of(result), call);
          put_into(outputs[i], result);
        }
      },
      inputs, outputs);
}

CohortBackend::WorkPointer CohortBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                 const c10d::GatherOptions& options) {
  const at::Tensor& input = only_one(inputs, "gather");
  require_dense(inputs, "gather");
  const auto root = static_cast<int>(options.rootRank);
  Tensors output;
  if (rank_ == root) {
    output = only_list(outputs, size_, "gather");
    require_dense(output, "gather");
    require_all_like(output, input, "gather");
  } else {
    TORCH_CHECK_VALUE(outputs.empty(), "cohort: gather: only the root has outputs");
  }
  return start(
      label(OpType::GATHER, "cohort:gather", options),
      [this, input, output, root](const CallOptions& call) {
        const Tensor block = contents_of(row_major(input));
        if (rank_ != root) return collectives_->gather(block, block, root, call);
        const at::Tensor row = room_for(output);
        collectives_->gather(block, contents_of(row), root, call);
        unpack(row, output);
      },
      inputs, output);
}

CohortBackend::WorkPointer CohortBackend::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                                             const c10d::GatherOptions& options) {
  const auto root = static_cast<int>(options.rootRank);
  require_dense({input}, "gather_into_tensor");
  if (rank_ == root) {
    require_dense({output}, "gather_into_tensor");
    require_like(output, input, "gather_into_tensor");
    require_elements(output, input.numel() * size_, "gather_into_tensor");
  }
  return start(
      label(OpType::GATHER, "cohort:gather", options),
      [this, input, output, root](const CallOptions& call) {
        const Tensor block = contents_of(row_major(input));
        if (rank_ != root) return collectives_->gather(block, block, root, call);
        const at::Tensor result = row_major_result(output);
        collectives_->gather(block, contents_of(result), root, call);
        put_into(output, result);
      },
      {input}, rank_ == root ? Tensors{output} : Tensors{});
}

CohortBackend::WorkPointer CohortBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                  const c10d::ScatterOptions& options) {
  const at::Tensor& output = only_one(outputs, "scatter");
  require_dense(outputs, "scatter");
  const auto root = static_cast<int>(options.rootRank);
  Tensors input;
  if (rank_ == root) {
    input = only_list(inputs, size_, "scatter");
    require_dense(input, "scatter");
    require_all_like(input, output, "scatter");
  } else {
    TORCH_CHECK_VALUE(inputs.empty(), "cohort: scatter: only the root has inputs");
  }
  return start(
      label(OpType::SCATTER, "cohort:scatter", options),
      [this, input, output, root](const CallOptions& call) {
        const at::Tensor result = row_major_result(output);
        const Tensor block = contents_of(result);
        if (rank_ == root) {
          const at::Tensor row = room_for(input);
          pack(input, row);
          collectives_->scatter(contents_of(row), block, root, call);
        } else {
          collectives_->scatter(block, block, root, call);
        }
        put_into(output, result);
      },
      input, outputs);
}

CohortBackend::WorkPointer CohortBackend::barrier(const c10d::BarrierOptions& options) {
  return start(label(OpType::BARRIER, "cohort:barrier", options),
               [this](const CallOptions& call) { collectives_->barrier(call); }, {}, {});
}

}  // namespace cohort::pytorch
