// What the members of a group tell each other while they have no communicator. In each round every member
// says something to the first of them, which answers with all that was said, or with the error that all throw
// because a worker is missing, does something else, or is lost. An error is the last round: all later calls
// throw it, too.
//
// So the first has a connection to each of the others, and the others need none to each other. Two messages
// per member are quick for hundreds of workers; a tree would be for thousands.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>

#include "cluster/agreement.h"
#include "links.h"

namespace cohort::rendezvous {

struct GroupExchangeOptions {
  std::string name = {};                     ///< unlike that of any other group of its members
  std::string title = {};                    ///< what messages call its start
  std::vector<int> ranks = {};               ///< of the members, in the session
  int rank = 0;                              ///< of this process among them
  std::chrono::duration<double> timeout{};   ///< of each round; for ever when zero
  std::function<const Error*()> fault = {};  ///< the loss of a worker, or null; may be null

  // Of the first member, while the session starts; may be null.
  std::function<void(int member, std::string_view blob)> check = {};  ///< of what has just arrived; may throw
  std::function<void()> every_second = {};                            ///< while it waits; may throw
};

class GroupExchange {
 public:
  GroupExchange(std::shared_ptr<Links> links, GroupExchangeOptions options);

  GroupExchange(const GroupExchange&) = delete;
  GroupExchange& operator=(const GroupExchange&) = delete;

  /// What messages call the members from now on; before, it is what is known by the connections.
  void set_members(std::vector<WorkerInfo> members) { members_ = std::move(members); }

  /// Connects this member to the first, which listens at `address`. @throws DeadlineExceeded naming it when
  /// it does not answer, Unavailable when a worker is lost.
  void connect(const remote::Address& address);

  /// Every member's blob, by rank.
  /// @throws on all members the same DeadlineExceeded or InvalidArgument, naming the members that are missing
  /// or do something else, or Unavailable, naming one that is lost.
  [[nodiscard]] std::vector<std::string> all_gather(RoundKind round_kind, std::string_view blob);

  /// Ends this and later rounds on all members, because of an error that this one has met elsewhere.
  void fail(const Error& error);

 private:
  struct Gathered;

  [[nodiscard]] std::string gather(std::string own);
  [[nodiscard]] std::string hear_from_first(std::string own);
  void take(Gathered& gathered);
  [[nodiscard]] const Error* session_fault() const { return options_.fault ? options_.fault() : nullptr; }
  [[nodiscard]] std::optional<Error> loss_among(std::span<const int> members) const;
  [[nodiscard]] Error in_this_round(const Error& fault) const;
  [[noreturn]] void throw_missing(const Gathered& gathered) const;
  [[noreturn]] void throw_error_of(const Letter& letter) const;
  [[nodiscard]] bool is_first() const noexcept { return options_.rank == 0; }
  [[nodiscard]] int session_rank(std::size_t member) const { return options_.ranks[member]; }
  [[nodiscard]] int first() const { return options_.ranks.front(); }
  [[nodiscard]] std::string describe_member(std::size_t member) const;
  [[nodiscard]] WorkerInfo info(std::size_t member) const;
  [[nodiscard]] std::string call() const;

  const std::shared_ptr<Links> links_;
  const GroupExchangeOptions options_;
  std::vector<WorkerInfo> members_;
  std::uint64_t round_ = 0;
  RoundKind round_kind_ = RoundKind::kStart;
  std::optional<Error> failure_;
};

}  // namespace cohort::rendezvous
