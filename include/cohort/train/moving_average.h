// Moving averages: variables that follow a value slowly, such as the statistics of a
// normalization or an average of a model's weights.
#pragma once

#include <cohort/value/variable.h>

namespace cohort {

/// variable <- variable * decay + value * (1 - decay), for a `decay` from 0 to 1.
///
/// Inside a replica, the mean of the replicas' values is followed, whatever the variable's aggregation;
/// all replicas call it. Inside an update only the component changes. In cross-replica context and outside
/// any scope every component does, each from its own value, and all workers pass the same value. The value
/// may have any dtype: the average is computed in float64 and rounded to the variable's.
/// @throws InvalidArgument for another decay, a variable that is not floating or whose replicas' parts are
/// summed when it is read (ON_READ with SUM, of a strategy that mirrors its variables), or a value of another
/// shape.
void assign_moving_average(const Variable& variable, const Tensor& value, double decay);

}  // namespace cohort
