#include "training.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "errors.h"
#include "mpi_team.h"
#include "profile/profile.h"
#include "timing.h"

namespace cohort::bench {
namespace {

/// The variables of a model and an optimizer of theirs.
class Trained {
 public:
  Trained(Strategy strategy, const Model& model, DType dtype, std::unique_ptr<Optimizer> optimizer)
      : strategy_(std::move(strategy)), optimizer_(std::move(optimizer)) {
    const auto scope = strategy_.scope();
    for (const std::size_t elements : model.gradients)
      variables_.emplace_back(
          VariableOptions{.shape = {static_cast<std::int64_t>(elements)}, .dtype = dtype});
  }

  /// The ticks of a step with new gradients.
  std::uint64_t step(const std::vector<Tensor>& gradients, const Team& team, const TickClock& clock) {
    std::uint64_t ticks = 0;
    strategy_.run([&] {
      // What a backward pass leaves, in memory that it writes in every step.
      own_.resize(gradients.size(), {Tensor(), variables_.front()});
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (own_[i].gradient.shape() != gradients[i].shape()) own_[i] = {gradients[i].clone(), variables_[i]};
        own_[i].gradient.copy_from(gradients[i]);
      }
      team.barrier();
      const std::uint64_t begin = clock.now();
      optimizer_->apply_gradients(own_, {.aggregation = GradientAggregation::kSumInPlace});
      ticks = clock.now() - begin;
    });
    return ticks;
  }

  [[nodiscard]] const std::vector<Variable>& variables() const noexcept { return variables_; }

  /// Of all slots that are variables.
  [[nodiscard]] double slot_bytes() const {
    double bytes = 0;
    for (const Variable& variable : variables_)
      for (const Variable& slot : optimizer_->slots(variable))
        bytes += static_cast<double>(slot.components().front().bytes());
    return bytes;
  }

 private:
  Strategy strategy_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Variable> variables_;
  std::vector<GradientAndVariable> own_;
};

std::vector<Tensor> gradients_of(const Model& model, DType dtype, int rank) {
  std::vector<Tensor> gradients;
  for (const std::size_t elements : model.gradients) {
    gradients.push_back(Tensor::uninitialized({static_cast<std::int64_t>(elements)}, DType::kFloat32));
    for (std::size_t i = 0; i < elements; ++i)
      gradients.back().span<float>()[i] =
          static_cast<float>((i * 31 + static_cast<std::size_t>(rank)) % 101) / 500 - 0.1F;
    gradients.back() = gradients.back().cast(dtype);
  }
  return gradients;
}

bool have_same_bits(const Trained& a, const Trained& b) {
  return std::ranges::equal(a.variables(), b.variables(), [](const Variable& one, const Variable& other) {
    return bitwise_equal(one.components().front(), other.components().front());
  });
}

/// What a row measures.
struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  DType dtype = DType::kFloat32;
};

ShardedOptimizerRow measure_both(const OptimizerCase& what, const ShardedOptimizerOptions& options,
                                 const CommandContext& context, const Strategy& strategy) {
  const TickClock& clock = context.clock;
  const MpiTeam team;
  Trained replicated(strategy, *context.model, what.dtype, what.make());
  auto optimizer = std::make_unique<ShardedOptimizer>(what.make());
  const ShardedOptimizer& shares = *optimizer;
  Trained sharded(strategy, *context.model, what.dtype, std::move(optimizer));
  const std::vector<Tensor> gradients = gradients_of(*context.model, what.dtype, context.session.rank());
  std::vector<double> replicated_ms;
  std::vector<double> sharded_ms;
  for (int loop = 0; loop <= options.loops; ++loop) {
    std::array<double, 2> us{};
    const bool is_reverse = loop % 2 == 1;
    for (const bool first : {true, false}) {
      const bool is_sharded = first == is_reverse;
      us[is_sharded ? 1 : 0] =
          clock.microseconds((is_sharded ? sharded : replicated).step(gradients, team, clock));
    }
    team.take_maximum(us);
    if (loop == 0) continue;  // it makes the slots
    replicated_ms.push_back(us[0] / 1e3);
    sharded_ms.push_back(us[1] / 1e3);
  }
  if (team.sum(have_same_bits(replicated, sharded) ? 0 : 1) > 0)
    throw AgreedError("{}: the variables of the sharded optimizer are not those of the replicated one",
                      what.name);
  std::array<double, 2> bytes{replicated.slot_bytes(), static_cast<double>(shares.slot_bytes())};
  team.take_maximum(bytes);
  return {what.name, median(replicated_ms), median(sharded_ms), bytes[0], bytes[1]};
}

template <class AnOptimizer>
std::function<std::unique_ptr<Optimizer>()> with(const UpdateOptions& options) {
  return [options] {
    auto optimizer = std::make_unique<AnOptimizer>();
    optimizer->set_update_options(options);
    return optimizer;
  };
}

/// What update options add to a step of Adam is what their rows differ by from its own.
std::vector<OptimizerCase> cases() {
  return {{"momentum", with<Momentum>({})},
          {"adam", with<Adam>({})},
          {"adam+decay", with<Adam>({.weight_decay = 0.01})},
          {"adam+value", with<Adam>({.clip = {.value = 0.05}})},
          {"adam+norms", with<Adam>({.clip = {.norm = 1}})},
          {"adam+global_norm", with<Adam>({.clip = {.global_norm = 1}})},
          {"adam+average", with<Adam>({.average = AverageOptions{}})},
          {"adam_bf16", with<Adam>({}), DType::kBFloat16},
          {"adam_bf16+masters", with<Adam>({.float32_masters = true}), DType::kBFloat16}};
}

}  // namespace

ShardedOptimizerResult measure(const ShardedOptimizerOptions& options, const CommandContext& context) {
  const MultiWorkerMirroredStrategy strategy(context.session);
  ShardedOptimizerResult result{.model = context.model->name,
                                .elements = context.model->elements(),
                                .ranks = context.session.size(),
                                .loops = options.loops,
                                .rows = {}};
  for (const OptimizerCase& what : cases())
    result.rows.push_back(measure_both(what, options, context, strategy));
  return result;
}

}  // namespace cohort::bench
