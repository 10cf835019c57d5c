// What a member's record of its calls costs, in nanoseconds per call: call_record [CALLS]. In a loop of
// nothing else, so it is the most that a call can take longer; in a call the stores and the stamp overlap
// with the wait for the other members.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "collective/record/call_record.h"

namespace {

using cohort::CallRecorder;
using cohort::CollectiveCall;

/// The median of nine loops.
template <class Function>
double ns_per_call(int calls, Function function) {
  std::array<double, 9> loops{};
  for (double& loop : loops) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) function(static_cast<std::uint64_t>(i));
    loop = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
  }
  std::ranges::sort(loops);
  return loops[loops.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 10'000'000;
  if (calls < 1) {
    std::fputs("call_record [CALLS]: CALLS is a positive number\n", stderr);
    return 2;
  }
  const auto record = std::make_unique<cohort::MemberRecord>();
  CallRecorder recorder(*record, {});
  const cohort::StampClock& clock = cohort::StampClock::of_this_process();
  CollectiveCall call;
  call.kind = cohort::CollectiveKind::kAllReduce;
  call.elements = 1;

  std::printf("clock: %s\n", clock.reads_counter() ? "the processor's counter" : "steady_clock");
  std::uint64_t sum = 0;
  std::printf("%-40s %6.2f ns\n", "a stamp", ns_per_call(calls, [&](std::uint64_t) { sum += clock.now(); }));
  std::printf("%-40s %6.2f ns\n", "a small call: arrival, end",
              ns_per_call(calls, [&](std::uint64_t i) { recorder.end_at_once(recorder.begin(call, i)); }));
  std::printf("%-40s %6.2f ns\n", "another call: arrival, start, end",
              ns_per_call(calls, [&](std::uint64_t i) {
                const CallRecorder::Entry entry = recorder.begin(call, i);
                recorder.start(entry);
                recorder.end(entry);
              }));
  std::printf("%zu bytes per member, %zu calls\n", sizeof(cohort::MemberRecord), cohort::kRecordedCalls);
  return sum == 0 ? 1 : 0;
}
