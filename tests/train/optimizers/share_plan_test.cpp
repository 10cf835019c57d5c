// Who updates which elements.
#include "train/optimizers/share_plan.h"

#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace cohort {
namespace {

std::int64_t elements_of(const std::vector<SharePart>& parts) {
  std::int64_t elements = 0;
  for (const SharePart& part : parts) elements += part.end - part.begin;
  return elements;
}

/// The variables of ResNet-50, as the benchmarks have them.
std::vector<TensorSpec> resnet50() {
  std::ifstream file(RESNET50);
  std::string line;
  std::getline(file, line);
  std::vector<TensorSpec> specs;
  while (std::getline(file, line))
    specs.push_back({{std::stoll(line.substr(line.find(',') + 1))}, DType::kFloat32});
  return specs;
}

const std::vector<std::vector<TensorSpec>> kModels{
    resnet50(),
    {{{1 << 20}, DType::kFloat32}},
    {{{30000000}, DType::kFloat32}, {{20001}, DType::kBFloat16}},
    {{{7}, DType::kFloat32}, {{0}, DType::kFloat32}, {{}, DType::kFloat64}},
    {},
};

TEST(SharePlan, GivesEachElementToOneReplica) {
  for (const std::vector<TensorSpec>& model : kModels) {
    for (const int replicas : {1, 2, 3, 4, 7, 64}) {
      const SharePlan plan(model, replicas);
      std::vector<std::map<std::int64_t, std::int64_t>> taken(model.size());
      for (int replica = 0; replica < replicas; ++replica) {
        for (const SharePart& part : plan.parts_of(replica)) {
          EXPECT_LT(part.begin, part.end);
          EXPECT_TRUE(taken[part.variable].emplace(part.begin, part.end).second);
          EXPECT_EQ(part.begin % static_cast<std::int64_t>(kSquaresBlock), 0) << "blocks are whole";
        }
      }
      for (std::size_t v = 0; v < model.size(); ++v) {
        std::int64_t next = 0;
        for (const auto& [begin, end] : taken[v]) {
          EXPECT_EQ(begin, next);
          next = end;
        }
        EXPECT_EQ(next, static_cast<std::int64_t>(model[v].elements()));
      }
    }
  }
}

TEST(SharePlan, DividesLargeModelsEvenly) {
  for (std::size_t model = 0; model < 2; ++model) {
    std::int64_t all = 0;
    for (const TensorSpec& spec : kModels[model]) all += static_cast<std::int64_t>(spec.elements());
    for (const int replicas : {2, 3, 4, 7}) {
      const SharePlan plan(kModels[model], replicas);
      for (int replica = 0; replica < replicas; ++replica)
        EXPECT_LE(static_cast<double>(elements_of(plan.parts_of(replica))),
                  1.005 * static_cast<double>(all) / replicas);
    }
  }
}

TEST(SharePlan, PutsPartsOfAPackSideBySide) {
  for (const std::vector<TensorSpec>& model : kModels) {
    for (const int replicas : {2, 3, 7}) {
      const SharePlan plan(model, replicas);
      for (const SharedPack& pack : plan.packs()) {
        std::int64_t next = 0;
        for (const PackedPart& part : pack.parts) {
          EXPECT_GE(part.place, next);
          next = part.place + part.end - part.begin;
          EXPECT_GE(part.place, part.replica * pack.room);
          EXPECT_LE(next, (part.replica + 1) * pack.room);
          EXPECT_EQ(model[part.variable].dtype, pack.dtype);
        }
      }
    }
  }
}

TEST(BlockSquares, AreTheSameWhereverABlockIs) {
  const std::size_t elements = 3 * kSquaresBlock + 5;
  Tensor gradient = Tensor::uninitialized({static_cast<std::int64_t>(elements)}, DType::kFloat32);
  for (std::size_t i = 0; i < elements; ++i) gradient.span<float>()[i] = 1 / (1 + static_cast<float>(i % 97));
  std::vector<double> sums(blocks_of(elements));
  block_squares(gradient, sums);
  for (std::size_t block = 0; block < sums.size(); ++block) {
    constexpr auto kBlock = static_cast<std::int64_t>(kSquaresBlock);
    const std::int64_t begin = static_cast<std::int64_t>(block) * kBlock;
    double sum = 0;
    block_squares(gradient.rows(begin, std::min(begin + kBlock, gradient.shape()[0])), {&sum, 1});
    EXPECT_EQ(sum, sums[block]);
  }
  double plain = 0;
  for (const float element : gradient.span<float>()) plain += static_cast<double>(element) * element;
  EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0), plain, 1e-9);
}

}  // namespace
}  // namespace cohort
