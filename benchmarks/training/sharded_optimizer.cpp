#include "training/sharded_optimizer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <cohort/mpi/session.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sharded_optimizer.h>

#include "errors.h"
#include "mpi_team.h"
#include "profile/model.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

/// The variables of a model and an optimizer of theirs.
class Trained {
 public:
  Trained(const Strategy& strategy, const Model& model, std::unique_ptr<Optimizer> optimizer)
      : strategy_(strategy), optimizer_(std::move(optimizer)) {
    const auto scope = strategy_.scope();
    for (const std::size_t elements : model.gradients)
      variables_.emplace_back(VariableOptions{.shape = {static_cast<std::int64_t>(elements)}});
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

std::vector<Tensor> gradients_of(const Model& model, int rank) {
  std::vector<Tensor> gradients;
  for (const std::size_t elements : model.gradients) {
    gradients.push_back(Tensor::uninitialized({static_cast<std::int64_t>(elements)}, DType::kFloat32));
    for (std::size_t i = 0; i < elements; ++i)
      gradients.back().span<float>()[i] =
          static_cast<float>((i * 31 + static_cast<std::size_t>(rank)) % 101) / 500 - 0.1F;
  }
  return gradients;
}

bool have_same_bits(const Trained& a, const Trained& b) {
  return std::ranges::equal(a.variables(), b.variables(), [](const Variable& one, const Variable& other) {
    return bitwise_equal(one.components().front(), other.components().front());
  });
}

template <class AnOptimizer>
ShardedOptimizerRow measure_both(std::string name, const ShardedOptimizerOptions& options,
                                 const CommandContext& context, const Strategy& strategy) {
  const TickClock& clock = context.clock;
  const MpiTeam team;
  Trained replicated(strategy, *context.model, std::make_unique<AnOptimizer>());
  auto optimizer = std::make_unique<ShardedOptimizer>(std::make_unique<AnOptimizer>());
  const ShardedOptimizer& shares = *optimizer;
  Trained sharded(strategy, *context.model, std::move(optimizer));
  const std::vector<Tensor> gradients = gradients_of(*context.model, context.session.rank());
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
    throw AgreedError("{}: the variables of the sharded optimizer are not those of the replicated one", name);
  std::array<double, 2> bytes{replicated.slot_bytes(), static_cast<double>(shares.slot_bytes())};
  team.take_maximum(bytes);
  return {std::move(name), median(replicated_ms), median(sharded_ms), bytes[0], bytes[1]};
}

}  // namespace

ShardedOptimizerResult measure(const ShardedOptimizerOptions& options, const CommandContext& context) {
  const MultiWorkerMirroredStrategy strategy(context.session);
  ShardedOptimizerResult result{.model = context.model->name,
                                .elements = context.model->elements(),
                                .ranks = context.session.size(),
                                .loops = options.loops,
                                .rows = {}};
  result.rows.push_back(measure_both<Momentum>("momentum", options, context, strategy));
  result.rows.push_back(measure_both<Adam>("adam", options, context, strategy));
  return result;
}

}  // namespace cohort::bench
