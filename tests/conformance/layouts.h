// The layouts that recorded lines have, by the program that replays them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace cohort::conformance {

/// Layouts of one process; "" for lines without a strategy.
inline constexpr std::array<std::string_view, 6> kDeviceLayouts{"",          "default1",  "onedevice1",
                                                                "mirrored2", "mirrored3", "central2"};
/// The layout of two ranks.
inline constexpr std::string_view kWorkersLayout = "mwms2";

/// Lines about training, whose strategies are the scenarios' own.
inline constexpr std::string_view kTrainingLayout = "training";

/// Layouts whose tasks are processes. Their strategies are the scenarios' own.
inline constexpr std::array<std::string_view, 10> kTaskLayouts{
    "ps11", "ps22",          "ps_w1_p1",   "ps_w2_p1",   "ps_w2_p2",
    "psv1", "psv1_c1_w1_p1", "psv1_w1_p1", "psv1_w2_p2", "psv1_w2_p3"};

[[nodiscard]] constexpr bool is_device_layout(std::string_view layout) {
  return std::ranges::find(kDeviceLayouts, layout) != kDeviceLayouts.end();
}
[[nodiscard]] constexpr bool is_task_layout(std::string_view layout) {
  return std::ranges::find(kTaskLayouts, layout) != kTaskLayouts.end();
}

}  // namespace cohort::conformance
