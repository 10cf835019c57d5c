// Says: the function of map() takes one element
// Says: the function of interleave() returns a Dataset
// Says: only tensors and structures of tensors can be stacked into batches; map() to them first
// Says: only tensors and structures of tensors have rows
// Says: zip() needs at least one dataset
// Says: not a row of a CSV file: use Tensor, or numbers, std::string, optionals of these, and tuples, arrays
// and
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/input/files/csv.h>

using cohort::Dataset;

#ifdef MISUSE
using Value = std::string;
using Field = std::vector<double>;
const auto kAdd = [](int one, int other) { return one + other; };
const auto kOpen = [](const std::string& file) { return file; };
#else
using Value = cohort::Tensor;
using Field = double;
const auto kAdd = [](const std::pair<int, int>& pair) { return pair.first + pair.second; };
const auto kOpen = [](const std::string& file) { return Dataset<std::string>::from_tensors(file); };
#endif

auto mapped(const Dataset<std::pair<int, int>>& pairs) { return pairs.map(kAdd); }
auto interleaved(const Dataset<std::string>& files) { return files.interleave(kOpen); }
auto batches(const Dataset<Value>& dataset) { return dataset.batch(4); }
auto rows(const Value& table) { return Dataset<Value>::from_tensor_slices(table); }
auto rows_of_file() { return cohort::csv_dataset<std::tuple<std::string, Field>>({"houses.csv"}); }

#ifdef MISUSE
auto zipped() { return cohort::zip(); }
#else
auto zipped(const Dataset<int>& numbers) { return cohort::zip(numbers); }
#endif
