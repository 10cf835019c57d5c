// What makes NCCL the collectives of GPUs in a program that is linked with it.
#include "collective/device_communicators.h"

#include <fmt/format.h>

#include <cohort/nccl/communicator.h>
#include <cohort/nccl/library.h>

namespace cohort::nccl {
namespace {

class NcclCollectives final : public DeviceCollectives {
 public:
  [[nodiscard]] std::string name() const override { return fmt::format("NCCL {}", library().version); }

  [[nodiscard]] std::string why_not(std::span<const Device> /*devices*/) const override {
    try {
      static_cast<void>(library());
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> connect(
      std::vector<std::unique_ptr<Communicator>>& hosts, std::span<const Device> devices) override {
    std::vector<std::unique_ptr<Communicator>> communicators = make_communicators(hosts, devices);
    hosts.clear();  // each has one of its own
    return communicators;
  }
};

}  // namespace
}  // namespace cohort::nccl

extern "C" cohort::DeviceCollectives* cohort_device_collectives() noexcept {
  static cohort::nccl::NcclCollectives collectives;
  return &collectives;
}
