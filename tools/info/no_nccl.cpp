#include "facts.h"

namespace cohort::info {

NcclFacts gather_nccl() { return {.path = {}, .version = {}, .why_none = "built without NCCL"}; }

}  // namespace cohort::info
