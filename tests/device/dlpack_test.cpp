#include <cohort/device/dlpack.h>

#include <memory>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A tensor of another library: counts how often its deleter is called.
struct Foreign {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> shape{2, 3};
  std::vector<std::int64_t> strides;
  DLManagedTensor managed{};
  int deleted = 0;

  DLManagedTensor* give() {
    managed.dl_tensor.data = values.data();
    managed.dl_tensor.device = {kDLCPU, 0};
    managed.dl_tensor.ndim = static_cast<int>(shape.size());
    managed.dl_tensor.dtype = {kDLFloat, 32, 1};
    managed.dl_tensor.shape = shape.data();
    managed.dl_tensor.strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    return &managed;
  }
};

void release(DLManagedTensor* managed) { managed->deleter(managed); }

/// The tensor is refused for `reason`, and given back all the same.
void expect_refused(Foreign& foreign, DLManagedTensor* managed, const char* reason) {
  EXPECT_THAT([&] { return from_dlpack(managed); }, ThrowsMessage<InvalidArgument>(HasSubstr(reason)));
  EXPECT_EQ(foreign.deleted, 1) << "ownership is taken also when the tensor is refused";
}

TEST(ToDlpack, SharesTheMemory) {
  const Tensor tensor = Tensor::from(std::span<const float>(std::vector<float>(6, 1)), {2, 3});
  DLManagedTensor* managed = to_dlpack(tensor.rows(1, 2));
  const DLTensor& exported = managed->dl_tensor;
  EXPECT_EQ(exported.data, tensor.row(1).data());
  EXPECT_EQ(exported.device.device_type, kDLCPU);
  EXPECT_EQ(exported.byte_offset, 0u);
  ASSERT_EQ(exported.ndim, 2);
  EXPECT_EQ(exported.shape[0], 1);
  EXPECT_EQ(exported.shape[1], 3);
  release(managed);
}

TEST(ToDlpack, NamesEveryElementType) {
  const auto type_of = [](DType dtype) {
    DLManagedTensor* managed = to_dlpack(Tensor::zeros({1}, dtype));
    const DLDataType type = managed->dl_tensor.dtype;
    release(managed);
    return std::tuple(static_cast<int>(type.code), static_cast<int>(type.bits), static_cast<int>(type.lanes));
  };
  EXPECT_EQ(type_of(DType::kInt16), std::tuple(kDLInt, 16, 1));
  EXPECT_EQ(type_of(DType::kUInt64), std::tuple(kDLUInt, 64, 1));
  EXPECT_EQ(type_of(DType::kFloat16), std::tuple(kDLFloat, 16, 1));
  EXPECT_EQ(type_of(DType::kBFloat16), std::tuple(kDLBfloat, 16, 1));
  EXPECT_EQ(type_of(DType::kFloat64), std::tuple(kDLFloat, 64, 1));
  EXPECT_EQ(type_of(DType::kBool), std::tuple(kDLUInt, 8, 1));
}

TEST(ToDlpack, KeepsTheStorageUntilItIsReleased) {
  auto values = std::make_shared<std::vector<float>>(4, 2.0f);
  const std::weak_ptr<std::vector<float>> watch = values;
  DLManagedTensor* managed = to_dlpack(Tensor::wrap(std::span<float>(*values), {4}, values));
  values.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[3], 2.0f);
  release(managed);
  EXPECT_TRUE(watch.expired());
}

TEST(Dlpack, ThereAndBackIsTheSameMemory) {
  for (const DType dtype : kAllDTypes) {
    const Tensor tensor = Tensor::full({2, 3}, dtype, 1);
    const Tensor back = from_dlpack(to_dlpack(tensor));
    EXPECT_EQ(back.data(), tensor.data());
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(back.dtype(), dtype == DType::kBool ? DType::kUInt8 : dtype) << "only bool changes its name";
  }
}

TEST(Dlpack, CarriesScalarsAndEmptyTensors) {
  EXPECT_EQ(from_dlpack(to_dlpack(Tensor::scalar(3.0))).item<double>(), 3.0);
  EXPECT_EQ(from_dlpack(to_dlpack(Tensor::zeros({3, 0}, DType::kInt8))).shape(), (Shape{3, 0}));
}

