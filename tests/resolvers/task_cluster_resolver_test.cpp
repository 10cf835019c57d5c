// A task reads its place from the descriptor that it has inherited.
#include <cohort/resolvers/task_cluster_resolver.h>

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/remote/local_cluster.h>

#include "base/memory_file.h"
#include "cluster/fd.h"
#include "remote/task_card.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using watch::Fd;

Fd file_with(const std::string& text) {
  Fd file(make_memory_file("card"));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

Environment naming(int descriptor) { return {{"COHORT_TASK_FD", std::to_string(descriptor)}}; }

auto resolving(const Environment& variables) {
  return [=] { const TaskClusterResolver resolver(variables); };
}

TEST(TaskClusterResolver, ReadsTheCardAsOftenAsItIsMade) {
  const remote::LocalCluster cluster({{"chief", 1}, {"ps", 2}});
  const remote::TaskPlace& place = cluster.place({"ps", 1});
  const Fd card = file_with(remote::to_card(place));
  for (int time = 0; time < 2; ++time) {
    const TaskClusterResolver resolver(naming(card.get()));
    EXPECT_EQ(resolver.task_type(), "ps");
    EXPECT_EQ(resolver.task_id(), 1);
    EXPECT_EQ(resolver.cluster_spec().jobs(), (std::vector<std::string>{"chief", "ps"}));
    EXPECT_EQ(resolver.master(), place.addresses.back().network.front());
    EXPECT_EQ(resolver.bootstrap(), nullptr);
    EXPECT_EQ(resolver.place().addresses, place.addresses);
    EXPECT_EQ(resolver.place().secret, place.secret);
    EXPECT_EQ(resolver.place().memory, place.memory);
  }
}

TEST(TaskClusterResolver, KeepsWhatItHasInheritedFromProgramsThatItStarts) {
  const remote::LocalCluster cluster({{"ps", 1}});
  const remote::TaskPlace& place = cluster.places().front();
  const Fd card = file_with(remote::to_card(place));
  const std::vector<int> inherited{card.get(), place.network_listener, place.local_listener, place.memory};
  for (const int descriptor : inherited) ASSERT_EQ(::fcntl(descriptor, F_SETFD, 0), 0);
  const TaskClusterResolver resolver(naming(card.get()));
  for (const int descriptor : inherited) EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
}

TEST(TaskClusterResolver, SaysHowToStartATask) {
  EXPECT_THAT(resolving({}), ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("COHORT_TASK_FD is not set"),
                                                                  HasSubstr("cohort-run --roles"))));
  EXPECT_THAT(resolving({{"COHORT_TASK_FD", "x"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("invalid COHORT_TASK_FD=x")));
}

TEST(TaskClusterResolver, SaysWhatBecameOfTheCard) {
  int closed = -1;
  {
    const Fd file = file_with("");
    closed = file.get();
  }
  EXPECT_THAT(resolving(naming(closed)), ThrowsMessage<InvalidArgument>(HasSubstr("is not open")));

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  EXPECT_THAT(resolving(naming(ends[0])), ThrowsMessage<InvalidArgument>(HasSubstr("is no task's card")));

  const Fd text = file_with("{}");
  EXPECT_THAT(resolving(naming(text.get())), ThrowsMessage<InvalidArgument>(HasSubstr("'task' is missing")));

  remote::TaskPlace place = remote::LocalCluster({{"worker", 1}}).places().front();
  place.network_listener = 1 << 20;
  const Fd card = file_with(remote::to_card(place));
  EXPECT_THAT(resolving(naming(card.get())),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("TCP listener"), HasSubstr("is not open"))));
}

}  // namespace
}  // namespace cohort::testing
