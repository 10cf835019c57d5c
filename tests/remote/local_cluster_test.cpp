// The places of a cluster in one process: everyone can be connected to where the others think he is.
#include <cohort/remote/local_cluster.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <set>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "cluster/sockets.h"
#include "remote/supervised_task.h"

namespace cohort::remote {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;

/// Whether `listener` takes a connection to `address`.
bool arrives(int listener, const std::optional<watch::SocketAddress>& address) {
  if (!address) return false;
  const watch::Fd socket(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address->get(), address->bytes) != 0) return false;
  return static_cast<bool>(watch::Fd(::accept(listener, nullptr, nullptr)));
}

TEST(LocalCluster, GivesEachTaskAPlace) {
  const LocalCluster cluster({{"chief", 1}, {"worker", 2}, {"ps", 2}});
  ASSERT_THAT(cluster.places(), SizeIs(5));
  std::set<int> descriptors;
  for (const TaskPlace& place : cluster.places()) {
    SCOPED_TRACE(name_of(place.task));
    EXPECT_EQ(place.secret, cluster.places().front().secret);
    EXPECT_EQ(place.addresses, cluster.places().front().addresses);
    EXPECT_EQ(place.restarts, 0);
    EXPECT_TRUE(descriptors.insert(place.network_listener).second);
    EXPECT_TRUE(descriptors.insert(place.local_listener).second);
    const Address& own = address_of(place, place.task);
    ASSERT_THAT(own.network, SizeIs(1));
    EXPECT_THAT(own.network.front(), StartsWith("127.0.0.1:"));
    EXPECT_TRUE(arrives(place.network_listener, watch::network_address(own.network.front())));
    EXPECT_TRUE(arrives(place.local_listener, watch::local_address(own.local)));
    struct stat facts = {};
    EXPECT_EQ(place.memory >= 0, place.task.type == "ps");
    EXPECT_TRUE(place.memory < 0 || (::fstat(place.memory, &facts) == 0 && facts.st_size == 0));
  }
  EXPECT_EQ(cluster.place({"ps", 1}).task, (ClusterTask{"ps", 1}));
  EXPECT_THAT(cluster.places().front().secret, SizeIs(32));
  EXPECT_NE(LocalCluster({{"worker", 1}}).places().front().secret, cluster.places().front().secret);
}

TEST(LocalCluster, DescribesTheClusterAsResolversDo) {
  const LocalCluster cluster({{"worker", 2}, {"ps", 1}});
  const TaskPlace& place = cluster.place({"worker", 1});
  const ClusterSpec spec = cluster_spec(place);
  EXPECT_EQ(spec.num_tasks("worker"), 2);
  EXPECT_EQ(spec.task_address("ps", 0), address_of(place, {"ps", 0}).network.front());
}

TEST(LocalCluster, ClosesWhatItHasOpened) {
  int listener = -1;
  std::string address;
  {
    const LocalCluster cluster({{"worker", 1}});
    listener = cluster.places().front().network_listener;
    address = cluster.places().front().addresses.front().network.front();
  }
  EXPECT_EQ(::fcntl(listener, F_GETFD), -1);
  EXPECT_FALSE(arrives(listener, watch::network_address(address)));
}

TEST(LocalCluster, RefusesClustersThatThereAreNot) {
  const auto making = [](std::vector<std::pair<std::string, int>> jobs) {
    return [jobs = std::move(jobs)] { const LocalCluster cluster(jobs); };
  };
  EXPECT_THAT(making({}), ThrowsMessage<InvalidArgument>(HasSubstr("at least one task")));
  EXPECT_THAT(making({{"worker", 0}}), ThrowsMessage<InvalidArgument>(HasSubstr("'worker' has 0 tasks")));
  EXPECT_THAT(making({{"ps", 1}, {"ps", 1}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("'ps' is given twice")));
  EXPECT_THAT(making({{"chief", 2}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("2 tasks of the job 'chief'")));
  EXPECT_THAT(making({{"boss", 1}}), ThrowsMessage<InvalidArgument>(HasSubstr("a job 'boss'")));
  const LocalCluster cluster({{"worker", 1}});
  EXPECT_THAT(
      [&] {
        static_cast<void>(cluster.place({"worker", 1}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no task worker 1")));
  EXPECT_THAT(
      [&] {
        static_cast<void>(address_of(cluster.places().front(), {"ps", 0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no task ps 0")));
}

}  // namespace
}  // namespace cohort::remote
