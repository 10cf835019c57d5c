#include "communicator_contracts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

/// What the process may grow by after the first tenth of the rounds, however many there are: less
/// than a hundred bytes for each of 10^5.
constexpr std::int64_t kMostGrowth = 8 << 20;

/// The address sanitizer keeps freed memory.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kFreedMemoryIsKept = true;
#else
constexpr bool kFreedMemoryIsKept = false;
#endif

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoll(text);
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// A tensor that is rewritten for each round, so that a stale result is found out.
class Subject {
 public:
  explicit Subject(std::int64_t elements) : tensor_(Tensor::zeros({elements}, DType::kFloat32)) {}

  [[nodiscard]] const Tensor& tensor() const { return tensor_; }

  void fill(std::int64_t round, int rank) {
    visit(round, [rank](float& value, int number) { value = static_cast<float>(number + rank); });
  }

  [[nodiscard]] bool holds_sum(std::int64_t round, int members) const {
    bool right = true;
    const int of_ranks = members * (members - 1) / 2;
    visit(round, [&](const float& value, int number) {
      right &= value == static_cast<float>(members * number + of_ranks);
    });
    return right;
  }

 private:
  /// Each element with the number that it has in this round.
  template <class Function>
  void visit(std::int64_t round, Function function) const {
    constexpr int kNumbers = 101;
    auto number = static_cast<int>(round % kNumbers);
    for (float& value : tensor_.span<float>()) {
      function(value, number);
      if (++number == kNumbers) number = 0;
    }
  }

  Tensor tensor_;
};

/// One round after the other, until one has failed, with an eye on the process's memory.
template <class Round>
void run(Communicator& communicator, const char* what, std::int64_t rounds, Round round) {
  const std::int64_t warm_up = std::max<std::int64_t>(rounds / 10, 2);
  const auto start = std::chrono::steady_clock::now();
  std::int64_t resident = 0;
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (i == warm_up) {
      communicator.barrier();
      resident = resident_bytes();
    }
    ASSERT_TRUE(round(i)) << fmt::format("{}, round {}, member {} of {}: wrong sum", what, i,
                                         communicator.rank(), communicator.size());
  }
  communicator.barrier();
  const std::int64_t growth = resident_bytes() - resident;
  if (!kFreedMemoryIsKept) {
    EXPECT_LE(growth, kMostGrowth) << what << ", member " << communicator.rank();
  }
  if (communicator.rank() != 0) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("soak: {} {} of {} members in {:.1f} s; after the first {} the process grew by {} KiB\n", rounds,
             what, communicator.size(), took.count(), warm_up, growth / 1024);
}

}  // namespace

std::int64_t small_soak_rounds() { return from_environment("SOAK_SMALL", 100'000); }
std::int64_t large_soak_rounds() { return from_environment("SOAK_LARGE", 10); }

void soak_small(Communicator& communicator, std::int64_t rounds) {
  std::vector<Subject> subjects;
  for (const std::int64_t elements : {1, 3, 16, 100, 257, 1500}) subjects.emplace_back(elements);
  const auto one_alone = [&](std::int64_t round) {
    Subject& subject = subjects[static_cast<std::size_t>(round) % subjects.size()];
    subject.fill(round, communicator.rank());
    communicator.all_reduce(subject.tensor(), ReduceOp::kSum);
    return subject.holds_sum(round, communicator.size());
  };
  const auto all_at_once = [&](std::int64_t round) {
    std::vector<Work> works;
    for (Subject& subject : subjects) {
      subject.fill(round, communicator.rank());
      works.push_back(communicator.all_reduce_async(subject.tensor(), ReduceOp::kSum));
    }
    for (Work& work : works) work.wait();
    return std::all_of(subjects.begin(), subjects.end(),
                       [&](const Subject& subject) { return subject.holds_sum(round, communicator.size()); });
  };
  constexpr std::int64_t kRoundsBetweenBursts = 100;
  run(communicator, "small all-reduces", rounds, [&](std::int64_t round) {
    return round % kRoundsBetweenBursts == 0 ? all_at_once(round) : one_alone(round);
  });
}

void soak_large(Communicator& communicator, std::int64_t rounds) {
  Subject subject((16 << 20) / sizeof(float));
  run(communicator, "all-reduces of 16 MiB", rounds, [&](std::int64_t round) {
    subject.fill(round, communicator.rank());
    communicator.all_reduce(subject.tensor(), ReduceOp::kSum);
    return subject.holds_sum(round, communicator.size());
  });
}

}  // namespace cohort::testing
