// Ends with communicators in static objects, made before and after the progress thread, and
// with calls that are started while static objects are destroyed. The exit status tells.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/collective/thread_communicator.h>

namespace {

/// Two members of one thread; a wait for one member's call also drives the other's.
class Pair {
 public:
  Pair() : communicators_(cohort::make_thread_communicators(2, {.timeout_seconds = 1})) {}
  ~Pair() {
    if (!left_) use();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void use() {
    const cohort::Tensor a = cohort::Tensor::full({50'000}, cohort::DType::kFloat32, 1);
    const cohort::Tensor b = cohort::Tensor::full({50'000}, cohort::DType::kFloat32, 2);
    cohort::Work first = communicators_[0]->all_reduce_async(a, cohort::ReduceOp::kSum);
    cohort::Work second = communicators_[1]->all_reduce_async(b, cohort::ReduceOp::kSum);
    for (bool done = false; !done;) {
      const bool first_done = first.done();  // both are asked each time: that is what drives them
      done = second.done() && first_done;
    }
    if (a.span<float>()[49'999] == 3.0f && b.span<float>()[0] == 3.0f) return;
    std::fputs("wrong sum\n", stderr);
    std::_Exit(1);
  }

  /// A call that is never completed.
  void leave_one_in_flight() { left_ = communicators_[0]->barrier_async(); }

 private:
  std::vector<std::unique_ptr<cohort::Communicator>> communicators_;
  std::optional<cohort::Work> left_;
};

Pair before_the_thread;

}  // namespace

int main() {
  before_the_thread.use();
  static Pair after_the_thread;
  static Pair with_a_call_in_flight;
  with_a_call_in_flight.leave_one_in_flight();
  return 0;
}
