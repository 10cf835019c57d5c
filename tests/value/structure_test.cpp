#include <cohort/value/structure.h>

#include <string>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

struct Point {
  double x = 0;
  double y = 0;
};
COHORT_FIELDS(Point, x, y)

struct Line {
  Point from;
  std::vector<Point> corners;
  std::optional<Point> to;
};
COHORT_FIELDS(Line, from, corners, to)

struct Single {
  Tensor only;
};
COHORT_FIELDS(Single, only)

// The macro has no names that a field may have.
struct Reading {
  float value;
  std::vector<int> fields;
};
COHORT_FIELDS(Reading, value, fields)

/// All leaves as numbers, in the order in which they are walked.
template <class Structure>
std::vector<double> leaves(const Structure& structure) {
  std::vector<double> found;
  for_each_leaf(
      [&]<class L>(const L& leaf) {
        if constexpr (std::is_same_v<L, Tensor>)
          found.push_back(leaf.template item<double>());
        else
          found.push_back(convert_element<double>(leaf));
      },
      structure);
  return found;
}

/// Walks two structures side by side and adds up each pair of leaves.
template <class Structure>
std::vector<double> pairwise_sums(const Structure& a, const Structure& b) {
  std::vector<double> sums;
  for_each_leaf([&](const auto& x, const auto& y) { sums.push_back(x + y); }, a, b);
  return sums;
}

auto walking(auto a, auto b) {
  return [a, b] { return pairwise_sums(a, b); };
}

TEST(Structure, MayBeASingleLeaf) {
  EXPECT_THAT(leaves(Tensor::scalar(4.0)), ElementsAre(4));
  EXPECT_THAT(leaves(std::int8_t{-3}), ElementsAre(-3));
  EXPECT_THAT(leaves(float16(1.5f)), ElementsAre(1.5));
  EXPECT_THAT(leaves(true), ElementsAre(1));
}

TEST(Structure, IsWalkedInOrder) {
  EXPECT_THAT(leaves(std::tuple(1, 2.5, std::uint8_t{3})), ElementsAre(1, 2.5, 3));
  EXPECT_THAT(leaves(std::pair(1.0f, Tensor::scalar(2.0f))), ElementsAre(1, 2));
  EXPECT_THAT(leaves(std::vector{3, 1, 2}), ElementsAre(3, 1, 2));
  EXPECT_THAT(leaves(std::array{3.0, 1.0}), ElementsAre(3, 1));
  EXPECT_THAT(leaves(std::map<std::string, int>{{"b", 2}, {"a", 1}}), ElementsAre(1, 2)) << "by key";
  EXPECT_THAT(leaves(std::optional(5)), ElementsAre(5));
  EXPECT_THAT(leaves(Point{1, 2}), ElementsAre(1, 2));
}

TEST(Structure, MayBeEmpty) {
  EXPECT_THAT(leaves(std::tuple<>()), IsEmpty());
  EXPECT_THAT(leaves(std::vector<Tensor>()), IsEmpty());
  EXPECT_THAT(leaves(std::map<int, float>()), IsEmpty());
  EXPECT_THAT(leaves(std::optional<double>()), IsEmpty());
  EXPECT_THAT(leaves(std::array<int, 0>()), IsEmpty());
}

TEST(Structure, MayBeNestedAtWill) {
  const Line line{{1, 2}, {{3, 4}, {5, 6}}, Point{7, 8}};
  EXPECT_THAT(leaves(line), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(leaves(Line{}), ElementsAre(0, 0));
  std::map<int, std::tuple<std::vector<Line>, std::optional<Single>>> deep;
  deep[1] = {std::vector{line, Line{}}, Single{Tensor::scalar(9)}};
  deep[2] = {std::vector<Line>(), std::nullopt};
  EXPECT_THAT(leaves(deep), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 9));
}

TEST(Structure, GivesItsLeavesForWriting) {
  Line line{{1, 2}, {{3, 4}}, std::nullopt};
  for_each_leaf([](double& leaf) { leaf *= 10; }, line);
  EXPECT_THAT(leaves(line), ElementsAre(10, 20, 30, 40));
}

TEST(Structure, IsWalkedSideBySideWithOthers) {
  EXPECT_THAT(pairwise_sums(std::tuple(1, 2), std::tuple(10, 20)), ElementsAre(11, 22));
  EXPECT_THAT(pairwise_sums(std::map<int, int>{{1, 1}, {2, 2}}, {{1, 10}, {2, 20}}), ElementsAre(11, 22));
  EXPECT_THAT(pairwise_sums(Line{{1, 2}, {{3, 4}}, Point{5, 6}}, Line{{10, 20}, {{30, 40}}, Point{50, 60}}),
              ElementsAre(11, 22, 33, 44, 55, 66));

  std::vector<double> target{1, 2};
  const std::vector<double> first{10, 20};
  const std::vector<double> second{100, 200};
  for_each_leaf([](double& to, const double& a, const double& b) { to += a + b; }, target, first, second);
  EXPECT_THAT(target, ElementsAre(111, 222));
}

