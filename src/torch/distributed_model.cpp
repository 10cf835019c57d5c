#include <cohort/torch/distributed_model.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <cohort/collective/gradient_buckets.h>
#include <cohort/torch/tensor.h>

#include "buffer_exchange.h"
#include "module_state.h"

namespace cohort::libtorch {
namespace {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

/// What owns a node of the graph differs between versions of libtorch.
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

struct Parameter {
  std::string name;
  at::Tensor tensor;
  at::Tensor place = {};   ///< of its gradient, in the bucket
  std::size_t number = 0;  ///< among the gradients of the buckets
  Accumulator accumulator = {};
  std::uintptr_t hook = 0;
  bool ready = false;
};

Communicator& only_communicator(const Strategy& strategy) {
  strategy.extended().require_cross_replica("DistributedModel");
  if (strategy.extended().local_replicas() == 1) return strategy.extended().communicator(0);
  throw InvalidArgument(
      "DistributedModel: {} has {} replicas in this process; make a module and DistributedModel(module, "
      "replica) for each, within run()",
      strategy.extended().strategy_name(), strategy.extended().local_replicas());
}

}  // namespace

class DistributedModel::Impl {
 public:
  Impl(const torch::nn::Module& module, Communicator& communicator, const DistributedModelOptions& options)
      : communicator_(communicator),
        options_(options),
        named_parameters_(parameters_of(module)),
        named_buffers_(buffers_of(module)),
        exceptions_(std::uncaught_exceptions()) {
    or_abort([&] { collect_parameters(); });
    // All throw the same, so none needs to tell the others.
    require_equal_lists(communicator_, named_parameters_, named_buffers_);
    or_abort([&] {
      broadcast_state(0);
      // Backward passes reach the last parameters first.
      std::vector<std::size_t> order(parameters_.size());
      std::iota(order.rbegin(), order.rend(), std::size_t{0});
      make_buckets(order);
      buffers_.emplace(communicator_, named_buffers_, options_.buffers);
    });
    for (std::size_t index = 0; index < parameters_.size(); ++index) add_hook(index);
  }

  ~Impl() {
    for (const Parameter& parameter : parameters_) {
      if (parameter.hook != 0) parameter.accumulator->del_post_hook(parameter.hook);
    }
    if (std::uncaught_exceptions() > exceptions_)
      abort(ErrorCode::kAborted, "left its DistributedModel by an exception; see what it says there");
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void backward(const at::Tensor& loss) {
    or_abort([&] {
      const Pass pass(mode_, without_sync_ > 0 ? Mode::kLocal : Mode::kReduced);
      if (without_sync_ > 0) return loss.backward();
      const Members active = begin(true);
      loss.backward();
      for (Parameter& parameter : parameters_) {
        if (!parameter.ready) announce(parameter);
      }
      finish(active, true);
    });
  }

  void join(const std::function<void()>& steps) {
    or_abort([&] {
      joining_ = true;
      passes_ = 0;
      steps();
      while (take_part()) {
      }
      joining_ = false;
      const Tensor passes = Tensor::scalar(passes_).reshape({1});
      const Tensor all = Tensor::uninitialized({communicator_.size()}, DType::kInt64);
      communicator_.all_gather(passes, all);
      const auto by_member = all.span<std::int64_t>();
      broadcast_state(static_cast<int>(std::ranges::max_element(by_member) - by_member.begin()));
    });
  }

  [[nodiscard]] std::size_t bucket_count() const noexcept { return buckets_->bucket_count(); }

  int without_sync_ = 0;

 private:
  enum class Mode { kNone, kLocal, kReduced };

  /// The mode for the time of a pass.
  struct Pass {
    Pass(Mode& of_model, Mode mode) : mode_(of_model) { mode_ = mode; }
    ~Pass() { mode_ = Mode::kNone; }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    Mode& mode_;
  };

  /// Those that have a batch.
  struct Members {
    int count = 0;
    int first = 0;
  };

  void collect_parameters() {
    for (const auto& [name, tensor] : named_parameters_) {
      if (!tensor.is_cpu())
        throw InvalidArgument("DistributedModel: parameter '{}' is not on a CPU; move the module there",
                              name);
      if (tensor.requires_grad()) parameters_.push_back({name, tensor});
    }
    if (parameters_.empty())
      throw InvalidArgument("DistributedModel: no parameter of the module has a gradient");
  }

  void add_hook(std::size_t index) {
    Parameter& parameter = parameters_[index];
    parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.tensor);
    parameter.hook = parameter.accumulator->add_post_hook(
        std::make_unique<LambdaPostHook>([this, index](const variable_list& outputs, const variable_list&) {
          on_gradient(parameters_[index]);
          return outputs;
        }));
  }

