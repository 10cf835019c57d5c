// Every kind of cross-device operations: the same results, the same refusals.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/collective_all_reduce.h>
#include <cohort/strategy/hierarchical_copy_all_reduce.h>
#include <cohort/strategy/nccl_all_reduce.h>
#include <cohort/strategy/reduction_to_one_device.h>

#include "members.h"
#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

using MakeOps = std::shared_ptr<CrossDeviceOps> (*)();

std::shared_ptr<CrossDeviceOps> one_device() { return std::make_shared<ReductionToOneDevice>(); }
std::shared_ptr<CrossDeviceOps> collective() { return std::make_shared<CollectiveAllReduce>(); }
template <int kPacks>
std::shared_ptr<CrossDeviceOps> hierarchical() {
  return std::make_shared<HierarchicalCopyAllReduce>(AllReduceOptions{.num_packs = kPacks});
}
std::shared_ptr<CrossDeviceOps> nccl() { return std::make_shared<NcclAllReduce>(); }

struct Layout {
  std::string name;
  MakeOps make;
  int devices;
};

/// `of(device)` on each of so many devices.
Components on_devices(int devices, const std::function<Tensor(int)>& of) {
  Components value;
  for (int device = 0; device < devices; ++device) {
    const Tensor tensor = of(device);
    value.push_back(copy_to(tensor, Device::cpu(device)));
  }
  return value;
}

Destinations where(const Components& value) {
  std::vector<Device> devices;
  devices.reserve(value.size());
  for (const TensorOrSlices& component : value) devices.push_back(values_of(component).device());
  return Destinations(devices);
}

std::vector<std::vector<double>> contents(const Components& components) {
  std::vector<std::vector<double>> all;
  all.reserve(components.size());
  for (const TensorOrSlices& component : components) all.push_back(numbers(values_of(component)));
  return all;
}

std::vector<int> rows_of_slices(const TensorOrSlices& leaf) {
  const Tensor indices = std::get<IndexedSlices>(leaf).indices.cast(DType::kInt32);
  return {indices.span<std::int32_t>().begin(), indices.span<std::int32_t>().end()};
}

class EveryCrossDeviceOps : public ::testing::TestWithParam<Layout> {
 protected:
  [[nodiscard]] static int devices() { return GetParam().devices; }
  [[nodiscard]] static double sum() { return sum_to(GetParam().devices); }
  [[nodiscard]] static double mean() { return sum() / GetParam().devices; }

  /// [r + 1, 10] on device r.
  [[nodiscard]] static Components counted(DType dtype = DType::kFloat32) {
    return on_devices(devices(), [&](int device) {
      return vector_of<double>({device + 1.0, 10}).cast(dtype);
    });
  }

  const std::shared_ptr<CrossDeviceOps> ops_ = GetParam().make();
};

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int devices : {1, 2, 3, 4, 8}) {
    const std::string suffix = "_on_" + std::to_string(devices);
    all.push_back({"ReductionToOneDevice" + suffix, one_device, devices});
    all.push_back({"CollectiveAllReduce" + suffix, collective, devices});
    all.push_back({"HierarchicalCopyAllReduce" + suffix, hierarchical<1>, devices});
    all.push_back({"HierarchicalCopyAllReduceUnpacked" + suffix, hierarchical<0>, devices});
    all.push_back({"HierarchicalCopyAllReduceInPacks" + suffix, hierarchical<5>, devices});
    all.push_back({"NcclAllReduce" + suffix, nccl, devices});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, EveryCrossDeviceOps, ::testing::ValuesIn(layouts()),
                         [](const auto& test) { return test.param.name; });

TEST_P(EveryCrossDeviceOps, ReducesToItsOwnDevices) {
  const Components value = counted();
  const Components sums = ops_->reduce("sum", value, where(value));
  EXPECT_THAT(contents(sums), AllOf(SizeIs(devices()), Each(ElementsAre(sum(), 10 * devices()))));
  for (int device = 0; device < devices(); ++device)
    EXPECT_EQ(values_of(sums[static_cast<std::size_t>(device)]).device(), Device::cpu(device));
  EXPECT_THAT(contents(ops_->reduce("MEAN", value, where(value))), Each(ElementsAre(mean(), 10)));
}

TEST_P(EveryCrossDeviceOps, ReducesToAnyDevice) {
  const Components value = counted();
  const Components sums = ops_->reduce(ReduceOp::kSum, value, "cpu:5");
  ASSERT_THAT(contents(sums), ElementsAre(ElementsAre(sum(), 10 * devices())));
  EXPECT_EQ(values_of(sums.front()).device(), Device::cpu(5));
}

