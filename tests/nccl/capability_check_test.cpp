#include "nccl/capability_check.h"

#include <gmock/gmock.h>

namespace cohort::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Capability> capabilities(int count) {
  std::vector<Capability> list(static_cast<std::size_t>(count));
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    list[rank].version = 22809;
    list[rank].gpu[0] = static_cast<unsigned char>(rank);
    list[rank].bus[0] = static_cast<char>('a' + rank);
    list[rank].process = rank;
  }
  return list;
}

std::string reason(const std::vector<Capability>& list) {
  std::vector<MemberInfo> members;
  for (std::size_t rank = 0; rank < list.size(); ++rank)
    members.push_back({static_cast<int>(rank), std::string("n").append(std::to_string(rank))});
  return why_unsupported(list, members).value_or("");
}

TEST(CapabilityCheck, TakesMembersWithAGpuEach) {
  EXPECT_EQ(reason(capabilities(1)), "");
  EXPECT_EQ(reason(capabilities(7)), "");
}

TEST(CapabilityCheck, NamesWhoHasNoNccl) {
  std::vector<Capability> list = capabilities(3);
  list[1].version = 0;
  std::ranges::copy(std::string_view("it is not installed"), list[1].why_none.begin());
  EXPECT_EQ(reason(list), "member 1 (worker 1, host n1): it is not installed");
}

TEST(CapabilityCheck, NamesWhoHasAnotherVersion) {
  std::vector<Capability> list = capabilities(3);
  list[2].version = 22703;
  EXPECT_THAT(reason(list), AllOf(HasSubstr("member 2 (worker 2, host n2) has NCCL 2.27.3"),
                                  HasSubstr("member 0 (worker 0, host n0) has 2.28.9")));
}

TEST(CapabilityCheck, NamesWhoShareAGpu) {
  std::vector<Capability> list = capabilities(3);
  list[2].gpu = list[0].gpu;
  list[2].bus = list[0].bus;
  EXPECT_THAT(reason(list), AllOf(HasSubstr("member 0 (worker 0, host n0) and member 2 (worker 2, host n2)"),
                                  HasSubstr("NCCL_HOSTID")));
}

TEST(CapabilityCheck, TakesMembersThatShareAGpuWhereTheirHostsAreToldApart) {
  std::vector<Capability> list = capabilities(3);
  list[2].gpu = list[0].gpu;
  list[2].bus = list[0].bus;
  list[2].host = 1;
  EXPECT_EQ(reason(list), "");
}

TEST(CapabilityCheck, NamesWhoHaveInstancesOfOneGpu) {
  std::vector<Capability> list = capabilities(3);
  list[2].bus = list[1].bus;
  EXPECT_THAT(reason(list), AllOf(HasSubstr("member 1 (worker 1, host n1) and member 2 (worker 2, host n2)"),
                                  HasSubstr("MIG"), HasSubstr("at b")));
}

TEST(CapabilityCheck, KnowsThePeersOfAProcess) {
  std::vector<Capability> list = capabilities(5);
  for (std::size_t rank = 0; rank < list.size(); ++rank) list[rank].device = static_cast<int>(rank) % 3;
  list[1].process = list[2].process = 7;
  EXPECT_THAT(peers_in_process(list, 0), IsEmpty());
  EXPECT_THAT(peers_in_process(list, 1), ElementsAre(Device(DeviceKind::kCuda, 2)));
  EXPECT_THAT(peers_in_process(list, 2), ElementsAre(Device(DeviceKind::kCuda, 1)));
}

}  // namespace
}  // namespace cohort::nccl
