#include "coordinated.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include <cohort/base/error.h>

#include "../scenarios/common.h"

namespace cohort::conformance {
namespace {

constexpr int kLongestWaitMilliseconds = 60'000;

}  // namespace

Signals::Signals() {
  std::array<int, 2> ends{};
  // Without O_CLOEXEC: tasks have both ends under the same numbers.
  if (::pipe(ends.data()) != 0) throw Unavailable("no pipe for signals of tasks");
  input_ = ends[0];
  output_ = ends[1];
}

Signals::~Signals() {
  ::close(input_);
  ::close(output_);
}

void Signals::await(int count) const {
  for (; count > 0; --count) await_signal(input_);
}

void Signals::give(int count) const {
  for (; count > 0; --count) give_signal(output_);
}

void Signals::take_all() const {
  pollfd wanted{.fd = input_, .events = POLLIN, .revents = 0};
  while (::poll(&wanted, 1, 0) == 1) await_signal(input_);
}

void await_signal(int input) {
  pollfd wanted{.fd = input, .events = POLLIN, .revents = 0};
  char byte = 0;
  if (::poll(&wanted, 1, kLongestWaitMilliseconds) != 1 || ::read(input, &byte, 1) != 1)
    throw DeadlineExceeded("a signal did not come within a minute");
}

void give_signal(int output) {
  const char byte = 0;
  if (::write(output, &byte, 1) != 1) throw Unavailable("a signal cannot be given");
}

namespace {

constexpr std::int64_t kLongestLog = 20;

Tensor whole(std::int64_t value) { return Tensor::scalar(value); }
Tensor counted_table() { return tensor({0, 1, 2, 3, 4, 5, 6, 7}, {4, 2}); }

Variable variable_of(const ParameterServerStrategy& strategy, const char* name, Tensor value) {
  const auto scope = strategy.scope();
  return Variable({.name = name, .initial_value = std::move(value)});
}

}  // namespace

Coordinated::Coordinated(int workers, int servers)
    : workers_(workers),
      processes_(workers, servers),
      strategy_(processes_.chief()),
      coordinator_(strategy_),
      counter(variable_of(strategy_, "v", whole(0))),
      numbers(variable_of(strategy_, "fv", vector({1, 2, 3}))),
      table(variable_of(strategy_, "emb", counted_table())),
      log(variable_of(strategy_, "log", Tensor::zeros({kLongestLog}, DType::kInt64))),
      position(variable_of(strategy_, "pos", whole(0))),
      count_of_begun(variable_of(strategy_, "begun", whole(0))),
      count_of_ended(variable_of(strategy_, "ended", whole(0))),
      gate(variable_of(strategy_, "gate", whole(0))) {}

void Coordinated::reset() const {
  for (const Variable& variable : {counter, position, count_of_begun, count_of_ended, gate})
    variable.assign(std::int64_t{0});
  numbers.assign(vector({1, 2, 3}));
  table.assign(counted_table());
  log.assign(Tensor::zeros({kLongestLog}, DType::kInt64));
}

RemoteValue<std::int64_t> Coordinated::schedule_waiting(std::int64_t number) const {
  return coordinator_.schedule<wait_for_gate>(gate, count_of_begun, count_of_ended, begun_.output(), number);
}

RemoteValue<std::int64_t> Coordinated::schedule_add(std::int64_t number) const {
  return coordinator_.schedule<add>(counter, number);
}

RemoteValue<std::int64_t> Coordinated::schedule_fail() const { return coordinator_.schedule<fail>(); }

void Coordinated::open_gate() const { gate.assign(std::int64_t{1}); }

void Coordinated::await_workers() const {
  for (int i = 0; i < workers_; ++i) static_cast<void>(schedule_waiting(i));
  begun_.await(workers_);
  open_gate();
  coordinator_.join();
  reset();
}

void Coordinated::let_meet(int functions) const {
  begun_.await(functions);
  open_gate();
  begun_.await(functions);
}

std::int64_t add(const Variable& counter, std::int64_t number) {
  counter.assign_add(number);
  return 2 * number;
}

std::int64_t fail() { throw InvalidArgument("closure failed"); }

std::int64_t wait_for_gate(const Variable& gate, const Variable& begun, const Variable& ended, int signal,
                           std::int64_t number) {
  begun.assign_add(std::int64_t{1});
  give_signal(signal);
  while (value_of(gate) == 0) {
  }
  ended.assign_add(std::int64_t{1});
  return number;
}

void meet(const Variable& gate, int begun, int pass) {
  give_signal(begun);
  while (value_of(gate) == 0) {
  }
  give_signal(begun);
  await_signal(pass);
}

std::string class_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument: return "InvalidArgumentError";
    case ErrorCode::kAborted: return "CancelledError";
    case ErrorCode::kOutOfRange: return "OutOfRangeError";
    case ErrorCode::kUnavailable: return "UnavailableError";
    default: return std::string(to_string(error.code()));
  }
}

Json outcome_of(const std::function<Json()>& function) {
  try {
    return function();
  } catch (const Error& error) {
    return {{"error", class_of(error)}};
  }
}

Json name_or_value(const std::function<Json()>& function) {
  try {
    return function();
  } catch (const Error& error) {
    return class_of(error);
  }
}

Json outcome_of_join(const ClusterCoordinator& coordinator) {
  return outcome_of([&] {
    coordinator.join();
    return Json(nullptr);
  });
}

std::int64_t value_of(const Variable& variable) { return variable.read().item<std::int64_t>(); }

Family line(Coordinated& cluster, std::string_view pattern, Play play,
            std::vector<FamilyDifference> differences) {
  return {{pattern},
          [&cluster, play = std::move(play)](const Record& /*record*/) {
            cluster.reset();
            return play(cluster);
          },
          std::move(differences)};
}

}  // namespace cohort::conformance
