// Whether the workers agree on what must be the same on all of them: at the start, that they are
// one job, and with each communicator, what it is; and what they tell each other in rounds, while they have
// no communicator. Each check has what all of them say, by rank, and throws the same error on all, which
// names those that differ from most, their hosts, and the likely cause.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>

#include "descriptor_exchange.h"

namespace cohort {

/// @throws InvalidArgument naming those whose version is not that of most.
void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions);

/// `complaints` says what is wrong with each worker's settings; empty: nothing.
/// @throws InvalidArgument with the first of them, its worker and how many others have one.
void require_right_settings(std::span<const WorkerInfo> workers, std::span<const std::string> complaints);

/// @throws InvalidArgument naming those whose number of CPU devices is not that of most.
void require_same_devices(std::span<const WorkerInfo> workers, std::span<const int> devices);

/// `settings` say how a worker watches the others, as the end of a sentence.
/// @throws InvalidArgument naming those whose settings are not those of most.
void require_same_watch(std::span<const WorkerInfo> workers, std::span<const std::string> settings);

/// A warning that names the workers that see another number of GPUs than most; empty if all agree. Only a
/// warning, because the strategy chooses the devices, and an evaluator may need none. Nothing where no
/// variable of a worker names its GPUs.
[[nodiscard]] std::string warning_of_other_gpus(std::span<const WorkerInfo> workers,
                                                std::span<const std::optional<int>> gpus);

/// What all workers must choose alike when they make communicators, and what the others need to know.
struct AgreedSettings {
  int members = 1;  ///< of each worker
  bool reproducible = false;
  /// Whether any thread may call what carries its messages, one at a time; it may differ.
  bool any_thread = true;
};
[[nodiscard]] std::string to_blob(const AgreedSettings& settings);
[[nodiscard]] std::vector<AgreedSettings> settings_in(std::span<const std::string> blobs);

/// @throws InvalidArgument naming those whose settings are not those of most.
void require_same_settings(std::span<const WorkerInfo> workers, std::span<const AgreedSettings> settings);

/// `ranks` are those of the group that each means, as the end of a sentence.
/// @throws InvalidArgument naming those that mean another group than most.
void require_same_group(std::span<const WorkerInfo> workers, std::span<const std::string> ranks);

/// What a worker says when a group is split.
struct SplitChoice {
  int color = 0;
  int key = 0;
};
[[nodiscard]] std::string to_blob(const SplitChoice& choice);

/// The workers that have chosen `color`, by key, and by rank where keys are equal. `blobs` are the choices of
/// all, by rank.
[[nodiscard]] std::vector<int> ranks_of_color(std::span<const std::string> blobs, int color);

/// The workers with the nodes that communicators have: one that cannot share the memory of its node's other
/// workers has a node of its own. Collective over the workers, each of which says whether it can.
[[nodiscard]] std::vector<WorkerInfo> with_nodes_by_memory(std::span<const WorkerInfo> workers,
                                                           bool can_share, const BlobExchange& exchange);

/// What the workers do together. One that ends while others go on is found out by it.
enum class RoundKind : std::int32_t { kExchange, kMakeCommunicator, kSplit, kEnd, kStart };

/// For example `exchange`.
[[nodiscard]] std::string_view name_of(RoundKind round_kind);

/// What one worker says in a round.
struct Contribution {
  RoundKind round_kind = RoundKind::kExchange;
  std::string_view blob;
};

/// Contributions of several workers are theirs one after the other, by rank.
[[nodiscard]] std::string to_bytes(const Contribution& contribution);
[[nodiscard]] std::vector<Contribution> parse_contributions(std::string_view bytes);

/// `round` is for example `exchange #4`.
/// @throws InvalidArgument naming those that do something else than most.
void require_same_round_kind(std::span<const WorkerInfo> workers, std::span<const Contribution> contributions,
                             const std::string& round);

}  // namespace cohort
