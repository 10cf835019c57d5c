#include "agreement.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "base/vote.h"

namespace cohort {
namespace {

constexpr const char* kRoundNames[] = {"exchange", "make_communicator", "split", "end of the session",
                                       "start of the session"};
constexpr const char* kDeeds[] = {"exchanges data", "makes a communicator", "splits its group",
                                  "ends its Session", "starts its Session"};

/// Precedes a worker's blob.
struct ContributionHeader {
  std::int64_t round_kind = 0;
  std::uint64_t bytes = 0;
};

/// `say(i)` completes the sentence that begins with worker i, which is one of `chosen`.
template <class Say>
std::string list(std::span<const WorkerInfo> workers, std::span<const std::size_t> chosen, Say say) {
  std::vector<std::string> sentences;
  for (const std::size_t i : chosen) sentences.push_back(fmt::format("{} {}", describe(workers[i]), say(i)));
  return fmt::format("{}", fmt::join(sentences, ", "));
}

/// Those that gave the usual answer, with the verb: `the other has`, `the other 2 have`.
std::string the_others(const Vote& vote, std::string_view one_does, std::string_view several_do) {
  if (vote.usual_count == 1) return fmt::format("the other {}", one_does);
  return fmt::format("the other {} {}", vote.usual_count, several_do);
}

}  // namespace

void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions) {
  const Vote vote = count_votes(versions);
  if (vote.is_unanimous()) return;
  throw InvalidArgument(
      "all workers must run the same version of Cohort, but {}, while {} {}. Rebuild the "
      "program, or look at the library path on those hosts.",
      list(workers, vote.odd, [&](std::size_t i) { return "runs " + versions[i]; }),
      the_others(vote, "runs", "run"), versions[vote.usual]);
}

void require_right_settings(std::span<const WorkerInfo> workers, std::span<const std::string> complaints) {
  const auto wrong = std::ranges::count_if(complaints, [](const auto& each) { return !each.empty(); });
  if (wrong == 0) return;
  const auto first = std::ranges::find_if(complaints, [](const auto& each) { return !each.empty(); });
  const std::string others = wrong == 1   ? ""
                             : wrong == 2 ? " and one other"
                                          : fmt::format(" and {} others", wrong - 1);
  throw InvalidArgument("{}{}: {}", describe(workers[static_cast<std::size_t>(first - complaints.begin())]),
                        others, *first);
}

void require_same_devices(std::span<const WorkerInfo> workers, std::span<const int> devices) {
  const Vote vote = count_votes(devices);
  if (vote.is_unanimous()) return;
  throw InvalidArgument(
      "all workers must have the same number of CPU devices, but {}, while {} {}. Give "
      "COHORT_CPU_DEVICES to all of them: mpirun -x COHORT_CPU_DEVICES hands it to other hosts.",
      list(workers, vote.odd, [&](std::size_t i) { return fmt::format("has {}", devices[i]); }),
      the_others(vote, "has", "have"), devices[vote.usual]);
}

void require_same_watch(std::span<const WorkerInfo> workers, std::span<const std::string> settings) {
  const Vote vote = count_votes(settings);
  if (vote.is_unanimous()) return;
  throw InvalidArgument(
      "all workers must watch each other alike, but {}, while {} {}. Give "
      "COHORT_HEARTBEAT_SECONDS and COHORT_SILENCE_SECONDS to all of them: mpirun -x hands them to other "
      "hosts.",
      list(workers, vote.odd, [&](std::size_t i) { return "has " + settings[i]; }),
      the_others(vote, "has", "have"), settings[vote.usual]);
}

std::string warning_of_other_gpus(std::span<const WorkerInfo> workers,
                                  std::span<const std::optional<int>> gpus) {
  const Vote vote = count_votes(gpus);
  if (vote.is_unanimous()) return {};
  const auto count = [&](std::size_t i) {
    if (!gpus[i]) return std::string("no variable that names its GPUs");
    return *gpus[i] == 1 ? "1 GPU" : fmt::format("{} GPUs", *gpus[i]);
  };
  return fmt::format(
      "the launcher leaves workers different numbers of GPUs: {}, while {} {}. Where all "
      "are to train on GPUs, ask for the same on each node (--gpus-per-task), and hand "
      "CUDA_VISIBLE_DEVICES to other hosts or to none (mpirun -x)",
      list(workers, vote.odd, [&](std::size_t i) { return "has " + count(i); }),
      the_others(vote, "has", "have"), count(vote.usual));
}

