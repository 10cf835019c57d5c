// What a temporary gives outlives it: every function of the interface that returns a reference or a view into
// its object returns a value when that is a temporary. Compiling it is the test. (What cannot give a value
// does not compile: see tests/must_not_compile/temporaries.cpp.)
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/cohort.h>
#include <cohort/resolvers/slurm_cluster_resolver.h>

namespace cohort {
namespace {

template <class T>
inline constexpr bool kIsView = false;
template <class T, std::size_t kExtent>
inline constexpr bool kIsView<std::span<T, kExtent>> = true;
template <>
inline constexpr bool kIsView<std::string_view> = true;

template <class T>
concept OutlivesItsSource = !std::is_reference_v<T> && !std::is_pointer_v<T> && !kIsView<T>;

#define EXPECT_VALUE(Type, ...) static_assert(OutlivesItsSource<decltype(std::declval<Type>().__VA_ARGS__)>)

EXPECT_VALUE(Error, origin());
EXPECT_VALUE(Config, settings());
EXPECT_VALUE(Config, log_level());
EXPECT_VALUE(Config, algorithm());
EXPECT_VALUE(Config, tuning_file());
EXPECT_VALUE(Config, nccl_library());
EXPECT_VALUE(ClusterSpec, tasks("worker"));
EXPECT_VALUE(ClusterSpec, task_address("worker", 0));
EXPECT_VALUE(SlurmClusterResolver, own_gpus());
EXPECT_VALUE(Shape, extents());
EXPECT_VALUE(SafetensorsReader, tensors());
EXPECT_VALUE(Tensor, shape());
EXPECT_VALUE(Tensor, span<float>());
EXPECT_VALUE(Tensor, raw());
EXPECT_VALUE(Tensor, buffer());
EXPECT_VALUE(Variable, name());
EXPECT_VALUE(Variable, shape());
EXPECT_VALUE(Variable, components());
EXPECT_VALUE(Variable, replica_component());
EXPECT_VALUE(Variable, state());
EXPECT_VALUE(PerReplica<Tensor>, components());
EXPECT_VALUE(PerReplica<bool>, components());
EXPECT_VALUE(PerReplica<Tensor>, operator[](0));
EXPECT_VALUE(PerReplica<Tensor>, local());
EXPECT_VALUE(PerReplica<Tensor>, of_replica(0));
EXPECT_VALUE(Mirrored<Tensor>, components());
EXPECT_VALUE(Mirrored<Tensor>, operator[](0));
EXPECT_VALUE(Mirrored<Tensor>, local());
EXPECT_VALUE(Mirrored<Tensor>, of_replica(0));
EXPECT_VALUE(Axes, values());
EXPECT_VALUE(Destinations, devices());
EXPECT_VALUE(DeviceAssignment, devices_of(0));
EXPECT_VALUE(LogicalDeviceStrategy, device_assignment());
EXPECT_VALUE(Dataset<Tensor>, node());
EXPECT_VALUE(Dataset<Tensor>, begin().operator*());
EXPECT_VALUE(DistributedDataset<Tensor>, begin().operator*());
static_assert(OutlivesItsSource<decltype(values_of(std::declval<TensorOrSlices>()))>);
static_assert(OutlivesItsSource<decltype(values_of(std::declval<const Tensor&>()))>,
              "a tensor becomes a temporary leaf");

}  // namespace
}  // namespace cohort
