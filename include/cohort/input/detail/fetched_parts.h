// A worker's steps, each replica's part on that replica's device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/device/device.h>
#include <cohort/input/detail/local_parts.h>

namespace cohort::detail {

template <class Element>
class FetchedParts final : public LocalSteps<Element> {
 public:
  /// `devices[l]` is local replica l's.
  FetchedParts(std::unique_ptr<LocalSteps<Element>> steps, std::vector<Device> devices)
      : steps_(std::move(steps)), devices_(std::move(devices)) {}

  std::optional<LocalParts<Element>> next() override {
    std::optional<LocalParts<Element>> parts = steps_->next();
    if (!parts) return std::nullopt;
    for (std::size_t replica = 0; replica < parts->size(); ++replica) {
      std::optional<Element>& part = (*parts)[replica];
      if (part) for_each_leaf([&](Tensor& tensor) { tensor = tensor.to(devices_[replica]); }, *part);
    }
    return parts;
  }

  std::int64_t skip(std::int64_t steps) override { return steps_->skip(steps); }

 private:
  std::unique_ptr<LocalSteps<Element>> steps_;
  std::vector<Device> devices_;
};

}  // namespace cohort::detail
