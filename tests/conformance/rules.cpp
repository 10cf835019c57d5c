#include "rules.h"

#include <algorithm>

namespace cohort::conformance {
namespace {

constexpr Rule kRules[] = {
    // ---- without meaning
    {"*/run/args_not_tuple", Verdict::kWithoutMeaning, "arguments are a parameter pack"},
    {"*/run/args_too_many", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/run/fn_not_callable", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/run/type_mismatch", Verdict::kWithoutMeaning, "one function has one return type"},
    {"*/run/namedtuple_type", Verdict::kWithoutMeaning, "types are static"},
    {"*/run/local_results_type", Verdict::kWithoutMeaning, "types are static"},
    {"*/merge/result_type_in_replica", Verdict::kWithoutMeaning, "types are static"},
    {"*/*/tf_function_outer", Verdict::kWithoutMeaning, "no graph functions"},
    {"*/*/fn_is_tf_function", Verdict::kWithoutMeaning, "no graph functions"},
    {"*/*/in_tf_*", Verdict::kWithoutMeaning, "no graph functions"},
    {"*/merge/kwargs_seen", Verdict::kWithoutMeaning, "no keyword arguments"},
    {"*/*/axis_string", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/*_axis_string", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/*_axis_float", Verdict::kWithoutMeaning, "an axis is an integer"},
    {"*/gather/missing_axis", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/reduce/missing_axis", Verdict::kWithoutMeaning, "reduce without an axis is the original's axis=None"},
    {"*/reduce/op_none", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/reduce/op_aggregation*", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/reduce/*_axis[*", Verdict::kWithoutMeaning, "one kind of list of axes"},
    {"*/reduce/complex", Verdict::kWithoutMeaning, "no complex dtype"},
    {"*/*/string", Verdict::kWithoutMeaning, "no string dtype"},
    {"*/reduce/*python_zero", Verdict::kWithoutMeaning, "numbers have no identity"},
    {"*/reduce/*numpy_*", Verdict::kWithoutMeaning, "one kind of array: the plain tensor's lines cover it"},
    {"*/reduce/*none_value", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/allreduce/none_value", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/gather/python", Verdict::kWithoutMeaning, "one kind of array: the plain tensor's line covers it"},
    {"*/gather/sparse_tensor", Verdict::kWithoutMeaning, "sparse values are IndexedSlices"},
    {"*/merge/stale_context*", Verdict::kWithoutMeaning, "a context lives as long as its run"},
    {"*/reduce/*_nested_axis0", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ctx/copy", Verdict::kWithoutMeaning, "a strategy is a handle"},
    {"*/ctx/deepcopy", Verdict::kWithoutMeaning, "a strategy is a handle"},
    {"*/var/create_bad_*", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/var/assign_wrong_dtype", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/var/handle_cross", Verdict::kWithoutMeaning, "variables have no resource handles"},
    {"*/mw/resolver", Verdict::kWithoutMeaning, "workers find each other through a bootstrap"},
    {"mwutil/*_NoneNone", Verdict::kWithoutMeaning, "a task has a type"},
    {"cdo/*_none_dest", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"cdo/*_list_dest", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"cdo/*_bad_pairs", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"options/impl_int", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"clusterspec/bad_bytes", Verdict::kWithoutMeaning, "one kind of text"},
    {"union/bad_kw", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"simple/bad_*", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*iso_*_str*", Verdict::kWithoutMeaning, "no string dtype"},
    {"*iso_*_complex*", Verdict::kWithoutMeaning, "no complex dtype"},
    {"*/ext/reduce_to_tuple_dest", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/broadcast_to_none", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/broadcast_to_python", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/broadcast_to_perreplica", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/update_not_variable", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/colocate_tensor", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/ext/update_kwargs", Verdict::kWithoutMeaning, "no keyword arguments"},
    {"*/ext/group", Verdict::kWithoutMeaning, "nothing is deferred"},
    {"*/input/not_a_dataset", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/input/from_function_not_dataset", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"mirrored*/input/len", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"central2/input/len", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"onedevice1/input/len", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"mwms2/input/len", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"*/input/element_spec_value", Verdict::kWithoutMeaning, "types are static"},
    {"*/input/shape_in_replica", Verdict::kWithoutMeaning, "no graph functions"},
    {"*/input/numpy", Verdict::kWithoutMeaning, "what the recorded version lacks"},
    {"ctor/mirrored_string", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"ctor/mirrored_mixed_jobs", Verdict::kWithoutMeaning, "a device is one of this process"},
    {"ctor/mwms_bad_options", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"ctor/mwms_bad_resolver", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"partition/string", Verdict::kWithoutMeaning, "no string dtype"},
    {"partition/bad_bps0", Verdict::kWithoutMeaning, "no string dtype"},
    {"partition/bad_base", Verdict::kWithoutMeaning, "a partitioner is any function"},
    {"sharded/index_tensor", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/partitioner/*_string_*", Verdict::kWithoutMeaning, "no string dtype"},
    {"w2/partitioner/*_complex*", Verdict::kWithoutMeaning, "no complex dtype"},
    {"w2/partitioner/*/edge_min_bps_0", Verdict::kWithoutMeaning, "no string dtype"},
    {"w2/partitioner/*/edge_*_unknown_dim", Verdict::kWithoutMeaning, "shapes are known"},
    {"w2/partitioner/*/edge_fixed_float", Verdict::kWithoutMeaning, "a number of shards is an integer"},
    {"w2/partitioner/*/edge_max_none", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/partitioner_v1/*/embedding_mod_*", Verdict::kWithoutMeaning, "a shard has neighbouring rows"},
    {"w2/partitioner_v1/*/embedding_bad_strategy", Verdict::kWithoutMeaning, "a shard has neighbouring rows"},
    {"w2/sharded/*/index_[1.5]", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/sharded/*/index_[1:2.5]", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/sharded/*/index_list", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/sharded/*/index_set", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/placement/*/partitioner_none", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/placement/*/partitioner_float", Verdict::kWithoutMeaning, "a number of shards is an integer"},
    {"w2/placement/*/partitioner_tensor_shape_type", Verdict::kWithoutMeaning, "types are static"},
    {"w2/placement/*/init_string", Verdict::kWithoutMeaning, "no string dtype"},
    {"w2/coordinator/*/result_sparse", Verdict::kWithoutMeaning, "sparse values are IndexedSlices"},
    {"w2/coordinator/*/arg_python_number", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_numpy", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_too_many", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_missing", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_args_none", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_not_callable", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_unknown_kwarg", Verdict::kWithoutMeaning, "no keyword arguments"},
    {"w2/coordinator/*/arg_remote_value_kwarg", Verdict::kWithoutMeaning, "no keyword arguments"},
    {"w2/coordinator/*/arg_remote_value*", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_return_variable", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/arg_captured_tensor", Verdict::kWithoutMeaning, "functions have no captures"},
    {"w2/coordinator/*/arg_method", Verdict::kWithoutMeaning, "functions have no captures"},
    {"w2/coordinator/*/arg_plain_python", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/arg_concrete", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/arg_trace_error", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/arg_after_trace_error", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/arg_dtype_mismatch", Verdict::kWithoutMeaning, "types are static"},
    {"w2/coordinator/*/worker_index_outside", Verdict::kWithoutMeaning, "the worker is an argument"},
    {"w2/coordinator/*/error_class_int_div_zero", Verdict::kWithoutMeaning,
     "a division by zero is undefined"},
    {"w2/coordinator/*/error_class_numpy_function_ok", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/dataset_function_calls", Verdict::kWithoutMeaning, "no graph functions"},
    {"w2/coordinator/*/dataset_misc_dataset_fn_is_tf_function", Verdict::kWithoutMeaning,
     "no graph functions"},
    {"w2/coordinator/*/dataset_misc_bad_int", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_for_loop", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_next_on_collection", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_map_after", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_element_spec", Verdict::kWithoutMeaning, "types are static"},
    {"w2/coordinator/*/dataset_misc_build", Verdict::kWithoutMeaning, "types are static"},
    {"w2/coordinator/*/dataset_misc_iterator_spec", Verdict::kWithoutMeaning, "types are static"},
    {"w2/coordinator/*/per_worker_values_public", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/coordinator_bad_*", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/coordinator/*/var_deepcopy", Verdict::kWithoutMeaning, "a variable is a handle"},
    {"w2/coordinator/*/keras_train_RMSprop", Verdict::kWithoutMeaning, "what the library lacks"},
    {"w2/coordinator/*/keras_fit", Verdict::kWithoutMeaning, "what the library lacks"},
    {"w2/ps_v1/*/ctor_not_a_resolver", Verdict::kWithoutMeaning, "the compiler refuses it"},
    {"w2/ps_v1/*/reduce_to_*", Verdict::kWithoutMeaning, "a device is one of this process"},
    {"w2/ps_v1/*/monitored_session", Verdict::kWithoutMeaning, "what the library lacks"},

    // ---- pending: what a later part of the library brings
    {"sharded/*", Verdict::kPending, "parameter servers"},
    {"ps11/*", Verdict::kPending, "parameter servers"},
    {"ps22/*", Verdict::kPending, "parameter servers"},
    {"server/*", Verdict::kPending, "parameter servers"},
    {"ctor/ps_*", Verdict::kPending, "parameter servers"},
    {"ctor/coordinator_*", Verdict::kPending, "parameter servers"},
    {"w2/partitioner_v1/*", Verdict::kPending, "parameter servers"},
    {"w2/sharded/*", Verdict::kPending, "parameter servers"},
    {"w2/placement/*", Verdict::kPending, "parameter servers"},
    {"preempt/*", Verdict::kPending, "checkpoints"},
    {"w2/fault/*/coordinator_restart", Verdict::kPending, "checkpoints"},
};

}  // namespace

bool matches(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t skipped = star; skipped <= text.size(); ++skipped)
    if (matches(text.substr(skipped), rest)) return true;
  return false;
}

const Rule* find_rule(std::string_view id) {
  const auto* const found =
      std::ranges::find_if(kRules, [&](const Rule& rule) { return matches(id, rule.pattern); });
  return found == std::end(kRules) ? nullptr : found;
}

std::span<const Rule> all_rules() { return kRules; }

}  // namespace cohort::conformance
