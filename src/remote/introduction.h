// What two tasks tell each other when they connect, once each knows that the other belongs to the job.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <cohort/cluster/cluster_roles.h>

namespace cohort::remote {

struct Introduction {
  ClusterTask task = {};
  ClusterTask wanted = {};  ///< the task that is to answer; unused in an answer
  std::string host = {};
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  std::chrono::milliseconds heartbeat{0};
  bool offers_descriptor = false;
  std::uint64_t nonce_address = 0;  ///< of `nonce` in the memory of the task's process
  std::uint64_t nonce = 0;

  friend bool operator==(const Introduction&, const Introduction&) = default;
};

[[nodiscard]] std::string to_text(const Introduction& introduction);

/// @throws InvalidArgument when the text is none.
[[nodiscard]] Introduction parse_introduction(std::string_view text);

/// For example `worker 1`.
[[nodiscard]] std::string name_of(const ClusterTask& task);

}  // namespace cohort::remote
