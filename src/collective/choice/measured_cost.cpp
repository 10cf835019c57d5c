#include "measured_cost.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>

namespace cohort {
namespace {

constexpr std::size_t kSmallBytes = 64;
/// Tensor sizes grow from kFirstLargeBytes to kLastLargeBytes by kGrowth until one call takes long enough to
/// drown clock resolution and latency.
constexpr std::size_t kFirstLargeBytes = std::size_t{256} << 10;
constexpr std::size_t kLastLargeBytes = std::size_t{16} << 20;
constexpr std::size_t kGrowth = 4;
constexpr double kLongEnough = 1e-3;
/// Queued one after the other on a GPU, which is asked once whether it has done them, as in a step.
constexpr int kCallsPerRound = 4;
constexpr int kRounds = 3;

/// The nearest power of two.
double rounded(double value) { return std::exp2(std::round(std::log2(value))); }

class Measurement {
 public:
  explicit Measurement(Communicator& communicator)
      : communicator_(communicator), device_(communicator.device()) {}

  [[nodiscard]] CommunicationCost take() {
    const double latency = seconds_of_small();
    std::size_t bytes = kFirstLargeBytes;
    double large = seconds_of_large(bytes);
    while (slowest({large})[0] < kLongEnough && bytes < kLastLargeBytes)
      large = seconds_of_large(bytes *= kGrowth);
    // What a member measures may be below the latency, by noise.
    const double per_byte = std::max(large - latency, large / 2) / static_cast<double>(bytes);
    const double per_copied_byte = seconds_of_copy(bytes) / static_cast<double>(bytes);
    const std::vector<double> agreed =
        slowest({rounded(latency), rounded(per_byte), rounded(per_copied_byte)});
    return {.latency_seconds = agreed[0],
            .bytes_per_second = 1 / agreed[1],
            .copied_bytes_per_second = 1 / agreed[2]};
  }

 private:
  [[nodiscard]] Tensor zeros(std::size_t bytes) const {
    return Tensor::zeros({static_cast<std::int64_t>(bytes / sizeof(float))}, DType::kFloat32, device_);
  }

  /// The median of what `function` takes; the members begin each round together.
  template <class Function>
  [[nodiscard]] double median_seconds(Function function) {
    std::vector<double> seconds;
    function();  // connections and memory that are made when first used
    for (int round = 0; round < kRounds; ++round) {
      synchronize(device_);
      communicator_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      function();
      synchronize(device_);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    const auto middle = seconds.begin() + kRounds / 2;
    std::ranges::nth_element(seconds, middle);
    return std::max(*middle, 1e-9);  // a clock may stand still
  }

  [[nodiscard]] double seconds_of_small() {
    const Tensor tensor = zeros(kSmallBytes);
    const auto calls = [&] {
      for (int i = 0; i < kCallsPerRound; ++i) communicator_.all_reduce(tensor, ReduceOp::kSum);
    };
    return median_seconds(calls) / kCallsPerRound;
  }

  [[nodiscard]] double seconds_of_large(std::size_t bytes) {
    const Tensor tensor = zeros(bytes);
    return median_seconds([&] { communicator_.all_reduce(tensor, ReduceOp::kSum); });
  }

  [[nodiscard]] double seconds_of_copy(std::size_t bytes) {
    const Tensor from = zeros(bytes);
    const Tensor to = zeros(bytes);
    const auto copies = [&] {
      for (int i = 0; i < kCallsPerRound; ++i) to.copy_from(from);
    };
    return median_seconds(copies) / kCallsPerRound;
  }

  /// Each number of the member where it is the largest.
  [[nodiscard]] std::vector<double> slowest(std::initializer_list<double> own) {
    const Tensor numbers = Tensor::from(own);
    communicator_.all_reduce(numbers, ReduceOp::kMax);
    const std::span<const double> agreed = numbers.span<double>();
    return {agreed.begin(), agreed.end()};
  }

  Communicator& communicator_;
  Device device_;
};

}  // namespace

CommunicationCost measured_cost(Communicator& communicator) { return Measurement(communicator).take(); }

}  // namespace cohort
