// An algorithm that a program might register: an all-reduce of int32 sums along a chain of
// the members. Some numbers of elements make it misbehave.
#pragma once

#include <cstring>
#include <stdexcept>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/reduction.h>

namespace cohort::testing {

class Chain final : public Algorithm {
 public:
  static constexpr std::int64_t kThrowing = 77'777;   ///< member 0 throws, in the middle of it
  static constexpr std::int64_t kForgetful = 55'555;  ///< the last member keeps the result to itself

  [[nodiscard]] std::string_view name() const noexcept override { return "chain"; }
  [[nodiscard]] CollectiveKind kind() const noexcept override { return CollectiveKind::kAllReduce; }
  [[nodiscard]] bool is_legal(const CallShape& shape) const override {
    return shape.dtype == DType::kInt32 && shape.op == ReduceOp::kSum;
  }
  [[nodiscard]] double seconds(const CallShape& shape, const CostConstants& constants) const override {
    return shape.members *
           (constants.latency_seconds + static_cast<double>(shape.bytes) * constants.seconds_per_byte);
  }

  [[nodiscard]] Task<> execute(Peers& peers, const CollectiveCall& call) const override {
    const int last = peers.size() - 1;
    const std::size_t bytes = call.elements * sizeof(std::int32_t);
    const std::span<const std::byte> result(call.output, bytes);
    const std::shared_ptr<std::byte> scratch = peers.scratch(bytes);
    if (call.output != call.input) std::memcpy(call.output, call.input, bytes);
    if (peers.rank() > 0) {
      co_await peers.receive(peers.rank() - 1, {scratch.get(), bytes});
      const std::byte* const inputs[] = {scratch.get(), call.output};
      reduce_elements(call.dtype, call.op, inputs, call.output, call.elements);
    }
    if (peers.rank() < last) {
      co_await peers.send(peers.rank() + 1, result);
      if (peers.rank() == 0 && call.elements == kThrowing) throw std::runtime_error("the chain broke");
      co_await peers.receive(last, {call.output, bytes}, 1);
    } else if (call.elements != kForgetful) {
      for (int member = 0; member < last; ++member) {
        co_await peers.send(member, result, 1);
      }
    }
  }
};

}  // namespace cohort::testing