TEST(Structures, ThatDifferInLengthAreNamed) {
  EXPECT_THAT(walking(std::vector{1, 2}, std::vector{1}),
              ThrowsMessage<InvalidArgument>(HasSubstr("vectors of different length (2 in the first)")));
  EXPECT_THROW(walking(std::vector<int>(), std::vector{1})(), InvalidArgument);
}

TEST(Structures, ThatDifferInKeysAreNamed) {
  using Map = std::map<int, double>;
  for (const auto& [a, b] : {std::pair<Map, Map>{{{1, 0}}, {{2, 0}}},
                             {{{1, 0}}, {}},
                             {{}, {{1, 0}}},
                             {{{1, 0}}, {{1, 0}, {2, 0}}}}) {
    EXPECT_THAT(walking(a, b), ThrowsMessage<InvalidArgument>(HasSubstr("maps with different keys")));
  }
}

TEST(Structures, ThatDifferInPresenceAreNamed) {
  using Maybe = std::optional<double>;
  EXPECT_THAT(walking(Maybe(1), Maybe()), ThrowsMessage<InvalidArgument>(HasSubstr("an optional is empty")));
  EXPECT_THROW(walking(Maybe(), Maybe(1))(), InvalidArgument);
  EXPECT_THROW(walking(Line{{}, {}, Point{}}, Line{})(), InvalidArgument) << "also deep inside";
}

TEST(MapStructure, MakesACopyWithOtherLeaves) {
  const Line line{{1, 2}, {{3, 4}}, std::nullopt};
  const Line doubled = map_structure([](double leaf) { return 2 * leaf; }, line);
  EXPECT_THAT(leaves(doubled), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(leaves(line), ElementsAre(1, 2, 3, 4));
}

TEST(MapStructure, ReplacesTensorsByOthers) {
  const std::vector<Tensor> tensors{Tensor::from({1.0f, 2.0f}), Tensor::from({3.0f, 4.0f})};
  const auto first = map_structure([](const Tensor& tensor) { return tensor.row(0); }, tensors);
  EXPECT_THAT(leaves(first), ElementsAre(1, 3));
  EXPECT_EQ(tensors[0].shape(), Shape{2});
}

TEST(StructureFingerprint, DependsOnKeysLengthsAndPresenceAlone) {
  using Map = std::map<std::string, double>;
  EXPECT_EQ(structure_fingerprint(Map{{"a", 1}}), structure_fingerprint(Map{{"a", 2}}));
  EXPECT_EQ(structure_fingerprint(Tensor::scalar(1.0)), structure_fingerprint(Tensor::from({1.0, 2.0})))
      << "shapes are compared elsewhere";
  EXPECT_NE(structure_fingerprint(Map{{"a", 1}}), structure_fingerprint(Map{{"b", 1}}));
  EXPECT_NE(structure_fingerprint(std::vector{1, 2}), structure_fingerprint(std::vector{1}));
  EXPECT_NE(structure_fingerprint(std::optional(1)), structure_fingerprint(std::optional<int>()));
  EXPECT_NE(structure_fingerprint(std::map<int, int>{{1, 0}}),
            structure_fingerprint(std::map<int, int>{{2, 0}}));
  EXPECT_EQ(structure_fingerprint(Line{}), structure_fingerprint(Line{{1, 2}, {}, std::nullopt}));
  EXPECT_NE(structure_fingerprint(Line{}), structure_fingerprint(Line{{}, {}, Point{}}));
}

TEST(StructureFingerprint, KnowsInWhichContainerALeafIs) {
  using Maps = std::pair<std::map<std::string, int>, std::map<std::string, int>>;
  EXPECT_NE(structure_fingerprint(Maps{{{"a", 0}, {"b", 0}}, {}}),
            structure_fingerprint(Maps{{{"a", 0}}, {{"b", 0}}}));
  using Vectors = std::pair<std::vector<int>, std::vector<int>>;
  EXPECT_NE(structure_fingerprint(Vectors{{0, 0}, {}}), structure_fingerprint(Vectors{{0}, {0}}));
  using Optionals = std::pair<std::optional<int>, std::optional<int>>;
  EXPECT_NE(structure_fingerprint(Optionals{0, {}}), structure_fingerprint(Optionals{{}, 0}));
  using Names = std::map<std::string, std::map<std::string, int>>;
  EXPECT_NE(structure_fingerprint(Names{{"ab", {{"c", 0}}}}),
            structure_fingerprint(Names{{"a", {{"bc", 0}}}}));
}

TEST(StructureFingerprint, TellsSparseLeavesFromDenseOnes) {
  EXPECT_NE(structure_fingerprint(std::vector<IndexedSlices>(1)),
            structure_fingerprint(std::vector<Tensor>(1)));
}

TEST(Leaf, IsATensorIndexedSlicesOrANumber) {
  static_assert(detail::Leaf<Tensor> && detail::Leaf<IndexedSlices> && detail::Leaf<float> &&
                detail::Leaf<bool> && detail::Leaf<bfloat16>);
  static_assert(!detail::Leaf<std::string> && !detail::Leaf<std::vector<Tensor>> && !detail::Leaf<Point>);
}

}  // namespace
}  // namespace cohort
