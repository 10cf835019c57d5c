// The record of one collective: everything that the harness has to know to check it, time it and compare it
// with its peer. Its layout is what it moves, as one member sees it: how large its buffers are, how they lie
// when input and output share memory, and what the result consists of.
//
// A new collective is one such record in collectives.cpp, which is declared here and listed there, Cohort's
// own call in sweep/sweep.cpp, and NCCL's in gpu/nccl_peer.cpp. The records know nothing of Cohort, so that
// compare.sh can build its plain MPI programs from them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace cohort::bench {

/// The member that alone gives or gets, in collectives that have one.
inline constexpr int kRoot = 0;

/// The role of one member in a collective of one size.
struct Role {
  int member = 0;
  int members = 1;
  std::size_t elements = 0;  ///< of the largest buffer of any member

  [[nodiscard]] bool is_root() const { return member == kRoot; }
  /// Elements of a member's part, where the largest buffer has one part for each.
  [[nodiscard]] std::size_t block() const { return elements / static_cast<std::size_t>(members); }
  [[nodiscard]] std::size_t block_start() const { return static_cast<std::size_t>(member) * block(); }
};

/// Consecutive elements of a result.
struct ResultPart {
  static constexpr int kReduced = -1;

  int source = kReduced;  ///< the member whose input it is, or the reduction of all inputs
  std::size_t first = 0;  ///< the element of the source that it begins with
  std::size_t elements = 0;
};

struct Layout {
  std::size_t input = 0;   ///< elements that this member passes in
  std::size_t output = 0;  ///< elements that it gets
  std::size_t offset = 0;  ///< in place: where the smaller of the two begins within the larger
  std::vector<ResultPart> result = {};
};

/// The members' whole inputs, one block after the other.
[[nodiscard]] inline std::vector<ResultPart> block_of_each(const Role& role) {
  std::vector<ResultPart> parts;
  parts.reserve(static_cast<std::size_t>(role.members));
  for (int member = 0; member < role.members; ++member) {
    parts.push_back({.source = member, .first = 0, .elements = role.block()});
  }
  return parts;
}

/// The parts of an uneven division of role.elements: the higher the rank, the larger the part.
[[nodiscard]] inline std::vector<std::size_t> uneven_counts(const Role& role) {
  // Member r gets r + 1 shares of 1 + 2 + ... + members; what the division leaves, the last member.
  const auto members = static_cast<std::size_t>(role.members);
  const std::size_t share = role.elements / (members * (members + 1) / 2);
  std::vector<std::size_t> counts;
  counts.reserve(members);
  std::size_t left = role.elements;
  for (std::size_t member = 0; member + 1 < members; ++member) {
    counts.push_back(share * (member + 1));
    left -= counts.back();
  }
  counts.push_back(left);
  return counts;
}

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
