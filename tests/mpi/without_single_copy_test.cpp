// A system that forbids processes to copy from each other, as containers do: private
// buffers then go through cells.
#include <sys/uio.h>

#include <cerrno>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/collective/communicator.h>

#include "communicator_contracts.h"
#include "mpi_main.h"

namespace {

ssize_t refuse() {
  errno = EPERM;
  return -1;
}

}  // namespace

extern "C" ssize_t process_vm_readv(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                    unsigned long) noexcept {
  return refuse();
}

extern "C" ssize_t process_vm_writev(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                     unsigned long) noexcept {
  return refuse();
}

namespace cohort::testing {
namespace {

TEST(WithoutSingleCopy, SizesAndMemory) { check_sizes_and_memory(*session().make_communicator({})); }

TEST(WithoutSingleCopy, PrivateBuffersGoInPieces) {
  const auto communicator = session().make_communicator({});
  std::vector<float> values(1'000'000, 1.0f);
  const Tensor tensor = Tensor::wrap(std::span<float>(values), {1'000'000});
  communicator->all_reduce(tensor, ReduceOp::kSum);
  EXPECT_EQ(communicator->last_algorithm(), "pieces");
  EXPECT_EQ(values.back(), static_cast<float>(session().size()));
}

}  // namespace
}  // namespace cohort::testing
