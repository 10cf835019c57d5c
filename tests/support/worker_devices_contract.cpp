#include "worker_contracts.h"

#include <chrono>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/input/distribute.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/train/optimizers/adam.h>
#include <cohort/train/optimizers/momentum.h>
#include <cohort/train/optimizers/sgd.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// [id + 1, 10] of each replica.
PerReplica<Tensor> counted(const Strategy& strategy) {
  return strategy.run([](ReplicaContext& replica) {
    return Tensor::from({replica.replica_id_in_sync_group() + 1.0, 10.0});
  });
}

/// As many rows as the replica's number, all of them its number.
Tensor rows_of(int id) { return Tensor::full({id, 2}, DType::kInt32, id); }

/// 1 + 2 + ... + n.
double sum_from_one_to(int n) { return n * (n + 1) / 2.0; }

/// Expects `rows` to be those of all replicas, in their order.
void expect_rows_of_all(const Tensor& rows, int replicas) {
  ASSERT_EQ(rows.shape(), (Shape{static_cast<std::int64_t>(sum_from_one_to(replicas - 1)), 2}));
  int row = 0;
  for (int id = 0; id < replicas; ++id) {
    for (int i = 0; i < id; ++i) EXPECT_THAT(rows.row(row++).span<std::int32_t>(), Each(id));
  }
}

bool is_last(const Bootstrap& worker) { return worker.rank() == worker.size() - 1; }

/// The last worker throws `own`; the others get an error that tells of it.
template <class Own>
void expect_told(const Bootstrap& worker, const std::string& text, const std::function<void()>& call) {
  if (is_last(worker)) {
    EXPECT_THAT(call, ::testing::ThrowsMessage<Own>(HasSubstr(text)));
  } else {
    EXPECT_THAT(
        message_of(ErrorCode::kAborted, call),
        AllOf(HasSubstr("failed first"), HasSubstr(text), Not(ContainsRegex("failed first.*failed first"))))
        << "the worker that failed is named, not one that was told";
  }
}

}  // namespace

void check_numbering(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  EXPECT_EQ(strategy.num_replicas_in_sync(), worker.size() * devices);
  std::vector<int> expected(static_cast<std::size_t>(devices));
  std::iota(expected.begin(), expected.end(), worker.rank() * devices);
  const auto ids = strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    EXPECT_EQ(replica.device(), Device::cpu(id - worker.rank() * devices));
    EXPECT_EQ(replica.communicator().rank(), id);
    EXPECT_EQ(replica.num_replicas_in_sync(), worker.size() * devices);
    return id;
  });
  EXPECT_THAT(ids.components(), ::testing::ElementsAreArray(expected));
  const auto given =
      strategy.distribute_values_from_function([](ValueContext at) { return at.replica_id_in_sync_group; });
  EXPECT_THAT(strategy.local_results(given), ::testing::ElementsAreArray(expected));
}

void check_reduce(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto values = counted(strategy);
  EXPECT_THAT(strategy.reduce("sum", values).span<double>(),
              ElementsAre(sum_from_one_to(replicas), 10 * replicas));
  EXPECT_THAT(strategy.reduce("mean", values).span<double>(), ElementsAre((replicas + 1) / 2.0, 10));
  EXPECT_EQ(strategy.reduce("mean", 5.0), 5) << "a plain value";
  EXPECT_EQ(strategy.reduce("mean", Mirrored(std::vector<double>(static_cast<std::size_t>(devices), 5))), 5);
  if (worker.size() == 1) return;
  EXPECT_EQ(strategy.reduce("sum", worker.rank() + 1.0), sum_from_one_to(worker.size())) << "one per worker";
  EXPECT_EQ(strategy.reduce("mean", worker.rank() + 1.0), (worker.size() + 1) / 2.0);
}

void check_reduce_along_an_axis(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const auto parts = strategy.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return Tensor::full({id}, DType::kInt32, id);
  });
  const int replicas = strategy.num_replicas_in_sync();
  double sum = 0;
  for (int id = 0; id < replicas; ++id) sum += id * id;
  EXPECT_EQ(strategy.reduce("sum", parts, 0).item<std::int32_t>(), sum);
  if (replicas > 1) {
    EXPECT_DOUBLE_EQ(strategy.reduce("mean", parts, 0).item<double>(), sum / sum_from_one_to(replicas - 1));
  }
}

void check_batch_reduce_to(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto values = counted(strategy);
  const std::vector<std::pair<PerReplica<Tensor>, Destinations>> pairs(
      5, {values, strategy.extended().destinations()});
  for (const auto& total : strategy.extended().batch_reduce_to("sum", pairs, {.bytes_per_pack = 40})) {
    ASSERT_EQ(total.size(), static_cast<std::size_t>(devices));
    for (const Tensor& component : total.components())
      EXPECT_THAT(component.span<double>(), ElementsAre(sum_from_one_to(replicas), 10 * replicas));
  }
}

