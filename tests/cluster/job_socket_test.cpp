// By which sockets a user finds and asks jobs, and that nobody else is answered.
#include "cluster/job_socket.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

#include "thrown.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::message_of;

/// Of this process, so that tests that run at the same time have others.
JobSocket socket_of(const std::string& test) {
  return {fmt::format("{}-{}", test, ::getpid()), 7, ::getpid()};
}

std::string text_of(const JobSocket& socket) {
  return fmt::format("cohort-job/0/{}/{}/{}", socket.job, socket.chief, socket.process);
}

watch::SocketAddress address_of(const JobSocket& socket) { return *watch::local_address(text_of(socket)); }

/// To root's listener, whoever this is.
bool connects_as_any_user(const JobSocket& socket) {
  const watch::Fd raw(::socket(AF_UNIX, SOCK_STREAM, 0));
  const watch::SocketAddress address = address_of(socket);
  return ::connect(raw.get(), address.get(), address.bytes) == 0;
}

bool is_listed(const JobSocket& socket) {
  return std::ranges::any_of(jobs_of_this_user(), [&](const JobSocket& listed) {
    return listed.job == socket.job && listed.chief == socket.chief && listed.process == socket.process;
  });
}

TEST(JobName, IsWhatTheLauncherCallsTheJob) {
  EXPECT_EQ(job_name(4711, {{"SLURM_JOB_ID", "12"}, {"PMIX_NAMESPACE", "345"}}), "12");
  EXPECT_EQ(job_name(4711, {{"PMIX_NAMESPACE", "prterun-n1-99@1"}}), "prterun-n1-99-1");
  EXPECT_EQ(job_name(4711, {{"PMIX_NAMESPACE", "a/b c"}}), "a-b-c");
  EXPECT_EQ(job_name(4711, {{"PMIX_NAMESPACE", std::string(500, 'x')}}).size(), 48u);
  EXPECT_EQ(job_name(4711, {{"SLURM_JOB_ID", ""}}), "4711");
}

TEST(JobSocket, IsListedWhileSomebodyListens) {
  const JobSocket socket = socket_of("listed");
  EXPECT_FALSE(is_listed(socket));
  {
    const watch::Fd listener = listen_as(socket);
    EXPECT_TRUE(is_listed(socket));
  }
  EXPECT_FALSE(is_listed(socket));
}

TEST(JobSocket, TellsWhoAsksAllThatTheListenerSays) {
  const JobSocket socket = socket_of("tells");
  const watch::Fd listener = listen_as(socket);
  const std::string said(1 << 20, 'x');
  std::jthread server([&] {
    std::vector<watch::Fd> clients;
    while (clients.empty()) clients = watch::accept_all(listener).sockets;
    pollfd room{clients.front().get(), POLLOUT, 0};
    for (std::size_t sent = 0; sent < said.size() && ::poll(&room, 1, -1) == 1;) {
      const ssize_t bytes = ::send(room.fd, said.data() + sent, said.size() - sent, MSG_NOSIGNAL);
      if (bytes <= 0) return;
      sent += static_cast<std::size_t>(bytes);
    }
  });
  EXPECT_EQ(read_from(socket, 20s), said);
}

TEST(JobSocket, SaysWhoDoesNotAnswer) {
  const JobSocket socket = socket_of("silent");
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { return read_from(socket, 20s); }),
              HasSubstr(fmt::format("job {} (process {}) cannot be asked", socket.job, ::getpid())));
  const watch::Fd listener = listen_as(socket);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { return read_from(socket, 20ms); }),
              HasSubstr("does not answer within 0.02 s"));
}

TEST(JobSocket, TellsAnotherUserNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const JobSocket socket = socket_of("other");
  const watch::Fd listener = listen_as(socket);
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    ::_exit(is_listed(socket) ? 2 : connects_as_any_user(socket) ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  // It has connected, and its connection is nobody's that may be answered.
  EXPECT_TRUE(watch::accept_all(listener).sockets.empty());
}

TEST(JobSocket, BelievesNoOtherUserWhoHasTakenTheName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const JobSocket socket = socket_of("taken");
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr uid_t kNobody = 65534;
    // The socket is root's by name, for a name says what its owner likes, and another user's in truth.
    const watch::Fd raw(::socket(AF_UNIX, SOCK_STREAM, 0));
    const watch::SocketAddress address = address_of(socket);
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    if (::bind(raw.get(), address.get(), address.bytes) != 0) ::_exit(2);
    if (::listen(raw.get(), 1) != 0 || ::write(ready[1], "x", 1) != 1) ::_exit(3);
    char byte = 0;
    ::_exit(::read(done[0], &byte, 1) == 1 ? 0 : 4);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [&] { return read_from(socket, 20s); }),
              HasSubstr("who listens is of another user"));
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) ::close(end);
}

}  // namespace
}  // namespace cohort
