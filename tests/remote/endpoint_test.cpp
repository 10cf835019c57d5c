// Two endpoints of one process, each the other's peer.
#include <cohort/remote/endpoint.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::remote {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSecret = "a secret of sixteen bytes or more";

EndpointOptions options_of(const ClusterTask& task) {
  EndpointOptions options;
  options.task = task;
  options.secret = kSecret;
  return options;
}

struct Recorder : Handler {
  void on_connected(Peer& peer) override { connected.push_back(&peer); }
  void on_message(Peer& /*peer*/, const Message& message) override {
    numbers.push_back(message.number);
    bodies.emplace_back(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  }
  void on_lost(Peer& peer, const Error& error) override {
    lost.push_back(&peer);
    errors.emplace_back(error.what());
  }
  std::vector<Peer*> connected;
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> bodies;
  std::vector<Peer*> lost;
  std::vector<std::string> errors;
};

TEST(Endpoint, CarriesMessagesBothWays) {
  Recorder a_record;
  Recorder b_record;
  Endpoint a(options_of({"worker", 0}), a_record);
  Endpoint b(options_of({"ps", 1}), b_record);
  Peer* peer = nullptr;
  std::thread connecting([&] { peer = &a.connect(b.address(), Deadline::after(10s)); });
  ASSERT_TRUE(b.wait_until([&] { return !b_record.connected.empty(); }, Deadline::after(10s)));
  connecting.join();
  EXPECT_EQ(peer->task(), (ClusterTask{"ps", 1}));
  EXPECT_TRUE(peer->on_this_node());
  const std::string text = "hello";
  peer->send(7, 42, std::as_bytes(std::span(text)));
  ASSERT_TRUE(b.wait_until([&] { return !b_record.numbers.empty(); }, Deadline::after(10s)));
  EXPECT_EQ(b_record.bodies.front(), "hello");
  b_record.connected.front()->send(8, 43);
  ASSERT_TRUE(a.wait_until([&] { return !a_record.numbers.empty(); }, Deadline::after(10s)));
  EXPECT_EQ(a_record.numbers.front(), 43U);
}

}  // namespace
}  // namespace cohort::remote
