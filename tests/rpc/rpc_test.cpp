#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <cohort/value/structure.h>

#include "tasks.h"

namespace cohort::rpc {

enum class Mood : std::int8_t { kGood, kBad };

struct Batch {
  Tensor images;
  std::vector<std::string> labels;
};
COHORT_FIELDS(Batch, images, labels)

namespace {

class Rpc : public testing::TestWithParam<Way> {
 protected:
  Tasks tasks{GetParam()};
  Server server{tasks.serving()};
};
INSTANTIATE_TEST_SUITE_P(Ways, Rpc, testing::Values(Way::kNode, Way::kNetwork), name_of_way);

double add(double a, double b) { return a + b; }

Tensor count_to(std::int64_t elements) {
  Tensor tensor = Tensor::uninitialized({elements}, DType::kInt32);
  const auto numbers = tensor.span<std::int32_t>();
  std::iota(numbers.begin(), numbers.end(), 0);
  return tensor;
}

TEST_P(Rpc, CallsMethodsOfAllKindsOfTypes) {
  server.register_method("add", add);
  server.register_method("join", [](const std::string& a, std::string b) { return a + b; });
  server.register_method("reverse", [](std::vector<std::int64_t> list) {
    return std::vector<std::int64_t>(list.rbegin(), list.rend());
  });
  server.register_method("invert", [](const std::map<std::string, int>& map) {
    std::map<int, std::string> inverted;
    for (const auto& [key, value] : map) inverted.emplace(value, key);
    return inverted;
  });
  server.register_method("other", [](Mood mood) { return mood == Mood::kGood ? Mood::kBad : Mood::kGood; });
  server.register_method("half", [](int n) { return n % 2 == 0 ? std::optional(n / 2) : std::nullopt; });
  server.register_method("relabel", [](Batch batch, const std::string& label) {
    batch.labels.push_back(label);
    return batch;
  });
  server.start();
  const Client client = tasks.client();
  EXPECT_EQ(client.call<double(double, double)>("add", 2, 3.5F).get(), 5.5);
  EXPECT_EQ(client.call<std::string(std::string, std::string)>("join", "ab", std::string("c")).get(), "abc");
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(client.call<List(const List&)>("reverse", List{1, 2, 3}).get(), (List{3, 2, 1}));
  using Inverted = std::map<int, std::string>;
  using Invert = Inverted(const std::map<std::string, int>&);
  EXPECT_EQ(client.call<Invert>("invert", std::map<std::string, int>{{"a", 1}, {"b", 2}}).get(),
            (Inverted{{1, "a"}, {2, "b"}}));
  EXPECT_EQ(client.call<Mood(Mood)>("other", Mood::kGood).get(), Mood::kBad);
  EXPECT_EQ(client.call<std::optional<int>(int)>("half", 4).get(), 2);
  EXPECT_EQ(client.call<std::optional<int>(int)>("half", 3).get(), std::nullopt);
  using Relabel = Batch(const Batch&, const std::string&);
  const Batch batch = client.call<Relabel>("relabel", Batch{count_to(6), {"a"}}, "b").get();
  EXPECT_EQ(batch.labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(batch.images.span<std::int32_t>()[5], 5);
}

TEST_P(Rpc, KeepsStateBetweenCallsAndTheirOrder) {
  std::vector<int> seen;
  server.register_method("note", [&](int n) { seen.push_back(n); });
  server.register_method("seen", [&] { return seen; });
  server.start();
  const Client client = tasks.client();
  std::vector<int> sent(1000);
  std::iota(sent.begin(), sent.end(), 0);
  std::vector<Reply<void>> replies;
  for (const int n : sent) replies.push_back(client.call<void(int)>("note", n));
  EXPECT_EQ(client.call<std::vector<int>()>("seen").get(), sent);
  for (const Reply<void>& reply : replies) {
    EXPECT_TRUE(reply.is_ready());
    EXPECT_TRUE(reply.is_ok());
    reply.get();
  }
  end(server);
}

TEST_P(Rpc, ListsMethodsByNameWithTheirSignatures) {
  server.register_method("scale", [](const Tensor& tensor, double /*factor*/) { return tensor; });
  server.register_method("note", [](const Batch& /*batch*/, const std::map<int, Mood>& /*moods*/) {});
  const std::vector<Method> expected{
      {"note", "((tensor, list of text), map of int32 to enumerator of int8) -> nothing"},
      {"scale", "(tensor, float64) -> tensor"}};
  EXPECT_EQ(server.methods(), expected);
  server.start();
  EXPECT_EQ(tasks.client().list_methods(), expected);
}

TEST_P(Rpc, MovesLargeTensors) {
  server.register_method("same", [](Tensor tensor) { return tensor; });
  server.start();
  const Client client = tasks.client();
  const Tensor large = count_to(std::int64_t{6} << 20);  // 24 MiB
  // Together more than a client keeps unanswered.
  std::vector<Reply<Tensor>> replies;
  for (int i = 0; i < 6; ++i) replies.push_back(client.call<Tensor(const Tensor&)>("same", large));
  for (const Reply<Tensor>& reply : replies) EXPECT_TRUE(std::ranges::equal(reply.get().raw(), large.raw()));
}

TEST_P(Rpc, ACallWhoseReplyIsDroppedArrivesAsAWhole) {
  std::promise<std::size_t> arrived;
  server.register_method("take", [&](const Tensor& tensor) { arrived.set_value(tensor.raw().size()); });
  server.start();
  const Client client = tasks.client();
  // Larger than what is on the way at once: somebody must send the rest.
  static_cast<void>(client.call<void(const Tensor&)>("take", count_to(std::int64_t{4} << 20)));
  std::future<std::size_t> size = arrived.get_future();
  ASSERT_EQ(size.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(size.get(), std::size_t{16} << 20);
  end(server);
}

TEST_P(Rpc, ManyThreadsShareAClientAndAServer) {
  std::atomic<int> calls{0};
  Server parallel(tasks.serving(), {.threads = 3});
  parallel.register_method("add", [&](std::int64_t a, std::int64_t b) {
    ++calls;
    return a + b;
  });
  parallel.start();
  const Client client = tasks.client();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 200; ++j) {
        const auto sum = client.call<std::int64_t(std::int64_t, std::int64_t)>("add", i, j).get();
        ASSERT_EQ(sum, i + j);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls.load(), 800);
}

TEST_P(Rpc, ThreadsOfAServerRunMethodsAtTheSameTime) {
  std::promise<void> released;
  Server parallel(tasks.serving(), {.threads = 2});
  parallel.register_method("wait", [&] { released.get_future().wait(); });
  parallel.register_method("release", [&] { released.set_value(); });
  parallel.start();
  const Client client = tasks.client();
  const Reply<void> waiting = client.call<void()>("wait");
  client.call<void()>("release").get();
  waiting.get();
}

TEST_P(Rpc, AServerHasManyClients) {
  server.register_method("add", add);
  server.start();
  const Client one = tasks.client();
  const Client other = tasks.client();
  const Reply<double> first = one.call<double(double, double)>("add", 1, 2);
  const Reply<double> second = other.call<double(double, double)>("add", 3, 4);
  EXPECT_EQ(first.get() + second.get(), 10);
}

TEST_P(Rpc, AMethodStopsTheServer) {
  server.register_method("stop", [&] { server.stop(); });
  server.start();
  server.start();  // once is enough
  const Reply<void> stopped = tasks.client().call<void()>("stop");
  server.join();
  server.join();
  stopped.get();
}

TEST_P(Rpc, AReplyOutlivesItsClient) {
  server.register_method("add", add);
  server.start();
  std::optional<Client> client = tasks.client();
  const Reply<double> sum = client->call<double(double, double)>("add", 1, 2);
  client.reset();
  EXPECT_EQ(sum.get(), 3);
  EXPECT_EQ(sum.get(), 3);
}

}  // namespace
}  // namespace cohort::rpc
