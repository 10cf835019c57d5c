// A program's own algorithm: the all-gather of Bruck et al. (1997), which takes the fewest rounds possible,
// registered beside Cohort's.
//
//   launch/cohort-run -n 4 build/bin/bruck_all_gather                                    # the model chooses
//   COHORT_ALGORITHM=all_gather=bruck launch/cohort-run -n 4 build/bin/bruck_all_gather  # Bruck's
#include <algorithm>
#include <bit>
#include <iostream>

#include <fmt/format.h>

#include <cohort/collective/algorithm.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/copy_bytes.h>
#include <cohort/device/tensor.h>
#include <cohort/mpi/session.h>

#include "page.h"

namespace {

using cohort::CallShape;
using cohort::CollectiveCall;
using cohort::CollectiveKind;
using cohort::CostConstants;
using cohort::Task;

/// In round k a member sends the blocks that it has, its own first, to the member 2^k places before it. Cost
/// ceil(log2 p) alpha + (p-1) n beta, and two copies of the result.
class Bruck final : public cohort::Algorithm {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "bruck"; }
  [[nodiscard]] CollectiveKind kind() const noexcept override { return CollectiveKind::kAllGather; }
  [[nodiscard]] bool is_legal(const CallShape& shape) const override { return !shape.uneven; }

  [[nodiscard]] double seconds(const CallShape& shape, const CostConstants& constants) const override {
    const auto rounds = static_cast<double>(std::bit_width(static_cast<unsigned>(shape.members - 1)));
    const auto result = static_cast<double>(shape.bytes) * shape.members;
    return rounds * constants.latency_seconds +
           result * (constants.seconds_per_byte + 2 * constants.reduce_seconds_per_byte);
  }

  [[nodiscard]] Task<> execute(cohort::Peers& peers, const CollectiveCall& call) const override {
    const int members = peers.size();
    const std::size_t block = call.elements * cohort::size_of(call.dtype);
    const auto place = [block](int index) { return static_cast<std::size_t>(index) * block; };
    const auto member_behind = [&](int steps) { return (peers.rank() + steps + members) % members; };

    // Block i here is that of the member i places after this one.
    const std::shared_ptr<std::byte> blocks = peers.scratch(place(members));
    cohort::copy_bytes(blocks.get(), call.input, block);
    for (int known = 1; known < members; known *= 2) {
      const int leaving = std::min(known, members - known);
      co_await peers.exchange(member_behind(-known), {blocks.get(), place(leaving)}, member_behind(known),
                              {blocks.get() + place(known), place(leaving)});
    }
    for (int index = 0; index < members; ++index)
      cohort::copy_bytes(call.output + place(member_behind(index)), blocks.get() + place(index), block);
  }
};

constexpr std::int64_t kElements = 50'000;

bool is_right(const cohort::Tensor& gathered, int members) {
  for (int member = 0; member < members; ++member) {
    const auto expected = cohort::Tensor::full({kElements}, cohort::DType::kInt32, member);
    if (!bitwise_equal(gathered.rows(kElements * member, kElements * (member + 1)), expected)) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(argc, argv, "bruck_all_gather: an algorithm of the program's own"))
    return *status;
  cohort::mpi::Session session(argc, argv);
  cohort::register_algorithm(std::make_shared<Bruck>());
  const std::unique_ptr<cohort::Communicator> communicator = session.make_communicator({});

  const auto own = cohort::Tensor::full({kElements}, cohort::DType::kInt32, communicator->rank());
  const auto all = cohort::Tensor::zeros({kElements * communicator->size()}, cohort::DType::kInt32);
  communicator->all_gather(own, all);

  const std::string how =
      fmt::format("by {} ({})", communicator->last_algorithm(), communicator->last_choice());

  const auto verdict =
      cohort::Tensor::full({1}, cohort::DType::kInt32, is_right(all, communicator->size()) ? 1 : 0);
  communicator->all_reduce(verdict, cohort::ReduceOp::kMin);
  const bool right = verdict.span<std::int32_t>().front() == 1;
  if (communicator->rank() == 0) std::cout << (right ? "right" : "WRONG") << ", " << how << std::endl;
  return right ? 0 : 1;
}
