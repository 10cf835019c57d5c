#include "communicator_contracts.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cohort::testing {
namespace {

constexpr std::size_t kOperations = 40;

/// One collective, alike on all members.
struct Planned {
  int id = 0;
  std::size_t communicator = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  std::int64_t elements = 0;
  int root = 0;  ///< modulo the members of the communicator, which may be different groups
  CallOptions options;
};

struct InFlight {
  Planned planned;
  Work work;
  Tensor output;
  Tensor wanted;
};

template <class Choices>
auto choose(std::mt19937& random, const Choices& choices) {
  return choices[std::uniform_int_distribution<std::size_t>(0, std::size(choices) - 1)(random)];
}

std::vector<Planned> make_plan(std::mt19937& random, std::size_t communicators) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kReduce,
                                       CollectiveKind::kBroadcast,     CollectiveKind::kAllGather,
                                       CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                       CollectiveKind::kBarrier};
  constexpr std::int64_t kElements[] = {1, 7, 500, 5'000, 20'000};
  constexpr Priority kPriorities[] = {Priority::kNormal, Priority::kUrgent};
  std::vector<Planned> plan;
  for (std::size_t i = 0; i < kOperations; ++i) {
    plan.push_back({static_cast<int>(i),
                    std::uniform_int_distribution<std::size_t>(0, communicators - 1)(random),
                    choose(random, kKinds),
                    choose(random, kElements),
                    std::uniform_int_distribution<int>(0, 1000)(random),
                    {.priority = choose(random, kPriorities)}});
  }
  return plan;
}

/// The plan in another order, but the same within each communicator.
std::vector<Planned> merged_anew(std::mt19937& random, const std::vector<Planned>& plan) {
  std::vector<std::size_t> turns;
  turns.reserve(plan.size());
  for (const Planned& planned : plan) turns.push_back(planned.communicator);
  std::shuffle(turns.begin(), turns.end(), random);
  std::vector<Planned> merged;
  std::vector<Planned> left = plan;
  for (const std::size_t turn : turns) {
    const auto next = std::find_if(left.begin(), left.end(),
                                   [&](const Planned& planned) { return planned.communicator == turn; });
    merged.push_back(*next);
    left.erase(next);
  }
  return merged;
}

/// Whole numbers, so small that sums are exact; they encode the operation, the member and the place.
Tensor numbers(const Planned& planned, int member, std::int64_t elements) {
  Tensor tensor = Tensor::uninitialized({elements}, DType::kFloat32);
  int next = planned.id * 131 + member * 17;
  for (float& value : tensor.span<float>()) value = static_cast<float>(next++ % 1000);
  return tensor;
}

Tensor sum_of_numbers(const Planned& planned, int members, std::int64_t elements) {
  Tensor sum = Tensor::zeros({elements}, DType::kFloat32);
  for (int member = 0; member < members; ++member) {
    const Tensor addend = numbers(planned, member, elements);
    std::transform(sum.span<float>().begin(), sum.span<float>().end(), addend.span<float>().begin(),
                   sum.span<float>().begin(), std::plus());
  }
  return sum;
}

InFlight start(Communicator& communicator, Planned planned) {
  const int rank = communicator.rank();
  const int members = communicator.size();
  planned.root %= members;
  const std::int64_t block = planned.elements;
  const std::int64_t all = block * members;
  const std::int64_t begin = block * rank;
  const auto empty = [](std::int64_t elements) { return Tensor::zeros({elements}, DType::kFloat32); };

  switch (planned.kind) {
    case CollectiveKind::kAllReduce: {
      const Tensor tensor = numbers(planned, rank, block);
      return {planned, communicator.all_reduce_async(tensor, ReduceOp::kSum, planned.options), tensor,
              sum_of_numbers(planned, members, block)};
    }
    case CollectiveKind::kReduce: {
      const Tensor output = empty(block);
      return {planned,
              communicator.reduce_async(numbers(planned, rank, block), output, ReduceOp::kSum, planned.root,
                                        planned.options),
              output, rank == planned.root ? sum_of_numbers(planned, members, block) : empty(block)};
    }
    case CollectiveKind::kBroadcast: {
      const Tensor tensor = numbers(planned, rank, block);
      return {planned, communicator.broadcast_async(tensor, planned.root, planned.options), tensor,
              numbers(planned, planned.root, block)};
    }
    case CollectiveKind::kAllGather: {
      const Tensor output = empty(all);
      Work work = communicator.all_gather_async(numbers(planned, rank, block), output, planned.options);
      const Tensor wanted = empty(all);
      for (int member = 0; member < members; ++member) {
        wanted.rows(block * member, block * (member + 1)).copy_from(numbers(planned, member, block));
      }
      return {planned, std::move(work), output, wanted};
    }
    case CollectiveKind::kReduceScatter: {
      const Tensor output = empty(block);
      return {planned,
              communicator.reduce_scatter_async(numbers(planned, rank, all), output, ReduceOp::kSum,
                                                planned.options),
              output, sum_of_numbers(planned, members, all).rows(begin, begin + block)};
    }
    case CollectiveKind::kAllToAll: {
      const Tensor output = empty(all);
      Work work = communicator.all_to_all_async(numbers(planned, rank, all), output, planned.options);
      const Tensor wanted = empty(all);
      for (int member = 0; member < members; ++member) {
        wanted.rows(block * member, block * (member + 1))
            .copy_from(numbers(planned, member, all).rows(begin, begin + block));
      }
      return {planned, std::move(work), output, wanted};
    }
    default: return {planned, communicator.barrier_async(planned.options), Tensor(), Tensor()};
  }
}

void wait_for_all(std::vector<InFlight>& in_flight, WaitOrder order) {
  if (order != WaitOrder::kPolled) {
    for (InFlight& operation : in_flight) operation.work.wait();
    return;
  }
  std::vector<InFlight*> pending;
  pending.reserve(in_flight.size());
  for (InFlight& operation : in_flight) pending.push_back(&operation);
  while (!pending.empty()) {
    if (std::erase_if(pending, [](const InFlight* operation) { return operation->work.done(); }) == 0) {
      std::this_thread::yield();
    }
  }
  for (InFlight& operation : in_flight) operation.work.wait();
}

}  // namespace

void check_interleaved(std::span<const std::unique_ptr<Communicator>> communicators, unsigned seed,
                       WaitOrder order) {
  const int rank = communicators.front()->rank();
  std::mt19937 common(seed);
  std::mt19937 own(seed * 1000 + static_cast<unsigned>(rank));

  std::vector<InFlight> in_flight;
  for (const Planned& planned : merged_anew(own, make_plan(common, communicators.size()))) {
    in_flight.push_back(start(*communicators[planned.communicator], planned));
  }

  std::sort(in_flight.begin(), in_flight.end(),
            [](const InFlight& a, const InFlight& b) { return a.planned.id < b.planned.id; });
  std::shuffle(in_flight.begin(), in_flight.end(), order == WaitOrder::kSame ? common : own);
  wait_for_all(in_flight, order);
  for (const InFlight& operation : in_flight) {
    if (operation.planned.kind == CollectiveKind::kBarrier) continue;
    EXPECT_TRUE(bitwise_equal(operation.output, operation.wanted))
        << fmt::format("seed {}, member {}, operation {}: {} of {} elements on communicator {}", seed, rank,
                       operation.planned.id, to_string(operation.planned.kind), operation.planned.elements,
                       operation.planned.communicator);
  }
}

}  // namespace cohort::testing
