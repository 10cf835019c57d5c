// The record of one collective: everything that the harness has to know to check it, time it
// and compare it with its peer. A new collective is one such record in collectives.cpp, which is
// declared here and listed there, Cohort's own call in sweep/sweep.cpp, and NCCL's in
// gpu/nccl_peer.cpp. The records know nothing of Cohort, so that compare.sh can build its plain MPI
// programs from them.
#pragma once

#include <span>
#include <string_view>

#include "layout.h"

namespace cohort::bench {

struct MpiCall;

/// Where a collective may put its result.
enum class Placement { kEither, kInPlaceOnly, kOutOfPlaceOnly, kNoBuffers };

struct Collective {
  std::string_view command = {};  ///< on the command line, for example `all-reduce`
  std::string_view name = {};     ///< in results, for example `all_reduce`
  std::string_view text = {};     ///< one line for --help
  std::string_view peer = {};     ///< MPI's function, which it is compared with
  std::string_view nccl = {};     ///< likewise NCCL's, on GPUs

  bool reduces = false;  ///< combines elements, so --op matters
  bool divided = false;  ///< the largest buffer has one equal block per member
  Placement placement = Placement::kEither;
  bool in_place_by_default = false;
  bool mpi_result_first = false;  ///< in place, MPI's result begins where the buffer does, not at `offset`

  /// Bus bandwidth over algorithm bandwidth.
  double (*bus_factor)(int members) = nullptr;

  Layout (*layout)(const Role& role) = nullptr;

  void (*call_mpi)(const MpiCall& call) = nullptr;

  [[nodiscard]] bool moves_data() const { return placement != Placement::kNoBuffers; }
};

extern const Collective kAllReduce;
extern const Collective kReduce;
extern const Collective kBroadcast;
extern const Collective kAllGather;
extern const Collective kAllGatherUneven;
extern const Collective kReduceScatter;
extern const Collective kAllToAll;
extern const Collective kGather;
extern const Collective kScatter;
extern const Collective kBarrier;

/// Every collective that can be measured, in the order of --help.
[[nodiscard]] std::span<const Collective* const> collectives();

}  // namespace cohort::bench
