#include <cohort/rpc/client.h>
#include <cohort/rpc/server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>

#include "rpc/protocol.h"
#include "tasks.h"

namespace cohort::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The text of the error with which `function` ends, by its class.
template <class Kind>
std::string text_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Kind& error) {
    return error.what();
  } catch (const Error& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

class RpcErrors : public testing::TestWithParam<Way> {
 protected:
  Tasks tasks{GetParam()};
  Server server{tasks.serving()};
};
INSTANTIATE_TEST_SUITE_P(Ways, RpcErrors, testing::Values(Way::kNode, Way::kNetwork), name_of_way);

TEST(RpcServer, RefusesWhatIsNoMethod) {
  const Tasks tasks;
  Server server(tasks.serving());
  server.register_method("add", [](int a, int b) { return a + b; });
  EXPECT_THAT(text_of<InvalidArgument>([&] { server.register_method("add", [] {}); }),
              AllOf(HasSubstr("'add' is registered already"), HasSubstr("(int32, int32) -> int32")));
  EXPECT_THAT(text_of<InvalidArgument>([&] { server.register_method("", [] {}); }), HasSubstr("a name"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { server.register_method("empty", std::function<void()>()); }),
              HasSubstr("'empty' is an empty function"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { Server(tasks.serving(), {.threads = 0}); }),
              HasSubstr("0 threads"));
  server.start();
  EXPECT_THAT(text_of<WrongContext>([&] { server.register_method("late", [] {}); }),
              HasSubstr("'late' is registered after the server was started"));
}

TEST(RpcServer, StartsOnce) {
  const Tasks tasks;
  Server server(tasks.serving());
  EXPECT_THAT(text_of<WrongContext>([&] { server.join(); }), HasSubstr("was not started"));
  server.stop();
  server.join();
  EXPECT_THAT(text_of<WrongContext>([&] { server.start(); }), HasSubstr("make another one"));
}

TEST(RpcServer, IsNotInAStandby) {
  const Tasks tasks;
  remote::TaskPlace place = tasks.serving();
  place.standby = true;
  EXPECT_THAT(text_of<WrongContext>([&] { const Server server(place); }), HasSubstr("--copies 1"));
}

TEST(RpcServer, HasItsAddressForItself) {
  const Tasks tasks;
  {
    Server first(tasks.serving());
    first.start();
    Server second(tasks.serving());
    EXPECT_THAT(text_of<WrongContext>([&] { second.start(); }),
                HasSubstr("worker 0 listens at its address already"));
  }
  Server third(tasks.serving());
  third.start();
  const Client client = tasks.client();
  EXPECT_TRUE(client.list_methods().empty());
}

TEST_P(RpcErrors, WrongCallsAreRefusedInWords) {
  std::atomic<int> calls{0};
  server.register_method("add", [&](int a, int b) {
    ++calls;
    return a + b;
  });
  server.start();
  const Client client = tasks.client();
  EXPECT_THAT(text_of<InvalidArgument>([&] { client.call<int(int, int)>("sub", 1, 2).get(); }),
              AllOf(HasSubstr("sub() of worker 0 (host "), HasSubstr("no such method; it has: add")));
  const auto mismatch = [](const char* called) {
    return AllOf(HasSubstr("add() of worker 0 (host "), HasSubstr(std::string("called as ") + called),
                 HasSubstr("registered as (int32, int32) -> int32"));
  };
  EXPECT_THAT(text_of<InvalidArgument>([&] { client.call<int(int)>("add", 1).get(); }),
              mismatch("(int32) -> int32"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { client.call<int(float, int)>("add", 1, 2).get(); }),
              mismatch("(float32, int32) -> int32"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { client.call<void(int, int)>("add", 1, 2).get(); }),
              mismatch("(int32, int32) -> nothing"));
  EXPECT_EQ(calls.load(), 0);
  EXPECT_EQ(client.call<int(int, int)>("add", 1, 2).get(), 3);
}

TEST_P(RpcErrors, WhatAMethodThrowsIsThrownByTheReply) {
  server.register_method("range", [] { throw OutOfRange("there are {} rows", 7); });
  server.register_method("runtime", [] { throw std::runtime_error("of std"); });
  server.register_method("number", [] { throw 5; });
  server.register_method("fine", [] { return 1; });
  server.start();
  const Client client = tasks.client();
  const Reply<void> failed = client.call<void()>("range");
  EXPECT_FALSE(failed.is_ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(text_of<OutOfRange>([&] { failed.get(); }),
                AllOf(HasSubstr("range() of worker 0 (host "), HasSubstr("there are 7 rows")));
  }
  const std::optional<Error> error = failed.error();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(error->origin().call, "range");
  EXPECT_EQ(error->origin().member, 0);
  EXPECT_EQ(error->origin().host, address_of(tasks.calling(), kServing).host);
  EXPECT_THAT(text_of<Aborted>([&] { client.call<void()>("runtime").get(); }),
              HasSubstr("the method threw: of std"));
  EXPECT_THAT(text_of<Aborted>([&] { client.call<void()>("number").get(); }), HasSubstr("no exception of"));
  EXPECT_EQ(client.call<int()>("fine").get(), 1);
}

TEST_P(RpcErrors, AnAbsentServerIsNamed) {
  EXPECT_THAT(
      text_of<Unavailable>([&] { static_cast<void>(tasks.client({.connect_timeout_seconds = 0.2})); }),
      AllOf(HasSubstr("worker 0 on "), HasSubstr("cannot be reached")));
  EXPECT_THAT(text_of<InvalidArgument>([&] {
                Client(tasks.calling(), {"worker", 7});
              }),
              HasSubstr("no task worker 7"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { static_cast<void>(tasks.client({.timeout_seconds = -1})); }),
              HasSubstr("a timeout of -1 s"));
}

TEST_P(RpcErrors, AStrangerIsNotLetIn) {
  server.register_method("fine", [] { return 1; });
  server.start();
  remote::TaskPlace stranger = tasks.calling();
  stranger.secret = "another secret of sixteen bytes";
  EXPECT_ANY_THROW(Client(stranger, kServing, {.connect_timeout_seconds = 0.5}));
  EXPECT_EQ(tasks.client().call<int()>("fine").get(), 1);
}

TEST_P(RpcErrors, DeadlinesEndCallsAndKeepLateOnesFromRunning) {
  std::promise<void> held;
  std::promise<void> released;
  std::shared_future<void> hold = held.get_future().share();
  std::shared_future<void> release = released.get_future().share();
  std::atomic<int> runs{0};
  server.register_method("hold", [=] { hold.wait(); });
  server.register_method("wait", [=] { release.wait(); });
  server.register_method("count", [&] { return ++runs; });
  server.start();
  const Client client = tasks.client({.timeout_seconds = 60});
  const Reply<void> holding = client.call<void()>("hold");  // so that the server reads the next two together
  const Reply<void> waiting = client.call<void()>("wait");
  const Reply<int> late = client.call<int()>({"count", 0.05});
  held.set_value();
  holding.get();
  EXPECT_THAT(text_of<DeadlineExceeded>([&] { late.get(); }),
              AllOf(HasSubstr("count() of worker 0 (host "), HasSubstr("before the deadline")));
  EXPECT_TRUE(late.is_ready());
  released.set_value();
  waiting.get();
  EXPECT_EQ(client.call<int()>("count").get(), 1);
  EXPECT_THROW(static_cast<void>(client.call<int()>({"count", -1.0})), InvalidArgument);
}

// A thread that waits while another one polls is woken up for its own deadline.
TEST_P(RpcErrors, DeadlinesOfSeveralThreadsAreTheirOwn) {
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  server.register_method("wait", [=] { release.wait(); });
  server.start();
  const Client client = tasks.client();
  std::future<void> polling = std::async(std::launch::async, [&] { client.call<void()>("wait").get(); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(client.call<void()>({"wait", 0.05}).get(), DeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(client.call<void()>({"wait", 0.05}).error().has_value());
  released.set_value();
  polling.get();
}

TEST_P(RpcErrors, AStoppedServerAnswersWhatWaits) {
  std::promise<void> entered;
  std::promise<void> released;
  server.register_method("wait", [&] {
    entered.set_value();
    released.get_future().wait();
  });
  server.register_method("fine", [] { return 1; });
  server.start();
  const Client client = tasks.client();
  const Reply<void> running = client.call<void()>("wait");
  entered.get_future().wait();
  const Reply<int> waiting = client.call<int()>("fine");
  server.stop();
  released.set_value();
  server.join();
  running.get();
  EXPECT_THAT(text_of<Unavailable>([&] { waiting.get(); }),
              AllOf(HasSubstr("fine() of worker 0 (host "), HasSubstr("has ended")));
  EXPECT_THAT(text_of<Unavailable>([&] { client.call<int()>("fine").get(); }),
              AllOf(HasSubstr("fine() of worker 0 (host "), HasSubstr("has ended")));
  EXPECT_THAT(text_of<Unavailable>([&] { client.call<int()>("fine").get(); }),
              HasSubstr("make another rpc::Client"));
}

TEST_P(RpcErrors, AMethodDoesNotWaitForItsOwnServer) {
  std::optional<Client> inner;
  server.register_method("fine", [] { return 1; });
  server.register_method("nested", [&] { return inner->call<int()>("fine").get(); });
  server.register_method("join", [&] { server.join(); });
  server.start();
  inner = tasks.client();
  const Client client = tasks.client();
  EXPECT_THAT(text_of<WrongContext>([&] { client.call<int()>("nested").get(); }),
              HasSubstr("would wait for itself"));
  EXPECT_THAT(text_of<WrongContext>([&] { client.call<void()>("join").get(); }),
              HasSubstr("may call stop()"));
  EXPECT_EQ(inner->call<int()>("fine").get(), 1);
  end(server);
}

TEST(Failures, OfUnknownKindsAreDataLoss) {
  const Error error = parse_failure(to_bytes(OutOfRange("the end")));
  EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
  EXPECT_STREQ(error.what(), "the end");
  for (const int code : {-1, static_cast<int>(ErrorCode::kInternal) + 1}) {
    Encoder encoder;
    encoder.number(code);
    encoder.text("unknown");
    EXPECT_EQ(parse_failure(encoder.bytes()).code(), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(parse_failure({}).code(), ErrorCode::kDataLoss);
}

TEST(TensorAtTheEnd, HasNoBoolThatIsNeitherTrueNorFalse) {
  for (const int last : {0, 1, 2, 255}) {
    const Tensor wanted = Tensor::zeros({3}, DType::kBool);
    Encoder encoder;
    encoder.tensor_at_end(wanted);
    encoder.align_end();
    for (const int element : {1, 0, last}) encoder.number(static_cast<std::uint8_t>(element));
    const auto read = [&] { return Decoder(encoder.bytes()).tensor_at_end().span<bool>()[2]; };
    if (last > 1)
      EXPECT_THAT(text_of<DataLoss>([&] { static_cast<void>(read()); }), HasSubstr("impossible bool"));
    else
      EXPECT_EQ(read(), last == 1);
  }
}

}  // namespace
}  // namespace cohort::rpc
