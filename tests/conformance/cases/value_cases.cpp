// Distributed values: as operands, and in structures that are taken apart and put together.
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cohort/value/mirrored.h>
#include <cohort/value/regroup.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class ValueCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ValueCase);

TEST_P(ValueCase, Case058_IsNoOperandOutsideReplicas) {
  const PerReplica<int> value = each([](int r) { return 10 * (r + 1); });
  const auto used = [&] { return value + 1; };
  const auto refused = ThrowsMessage<WrongContext>(HasSubstr("not inside a replica context"));
  const auto results = strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy&) { EXPECT_THAT(used, refused); });
    return used();
  });
  for_each_local(results, [](int r, int result) { EXPECT_EQ(result, 10 * (r + 1) + 1); });
  strategy_.extended().update(made({}), [&](const Variable&) { EXPECT_THAT(used, refused); });
  if (replicas() > 1) {
    EXPECT_THAT(used, refused) << "outside any scope; there, the caller is replica 0 of 1";
  }
  const auto scope = strategy_.scope();
  EXPECT_THAT(used, refused);
}

class RegroupCase : public Replicas {
 protected:
  using Nested = std::tuple<int, std::vector<std::string>, std::map<std::string, std::pair<double, bool>>,
                            std::array<int, 2>>;
  static Nested nested(int r) {
    return {r, {std::string(1, static_cast<char>('a' + r)), "b"}, {{"k", {0.5 * r, r == 0}}}, {r, 10 * r}};
  }
};
COHORT_INSTANTIATE_CASES(RegroupCase);

TEST_P(RegroupCase, Case059_IsTheInverseOfSelection) {
  const auto grouped = regroup(each(nested));
  using Flag = std::remove_cvref_t<decltype(std::get<2>(grouped).at("k").second)>;
  static_assert(std::is_same_v<Flag, PerReplica<bool>>);
  static_assert(!std::is_convertible_v<Flag, Mirrored<bool>>, "a PerReplica does not pass for a Mirrored");
  for_each_local(std::get<0>(grouped), [](int r, int number) { EXPECT_EQ(number, r); });
  for_each_local(std::get<1>(grouped)[0],
                 [](int r, const std::string& text) { EXPECT_EQ(text, std::get<1>(nested(r))[0]); });
  for_each_local(std::get<2>(grouped).at("k").second, [](int r, bool flag) { EXPECT_EQ(flag, r == 0); });
  for_each_local(std::get<3>(grouped)[1], [](int r, int number) { EXPECT_EQ(number, 10 * r); });
  for (int local = 0; local < local_replicas(); ++local)
    EXPECT_EQ(select_replica(static_cast<std::size_t>(local), grouped), nested(first_local() + local));
}

TEST_P(RegroupCase, Case061_OfOneReplicaKeepsTheStructure) {
  if (local_replicas() > 1) GTEST_SKIP() << "for one replica of a process";
  const auto grouped = regroup(each([](int r) { return std::pair{r, std::vector{r + 1, r + 2}}; }));
  const int r = first_local();
  EXPECT_EQ(grouped.first[0], r);
  ASSERT_THAT(grouped.second, SizeIs(2));
  EXPECT_EQ(grouped.second[0][0], r + 1);
  EXPECT_EQ(grouped.second[1][0], r + 2);
}

TEST_P(RegroupCase, Case062_OfOneVariableIsThatVariable) {
  const Variable variable = made({.name = "v"});
  const Variable other = made({.name = "w"});
  EXPECT_EQ(regroup(each([&](int) { return Variable(variable); })), variable);
  for (const Tensor& component : variable.components())
    EXPECT_EQ(strategy_.extended().value_container(component), variable);
  const auto both = each([&](int r) { return r == first_local() ? variable : other; });
  if (local_replicas() == 1) {
    EXPECT_EQ(regroup(both), variable);
  } else {
    EXPECT_THAT([&] { return regroup(both); },
                ThrowsMessage<InvalidArgument>(HasSubstr("different variables, 'v' and 'w'")));
  }
}

}  // namespace
}  // namespace cohort::testing
