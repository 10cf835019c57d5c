// The tasks of a cluster as processes: the test's own program, started again for each worker and server. The
// test is the chief.
#pragma once

#include "remote/task_processes.h"

namespace cohort::test {

using remote::TaskProcesses;

}  // namespace cohort::test
