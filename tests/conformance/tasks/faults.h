// Tasks that are killed or stopped while functions run. Each line has a cluster of its own.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "coordinated.h"

namespace cohort::conformance {

/// The lines whose servers are killed. They wait for a server that does not come back, and so they run beside
/// all other lines: from when this is made until their outcomes are asked for.
class LostServers {
 public:
  LostServers();

  [[nodiscard]] const std::vector<Family>& families() const noexcept { return families_; }

 private:
  void add(const std::vector<std::string_view>& patterns, int servers,
           const std::function<Json(Coordinated&)>& play, std::vector<FamilyDifference> differences = {});

  std::vector<Family> families_;
};

[[nodiscard]] std::vector<Family> lost_worker_families();

/// The line whose coordinator is killed. It starts this program with a folder as its argument, which is to
/// call `train_as_coordinator` then.
[[nodiscard]] Family restarted_coordinator_family();
int train_as_coordinator(const std::string& folder);

/// `["ok", null]` or `["raised", class]`.
[[nodiscard]] Json told(const std::function<void()>& function);

/// `add` of the lines of `fault`: counts, and returns the number of its worker.
int add_here(const InputContext& worker, const Variable& counter);

}  // namespace cohort::conformance