  void on_gradient(Parameter& parameter) {
    if (mode_ == Mode::kLocal) return;
    if (mode_ == Mode::kNone)
      throw WrongContext(
          "loss.backward() reached parameter '{}' of a DistributedModel, whose gradients it would not "
          "reduce; "
          "call backward(loss) of the DistributedModel, inside no_sync() for this worker's gradients alone",
          parameter.name);
    observed_.push_back(&parameter);
    announce(parameter);
  }

  /// Moves the gradient into its bucket, unless it was added up there.
  void announce(Parameter& parameter) {
    const torch::NoGradGuard no_gradients;
    const at::Tensor gradient = parameter.tensor.grad();
    if (!gradient.defined()) {
      parameter.place.zero_();
    } else if (gradient.layout() != at::kStrided) {
      throw Unimplemented("DistributedModel: parameter '{}' has a sparse gradient; make it dense",
                          parameter.name);
    } else if (!gradient.is_alias_of(parameter.place)) {
      parameter.place.copy_(gradient);
    }
    if (gradient.defined()) parameter.tensor.mutable_grad() = parameter.place;
    reached_[static_cast<std::int64_t>(&parameter - parameters_.data())].fill_(gradient.defined() ? 1 : 0);
    parameter.ready = true;
    buckets_->ready(parameter.number);
  }

  /// Begins a pass, in which this worker has a batch or not.
  Members begin(bool has_batch) {
    Members active{.count = communicator_.size()};
    if (joining_) active = count_active(has_batch);
    if (active.count == 0) return active;
    passes_ += has_batch ? 1 : 0;
    observed_.clear();
    buffers_->start(active.first, has_batch);
    return active;
  }

  Members count_active(bool has_batch) {
    const Tensor mine = Tensor::full({1}, DType::kUInt8, has_batch ? 1 : 0);
    const Tensor all = Tensor::uninitialized({communicator_.size()}, DType::kUInt8);
    communicator_.all_gather(mine, all);
    const auto flags = all.span<std::uint8_t>();
    return {.count = static_cast<int>(std::ranges::count(flags, 1)),
            .first = static_cast<int>(std::ranges::find(flags, 1) - flags.begin())};
  }

  /// A pass of the others; false once nobody has a batch.
  bool take_part() {
    const Members active = begin(false);
    if (active.count == 0) return false;
    reached_.zero_();
    for (Parameter& parameter : parameters_) {
      parameter.place.zero_();
      buckets_->ready(parameter.number);
    }
    finish(active, false);
    return true;
  }

  void finish(const Members& active, bool has_batch) {
    const torch::NoGradGuard no_gradients;
    buckets_->ready(parameters_.size());
    buckets_->wait();
    const double scale = options_.op == SumOrMean(ReduceOp::kMean)
                             ? static_cast<double>(communicator_.size()) / active.count
                             : 1.0;
    for (std::size_t index = 0; has_batch && index < parameters_.size(); ++index)
      show_result(parameters_[index], reached_[static_cast<std::int64_t>(index)].item<double>() > 0, scale);
    for (Parameter& parameter : parameters_) parameter.ready = false;
    buffers_->finish(scale);
    if (!std::exchange(order_known_, true)) make_buckets(observed_order(active.first));
  }

  /// Where no worker's pass has reached it, the gradient is what it was.
  static void show_result(Parameter& parameter, bool reached, double scale) {
    if (!reached && !parameter.tensor.grad().defined()) return;
    if (scale != 1) parameter.place.mul_(scale);
    parameter.tensor.mutable_grad() = parameter.place;
  }

