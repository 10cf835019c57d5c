// Roles of the ranks of a job: which of them train together.
#include <cohort/resolvers/role_cluster_resolver.h>

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

int ranks() { return session().size(); }
std::string workers(int count) { return "worker=" + std::to_string(count); }

TEST(Roles, AreTakenInTheirOrder) {
  const RoleClusterResolver all(session(), workers(ranks()));
  EXPECT_EQ(all.task_type(), "worker");
  EXPECT_EQ(all.task_id(), session().rank());
  EXPECT_EQ(all.bootstrap()->size(), ranks());
}

TEST(Roles, EvaluatorsTakeNoPartInTraining) {
  if (ranks() < 2) GTEST_SKIP() << "an evaluator needs somebody to evaluate";
  const RoleClusterResolver roles(session(), "evaluator=1," + workers(ranks() - 1));
  EXPECT_EQ(roles.task_type(), session().rank() == 0 ? "evaluator" : "worker");
  EXPECT_EQ(roles.bootstrap()->size(), session().rank() == 0 ? 1 : ranks() - 1);
  if (session().rank() == 0) return;  // while the others train
  EXPECT_EQ(roles.bootstrap()->rank(), session().rank() - 1);
  EXPECT_EQ(roles.bootstrap()->self().pid, session().self().pid);
  const MultiWorkerMirroredStrategy strategy(roles);
  EXPECT_EQ(strategy.num_replicas_in_sync(), ranks() - 1);
  const int sum = strategy.reduce(ReduceOp::kSum, strategy.run([] { return 1; }));
  EXPECT_EQ(sum, ranks() - 1);
}

TEST(Roles, AStrategyWithoutParameterServersRefusesThem) {
  if (ranks() < 2) GTEST_SKIP() << "a parameter server needs workers";
  const RoleClusterResolver roles(session(), workers(ranks() - 1) + ",ps=1");
  if (session().rank() < ranks() - 1) {
    const MultiWorkerMirroredStrategy strategy(roles);
    EXPECT_EQ(strategy.num_replicas_in_sync(), ranks() - 1);
  } else {
    EXPECT_THAT(
        [&] { const MultiWorkerMirroredStrategy strategy(roles); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("MultiWorkerMirroredStrategy"), HasSubstr("'ps'"))));
  }
}

TEST(Roles, WhatOneProcessCannotReadIsTheErrorOfAll) {
  const int odd = ranks() - 1;
  const auto make = [&]() -> std::unique_ptr<ClusterResolver> {
    const bool is_odd = session().rank() == odd;
    return std::make_unique<TfConfigClusterResolver>(
        TfConfigOptions{},
        Environment{
            {"TF_CONFIG",
             is_odd ? "{" : R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})"}});
  };
  EXPECT_THAT(
      [&] { const RoleClusterResolver roles(session(), make); },
      ThrowsMessage<InvalidArgument>(AllOf(
          HasSubstr(describe(session().workers()[static_cast<std::size_t>(odd)])), HasSubstr("TF_CONFIG"))));
}

/// TF_CONFIG of each process, the last rank being the chief.
Environment tf_config(int index_of_workers) {
  std::string addresses;
  for (int worker = 1; worker < ranks(); ++worker)
    addresses += (worker > 1 ? ", " : "") + std::string("\"w:1\"");
  const bool is_chief = session().rank() == ranks() - 1;
  return {{"TF_CONFIG", R"({"cluster": {"chief": ["c:1"], "worker": [)" + addresses +
                            R"(]}, "task": {"type": ")" + (is_chief ? "chief" : "worker") +
                            R"(", "index": )" + std::to_string(is_chief ? 0 : index_of_workers) + "}}"}};
}

TEST(Roles, OfTfConfigNumberTheWorkersWithTheChiefFirst) {
  const RoleClusterResolver roles(session(), TfConfigClusterResolver({}, tf_config(session().rank())));
  EXPECT_EQ(roles.bootstrap()->size(), ranks());
  EXPECT_EQ(roles.bootstrap()->rank(), (session().rank() + 1) % ranks());
  EXPECT_EQ(roles.bootstrap()->is_chief(), roles.task_type() == "chief");
  const std::vector<std::string> said = roles.bootstrap()->exchange(*roles.task_type());
  EXPECT_EQ(said.front(), "chief");
}

