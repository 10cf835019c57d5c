// When this process's job ends, in seconds since 1970, or `none`.
#include <chrono>
#include <cstdio>

#include <cohort/checkpoint/termination_config.h>

int main() {
  const auto end = cohort::job_end_time();
  if (!end) {
    std::puts("none");
    return 0;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(end->time_since_epoch());
  std::printf("%lld\n", static_cast<long long>(seconds.count()));
  return 0;
}
