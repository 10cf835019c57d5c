// The batches of a worker's replicas, step by step, before the workers agree on the end.
#pragma once

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <cohort/input/element_iterator.h>

namespace cohort::detail {

/// One entry per replica of the worker: its part of a step, or nothing where its data has ended. At
/// least one of them has data.
template <class Element>
using LocalParts = std::vector<std::optional<Element>>;

template <class Element>
using LocalSteps = ElementIterator<LocalParts<Element>>;

}  // namespace cohort::detail