TEST_P(EveryCrossDeviceOps, ReducesBatches) {
  std::vector<ReduceRequest> requests;
  for (int i = 0; i < 7; ++i) {
    const Components value = on_devices(devices(), [&](int device) {
      return Tensor::full({i, 3}, i % 2 == 0 ? DType::kFloat32 : DType::kInt64, device + i);
    });
    requests.push_back({value, where(value)});
  }
  const auto sums = ops_->batch_reduce(ReduceOp::kSum, requests);
  ASSERT_THAT(sums, SizeIs(7));
  for (int i = 0; i < 7; ++i) {
    const Components& result = sums[static_cast<std::size_t>(i)];
    EXPECT_THAT(contents(result),
                AllOf(SizeIs(devices()), Each(AllOf(SizeIs(3 * i), Each(sum() + devices() * (i - 1.0))))));
    EXPECT_EQ(values_of(result.front()).shape(), (Shape{i, 3}));
    EXPECT_EQ(values_of(result.front()).dtype(), i % 2 == 0 ? DType::kFloat32 : DType::kInt64);
  }
  EXPECT_THAT(contents(ops_->batch_reduce(ReduceOp::kMean, requests)[4]), Each(Each(mean() + 3)));
  EXPECT_THAT(ops_->batch_reduce(ReduceOp::kSum, {}), IsEmpty());
}

TEST_P(EveryCrossDeviceOps, ReducesBatchesToDifferentPlaces) {
  const Components value = counted();
  const std::vector<ReduceRequest> requests{{value, where(value)}, {value, "cpu:1"}, {value, value.front()}};
  const auto sums = ops_->batch_reduce(ReduceOp::kSum, requests);
  EXPECT_THAT(sums[0], SizeIs(devices()));
  EXPECT_THAT(contents(sums[1]), ElementsAre(ElementsAre(sum(), 10 * devices())));
  EXPECT_EQ(values_of(sums[1].front()).device(), Device::cpu(1));
  EXPECT_THAT(contents(sums[2]), ElementsAre(ElementsAre(sum(), 10 * devices())));
}

TEST_P(EveryCrossDeviceOps, TakesEveryDtype) {
  for (const DType dtype : kAllDTypes) {
    const Components value = counted(dtype);
    if (dtype == DType::kBool) {
      if (devices() > 1) {
        EXPECT_THROW(static_cast<void>(ops_->reduce("sum", value, "cpu:0")), InvalidArgument);
      }
      continue;
    }
    const Components sums = ops_->reduce("sum", value, where(value));
    EXPECT_EQ(values_of(sums[0]).dtype(), dtype);
    EXPECT_THAT(contents(sums), Each(ElementsAre(sum(), 10 * devices()))) << to_string(dtype);
    const Components means = ops_->reduce("mean", value, where(value));
    EXPECT_EQ(is_floating(values_of(means[0]).dtype()), is_floating(dtype) || devices() > 1);
    EXPECT_THAT(contents(means), Each(ElementsAre(mean(), 10))) << to_string(dtype);
  }
}

TEST_P(EveryCrossDeviceOps, KeepsAllRowsOfSlicesInOrder) {
  Components value;
  std::vector<double> rows;
  std::vector<int> places;
  for (int device = 0; device < devices(); ++device) {
    for (int row = 0; row <= device; ++row) {
      rows.push_back(device + 1);
      places.push_back(row);
    }
    std::vector<std::int64_t> own(places.end() - device - 1, places.end());
    value.push_back(
        IndexedSlices{Tensor::full({device + 1, 1}, DType::kFloat32, device + 1, Device::cpu(device)),
                      vector_of(own).to(Device::cpu(device)),
                      {9, 1}});
  }
  for (const TensorOrSlices& sum : ops_->reduce("sum", value, where(value))) {
    EXPECT_EQ(numbers(values_of(sum)), rows);
    EXPECT_EQ(rows_of_slices(sum), places);
    EXPECT_EQ(std::get<IndexedSlices>(sum).dense_shape, (Shape{9, 1}));
  }
  for (double& row : rows) row = static_cast<double>(static_cast<float>(row) / static_cast<float>(devices()));
  EXPECT_EQ(numbers(values_of(ops_->reduce("mean", value, "cpu:0").front())), rows);
}

