#include <cohort/input/detail/shard.h>

#include <cohort/base/error.h>

namespace cohort::detail {

void check_shard(const Shard& shard) {
  if (shard.count < 1) {
    throw InvalidArgument("a dataset cannot be divided into {} shards; give at least 1", shard.count);
  }
  if (shard.index < 0 || shard.index >= shard.count) {
    throw InvalidArgument("there is no shard {} of {}: they are numbered from 0 to {}", shard.index,
                          shard.count, shard.count - 1);
  }
}

void throw_too_few_elements(std::int64_t found, int required) {
  throw InvalidArgument(
      "a dataset of {} elements (found) cannot be divided among {} shards (required): each needs at least "
      "one; use more files or smaller batches, fewer workers, or AutoShardPolicy::kOff",
      found, required);
}

void throw_unfilled_hint() {
  throw WrongContext(
      "shard(Shard::hint()) is a placeholder that a strategy fills in when it distributes the dataset under "
      "AutoShardPolicy::kHint; to iterate it yourself, give the shard's count and index");
}

}  // namespace cohort::detail