void require_same_settings(std::span<const WorkerInfo> workers, std::span<const AgreedSettings> settings) {
  // `choose(settings)` is what a worker wants, as the end of a sentence.
  const auto require_same = [&](auto choose) {
    std::vector<std::string> wishes;
    for (const AgreedSettings& of_worker : settings) wishes.push_back(choose(of_worker));
    const Vote vote = count_votes(wishes);
    if (vote.is_unanimous()) return;
    const auto say = [&](std::size_t i) { return wishes[i]; };
    throw InvalidArgument("all workers must make the same communicators, but {}, while {}",
                          list(workers, vote.odd, say), list(workers, {&vote.usual, 1}, say));
  };
  require_same([](const AgreedSettings& of_worker) {
    return fmt::format("makes one with {} member{}", of_worker.members, of_worker.members == 1 ? "" : "s");
  });
  require_same([](const AgreedSettings& of_worker) {
    return fmt::format("asks for reproducible = {}", of_worker.reproducible);
  });
}

void require_same_group(std::span<const WorkerInfo> workers, std::span<const std::string> ranks) {
  const Vote vote = count_votes(ranks);
  if (vote.is_unanimous()) return;
  throw InvalidArgument("all members must make a group of the same ranks, but {}, while {} {}",
                        list(workers, vote.odd, [&](std::size_t i) { return "makes one of " + ranks[i]; }),
                        the_others(vote, "makes one of", "make one of"), ranks[vote.usual]);
}

std::string_view name_of(RoundKind round_kind) { return kRoundNames[static_cast<std::size_t>(round_kind)]; }

std::string to_bytes(const Contribution& contribution) {
  const ContributionHeader header{static_cast<std::int64_t>(contribution.round_kind),
                                  contribution.blob.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(contribution.blob);
}

std::vector<Contribution> parse_contributions(std::string_view bytes) {
  std::vector<Contribution> contributions;
  while (!bytes.empty()) {
    ContributionHeader header;
    COHORT_CHECK(bytes.size() >= sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    bytes.remove_prefix(sizeof header);
    COHORT_CHECK(bytes.size() >= header.bytes);
    contributions.push_back({static_cast<RoundKind>(header.round_kind), bytes.substr(0, header.bytes)});
    bytes.remove_prefix(header.bytes);
  }
  return contributions;
}

void require_same_round_kind(std::span<const WorkerInfo> workers, std::span<const Contribution> contributions,
                             const std::string& round) {
  const Vote vote = count_votes(contributions, &Contribution::round_kind);
  if (vote.is_unanimous()) return;
  const auto deed = [&](std::size_t i) {
    return std::string(kDeeds[static_cast<std::size_t>(contributions[i].round_kind)]);
  };
  const WorkerInfo& culprit = workers[vote.odd.front()];
  throw InvalidArgument(ErrorOrigin{round, culprit.rank, culprit.host},
                        fmt::format("{}: all workers must use their Session alike, but {}, while {}", round,
                                    list(workers, vote.odd, deed), list(workers, {&vote.usual, 1}, deed)));
}

namespace {

template <class T>
std::string blob_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Of values that each worker has made into a blob.
template <class T>
std::vector<T> values_in(std::span<const std::string> blobs) {
  std::vector<T> values(blobs.size());
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    COHORT_CHECK(blobs[i].size() == sizeof(T));
    std::memcpy(&values[i], blobs[i].data(), sizeof(T));
  }
  return values;
}

}  // namespace

std::string to_blob(const AgreedSettings& settings) { return blob_of(settings); }

std::vector<AgreedSettings> settings_in(std::span<const std::string> blobs) {
  return values_in<AgreedSettings>(blobs);
}

std::string to_blob(const SplitChoice& choice) { return blob_of(choice); }

std::vector<int> ranks_of_color(std::span<const std::string> blobs, int color) {
  const auto choices = values_in<SplitChoice>(blobs);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (choices[i].color == color) ranks.push_back(static_cast<int>(i));
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return choices[static_cast<std::size_t>(rank)].key; });
  return ranks;
}

std::vector<WorkerInfo> with_nodes_by_memory(std::span<const WorkerInfo> workers, bool can_share,
                                             const BlobExchange& exchange) {
  constexpr const char* kApart = "apart";
  const std::vector<std::string> answers = exchange(can_share ? "shared" : kApart);
  std::vector<WorkerInfo> nodes(workers.begin(), workers.end());
  std::vector<int> everyone(nodes.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  for (WorkerInfo& worker : nodes) {
    if (answers[static_cast<std::size_t>(worker.rank)] == kApart)
      worker.node = static_cast<int>(nodes.size()) + worker.rank;
  }
  return renumbered(nodes, everyone);
}

}  // namespace cohort