// As TensorFlow documents it: the cluster of an evaluator does not name it.
TEST(Roles, OfTfConfigHaveAnEvaluatorThatIsNotInTheCluster) {
  if (ranks() < 2) GTEST_SKIP() << "an evaluator needs somebody to evaluate";
  const bool is_evaluator = session().rank() == ranks() - 1;
  std::string addresses;
  for (int worker = 0; worker < ranks() - 1; ++worker)
    addresses += (worker > 0 ? ", " : "") + std::string("\"w:1\"");
  const Environment variables{{"TF_CONFIG", R"({"cluster": {"worker": [)" + addresses +
                                                R"(]}, "task": {"type": ")" +
                                                (is_evaluator ? "evaluator" : "worker") + R"(", "index": )" +
                                                std::to_string(is_evaluator ? 0 : session().rank()) + "}}"}};
  const RoleClusterResolver roles(session(), TfConfigClusterResolver({}, variables));
  EXPECT_EQ(roles.task_type(), is_evaluator ? "evaluator" : "worker");
  EXPECT_TRUE(roles.cluster_spec().has_job("evaluator")) << "on all";
  EXPECT_EQ(roles.cluster_spec().num_tasks("worker"), ranks() - 1);
  EXPECT_EQ(roles.bootstrap()->size(), is_evaluator ? 1 : ranks() - 1);
}

TEST(Roles, OfTfConfigAreRefusedWhereTwoHaveTheSameTask) {
  if (ranks() < 3) GTEST_SKIP() << "two workers and a chief";
  EXPECT_THAT([] { RoleClusterResolver(session(), TfConfigClusterResolver({}, tf_config(0))); },
              ThrowsMessage<InvalidArgument>(HasSubstr("have the same task, 'worker 0'")));
}

TEST(Roles, OfTfConfigNeedTheVariableAndTheTask) {
  const auto roles = [](const Environment& variables) {
    return [&variables] { RoleClusterResolver(session(), TfConfigClusterResolver({}, variables)); };
  };
  EXPECT_THAT(roles({}), ThrowsMessage<InvalidArgument>(HasSubstr("TF_CONFIG, that variable is not set")));
  EXPECT_THAT(roles({{"TF_CONFIG", R"({"cluster": {"worker": ["w:1"]}})"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr(R"("task": {"type": "worker", "index": 0})")));
}

TEST(Roles, AreTheSameForAllRanks) {
  if (ranks() < 2) GTEST_SKIP() << "two texts";
  const std::string others = workers(ranks() - 1);
  const bool is_last = session().rank() == ranks() - 1;
  EXPECT_THAT([&] { RoleClusterResolver(session(), is_last ? workers(ranks()) : "evaluator=1," + others); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has another cluster than")));
  EXPECT_THAT([&] { RoleClusterResolver(session(), is_last ? others + ",chief=1" : "chief=1," + others); },
              ThrowsMessage<InvalidArgument>(HasSubstr("have the same task, 'chief 0'")));
}

TEST(Roles, SayWhereTheyAreWrong) {
  const auto roles = [](std::string_view text) { return [text] { RoleClusterResolver(session(), text); }; };
  EXPECT_THAT(roles("worker"),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("at character 1"), HasSubstr("ps=1"))));
  EXPECT_THAT(roles("ps=1,worker=x"), ThrowsMessage<InvalidArgument>(HasSubstr("at character 13")));
  EXPECT_THAT(roles("worker=0"), ThrowsMessage<InvalidArgument>(HasSubstr("from 1")));
  EXPECT_THAT(roles("worker=1,worker=1"), ThrowsMessage<InvalidArgument>(HasSubstr("twice")));
  EXPECT_THAT(roles("worker=100"),
              ThrowsMessage<InvalidArgument>(HasSubstr("are 100 tasks, but the job has")));
  EXPECT_THAT(roles(""), ThrowsMessage<InvalidArgument>(HasSubstr("at character 1")));
}

// The others do not wait for the one that finds its text wrong.
TEST(Roles, ThatAreWrongOnOneRankAreRefusedOnAll) {
  if (ranks() < 2) GTEST_SKIP() << "one rank alone among others";
  const std::string last = describe(session().workers().back());
  const bool is_last = session().rank() == ranks() - 1;
  const auto with = [&](const std::string& wrong) {
    return [=] { RoleClusterResolver(session(), is_last ? wrong : workers(ranks())); };
  };
  EXPECT_THAT(with("worker:4"), ThrowsMessage<InvalidArgument>(HasSubstr(last + ": roles 'worker:4'")));
  EXPECT_THAT(with(workers(ranks() + 1)),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(last), HasSubstr("but the job has"))));
  EXPECT_THAT(with("w\xff=" + std::to_string(ranks())),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(last), HasSubstr("jobs are chief"))));
}

TEST(Roles, OfTfConfigAreRefusedOnAllWhereOneIsNotInTheCluster) {
  if (ranks() < 3) GTEST_SKIP() << "two workers and a chief";
  const int beyond = session().rank() == 1 ? 99 : session().rank();
  EXPECT_THAT([&] { RoleClusterResolver(session(), TfConfigClusterResolver({}, tf_config(beyond))); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr(describe(session().workers()[1])), HasSubstr("has no task 99"))));
}

}  // namespace
}  // namespace cohort::testing
