// One collective as SimGrid's SMPI simulates it (smpicxx, smpirun), for simgrid.sh. All members begin at the
// same virtual time, and what they compute takes none. Only times matter, so they share their buffers.
//
//   simgrid_peer COLLECTIVE BYTES EXCHANGED
//
// BYTES are those of the largest buffer, as in `cohort-bench simulate --bytes`. Prints three times in
// microseconds until the last member has its result: of a barrier, of the collective, and of two neighbours
// that exchange EXCHANGED bytes.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include <mpi.h>

namespace {

struct Call {
  std::string collective;
  int all;    ///< floats of the largest buffer
  int block;  ///< floats of each member's block of it
  int exchanged;
  float* in;
  float* out;
};

void carry_out(const Call& call) {
  MPI_Comm comm = MPI_COMM_WORLD;
  const std::string& name = call.collective;
  if (name == "barrier") MPI_Barrier(comm);
  if (name == "all_reduce") MPI_Allreduce(call.in, call.out, call.all, MPI_FLOAT, MPI_SUM, comm);
  if (name == "reduce") MPI_Reduce(call.in, call.out, call.all, MPI_FLOAT, MPI_SUM, 0, comm);
  if (name == "broadcast") MPI_Bcast(call.out, call.all, MPI_FLOAT, 0, comm);
  if (name == "all_gather")
    MPI_Allgather(call.in, call.block, MPI_FLOAT, call.out, call.block, MPI_FLOAT, comm);
  if (name == "gather") MPI_Gather(call.in, call.block, MPI_FLOAT, call.out, call.block, MPI_FLOAT, 0, comm);
  if (name == "scatter")
    MPI_Scatter(call.in, call.block, MPI_FLOAT, call.out, call.block, MPI_FLOAT, 0, comm);
  if (name == "all_to_all")
    MPI_Alltoall(call.in, call.block, MPI_FLOAT, call.out, call.block, MPI_FLOAT, comm);
  if (name == "exchange") {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Sendrecv(call.in, call.exchanged, MPI_FLOAT, rank ^ 1, 0, call.out, call.exchanged, MPI_FLOAT,
                 rank ^ 1, 0, comm, MPI_STATUS_IGNORE);
  }
}

/// From `start` on, in virtual seconds, at which all members begin together.
double microseconds(const Call& call, double start) {
  const double wait = start - MPI_Wtime();
  const timespec time{static_cast<time_t>(wait), static_cast<long>((wait - static_cast<time_t>(wait)) * 1e9)};
  nanosleep(&time, nullptr);
  const double began = MPI_Wtime();
  carry_out(call);
  double own[2] = {MPI_Wtime(), -began};
  double latest[2] = {};
  MPI_Allreduce(own, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (latest[0] + latest[1]) * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int members = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &members);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) {
    if (rank == 0) std::fprintf(stderr, "simgrid_peer: needs COLLECTIVE BYTES EXCHANGED\n");
    MPI_Finalize();
    return 2;
  }
  const int all = std::atoi(argv[2]) / static_cast<int>(sizeof(float));
  Call call{argv[1], all,    all / members, std::atoi(argv[3]) / static_cast<int>(sizeof(float)),
            nullptr, nullptr};
  const std::size_t bytes = static_cast<std::size_t>(all) * sizeof(float) + sizeof(float);
  call.in = static_cast<float*>(SMPI_SHARED_MALLOC(bytes));
  call.out = static_cast<float*>(SMPI_SHARED_MALLOC(bytes));
  Call barrier = call;
  barrier.collective = "barrier";
  Call exchange = call;
  exchange.collective = "exchange";
  const double of_barrier = microseconds(barrier, 1);
  const double of_call = microseconds(call, 2);
  const double of_exchange = microseconds(exchange, 3);
  if (rank == 0) std::printf("%.3f %.3f %.3f\n", of_barrier, of_call, of_exchange);
  SMPI_SHARED_FREE(call.in);
  SMPI_SHARED_FREE(call.out);
  MPI_Finalize();
  return 0;
}
