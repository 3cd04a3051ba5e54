// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How long a service computes: the door for service times.

#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/replanning.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

/// A service as it runs: which one, and as which of its variants.
struct service_run {
  const service& what;
  const service_variant& as;
  service_id id;
  int variant = 0;
};

/// A batch as it begins.
struct batch_load {
  int requests = 1;
  double tokens_in = 0;  ///< of all of them together
};

template <class M>
concept tells_pass = requires(const M& m, const service_run& r, const batch_load& b) {
  { m.pass(r, b) } -> std::same_as<seconds>;  // > 0, finite, pure
};
template <class M>
concept tells_step = requires(const M& m, const service_run& r, int requests) {
  { m.step(r, requests) } -> std::same_as<seconds>;  // > 0, finite, pure; asked of services that generate tokens
};
template <class M>
concept tells_largest_batch = requires(const M& m, const service_run& r) {
  { m.largest_batch(r) } -> std::same_as<int>;  // >= 1; the others are asked for no more
};

/// How long a service computes on the GPUs of a variant: `pass`, one pass over a batch: all of the work, or the prefill of a service that
/// generates tokens; `step`, one token more for each of a batch.
///
/// * A batch of n requests with x tokens in and y out takes pass(n, x) + (y - 1) step(n): the pass brings the first token.
/// * Neither decreases when the batch grows. An answer that is not finite and above 0 throws `invalid_model`.
/// * Shares of a GPU are slices: a time does not depend on who else is on the GPU.
/// * Where a variant has pipeline stages, `pass` is the way through all of them. The next batch begins when the first stage is free,
///   after pass / pipeline_parallel.
///
/// Ships: `service_time_table` (listed for some batches of each variant, linear between them: what a services file has),
/// `roofline_service_time` (from what a model computes and moves and what a kind of GPU reaches), `any_service_time` (chosen at run
/// time). `judged_service_time` makes times for the table by planning and simulating each batch.
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

// A service_time chosen at run time.

/// Holds any service_time; copies share it. Every answer of the model is checked where it is asked: see instance_times.
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
                 .largest_batch = [](void* m, auto... a) { return as<const M>(m).largest_batch(a...); }}};
  }

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const { return model_->pass(model_.get(), r, b); }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return model_->step(model_.get(), r, requests); }
  [[nodiscard]] int largest_batch(const service_run& r) const { return model_->largest_batch(model_.get(), r); }

 private:
  struct calls {
    seconds (*pass)(void*, const service_run&, const batch_load&);
    seconds (*step)(void*, const service_run&, int requests);
    int (*largest_batch)(void*, const service_run&);
  };
  erased<calls> model_;
};

// Service times that were measured: seconds at some sizes of batch.

/// Seconds at ascending sizes of batch, the first of them 1; linear between two.
struct batch_curve {
  std::vector<int> batch;
  std::vector<double> seconds_at;

  /// Requires 1 <= n <= batch.back().
  [[nodiscard]] double at(int n) const;
  friend bool operator==(const batch_curve&, const batch_curve&) = default;
};

/// What was measured of one variant.
struct variant_times {
  batch_curve pass;
  double per_token_s = 0;  ///< of a pass, for each token of its batch
  batch_curve step = {};   ///< empty for a service that generates no tokens
  friend bool operator==(const variant_times&, const variant_times&) = default;
};

/// A service_time that reads a table: [service][variant].
///
/// Throws  invalid_model where it is asked for a service or a variant that it does not have.
/// Source  EPARA, section 5.2: compute times from a table by GPU and service. Deviation: also by batch and tokens.
class service_time_table {
 public:
  /// Throws invalid_input: sizes of batch that do not begin with 1 or do not ascend, times that are not finite and above 0, or that
  /// decrease, another number of times.
  explicit service_time_table(std::vector<std::vector<variant_times>> times);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const {
    const auto& t = of(r);
    return seconds(t.pass.at(b.requests) + t.per_token_s * b.tokens_in);
  }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return seconds(of(r).step.at(requests)); }
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

// Service times by a roofline: what a model computes and moves, and what a GPU can.

/// What a kind of GPU reaches, not what it has on paper.
struct gpu_speed {
  flops_per_second compute;
  bytes_per_second memory;   ///< bandwidth of its memory
  seconds launch = {};       ///< of each operator of a pass, whatever its size
  bytes_per_second link;     ///< between GPUs of a server
  bytes_per_second network;  ///< between GPUs of several servers
  seconds link_latency = {};
  seconds network_latency = {};
  friend bool operator==(const gpu_speed&, const gpu_speed&) = default;
};

