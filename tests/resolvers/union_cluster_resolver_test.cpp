// Several clusters as one.
#include <cohort/resolvers/union_cluster_resolver.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::shared_ptr<const ClusterResolver> simple(ClusterSpec spec, const char* master = "") {
  return std::make_shared<SimpleClusterResolver>(std::move(spec), "worker", 0, nullptr,
                                                 SimpleClusterOptions{.master = master, .rpc_layer = "grpc"});
}

ClusterSpec sparse(int index, const char* address) { return ClusterSpec({{"worker", {{index, address}}}}); }

TEST(UnionClusterResolver, AppendsListsAndNumbersThemAnew) {
  const UnionClusterResolver both(
      {simple({{"worker", {"h4", "h5"}}}), simple({{"worker", {"h0"}}, {"ps", {"p0"}}})});
  EXPECT_EQ(both.cluster_spec(), (ClusterSpec{{"worker", {"h4", "h5", "h0"}}, {"ps", {"p0"}}}));
}

TEST(UnionClusterResolver, KeepsIndicesWhereThereAreGaps) {
  const UnionClusterResolver both({simple({{"worker", {"h4"}}}), simple(sparse(1, "h5"))});
  EXPECT_EQ(both.cluster_spec(), (ClusterSpec{{"worker", {"h4", "h5"}}}));
  const UnionClusterResolver clash({simple(sparse(1, "h4")), simple(sparse(1, "h5"))});
  EXPECT_THAT([&] { return clash.cluster_spec(); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("task 1"), HasSubstr("h4 and h5"))));
}

TEST(UnionClusterResolver, IsOtherwiseTheFirst) {
  const UnionClusterResolver both({simple({{"worker", {"h4"}}}, "m1"), simple({{"worker", {"h5"}}}, "m2")});
  EXPECT_EQ(both.task_type(), "worker");
  EXPECT_EQ(both.task_id(), 0);
  EXPECT_EQ(both.rpc_layer(), "grpc");
  EXPECT_EQ(both.master(), "grpc://m1");
  const UnionClusterResolver other({simple({{"worker", {"h4"}}})}, {.task_type = "ps", .task_id = 3});
  EXPECT_EQ(other.task_type(), "ps");
  EXPECT_EQ(other.task_id(), 3);
}

TEST(UnionClusterResolver, NeedsAResolver) {
  EXPECT_THAT([] { return UnionClusterResolver({}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("at least one")));
}

}  // namespace
}  // namespace cohort::testing
