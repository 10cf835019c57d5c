#include "server/server_variables.h"

#include <utility>

namespace cohort::server {

std::shared_ptr<VariableState> ServerVariables::make(VariableOptions options, const Tensor& initial_value,
                                                     const VariableState* beside,
                                                     std::shared_ptr<VariableOwner> owner) {
  if (client_ == nullptr)
    throw WrongContext("variable '{}' is made on a parameter server: such a task only calls serve()",
                       options.name);
  const auto* neighbour = dynamic_cast<const ServerVariable*>(beside);
  int server = 0;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = variables_.size();
    server = neighbour != nullptr
                 ? neighbour->place().server
                 : static_cast<int>(turn_++ % static_cast<std::uint64_t>(client_->connections().servers()));
  }
  const VariableIndex index = client_->make(server, number, options.name, initial_value.shape(),
                                            initial_value.dtype(), gives_values_ ? &initial_value : nullptr);
  auto variable =
      std::make_shared<ServerVariable>(std::move(options), std::move(owner), initial_value.shape(),
                                       initial_value.dtype(), number, client_, VariablePlace{server, index});
  const std::lock_guard lock(mutex_);
  variables_.push_back(variable);
  return variable;
}

std::uint64_t ServerVariables::size() const {
  const std::lock_guard lock(mutex_);
  return variables_.size();
}

std::vector<std::byte> ServerVariables::describe_from(std::uint64_t first) const {
  const std::lock_guard lock(mutex_);
  Encoder encoder;
  encoder.number(first);
  encoder.number(variables_.size() - first);
  for (std::uint64_t number = first; number < variables_.size(); ++number) {
    const ServerVariable& variable = *variables_[number];
    encoder.text(variable.options().name);
    encoder.number(variable.dtype());
    encoder.shape(variable.shape());
    encoder.number(variable.options().aggregation);
    encoder.number(*variable.options().trainable);
    encoder.number(variable.place());
  }
  return encoder.take();
}

void ServerVariables::learn(std::span<const std::byte> description, VariableOwner& owner) {
  Decoder decoder(description);
  const auto first = decoder.number<std::uint64_t>();
  const std::size_t count = decoder.count();
  const std::lock_guard lock(mutex_);
  for (std::uint64_t number = first; number < first + count; ++number) {
    VariableOptions options;
    options.name = decoder.text();
    const DType dtype = decoder.dtype();
    const Shape shape = decoder.shape();
    options.aggregation = decoder.number<VariableAggregation>();
    options.trainable = decoder.number<bool>();
    const auto place = decoder.number<VariablePlace>();
    if (number != variables_.size()) continue;  // known already
    variables_.push_back(std::make_shared<ServerVariable>(std::move(options), owner.share(), shape, dtype,
                                                          number, client_, place));
  }
}

Variable ServerVariables::variable(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (number >= variables_.size())
    throw InvalidArgument("there is no variable {} in this job, which has {}", number, variables_.size());
  return Variable(variables_[number]);
}

}  // namespace cohort::server
