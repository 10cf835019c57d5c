// Collectives between the workers by MPI's own algorithms, which a network may carry out
// itself; with what Cohort promises beyond MPI around them: 16-bit sums rounded once, MEAN,
// calls in place, the bits of MIN and MAX.
//
// All members are known to make the same call when one begins. MPI is polled, like everything
// else that a member waits for.
#pragma once

#include <memory>

#include "collective/network/transport.h"

#include "shared_comms.h"

namespace cohort::mpi {

class MpiCollectives final : public TransportCollectives {
 public:
  explicit MpiCollectives(std::shared_ptr<SharedComms> comms) : comms_(std::move(comms)) {}

  [[nodiscard]] bool is_legal(const CollectiveCall& call) const override;
  [[nodiscard]] bool is_preferred(const CollectiveCall& call, std::size_t bytes) const override;
  [[nodiscard]] Task<> execute(const CollectiveCall& call) override;

 private:
  std::shared_ptr<SharedComms> comms_;
};

}  // namespace cohort::mpi