TEST_P(EveryCrossDeviceOps, MixesDenseAndSparseInOneBatch) {
  const auto slices = [](int device) {
    return IndexedSlices{Tensor::full({1, 1}, DType::kFloat32, device + 1.0), Tensor::from({device}), {9, 1}};
  };
  Components sparse;
  for (int device = 0; device < devices(); ++device) sparse.emplace_back(slices(device));
  const Components dense = counted();
  const std::vector<ReduceRequest> requests{
      {sparse, "cpu:0"}, {dense, "cpu:0"}, {sparse, "cpu:0"}, {dense, "cpu:0"}};
  const auto sums = ops_->batch_reduce("sum", requests);
  for (const std::size_t i : {0u, 2u}) {
    ASSERT_TRUE(is_sparse(sums[i].front()));
    EXPECT_THAT(rows_of_slices(sums[i].front()), SizeIs(devices()));
  }
  for (const std::size_t i : {1u, 3u})
    EXPECT_THAT(contents(sums[i]), ElementsAre(ElementsAre(sum(), 10 * devices())));
}

TEST_P(EveryCrossDeviceOps, LeavesTheComponentsAlone) {
  const Components value = counted();
  const Components sums = ops_->reduce("sum", value, where(value));
  for (const TensorOrSlices& component : sums) values_of(component).fill(-1);
  for (int device = 0; device < devices(); ++device)
    EXPECT_THAT(contents(value)[static_cast<std::size_t>(device)], ElementsAre(device + 1, 10));
  const Components again = ops_->reduce("sum", value, where(value));
  values_of(again.front()).fill(-1);
  if (devices() > 1) {
    EXPECT_THAT(contents(again).back(), ElementsAre(sum(), 10 * devices()));
  }
}

TEST_P(EveryCrossDeviceOps, Broadcasts) {
  const Components copies = ops_->broadcast(Tensor::scalar(5.0f), where(counted()));
  EXPECT_THAT(contents(copies), AllOf(SizeIs(devices()), Each(ElementsAre(5))));
  EXPECT_EQ(values_of(copies.back()).device(), Device::cpu(devices() - 1));
}

TEST_P(EveryCrossDeviceOps, TakesAPlainValueAsItIs) {
  const Tensor plain = Tensor::scalar(1.0f);
  EXPECT_THAT(contents(ops_->reduce("sum", {plain}, plain)), ElementsAre(ElementsAre(1)));
}

TEST_P(EveryCrossDeviceOps, RefusesDestinationsThatAreNone) {
  const Components value = counted();
  EXPECT_THAT([&] { return ops_->reduce("sum", value, ""); },
              ThrowsMessage<InvalidArgument>(HasSubstr("destinations cannot be empty")));
  EXPECT_THROW(static_cast<void>(ops_->reduce("sum", value, "/nonsense:9")), InvalidArgument);
  EXPECT_THROW(static_cast<void>(ops_->reduce("sum", value, PerReplica<Tensor>())), InvalidArgument);
  static_assert(!std::is_convertible_v<std::vector<Device>, Destinations>);
}

