// A file that COHORT_TIMELINE has named: in words, and as a picture for those who have no viewer at hand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cohort::info {

/// What a worker did for a while, by the microsecond clock of the file.
struct DrawnSpan {
  int worker = 0;
  int track = 0;
  bool is_programs = false;  ///< a TimelineSpan of the program's
  int name = 0;              ///< index into TimelineFacts::names
  double begin = 0;
  double duration = 0;
};

struct TimelineFacts {
  std::string file = {};
  std::vector<std::string> names = {};
  std::map<int, std::string> workers = {};                 ///< for example `worker 0 (host n0)`
  std::map<std::pair<int, int>, std::string> tracks = {};  ///< by worker and track
  std::vector<DrawnSpan> spans = {};                       ///< by begin; the outer before the inner one
  double begin = 0;
  double end = 0;
  double clock_error = 0;          ///< how far the times of different hosts may be off, at most
  bool clocks_are_aligned = true;  ///< false: nobody knows how far
};

/// Reads what there is of a file that a job has not completed, too.
/// @throws InvalidArgument when the file is none, Unavailable when it cannot be read.
[[nodiscard]] TimelineFacts read_timeline(const std::string& file);

/// How each worker spent the time, and the calls of each kind.
[[nodiscard]] std::string to_text(const TimelineFacts& facts);
[[nodiscard]] std::string to_json(const TimelineFacts& facts);

/// A row for each track of each worker, in SVG.
[[nodiscard]] std::string to_svg(const TimelineFacts& facts);

}  // namespace cohort::info
