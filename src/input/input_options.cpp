#include <cohort/input/input_options.h>

#include <cohort/base/error.h>

namespace cohort {

std::string_view to_string(InputReplicationMode mode) noexcept {
  return mode == InputReplicationMode::kPerReplica ? "per_replica" : "per_worker";
}

void InputOptions::validate() const {
  if (per_replica_buffer_size < 0) {
    throw InvalidArgument("per_replica_buffer_size is {}; it must be at least 0, which prepares none ahead",
                          per_replica_buffer_size);
  }
  if (!place_dataset_on_device) return;
  if (replication_mode != InputReplicationMode::kPerReplica) {
    throw InvalidArgument(
        "place_dataset_on_device needs InputReplicationMode::kPerReplica: "
        "one pipeline cannot be on several devices");
  }
  if (fetch_to_device) {
    throw InvalidArgument(
        "place_dataset_on_device and fetch_to_device exclude each other: "
        "what is already on its device is not fetched there");
  }
}

}  // namespace cohort
