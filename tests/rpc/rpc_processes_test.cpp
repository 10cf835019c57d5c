// A server in a process of its own, which ends in the middle. This program is the tests, and each task.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/config.h>
#include <cohort/resolvers/task_cluster_resolver.h>
#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

#include "remote/task_processes.h"

namespace cohort::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const ClusterTask kServing{"worker", 0};

int run_task() {
  const TaskClusterResolver cluster;
  Server server(cluster.place());
  server.register_method("pid", [] { return std::int64_t{::getpid()}; });
  server.register_method("size",
                         [](const Tensor& tensor) { return static_cast<std::int64_t>(tensor.elements()); });
  server.register_method("exit", [] { ::_exit(3); });
  server.register_method("hang", [] {
    while (true) ::pause();
  });
  server.register_method("stop", [&] { server.stop(); });
  server.start();
  server.join();
  return 0;
}

template <class Result>
std::string unavailable(const Reply<Result>& reply) {
  try {
    reply.get();
  } catch (const Unavailable& error) {
    return error.what();
  }
  return "no such error";
}

TEST(RpcProcesses, CallsAcrossProcesses) {
  remote::TaskProcesses tasks(1, 1);
  const Client client(tasks.chief(), kServing);
  EXPECT_NE(client.call<std::int64_t()>("pid").get(), ::getpid());
  const Tensor large = Tensor::uninitialized({std::int64_t{8} << 20}, DType::kFloat32);
  EXPECT_EQ(client.call<std::int64_t(const Tensor&)>("size", large).get(), std::int64_t{8} << 20);
  client.call<void()>("stop").get();
  EXPECT_EQ(tasks.wait(kServing), 0);
}

TEST(RpcProcesses, AServerThatDiesWithinACallIsNamed) {
  remote::TaskProcesses tasks(1, 1);
  const Client client(tasks.chief(), kServing);
  const auto pid = client.call<std::int64_t()>("pid").get();
  EXPECT_THAT(unavailable(client.call<void()>("exit")),
              AllOf(HasSubstr("exit() of worker 0 (host "), HasSubstr(fmt::format("pid {})", pid)),
                    HasSubstr("it is unknown whether the method has run")));
  EXPECT_THAT(unavailable(client.call<std::int64_t()>("pid")), HasSubstr("make another rpc::Client"));
  tasks.wait(kServing);
  tasks.start(kServing);
  EXPECT_NE(Client(tasks.chief(), kServing).call<std::int64_t()>("pid").get(), pid);
}

TEST(RpcProcesses, AServerThatIsKilledWithinACallIsNamed) {
  remote::TaskProcesses tasks(1, 1);
  const Client client(tasks.chief(), kServing);
  const Reply<void> hanging = client.call<void()>("hang");
  const Reply<std::int64_t> behind = client.call<std::int64_t()>("pid");
  EXPECT_FALSE(hanging.wait(Deadline::after(std::chrono::milliseconds(20))));
  tasks.signal(kServing, SIGKILL);
  EXPECT_THAT(unavailable(hanging), HasSubstr("hang() of worker 0 (host "));
  EXPECT_THAT(unavailable(behind), HasSubstr("pid() of worker 0 (host "));
  tasks.wait(kServing);
}

}  // namespace
}  // namespace cohort::rpc

int main(int argc, char** argv) {
  if (cohort::config().task_descriptor() < 0) {
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
  }
  try {
    return cohort::rpc::run_task();
  } catch (const std::exception& error) {
    fmt::print(stderr, "the server: {}\n", error.what());
    return 1;
  }
}
