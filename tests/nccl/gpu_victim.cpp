// Two or more ranks that reduce on GPUs again and again until rank 1 comes to grief, or rank 0 throws while
// the others do nothing; each says what it has noticed, and how long it had waited. tests/gpu_first.sh runs
// it.
//
//   gpu_victim kill|stop|throw SECONDS     SECONDS: the deadline of a call
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <cohort/cuda/devices.h>
#include <cohort/mpi/session.h>
#include <cohort/nccl/communicator.h>

namespace {

using namespace cohort;
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 50;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

void reduce_until(const std::string& how, double timeout_seconds) {
  mpi::Session session;
  const auto gpus = static_cast<int>(cuda::devices().size());
  const Device gpu(DeviceKind::kCuda, session.self().local_rank % gpus);
  const auto hosts = session.make_communicators({.timeout_seconds = timeout_seconds}, 1);
  const auto communicator = std::move(nccl::make_communicators(hosts, {&gpu, 1}).front());
  const Tensor tensor = Tensor::full({10'000}, DType::kFloat32, 1, gpu);
  Clock::time_point last = Clock::now();
  try {
    for (int step = 0; how != "throw" || step < kSteps; ++step) {
      if (step == kSteps && session.rank() == 1) std::raise(how == "kill" ? SIGKILL : SIGSTOP);
      communicator->all_reduce(tensor, ReduceOp::kMax);
      synchronize(gpu);
      last = Clock::now();
    }
    if (session.rank() == 0) throw std::runtime_error("rank 0's own mistake");
    std::this_thread::sleep_for(std::chrono::seconds(60));
  } catch (const std::exception& error) {
    std::printf("rank %d after %.1f s: %s\n", session.rank(), seconds_since(last), error.what());
    std::fflush(stdout);
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc == 3 ? argv[1] : "";
  if (how != "kill" && how != "stop" && how != "throw") {
    std::fputs("gpu_victim kill|stop|throw SECONDS\n", stderr);
    return 2;
  }
  reduce_until(how, std::atof(argv[2]));
}
