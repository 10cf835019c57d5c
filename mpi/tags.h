// The tags on a communicator's control channel.
#pragma once

namespace cohort::mpi {

inline constexpr int kSignatureTag =
    1;                                 ///< to member 0: what the sender calls, and its data if that is small
inline constexpr int kConsentTag = 2;  ///< from member 0: all agree, and the result if that is small
inline constexpr int kNoticeTag = 3;

}  // namespace cohort::mpi
