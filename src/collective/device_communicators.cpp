#include "device_communicators.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "communicator_base.h"
#include "device/device_runtime.h"

// As cohort_device_runtime in device.cpp.
extern "C" __attribute__((weak)) cohort::DeviceCollectives* cohort_device_collectives() noexcept;

namespace cohort {
namespace {

/// A communicator for tensors on a GPU that goes through the host: what a call reads is copied to staging
/// memory, the host's communicator makes the call there, and what it wrote is copied back. The memory is kept
/// from call to call, so a step like the one before allocates none.
class StagedCommunicator final : public CommunicatorBase {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, Device device);
  ~StagedCommunicator() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "staged"; }
  [[nodiscard]] Device device() const noexcept override { return device_; }
  [[nodiscard]] std::string_view group_name() const noexcept override { return host_->group_name(); }
  [[nodiscard]] std::string_view last_algorithm() const noexcept override { return host_->last_algorithm(); }
  [[nodiscard]] std::string_view last_choice() const noexcept override { return host_->last_choice(); }
  [[nodiscard]] std::vector<TuningFigure> tuning() const override { return host_->tuning(); }

  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override;
  void abort(const Error& error) override { host_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return host_->failure(); }

 private:
  class Staging;
  class Passage;
  class PassageWork;

  [[nodiscard]] bool takes(DeviceKind /*kind*/) const noexcept override { return true; }
  Work begin(const CollectiveCall& call) override;
  void execute(const CollectiveCall& call) override;
  [[nodiscard]] Passage passage(const CollectiveCall& call);

  std::unique_ptr<Communicator> host_;
  Device device_;
  std::mutex mutex_;
  /// By the device of a call: usually the member's own, but a replica with several devices has tensors on all
  /// of them.
  std::map<Device, std::shared_ptr<Staging>> staging_;
};

/// Blocks of staging memory that no call uses now.
class StagedCommunicator::Staging {
 public:
  explicit Staging(Device device) : device_(device), runtime_(runtime_of(device)) {}

  ~Staging() {
    if (!free_.empty()) runtime_.drain(device_);  // it may still read results from the blocks
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] DeviceRuntime& runtime() const noexcept { return runtime_; }

  /// One of at least `bytes`: the smallest that is there, or a new one.
  [[nodiscard]] std::shared_ptr<const Buffer> take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto fits =
          std::ranges::lower_bound(free_, bytes, {}, [](const auto& block) { return block->bytes(); });
      if (fits != free_.end()) {
        std::shared_ptr<const Buffer> block = std::move(*fits);
        free_.erase(fits);
        return block;
      }
    }
    return runtime_.allocate_staging(std::bit_ceil(bytes), device_);
  }

  void give_back(std::shared_ptr<const Buffer> block) {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::ranges::lower_bound(free_, block->bytes(), {}, [](const auto& known) { return known->bytes(); });
    free_.insert(place, std::move(block));
  }

 private:
  Device device_;
  DeviceRuntime& runtime_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Buffer>> free_;  ///< by size
};

/// One call through the host. The staging memory is laid out like the caller's: where input and output
/// overlap there, they do so here.
class StagedCommunicator::Passage {
 public:
  Passage(std::shared_ptr<Staging> staging, const CollectiveCall& call, int rank, int size)
      : staging_(std::move(staging)), device_(call.device), call_(call) {
    const std::size_t input = input_bytes(call, rank, size);
    const std::size_t output = output_bytes(call, rank, size);
    reads_ = reads_input(call, rank) ? input : 0;
    writes_ = writes_output(call, rank) ? output : 0;
    place(input, output);
  }

  /// The same call on the staging memory, which holds what it reads. Waits for the device.
  [[nodiscard]] CollectiveCall enter() {
    copy(input_, Device(), call_->input, device_, reads_);
    staging_->runtime().synchronize(device_);
    CollectiveCall staged = call_.get();
    staged.input = call_->input == nullptr ? nullptr : input_;
    staged.output = call_->output == nullptr ? nullptr : output_;
    staged.device = Device();
    staged.buffers = {&block_, &block_};
    return staged;
  }

