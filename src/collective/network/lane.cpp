#include "lane.h"

#include <cohort/collective/reduction.h>

namespace cohort::network {

void Arithmetic::combine(const std::byte* first, const std::byte* second, std::byte* output,
                         std::size_t elements) const {
  if (elements == 0) return;
  const std::byte* const inputs[] = {first, second};
  reduce_elements(dtype, op, inputs, output, elements);
}

}  // namespace cohort::network
