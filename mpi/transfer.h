// The data phase of one collective: MPI's own non-blocking operation, with what Cohort
// promises beyond MPI around it (16-bit sums rounded once, MEAN, calls in place).
//
// It starts when all members have agreed on the call, in the same order everywhere.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/collective_call.h>

#include "calls.h"
#include "operators.h"

namespace cohort::mpi {

/// Where a collective takes place.
struct Place {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  bool reproducible = false;  ///< results must not depend on the layout
};

/// @throws Unimplemented when the call moves more elements than MPI can count.
void require_countable(const CollectiveCall& call, int size);

/// The call of a communicator with one member.
void run_alone(const CollectiveCall& call);

class Transfer {
 public:
  /// `call` must outlive this.
  Transfer(const Place& place, const Operators& operators, const CollectiveCall& call);

  /// True once the result is in place.
  [[nodiscard]] bool advance();

  /// MPI may still read and write the call's memory and this object's.
  [[nodiscard]] bool pending() const noexcept { return request_ != MPI_REQUEST_NULL; }

 private:
  void start();
  void start_all_reduce();
  void start_reduce();
  void start_reduce_scatter();
  void start_all_gather();
  void start_gather();
  void start_scatter();

  [[nodiscard]] bool is_root() const noexcept { return call_.root == place_.rank; }
  [[nodiscard]] std::size_t bytes(std::size_t elements) const { return elements * size_of(call_.dtype); }
  /// This member's block of a buffer of all members' blocks.
  [[nodiscard]] std::size_t own_block() const {
    return static_cast<std::size_t>(place_.rank) * bytes(call_.elements);
  }
  const void* widened_input(std::size_t elements);
  std::byte* widened_output(std::size_t elements);
  void put_result_in_place();

  const Place place_;
  const CollectiveCall& call_;
  Arithmetic arithmetic_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::shared_ptr<const Buffer> staged_input_;
  std::shared_ptr<const Buffer> staged_output_;
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

}  // namespace cohort::mpi
