#include "communicator_base.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>

namespace cohort {
namespace {

/// One checksum per this many bytes, so that a report can say where.
constexpr std::size_t kBlock = 4096;

std::vector<std::uint64_t> checksums_of(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> checksums;
  checksums.reserve(bytes.size() / kBlock + 1);
  while (!bytes.empty()) {
    std::span<const std::byte> block = bytes.first(std::min(kBlock, bytes.size()));
    bytes = bytes.subspan(block.size());
    Fingerprint checksum;
    while (!block.empty()) {
      std::uint64_t word = 0;
      const std::size_t length = std::min(sizeof word, block.size());
      std::memcpy(&word, block.data(), length);
      checksum.add(word);
      block = block.subspan(length);
    }
    checksums.push_back(checksum.value());
  }
  return checksums;
}

std::shared_ptr<const Buffer> copy_of(std::span<const std::byte> bytes) {
  std::shared_ptr<const Buffer> copy = allocate(bytes.size(), Device());
  std::ranges::copy(bytes, copy->data());
  return copy;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<const std::byte*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) &&
         before(b.data(), a.data() + a.size());
}

}  // namespace

class BufferChecks::Checked final : public Work::State {
 public:
  Checked(const CollectiveCall& call, const BufferChecks& checks, ErrorOrigin origin)
      : call_(call),
        input_(call.input, input_bytes(call, checks.rank_, checks.size_)),
        output_(call.output, output_bytes(call, checks.rank_, checks.size_)),
        has_result_(writes_output(call, checks.rank_)),
        who_(describe(checks.rank_, checks.info_)),
        origin_(std::move(origin)),
        input_before_(checksums_of(input_)),
        output_before_(checksums_of(output_)) {
    // In place, one of them is a part of the other.
    const bool in_place = overlap(input_, output_);
    const bool output_is_larger = output_.size() >= input_.size();
    if (!in_place || !output_is_larger) input_copy_ = copy_of(input_);
    if (!in_place || output_is_larger) output_copy_ = copy_of(output_);
    if (input_copy_ == nullptr)
      input_copy_ = part_of(output_copy_, input_.data() - output_.data(), input_.size());
    if (output_copy_ == nullptr)
      output_copy_ = part_of(input_copy_, output_.data() - input_.data(), output_.size());
  }
  ~Checked() override = default;
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  /// The same call on the copies.
  void start(const std::function<Work(const CollectiveCall&)>& start) {
    CollectiveCall call = call_.get();
    if (call.input != nullptr) call.input = input_copy_->data();
    if (call.output != nullptr) call.output = output_copy_->data();
    call.buffers = {&input_copy_, &output_copy_};
    work_.emplace(start(call));
  }

  void wait() override {
    work_->wait();
    const std::lock_guard lock(mutex_);
    if (!ended_) end();
    if (error_) throw_error(*error_);
  }

  /// The copy of the call has ended, and nobody may have waited for it yet.
  [[nodiscard]] bool may_end() const noexcept { return work_->done(); }

  [[nodiscard]] bool has_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  [[nodiscard]] bool done() noexcept override {
    if (!may_end()) return false;
    try {
      wait();  // the caller may then look at the result at once
    } catch (const std::exception&) {
      return true;  // the next `wait` says it again
    }
    return true;
  }

 private:
  static std::shared_ptr<const Buffer> part_of(const std::shared_ptr<const Buffer>& whole,
                                               std::ptrdiff_t begin, std::size_t bytes) {
    return std::make_shared<const Buffer>(whole->data() + begin, bytes, whole->device(),
                                          std::const_pointer_cast<Buffer>(whole));
  }

  void end() {
    ended_ = true;
    require_unchanged("input", input_, input_before_);
    if (input_.data() != output_.data()) require_unchanged("output", output_, output_before_);
    if (!error_ && has_result_) std::copy_n(output_copy_->data(), output_.size(), output_.data());
    input_copy_ = output_copy_ = nullptr;
  }

  void require_unchanged(const char* role, std::span<const std::byte> now,
                         const std::vector<std::uint64_t>& before) {
    if (error_) return;
    const std::vector<std::uint64_t> after = checksums_of(now);
    const auto changed = std::ranges::mismatch(before, after).in1;
    if (changed == before.end()) return;
    const auto begin = static_cast<std::size_t>(changed - before.begin()) * kBlock;
    const std::size_t size = size_of(call_->dtype);
    error_ = InvalidArgument(
        origin_,
        fmt::format("{}: the {} of {} was changed while the call was in flight, first within elements {} to "
                    "{} of {}. Leave a call's tensors alone until its Work has been waited for",
                    origin_.call, role, who_, begin / size, (std::min(begin + kBlock, now.size()) - 1) / size,
                    describe(call_.get())));
  }

  const OwnedCall call_;
  const std::span<const std::byte> input_;
  const std::span<std::byte> output_;
  const bool has_result_;
  const std::string who_;
  const ErrorOrigin origin_;
  const std::vector<std::uint64_t> input_before_;
  const std::vector<std::uint64_t> output_before_;
  std::shared_ptr<const Buffer> input_copy_;
  std::shared_ptr<const Buffer> output_copy_;
  std::optional<Work> work_;

  std::mutex mutex_;
  bool ended_ = false;
  std::optional<Error> error_;
};

BufferChecks::~BufferChecks() {
  if (std::uncaught_exceptions() > 0) return;
  for (const std::shared_ptr<Checked>& checked : unfinished_) {
    if (checked.use_count() == 1) finish_dropped(*checked);
  }
}

void BufferChecks::finish_dropped(Checked& checked) {
  try {
    checked.wait();
  } catch (const std::exception& error) {
    logging::error("{}", error.what());  // its Work was dropped, so nobody else reports it
  }
}

Work BufferChecks::start(const CollectiveCall& call,
                         const std::function<Work(const CollectiveCall&)>& start) {
  std::erase_if(unfinished_, [](const std::shared_ptr<Checked>& checked) {
    if (checked.use_count() > 1) return checked->has_ended();
    if (!checked->may_end()) return false;
    finish_dropped(*checked);
    return true;
  });
  auto checked = std::make_shared<Checked>(call, *this, ErrorOrigin{name_next(call), rank_, info_.host});
  checked->start(start);
  unfinished_.push_back(checked);
  return Work(std::move(checked));
}

std::string BufferChecks::name_next(const CollectiveCall& call) {
  if (is_message(call.kind)) return std::string(to_string(call.kind));
  return fmt::format("{} #{}", to_string(call.kind), collectives_++);
}

}  // namespace cohort
