// One replica on one device, to run a program that is written for many devices on one.
#pragma once

#include <cohort/strategy/strategy.h>

namespace cohort {

class OneDeviceStrategy : public Strategy {
 public:
  /// No device means cpu:0. @throws Unavailable when the device does not exist in this build.
  explicit OneDeviceStrategy(Device device = {});
};

}  // namespace cohort
