// A program in which one worker goes wrong, in a way that the command line names, for report.sh:
// report_victim HOW RANK FOLDER. Every worker finishes all_reduce #0 of float64[100] and all_reduce #1 of
// float32[50000]; then the others make all_reduce #2 of float32[7], or wait in it.
//
// HOW: kill, stop, throw (an exception leaves main), other (it makes another call), missing (it makes none),
//      late (the same, of a group of all workers), abort, leave (it destroys its communicator), message
//      (a receive that nobody sends to); start, split and close (it is killed before its first call, and when
//      the others make a group or destroy their communicator with a call in flight)
//
// The others say in the empty FOLDER that they are about to make their last call.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <cohort/collective/communicator.h>
#include <cohort/mpi/session.h>

namespace {

using namespace std::chrono_literals;

cohort::Tensor zeros(cohort::DType dtype, std::int64_t elements) {
  return cohort::Tensor::zeros({elements}, dtype);
}

/// Where they say so.
class Arrivals {
 public:
  explicit Arrivals(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(int rank) const { std::ofstream(folder_ / std::to_string(rank)); }
  void wait_for(int workers) const {
    using Files = std::filesystem::directory_iterator;
    while (std::distance(Files(folder_), Files()) < workers) std::this_thread::sleep_for(1ms);
  }

 private:
  std::filesystem::path folder_;
};

void wait_for_failure(cohort::Communicator& communicator) {
  while (!communicator.failure()) std::this_thread::sleep_for(5ms);
}

/// What the others do then.
void make_last_call(const std::string& how, std::unique_ptr<cohort::Communicator>& communicator) {
  const cohort::Tensor tensor = zeros(cohort::DType::kFloat32, 7);
  if (how == "split") {
    communicator = communicator->split(0);
  } else if (how == "close") {
    static_cast<void>(communicator->all_reduce_async(tensor, cohort::ReduceOp::kSum));
    communicator.reset();
  } else {
    communicator->all_reduce(tensor, cohort::ReduceOp::kSum);
  }
}

/// What the odd worker does in place of all_reduce #2.
void go_wrong(const std::string& how, std::unique_ptr<cohort::Communicator>& communicator,
              const Arrivals& arrivals) {
  arrivals.wait_for(communicator->size() - 1);
  std::this_thread::sleep_for(200ms);  // for the way from there into the call, which nobody sees
  if (how == "kill" || how == "start" || how == "split" || how == "close") ::raise(SIGKILL);
  if (how == "stop") ::raise(SIGSTOP);
  if (how == "throw") throw std::runtime_error("the victim's own mistake");
  if (how == "other") communicator->broadcast(zeros(cohort::DType::kInt32, 30), 0);
  if (how == "missing" || how == "late") wait_for_failure(*communicator);
  if (how == "abort") communicator->abort(cohort::Aborted("the victim has had enough"));
  if (how == "leave") communicator.reset();
  if (how == "message") communicator->receive(zeros(cohort::DType::kFloat32, 9), 0, 33);
}

void work(const std::string& how, int victim, const Arrivals& arrivals) {
  cohort::mpi::Session session;
  // Of the calls alone: on a busy machine the workers take longer to come together.
  cohort::CommunicationOptions options;
  if (how == "stop" || how == "missing" || how == "late" || how == "message") options.timeout_seconds = 1.5;
  std::unique_ptr<cohort::Communicator> communicator = session.make_communicator(options);
  if (how == "late") communicator = communicator->split(4);
  const auto come_to_the_last_call = [&] {
    if (session.rank() == victim)
      go_wrong(how, communicator, arrivals);
    else
      arrivals.add(session.rank());
  };
  if (how == "start") come_to_the_last_call();
  communicator->all_reduce(zeros(cohort::DType::kFloat64, 100), cohort::ReduceOp::kSum);
  communicator->all_reduce(zeros(cohort::DType::kFloat32, 50'000), cohort::ReduceOp::kMax);
  come_to_the_last_call();
  if (communicator) make_last_call(how, communicator);
  // It has to be there when the others look for it.
  if (!communicator) std::this_thread::sleep_for(2s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  work(argv[1], std::stoi(argv[2]), Arrivals(argv[3]));
  return 0;
}
