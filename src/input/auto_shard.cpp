#include <cohort/input/auto_shard.h>

#include <mutex>

#include <cohort/base/log.h>

namespace cohort::detail {

void warn_of_shared_reading(const WorkerPlace& place) {
  if (place.worker != 0) return;
  static std::once_flag warned;
  std::call_once(warned, [&] {
    logging::warning(
        "no file list to shard among {} workers: each worker reads the whole dataset and keeps its share of "
        "every batch. To choose this explicitly, pass {{.auto_shard_policy = AutoShardPolicy::kData}}",
        place.workers);
  });
}

}  // namespace cohort::detail
