// A training in which one worker may be slow, for stragglers.sh: straggler_victim HOW RANK STEPS MS [BYTES].
// Each step takes a batch from a dataset, computes for a millisecond and sums BYTES bytes over all workers.
//
// HOW: clean, busy (RANK computes for MS ms more in each step), input (it reads for that much more),
// sometimes
//      (it computes for that much more in a third of the steps), fast (nobody computes), throws (as busy;
//      it throws at the end)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>

#include <cohort/base/timeline_span.h>
#include <cohort/collective/communicator.h>
#include <cohort/input/dataset.h>
#include <cohort/mpi/session.h>

namespace {

using namespace std::chrono_literals;

void compute(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  cohort::mpi::Session session(argc, argv);
  const std::string how = argv[1];
  const bool is_slow = session.rank() == std::atoi(argv[2]);
  const int steps = std::atoi(argv[3]);
  const std::chrono::milliseconds more(std::atoi(argv[4]));
  const std::int64_t bytes = argc > 5 ? std::atoi(argv[5]) : 4096;
  const auto communicator = session.make_communicator({});
  const cohort::Tensor gradient = cohort::Tensor::zeros({bytes / 4}, cohort::DType::kFloat32);
  std::mt19937 random(7);

  const auto batches = cohort::Dataset<int>::from_generator([&] {
    return [&, step = 0]() mutable -> std::optional<int> {
      if (step == steps) return std::nullopt;
      if (how == "input" && is_slow) compute(more);
      return step++;
    };
  });
  for ([[maybe_unused]] const int batch : batches) {
    const cohort::TimelineSpan span("step");
    if (how != "fast") compute(1ms);
    if ((how == "busy" || how == "throws") && is_slow) compute(more);
    if (how == "sometimes" && random() % 3 == 0 && is_slow) compute(more);
    communicator->all_reduce(gradient, cohort::ReduceOp::kSum);
  }
  if (how == "throws") {
    if (is_slow) throw std::runtime_error("has computed enough");
    communicator->barrier();
  }
  return 0;
}
