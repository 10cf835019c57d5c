// The model against every strategy of one process.
#include <iostream>

#include <gtest/gtest.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

#include "execution.h"

namespace cohort::model {
namespace {

class Model : public ::testing::TestWithParam<Layout> {};

Strategy make_strategy(const Layout& layout) {
  const CommunicationOptions patient{.timeout_seconds = 60};
  switch (layout.kind) {
    case Kind::kDefault: return get_strategy();
    case Kind::kOneDevice: return OneDeviceStrategy();
    case Kind::kMirrored: return MirroredStrategy(cpu_devices(layout.devices), patient);
    case Kind::kCentral: return CentralStorageStrategy(cpu_devices(layout.devices), Device(), patient);
  }
  throw std::invalid_argument("no such strategy");
}

TEST_P(Model, AgreesWithTheLibrary) {
  const std::uint64_t seed = seed_of_run();
  const int programs = programs_of_run(500);
  std::cout << programs << " programs from MODEL_SEED=" << seed << '\n';
  play({.layout = GetParam(), .make_strategy = [] { return make_strategy(GetParam()); }}, seed, programs);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Model,
                         ::testing::Values(Layout{}, Layout{Kind::kOneDevice}, Layout{Kind::kMirrored, 1, 1},
                                           Layout{Kind::kMirrored, 1, 2}, Layout{Kind::kMirrored, 1, 3},
                                           Layout{Kind::kCentral, 1, 1}, Layout{Kind::kCentral, 1, 2},
                                           Layout{Kind::kCentral, 1, 3}));

}  // namespace
}  // namespace cohort::model
