#include "server_variables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "value/thread_scopes.h"
#include "value/variable_kinds.h"

namespace cohort::server {

ServerVariable::ServerVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                               const Shape& shape, DType dtype, std::uint64_t number,
                               std::shared_ptr<Client> client, VariablePlace place)
    : AggregatingVariable(std::move(options), std::move(owner), shape, dtype, number),
      client_(std::move(client)),
      place_(place) {}

bool ServerVariable::is_shared_here() const {
  return current_mode().kind == ContextKind::kReplica && strategy().local_replicas() > 1;
}

Wanted ServerVariable::wanted(std::optional<Tensor> rows) const {
  return {place_.server, place_.index, shape(), dtype(), std::move(rows)};
}

Tensor ServerVariable::read_across() const {
  ReadCache* const cache = thread_scopes().cache;
  if (cache == nullptr) return client_->read(wanted());
  if (std::optional<Tensor> value = cache->find(*this)) return std::move(*value);
  return cache->keep(*this, client_->read(wanted()));
}

void ServerVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  if (is_shared_here()) return assign_in_replica(update, value, current_mode().local_replica);
  write(update, value);
}

void ServerVariable::scatter_across(const RowUpdate& update, const IndexedSlices& rows) const {
  if (is_shared_here()) return scatter_in_replica(update, rows, current_mode().local_replica);
  write_rows(update, rows);
}

void ServerVariable::write(const ElementUpdate& update, const Tensor& value) const {
  client_->write(place_.server,
                 {place_.index, kind_of(update.operation.name), value, {}, {}, Write::kNotRead});
}

void ServerVariable::write_rows(const RowUpdate& update, const IndexedSlices& rows) const {
  client_->write(place_.server, {place_.index,
                                 kind_of(update.operation.name),
                                 rows.values,
                                 rows.indices.on_host().cast(DType::kInt64),
                                 {},
                                 Write::kNotRead});
}

void ServerVariable::apply_elsewhere(const OptimizerRecipe& optimizer, const TensorOrSlices& gradient) const {
  if (const auto* rows = std::get_if<IndexedSlices>(&gradient)) {
    client_->write(place_.server, {place_.index, WriteKind::kOptimizeRows, rows->values,
                                   rows->indices.on_host().cast(DType::kInt64), optimizer,
                                   client_->last_read(place_.server, place_.index)});
  } else {
    client_->write(place_.server, {place_.index,
                                   WriteKind::kOptimize,
                                   std::get<Tensor>(gradient),
                                   {},
                                   optimizer,
                                   client_->last_read(place_.server, place_.index)});
  }
}

Tensor ServerVariable::read_slot_elsewhere(std::uint8_t slot) const {
  Wanted slot_wanted = wanted();
  slot_wanted.slot = slot;
  if (slot == kSteps) {
    slot_wanted.shape = {};
    slot_wanted.dtype = DType::kInt64;
  }
  return client_->read(slot_wanted);
}

void ServerVariable::assign_slot_elsewhere(std::uint8_t slot, const Tensor& value) const {
  Write write{.variable = place_.index, .kind = WriteKind::kAssignSlot, .value = value};
  write.slot = slot;
  client_->write(place_.server, write);
}

ClusterTask giver_of_values(const remote::TaskPlace& place) {
  const bool has_chief = std::ranges::any_of(
      place.addresses, [](const remote::Address& address) { return address.task.type == "chief"; });
  return has_chief ? ClusterTask{"chief", 0} : ClusterTask{"worker", 0};
}

ServerVariables::ServerVariables(std::shared_ptr<Client> client, bool gives_values, Partitioner partitioner)
    : client_(std::move(client)),
      gives_values_(gives_values),
      placer_(std::move(partitioner), client_ == nullptr ? 1 : client_->connections().servers()) {
  if (client_ != nullptr)
    client_->connections().name_variables_by(
        [this](int server, std::span<const VariableIndex> some) { return names_on(server, some); });
}

