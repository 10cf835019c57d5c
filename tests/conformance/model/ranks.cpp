// The model against the strategy of several workers, which are ranks.
#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "execution.h"
#include "mpi_main.h"

namespace cohort::model {
namespace {

using ::cohort::testing::session;

class ModelOfRanks : public ::testing::TestWithParam<int> {};

TEST_P(ModelOfRanks, AgreesWithTheLibrary) {
  const std::string seed = session().exchange(std::to_string(seed_of_run())).front();
  const int programs = programs_of_run(150);
  if (session().is_chief()) std::cout << programs << " programs from MODEL_SEED=" << seed << '\n';
  play({.layout = {Kind::kMirrored, session().size(), GetParam()},
        .make_strategy =
            [] {
              return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 20}, cpu_devices(GetParam()));
            },
        .on_any_worker =
            [](bool here) {
              const std::vector<std::string> all = session().exchange(here ? "yes" : "");
              return std::ranges::find(all, "yes") != all.end();
            }},
       std::stoull(seed), programs);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelOfRanks, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace cohort::model
