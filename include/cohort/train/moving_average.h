// Moving averages: variables that follow a value slowly, such as the statistics of a
// normalization or an average of a model's weights.
#pragma once

#include <cohort/value/variable.h>

namespace cohort {

/// variable <- variable * decay + value * (1 - decay), for a `decay` from 0 to 1.
///
/// Inside a replica, the mean of the replicas' values is followed, whatever the variable's aggregation;
/// all replicas call it. Inside an update only the component changes. In cross-replica context every
/// component does, and all workers pass the same value.
/// @throws InvalidArgument for another decay, a variable that is not floating or whose replicas' parts are
/// summed when it is read (ON_READ with SUM), or a value of another shape.
void assign_moving_average(const Variable& variable, const Tensor& value, double decay);

}  // namespace cohort