// Variables and results may keep the client for longer.
ServerVariables::~ServerVariables() {
  if (client_ != nullptr) client_->connections().name_variables_by(nullptr);
}

std::string ServerVariables::names_on(int server, std::span<const VariableIndex> some) const {
  constexpr int kMostNames = 20;
  const std::lock_guard lock(mutex_);
  std::string names;
  int count = 0;
  for (const auto& [number, known] : known_) {
    if (known.place.server != server) continue;
    if (!some.empty() && std::ranges::find(some, known.place.index) == some.end()) continue;
    if (++count > kMostNames) continue;
    // Without a name of their own they all have the same.
    const bool has_name = known.options.name != VariableOptions().name;
    names += (names.empty() ? "" : ", ") +
             (has_name ? known.options.name : fmt::format("{} {}", known.options.name, number));
  }
  return count <= kMostNames ? names : fmt::format("{} and {} more", names, count - kMostNames);
}

std::shared_ptr<VariableState> ServerVariables::make(VariableOptions options, const Tensor& initial_value,
                                                     const VariableState* beside,
                                                     std::shared_ptr<VariableOwner> owner) {
  if (client_ == nullptr)
    throw WrongContext("variable '{}' is made on a parameter server: such a task only calls serve()",
                       options.name);
  if (runs_functions_.load()) {
    throw WrongContext(
        "variable '{}' is made in a function that a worker runs, in the scope of its strategy: have the "
        "chief make it and pass it to functions among their arguments; a variable of this worker alone is "
        "made outside the scope",
        options.name);
  }
  const auto* neighbour = dynamic_cast<const ServerVariable*>(beside);
  VariablePlace place;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_number_++;
    place.server = neighbour != nullptr ? neighbour->place().server : placer_.next_server();
  }
  place.index = client_->make(place.server, number, options.name, initial_value.shape(),
                              initial_value.dtype(), gives_values_ ? &initial_value : nullptr);
  const std::lock_guard lock(mutex_);
  known_.emplace(number, Known{options, initial_value.shape(), initial_value.dtype(), place, nullptr});
  made_.push_back(number);
  return std::make_shared<ServerVariable>(std::move(options), std::move(owner), initial_value.shape(),
                                          initial_value.dtype(), number, client_, place);
}

std::size_t ServerVariables::size() const {
  const std::lock_guard lock(mutex_);
  return made_.size();
}

std::vector<std::byte> ServerVariables::describe_from(std::size_t first) const {
  const std::lock_guard lock(mutex_);
  Encoder encoder;
  encoder.number(made_.size() - first);
  for (std::size_t i = first; i < made_.size(); ++i) {
    const Known& known = known_.at(made_[i]);
    encoder.number(made_[i]);
    encoder.text(known.options.name);
    encoder.number(known.dtype);
    encoder.shape(known.shape);
    encoder.number(known.options.aggregation);
    encoder.number(*known.options.trainable);
    encoder.number(known.place);
  }
  return encoder.take();
}

void ServerVariables::learn(std::span<const std::byte> description, VariableOwner& owner) {
  Decoder decoder(description);
  const std::lock_guard lock(mutex_);
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const auto number = decoder.number<std::uint64_t>();
    VariableOptions options;
    options.name = decoder.text();
    const DType dtype = decoder.dtype();
    const Shape shape = decoder.shape();
    options.aggregation = decoder.number<VariableAggregation>();
    options.trainable = decoder.number<bool>();
    const auto place = decoder.number<VariablePlace>();
    auto learned =
        std::make_shared<ServerVariable>(options, owner.share(), shape, dtype, number, client_, place);
    known_.emplace(number, Known{std::move(options), shape, dtype, place, std::move(learned)});
  }
}

void ServerVariables::forget_learned() {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.learned != nullptr; });
}

Variable ServerVariables::variable(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(number);
  if (found != known_.end() && found->second.learned != nullptr) return Variable(found->second.learned);
  throw InvalidArgument("there is no variable {} that this task was told of", number);
}

}  // namespace cohort::server
