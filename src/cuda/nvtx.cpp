#include "nvtx.h"

#include <cstdlib>

#include <nvtx3/nvToolsExt.h>

#include "base/timeline_spans.h"

namespace cohort::cuda {

void pass_spans_to_nvtx() noexcept {
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) return;
  // What NVTX returns is the depth of ranges, or that nobody listens.
  static constexpr SpanListener kListener{.begin = [](const char* name) noexcept { nvtxRangePushA(name); },
                                          .end = []() noexcept { nvtxRangePop(); }};
  TimelineSpans::of_this_process().set_listener(kListener);
}

}  // namespace cohort::cuda
