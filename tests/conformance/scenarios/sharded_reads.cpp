// What is read of a variable in shards: by an index, by a mask, and by lists of rows.
#include <numeric>
#include <sstream>

#include <cohort/server/index.h>

#include "../../support/sharded_tensor.h"
#include "server/shards/selection.h"
#include "sharded.h"

namespace cohort::conformance {
namespace {

constexpr std::string_view kNewAxes = "a new axis may stand before a number";
constexpr std::string_view kRowsInOrder = "rows come in the order in which they are asked for";

/// The variable of golden2.jsonl.
ShardedTensor variable_of(const Json& input) { return {counted_rows(input), layout_of(input)}; }

/// A term in Python's notation: `3`, `...`, `newaxis`, `1:`, `::-2`.
IndexTerm parse_term(const std::string& text) {
  if (text == "...") return Ellipsis{};
  if (text == "newaxis") return NewAxis{};
  if (text.find(':') == std::string::npos) return std::stoll(text);
  std::vector<std::optional<std::int64_t>> ends;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ':');) {
    ends.push_back(part.empty() ? std::nullopt : std::optional<std::int64_t>(std::stoll(part)));
  }
  ends.resize(3);
  return Slice{.begin = ends[0], .end = ends[1], .step = ends[2].value_or(1)};
}

/// `v[1:4,0]` or `1:4,0`.
Index parse_index(std::string text) {
  if (text.starts_with("v[")) text = text.substr(2, text.size() - 3);
  Index index;
  std::istringstream terms(text);
  for (std::string term; std::getline(terms, term, ',');) index.push_back(parse_term(term));
  return index;
}

Json indexed(const Record& record) {
  const Tensor result =
      variable_of(record.arguments).at(parse_index(record.arguments.at("op").get<std::string>()));
  return {{"shape", result.shape().extents()}, {"value", show(result)}};
}

Json looked_up(const Record& record) {
  const ShardedTensor variable = variable_of(record.arguments);
  const Json& indices = record.arguments.at("indices");
  // Otherwise: `first and last row where needed`.
  return show(variable.gather(indices.is_array()
                                  ? indices.get<std::vector<std::int64_t>>()
                                  : std::vector<std::int64_t>{0, variable.layout().rows() - 1}));
}

/// Without shards.
Json rows_of(const Record& record, const std::vector<std::int64_t>& rows) {
  const auto columns = record.arguments.at("cols").get<std::int64_t>();
  Json result = Json::array();
  for (const std::int64_t row : rows) {
    Json elements = Json::array();
    for (std::int64_t column = 0; column < columns; ++column) elements.push_back(10 * row + column + 1);
    result.push_back(elements);
  }
  return result;
}

Json rows_backwards(const Record& record) {
  return rows_of(record, record.arguments.at("indices").get<std::vector<std::int64_t>>());
}

Json first_and_last_row(const Record& record) {
  const auto extents = record.arguments.at("shards").get<std::vector<std::int64_t>>();
  return rows_of(record, {0, std::accumulate(extents.begin(), extents.end(), std::int64_t{0}) - 1});
}

}  // namespace

std::vector<Scenario> sharded_read_scenarios() {
  std::vector<Scenario> all;
  // Five rows of one element each, 0 to 4, in shards of 2, 2 and 1.
  static const ShardedTensor kVariable(Tensor::from(std::vector{0.0F, 1.0F, 2.0F, 3.0F, 4.0F}, {5, 1}),
                                       {5, 3});
  const auto add = [&](const char* name, const std::function<Tensor()>& read) {
    all.push_back(
        {fmt::format("sharded/{}", name), [read](const Layout& /*layout*/) { return show(read()); }});
  };
  for (const auto& [name, index] :
       std::vector<std::pair<const char*, const char*>>{{"index_neg1", "-1"},
                                                        {"index_int5", "5"},
                                                        {"index_neg6", "-6"},
                                                        {"index_1:4", "1:4"},
                                                        {"index_::2", "::2"},
                                                        {"index_::-1", "::-1"},
                                                        {"index_4:0:-2", "4:0:-2"},
                                                        {"index_2:2", "2:2"},
                                                        {"index_10:20", "10:20"},
                                                        {"index_::0", "::0"},
                                                        {"index_...", "..."},
                                                        {"index_tuple", "1:4,0"}}) {
    add(name, [index = index] { return kVariable.at(parse_index(index)); });
  }
  add("index_mask", [] {
    return kVariable.gather(marked_rows(Tensor::from({true, false, true, false, true}), 5));
  });
  add("embedding", [] { return kVariable.gather(std::vector<std::int64_t>{4, 0, 1}); });
  all.push_back({"sharded/index_newaxis", [](const Layout& /*layout*/) {
                   const Shape shape = kVariable.at({NewAxis{}}).shape();
                   return Json(fmt::format("({}, {}, {})", shape[0], shape[1], shape[2]));
                 }});
  return all;
}

std::vector<Family> sharded_read_families() {
  return {
      {{"w2/sharded/none/index_mask_*"},
       [](const Record& record) {
         const ShardedTensor variable = variable_of(record.arguments);
         const auto marks = record.arguments.at("mask").get<std::vector<bool>>();
         const Tensor mask = Tensor::zeros({std::ssize(marks)}, DType::kBool);
         std::ranges::copy(marks, mask.span<bool>().begin());
         return show(variable.gather(marked_rows(mask, variable.layout().rows())));
       }},
      {{"w2/sharded/none/index_*"},
       indexed,
       {{"*/index_[newaxis,3]", kNewAxes,
         [](const Record& /*record*/) {
           return Json{{"shape", {1, 3}}, {"value", Json::array({{31, 32, 33}})}};
         }}}},
      {{"w2/sharded/none/*_index1"},
       [](const Record& record) { return show(variable_of(record.arguments).at({1})); }},
      {{"w2/sharded/none/*_slice"},
       [](const Record& record) { return show(variable_of(record.arguments).at({Slice{.begin = 1}})); }},
      {{"w2/sharded/none/sparse_read_*", "w2/sharded/none/gather_*", "w2/sharded/none/embedding_lookup_*",
        "w2/sharded/none/dtype_*_lookup", "w2/sharded/none/op_lookup_oob", "w2/sharded/none/op_lookup_neg",
        "w2/sharded/none/op_sparse_read_oob", "w2/sharded/none/op_sparse_read_neg",
        "w2/sharded/none/op_gather_oob", "w2/sharded/none/op_lookup_int32",
        "w2/sharded/none/uneven*_sparse_read", "w2/sharded/none/zero_shard_sparse_read",
        "w2/sharded/none/*_embedding_lookup"},
       looked_up,
       {{"w2/sharded/none/sparse_read_all_rev_*-*", kRowsInOrder, rows_backwards},
        {"w2/sharded/none/uneven*_sparse_read", kAnyShards, first_and_last_row},
        {"w2/sharded/none/zero_shard_sparse_read", kAnyShards, first_and_last_row}}},
      {{"w2/sharded/none/op_iter"},
       [](const Record& record) {
         Json shapes = Json::array();
         for (const std::int64_t rows : variable_of(record.arguments).layout().extents()) {
           shapes.push_back({rows, record.arguments.at("cols")});
         }
         return shapes;
       }},
  };
}

}  // namespace cohort::conformance
