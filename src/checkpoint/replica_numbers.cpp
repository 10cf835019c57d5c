#include <cohort/checkpoint/replica_numbers.h>

#include <algorithm>
#include <vector>

#include <cohort/checkpoint/checkpoint.h>

namespace cohort {
namespace {

/// [replicas, numbers], of all workers.
Tensor gathered(const Strategy& strategy, const ReplicaNumbers& numbers) {
  std::vector<Tensor> rows;
  for (int replica = 0; replica < strategy.extended().local_replicas(); ++replica) {
    const std::span<const double> own = numbers.of(replica);
    rows.push_back(Tensor::from(own, {1, static_cast<std::int64_t>(own.size())}));
  }
  return strategy.gather(PerReplica(std::move(rows), strategy.num_replicas_in_sync()), 0);
}

/// Those of one replica, in a checkpoint of another number of replicas.
void take_sum(const Tensor& saved, int replica, std::span<double> own) {
  std::ranges::fill(own, 0);
  if (replica > 0) return;
  for (std::int64_t row = 0; row < saved.shape()[0]; ++row) {
    const auto values = saved.row(row).span<double>();
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += values[i];
  }
}

void restore_numbers(const Strategy& strategy, const ReplicaNumbers& numbers, const Tensor& saved) {
  const bool same_replicas = saved.shape()[0] == strategy.num_replicas_in_sync();
  for (int local = 0; local < strategy.extended().local_replicas(); ++local) {
    const std::span<double> own = numbers.of(local);
    if (saved.shape()[1] != static_cast<std::int64_t>(own.size()))
      throw InvalidArgument("replicas were saved with {} numbers each, and have {}", saved.shape()[1],
                            own.size());
    const int replica = strategy.extended().first_replica_id() + local;
    if (same_replicas)
      std::ranges::copy(saved.row(replica).span<double>(), own.begin());
    else
      take_sum(saved, replica, own);
  }
}

}  // namespace

void Checkpoint::add(const std::string& name, const ReplicaNumbers& numbers) {
  const auto shape = [numbers, strategy = strategy_] {
    return Shape{strategy.num_replicas_in_sync(), static_cast<std::int64_t>(numbers.of(0).size())};
  };
  add_value(name, {.dtype = DType::kFloat64,
                   .shape = shape,
                   .read = [numbers, strategy = strategy_] { return gathered(strategy, numbers); },
                   .restore = [numbers, strategy = strategy_](
                                  const Tensor& saved) { restore_numbers(strategy, numbers, saved); },
                   .has_any_length = true,
                   .is_collective = true,
                   .is_everywhere = true});
}

}  // namespace cohort
