// Workers on several hosts that share a folder, which is their store. The launcher only starts them and says
// their ranks. They look at what only hosts can show: their nodes, and what goes over a real network.
//
//     rendezvous_over_hosts FOLDER HOSTS
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cohort/collective/communicator.h>
#include <cohort/rendezvous/session.h>

#include "communicator_contracts.h"

namespace cohort::rendezvous {
namespace {

namespace fs = std::filesystem;

class FolderStore final : public Store {
 public:
  explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {}

  void set(const std::string& key, std::string_view value) override {
    const fs::path part = folder_ / (key + ".part");
    std::ofstream(part, std::ios::binary) << value;
    fs::rename(part, folder_ / key);
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override {
    std::ifstream file(folder_ / key, std::ios::binary);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  [[nodiscard]] bool wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override {
    const auto end = std::chrono::steady_clock::now() + timeout;
    const auto is_there = [this](const std::string& key) { return fs::exists(folder_ / key); };
    while (!std::ranges::all_of(keys, is_there)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void erase(const std::string& key) override { fs::remove(folder_ / key); }

 private:
  fs::path folder_;
};

struct Arguments {
  std::string folder;
  int hosts = 0;
  int rank = 0;
  int size = 0;
};

int number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) throw std::runtime_error(fmt::format("{} is not set", variable));
  return std::stoi(text);
}

const Arguments* arguments = nullptr;

TEST(SessionOverHosts, KeepsTheContractsOfCommunicators) {
  Session session({.store = std::make_shared<FolderStore>(arguments->folder),
                   .prefix = "over_hosts.",
                   .rank = arguments->rank,
                   .size = arguments->size,
                   .timeout = std::chrono::seconds(60)});
  ASSERT_EQ(session.size(), arguments->size);
  EXPECT_EQ(session.workers().back().node, arguments->hosts - 1);
  EXPECT_EQ(session.self().node, arguments->rank * arguments->hosts / arguments->size);
  const auto communicator = session.make_communicator({.timeout_seconds = 60});
  EXPECT_EQ(communicator->name(), "network");
  testing::check_data_movement(*communicator);
  testing::check_sizes_and_memory(*communicator);
  testing::check_messages(*communicator);
  testing::check_async(*communicator);
  testing::check_split(*communicator);
  // The first workers of the hosts, and those of one host.
  const auto lane = session.split(session.self().local_rank, 0);
  testing::check_sizes_and_memory(*lane->make_communicator({.timeout_seconds = 60}));
  const auto host = session.split(session.self().node, 0);
  EXPECT_EQ(host->make_communicator({})->name(), "node");
  EXPECT_EQ(session.exchange("").size(), static_cast<std::size_t>(session.size()));
}

}  // namespace
}  // namespace cohort::rendezvous

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    fmt::print(stderr, "usage: rendezvous_over_hosts FOLDER HOSTS\n");
    return 2;
  }
  using namespace cohort::rendezvous;
  const Arguments given{argv[1], std::stoi(argv[2]), number("OMPI_COMM_WORLD_RANK"),
                        number("OMPI_COMM_WORLD_SIZE")};
  arguments = &given;
  return RUN_ALL_TESTS();
}