TEST_P(EveryCrossDeviceOps, RefusesWhatCannotBeReduced) {
  const Components value = counted();
  const auto refused = [&](const Components& odd, const std::string& why) {
    EXPECT_THAT([&] { return ops_->reduce("sum", odd, "cpu:0"); },
                ThrowsMessage<InvalidArgument>(HasSubstr(why)));
    const std::vector<ReduceRequest> requests{{value, "cpu:0"}, {odd, "cpu:0"}};
    EXPECT_THAT([&] { return ops_->batch_reduce("sum", requests); },
                ThrowsMessage<InvalidArgument>(HasSubstr(why)));
  };
  refused({}, "without components");
  refused({Tensor::from({1.0f}), Tensor::from({1.0f, 2.0f})},
          "component 1 has float32[2], component 0 has float32[1]");
  refused({Tensor::from({1.0f}), Tensor::from({1.0})}, "component 1 has float64[1]");
  refused({Tensor::from({1.0f}), IndexedSlices{Tensor::from({1.0f}), Tensor::from({0}), {1}}},
          "component 1 has 1 rows of float32[1]");
  EXPECT_THAT([&] { return ops_->reduce("max", value, "cpu:0"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum or mean, not max")));
  EXPECT_THAT([&] { return ops_->reduce("most", value, "cpu:0"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sum, mean")));
  EXPECT_THROW(static_cast<void>(ops_->reduce("sum", value, "cpu:0", {.timeout_seconds = -1})),
               InvalidArgument);
}

TEST(ReductionToOneDevice, AccumulatesWithAFunctionOfTheCallers) {
  ReductionToOneDevice largest({.accumulation_function = [](std::span<const Tensor> tensors) {
    Tensor best = tensors.front();
    for (const Tensor& tensor : tensors) {
      if (tensor.item<double>() > best.item<double>()) best = tensor;
    }
    return best;
  }});
  const Components value = on_devices(3, [](int device) { return Tensor::scalar(device == 1 ? 8.0 : 2.0); });
  EXPECT_THAT(contents(largest.reduce("sum", value, where(value))), Each(ElementsAre(8)));
  EXPECT_THAT(contents(largest.reduce("mean", value, "cpu:0")), Each(ElementsAre(8.0 / 3)));
  EXPECT_EQ(values_of(value[1]).item<double>(), 8) << "the mean divides a copy";
}

TEST(ReductionToOneDevice, AccumulatesWhereItIsTold) {
  Device seen;
  ReductionToOneDevice ops({.reduce_to_device = Device::cpu(7), .accumulation_function = [&](auto tensors) {
                              seen = tensors.front().device();
                              return tensors.front();
                            }});
  const Components value = on_devices(2, [](int) { return Tensor::scalar(1.0); });
  EXPECT_EQ(values_of(ops.reduce("sum", value, "cpu:1").front()).device(), Device::cpu(1));
  EXPECT_EQ(seen, Device::cpu(7));
}

TEST(AllReduceCrossDeviceOps, RefuseNegativePacks) {
  EXPECT_THAT([] { HierarchicalCopyAllReduce ops({.num_packs = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("num_packs is -1")));
  EXPECT_THROW(NcclAllReduce({.num_packs = -1}), InvalidArgument);
  EXPECT_NO_THROW(NcclAllReduce({.num_packs = 0}));
}

/// Sums as HierarchicalCopyAllReduce does, and remembers the sizes of the packs.
class PackSizes final : public AllReduceCrossDeviceOps {
 public:
  explicit PackSizes(int num_packs) : AllReduceCrossDeviceOps({.num_packs = num_packs}) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "PackSizes"; }
  [[nodiscard]] const std::vector<std::pair<int, std::size_t>>& packs() const { return packs_; }

 private:
  [[nodiscard]] bool fits(std::span<const Device> /*devices*/) const override { return true; }
  void all_reduce(std::span<const Tensor> parts, int pack) override {
    packs_.emplace_back(pack, parts.front().elements());
  }
  std::vector<std::pair<int, std::size_t>> packs_;
};

TEST(AllReduceCrossDeviceOps, CutPacksOfEqualElementCountsAcrossTensors) {
  using ::testing::Pair;
  const auto packs_of = [](int num_packs) {
    PackSizes ops(num_packs);
    std::vector<ReduceRequest> requests;
    for (const std::int64_t extent : {3, 5, 3}) {
      const Components value = on_devices(2, [&](int) { return Tensor::zeros({extent}, DType::kFloat32); });
      requests.push_back({value, where(value)});
    }
    static_cast<void>(ops.batch_reduce("sum", requests));
    return ops.packs();
  };
  EXPECT_THAT(packs_of(1), ElementsAre(Pair(0, 11)));
  EXPECT_THAT(packs_of(3), ElementsAre(Pair(0, 3), Pair(1, 3), Pair(2, 5)));
  EXPECT_THAT(packs_of(0), ElementsAre(Pair(0, 3), Pair(1, 5), Pair(2, 3)));
  EXPECT_THAT(packs_of(20), ElementsAre(Pair(19, 11)));
}

TEST(CollectiveAllReduce, SpansTheMembersOfACommunicator) {
  for (const int members : {1, 2, 3}) {
    for_each_member(members, [&](Communicator& communicator) {
      CollectiveAllReduce ops(communicator);
      const double id = communicator.rank();
      const Components dense{Tensor::from({id + 1, 1.0}), Tensor::from({id + 1, 3.0})};
      const Components sparse{IndexedSlices{Tensor::full({communicator.rank(), 1}, DType::kFloat32, id),
                                            Tensor::full({communicator.rank()}, DType::kInt64, id),
                                            {5, 1}}};
      const std::vector<ReduceRequest> requests{{dense, "cpu:0"}, {dense, Device::cpu(1)}};
      for (const Components& mean : ops.batch_reduce("mean", requests))
        EXPECT_THAT(contents(mean), ElementsAre(ElementsAre((members + 1) / 2.0, 2)));
      const TensorOrSlices rows = ops.reduce("sum", sparse, "cpu:0").front();
      EXPECT_THAT(rows_of_slices(rows), SizeIs(sum_to(members - 1)));
    });
  }
}

TEST(CollectiveAllReduce, NamesTheMemberWhoseSlicesDiffer) {
  for_each_member(3, [&](Communicator& communicator) {
    CollectiveAllReduce ops(communicator);
    const std::int64_t extent = communicator.rank() == 1 ? 6 : 5;
    const Components sparse{
        IndexedSlices{Tensor::zeros({1, 1}, DType::kFloat32), Tensor::from({0}), {extent, 1}}};
    EXPECT_THAT([&] { return ops.reduce("sum", sparse, "cpu:0"); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("member 1"), HasSubstr("float32[6, 1]"))));
  });
}

}  // namespace
}  // namespace cohort::testing
