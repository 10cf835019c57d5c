#include "facts.h"

namespace cohort::info {

AllGpus gather_gpus() { return {.list = {}, .why_none = "built without CUDA"}; }

}  // namespace cohort::info
