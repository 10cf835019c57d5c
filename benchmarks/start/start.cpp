#include "start/start.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include <mpi.h>

#include <cohort/collective/communicator.h>
#include <cohort/mpi/session.h>

#include "timing.h"

namespace cohort::bench {
namespace {

/// How long MPI_Init_thread has taken in this process, which the Session calls; zero if it has not been
/// called. MPI calls a function of C, which has no other place for it.
std::chrono::duration<double> mpi_init_took{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace
}  // namespace cohort::bench

/// Measured by MPI's own interface for profilers: a function of the program in front of the library's.

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const auto start = std::chrono::steady_clock::now();
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  cohort::bench::mpi_init_took = std::chrono::steady_clock::now() - start;
  return status;
}

namespace cohort::bench {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

template <class Function>
double ms_of(Function function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return Milliseconds(std::chrono::steady_clock::now() - start).count();
}

class StartBench {
 public:
  explicit StartBench(mpi::Session& session) : session_(session) {}

  /// When all ranks have come.
  double ms_of_communicator() {
    static_cast<void>(session_.exchange(""));
    return ms_of([&] { communicators_.push_back(session_.make_communicator({})); });
  }

  double ms_of_all_reduce() {
    const Tensor one = Tensor::full({1}, DType::kFloat32, 1);
    return ms_of([&] { communicators_.front()->all_reduce(one, ReduceOp::kSum); });
  }

  [[nodiscard]] double of_slowest_rank(double ms) {
    double most = 0;
    for (const std::string& blob : session_.exchange({reinterpret_cast<const char*>(&ms), sizeof ms})) {
      std::memcpy(&ms, blob.data(), sizeof ms);
      most = std::max(most, ms);
    }
    return most;
  }

 private:
  mpi::Session& session_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  ///< all live, as in a program
};

}  // namespace

StartResult measure(const StartOptions& options, const CommandContext& context) {
  StartBench bench(context.session);
  const double init = Milliseconds(mpi_init_took).count();
  const double session = Milliseconds(context.session_took).count() - init;
  const double first = bench.ms_of_communicator();
  const double all_reduce = bench.ms_of_all_reduce();
  std::vector<double> further;
  further.reserve(static_cast<std::size_t>(options.communicators));
  for (int i = 0; i < options.communicators; ++i)
    further.push_back(bench.of_slowest_rank(bench.ms_of_communicator()));
  return {options.communicators,
          {{"MPI_Init", bench.of_slowest_rank(init)},
           {"rest of the Session", bench.of_slowest_rank(session)},
           {"first make_communicator", bench.of_slowest_rank(first)},
           {"first all_reduce", bench.of_slowest_rank(all_reduce)},
           {"further make_communicator", median(further)}}};
}

}  // namespace cohort::bench
