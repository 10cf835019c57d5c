#include <cohort/torch/distributed_model.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/module.h>

#include "module_state.h"
#include "reduced_gradients.h"

namespace cohort::libtorch {
namespace {

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
        parameters_(parameters_of(module)),
        named_buffers_(buffers_of(module)),
        exceptions_(std::uncaught_exceptions()) {
    or_abort([&] { gradients_.emplace(parameters_, options_); });
    // All throw the same, so none needs to tell the others.
    require_equal_lists(communicator_, parameters_, named_buffers_);
    or_abort([&] {
      broadcast_state(0);
      gradients_->begin(communicator_);
      buffers_.emplace(communicator_, named_buffers_, options_.buffers);
    });
  }

  ~Impl() {
    if (std::uncaught_exceptions() > exceptions_)
      abort("left its DistributedModel by an exception; see what it says there");
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void backward(const at::Tensor& loss) {
    using Mode = ReducedGradients::Mode;
    or_abort([&] {
      if (without_sync_ > 0) return gradients_->pass(Mode::kLocal, [&] { loss.backward(); });
      const Members active = begin(true);
      gradients_->pass(Mode::kReduced, [&] { loss.backward(); });
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
      broadcast_state(with_most_passes());
    });
  }

  [[nodiscard]] std::size_t bucket_count() const noexcept { return gradients_->bucket_count(); }

  int without_sync_ = 0;

 private:
  /// Those that have a batch.
  struct Members {
    int count = 0;
    int first = 0;
  };

  /// Begins a pass, in which this worker has a batch or not.
  Members begin(bool has_batch) {
    Members active{.count = communicator_.size()};
    if (joining_) active = count_active(has_batch);
    if (active.count == 0) return active;
    passes_ += has_batch ? 1 : 0;
    buffers_->start(active.first, has_batch);
    return active;
  }

  Members count_active(bool has_batch) {
    const std::vector<std::int64_t> flags = gathered(has_batch ? 1 : 0);
    return {.count = static_cast<int>(std::ranges::count(flags, 1)),
            .first = static_cast<int>(std::ranges::find(flags, 1) - flags.begin())};
  }

  int with_most_passes() {
    const std::vector<std::int64_t> passes = gathered(passes_);
    return static_cast<int>(std::ranges::max_element(passes) - passes.begin());
  }

  /// By member.
  std::vector<std::int64_t> gathered(std::int64_t mine) {
    const Tensor all = Tensor::uninitialized({communicator_.size()}, DType::kInt64);
    communicator_.all_gather(Tensor::scalar(mine).reshape({1}), all);
    const auto numbers = all.span<std::int64_t>();
    return {numbers.begin(), numbers.end()};
  }

  /// A pass of the others; false once nobody has a batch.
  bool take_part() {
    const Members active = begin(false);
    if (active.count == 0) return false;
    gradients_->announce_zeros();
    finish(active, false);
    return true;
  }

  void finish(const Members& active, bool has_batch) {
    const bool is_mean = options_.op == SumOrMean(ReduceOp::kMean);
    const double share = static_cast<double>(communicator_.size()) / active.count;
    gradients_->finish(is_mean ? share : 1, has_batch, active.first);
    buffers_->finish(share);
  }

  void broadcast_state(int root) {
    broadcast(communicator_, parameters_, root);
    broadcast(communicator_, named_buffers_, root);
  }

  void abort(const std::string& what) {
    if (communicator_.failure()) return;  // which the others have, too
    const int rank = communicator_.rank();
    const MemberInfo& info = communicator_.members()[static_cast<std::size_t>(rank)];
    communicator_.abort(Error(ErrorCode::kAborted, fmt::format("{} {}", describe(rank, info), what),
                              {.call = "DistributedModel", .member = rank, .host = info.host}));
  }

  template <class Call>
  void or_abort(Call call) {
    try {
      call();
    } catch (const std::exception& error) {
      abort(fmt::format("failed in its DistributedModel: {}", error.what()));
      throw;
    }
  }

  Communicator& communicator_;
  DistributedModelOptions options_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> named_buffers_;
  std::optional<ReducedGradients> gradients_;
  std::optional<PackedBuffers> buffers_;
  bool joining_ = false;
  std::int64_t passes_ = 0;
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
