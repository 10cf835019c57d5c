// A communicator for tensors on a GPU that goes through the host: what a call reads is copied to staging
// memory, the host's communicator makes the call there, and what it wrote is copied back. The memory is kept
// from call to call, so a step like the one before allocates none.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "collective/communicator_base.h"

namespace cohort {

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

}  // namespace cohort
