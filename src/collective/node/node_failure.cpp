#include "node_failure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/deadline.h>
#include <cohort/base/log.h>
#include <cohort/device/allocator.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "collective/record/call_record.h"
#include "collective/record/job_report.h"
#include "device/node_heap.h"
#include "node_group.h"

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// What fails so soon after a report is taken for a consequence of the same failure.
constexpr std::chrono::seconds kTimeOfConsequences{10};

template <std::size_t kSize>
void write_text(std::array<char, kSize>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::copy_n(text.begin(), length, to.begin());
  to[length] = '\0';
}

std::string time_in_words() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text.data(), now.time_since_epoch() / 1ms % 1000);
}

ReportedMember member_of(const NodeGroup& group, int rank, const StampScale& scale) {
  const MemberInfo& info = group.members()[static_cast<std::size_t>(rank)];
  ReportedMember member{.rank = rank, .worker = info.worker, .host = info.host};
  const std::optional<int> local_rank = group.local_rank_of(rank);
  if (!local_rank) return member;
  const ControlBlock& block = group.control_block(*local_rank);
  member.has_left = block.left.load(std::memory_order_acquire);
  if (!read_record(block.record, scale, member)) return member;
  member.process = group.memory().is_this_process(group.worker_of(*local_rank))
                       ? ProcessState::kRunning
                       : state_of(block.record.process);
  return member;
}

/// In one piece, so that other processes' output does not come in between.
void write_lines(const JobReport& report) {
  std::string text;
  for (const std::string& line : lines_of(report)) text += fmt::format("cohort report: {}\n", line);
  write_fully(STDERR_FILENO, text);
}

void write_file(const std::string& path, const JobReport& report) {
  try {
    NewFile file(path);
    write_fully(file.descriptor(), to_json(report));
    file.publish();
  } catch (const std::exception& error) {
    logging::warning("the report cannot be written to {}, which COHORT_REPORT names: {}", path, error.what());
  }
}

}  // namespace

bool write_failure(FailureRecord& record, const Error& error) {
  auto state = FailureRecord::State::kNone;
  if (!record.state.compare_exchange_strong(state, FailureRecord::State::kBeingWritten)) return false;
  record.code = static_cast<std::int32_t>(error.code());
  record.member = error.origin().member;
  write_text(record.host, error.origin().host);
  write_text(record.call, error.origin().call);
  write_text(record.text, error.what());
  record.state.store(FailureRecord::State::kWritten, std::memory_order_release);
  return true;
}

Error read_failure(const FailureRecord& record) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (record.state.load(std::memory_order_acquire) != FailureRecord::State::kWritten) {
    if (deadline.expired())
      return Aborted("the communicator failed, and the member that noticed it died before it said why");
    std::this_thread::yield();
  }
  return {static_cast<ErrorCode>(record.code), record.text.data(),
          ErrorOrigin{record.call.data(), record.member, record.host.data()}};
}

// ---- the report

ReportLatch& ReportLatch::of_this_process() {
  // Never given back: other processes may look at it to the end of the job.
  static const auto& block = *new std::shared_ptr<const Buffer>(allocate(sizeof(ReportLatch), Device()));
  static auto* const latch = new (block->data()) ReportLatch;
  return *latch;
}

std::optional<std::uint64_t> ReportLatch::offset() const {
  const NodeHeap* const heap = NodeHeap::of_this_process();
  if (heap == nullptr) return std::nullopt;
  return heap->offset_of(reinterpret_cast<const std::byte*>(this), sizeof *this);
}

std::optional<int> ReportLatch::claim() noexcept {
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  std::int64_t last = last_.load(std::memory_order_relaxed);
  if (last != 0 && now - last < std::chrono::nanoseconds(kTimeOfConsequences).count()) return std::nullopt;
  if (!last_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return std::nullopt;
  return reports_.fetch_add(1, std::memory_order_relaxed) + 1;
}

JobReport make_report(const NodeGroup& group, const Error& error) {
  const StampScale scale = StampScale::at_this_moment();
  const int own_rank = group.rank_of(group.first_own_local_rank());
  JobReport report{.communicator = group.name(),
                   .time = time_in_words(),
                   .host = group.host_of(own_rank),
                   .worker = group.members()[static_cast<std::size_t>(own_rank)].worker,
                   .error_code = std::string(to_string(error.code())),
                   .error = error.what(),
                   .error_call = error.origin().call,
                   .error_member = error.origin().member,
                   .slow = group.slow_workers()};
  for (int rank = 0; rank < static_cast<int>(group.members().size()); ++rank)
    report.members.push_back(member_of(group, rank, scale));
  return report;
}

void report_failure(const NodeGroup& group, const Error& error) noexcept {
  try {
    const ReportPlace& place = group.report_place();
    if (place.on_report) return place.on_report(make_report(group, error));
    const bool speaks = logging::enabled(logging::Level::kError);
    const std::string file = config().report();
    if (!speaks && file.empty()) return;
    const std::optional<int> number = place.latch->claim();
    if (!number) return;
    const JobReport report = make_report(group, error);
    if (speaks) write_lines(report);
    if (file.empty()) return;
    write_file(file + place.file_suffix + (*number == 1 ? "" : fmt::format(".{}", *number)), report);
  } catch (const std::exception& failure) {
    // The error itself must reach the program.
    logging::warning("no report could be made: {}", failure.what());
  }
}

}  // namespace cohort::node
