#include "gpu_members.h"

#include "collective/communicator_base.h"

namespace cohort::testing {
namespace {

/// The caller's memory as a tensor of bytes.
Tensor bytes_at(const std::byte* data, std::size_t bytes) {
  return Tensor::wrap(std::span(reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(data)), bytes),
                      {static_cast<std::int64_t>(bytes)});
}

class OnGpu final : public CommunicatorBase {
 public:
  OnGpu(std::unique_ptr<Communicator> host, Device device)
      : CommunicatorBase(host->rank(), {host->members().begin(), host->members().end()}, host->options()),
        host_(std::move(host)),
        device_(device) {}

  [[nodiscard]] std::string_view name() const noexcept override { return host_->name(); }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::unique_ptr<Communicator> group = host_->split(color, key);
    return group == nullptr ? nullptr : on_gpu(std::move(group), device_);
  }
  void abort(const Error& error) override { host_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return host_->failure(); }

 private:
  /// A call on the GPU's copies of its tensors.
  class Moved;
  class InFlight;

  Work begin(const CollectiveCall& call) override;
  void execute(const CollectiveCall& call) override;

  std::unique_ptr<Communicator> host_;
  Device device_;
};

class OnGpu::Moved {
 public:
  Moved(const CollectiveCall& call, const OnGpu& own) : call_(call) {
    if (call.kind == CollectiveKind::kBarrier) return;
    call_.device = own.device_;
    const std::size_t input = input_bytes(call, own.rank(), own.size());
    const std::size_t output = output_bytes(call, own.rank(), own.size());
    const auto within = [](const std::byte* inner, const std::byte* outer, std::size_t bytes) {
      return inner != nullptr && outer != nullptr && inner >= outer && inner < outer + bytes;
    };
    const bool input_in_output = output >= input && within(call.input, call.output, output);
    const bool output_in_input = !input_in_output && within(call.output, call.input, input);
    if (call.input != nullptr && !input_in_output)
      call_.input = copy(inputs_, call.input, input, own.device_);
    if (call.output != nullptr && !output_in_input)
      call_.output = copy(outputs_, call.output, output, own.device_);
    // In place, the smaller is a part of the larger.
    if (input_in_output) call_.input = call_.output + (call.input - call.output);
    if (output_in_input) call_.output = inputs_.there.data() + (call.output - call.input);
    gives_back_ = call.output == nullptr ? nullptr : output_in_input ? &inputs_ : &outputs_;
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  [[nodiscard]] const CollectiveCall& call() const noexcept { return call_; }

  void give_back() const {
    if (gives_back_ != nullptr) gives_back_->here.copy_from(gives_back_->there);
  }

 private:
  struct Pair {
    Tensor here;
    Tensor there;
  };
  static std::byte* copy(Pair& pair, const std::byte* data, std::size_t bytes, Device device) {
    pair.here = bytes_at(data, bytes);
    pair.there = pair.here.to(device);
    return pair.there.data();
  }

  CollectiveCall call_;
  Pair inputs_;
  Pair outputs_;
  const Pair* gives_back_ = nullptr;
};

class OnGpu::InFlight final : public Work::State {
 public:
  InFlight(Communicator& host, std::unique_ptr<const Moved> moved, const CollectiveCall& call)
      : call_(call), moved_(std::move(moved)), work_(CommunicatorBase::start_checked(host, moved_->call())) {}

  void wait() override {
    work_.wait();
    moved_->give_back();
  }
  [[nodiscard]] bool done() noexcept override {
    if (!work_.done()) return false;
    try {
      wait();  // the caller may read the result
    } catch (const Error&) {
      return true;
    }
    return true;
  }

 private:
  OwnedCall call_;  ///< keeps the caller's tensors
  std::unique_ptr<const Moved> moved_;
  Work work_;
};

Work OnGpu::begin(const CollectiveCall& call) {
  return Work(std::make_shared<InFlight>(*host_, std::make_unique<const Moved>(call, *this), call));
}

void OnGpu::execute(const CollectiveCall& call) {
  const Moved moved(call, *this);
  run_checked(*host_, moved.call());
  moved.give_back();
}

}  // namespace

std::unique_ptr<Communicator> on_gpu(std::unique_ptr<Communicator> host, Device device) {
  return std::make_unique<OnGpu>(std::move(host), device);
}

}  // namespace cohort::testing
