// The tags of messages. The largest ones are the backend's own.
#pragma once

namespace cohort::pytorch {

inline constexpr int kLargestTag = 32760;  ///< of the program's messages
inline constexpr int kAllToAllTag = kLargestTag + 1;
inline constexpr int kMonitoredBarrierTag = kLargestTag + 2;

}  // namespace cohort::pytorch