void check_slices(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto slices = strategy.run([](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    return IndexedSlices{
        Tensor::full({id, 2}, DType::kFloat64, id), Tensor::full({id}, DType::kInt64, id), {100, 2}};
  });
  const IndexedSlices sum = strategy.reduce("sum", slices);
  std::vector<std::int64_t> rows;
  for (int id = 0; id < replicas; ++id) rows.insert(rows.end(), static_cast<std::size_t>(id), id);
  EXPECT_THAT(sum.indices.span<std::int64_t>(), ::testing::ElementsAreArray(rows));
  const auto check_mean = [&](ReplicaContext& replica, const IndexedSlices& mine) {
    const IndexedSlices mean = replica.all_reduce("mean", mine);
    ASSERT_THAT(mean.indices.span<std::int64_t>(), ::testing::ElementsAreArray(rows));
    for (std::size_t row = 0; row < rows.size(); ++row)
      EXPECT_DOUBLE_EQ(mean.values.span<double>()[2 * row], static_cast<double>(rows[row]) / replicas);
  };
  strategy.run(check_mean, slices);
}

void check_gather(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto rows =
      strategy.run([](ReplicaContext& replica) { return rows_of(replica.replica_id_in_sync_group()); });
  expect_rows_of_all(strategy.gather(rows, 0), replicas);
  const auto columns = strategy.run([](ReplicaContext& replica) {
    return Tensor::full({2, 1}, DType::kInt32, replica.replica_id_in_sync_group());
  });
  const Tensor all = strategy.gather(columns, -1);
  ASSERT_EQ(all.shape(), (Shape{2, replicas}));
  for (int id = 0; id < replicas; ++id) EXPECT_EQ(all.row(1).span<std::int32_t>()[std::size_t(id)], id);
}

void check_collectives_in_replicas(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  strategy.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const auto [number, tensor] =
        replica.all_reduce("sum", std::tuple(id + 1, Tensor::from({1.0, id + 1.0})));
    EXPECT_EQ(number, sum_from_one_to(replicas));
    EXPECT_THAT(tensor.span<double>(), ElementsAre(replicas, sum_from_one_to(replicas)));
    EXPECT_EQ(replica.all_reduce("mean", id + 1.0), (replicas + 1) / 2.0);
    expect_rows_of_all(replica.all_gather(rows_of(id), 0), replicas);
    const Tensor large = Tensor::full({100'001}, DType::kFloat32, id + 1);
    replica.all_reduce_in_place("sum", {&large, 1});
    EXPECT_THAT(large.span<float>(), Each(sum_from_one_to(replicas)));
  });
}

void check_merge_call(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  strategy.run([&](ReplicaContext& replica) {
    const double own = replica.replica_id_in_sync_group() + 1.0;
    const double total = replica.merge_call(
        [&](const Strategy& merging, const PerReplica<double>& mine) {
          EXPECT_THAT(mine.components(), SizeIs(devices)) << "a merge is of this worker's replicas";
          const auto doubled = merging.run([](double value) { return 2 * value; }, mine);
          return merging.reduce("sum", doubled);
        },
        own);
    EXPECT_EQ(total, 2 * sum_from_one_to(replicas));
    EXPECT_EQ(replica.all_reduce("sum", own), sum_from_one_to(replicas)) << "the replicas go on";
  });
}

void check_optimizers(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  const auto scope = strategy.scope();
  Sgd sgd({.learning_rate = 0.5});
  Momentum momentum({.learning_rate = 0.5, .momentum = 0.9});
  Adam adam({.learning_rate = 0.5});
  for (Optimizer* optimizer : std::initializer_list<Optimizer*>{&sgd, &momentum, &adam}) {
    const Variable weights({.initial_value = Tensor::from({1.0 + worker.rank(), 2.0})});
    for (int step = 0; step < 3; ++step) {
      strategy.run([&](ReplicaContext& replica) {
        const double id = replica.replica_id_in_sync_group();
        optimizer->apply_gradients({{Tensor::from({id + 1, 1.0}), weights}});
      });
    }
    if (optimizer == &sgd) {
      EXPECT_THAT(weights.read().span<double>(),
                  ElementsAre(1 - 1.5 * sum_from_one_to(replicas), 2 - 1.5 * replicas));
    }
    // Equal on all replicas, to the bit.
    for (const Tensor& component : weights.components())
      EXPECT_TRUE(bitwise_equal(component, weights.components()[0]));
    const Tensor all = strategy.gather(weights.read(), 0);
    for (int rank = 0; rank < worker.size(); ++rank)
      EXPECT_TRUE(bitwise_equal(all.rows(2 * rank, 2 * rank + 2).clone(), weights.read()));
  }
}

void check_input(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int replicas = strategy.num_replicas_in_sync();
  std::vector<double> values(23);
  std::iota(values.begin(), values.end(), 0);
  const auto dataset =
      Dataset<Tensor>::from_tensor_slices(Tensor::from(std::span<const double>(values), {23})).batch(8);
  std::vector<double> seen;
  for (const auto& batch : strategy.distribute_dataset(dataset)) {
    EXPECT_EQ(batch.size(), static_cast<std::size_t>(devices));
    const Tensor together = strategy.gather(batch, 0);
    const auto rows = together.span<double>();
    for (const Tensor& part : batch.components())
      EXPECT_LE(part.shape()[0], (static_cast<std::int64_t>(rows.size()) + replicas - 1) / replicas);
    seen.insert(seen.end(), rows.begin(), rows.end());
    std::sort(seen.end() - static_cast<std::ptrdiff_t>(rows.size()), seen.end());
  }
  EXPECT_EQ(seen, values) << "each row once, batch by batch";
}

