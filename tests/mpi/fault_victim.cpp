// A program in which one worker fails, at a phase and in a way that the command line names: fault_victim
// PHASE HOW RANK. faults.sh looks at how the job ends.
//
// PHASE: init (before MPI_Init), start (the Session is new), collective, group (amid urgent
//        collectives of a group), private (amid collectives whose buffers the others reach
//        by the kernel only), compute, finalize (the others are at, or in, MPI_Finalize), or end (the
//        others give the victim up, go on and end their Session)
// HOW:   kill, stop, uncaught (an exception leaves main), caught (outside the Session), exit (in the middle),
//        loop (for ever), child (a forked child leaves main, which is no fault), late (a kill, and the watch
//        of the worker before the victim learns it after its communicator), none
#include <mpi.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cohort/collective/communicator.h>
#include <cohort/mpi/session.h>

namespace {

std::string phase;
std::string how;
bool is_victim = false;
bool is_late = false;
std::atomic<bool> watch_is_late = false;  ///< from now on
const std::thread::id kMainThread = std::this_thread::get_id();

void compute_for_long() {
  volatile unsigned counter = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) counter = counter + 1;
}

void come_to_grief() {
  if (how == "kill" || how == "late") ::raise(SIGKILL);
  if (how == "stop") ::raise(SIGSTOP);
  if (how == "loop") compute_for_long();
  if (how == "exit") std::exit(0);
  if (how == "uncaught" || how == "caught") throw std::runtime_error("the victim's own mistake");
}

/// The victim's child returns as well, with copies of all that the parent has.
void end_beside_a_child() {
  if (!is_victim) return;
  const pid_t child = ::fork();
  if (child == 0) return;
  int status = -1;
  ::waitpid(child, &status, 0);
  std::fprintf(stderr, "the child's status is %d\n", status);
}

void work() {
  cohort::mpi::Session session;
  if (is_victim && phase == "start") come_to_grief();
  const auto communicator = session.make_communicator({});
  communicator->barrier();
  const auto group = communicator->split(0, -session.rank());
  const auto say_all_are_running = [&] {
    if (session.is_chief()) std::fputs("all are running\n", stderr);
  };
  if (phase != "collective") say_all_are_running();
  watch_is_late = is_late;
  if (how == "child") return end_beside_a_child();
  if (is_victim) {
    const auto wait_a_little = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
    if (phase == "private") {
      std::thread([wait_a_little] {
        wait_a_little();
        come_to_grief();
      }).detach();
    } else {
      wait_a_little();
    }
    if (phase == "collective" || phase == "group" || phase == "compute" || phase == "end" ||
        (phase == "finalize" && how != "kill"))
      come_to_grief();
  }
  if (phase == "end") {
    try {
      communicator->barrier();
    } catch (const cohort::DeadlineExceeded& error) {
      std::fprintf(stderr, "goes on after: %s\n", error.what());
    }
  }
  if (phase == "compute") compute_for_long();
  if (phase == "collective") {
    const cohort::Tensor tensor = cohort::Tensor::zeros({1'000'000}, cohort::DType::kFloat32);
    communicator->all_reduce(tensor, cohort::ReduceOp::kSum);
    communicator->all_reduce(tensor, cohort::ReduceOp::kSum);
    say_all_are_running();  // for nobody is in the split or in a call before any more
    while (true) communicator->all_reduce(tensor, cohort::ReduceOp::kSum);
  }
  if (phase == "group") {
    const cohort::Tensor tensor = cohort::Tensor::zeros({100}, cohort::DType::kFloat32);
    while (true) group->all_reduce(tensor, cohort::ReduceOp::kSum, {.priority = cohort::Priority::kUrgent});
  }
  if (phase == "private") {
    std::vector<float> values(1'000'000);
    const cohort::Tensor tensor = cohort::Tensor::wrap(std::span<float>(values), {1'000'000});
    while (true) communicator->all_reduce(tensor, cohort::ReduceOp::kSum);
  }
}

}  // namespace

// The watch's thread sleeps in here.
extern "C" int poll(pollfd* fds, nfds_t nfds, int timeout) {
  const timespec time{timeout / 1000, timeout % 1000 * 1'000'000L};
  const int ready = ::ppoll(fds, nfds, timeout < 0 ? nullptr : &time, nullptr);
  if (watch_is_late && std::this_thread::get_id() != kMainThread)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return ready;
}
// The launcher hears first of the end of the worker that is late.
extern "C" int MPI_Abort(MPI_Comm communicator, int status) {
  if (how == "late" && !is_late) std::this_thread::sleep_for(std::chrono::seconds(1));
  return PMPI_Abort(communicator, status);
}

// Inside MPI_Init and MPI_Finalize there is no other way to get at the victim.
extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (is_victim && phase == "init") come_to_grief();
  return PMPI_Init_thread(argc, argv, required, provided);
}
extern "C" int MPI_Finalize() {
  if (is_victim && phase == "finalize") come_to_grief();
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  phase = argv[1];
  how = argv[2];
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  is_victim = rank != nullptr && std::string(rank) == argv[3];
  is_late = how == "late" && rank != nullptr && std::to_string(std::atoi(rank) + 1) == argv[3];
  if (how != "caught") {
    work();
    return 0;
  }
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "caught by worker %s: %s\n", rank, error.what());
    return 1;
  }
  return 0;
}
