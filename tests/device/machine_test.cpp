#include "device/machine.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <hwloc.h>

#include <cohort/base/error.h>

#include "temporary_folder.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr const char* kEpyc = "pack:2 l3:8 core:8 pu:1";

Level shared_level(const Machine& machine, std::size_t core, std::size_t other) {
  return nearest_shared_level(machine.cores()[core].group, machine.cores()[other].group);
}

TEST(Machine, HasTheLevelsOfADescription) {
  const Machine machine = Machine::read(kEpyc);
  EXPECT_THAT(machine.cores(), SizeIs(128));
  EXPECT_EQ(machine.groups(Level::kCache), 16);
  EXPECT_EQ(machine.groups(Level::kSocket), 2);
  EXPECT_EQ(machine.groups(Level::kMachine), 1);
  EXPECT_THAT(machine.levels_that_count(), ElementsAre(Level::kCache, Level::kSocket, Level::kMachine));
  EXPECT_EQ(shared_level(machine, 0, 7), Level::kCache);
  EXPECT_EQ(shared_level(machine, 7, 8), Level::kNumaNode);  // of one socket, since hwloc's node spans both
  EXPECT_EQ(shared_level(machine, 63, 64), Level::kMachine);
}

TEST(Machine, CountsCoresApartFromHardwareThreads) {
  const Machine machine = Machine::read("pack:1 l3:2 core:4 pu:2");
  EXPECT_THAT(machine.cores(), SizeIs(8));
  EXPECT_EQ(machine.threads(), 16U);
  EXPECT_THAT(machine.cores()[1].threads, ElementsAre(2, 3));
}

TEST(Machine, TellsNumaNodesOfASocketApart) {
  const Machine machine = Machine::read("pack:2 [numa] die:2 [numa] l3:1 core:6 pu:1");
  EXPECT_EQ(machine.groups(Level::kNumaNode), 4);
  const Machine four = Machine::read("pack:2 numa:4 l3:2 core:2 pu:1");
  EXPECT_EQ(four.groups(Level::kNumaNode), 8);
  EXPECT_EQ(four.groups(Level::kCache), 16);
  EXPECT_THAT(four.levels_that_count(),
              ElementsAre(Level::kCache, Level::kNumaNode, Level::kSocket, Level::kMachine));
}

TEST(Machine, DividesACacheThatSpansNumaNodes) {
  const Machine machine = Machine::read("pack:1 l3:1 numa:2 core:4 pu:1");
  EXPECT_EQ(machine.groups(Level::kNumaNode), 2);
  EXPECT_EQ(machine.groups(Level::kCache), 2);
  EXPECT_THAT(machine.levels_that_count(), ElementsAre(Level::kNumaNode, Level::kMachine));
}

TEST(Machine, GoesWithoutCaches) {
  const Machine machine = Machine::read("pack:2 core:4 pu:1");
  EXPECT_EQ(machine.cache(), "");
  EXPECT_THAT(machine.levels_that_count(), ElementsAre(Level::kSocket, Level::kMachine));
}

TEST(Machine, DoesNotCountLevelsOfSingleCores) {
  EXPECT_THAT(Machine::read("pack:2 l3:1 core:1 pu:2").levels_that_count(), ElementsAre(Level::kMachine));
  EXPECT_THAT(Machine::read("pack:1 l3:1 core:8 pu:1").levels_that_count(), ElementsAre(Level::kMachine));
}

TEST(Machine, NestsItsLevels) {
  for (const char* description :
       {kEpyc, "pack:2 numa:4 l3:2 core:2 pu:1", "pack:1 l3:1 numa:2 core:4 pu:1"}) {
    SCOPED_TRACE(description);
    const Machine machine = Machine::read(description);
    for (std::size_t level = 0; level + 1 < kLevels.size(); ++level) {
      std::set<std::pair<int, int>> pairs;
      for (const Machine::Core& core : machine.cores())
        pairs.insert({core.group[level], core.group[level + 1]});
      EXPECT_THAT(pairs, SizeIs(machine.groups(kLevels[level])));
    }
  }
}

TEST(Machine, ReadsAFileOfAnotherMachine) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("machine.xml");
  const HwlocTopology topology = new_hwloc_topology();
  ASSERT_EQ(hwloc_topology_set_synthetic(topology.get(), kEpyc), 0);
  load(topology);
  ASSERT_EQ(hwloc_topology_export_xml(topology.get(), path.c_str(), 0), 0);
  EXPECT_THAT(Machine::read(path).cores(), SizeIs(128));

  std::ofstream(path) << "<topology>";
  EXPECT_THAT([&] { static_cast<void>(Machine::read(path)); },
              ThrowsMessage<InvalidArgument>(HasSubstr(path)));
}

TEST(Machine, RefusesWhatItCannotRead) {
  EXPECT_THAT([] { static_cast<void>(Machine::read("two sockets")); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'two sockets'"), HasSubstr("pack:2 l3:8"))));
  EXPECT_THAT([] { static_cast<void>(Machine::read("/nowhere/machine.xml")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'/nowhere/machine.xml'")));
}

TEST(Machine, OfThisProcessHasItsCores) {
  const Machine machine = Machine::read("");
  std::set<int> threads;
  for (const Machine::Core& core : machine.cores()) threads.insert(core.threads.begin(), core.threads.end());
  for (const Core& core : allowed_cores()) EXPECT_TRUE(threads.contains(core.os_index)) << core.os_index;
}

}  // namespace
}  // namespace cohort