TEST(FromDlpack, SharesTheMemoryAndReleasesItWithTheLastView) {
  Foreign foreign;
  Tensor view = from_dlpack(foreign.give()).row(1);
  EXPECT_EQ(view.data(), reinterpret_cast<std::byte*>(foreign.values.data() + 3));
  EXPECT_THAT(view.span<float>(), ElementsAre(3, 4, 5));
  EXPECT_EQ(foreign.deleted, 0);
  view = Tensor();
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDlpack, StartsAtTheByteOffset) {
  Foreign foreign;
  foreign.shape = {2, 2};
  foreign.give()->dl_tensor.byte_offset = 2 * sizeof(float);
  EXPECT_THAT(from_dlpack(&foreign.managed).span<float>(), ElementsAre(2, 3, 4, 5));
}

TEST(FromDlpack, TakesStridesThatAreRowMajor) {
  const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> cases[] = {
      {{2, 3}, {3, 1}}, {{1, 6}, {99, 1}}, {{6, 1}, {1, 77}}, {{3, 0}, {1, 1}}};
  for (const auto& [shape, strides] : cases) {
    Foreign foreign;
    foreign.shape = shape;
    foreign.strides = strides;
    EXPECT_NO_THROW(static_cast<void>(from_dlpack(foreign.give()))) << "an axis of one row has no stride";
    EXPECT_EQ(foreign.deleted, 1);
  }
}

TEST(FromDlpack, RefusesOtherStrides) {
  for (const std::vector<std::int64_t>& strides : {std::vector<std::int64_t>{1, 2}, {6, 2}, {0, 1}, {3, 0}}) {
    Foreign foreign;
    foreign.strides = strides;
    expect_refused(foreign, foreign.give(), "make it contiguous");
  }
}

TEST(FromDlpack, RefusesElementTypesThatCohortLacks) {
  for (const DLDataType type :
       {DLDataType{kDLFloat, 8, 1}, DLDataType{kDLInt, 4, 1}, DLDataType{kDLFloat, 32, 4},
        DLDataType{kDLComplex, 64, 1}, DLDataType{kDLOpaqueHandle, 64, 1}}) {
    Foreign foreign;
    foreign.give()->dl_tensor.dtype = type;
    expect_refused(foreign, &foreign.managed, "no counterpart");
  }
}

TEST(FromDlpack, TakesBoolsOfNewerVersions) {
  Foreign foreign;
  foreign.give()->dl_tensor.dtype = {6, 8, 1};  // kDLBool
  EXPECT_EQ(from_dlpack(&foreign.managed).dtype(), DType::kBool);
}

TEST(FromDlpack, RefusesMemoryOfADevice) {
  Foreign foreign;
  foreign.give()->dl_tensor.device = {static_cast<DLDeviceType>(2), 0};  // a GPU
  expect_refused(foreign, &foreign.managed, "device type 2");
}

TEST(FromDlpack, RefusesANegativeExtentAndMisalignedMemory) {
  Foreign negative;
  negative.shape = {2, -3};
  expect_refused(negative, negative.give(), "negative extent");
  Foreign misaligned;
  misaligned.shape = {2, 2};
  misaligned.give()->dl_tensor.byte_offset = 1;
  expect_refused(misaligned, &misaligned.managed, "not aligned");
}

TEST(FromDlpack, RefusesElementsWithoutMemoryAndANegativeNumberOfAxes) {
  Foreign nowhere;
  nowhere.give()->dl_tensor.data = nullptr;
  expect_refused(nowhere, &nowhere.managed, "without memory");
  Foreign shapeless;
  shapeless.give()->dl_tensor.ndim = -1;
  expect_refused(shapeless, &shapeless.managed, "-1 axes");
}

TEST(FromDlpack, RefusesNothing) {
  EXPECT_THAT([] { return from_dlpack(nullptr); }, ThrowsMessage<InvalidArgument>(HasSubstr("null")));
}

TEST(FromDlpack, TakesATensorWithoutADeleter) {
  Foreign foreign;
  foreign.give()->deleter = nullptr;
  EXPECT_THAT(from_dlpack(&foreign.managed).span<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(foreign.deleted, 0);
}

}  // namespace
}  // namespace cohort
