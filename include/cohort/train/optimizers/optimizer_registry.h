// Optimizers that parameter servers know: a server makes its own from the name of the class and the options
// that a worker sends. Every task runs the same program, so all of them know the same classes.
//
//     struct RmsOptions { double learning_rate = 0.001; };              // trivially copyable
//     class Rms final : public RegisteredOptimizer<Rms, RmsOptions> {
//      public:
//       static constexpr std::string_view kName = "Rms";
//       explicit Rms(RmsOptions options = {}) : RegisteredOptimizer(options, {"mean_square"}) {}
//      private:
//       void update(...) const override;                          // by all that its arguments say
//     };
//     COHORT_REGISTER_OPTIMIZER(Rms)                                    // once, in a source file
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/train/optimizers/optimizer.h>

namespace cohort {

using OptimizerMaker = std::unique_ptr<Optimizer> (*)(std::span<const std::byte> options);

/// Makes a class known; before `main`, once for each name. The program ends if two have one name.
bool register_optimizer(std::string_view type, OptimizerMaker make);

/// @throws InvalidArgument for a type that is not registered, naming it, and for options of another size.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerRecipe& recipe);

namespace detail {
[[noreturn]] void throw_wrong_options(std::string_view type, std::size_t bytes, std::size_t expected);
}

/// An optimizer of class `Derived`, whose constructor takes `Options`, among them the `learning_rate` with
/// which it begins.
template <class Derived, class Options>
class RegisteredOptimizer : public Optimizer {
  static_assert(std::is_trivially_copyable_v<Options>, "options of an optimizer travel to servers as bytes");

 public:
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  /// What COHORT_REGISTER_OPTIMIZER registers.
  static std::unique_ptr<Optimizer> make(std::span<const std::byte> bytes) {
    Options options;
    OfStep of_step;
    if (bytes.size() != sizeof options + sizeof of_step)
      detail::throw_wrong_options(Derived::kName, bytes.size(), sizeof options + sizeof of_step);
    std::memcpy(&options, bytes.data(), sizeof options);
    std::memcpy(&of_step, bytes.data() + sizeof options, sizeof of_step);
    auto optimizer = std::make_unique<Derived>(options);
    optimizer->set_learning_rate(of_step.learning_rate);
    optimizer->set_update_options({.weight_decay = of_step.weight_decay});
    return optimizer;
  }

 protected:
  explicit RegisteredOptimizer(const Options& options, std::vector<std::string> slot_names = {},
                               std::vector<double> beginnings = {})
      : Optimizer(options.learning_rate, std::move(slot_names), std::move(beginnings)), options_(options) {}

  [[nodiscard]] OptimizerRecipe recipe(double learning_rate) const final {
    const OfStep of_step{.learning_rate = learning_rate, .weight_decay = update_options().weight_decay};
    OptimizerRecipe recipe{std::string(Derived::kName),
                           std::vector<std::byte>(sizeof options_ + sizeof of_step)};
    std::memcpy(recipe.options.data(), &options_, sizeof options_);
    std::memcpy(recipe.options.data() + sizeof options_, &of_step, sizeof of_step);
    return recipe;
  }

 private:
  /// What goes to a server beside the options. A rate may be 0 in a step, where the options' is positive.
  struct OfStep {
    double learning_rate = 0;
    double weight_decay = 0;
  };

  Options options_;
};

}  // namespace cohort

/// Makes the class known to parameter servers. At file scope, once, in a source file.
#define COHORT_REGISTER_OPTIMIZER(Class)                         \
  [[maybe_unused]] static const bool cohort_registered_##Class = \
      ::cohort::register_optimizer(Class::kName, Class::make);
