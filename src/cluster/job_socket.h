// The sockets by which the jobs of a user can be looked at on the hosts that they run on. They have abstract
// names, so nothing is left in a file system, however a job ends: `cohort-job/USER/JOB/CHIEF/PROCESS`. Every
// user can see the names and connect, so both ends look whether the other one is of their own user.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/environment.h>

#include "sockets.h"

namespace cohort {

/// What the launcher calls this job: Slurm's number of it, or PMIx' name; `chief` where it has no name for
/// it.
[[nodiscard]] std::string job_name(std::int64_t chief, const Environment& variables = process_environment());

struct JobSocket {
  std::string job = {};
  std::int64_t chief = 0;    ///< process of the job's first worker, which tells runs of one job apart
  std::int64_t process = 0;  ///< that listens
};

/// An end that accepts connections without waiting. @throws Unavailable with the system's reason.
[[nodiscard]] watch::Fd listen_as(const JobSocket& socket);

/// Those of this user on this host, by job, chief and process.
[[nodiscard]] std::vector<JobSocket> jobs_of_this_user();

/// What the listener has to say. @throws Unavailable when it is gone, of another user, or has not said all
/// within `limit`.
[[nodiscard]] std::string read_from(const JobSocket& socket, std::chrono::milliseconds limit);

}  // namespace cohort
