// What a job is doing at this moment: the calls of its communicators' members, how much these move, and the
// memory of its workers. Each process that reads records has a part of it; parts are put together where
// somebody looks. Times are in seconds before the look.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collective/record/job_report.h"

namespace cohort {

/// Of the calls that a member has ended and that its record still has.
struct CallRate {
  double seconds = 0;  ///< since the first of them began
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double seconds_in_calls = 0;
  bool is_timed = true;  ///< false: some have no time of their own, as small calls on one node
};

struct CommunicatorLook {
  JobReport report = {};  ///< without an error, and with the latest calls only
  CallRate rate = {};     ///< of the first member that is known
};

struct WorkerLook {
  int worker = 0;
  std::string host = {};
  std::int64_t pid = 0;
  std::uint64_t memory_bytes = 0;       ///< resident; 0: not known
  std::uint64_t peak_memory_bytes = 0;  ///< the most that it was
};

struct JobLook {
  std::string job = {};
  std::int64_t chief = 0;  ///< its process
  double seconds = 0;      ///< since the session began
  int restarts = 0;        ///< as the batch system counts them
  int nodes = 1;
  std::vector<WorkerLook> workers = {};  ///< by rank
  std::vector<CommunicatorLook> communicators = {};
  std::vector<std::string> slow =
      {};  ///< who makes the others wait at present, and why, as the chief sees it
  std::vector<std::string> silent = {};  ///< workers whose nodes did not answer in time
};

/// The rate of what the record of a member still has.
[[nodiscard]] CallRate rate_of(const std::vector<RecordedCall>& calls);

/// What is needed of the calls to say what the member is doing: those it is in, and some before.
void keep_latest_calls(ReportedMember& member);

/// Puts what another process knows into `look`.
void merge(JobLook& look, JobLook part);

/// Ends with a newline.
[[nodiscard]] std::string to_json(const JobLook& look);

/// @throws InvalidArgument when it is none, or of another version of the format.
[[nodiscard]] JobLook look_from_json(std::string_view text);

/// For people: the job, each communicator's lines and members, the workers' memory.
[[nodiscard]] std::string to_text(const JobLook& look);

}  // namespace cohort
