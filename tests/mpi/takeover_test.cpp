// A program that runs MPI itself: the Session takes MPI over as it finds it, does not
// finalise it, and can be made again; after MPI_Finalize it refuses.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>
#include <cohort/mpi/session.h>

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "takeover_test: wrong: %s\n", what);
  std::exit(1);
}

/// Communicates with and without Cohort; both must go on working.
void use(cohort::mpi::Session& session) {
  const cohort::Tensor tensor = cohort::Tensor::full({10'000}, cohort::DType::kInt32, 1);
  session.make_communicator({})->all_reduce(tensor, cohort::ReduceOp::kSum);
  require(tensor.span<std::int32_t>()[9'999] == session.size(), "sum of Cohort");
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(sum == session.size(), "sum of MPI");
}

void refuse_other_threads(cohort::mpi::Session& session) {
  auto communicator = session.make_communicator({});
  const auto is_refused = [](const std::function<void()>& call) {
    bool refused = false;
    std::thread([&] {
      try {
        call();
      } catch (const cohort::WrongContext& error) {
        refused = std::string(error.what()).find("MPI_THREAD_FUNNELED") != std::string::npos;
      }
    }).join();
    return refused;
  };
  require(is_refused([&] { communicator->barrier(); }),
          "a second thread communicates though MPI allows only one");
  // One worker alone has nobody to exchange anything with.
  require(is_refused([&] { static_cast<void>(session.exchange("")); }) || session.size() == 1,
          "a second thread exchanges data though MPI allows only one");
  require(session.exchange("still here").size() == static_cast<std::size_t>(session.size()), "exchange");
  session.make_communicator({})->barrier();
}

/// On one node threads need no MPI to communicate; between nodes they do.
void use_threads(cohort::mpi::Session& session) {
  const bool several_nodes = std::string(session.make_communicator({})->name()) == "network";
  bool refused = false;
  try {
    const auto seats = session.make_communicators({}, 2);
    std::thread other([&] { seats[1]->barrier(); });
    seats[0]->barrier();
    other.join();
  } catch (const cohort::WrongContext& error) {
    refused = std::string(error.what()).find("MPI_THREAD_SERIALIZED") != std::string::npos;
  }
  require(refused == several_nodes, "members that are threads, where MPI allows only one");
}

}  // namespace

int main(int argc, char** argv) {
  int granted = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &granted);
  for (int round = 0; round < 2; ++round) {
    cohort::mpi::Session session;
    use(session);
    if (granted != MPI_THREAD_FUNNELED) continue;
    if (std::string(session.make_communicator({})->name()) == "network") refuse_other_threads(session);
    use_threads(session);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  try {
    cohort::mpi::Session session;
    require(false, "a Session after MPI_Finalize");
  } catch (const cohort::WrongContext&) {
    return 0;
  }
}
