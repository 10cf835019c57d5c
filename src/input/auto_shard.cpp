#include <cohort/input/auto_shard.h>

#include <mutex>

#include <cohort/base/log.h>

namespace cohort::detail {

void warn_of_shared_reading(const WorkerPlace& place) {
  if (place.worker != 0) return;
  static std::once_flag warned;
  std::call_once(warned, [&] {
    logging::warning(
        "the dataset reads no files that {} workers could divide among themselves, so each of them reads all "
        "of it and keeps its parts of each batch; if that is intended, choose AutoShardPolicy::kData",
        place.workers);
  });
}

}  // namespace cohort::detail
