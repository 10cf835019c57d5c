#include "agreement.h"

#include <cstring>

#include <cohort/base/error.h>

#include "eager.h"
#include "tags.h"

namespace cohort::mpi {

Agreement::Agreement(MPI_Comm comm, int rank, int size, Outbox& outbox)
    : comm_(comm),
      rank_(rank),
      size_(static_cast<std::size_t>(size)),
      outbox_(outbox),
      // Member 0 hears from all, the others from member 0.
      receives_(rank == 0 ? size_ : 1) {
  static_assert(sizeof(CallSignature) + kEagerBytes <= kSlotBytes);
  slots_.resize((rank == 0 ? size_ : 1) * kSlotBytes);
  if (rank == 0) {
    signatures_.resize(size_);
    contributions_.resize(size_);
  }
}

void Agreement::submit(const CallSignature& signature, std::span<const std::byte> contribution) {
  outbox_.send(comm_, 0, kSignatureTag, std::as_bytes(std::span(&signature, 1)), contribution);
}

std::optional<std::span<const std::byte>> Agreement::consent() {
  if (!receiving_) {
    receives_[0] = irecv(slots_.data(), kSlotBytes, MPI_BYTE, 0, kConsentTag, comm_);
    receiving_ = true;
  }
  Envelope envelope;
  if (!test(receives_[0], &envelope)) return std::nullopt;
  receiving_ = false;
  return slot(0).first(envelope.bytes);
}

bool Agreement::gathered(const CallSignature& own, std::span<const std::byte> own_contribution) {
  if (!receiving_) {
    for (std::size_t member = 1; member < size_; ++member) {
      receives_[member] =
          irecv(slot(member).data(), kSlotBytes, MPI_BYTE, static_cast<int>(member), kSignatureTag, comm_);
    }
    signatures_[0] = own;
    contributions_[0] = own_contribution;
    arrived_ = 1;
    receiving_ = true;
    receiving_since_ = std::chrono::steady_clock::now();
  }
  const std::size_t completed = receives_.test_some();
  for (std::size_t i = 0; i < completed; ++i) {
    const std::size_t member = receives_.place(i);
    const std::size_t bytes = receives_.envelope(i).bytes;
    COHORT_CHECK(bytes >= sizeof(CallSignature));
    std::memcpy(&signatures_[member], slot(member).data(), sizeof(CallSignature));
    contributions_[member] = slot(member).subspan(sizeof(CallSignature), bytes - sizeof(CallSignature));
  }
  arrived_ += completed;
  return arrived_ == size_;
}

std::vector<int> Agreement::missing() const {
  std::vector<int> members;
  // What has arrived long ago is still matched one by one once the receives are there.
  constexpr auto kTimeToLook = std::chrono::milliseconds(100);
  if (std::chrono::steady_clock::now() - receiving_since_ < kTimeToLook) return members;
  for (std::size_t member = 1; receiving_ && member < size_; ++member) {
    if (receives_.pending(member)) members.push_back(static_cast<int>(member));
  }
  return members;
}

void Agreement::give_consent(std::span<const std::byte> result) {
  receiving_ = false;
  for (std::size_t member = 1; member < size_; ++member) {
    outbox_.send(comm_, static_cast<int>(member), kConsentTag, result);
  }
}

void Agreement::withdraw() {
  for (std::size_t sender = 0; sender < (rank_ == 0 ? size_ : 1); ++sender) cancel(receives_[sender]);
  receiving_ = false;
}

}  // namespace cohort::mpi