  /// Once the call has succeeded; the block may be used again, since its next use waits for the device.
  void leave() {
    copy(call_->output, device_, output_, Device(), writes_);
    staging_->give_back(std::move(block_));
  }

 private:
  void place(std::size_t input, std::size_t output) {
    const std::less<const std::byte*> before;
    const bool disjoint = input == 0 || output == 0 || !before(call_->input, call_->output + output) ||
                          !before(call_->output, call_->input + input);
    if (disjoint) {
      const std::size_t second = (input + kAlignment - 1) / kAlignment * kAlignment;
      block_ = staging_->take(second + output);
      input_ = block_->data();
      output_ = block_->data() + second;
      return;
    }
    const std::byte* const first = std::min<const std::byte*>(call_->input, call_->output, before);
    const std::byte* const end =
        std::max<const std::byte*>(call_->input + input, call_->output + output, before);
    block_ = staging_->take(static_cast<std::size_t>(end - first));
    input_ = block_->data() + (call_->input - first);
    output_ = block_->data() + (call_->output - first);
  }

  void copy(std::byte* to, Device to_device, const std::byte* from, Device from_device,
            std::size_t bytes) const {
    if (bytes == 0) return;
    staging_->runtime().copy_staged(
        {.to = to, .to_device = to_device, .from = from, .from_device = from_device, .width = bytes});
  }

  std::shared_ptr<Staging> staging_;
  Device device_;
  OwnedCall call_;
  std::size_t reads_ = 0;
  std::size_t writes_ = 0;
  std::shared_ptr<const Buffer> block_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

/// A call that the host's group has not ended yet. The first thread that sees its end copies the result.
class StagedCommunicator::PassageWork final : public Work::State {
 public:
  PassageWork(Passage passage, Work work) : passage_(std::move(passage)), work_(std::move(work)) {}

  void wait() override {
    work_.wait();
    finish();
  }

  [[nodiscard]] bool done() noexcept override {
    if (!work_.done()) return false;
    try {
      wait();
    } catch (const Error&) {
      // wait() says it again.
    }
    return true;
  }

 private:
  void finish() {
    const std::lock_guard lock(mutex_);
    if (!passage_) return;
    passage_->leave();
    passage_.reset();
  }

  std::mutex mutex_;
  std::optional<Passage> passage_;
  Work work_;
};

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> host, Device device)
    : CommunicatorBase(host->rank(), {host->members().begin(), host->members().end()}, host->options()),
      host_(std::move(host)),
      device_(device) {}

StagedCommunicator::~StagedCommunicator() = default;

StagedCommunicator::Passage StagedCommunicator::passage(const CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Staging>& staging = staging_[call.device];
  if (staging == nullptr) staging = std::make_shared<Staging>(call.device);
  return {staging, call, rank(), size()};
}

Work StagedCommunicator::begin(const CollectiveCall& call) {
  if (is_cpu(call.device)) return start_checked(*host_, call);
  Passage through = passage(call);
  Work work = start_checked(*host_, through.enter());
  return Work(std::make_shared<PassageWork>(std::move(through), std::move(work)));
}

void StagedCommunicator::execute(const CollectiveCall& call) {
  if (is_cpu(call.device)) return run_checked(*host_, call);
  Passage through = passage(call);
  run_checked(*host_, through.enter());
  through.leave();
}

std::unique_ptr<Communicator> StagedCommunicator::split(std::optional<int> color, int key) {
  std::unique_ptr<Communicator> group = host_->split(color, key);
  if (group == nullptr) return nullptr;
  return std::make_unique<StagedCommunicator>(std::move(group), device_);
}

}  // namespace

DeviceCollectives* linked_device_collectives() noexcept {
  return cohort_device_collectives == nullptr ? nullptr : cohort_device_collectives();
}

std::vector<std::unique_ptr<Communicator>> make_staged_communicators(
    std::vector<std::unique_ptr<Communicator>> hosts, std::span<const Device> devices) {
  COHORT_CHECK(hosts.size() == devices.size());
  std::vector<std::unique_ptr<Communicator>> staged;
  staged.reserve(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i)
    staged.push_back(std::make_unique<StagedCommunicator>(std::move(hosts[i]), devices[i]));
  return staged;
}

}  // namespace cohort
