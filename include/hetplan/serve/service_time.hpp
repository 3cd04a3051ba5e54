// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Service times: the time that a service computes on the GPUs of a variant.

#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

struct service_run {
  const service& what;
  const service_variant& as;
  service_id id;
  int variant = 0;
};

struct batch_load {
  int requests = 1;
  double tokens_in = 0;  ///< of the whole batch
};

template <class M>
concept tells_pass = requires(const M& m, const service_run& r, const batch_load& b) {
  { m.pass(r, b) } -> std::same_as<seconds>;  // > 0, finite, pure
};
template <class M>
concept tells_step = requires(const M& m, const service_run& r, int requests) {
  { m.step(r, requests) } -> std::same_as<seconds>;  // > 0, finite, pure; only called for services that generate tokens
};
template <class M>
concept tells_largest_batch = requires(const M& m, const service_run& r) {
  { m.largest_batch(r) } -> std::same_as<int>;  // >= 1; `pass` and `step` get no larger batch
};

template <class M>
concept tells_cached = requires(const M& m, const service_run& r) {
  { m.per_cached_token(r) } -> std::same_as<seconds>;  // >= 0, finite, pure; only called for services that generate tokens
};

/// Returns how long a service computes on the GPUs of a variant. `pass` is one pass over a batch: all of the work, or the prefill of a
/// service that generates tokens. `step` is one more token for each request of a batch.
///
/// * A batch of n requests with x tokens in and y out takes pass(n, x) + (y - 1) step(n): the pass gives the first token.
/// * Optional: `seconds per_cached_token(const service_run&)`, by which a step is longer for each token that the caches of its requests
///   hold together, as attention reads them all. Without it steps do not depend on what is cached.
/// * Neither decreases as the batch grows. A result that is not finite and above 0 throws `invalid_model`.
/// * Shares of a GPU are slices: times do not depend on other instances on the GPU.
/// * `pass` is the way through all pipeline stages. The next batch begins after pass / pipeline_parallel, when the first stage is free.
///
/// Ships: `service_time_table` (listed for some batches of each variant, linear between them, as in a services file),
/// `roofline_service_time` (from the work and traffic of a model and the attained speeds of a GPU), `any_service_time` (chosen at run
/// time). `judged_service_time` makes times for the table by planning and simulating each batch, `judged_token_times` those of requests
/// whose tokens differ in number.
///
/// Source  EPARA, section 5.2; semantics, section 11 (service times).
template <class M>
concept service_time = tells_pass<M> && tells_step<M> && tells_largest_batch<M>;

template <class M>
consteval bool check_service_time() {
  static_assert(tells_pass<M>,
                "service_time needs: hetplan::seconds pass(const hetplan::serve::service_run&, const hetplan::serve::batch_load&) const");
  static_assert(tells_step<M>, "service_time needs: hetplan::seconds step(const hetplan::serve::service_run&, int requests) const");
  static_assert(tells_largest_batch<M>, "service_time needs: int largest_batch(const hetplan::serve::service_run&) const");
  return service_time<M>;
}

/// A type-erased service_time; copies share it. Every result is checked where it is used: see instance_times.
/// Source  ours.
class any_service_time {
 public:
  template <class M>
    requires(!std::same_as<M, any_service_time>)
  any_service_time(M model) {
    static_assert(check_service_time<M>());
    if constexpr (service_time<M>)
      model_ = {std::move(model),
                {.pass = [](void* m, auto... a) { return as<const M>(m).pass(a...); },
                 .step = [](void* m, auto... a) { return as<const M>(m).step(a...); },
                 .largest_batch = [](void* m, auto... a) { return as<const M>(m).largest_batch(a...); },
                 .per_cached_token =
                     [](void* m, [[maybe_unused]] auto... a) {
                       if constexpr (tells_cached<M>) return as<const M>(m).per_cached_token(a...);
                       else return static_cast<void>(m), seconds();
                     }}};
  }

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const { return model_->pass(model_.get(), r, b); }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return model_->step(model_.get(), r, requests); }
  [[nodiscard]] int largest_batch(const service_run& r) const { return model_->largest_batch(model_.get(), r); }
  /// Returns 0 s for a model that does not tell.
  [[nodiscard]] seconds per_cached_token(const service_run& r) const { return model_->per_cached_token(model_.get(), r); }

 private:
  struct calls {
    seconds (*pass)(void*, const service_run&, const batch_load&);
    seconds (*step)(void*, const service_run&, int requests);
    int (*largest_batch)(void*, const service_run&);
    seconds (*per_cached_token)(void*, const service_run&);
  };
  erased<calls> model_;
};

/// Seconds at ascending batch sizes, the first of which is 1; linear between them.
struct batch_curve {
  std::vector<int> batch;
  std::vector<double> seconds_at;

  /// Requires 1 <= n <= batch.back().
  [[nodiscard]] double at(int n) const;
  friend bool operator==(const batch_curve&, const batch_curve&) = default;
};

/// The measured times of a variant.
struct variant_times {
  batch_curve pass;
  double per_token_s = 0;         ///< of a pass, per token of its batch
  batch_curve step = {};          ///< empty for a service that generates no tokens
  double per_cached_token_s = 0;  ///< of a step, per token in the caches of its requests
  friend bool operator==(const variant_times&, const variant_times&) = default;
};

