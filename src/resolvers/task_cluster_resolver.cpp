#include <cohort/resolvers/task_cluster_resolver.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "remote/supervised_task.h"

namespace cohort {
namespace {

/// Far more than the card of the largest job has.
constexpr off_t kLongestCard = 64 << 20;

int card_descriptor(const Environment& variables) {
  const int descriptor = Config(variables).task_descriptor();
  if (descriptor >= 0) return descriptor;
  throw InvalidArgument(
      "this process is no task of a cluster, for COHORT_TASK_FD is not set; start the program with "
      "`cohort-run --roles chief=1,worker=2,ps=1 PROGRAM`");
}

[[noreturn]] void refuse(int descriptor, std::string_view why) {
  throw InvalidArgument(
      "COHORT_TASK_FD is {}, but that descriptor {}: the program must inherit it from cohort-supervise, "
      "which "
      "`cohort-run --roles` starts",
      descriptor, why);
}

/// From its beginning, wherever others have read to.
std::string read_card(int descriptor) {
  struct stat facts = {};
  if (::fstat(descriptor, &facts) != 0) refuse(descriptor, "is not open");
  if (!S_ISREG(facts.st_mode) || facts.st_size > kLongestCard) refuse(descriptor, "is no task's card");
  std::string card(static_cast<std::size_t>(facts.st_size), '\0');
  for (std::size_t at = 0; at < card.size();) {
    const ssize_t got = ::pread(descriptor, card.data() + at, card.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse(descriptor, "cannot be read");
    at += static_cast<std::size_t>(got);
  }
  return card;
}

void close_on_exec(int descriptor, std::string_view what) {
  if (descriptor < 0 || ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0) return;
  throw InvalidArgument("the task's {} is descriptor {}, which is not open: something has closed it", what,
                        descriptor);
}

}  // namespace

TaskClusterResolver::TaskClusterResolver(const Environment& variables) {
  const int card = card_descriptor(variables);
  place_ = remote::place_from_card(read_card(card));
  close_on_exec(card, "card");
  close_on_exec(place_.network_listener, "TCP listener");
  close_on_exec(place_.local_listener, "local listener");
  close_on_exec(place_.memory, "memory");
}

}  // namespace cohort
