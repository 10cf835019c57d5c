// The shared state behind one MpiCommunicator: its channels, the calls in flight and
// what to do when one fails. The communicator and each Work co-own it.
//
// Nothing here waits inside MPI. Calls move on in `progress`, which whoever waits for
// something runs with the gate's pass: the calling thread, one of several, or, once the
// communicator is gone, the last owner of a Work.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <cohort/collective/communication_options.h>

#include "agreement.h"
#include "collective.h"
#include "messages.h"
#include "notices.h"
#include "runtime.h"

namespace cohort::mpi {

class Group {
 public:
  /// Collective over `comm`, and blocks in MPI: all members must be known to be here.
  Group(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int rank, std::vector<MemberInfo> members,
        CommunicationOptions options);
  ~Group();

  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// @throws the Error that made the group unusable.
  [[nodiscard]] std::shared_ptr<Operation> start(const CollectiveCall& call);

  /// Returns when `operation` has ended. @throws its Error.
  void wait(const Operation& operation);
  [[nodiscard]] bool done(const Operation& operation) noexcept;

  void abort(const Error& error);

  /// What has ended the group, as far as it is known; looks for news.
  [[nodiscard]] std::optional<Error> failure();

  /// A group of these members, of whom this one is number `own`. Collective over them, as the constructor.
  [[nodiscard]] std::shared_ptr<Group> split(std::span<const int> ranks, int own,
                                             std::vector<MemberInfo> members) const;

 private:
  using Clock = std::chrono::steady_clock;

  /// Time that others are given to show up. It ends by the clock, but not before this member has looked
  /// often enough to have seen them: it may itself have got no processor time.
  class Patience {
   public:
    explicit Patience(Clock::duration time) : ends_at_(Clock::now() + time) {}
    /// At each look.
    [[nodiscard]] bool is_over() { return ++looks_ >= kLooks && Clock::now() >= ends_at_; }

   private:
    static constexpr int kLooks = 20;
    Clock::time_point ends_at_;
    int looks_ = 0;
  };

  /// Member 0 asks who still answers, when a transfer has not ended in time.
  struct Inquest {
    std::uint64_t sequence;
    Patience patience;
    std::vector<bool> present;
  };

  /// A deadline has passed, and who is late gets a last chance.
  struct LastChance {
    std::uint64_t sequence;
    bool is_message;
    Patience patience;
  };

  /// True when something moved. `thorough` includes what need not be looked at each time.
  bool progress(bool thorough);
  bool advance_collectives();
  [[nodiscard]] std::shared_ptr<Collective> next_to_settle() const;
  void look_around();
  void read_notices();
  void heed(const Notice& notice);
  void check_deadlines();
  [[nodiscard]] bool had_its_chance(const Operation& late, bool is_message, Clock::duration time);
  void deadline_passed(const Collective& collective);
  void close_inquest();
  [[nodiscard]] const Collective* find(std::uint64_t sequence) const;
  [[nodiscard]] std::chrono::duration<double> timeout() const;
  [[nodiscard]] std::chrono::duration<double> timeout(const CollectiveCall& call) const;
  [[nodiscard]] Error missing(const Operation& operation, std::span<const int> members) const;

  void require_usable(const CollectiveCall& call);
  /// Ends the calls from `from` on and all messages; the others are told unless they know.
  void fail_from(std::uint64_t from, const Error& error, bool tell);
  void fail_all(const Error& error) { fail_from(0, error, false); }
  void complete_leftovers();

  const std::shared_ptr<Runtime> runtime_;
  const std::vector<MemberInfo> members_;
  const CommunicationOptions options_;

  // Channels of their own, so that no message is ever taken for one of another kind.
  Comm control_;
  Comm data_;
  Comm message_channel_;
  Place place_;

  Outbox outbox_;
  std::optional<Agreement> agreement_;
  std::optional<Notices> notices_;
  std::deque<std::shared_ptr<Collective>> collectives_;
  Messages messages_;

  std::uint64_t next_sequence_ = 0;
  std::uint64_t next_message_ = 0;
  std::optional<Error> failure_;  ///< what calls to come end in
  std::optional<Inquest> inquest_;
  std::optional<LastChance> last_chance_;
  std::optional<std::uint64_t> told_late_;      ///< member 0: a deadline of this call has passed
  std::optional<std::uint64_t> reported_late_;  ///< the others: of this call, and member 0 knows
  bool memory_in_use_ = false;                  ///< MPI may still use memory of failed calls
};

}  // namespace cohort::mpi
