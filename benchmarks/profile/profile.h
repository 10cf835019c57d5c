// Measures what a training step pays for its gradients: those of a model, all-reduced in the
// order in which the backward pass makes them ready, in several ways.
//
//   per_tensor  a blocking all-reduce for each tensor
//   packed      a BatchReducer: small tensors side by side as one, large ones where they are
//   fused       all-reduced as one tensor that they already share
//   async       every all-reduce started when its tensor is ready, then waited for; no computing
//   overlapped  the same between the pieces of the backward pass, each as long as its tensor's
//               share of the elements
//   buckets     the same with GradientBuckets
//
// The peer is called per tensor and over one fused buffer. What communication adds to the step is
// exposed, what it takes without computing less that is hidden. On GPUs a step is timed there, and
// computing is kernels.
#pragma once

#include "member.h"
#include "profile/model.h"
#include "profile/profile_options.h"
#include "profile/profile_result.h"
#include "run_options.h"

namespace cohort::bench {

/// Called by all members; the same on all. @throws AgreedError when a member has too little memory.
[[nodiscard]] ProfileResult measure_profile(const Model& model, const ProfileOptions& options,
                                            const RunOptions& run, const Member& member);

}  // namespace cohort::bench
