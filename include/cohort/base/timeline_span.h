// What the program does for a while, by a name of its choice, as a bar of the picture that COHORT_TIMELINE
// draws, and as a range for NVTX where GPUs are used:
//
//     {
//       const cohort::TimelineSpan span("augment");
//       augment(batch);
//     }
//
// Checkpoints and functions that a coordinator has scheduled have spans without being asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort {

/// From its begin to its end, on one thread; spans of a thread nest. Costs next to nothing where nobody
/// draws. Of the name, 63 bytes are kept.
class TimelineSpan {
 public:
  explicit TimelineSpan(std::string_view name);
  ~TimelineSpan();
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

 private:
  static constexpr std::int64_t kNotKept = -1;

  std::string name_;
  std::int64_t begin_ = kNotKept;
  bool is_told_ = false;
};

}  // namespace cohort
