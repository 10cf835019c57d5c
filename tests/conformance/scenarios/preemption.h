// A job that is preempted, as the recorded lines of preemption describe it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <cohort/checkpoint/preemption_checkpoint_handler.h>

#include "common.h"

namespace cohort::conformance {

inline constexpr std::string_view kNamedByStep = "checkpoints are folders named by their step";

/// How a worker learns during a step that it is about to be ended.
struct Request {
  TerminationConfig config = {};
  std::function<void()> announce = {};  ///< returns when the handler can know
};
[[nodiscard]] Request request_by_signal();
[[nodiscard]] Request request_by_watcher();

/// A folder whose path other workers know; removed when it is not needed any more.
class JobFolder {
 public:
  explicit JobFolder(std::string path);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// The names of the checkpoints in a folder.
[[nodiscard]] Json checkpoint_names(const std::string& folder);

/// What the recorded names of files are here, for a job that ended after so many steps.
[[nodiscard]] Json names_by_step(const Json& recorded, const Json& steps);

}  // namespace cohort::conformance
