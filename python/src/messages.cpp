// Messages between two ranks, and the monitored barrier, which is made of them: it tells who is missing and
// leaves the group usable.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "backend.h"
#include "tags.h"
#include "tensors.h"
#include "work.h"

namespace cohort::pytorch {
namespace {

using c10d::OpType;
using Clock = std::chrono::steady_clock;

const at::Tensor& only_message(const std::vector<at::Tensor>& tensors, int tag) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "cohort: a message is one tensor, not ", tensors.size());
  TORCH_CHECK_VALUE(tag >= 0 && tag <= kLargestTag, "cohort: tag ", tag, " is out of range; tags are 0 to ",
                    kLargestTag);
  TORCH_CHECK_VALUE(tensors.front().layout() == at::kStrided, "cohort: messages are dense tensors");
  return tensors.front();
}

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// The steps of a message that Cohort moves.
MessageWork::Steps steps_of(cohort::Work work, std::function<void()> finish) {
  MessageWork::Steps steps;
  steps.try_finish = [work]() mutable {
    if (!work.done()) return false;
    work.wait();  // for its error
    return true;
  };
  steps.wait = [work]() mutable { work.wait(); };
  steps.finish = std::move(finish);
  return steps;
}

/// Looks for a message from each other member in turn, a moment from each: Cohort's receives name the sender.
class AnySource {
 public:
  AnySource(Communicator& communicator, std::mutex& starting, at::Tensor row, int tag,
            std::chrono::milliseconds timeout)
      : communicator_(communicator),
        starting_(starting),
        row_(std::move(row)),
        tag_(tag),
        timeout_(timeout),
        end_(Clock::now() + timeout),
        source_(communicator.rank()) {}

  bool try_finish() {
    if (!work_) start_next();
    if (!work_->done()) return false;
    try {
      work_->wait();
      return true;
    } catch (const DeadlineExceeded&) {
      gone_ = 0;
    } catch (const Aborted&) {
      if (communicator_.failure() || ++gone_ >= communicator_.size() - 1) throw;
    }
    work_.reset();
    if (timeout_.count() > 0 && Clock::now() >= end_) {
      throw DeadlineExceeded(
          "receive: no member has sent a message with tag {} to {} within {} s", tag_,
          describe(communicator_.rank(),
                   communicator_.members()[static_cast<std::size_t>(communicator_.rank())]),
          seconds_of(timeout_));
    }
    return false;
  }

  [[nodiscard]] int source() const { return source_; }

 private:
  static constexpr double kMomentSeconds = 0.001;

  void start_next() {
    do source_ = (source_ + 1) % communicator_.size();
    while (source_ == communicator_.rank());
    const std::lock_guard lock(starting_);
    work_ = communicator_.receive_async(contents_of(row_), source_, tag_, kMomentSeconds);
  }

  Communicator& communicator_;
  std::mutex& starting_;
  at::Tensor row_;
  int tag_;
  std::chrono::milliseconds timeout_;
  Clock::time_point end_;
  int source_;
  int gone_ = 0;  ///< members in a row that have left
  std::optional<cohort::Work> work_;
};

}  // namespace

CohortBackend::WorkPointer CohortBackend::send(Tensors& tensors, int destination, int tag) {
  const at::Tensor row = row_major(only_message(tensors, tag));
  return with_errors_of_pytorch([&] {
    const std::lock_guard lock(starting_message_);
    return c10::make_intrusive<MessageWork>(
        WorkLabel{rank_, OpType::SEND, "cohort:send", ++sequence_, options_->timeout},
        steps_of(messages().send_async(contents_of(row), destination, tag, seconds_of(options_->timeout)),
                 {}));
  });
}

CohortBackend::WorkPointer CohortBackend::recv(Tensors& tensors, int source, int tag) {
  const at::Tensor tensor = only_message(tensors, tag);
  const at::Tensor row = row_major_result(tensor);
  return with_errors_of_pytorch([&] {
    const std::lock_guard lock(starting_message_);
    MessageWork::Steps steps =
        steps_of(messages().receive_async(contents_of(row), source, tag, seconds_of(options_->timeout)),
                 [tensor, row] { put_into(tensor, row); });
    steps.source = [source] { return source; };
    return c10::make_intrusive<MessageWork>(
        WorkLabel{rank_, OpType::RECV, "cohort:recv", ++sequence_, options_->timeout}, std::move(steps));
  });
}

