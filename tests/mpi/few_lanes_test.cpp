// Between nodes, long calls go by as many lanes as the tuning file says. LANES is what this test writes
// there, before the first call.
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>

#include <cohort/base/config.h>

#include "collective/choice/tuning_figures.h"
#include "rank_values.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;

int wanted_lanes() {
  const char* const text = std::getenv("LANES");
  return text == nullptr ? 1 : std::stoi(text);
}

/// The number of nodes of this job.
int nodes() {
  int last = 0;
  for (const WorkerInfo& worker : testing::session().workers()) last = std::max(last, worker.node);
  return last + 1;
}

void write_tuning_file() {
  TuningTable table;
  table.set(Figure::kLanes, wanted_lanes(), TuningSource::kProbed);
  TuningFile(config().tuning_file())
      .write(TuningScope::kNetwork, fmt::format("{} nodes, {} members", nodes(), testing::session().size()),
             table);
}

TEST(FewLanes, ComeFromTheTuningFileAndGiveTheSameResults) {
  ASSERT_GT(nodes(), 1);
  if (testing::session().rank() == 0) write_tuning_file();
  meet();
  const auto communicator = make_communicator();
  for (const std::int64_t elements : {100'000, 1'000'003}) {
    const Tensor tensor = own_values(elements);
    communicator->all_reduce(tensor, ReduceOp::kSum);
    EXPECT_TRUE(bitwise_equal(tensor, filled(elements, sum_of_ranks())));
    const Tensor other = own_values(elements);
    communicator->broadcast(other, 1);
    EXPECT_TRUE(bitwise_equal(other, filled(elements, 2)));
    const Tensor sum = filled(elements, 0);
    communicator->reduce(own_values(elements), sum, ReduceOp::kSum, 2);
    if (communicator->rank() == 2) {
      EXPECT_TRUE(bitwise_equal(sum, filled(elements, sum_of_ranks())));
    }
  }
  EXPECT_EQ(communicator->last_choice(), "file");
  EXPECT_THAT(communicator->tuning(),
              Contains(AllOf(Field(&TuningFigure::name, "lanes"), Field(&TuningFigure::value, wanted_lanes()),
                             Field(&TuningFigure::source, TuningSource::kFile))));
}

}  // namespace
}  // namespace cohort
