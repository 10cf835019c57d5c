// A recommender with two tables, a row for each user and one for each film, cut into shards over the
// parameter servers. A rating is the product of two rows. A step looks up the rows of its ratings, and
// changes these alone, so what travels does not depend on how large the tables are.
//
// Ratings come from hidden rows, which the training finds again. The chief schedules the steps:
//
//     launch/cohort-run --roles chief=1,worker=2,ps=2 build/bin/embedding
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include <cohort/cohort.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "../page.h"

namespace {

using namespace cohort;

constexpr std::int64_t kUsers = 300, kFilms = 200, kWidth = 4;
constexpr int kBatch = 200, kSteps = 600;
constexpr float kLearningRate = 0.1F;

Tensor random_rows(std::int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  Tensor table = Tensor::uninitialized({rows, kWidth}, DType::kFloat32);
  for (float& value : table.span<float>()) value = static_cast<float>(random()) / 4294967296.0F;
  return table;
}

float product(std::span<const float> users, std::span<const float> films, std::size_t user,
              std::size_t film) {
  float sum = 0;
  for (std::size_t i = 0; i < kWidth; ++i) sum += users[user * kWidth + i] * films[film * kWidth + i];
  return sum;
}

/// Ratings of films by users, as many as asked for, in an order that each worker draws for itself.
struct Ratings {
  std::mt19937 random;
  Tensor hidden_users = random_rows(kUsers, 1);
  Tensor hidden_films = random_rows(kFilms, 2);
};

Ratings make_ratings(const InputContext& worker, unsigned seed) {
  return {std::mt19937(seed + static_cast<unsigned>(worker.input_pipeline_id))};
}

/// Half the mean of the squared errors on some ratings, from which the step learns.
float train_step(const ShardedVariable& users, const ShardedVariable& films, Ratings& ratings) {
  std::vector<std::int64_t> who(kBatch), what(kBatch);
  for (std::int64_t& user : who) user = static_cast<std::int64_t>(ratings.random() % kUsers);
  for (std::int64_t& film : what) film = static_cast<std::int64_t>(ratings.random() % kFilms);
  const Tensor user_rows = embedding_lookup(users, Tensor::from(who));
  const Tensor film_rows = embedding_lookup(films, Tensor::from(what));
  const auto u = user_rows.span<const float>();
  const auto f = film_rows.span<const float>();
  Tensor user_change = Tensor::uninitialized(user_rows.shape(), DType::kFloat32);
  Tensor film_change = Tensor::uninitialized(film_rows.shape(), DType::kFloat32);
  float loss = 0;
  for (std::size_t i = 0; i < kBatch; ++i) {
    const float rating =
        product(ratings.hidden_users.span<const float>(), ratings.hidden_films.span<const float>(),
                static_cast<std::size_t>(who[i]), static_cast<std::size_t>(what[i]));
    const float error = product(u, f, i, i) - rating;
    loss += error * error / (2 * kBatch);
    for (std::size_t j = i * kWidth; j < (i + 1) * kWidth; ++j) {
      user_change.span<float>()[j] = kLearningRate * error * f[j];
      film_change.span<float>()[j] = kLearningRate * error * u[j];
    }
  }
  // A row that is named twice changes by the sum.
  users.scatter_sub({user_change, Tensor::from(who), users.shape()});
  films.scatter_sub({film_change, Tensor::from(what), films.shape()});
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = end_at_arguments(
          argc, argv, "embedding: learns ratings with tables on parameter servers, under cohort-run --roles"))
    return *status;
  const TaskClusterResolver cluster;
  const ParameterServerStrategy strategy(cluster.place(),
                                         {.variable_partitioner = FixedShardsPartitioner(4)});
  if (strategy.task().type != "chief") return serve(strategy);

  const auto scope = strategy.scope();
  const ShardedVariable users({.name = "users", .initial_value = random_rows(kUsers, 3)});
  const ShardedVariable films({.name = "films", .initial_value = random_rows(kFilms, 4)});
  const ClusterCoordinator coordinator(strategy);
  const auto ratings = coordinator.create_per_worker<make_ratings>(5U);
  const float before = coordinator.schedule<train_step>(users, films, ratings).get();
  std::vector<RemoteValue<float>> losses;
  for (int step = 1; step < kSteps; ++step)
    losses.push_back(coordinator.schedule<train_step>(users, films, ratings));
  coordinator.join();
  const float after = losses.back().get();
  std::printf("loss %.4f before %d steps, %.4f after them: %s\n", static_cast<double>(before), kSteps,
              static_cast<double>(after), after < before / 10 ? "learnt" : "not learnt");
}
