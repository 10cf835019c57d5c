// What other users of the machine can do to a job whose local sockets they see: nothing is sent to them, and
// they keep nobody from their peers. Also how descriptors are exchanged, which these sockets are for.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blob_meeting.h"
#include "cluster/descriptor_exchange.h"
#include "cluster/peer_watch.h"
#include "cluster/sockets.h"
#include "cluster/watch_link.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using watch::Fd;

constexpr uid_t kOther = 65534;
constexpr int kLongMs = 20'000;  // only a bound

void run_members(int members, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(members));
  for (int rank = 0; rank < members; ++rank) threads.emplace_back(body, rank);
}

Fd listen_at(const std::string& name, int type) {
  Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const watch::SocketAddress local = *watch::local_address(name);
  if (::bind(socket.get(), local.get(), local.bytes) != 0 || ::listen(socket.get(), 8) != 0) return {};
  return socket;
}

bool readable(int fd, int ms) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, ms) == 1;
}

/// What comes over one connection.
struct Spoils {
  std::string bytes;
  bool descriptors = false;
};

/// Takes one connection, says `answer` to it, and returns what comes until its end.
Spoils spoils_of(const Fd& listener, const std::string& answer) {
  Spoils spoils;
  if (!readable(listener.get(), kLongMs)) return spoils;
  const Fd connection(::accept(listener.get(), nullptr, nullptr));
  static_cast<void>(::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
  while (readable(connection.get(), kLongMs)) {
    char bytes[512];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec part{bytes, sizeof bytes};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(connection.get(), &header, 0);
    if (got <= 0) break;
    spoils.bytes.append(bytes, static_cast<std::size_t>(got));
    spoils.descriptors |= header.msg_controllen > 0;
  }
  return spoils;
}

/// One end of a talk between two processes, in numbers and names.
class Talk {
 public:
  Talk(int in, int out) : in_(in), out_(out) {}

  void say(const std::string& line) const {
    const std::string text = line + '\n';
    if (::write(out_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }
  /// Empty at the end.
  [[nodiscard]] std::string hear() const {
    std::string line;
    for (char c = 0; ::read(in_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  Fd in_;
  Fd out_;
};

/// A process of another user. Made before any thread; ended when the test is over.
class OtherUser {
 public:
  using Body = std::function<void(const Talk& with_test)>;

  explicit OtherUser(const Body& body) {
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(in[1]);
      ::close(out[0]);
      if (::setgid(kOther) == 0 && ::setuid(kOther) == 0) body(Talk(in[0], out[1]));
      ::_exit(0);
    }
    ::close(in[0]);
    ::close(out[1]);
    talk_.emplace(out[0], in[1]);
  }
  ~OtherUser() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

  const Talk* operator->() const { return &*talk_; }

 private:
  std::optional<Talk> talk_;
  pid_t pid_ = -1;
};

bool may_become_another_user() { return ::geteuid() == 0; }
constexpr const char* kWhySkipped = "only root can start a process of another user";

Fd memory_of(int rank) {
  Fd memory(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::write(memory.get(), &rank, sizeof rank), static_cast<ssize_t>(sizeof rank));
  return memory;
}

std::vector<int> peers_of(int rank, int members) {
  std::vector<int> peers(static_cast<std::size_t>(members));
  std::iota(peers.begin(), peers.end(), 0);
  std::erase(peers, rank);
  return peers;
}

class DescriptorExchange : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, DescriptorExchange, testing::Values(1, 2, 3, 4, 7));

TEST_P(DescriptorExchange, GivesEachMembersDescriptorToAllOthers) {
  const int members = GetParam();
  BlobMeeting exchange(static_cast<std::size_t>(members));
  run_members(members, [&](int rank) {
    std::vector<int> seen;
    const std::vector<int> silent = exchange_descriptors(
        {.rank = rank,
         .peers = peers_of(rank, members),
         .exchange = [&](std::string_view blob) { return exchange(rank, blob); },
         .limit = 60s},
        memory_of(rank).get(), [&](int peer, int descriptor) {
          int content = -1;
          EXPECT_EQ(::pread(descriptor, &content, sizeof content, 0), static_cast<ssize_t>(sizeof content));
          EXPECT_EQ(content, peer);
          seen.push_back(peer);
        });
    EXPECT_THAT(silent, IsEmpty());
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(peers_of(rank, members)));
  });
}

TEST_P(DescriptorExchange, WaitsForNobodyWhereAMemberHasNone) {
  const int members = GetParam();
  BlobMeeting exchange(static_cast<std::size_t>(members));
  run_members(members, [&](int rank) {
    const bool has_one = rank != members - 1;
    std::vector<int> seen;
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<int> silent = exchange_descriptors(
        {.rank = rank,
         .peers = peers_of(rank, members),
         .exchange = [&](std::string_view blob) { return exchange(rank, blob); },
         .limit = 600s},
        has_one ? memory_of(rank).get() : -1, [&](int peer, int /*descriptor*/) { seen.push_back(peer); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
    std::vector<int> expected = peers_of(rank, members);
    if (has_one) {
      EXPECT_EQ(silent, std::vector{members - 1});
      std::erase(expected, members - 1);
    } else {
      EXPECT_EQ(silent, expected);
      expected.clear();
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(expected));
  });
}

/// What member 0 of two does when the name of member 1 belongs to somebody else.
void exchange_with(const std::string& blob) {
  const Fd memory = memory_of(0);
  const std::vector<int> silent =
      exchange_descriptors({.rank = 0,
                            .peers = {1},
                            .exchange =
                                [&](std::string_view own) {
                                  return std::vector<std::string>{std::string(own), blob};
                                },
                            .limit = 300ms},
                           memory.get(), [](int, int) { ADD_FAILURE() << "nobody has sent anything"; });
  EXPECT_EQ(silent, std::vector{1});
}

TEST(DescriptorExchange, GivesNothingToWhoeverCannotProveThatHeBelongsToTheJob) {
  const std::string secret = watch::random_token();
  for (const std::string& answer : {std::string(), std::string(64, 'x'), std::string(65, 'x')}) {
    const std::string name = watch::random_token();
    const Fd listener = listen_at(name, SOCK_SEQPACKET);
    ASSERT_TRUE(listener);
    Spoils spoils;
    std::jthread thief([&] { spoils = spoils_of(listener, answer); });
    exchange_with(name + secret);
    thief.join();
    EXPECT_EQ(spoils.bytes.size(), sizeof(watch::Nonce)) << "answer '" << answer << "'";
    EXPECT_FALSE(spoils.descriptors) << "answer '" << answer << "'";
  }
}

TEST(DescriptorExchange, GivesNothingToAnotherUser) {
  if (!may_become_another_user()) GTEST_SKIP() << kWhySkipped;
  const std::string name = watch::random_token();
  const OtherUser thief([&](const Talk& test) {
    const Fd listener = listen_at(name, SOCK_SEQPACKET);
    test.say(listener ? "listening" : "cannot listen");
    test.say(fmt::format("{}", spoils_of(listener, "").bytes.size()));
  });
  ASSERT_EQ(thief->hear(), "listening");
  exchange_with(name + watch::random_token());
  EXPECT_EQ(thief->hear(), "0");
}

/// Connects to a socket as often as it can, and says when it has. Keeps the connections.
void flood(const Talk& test) {
  constexpr int kConnections = 600;
  std::vector<Fd> kept;
  for (std::string target = test.hear(); !target.empty(); target = test.hear()) {
    for (int i = 0; i < kConnections; ++i) {
      const watch::SocketAddress address =
          target.starts_with("cohort-") ? *watch::local_address(target) : *watch::network_address(target);
      Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
      static_cast<void>(::connect(socket.get(), address.get(), address.bytes));
      kept.push_back(std::move(socket));
    }
    test.say("done");
  }
}

/// Leaves this process few descriptors, as `ulimit -n` does, until the end of a test.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(open) + 150;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// Makes the watch of two workers, which are threads; `before_connecting` sees the address of the first one.
void expect_watch(bool on_one_node, const std::function<void(const watch::Address&)>& before_connecting) {
  std::vector<WorkerInfo> workers{{0, 0, 0, "n0", 1000}, {1, on_one_node ? 0 : 1, 0, "n1", 1001}};
  BlobMeeting exchange(2);
  run_members(2, [&](int rank) {
    PeerWatchOptions options;
    options.rank = rank;
    options.workers = workers;
    options.connect = 60s;
    options.handle_signals = false;
    options.end_process = [](const std::string& line) { ADD_FAILURE() << line; };
    bool is_first = true;
    options.exchange = [&, rank](std::string_view blob) {
      std::vector<std::string> blobs = exchange(rank, blob);
      if (rank == 1 && std::exchange(is_first, false)) before_connecting(watch::parse_address(blobs[0]));
      return blobs;
    };
    PeerWatch watch(options);
    EXPECT_THAT(watch.unwatched(), IsEmpty());
    EXPECT_TRUE(watch.leave());
  });
}

TEST(PeerWatch, IsNotKeptFromItsPeersByAnotherUserWhoConnectsAsOftenAsHeCan) {
  if (!may_become_another_user()) GTEST_SKIP() << kWhySkipped;
  const OtherUser flooder(flood);
  const FewDescriptors few;
  expect_watch(true, [&](const watch::Address& address) {
    flooder->say(address.local_name);
    EXPECT_EQ(flooder->hear(), "done");
  });
  expect_watch(false, [&](const watch::Address& address) {
    flooder->say(address.network.front());
    EXPECT_EQ(flooder->hear(), "done");
  });
}

TEST(PeerWatch, TellsAnotherUserWhoTookItsNameNothing) {
  if (!may_become_another_user()) GTEST_SKIP() << kWhySkipped;
  const std::string name = "cohort-" + watch::random_token();
  const OtherUser thief([&](const Talk& test) {
    const Fd listener = listen_at(name, SOCK_STREAM);
    test.say(listener ? "listening" : "cannot listen");
    test.say(fmt::format("{}", spoils_of(listener, "").bytes.size()));
  });
  ASSERT_EQ(thief->hear(), "listening");
  const watch::Address address{.local_name = name, .network = {}, .secret = "secret"};
  EXPECT_EQ(watch::connect_local(address, 1, 60s), nullptr);
  EXPECT_EQ(thief->hear(), "0");
}

TEST(PeerWatch, TellsAMachineThatHasTheChiefsAddressNothingOfTheSecret) {
  const Fd listener = watch::listen_loopback();
  const watch::Address address{
      .local_name = {}, .network = watch::network_addresses(listener.get()), .secret = watch::random_token()};
  Spoils spoils;
  // A listener of its own cannot prove anything, whatever it says.
  std::jthread thief([&] { spoils = spoils_of(listener, std::string(80, '\1')); });
  EXPECT_EQ(watch::connect_network(address, 1, 60s), nullptr);
  thief.join();
  EXPECT_GT(spoils.bytes.size(), sizeof(watch::Nonce));
  EXPECT_THAT(spoils.bytes, testing::Not(testing::HasSubstr(address.secret)));
  EXPECT_LT(spoils.bytes.size(), sizeof(watch::Nonce) + sizeof(watch::Proof));
}

/// Says that it is worker 1, and hears that nobody believes it.
void expect_refused(const watch::Address& address, bool says_hello) {
  watch::Link link(watch::connect_to(*watch::local_address(address.local_name)), watch::Reach::kNode);
  if (says_hello) link.send({watch::FrameKind::kHello, -1, 0, std::string(sizeof(watch::Nonce), 'x')});
  link.send({watch::FrameKind::kConfirm, 1, 0, std::string(sizeof(watch::Proof), 'x')});
  while (link.open()) {
    ASSERT_TRUE(readable(link.fd(), kLongMs));
    link.receive();
    while (const std::optional<watch::Frame> frame = link.next_frame())
      EXPECT_EQ(frame->kind, watch::FrameKind::kWelcome);
  }
}

TEST(PeerWatch, IsNotTakenInByWhoeverSaysThatHeIsAWorker) {
  for (const bool says_hello : {false, true})
    expect_watch(true, [&](const watch::Address& address) { expect_refused(address, says_hello); });
}

}  // namespace
}  // namespace cohort