/// What one request costs, or one token of it.
struct model_work {
  flops per_request = {};  ///< without tokens
  flops per_token = {};
  bytes weights = {};            ///< read in every pass and step
  bytes moved_per_request = {};  ///< activations read and written
  bytes cache_per_token = {};    ///< of keys and values, read in every step
  bytes reserved = {};           ///< of each GPU's memory, beside weights and requests
  bytes exchanged = {};          ///< by each all-reduce, of a request or of a token
  int operators = 1;
  int exchanges = 0;  ///< all-reduces of a pass when tensors are cut
  friend bool operator==(const model_work&, const model_work&) = default;
};

/// A service_time: operators x launch + max(computing, moving) + all-reduces, each over the GPUs that share the tensors, each by the share
/// of a GPU. Stages of a pipeline do a part each, one after the other.
///
/// Complexity  O(log kinds) a question.
/// Source      ours, after Williams et al. (2009); an all-reduce over n takes 2 (n - 1)/n of its bytes (ring).
class roofline_service_time {
 public:
  /// @param work     by service.
  /// @param largest  batch that is asked for.
  /// Throws invalid_input: a speed that is not above 0 and finite, an amount below 0, no FLOP; when asked, a kind or service that is not
  /// there.
  roofline_service_time(std::map<std::string, gpu_speed> kinds, std::vector<model_work> work, int largest = 512);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const;
  [[nodiscard]] seconds step(const service_run& r, int requests) const;
  /// What memory has room for beside the weights: tokens of typical requests, or activations.
  [[nodiscard]] int largest_batch(const service_run& r) const;

 private:
  /// Seconds of a pass over so much, exchanging for so many requests or tokens.
  [[nodiscard]] double once_s(const service_run& r, double flops, double bytes, double items) const;
  [[nodiscard]] const model_work& work_of(const service_run& r) const;
  [[nodiscard]] const gpu_speed& speed_of(const service_run& r) const;

  std::map<std::string, gpu_speed> kinds_;
  std::vector<model_work> work_;
  int largest_;
};
static_assert(check_service_time<roofline_service_time>());

// Service times from simulated plans of a model on the GPUs of a variant.

/// Which batches are planned, and how.
struct judged_batches {
  int largest = 32;          ///< planned are 1, 2, 4, ... up to it, and itself
  int context = 0;           ///< generation: tokens that the cache of each request holds
  int tokens = 16;           ///< generation: tokens of the run of which the step is the mean, >= 2
  judge_models models = {};  ///< memory, energy and network, as for any plan
};

/// Times of a service without tokens, whose requests are samples of `model`: pass(b) is the latency of one inference of a batch of b, by
/// the best plan that the planner has for that batch on all of these GPUs.
///
///     const variant_times t = judged_service_time(model, two_gpus, roofline{}, planner);
///
/// Batches     Each has a plan of its own, may run in microbatches, and runs alone: let the variant have pipeline_parallel = 1.
/// Monotone    A time below that of a smaller batch is raised to it (running maximum): planners do not promise that times grow.
/// Memory      Times end before the first batch for which there is no plan, so largest_batch does.
/// Complexity  O(log largest) calls of the planner, and as many simulations.
/// Throws      invalid_input: largest < 1, tokens < 2, no plan for a batch of 1 (with the planner's reason), a plan of 0 s; what
///             planner and judge throw.
/// Source      ours; semantics, sections 6 (iterations, time between tokens) and 11 (service times).
[[nodiscard]] variant_times judged_service_time(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                const adapt::any_planner& planner, const judged_batches& batches = {});

/// Times of a service that generates tokens: pass(b) is one inference of b samples of `prompt`, step(b) the time between tokens when b
/// requests generate together, and a sample of `token` is one token.
///
/// All prompts are as long as a sample of `prompt`: per_token_s is 0. For others set it, and take as much for a sample off the pass.
[[nodiscard]] variant_times judged_service_time(const planning_graph& prompt, const planning_graph& token, const cluster& gpus,
                                                const any_cost_model& cost, const adapt::any_planner& planner,
                                                const judged_batches& batches = {});

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/service_time.ipp>
#endif
