// Updates of rows, on a plain variable: the arithmetic and the checks.
#include <limits>

#include <gmock/gmock.h>

#include <cohort/value/variable.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class T>
Variable variable_of(std::initializer_list<T> values) {
  return Variable({.name = "w", .initial_value = Tensor::from(values)});
}

/// Rows of a vector of `extent` elements.
template <class T>
IndexedSlices rows_of(std::initializer_list<std::int64_t> indices, std::initializer_list<T> values,
                      std::int64_t extent = 3) {
  return {Tensor::from(values), Tensor::from(indices), {extent}};
}

using Scatter = const Variable& (Variable::*)(const IndexedSlices&) const;

std::vector<double> after(Scatter scatter, const IndexedSlices& rows) {
  const Variable variable = variable_of({1.0, 2.0, 4.0});
  const Tensor result = (variable.*scatter)(rows).read();
  return {result.span<double>().begin(), result.span<double>().end()};
}

TEST(RowUpdates, ChangeTheRowsThatAreNamed) {
  const auto rows = rows_of({2, 0}, {3.0, 0.5});
  EXPECT_THAT(after(&Variable::scatter_add, rows), ElementsAre(1.5, 2, 7));
  EXPECT_THAT(after(&Variable::scatter_sub, rows), ElementsAre(0.5, 2, 1));
  EXPECT_THAT(after(&Variable::scatter_mul, rows), ElementsAre(0.5, 2, 12));
  EXPECT_THAT(after(&Variable::scatter_div, rows), ElementsAre(2, 2, 4.0 / 3));
  EXPECT_THAT(after(&Variable::scatter_min, rows), ElementsAre(0.5, 2, 3));
  EXPECT_THAT(after(&Variable::scatter_max, rows), ElementsAre(1, 2, 4));
  EXPECT_THAT(after(&Variable::scatter_update, rows), ElementsAre(0.5, 2, 3));
}

TEST(RowUpdates, ChangeARowAsOftenAsItIsNamed) {
  const auto rows = rows_of({1, 1}, {3.0, 5.0});
  EXPECT_THAT(after(&Variable::scatter_add, rows), ElementsAre(1, 10, 4));
  EXPECT_THAT(after(&Variable::scatter_mul, rows), ElementsAre(1, 30, 4));
  EXPECT_THAT(after(&Variable::scatter_update, rows), ElementsAre(1, 5, 4)) << "the last one stays";
}

TEST(RowUpdates, TakeRowsAndIndicesThatAreTheVariablesOwnAsTheyWereBefore) {
  const Variable variable = variable_of({1.0, 2.0, 4.0});
  variable.scatter_add({variable.components()[0], Tensor::from({2, 1, 0}), {3}});
  EXPECT_THAT(variable.read().span<double>(), ElementsAre(5, 4, 5));
  const Variable places = variable_of<std::int64_t>({2, 0, 1});
  places.scatter_update({Tensor::from<std::int64_t>({5, 6, 7}), places.components()[0], {3}});
  EXPECT_THAT(places.read().span<std::int64_t>(), ElementsAre(6, 7, 5));
}

TEST(RowUpdates, OfNoRowsChangeNothing) {
  const IndexedSlices none{Tensor::zeros({0}, DType::kFloat64), Tensor::zeros({0}, DType::kInt32), {3}};
  EXPECT_THAT(after(&Variable::scatter_update, none), ElementsAre(1, 2, 4));
}

TEST(RowUpdates, TakeWholeRowsAndBothIndexTypes) {
  const Variable variable({.shape = {2, 2}, .dtype = DType::kFloat32});
  const Tensor row = Tensor::from({1.0f, 2.0f}).reshape({1, 2});
  variable.scatter_add({row, Tensor::from<std::int32_t>({1}), {2, 2}});
  variable.scatter_add({row, Tensor::from<std::int64_t>({1}), {2, 2}});
  EXPECT_THAT(variable.read().span<float>(), ElementsAre(0, 0, 2, 4));
}

TEST(RowUpdates, WorkForEveryDtype) {
  for (const DType dtype : kAllDTypes) {
    const Variable variable({.shape = {2}, .dtype = dtype});
    const auto one_row = [&](double value) {
      return IndexedSlices{Tensor::full({1}, dtype, value), Tensor::from({1}), {2}};
    };
    const auto value = [&] { return variable.read().rows(1, 2).item<double>(); };
    EXPECT_EQ((variable.scatter_update(one_row(1)), value()), 1) << to_string(dtype);
    if (dtype == DType::kBool) {
      EXPECT_THAT([&] { variable.scatter_add(one_row(1)); },
                  ThrowsMessage<InvalidArgument>(HasSubstr("use scatter_update")));
      continue;
    }
    EXPECT_EQ((variable.scatter_add(one_row(5)), value()), 6) << to_string(dtype);
    EXPECT_EQ((variable.scatter_mul(one_row(4)), value()), 24) << to_string(dtype);
    EXPECT_EQ((variable.scatter_div(one_row(2)), value()), 12) << to_string(dtype);
    EXPECT_EQ((variable.scatter_sub(one_row(3)), value()), 9) << to_string(dtype);
    EXPECT_EQ((variable.scatter_min(one_row(7)), value()), 7) << to_string(dtype);
    EXPECT_EQ((variable.scatter_max(one_row(8)), value()), 8) << to_string(dtype);
  }
}

TEST(RowUpdates, WrapIntegers) {
  using Limits = std::numeric_limits<std::int32_t>;
  const Variable variable = variable_of({Limits::min(), Limits::max()});
  variable.scatter_div(rows_of({0}, {-1}, 2)).scatter_add(rows_of({1}, {1}, 2));
  EXPECT_THAT(variable.read().span<std::int32_t>(), ElementsAre(Limits::min(), Limits::min()));
}

TEST(RowUpdates, RefuseToDivideIntegersByZero) {
  const Variable variable = variable_of({1, 2, 4});
  EXPECT_THAT(
      [&] {
        variable.scatter_div(rows_of({0, 1}, {2, 0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the integer 0")));
  EXPECT_THAT(variable.read().span<int>(), ElementsAre(1, 2, 4)) << "nothing was changed";
}

TEST(RowUpdates, RefuseRowsThatDoNotFit) {
  const Variable variable = variable_of({1.0, 2.0, 4.0});
  EXPECT_THAT([&] { variable.scatter_add(rows_of({3}, {1.0})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("index 3")));
  EXPECT_THAT([&] { variable.scatter_add(rows_of({0}, {1.0f})); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("scatter_add of 1 rows of float32[3]"),
                                                   HasSubstr("'w'"), HasSubstr("float64[3]"))));
  EXPECT_THROW(variable.scatter_add(rows_of({0}, {1.0}, 4)), InvalidArgument);
  EXPECT_THAT(variable.read().span<double>(), ElementsAre(1, 2, 4));
}

}  // namespace
}  // namespace cohort
