// A store beside a plain model of it, through thousands of random operations.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/store/store.h"

namespace cohort::server {
namespace {

using Bytes = std::vector<std::byte>;

struct ModelVariable {
  Shape shape;
  DType dtype;
  std::vector<Bytes> tensors;  ///< the value, then the slots
  std::uint64_t version = 0;
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  void step() {
    const std::size_t choice = below(100);
    if (variables_.empty() || choice < 3) return create(variables_);
    if (choice < 5) return require_slots();
    if (choice < 7) return forget();
    if (choice < 8) return fence();
    if (choice < 11) return restart();
    change_some(choice < 30);
  }

  void check() const {
    ASSERT_EQ(store_->size(), variables_.size());
    for (VariableIndex index = 0; index < variables_.size(); ++index) {
      const ModelVariable& variable = variables_[index];
      ASSERT_EQ(store_->version(index), variable.version);
      ASSERT_EQ(store_->slots(index) + 1, variable.tensors.size());
      ASSERT_EQ(raw(store_->value(index)), variable.tensors[0]);
      for (std::size_t slot = 1; slot < variable.tensors.size(); ++slot)
        ASSERT_EQ(raw(store_->slot(index, slot - 1)), variable.tensors[slot]);
      Bytes read(variable.tensors[0].size());
      ASSERT_EQ(reader_->read(index, read), variable.version);
      ASSERT_EQ(read, variable.tensors[0]);
    }
    for (const auto& [execution, result] : commits_) {
      const auto found = store_->find_commit(execution);
      ASSERT_TRUE(found && found->result == result);
    }
    for (std::uint64_t incarnation = 0; incarnation < kIncarnations; ++incarnation) {
      ASSERT_EQ(store_->is_fenced(incarnation), fenced_.contains(incarnation));
      const auto count = std::ranges::count_if(
          commits_, [&](const auto& commit) { return commit.first.incarnation == incarnation; });
      ASSERT_EQ(store_->commits_of(incarnation).size(), static_cast<std::size_t>(count));
    }
  }

 private:
  static constexpr std::uint64_t kIncarnations = 40;

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  static Bytes raw(const Tensor& tensor) { return {tensor.raw().begin(), tensor.raw().end()}; }

  void create(std::vector<ModelVariable>& variables) {
    static const std::array kShapes{Shape{},   Shape{1},       Shape{0, 4},  Shape{7, 3},
                                    Shape{64}, Shape{5, 2, 9}, Shape{300, 4}};
    const Shape& shape = kShapes[below(kShapes.size())];
    const DType dtype = kAllDTypes[below(kAllDTypes.size())];
    const std::size_t slots = below(3);
    const auto index = store_->create(fmt::format("variable {}", variables.size()), shape, dtype, slots);
    ASSERT_EQ(index, variables.size());
    variables.push_back(
        {shape, dtype, std::vector<Bytes>(slots + 1, Bytes(shape.elements() * size_of(dtype)))});
  }

  void require_slots() {
    const std::size_t index = below(variables_.size());
    const std::size_t slots = below(5);
    store_->require_slots(static_cast<VariableIndex>(index), slots);
    std::vector<Bytes>& tensors = variables_[index].tensors;
    if (tensors.size() < slots + 1) tensors.resize(slots + 1, Bytes(tensors[0].size()));
  }

  void forget() {
    const std::uint64_t incarnation = below(kIncarnations);
    const std::uint64_t number = below(number_ + 1);
    store_->forget(incarnation, number);
    std::erase_if(commits_, [&](const auto& commit) {
      return commit.first.incarnation == incarnation && commit.first.number <= number;
    });
  }

  void fence() {
    const std::uint64_t incarnation = below(kIncarnations / 2);
    store_->fence(incarnation);
    fenced_.insert(incarnation);
  }

  /// Another process goes on from the memory.
  void restart() {
    auto next = std::make_unique<Store>(store_->descriptor());
    store_ = std::move(next);
  }

  void change_some(bool abandons) {
    std::vector<ModelVariable> changed = variables_;
    store_->begin();
    for (std::size_t changes = below(6); changes > 0; --changes) {
      if (below(10) == 0) create(changed);
      const std::size_t index = below(changed.size());
      if (below(2) == 0) {
        overwrite(index, changed[index]);
      } else {
        change_rows(index, changed[index]);
      }
      changed[index].version = 1 + (index < variables_.size() ? variables_[index].version : 0);
    }
    const Execution execution{below(kIncarnations), ++number_};
    if (abandons) return store_->abandon();
    if (below(2) == 0) {
      store_->commit();
    } else {
      const Bytes result(below(3) == 0 ? below(20000) : 0, static_cast<std::byte>(number_));
      store_->commit(execution, result);
      commits_[execution] = result;
    }
    variables_ = std::move(changed);
  }

  static std::vector<Tensor> all(const Tensor& value, const std::vector<Tensor>& slots) {
    std::vector<Tensor> tensors{value};
    tensors.insert(tensors.end(), slots.begin(), slots.end());
    return tensors;
  }

  void write(std::span<std::byte> to, std::span<std::byte> model) {
    for (std::size_t at = 0; at < to.size(); ++at) to[at] = model[at] = static_cast<std::byte>(below(256));
  }

  void overwrite(std::size_t index, ModelVariable& variable) {
    const Store::Change change = store_->overwrite(static_cast<VariableIndex>(index));
    const std::vector<Tensor> old = all(change.old_value, change.old_slots);
    const std::vector<Tensor> fresh = all(change.fresh_value, change.fresh_slots);
    ASSERT_EQ(fresh.size(), variable.tensors.size());
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      ASSERT_EQ(raw(old[i]), variable.tensors[i]);
      write(fresh[i].raw(), variable.tensors[i]);
    }
  }

  void change_rows(std::size_t index, ModelVariable& variable) {
    const std::size_t count = variable.shape.rank() == 0 ? 0 : static_cast<std::size_t>(variable.shape[0]);
    std::vector<std::int64_t> rows(count == 0 ? 0 : below(std::min<std::size_t>(count * 2, 20)));
    for (std::int64_t& row : rows) row = static_cast<std::int64_t>(below(count));
    const Store::Change change = store_->change_rows(static_cast<VariableIndex>(index), rows);
    const std::vector<Tensor> old = all(change.old_value, change.old_slots);
    const std::vector<Tensor> fresh = all(change.fresh_value, change.fresh_slots);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      ASSERT_EQ(raw(old[i]), variable.tensors[i]);
      ASSERT_EQ(raw(fresh[i]), variable.tensors[i]);
      for (const std::int64_t row : rows) {
        const std::size_t bytes = variable.tensors[i].size() / count;
        const std::size_t at = static_cast<std::size_t>(row) * bytes;
        write(fresh[i].raw().subspan(at, bytes), std::span(variable.tensors[i]).subspan(at, bytes));
      }
    }
  }

  std::mt19937 random_;
  std::unique_ptr<Store> store_ = std::make_unique<Store>();
  std::unique_ptr<StoreReader> reader_ = std::make_unique<StoreReader>(store_->descriptor());
  std::vector<ModelVariable> variables_;
  std::map<Execution, Bytes> commits_;
  std::set<std::uint64_t> fenced_;
  std::uint64_t number_ = 0;
};

TEST(StoreModel, IsEqualAfterEachOperation) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Model model(seed);
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, step));
      model.step();
      if (::testing::Test::HasFatalFailure()) return;
      model.check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cohort::server