  /// That in which the pass of `member` came to its parameters; those it has not reached come last.
  std::vector<std::size_t> observed_order(int member) {
    const Tensor shared = Tensor::zeros({static_cast<std::int64_t>(parameters_.size())}, DType::kInt64);
    const auto order = shared.span<std::int64_t>();
    std::vector<bool> listed(parameters_.size());
    std::size_t next = 0;
    const auto list = [&](const Parameter& parameter) {
      const auto index = static_cast<std::size_t>(&parameter - parameters_.data());
      if (!listed[index]) order[next++] = static_cast<std::int64_t>(index);
      listed[index] = true;
    };
    for (const Parameter* parameter : observed_) list(*parameter);
    std::for_each(parameters_.rbegin(), parameters_.rend(), list);
    communicator_.broadcast(shared, member);
    return {order.begin(), order.end()};
  }

  /// The last of their gradients says which parameters a pass has reached.
  void make_buckets(std::span<const std::size_t> order) {
    std::vector<TensorSpec> specs;
    for (const std::size_t index : order) {
      parameters_[index].number = specs.size();
      specs.push_back(spec_of(parameters_[index].tensor, parameters_[index].name));
    }
    specs.push_back({{static_cast<std::int64_t>(order.size())}, specs.back().dtype, "reached"});
    buckets_.emplace(
        communicator_, specs,
        GradientBucketsOptions{.bytes_per_bucket = options_.bytes_per_bucket, .op = options_.op});
    for (Parameter& parameter : parameters_) parameter.place = to_torch(buckets_->tensor(parameter.number));
    reached_ = to_torch(buckets_->tensor(order.size()));
  }

  void broadcast_state(int root) {
    broadcast(communicator_, named_parameters_, root);
    broadcast(communicator_, named_buffers_, root);
  }

  void abort(ErrorCode code, const std::string& what) {
    if (communicator_.failure()) return;  // which the others have, too
    const int rank = communicator_.rank();
    const MemberInfo& info = communicator_.members()[static_cast<std::size_t>(rank)];
    communicator_.abort(Error(code, fmt::format("{} {}", describe(rank, info), what),
                              {.call = "DistributedModel", .member = rank, .host = info.host}));
  }

  template <class Call>
  void or_abort(Call call) {
    try {
      call();
    } catch (const std::exception& error) {
      abort(ErrorCode::kAborted, fmt::format("failed in its DistributedModel: {}", error.what()));
      throw;
    }
  }

  Communicator& communicator_;
  DistributedModelOptions options_;
  std::vector<NamedTensor> named_parameters_;
  std::vector<NamedTensor> named_buffers_;
  std::vector<Parameter> parameters_;  ///< those that have gradients
  std::optional<GradientBuckets> buckets_;
  std::optional<PackedBuffers> buffers_;
  at::Tensor reached_;  ///< by parameter: above zero where a pass has reached it
  std::vector<const Parameter*> observed_;
  bool order_known_ = false;
  bool joining_ = false;
  std::int64_t passes_ = 0;
  Mode mode_ = Mode::kNone;
  int exceptions_;
};

DistributedModel::DistributedModel(Module module, const Strategy& strategy,
                                   const DistributedModelOptions& options)
    : impl_(std::make_unique<Impl>(*module, only_communicator(strategy), options)) {}

DistributedModel::DistributedModel(Module module, const ReplicaContext& replica,
                                   const DistributedModelOptions& options)
    : impl_(std::make_unique<Impl>(*module, replica.communicator(), options)) {}

DistributedModel::~DistributedModel() = default;

void DistributedModel::backward(const at::Tensor& loss) { impl_->backward(loss); }

DistributedModel::NoSync DistributedModel::no_sync() { return NoSync(*impl_); }

void DistributedModel::join(const std::function<void()>& steps) { impl_->join(steps); }

std::size_t DistributedModel::bucket_count() const noexcept { return impl_->bucket_count(); }

DistributedModel::NoSync::NoSync(Impl& impl) : impl_(impl) { ++impl_.without_sync_; }

DistributedModel::NoSync::~NoSync() { --impl_.without_sync_; }

}  // namespace cohort::libtorch
