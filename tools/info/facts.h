// What cohort-info reports: this copy of Cohort, how it was built, and what it finds here.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <cohort/base/config.h>
#include <cohort/mpi/session.h>

#include "collective/record/job_report.h"
#include "device/machine.h"
#include "observation/job_look.h"

namespace cohort::info {

/// Something that a build may have or lack.
struct Component {
  std::string name;
  bool enabled = false;
  std::string version;  ///< empty unless enabled
};

struct DeviceFacts {
  std::string name;
  std::vector<int> cores;
  std::vector<int> numa_nodes;
};

/// What is known about a GPU without using it.
struct GpuFacts {
  std::string name;   ///< `cuda:0`
  std::string model;  ///< for example `NVIDIA H100 80GB HBM3`
  std::string bus_id;
  std::string compute_capability;  ///< for example `9.0`
  std::size_t memory_bytes = 0;
  std::vector<std::string> peers;  ///< the GPUs whose memory it reaches in place
  bool has_memory_pools = true;    ///< without them Cohort cannot use it
};

/// The GPUs that this process sees.
struct AllGpus {
  std::vector<GpuFacts> list;
  std::string why_none;  ///< empty where there are some
};

/// The copy of NCCL that collectives among GPUs would use.
struct NcclFacts {
  std::string path;
  std::string version;
  std::string why_none;  ///< empty where there is one
};

/// Where this process's tensors get their memory.
struct MemoryFacts {
  std::optional<std::size_t> node_heap_bytes;  ///< what the node heap may grow to; nothing without one
  bool huge_pages = false;                     ///< asked for; the kernel decides
};

struct Facts {
  std::string version;
  std::string build_type;
  std::string compiler;
  std::vector<Component> components;
  std::string mpi_library;
  std::string mpi_abi;  ///< which this build uses: `Open MPI's`, `MPICH's`, `MPI-5's`; empty if unknown
  std::vector<DeviceFacts> devices;
  AllGpus gpus;
  NcclFacts nccl;
  MemoryFacts memory;
  std::vector<Setting> settings;
};

/// @throws InvalidArgument for a wrong COHORT_ variable.
[[nodiscard]] Facts gather();

/// What is wrong with the settings beyond their form, one line each: what programs would say when they use
/// them.
[[nodiscard]] std::vector<std::string> wrong_settings();

// Parts of the facts that depend on how this copy of Cohort was built.
[[nodiscard]] std::vector<Component> gather_components();
[[nodiscard]] AllGpus gather_gpus();
[[nodiscard]] NcclFacts gather_nccl();

/// The figures by which the workers' collectives choose their algorithms.
struct TuningFacts {
  int workers = 1;
  int nodes = 1;
  std::string forced;  ///< COHORT_ALGORITHM
  std::vector<TuningFigure> figures;
};

/// Collective over the workers, which probe the figures that they do not know.
[[nodiscard]] TuningFacts gather_tuning(int argc, char** argv);

/// Where a worker runs.
struct BindingFacts {
  int rank = 0;
  int node = 0;
  std::string host;
  std::string cores;
  std::string numa_nodes;
  std::string gpus;      ///< as CUDA_VISIBLE_DEVICES has them; empty for none
  std::string networks;  ///< the host's interfaces, but for the loopback
};

/// The bindings of all workers, by rank. Collective.
[[nodiscard]] std::vector<BindingFacts> gather_bindings(int argc, char** argv);

/// The levels of a machine.
struct TopologyFacts {
  std::string description;  ///< as Machine::read takes it; empty for this machine
  Machine machine;
};

/// Of what is given, of COHORT_TOPOLOGY, or of this machine. @throws as Machine::read.
[[nodiscard]] TopologyFacts gather_topology(const std::string& given);

/// A report that COHORT_REPORT has named.
struct ReportFacts {
  std::string json;  ///< as the file has it
  JobReport report;
};

/// @throws InvalidArgument when the file is none, Unavailable when it cannot be read.
[[nodiscard]] ReportFacts read_report(const std::string& file);

/// What a running job of this user does; `job` as the launcher calls it, its chief's process, or empty: the
/// only one on this host. @throws InvalidArgument when there is no such job or more than one, Unavailable
/// when it does not answer.
[[nodiscard]] JobLook look_at_job(const std::string& job);

/// Shows it again every second until the job ends. @throws as look_at_job.
void watch_job(const std::string& job, const std::function<std::string(const JobLook&)>& show);

/// What libcohort-mpi.so would do for an MPI program.
struct MpiProgramFacts {
  std::string file;         ///< the program's, or an MPI library's
  std::string library;      ///< the MPI library that it loads; empty for none
  std::string version;      ///< as that says it
  std::string preload;      ///< libcohort-mpi.so; empty where it is not found
  std::string shim;         ///< the part of it for this MPI; empty for none
  std::string calls;        ///< COHORT_MPI_CALLS
  std::string why_nothing;  ///< empty where Cohort would carry out its collectives
};

/// Does not run the program. @throws InvalidArgument when there is no such file.
[[nodiscard]] MpiProgramFacts gather_mpi_program(const std::string& file);

/// What an error's code means and what to do, as docs/errors.md has it.
struct ErrorExplanation {
  std::string code;
  std::string text;
};

/// `code` by its name or its class's. @throws InvalidArgument when there is none of that name.
[[nodiscard]] ErrorExplanation explain(const std::string& code);

[[nodiscard]] std::string to_text(const MpiProgramFacts& facts);
[[nodiscard]] std::string to_json(const MpiProgramFacts& facts);
[[nodiscard]] std::string to_text(const ErrorExplanation& explanation);
[[nodiscard]] std::string to_json(const ErrorExplanation& explanation);
[[nodiscard]] std::string to_text(const ReportFacts& facts);
[[nodiscard]] std::string to_json(const ReportFacts& facts);
[[nodiscard]] std::string to_text(const TopologyFacts& facts);
[[nodiscard]] std::string to_json(const TopologyFacts& facts);
[[nodiscard]] std::string to_text(const std::vector<BindingFacts>& bindings);
[[nodiscard]] std::string to_json(const std::vector<BindingFacts>& bindings);
[[nodiscard]] std::string to_text(const TuningFacts& facts);
[[nodiscard]] std::string to_json(const TuningFacts& facts);
[[nodiscard]] std::string to_text(const Facts& facts);
[[nodiscard]] std::string to_json(const Facts& facts);

}  // namespace cohort::info