CohortBackend::WorkPointer CohortBackend::recvAnysource(Tensors& tensors, int tag) {
  const at::Tensor tensor = only_message(tensors, tag);
  TORCH_CHECK_VALUE(size_ > 1, "cohort: there is no other rank to receive from");
  const at::Tensor row = row_major_result(tensor);
  const auto receive = with_errors_of_pytorch([&] {
    return std::make_shared<AnySource>(messages(), starting_message_, row, tag, options_->timeout);
  });
  MessageWork::Steps steps;
  steps.try_finish = [receive] { return receive->try_finish(); };
  steps.finish = [tensor, row] { put_into(tensor, row); };
  steps.source = [receive] { return receive->source(); };
  return c10::make_intrusive<MessageWork>(
      WorkLabel{rank_, OpType::RECVANYSOURCE, "cohort:recvAnySource", ++sequence_, options_->timeout},
      std::move(steps));
}

// ---- the monitored barrier: all tell rank 0 that they are there, and hear from it how it went

namespace {

/// What a rank tells rank 0: the number of its call. What it hears: that number again, so that the end of an
/// earlier call, which it had given up, is not taken for that of this one; and whether the barrier has
/// failed.
using Note = std::array<std::int64_t, 2>;

class MonitoredBarrier {
 public:
  MonitoredBarrier(Communicator& communicator, std::int64_t number, std::chrono::milliseconds timeout)
      : communicator_(communicator), number_(number), timeout_(timeout), end_(Clock::now() + timeout) {}

  void lead(bool wait_for_all) {
    if (timeout_.count() <= 0)
      throw DeadlineExceeded(
          "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms, before any rank was asked");
    std::vector<int> missing;
    std::vector<std::pair<int, Note>> here;
    for (int member = 1; member < communicator_.size(); ++member) {
      if (!missing.empty() && !wait_for_all) break;
      if (const std::optional<Note> note = hear(member))
        here.emplace_back(member, *note);
      else
        missing.push_back(member);
    }
    for (const auto& [member, note] : here) tell(member, {note[0], missing.empty() ? 0 : 1});
    if (missing.empty()) return;
    std::vector<std::string> names;
    for (const int member : missing) names.push_back(who(member));
    throw DeadlineExceeded("[Rank 0]: {} {} failed to pass monitoredBarrier in {} ms: {} did not call it",
                           missing.size() == 1 ? "Rank" : "Ranks", fmt::join(missing, ", "), timeout_.count(),
                           fmt::join(names, ", "));
  }

  void follow() {
    tell(0, {number_, 0});
    std::optional<Note> answer;
    do answer = hear(0);
    while (answer && (*answer)[0] != number_);
    if (answer && (*answer)[1] == 0) return;
    // Programs look for PyTorch's own words.
    throw DeadlineExceeded(
        "[Rank {0}]: Rank {0} successfully reached monitoredBarrier, but received errors while waiting for "
        "send/recv "
        "from rank 0: {1}; the error of rank 0 names the ranks that are missing",
        communicator_.rank(), answer ? "it failed there" : fmt::format("heard nothing from {}", who(0)));
  }

 private:
  [[nodiscard]] std::string who(int member) const {
    return describe(member, communicator_.members()[static_cast<std::size_t>(member)]);
  }

  void tell(int member, const Note& note) {
    // Short messages need not wait for their receivers.
    communicator_
        .send_async(Tensor::from(std::span<const std::int64_t>(note), {2}), member, kMonitoredBarrierTag)
        .wait();
  }

  /// The next note of the member; nothing when the time is over.
  std::optional<Note> hear(int member) {
    const Tensor row = Tensor::zeros({2}, DType::kInt64);
    const double left = std::max(std::chrono::duration<double>(end_ - Clock::now()).count(), 0.001);
    try {
      communicator_.receive(row, member, kMonitoredBarrierTag, left);
    } catch (const DeadlineExceeded&) {
      return std::nullopt;
    }
    const auto note = row.span<std::int64_t>();
    return Note{note[0], note[1]};
  }

  Communicator& communicator_;
  std::int64_t number_;
  std::chrono::milliseconds timeout_;
  Clock::time_point end_;
};

}  // namespace

void CohortBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  with_errors_of_pytorch([&] {
    MonitoredBarrier barrier(messages(), ++monitored_barriers_,
                             options.timeout == c10d::kUnsetTimeout ? options_->timeout : options.timeout);
    if (rank_ == 0)
      barrier.lead(wait_all_ranks);
    else
      barrier.follow();
  });
}

}  // namespace cohort::pytorch