/// A service_time that reads a table: [service][variant].
/// Throws  invalid_model for a service or variant that is not in the table.
/// Source  EPARA, section 5.2: compute times from a table by GPU and service. Deviation: also by batch and tokens.
class service_time_table {
 public:
  /// Throws invalid_input: batch sizes that do not ascend from 1, times that are not positive and finite or that decrease, a wrong
  /// count.
  explicit service_time_table(std::vector<std::vector<variant_times>> times);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const {
    const auto& t = of(r);
    return seconds(t.pass.at(b.requests) + t.per_token_s * b.tokens_in);
  }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return seconds(of(r).step.at(requests)); }
  [[nodiscard]] seconds per_cached_token(const service_run& r) const { return seconds(of(r).per_cached_token_s); }
  [[nodiscard]] int largest_batch(const service_run& r) const;

 private:
  [[nodiscard]] const variant_times& of(const service_run& r) const {
    const auto s = r.id.index(), v = static_cast<std::size_t>(r.variant);
    if (s >= times_.size() || v >= times_[s].size()) refuse(r);
    return times_[s][v];
  }
  [[noreturn]] void refuse(const service_run& r) const;
  std::vector<std::vector<variant_times>> times_;
};
static_assert(check_service_time<service_time_table>());

/// The attained speed of a kind of GPU, not the nominal one.
struct gpu_speed {
  flops_per_second compute;
  bytes_per_second memory;   ///< memory bandwidth
  seconds launch = {};       ///< per operator of a pass, whatever its size
  bytes_per_second link;     ///< between GPUs of one server
  bytes_per_second network;  ///< between GPUs of several servers
  seconds link_latency = {};
  seconds network_latency = {};
  friend bool operator==(const gpu_speed&, const gpu_speed&) = default;
};

/// The work of one request, or of one token of it.
struct model_work {
  flops per_request = {};  ///< without tokens
  flops per_token = {};
  bytes weights = {};            ///< read in every pass and step
  bytes moved_per_request = {};  ///< activations read and written
  bytes cache_per_token = {};    ///< keys and values, read in every step
  bytes reserved = {};           ///< on each GPU, beside weights and requests
  bytes exchanged = {};          ///< by each all-reduce, per request or token
  int operators = 1;
  int exchanges = 0;  ///< all-reduces of a pass with tensor parallelism
  friend bool operator==(const model_work&, const model_work&) = default;
};

/// A service_time: operators x launch + max(computing, moving) + all-reduces. Computing and moving are divided among the GPUs that share
/// the tensors, and by the share of a GPU. Pipeline stages do a part each, one after the other.
///
/// Complexity  O(log kinds) per call.
/// Source      ours, after Williams et al. (2009); an all-reduce over n takes 2 (n - 1)/n of its bytes (ring).
class roofline_service_time {
 public:
  /// @param work     by service.
  /// @param largest  the largest batch.
  /// Throws invalid_input: a speed that is not above 0 and finite, a negative amount, no FLOP; in calls an unknown kind or service.
  roofline_service_time(std::map<std::string, gpu_speed> kinds, std::vector<model_work> work, int largest = 512);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const;
  [[nodiscard]] seconds step(const service_run& r, int requests) const;
  /// Returns the batch that fits the memory beside the weights: tokens of typical requests, or activations.
  [[nodiscard]] int largest_batch(const service_run& r) const;

 private:
  /// Returns the seconds of a pass over this work, with exchanges for so many requests or tokens.
  [[nodiscard]] double once_s(const service_run& r, double flops, double bytes, double items) const;
  [[nodiscard]] const model_work& work_of(const service_run& r) const;
  [[nodiscard]] const gpu_speed& speed_of(const service_run& r) const;

  std::map<std::string, gpu_speed> kinds_;
  std::vector<model_work> work_;
  int largest_;
};
static_assert(check_service_time<roofline_service_time>());

namespace detail {

/// Returns 1, 2, 4, ... up to the largest, and itself.
[[nodiscard]] std::vector<int> sizes_up_to(int largest);

}  // namespace detail

/// The batches to plan, and how.
struct judged_batches {
  int largest = 32;          ///< planned are 1, 2, 4, ... up to it, and itself
  int context = 0;           ///< generation: tokens that the cache of each request holds
  int tokens = 16;           ///< generation: tokens of the run whose mean is the step, >= 2
  judge_models models = {};  ///< memory, energy and network, as for any plan
};

/// Returns the times of a service without tokens, whose requests are samples of `model`: pass(b) is the latency of one inference of a
/// batch of b by the planner's best plan for that batch on all of these GPUs.
///
///     const variant_times t = judged_service_time(model, two_gpus, roofline{}, planner);
///
/// Batches     Each has its own plan, may run in microbatches, and runs alone: the variant should have pipeline_parallel = 1.
/// Monotone    A time below that of a smaller batch is raised to it (running maximum): planners do not guarantee growing times.
/// Memory      Times end before the first batch without a plan, and so does largest_batch.
/// Complexity  O(log largest) calls of the planner.
/// Throws      invalid_input: largest < 1, tokens < 2, no plan for a batch of 1 (with the planner's reason), a plan of 0 s; the
///             errors of the planner.
/// Source      ours; semantics, sections 6 (iterations, time between tokens) and 11 (service times).
[[nodiscard]] variant_times judged_service_time(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                const adapt::any_planner& planner, const judged_batches& batches = {});

/// Returns the times of a service that generates tokens: pass(b) is one inference of b samples of `prompt`, step(b) the time between
/// tokens of b requests that generate together; a sample of `token` is one token.
///
/// All prompts are as long as a sample of `prompt`, so per_token_s is 0, and all caches hold `context` tokens. For others see
/// judged_token_times.
[[nodiscard]] variant_times judged_service_time(const planning_graph& prompt, const planning_graph& token, const cluster& gpus,
                                                const any_cost_model& cost, const adapt::any_planner& planner,
                                                const judged_batches& batches = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/service_time.ipp>
#endif
