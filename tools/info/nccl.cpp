#include <cohort/base/error.h>
#include <cohort/nccl/library.h>

#include "facts.h"

namespace cohort::info {

NcclFacts gather_nccl() {
  try {
    const nccl::LibraryInfo library = nccl::library();
    return {.path = library.path, .version = library.version, .why_none = {}};
  } catch (const Unavailable& error) {
    return {.path = {}, .version = {}, .why_none = error.what()};
  }
}

}  // namespace cohort::info
