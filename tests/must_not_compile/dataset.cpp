// Says: the function of map() takes one element; a pair or a tuple is one
// Says: the function of filter() takes one const Element& and returns a bool
// Says: the function of interleave() takes one element and returns a Dataset
// Says: the function of from_generator() returns a function, which returns a std::optional<Element>
// Says: only tensors and structures of tensors can be stacked into batches; map() to them first
// Says: only tensors and structures of tensors have rows; COHORT_FIELDS(Type, fields...) makes a
// Says: zip() needs at least one dataset
// Says: not a row of a CSV file: use Tensor, or numbers, std::string, optionals of these, and tuples, arrays
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/input/files/csv.h>

using cohort::Dataset;
using cohort::Tensor;

struct Batch {
  Tensor images;
  Tensor labels;
};

#ifdef MISUSE
using Value = std::string;
using Field = std::vector<double>;
const auto kAdd = [](int one, int other) { return one + other; };
const auto kKeep = [](int one, int other) { return one < other; };
const auto kOpen = [](const std::string& file) { return file; };
const auto kNext = [] { return std::optional<int>(); };
#else
using Value = Tensor;
using Field = double;
const auto kAdd = [](const std::pair<int, int>& pair) { return pair.first + pair.second; };
const auto kKeep = [](const std::pair<int, int>& pair) { return pair.first < pair.second; };
const auto kOpen = [](const std::string& file) { return Dataset<std::string>::from_tensors(file); };
const auto kNext = [] { return [] { return std::optional<int>(); }; };
COHORT_FIELDS(Batch, images, labels)
#endif

auto mapped(const Dataset<std::pair<int, int>>& pairs) { return pairs.map(kAdd); }
auto filtered(const Dataset<std::pair<int, int>>& pairs) { return pairs.filter(kKeep); }
auto interleaved(const Dataset<std::string>& files) { return files.interleave(kOpen); }
auto generated() { return Dataset<int>::from_generator(kNext); }
auto batches(const Dataset<Value>& dataset) { return dataset.batch(4); }
auto rows(const Batch& batch) { return Dataset<Batch>::from_tensor_slices(batch); }
auto rows_of_file() { return cohort::csv_dataset<std::tuple<std::string, Field>>({"houses.csv"}); }

#ifdef MISUSE
auto zipped() { return cohort::zip(); }
#else
auto zipped(const Dataset<int>& numbers) { return cohort::zip(numbers); }
#endif