void check_failing_replica(Bootstrap& worker, int devices) {
  // How many workers are ahead of the others: not in the replicas' collective, but in one of the workers.
  for (const int ahead : {0, worker.size()}) {
    const auto strategy = strategy_of(worker, devices);
    const auto step = [&](ReplicaContext& replica) {
      const int id = replica.replica_id_in_sync_group();
      if (id == replica.num_replicas_in_sync() - 1) throw std::out_of_range("no such row");
      if (worker.rank() >= ahead) static_cast<void>(replica.all_reduce("sum", 1.0));
    };
    const auto call = [&] {
      strategy.run(step);
      static_cast<void>(strategy.reduce("sum", 1.0));
    };
    expect_told<std::out_of_range>(worker, "no such row", call);
    static_cast<void>(worker.exchange(""));
  }
}

void check_unmade_collective(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const int guilty = strategy.num_replicas_in_sync() - 1;
  if (guilty == 0) return;
  // Where threads are the workers, all of them are in one worker's process.
  const int guilty_worker =
      strategy.extended().communicator(0).members()[static_cast<std::size_t>(guilty)].worker;
  strategy.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == guilty) {
      EXPECT_THROW(static_cast<void>(replica.all_reduce("sum", Tensor::from({true}))), InvalidArgument);
    }
    const auto next = [&] { static_cast<void>(replica.all_reduce("sum", 1.0)); };
    EXPECT_THAT(message_of(ErrorCode::kAborted, next),
                AllOf(ContainsRegex(fmt::format("replica {} \\(worker {}, host .*\\) failed first", guilty,
                                                guilty_worker)),
                      HasSubstr("sum of bool")));
  });
  static_cast<void>(worker.exchange(""));
}

void check_worker_ahead(Bootstrap& worker, int devices) {
  if (worker.size() == 1) return;
  const auto strategy = strategy_of(worker, devices);
  const auto call = [&] {
    if (worker.rank() == 0) {
      static_cast<void>(strategy.reduce("sum", 1.0));
    } else {
      strategy.run([](ReplicaContext& replica) { static_cast<void>(replica.all_reduce("sum", 1)); });
    }
  };
  EXPECT_THAT(call, ::testing::ThrowsMessage<Error>(
                        AllOf(HasSubstr("members disagree: "),
                              ContainsRegex("(worker 0 .host|worker 0, host).*reduces .sum. float64"),
                              HasSubstr("all_reduces (sum) int32"))));
  static_cast<void>(worker.exchange(""));
}

void check_deadline_of_a_call(Bootstrap& worker, int devices) {
  if (worker.size() == 1) return;
  constexpr double kShort = 0.2;
  const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = kShort}, cpu_devices(devices));
  StrategyExtended& extended = strategy.extended();
  static_cast<void>(worker.exchange(""));
  if (worker.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(3 * kShort));
  EXPECT_NO_THROW(
      static_cast<void>(extended.reduce_to("sum", 1.0, extended.destinations(), {.timeout_seconds = 60})));
}

void check_failing_merge(Bootstrap& worker, int devices) {
  const auto strategy = strategy_of(worker, devices);
  const auto step = [&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy& merging) {
      if (is_last(worker)) throw std::out_of_range("no such row");
      static_cast<void>(merging.reduce("sum", 1.0));
    });
  };
  expect_told<std::out_of_range>(worker, "no such row", [&] { strategy.run(step); });
  static_cast<void>(worker.exchange(""));
}

void check_replicas_that_differ(Bootstrap& worker, int devices) {
  const auto rows_if_odd = [&](ReplicaContext& replica) {
    return replica.replica_id_in_sync_group() == replica.num_replicas_in_sync() - 1 ? 3 : 2;
  };
  const auto check = [&](const char* text, const auto& reduce) {
    const auto strategy = strategy_of(worker, devices);
    const auto values = strategy.run([&](ReplicaContext& replica) {
      return Tensor::zeros({1, rows_if_odd(replica)}, DType::kFloat32);
    });
    expect_told<InvalidArgument>(worker, text, [&] { reduce(strategy, values); });
    static_cast<void>(worker.exchange(""));
  };
  check("shapes must agree", [](const Strategy& strategy, const PerReplica<Tensor>& values) {
    static_cast<void>(strategy.reduce("sum", values));
  });
  check("only the reduced axes may differ", [](const Strategy& strategy, const PerReplica<Tensor>& values) {
    static_cast<void>(strategy.reduce("mean", values, 0));
  });
  check("float32[1, 3]", [](const Strategy& strategy, const PerReplica<Tensor>& values) {
    static_cast<void>(strategy.gather(values, 0));
  });
}

}  // namespace cohort::testing
