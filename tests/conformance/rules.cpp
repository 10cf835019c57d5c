#include "rules.h"

#include <algorithm>

namespace cohort::conformance {
namespace {

constexpr Rule kRules[] = {
    {"*/run/args_not_tuple", "arguments are a parameter pack"},
    {"*/run/args_too_many", "the compiler refuses it"},
    {"*/run/fn_not_callable", "the compiler refuses it"},
    {"*/run/type_mismatch", "one function has one return type"},
    {"*/run/namedtuple_type", "types are static"},
    {"*/run/local_results_type", "types are static"},
    {"*/merge/result_type_in_replica", "types are static"},
    {"*/*/tf_function_outer", "no graph functions"},
    {"*/*/fn_is_tf_function", "no graph functions"},
    {"*/*/in_tf_*", "no graph functions"},
    {"*/merge/kwargs_seen", "no keyword arguments"},
    {"*/*/axis_string", "the compiler refuses it"},
    {"*/*_axis_string", "the compiler refuses it"},
    {"*/*_axis_float", "an axis is an integer"},
    {"*/gather/missing_axis", "the compiler refuses it"},
    {"*/reduce/missing_axis", "reduce without an axis is the original's axis=None"},
    {"*/reduce/op_none", "the compiler refuses it"},
    {"*/reduce/op_aggregation*", "the compiler refuses it"},
    {"*/reduce/*_axis[*", "one kind of list of axes"},
    {"*/reduce/complex", "no complex dtype"},
    {"*/*/string", "no string dtype"},
    {"*/reduce/*python_zero", "numbers have no identity"},
    {"*/reduce/*numpy_*", "one kind of array: the plain tensor's lines cover it"},
    {"*/reduce/*none_value", "the compiler refuses it"},
    {"*/allreduce/none_value", "the compiler refuses it"},
    {"*/gather/python", "one kind of array: the plain tensor's line covers it"},
    {"*/gather/sparse_tensor", "sparse values are IndexedSlices"},
    {"*/merge/stale_context*", "a context lives as long as its run"},
    {"*/reduce/*_nested_axis0", "the compiler refuses it"},
    {"*/ctx/copy", "a strategy is a handle"},
    {"*/ctx/deepcopy", "a strategy is a handle"},
    {"*/var/create_bad_*", "the compiler refuses it"},
    {"*/var/assign_wrong_dtype", "the compiler refuses it"},
    {"*/var/handle_cross", "variables have no resource handles"},
    {"*/mw/resolver", "workers find each other through a bootstrap"},
    {"mwutil/*_NoneNone", "a task has a type"},
    {"cdo/*_none_dest", "the compiler refuses it"},
    {"cdo/*_list_dest", "the compiler refuses it"},
    {"cdo/*_bad_pairs", "the compiler refuses it"},
    {"options/impl_int", "the compiler refuses it"},
    {"clusterspec/bad_bytes", "one kind of text"},
    {"union/bad_kw", "the compiler refuses it"},
    {"simple/bad_*", "the compiler refuses it"},
    {"*iso_*_str*", "no string dtype"},
    {"*iso_*_complex*", "no complex dtype"},
    {"*/ext/reduce_to_tuple_dest", "the compiler refuses it"},
    {"*/ext/broadcast_to_none", "the compiler refuses it"},
    {"*/ext/broadcast_to_python", "the compiler refuses it"},
    {"*/ext/broadcast_to_perreplica", "the compiler refuses it"},
    {"*/ext/update_not_variable", "the compiler refuses it"},
    {"*/ext/colocate_tensor", "the compiler refuses it"},
    {"*/ext/update_kwargs", "no keyword arguments"},
    {"*/ext/group", "nothing is deferred"},
    {"*/input/not_a_dataset", "the compiler refuses it"},
    {"*/input/from_function_not_dataset", "the compiler refuses it"},
    {"mirrored*/input/len", "the compiler refuses it"},
    {"central2/input/len", "the compiler refuses it"},
    {"onedevice1/input/len", "the compiler refuses it"},
    {"mwms2/input/len", "the compiler refuses it"},
    {"*/input/element_spec_value", "types are static"},
    {"*/input/shape_in_replica", "no graph functions"},
    {"*/input/numpy", "what the recorded version lacks"},
    {"ctor/mirrored_string", "the compiler refuses it"},
    {"ctor/mirrored_mixed_jobs", "a device is one of this process"},
    {"ctor/mwms_bad_options", "the compiler refuses it"},
    {"ctor/mwms_bad_resolver", "the compiler refuses it"},
    {"ctor/coordinator_worker_index_outside", "the worker is an argument"},
    {"partition/string", "no string dtype"},
    {"partition/bad_bps0", "no string dtype"},
    {"partition/bad_base", "a partitioner is any function"},
    {"sharded/index_tensor", "the compiler refuses it"},
    {"sharded/not_list", "the compiler refuses it"},
    {"w2/partitioner/*_string_*", "no string dtype"},
    {"w2/partitioner/*_complex*", "no complex dtype"},
    {"w2/partitioner/*/edge_min_bps_0", "no string dtype"},
    {"w2/partitioner/*/edge_*_unknown_dim", "shapes are known"},
    {"w2/partitioner/*/edge_fixed_float", "a number of shards is an integer"},
    {"w2/partitioner/*/edge_max_none", "the compiler refuses it"},
    {"w2/partitioner_v1/*/embedding_mod_*", "a shard has neighbouring rows"},
    {"w2/partitioner_v1/*/embedding_bad_strategy", "a shard has neighbouring rows"},
    {"w2/partitioner_v1/*/device_setter_merge_devices_3", "a device is one of this process"},
    {"w2/sharded/*/index_[1.5]", "the compiler refuses it"},
    {"w2/sharded/*/index_[1:2.5]", "the compiler refuses it"},
    {"w2/sharded/*/index_list", "the compiler refuses it"},
    {"w2/sharded/*/index_set", "the compiler refuses it"},
    {"w2/sharded/*/ctor_tensor_parts", "the compiler refuses it"},
    {"w2/sharded/*/ctor_none", "the compiler refuses it"},
    {"w2/sharded/*/op_scatter_nd_update", "the compiler refuses it"},
    {"w2/sharded/*/op_read_value", "what the recorded version lacks"},
    {"w2/sharded/*/op_lookup_max_norm", "what the library lacks"},
    {"w2/sharded/*lookup_sparse_*", "what the library lacks"},
    {"w2/placement/*/partitioner_none", "the compiler refuses it"},
    {"w2/placement/*/partitioner_float", "a number of shards is an integer"},
    {"w2/placement/*/partitioner_tensor_shape_type", "types are static"},
    {"w2/placement/*/init_string", "no string dtype"},
    {"w2/placement/*/init_unknown_shape", "shapes are known"},
    {"server/bad", "the compiler refuses it"},
    {"server/ambiguous_*", "a task is given its place"},
    {"w2/server/*/ambiguous_*", "a task is given its place"},
    {"w2/server/*/bad_address", "a task is given its place"},
    {"w2/server/*/port_in_use", "a task is given its place"},
    {"w2/server/*/sparse*", "a task is given its place"},
    {"w2/server/*/local*", "a task is given its place"},
    {"w2/server/*/*_def*", "no protocol buffers"},
    {"w2/server/*/protocol*", "there is one protocol"},
    {"w2/server/*/session_local", "no graph functions"},
    {"w2/server/*/join_blocks", "a server ends with its job"},
    {"ps*/remote_value_type", "types are static"},
    {"ps*/schedule_plain_python", "no graph functions"},
    {"ps*/schedule_remote_arg", "the compiler refuses it"},
    {"ps*/per_worker_dataset_obj", "types are static"},
    {"ps*/per_worker_dataset_bad", "the compiler refuses it"},
    {"ps*/per_worker_next", "the compiler refuses it"},
    {"ps*/bad_partitioner_none", "the compiler refuses it"},
    {"w2/coordinator/*/result_sparse", "sparse values are IndexedSlices"},
    {"w2/coordinator/*/arg_python_number", "the compiler refuses it"},
    {"w2/coordinator/*/arg_numpy", "the compiler refuses it"},
    {"w2/coordinator/*/arg_too_many", "the compiler refuses it"},
    {"w2/coordinator/*/arg_missing", "the compiler refuses it"},
    {"w2/coordinator/*/arg_args_none", "the compiler refuses it"},
    {"w2/coordinator/*/arg_not_callable", "the compiler refuses it"},
    {"w2/coordinator/*/arg_unknown_kwarg", "no keyword arguments"},
    {"w2/coordinator/*/arg_remote_value_kwarg", "no keyword arguments"},
    {"w2/coordinator/*/arg_remote_value*", "the compiler refuses it"},
    {"w2/coordinator/*/arg_return_variable", "the compiler refuses it"},
    {"w2/coordinator/*/arg_captured_tensor", "functions have no captures"},
    {"w2/coordinator/*/arg_method", "functions have no captures"},
    {"w2/coordinator/*/arg_plain_python", "no graph functions"},
    {"w2/coordinator/*/arg_concrete", "no graph functions"},
    {"w2/coordinator/*/arg_trace_error", "no graph functions"},
    {"w2/coordinator/*/arg_after_trace_error", "no graph functions"},
    {"w2/coordinator/*/arg_dtype_mismatch", "types are static"},
    {"w2/coordinator/*/worker_index_outside", "the worker is an argument"},
    {"w2/coordinator/*/error_class_int_div_zero", "a division by zero is undefined"},
    {"w2/coordinator/*/error_class_numpy_function_ok", "no graph functions"},
    {"w2/coordinator/*/dataset_function_calls", "no graph functions"},
    {"w2/coordinator/*/dataset_misc_dataset_fn_is_tf_function", "no graph functions"},
    {"w2/coordinator/*/dataset_misc_bad_int", "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_for_loop", "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_next_on_collection", "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_map_after", "the compiler refuses it"},
    {"w2/coordinator/*/dataset_misc_element_spec", "types are static"},
    {"w2/coordinator/*/dataset_misc_build", "types are static"},
    {"w2/coordinator/*/dataset_misc_iterator_spec", "types are static"},
    {"w2/coordinator/*/per_worker_values_public", "the compiler refuses it"},
    {"w2/coordinator/*/coordinator_bad_*", "the compiler refuses it"},
    {"w2/coordinator/*/var_deepcopy", "a variable is a handle"},
    {"w2/coordinator/*/keras_train_RMSprop", "what the library lacks"},
    {"w2/coordinator/*/keras_fit", "what the library lacks"},
    {"w2/ps_v1/*/ctor_not_a_resolver", "the compiler refuses it"},
    {"w2/ps_v1/*/reduce_to_*", "a device is one of this process"},
    {"w2/ps_v1/*/monitored_session", "what the library lacks"},
    {"preempt/no_dir", "the compiler refuses it"},
    {"w2/preemption/*/misc_no_dir", "the compiler refuses it"},
    {"w2/preemption/*/misc_not_checkpoint", "the compiler refuses it"},
    {"w2/preemption/*/misc_manager_and_dir", "the compiler refuses it"},
    {"w2/preemption/*/misc_watcher", "what the library lacks"},
    {"w2/preemption/*/grace2", "times are the machine's"},
    {"w2/preemption/*/mw_sigkill_w1", "a killed rank ends its job"},

    {"w2/checkpoint/*/restore_none", "the compiler refuses it"},
    {"w2/checkpoint/*/dtype_complex*", "no complex dtype"},
    {"w2/checkpoint/*/manager_name", "a checkpoint is named by its step"},
    {"w2/checkpoint/*/manager_interval_no_counter", "the compiler refuses it"},
    {"w2/checkpoint/*/v1_saver_*", "there is one kind of checkpoint"},

    {"w2/batchnorm/*", "what the library lacks"},

    {"w2/callback/*", "what the library lacks"},

    {"w2/estimator/*", "what the library lacks"},

    {"w2/fit/*", "what the library lacks"},

    {"w2/loss/*", "what the library lacks"},

    {"w2/lr_schedule/*", "what the library lacks"},

    {"w2/metric/*", "what the library lacks"},

    {"w2/metric_v1/*", "what the library lacks"},

    {"w2/optimizer/*", "what the library lacks"},

    {"w2/summary/*", "what the library lacks"},

    {"w2/optimizer_v1/*", "what the library lacks"},
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
