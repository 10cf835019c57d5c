// MPI as the peer.
#pragma once

#include "mpi_team.h"
#include "peer.h"

namespace cohort::bench {

class MpiPeer final : public PeerLibrary {
 public:
  /// `team` outlives it, and the calls that it prepares.
  explicit MpiPeer(const MpiTeam& team) : group_(team.handle()) {}

  [[nodiscard]] std::string why_not(const PeerCall& call) const override;
  [[nodiscard]] std::function<void()> prepare(const PeerCall& call) const override;

 private:
  MPI_Comm group_;
};

}  // namespace cohort::bench
