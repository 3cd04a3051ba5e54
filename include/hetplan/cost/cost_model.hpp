// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cost models: the concept, the models that ship, and their adapters.

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/optimizer.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

// Pieces of work that cost models time, and the workload that memory depends on.

enum class mode { training, inference, generation };

/// Parts of a layer's work. An unsplit backward is backward_input followed by backward_weight. A cost model's `time`
/// covers forward and backward; the optimizer step is a member of its own.
enum class phase { forward, backward_input, backward_weight, optimizer_step };

[[nodiscard]] constexpr std::string_view to_string(mode m) {
  return m == mode::training ? "training" : m == mode::inference ? "inference" : "generation";
}
[[nodiscard]] constexpr std::string_view to_string(phase p) {
  switch (p) {
    case phase::forward: return "forward";
    case phase::backward_input: return "backward_input";
    case phase::backward_weight: return "backward_weight";
    case phase::optimizer_step: return "optimizer_step";
  }
  return "?";
}
/// Returns F, B, W or U (update), as plan files, charts and traces write phases.
[[nodiscard]] constexpr char letter(phase p) { return "FBWU"[static_cast<int>(p)]; }

/// Limit on the tokens of a sequence: context, prompt and new ones.
inline constexpr double most_tokens = 1e9;

/// Parameters of the run that all plans of a job share. A sequence of generation has `context` tokens in its cache, passes a prompt, in
/// chunks, and makes `tokens` tokens: the first one comes with the prompt, each other one takes a step. Without a prompt every token takes
/// a step.
struct workload {
  hetplan::mode mode = mode::training;
  double optimizer_factor = 2;     ///< optimizer state per byte of trainable weight: Adam 2, SGD 0
  int context = 0;                 ///< generation: tokens in each sequence's cache before the prompt
  int tokens = 16;                 ///< generation: tokens that each sequence makes, >= 1
  std::optional<int> prompt = {};  ///< generation: tokens of each prompt; default: those of a sample if it has several, else 0
  int prompt_chunk = 0;            ///< generation: most tokens of a prompt in one pass; 0: the whole prompt
  int chunks_in_flight = 0;        ///< generation: most chunks of a prompt between the first stage and the last; 0: any number
  int sampled_from = 0;            ///< the steps are a sample of those of so many tokens, with their contexts; 0: all. See judge_quickly
  std::optional<hetplan::optimizer> optimizer = {};  ///< training: in place of the factor

  [[nodiscard]] constexpr bool has_optimizer_state() const {
    return optimizer ? bytes_of_parameter(*optimizer, 1).state > 0 : optimizer_factor > 0;
  }

  /// Returns the tokens that each sequence has made at the end, those that a sample leaves out included.
  [[nodiscard]] constexpr int all_tokens() const { return sampled_from > tokens ? sampled_from : tokens; }

  /// Returns the tokens of a prompt of a model, or of a layer, with so many tokens per sample.
  [[nodiscard]] constexpr int prompt_tokens(int tokens_per_sample) const {
    return prompt.value_or(tokens_per_sample > 1 ? tokens_per_sample : 0);
  }
  /// Returns the most tokens of a sequence that one pass of generation computes, for a model with so many tokens per sample.
  [[nodiscard]] constexpr int largest_pass(int tokens_per_sample) const {
    const int all = prompt_tokens(tokens_per_sample);
    const int chunk = prompt_chunk > 0 && prompt_chunk < all ? prompt_chunk : all;
    return chunk > 1 ? chunk : 1;
  }
  /// Returns the tokens of each sequence that have passed a layer at the end of the run.
  [[nodiscard]] constexpr double length(const layer& l) const {
    return static_cast<double>(context) + prompt_tokens(l.tokens_per_sample) + all_tokens();
  }

  friend bool operator==(const workload&, const workload&) = default;
};

/// Tasks of a stage that send, as planners count them: a forward unless it is of the last stage, which sends tokens in generation; in
/// training a backward unless it is of the first stage. The judge counts messages.
struct sending_tasks {
  bool forward = false, backward = false;
};
[[nodiscard]] constexpr sending_tasks sends_of(const workload& w, bool is_first, bool is_last) {
  const bool returns_tokens = w.mode == mode::generation && w.tokens > 1 && !is_first;
  return {!is_last || returns_tokens, w.mode == mode::training && !is_first};
}

/// One call of one layer: `batch` samples (sequences) at once, split over `tensor_parallel` accelerators of the device. The members give
/// amounts of one sequence in this call: for `tokens` new tokens behind `context` cached ones.
/// Source  semantics, section 4.
struct work {
  const hetplan::layer& layer;
  hetplan::phase phase = phase::forward;
  double batch = 1;
  int tensor_parallel = 1;
  int context = 0;
  double fraction = 1;  ///< of the layer's tensors, FLOP and bytes: less than 1 where devices share them (the columns of a grid)
  int tokens = 0;       ///< new tokens of each sequence; 0: those of a sample. Whoever asks a model tells them.
  bool cached = false;  ///< generation: reads and writes the key/value cache
  /// At which the call reads its weights from a tier below the device's memory; 0: they lie in that memory. Infinite: they have arrived
  /// before the call, so that it neither reads nor waits for them.
  bytes_per_second tier_bandwidth = {};

  /// Do the weights lie in a tier below the device's memory?
  [[nodiscard]] bool offloaded() const { return tier_bandwidth.value() > 0; }
  /// Returns the time to read them from there, which tensor parallelism does not divide; 0 if they do not lie there.
  [[nodiscard]] seconds tier_time() const { return offloaded() ? weight_traffic() / tier_bandwidth : seconds(); }

  [[nodiscard]] double new_tokens() const { return tokens > 0 ? tokens : layer.tokens_per_sample; }
  /// Returns the part of a sample's amounts that the new tokens make.
  [[nodiscard]] double share_of_sample() const { return new_tokens() / layer.tokens_per_sample; }
  /// Returns the rows of the product that the new tokens make.
  [[nodiscard]] double rows() const { return layer.rows * new_tokens() / layer.tokens_per_sample; }
  /// Returns all FLOP: those of the products and those of attention.
  [[nodiscard]] flops flops_per_sample() const { return product_flops() + attention_flops(); }
  [[nodiscard]] flops product_flops() const;
  [[nodiscard]] flops attention_flops() const;
  /// Returns the weight bytes that the call reads, whatever its batch; of experts those that some row of the batch is expected to take.
  [[nodiscard]] bytes weight_traffic() const;
  /// Returns the bytes that a sequence moves besides weights and what attention moves.
  [[nodiscard]] bytes traffic() const {
    return (phase == phase::backward_input ? layer.backward_traffic : layer.traffic) * share_of_sample() * fraction;
  }
  /// Returns the bytes that attention moves besides the cache.
  [[nodiscard]] bytes attention_traffic() const;
  /// Returns the bytes of the key/value cache that are read and written.
  [[nodiscard]] bytes cache_traffic() const;
  /// Returns the bytes of the largest out-edge, which tensor parallelism gathers.
  [[nodiscard]] bytes largest_output() const { return layer.largest_output * share_of_sample(); }

 private:
  [[nodiscard]] flops of_phase() const;
  [[nodiscard]] double pairs() const;
  /// Returns the ratio of the phase's FLOP to those of the forward.
  [[nodiscard]] double phase_ratio() const;
};

/// Piece of work without its layer.
struct work_kind {
  hetplan::phase phase = phase::forward;
  double batch = 1;
  int tensor_parallel = 1;
  int context = 0;
  double fraction = 1;                   ///< of split layers; others are whole
  int tokens = 0;                        ///< new tokens of each sequence; 0: those of a sample
  bool cached = false;                   ///< generation
  bytes_per_second tier_bandwidth = {};  ///< of weights in a tier below the device's memory: see work

  /// Returns the work of a layer that runs in it. In generation a layer per request has its request, and one of the last token that one.
  [[nodiscard]] work of(const layer& l) const;
  friend bool operator==(const work_kind&, const work_kind&) = default;
};

/// Seconds of a call by what limits it.
struct time_parts {
  seconds compute = {};      ///< arithmetic
  seconds weights = {};      ///< memory bandwidth, for weights
  seconds activations = {};  ///< memory bandwidth, for what layers read and write besides
  seconds cache = {};        ///< memory bandwidth, for the key/value cache
  seconds tier = {};         ///< bandwidth of a tier below the device's memory, for weights there
  seconds launch = {};       ///< fixed costs of kernels
  seconds exchange = {};     ///< among the accelerators of the device

  [[nodiscard]] seconds memory_bound() const { return weights + activations + cache + tier; }
  [[nodiscard]] seconds all() const { return compute + memory_bound() + launch + exchange; }

  time_parts& operator+=(const time_parts& o);
  friend time_parts operator/(const time_parts& p, double by) {
    return {p.compute / by, p.weights / by, p.activations / by, p.cache / by, p.tier / by, p.launch / by, p.exchange / by};
  }
  friend bool operator==(const time_parts&, const time_parts&) = default;
};

template <class M>
concept times_work = requires(const M& m, const work& w, const device& d) {
  { m.time(w, d) } -> std::same_as<seconds>;  // finite, >= 0; pure: the same question has the same answer
};

/// Seconds that a device takes for a piece of work, for its whole batch.
///
/// * Times are finite and >= 0; else `invalid_model` with layer, device, phase and batch. Called by one thread at a time.
/// * A call has `work::tokens` new tokens of each sequence behind `work::context` cached ones; `work` gives FLOP and bytes for these. A
///   model whose answer depends on neither is refused where a job has passes of several lengths (check_tokens).
/// * Weights in a tier below the device's memory (work::offloaded) are read at work::tier_bandwidth, behind all else that the call does. A
///   model whose answer does not depend on it is refused where devices have tiers (check_tiers).
/// * No code assumes time proportional to batch. `recipes::data_parallel` finds the best shares if time never falls with the batch.
/// * A layer is priced alone, and a stage takes the sum of its layers. `times_boundary` adds what two successive layers cost on top.
///   Savings between layers cannot be expressed: make one layer of both.
/// * An unsplit backward is `backward_input` plus `backward_weight`. Times include the communication of tensor parallelism in a device.
/// * The bound asks for every batch from 1 to the plan's largest microbatch, and every degree of tensor parallelism of the device.
///
/// Ships: `roofline` (from rates), `profiled` (from measurements), `profiled_or_roofline` (the model of files), `any_cost_model` (chosen
/// at run time), `assume_si` (adapts a model whose time is a plain double in seconds). How to: docs/how-to/own-cost-model.md.
template <class M>
concept cost_model = times_work<M>;

/// A refinement: seconds of the optimizer step for one tensor of a layer. Without it the step takes 0 s.
template <class M>
concept times_optimizer_step = cost_model<M> && requires(const M& m, const layer& l, const device& d) {
  { m.optimizer_step(l, d) } -> std::same_as<seconds>;  // finite, >= 0; pure
};

/// A refinement: additional seconds, in one phase, of a stage that runs `after` right behind `before`: a change of layout, a launch that
/// is not fused, a switch between two runtimes. Asked for neighbours in stage::layers, whether or not a tensor goes from one to the
/// other, and in the same order for the backward, which runs them in reverse. Never paid between two stages.
template <class M>
concept times_boundary =
    cost_model<M> && requires(const M& m, const layer& before, const layer& after, const work_kind& k, const device& d) {
      { m.boundary(before, after, k, d) } -> std::same_as<seconds>;  // finite, >= 0; pure
    };

/// A refinement: the largest batch that the model can time. Without it, bounds over all sizes skip those that throw unknown_time.
template <class M>
concept limits_batches = cost_model<M> && requires(const M& m, const work& w, const device& d) {
  { m.largest_batch(w, d) } -> std::same_as<double>;  // for work like w, whatever its batch; infinite: any; pure
};

/// A refinement: the seconds of `time` by what limits the work. Without it all of them are arithmetic. Asked where a run is explained
/// (explain), and of devices with a power.memory of their own, which draw it while memory is the limit: searches estimate with
/// power.active.
template <class M>
concept times_parts = cost_model<M> && requires(const M& m, const work& w, const device& d) {
  { m.parts(w, d) } -> std::same_as<time_parts>;  // each >= 0; they add up to time(w, d); pure
};

namespace detail {
struct optimizer_step_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.optimizer_step(a...));
  template <class M>
  static auto address() -> decltype(&M::optimizer_step);
};
struct boundary_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.boundary(a...));
  template <class M>
  static auto address() -> decltype(&M::boundary);
};
struct largest_batch_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.largest_batch(a...));
  template <class M>
  static auto address() -> decltype(&M::largest_batch);
};
struct parts_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.parts(a...));
  template <class M>
  static auto address() -> decltype(&M::parts);
};
}  // namespace detail

template <class M>
concept names_optimizer_step = times_optimizer_step<M> || names_member<M, detail::optimizer_step_call, layer, device>;
template <class M>
concept names_boundary = detail::calls_member<detail::boundary_call, const M, layer, layer, work_kind, device> ||
                         names_member<M, detail::boundary_call, layer, work_kind, device>;
template <class M>
concept names_largest_batch = limits_batches<M> || names_member<M, detail::largest_batch_call, work, device>;
template <class M>
concept names_parts = times_parts<M> || names_member<M, detail::parts_call, work, device>;

namespace detail {
template <class M>
concept nearly_names_optimizer_step =
    HETPLAN_HAS_FUNCTION(M, optimiser_step) || HETPLAN_HAS_FUNCTION(M, optimizer_steps) || HETPLAN_HAS_FUNCTION(M, optimiser_steps) ||
    HETPLAN_HAS_FUNCTION(M, optimizerstep) || HETPLAN_HAS_FUNCTION(M, optimizerStep) || HETPLAN_HAS_FUNCTION(M, optimizer_Step) ||
    HETPLAN_HAS_FUNCTION(M, optimize_step) || HETPLAN_HAS_FUNCTION(M, optimzer_step) || HETPLAN_HAS_FUNCTION(M, optimizer_stp) ||
    HETPLAN_HAS_FUNCTION(M, step_optimizer);
template <class M>
concept nearly_names_boundary =
    HETPLAN_HAS_FUNCTION(M, boundry) || HETPLAN_HAS_FUNCTION(M, bondary) || HETPLAN_HAS_FUNCTION(M, bounday) ||
    HETPLAN_HAS_FUNCTION(M, boundarys) || HETPLAN_HAS_FUNCTION(M, boundaries) || HETPLAN_HAS_FUNCTION(M, boundary_s) ||
    HETPLAN_HAS_FUNCTION(M, boundary_time) || HETPLAN_HAS_FUNCTION(M, boundary_cost);
template <class M>
concept nearly_names_largest_batch =
    HETPLAN_HAS_FUNCTION(M, largestbatch) || HETPLAN_HAS_FUNCTION(M, largestBatch) || HETPLAN_HAS_FUNCTION(M, largest_batches) ||
    HETPLAN_HAS_FUNCTION(M, largest_batchsize) || HETPLAN_HAS_FUNCTION(M, largest_batch_size) || HETPLAN_HAS_FUNCTION(M, larges_batch);
template <class M>
concept nearly_names_parts =
    HETPLAN_HAS_FUNCTION(M, time_parts) || HETPLAN_HAS_FUNCTION(M, parts_of_time) || HETPLAN_HAS_FUNCTION(M, parts_s) ||
    HETPLAN_HAS_FUNCTION(M, memory_bound) || HETPLAN_HAS_FUNCTION(M, memory_bound_s) || HETPLAN_HAS_FUNCTION(M, bound_by_memory);
}  // namespace detail

template <class M>
consteval bool check_cost_model() {
  static_assert(times_work<M>, "cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const");
  static_assert(times_optimizer_step<M> || !names_optimizer_step<M>,
                "a cost_model's optimizer step is: hetplan::seconds optimizer_step(const hetplan::layer&, const hetplan::device&) const");
  static_assert(times_boundary<M> || !names_boundary<M>,
                "a cost_model's boundary is: hetplan::seconds boundary(const hetplan::layer&, const hetplan::layer&, "
                "const hetplan::work_kind&, const hetplan::device&) const");
  static_assert(limits_batches<M> || !names_largest_batch<M>,
                "a cost_model's largest batch is: double largest_batch(const hetplan::work&, const hetplan::device&) const");
  static_assert(times_parts<M> || !names_parts<M>,
                "a cost_model's parts of a time are: hetplan::time_parts parts(const hetplan::work&, const hetplan::device&) const");
  static_assert(times_optimizer_step<M> || !detail::nearly_names_optimizer_step<M>,
                "a cost_model's optional member is called optimizer_step; this model has one of nearly that name");
  static_assert(times_boundary<M> || !detail::nearly_names_boundary<M>,
                "a cost_model's optional member is called boundary; this model has one of nearly that name");
  static_assert(limits_batches<M> || !detail::nearly_names_largest_batch<M>,
                "a cost_model's optional member is called largest_batch; this model has one of nearly that name");
  static_assert(times_parts<M> || !detail::nearly_names_parts<M>,
                "a cost_model's optional member is called parts; this model has one of nearly that name");
  return cost_model<M>;
}

/// Returns the model's largest batch, or infinity if it sets no limit. Throws invalid_model.
template <cost_model M>
[[nodiscard]] double checked_largest_batch(const M& model, const work& w, const device& d) {
  if constexpr (limits_batches<M>) {
    const double b = model.largest_batch(w, d);
    if (b >= 0) return b;
    throw invalid_model("cost model: largest_batch(layer " + std::to_string(w.layer.id.value) + " \"" + w.layer.name + "\", " +
                        std::string(to_string(w.phase)) + ", device " + std::to_string(d.id.value) + " \"" + d.name +
                        "\") = " + to_text(b) + "; expected >= 0");
  } else {
    return std::numeric_limits<double>::infinity();
  }
}

/// Returns the model's time after checks. Throws invalid_model, naming layer, device, phase and batch.
template <cost_model M>
[[nodiscard]] double checked_time_s(const M& model, const work& w, const device& d) {
  const double t = model.time(w, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    throw invalid_model("cost model: time(layer " + std::to_string(w.layer.id.value) + " \"" + w.layer.name + "\", " +
                        std::string(to_string(w.phase)) + ", batch " + to_text(w.batch) + ", device " + std::to_string(d.id.value) + " \"" +
                        d.name + "\") = " + to_text(t) + " s; expected finite >= 0");
  }
  return t;
}

namespace detail {
/// Throws invalid_model unless the parts are >= 0 and add up to the whole.
void check_parts(const time_parts& parts, double whole_s, const work& w, const device& d);
}  // namespace detail

/// Returns the parts of the model's time after checks. Throws invalid_model, naming layer, device, phase and batch.
template <times_parts M>
[[nodiscard]] time_parts checked_parts(const M& model, const work& w, const device& d) {
  const time_parts parts = model.parts(w, d);
  detail::check_parts(parts, checked_time_s(model, w, d), w, d);
  return parts;
}

/// Returns the model's time of a boundary after checks. Throws invalid_model, naming both layers, phase, batch and device.
template <times_boundary M>
[[nodiscard]] double checked_boundary_s(const M& model, const layer& before, const layer& after, const work_kind& k, const device& d) {
  const double t = model.boundary(before, after, k, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    const auto name = [](const layer& l) { return "layer " + std::to_string(l.id.value) + " \"" + l.name + "\""; };
    throw invalid_model("cost model: boundary(" + name(before) + ", " + name(after) + ", " + std::string(to_string(k.phase)) + ", batch " +
                        to_text(k.batch) + ", device " + std::to_string(d.id.value) + " \"" + d.name + "\") = " + to_text(t) +
                        " s; expected finite >= 0");
  }
  return t;
}

/// Returns the model's time of an optimizer step after checks. Throws invalid_model, naming layer and device.
template <times_optimizer_step M>
[[nodiscard]] double checked_optimizer_step_s(const M& model, const layer& l, const device& d) {
  const double t = model.optimizer_step(l, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    throw invalid_model("cost model: optimizer_step(layer " + std::to_string(l.id.value) + " \"" + l.name + "\", device " +
                        std::to_string(d.id.value) + " \"" + d.name + "\") = " + to_text(t) + " s; expected finite >= 0");
  }
  return t;
}

namespace detail {

/// Returns the seconds of layers that a device runs one after the other. Apart from prefix_table, the only sum over a run of layers.
///
/// @param total       Initial value [s].
/// @param boundaries  False if no boundary costs anything; then boundary_s is never called.
/// @param time_s      layer -> seconds.   @param boundary_s  (layer, the next one) -> seconds.
template <class Time, class Boundary>
[[nodiscard]] double add_run(double total, std::span<const layer_id> run, bool boundaries, const Time& time_s, const Boundary& boundary_s) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (boundaries && i > 0) total += boundary_s(run[i - 1], run[i]);
    total += time_s(run[i]);
  }
  return total;
}

}  // namespace detail

/// Type-erased cost model, held by value and shared by copies (models are pure). One indirect call per question. Steps and boundaries
/// that the held model does not price take 0 s; without a limit the largest batch is infinite, and without parts all time is arithmetic.
class any_cost_model {
 public:
  template <class M>
    requires(!std::same_as<M, any_cost_model>)
  any_cost_model(M model)
      : times_optimizer_(times_optimizer_step<M>), times_boundaries_(has_boundary(model)), tells_parts_(times_parts<M>) {
    static_assert(check_cost_model<M>());
    if constexpr (requires { model.times_optimizer(); }) times_optimizer_ = model.times_optimizer();
    if constexpr (requires { model.tells_parts(); }) tells_parts_ = model.tells_parts();
    if constexpr (cost_model<M>) model_ = {std::move(model), calls_of<M>()};
  }

  [[nodiscard]] seconds time(const work& w, const device& d) const { return model_->time(model_.get(), w, d); }
  [[nodiscard]] bool times_optimizer() const { return times_optimizer_; }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return model_->optimizer_step(model_.get(), l, d); }
  /// Has the model that it holds a price for boundaries?
  [[nodiscard]] bool times_boundaries() const { return times_boundaries_; }
  /// 0 s where it has none.
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return model_->boundary(model_.get(), before, after, k, d);
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return model_->largest_batch(model_.get(), w, d); }
  /// Does the model that it holds tell the parts of its times?
  [[nodiscard]] bool tells_parts() const { return tells_parts_; }
  /// All arithmetic where it does not.
  [[nodiscard]] time_parts parts(const work& w, const device& d) const { return model_->parts(model_.get(), w, d); }
  /// Writes the seconds of every layer of a graph, by id, checked, in one indirect call.
  void times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const {
    model_->times_s(model_.get(), model, k, d, by_layer);
  }
  /// Returns `before` plus the seconds of layers and of the boundaries between them, in order and checked, in one indirect call.
  [[nodiscard]] double total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k, const device& d,
                               double before = 0) const {
    return model_->total_s(model_.get(), model, layers, k, d, before);
  }

 private:
  struct calls {
    seconds (*time)(void*, const work&, const device&);
    seconds (*optimizer_step)(void*, const layer&, const device&);
    seconds (*boundary)(void*, const layer&, const layer&, const work_kind&, const device&);
    double (*largest_batch)(void*, const work&, const device&);
    time_parts (*parts)(void*, const work&, const device&);
    void (*times_s)(void*, const planning_graph&, const work_kind&, const device&, double* by_layer);
    double (*total_s)(void*, const planning_graph&, std::span<const layer_id>, const work_kind&, const device&, double before);
  };
  template <class M>
  [[nodiscard]] static calls calls_of() {
    calls c;
    c.time = [](void* m, auto... a) { return as<const M>(m).time(a...); };
    c.optimizer_step = [](void* m, auto... a) {
      if constexpr (times_optimizer_step<M>) return as<const M>(m).optimizer_step(a...);
      else return seconds();
    };
    c.boundary = [](void* m, auto... a) {
      if constexpr (times_boundary<M>) return as<const M>(m).boundary(a...);
      else return seconds();
    };
    c.largest_batch = [](void* m, auto... a) { return checked_largest_batch(as<const M>(m), a...); };
    c.parts = [](void* m, auto... a) {
      if constexpr (times_parts<M>) return as<const M>(m).parts(a...);
      else return time_parts{.compute = as<const M>(m).time(a...)};
    };
    c.times_s = [](void* m, const planning_graph& graph, const work_kind& k, const device& d, double* by_layer) {
      const M& model = as<const M>(m);
      if constexpr (requires { model.times_s(graph, k, d, by_layer); }) {
        model.times_s(graph, k, d, by_layer);
      } else {
        for (const layer& l : graph.layers()) by_layer[l.id.index()] = checked_time_s(model, k.of(l), d);
      }
    };
    c.total_s = [](void* m, const planning_graph& graph, std::span<const layer_id> layers, const work_kind& k, const device& d,
                   double before) {
      const M& model = as<const M>(m);
      if constexpr (requires { model.total_s(graph, layers, k, d, before); }) {
        return model.total_s(graph, layers, k, d, before);
      } else {
        return detail::add_run(
            before, layers, has_boundary(model), [&](layer_id l) { return checked_time_s(model, k.of(graph[l]), d); },
            [&](layer_id l, layer_id next) {
              if constexpr (times_boundary<M>) return checked_boundary_s(model, graph[l], graph[next], k, d);
              return 0.0;
            });
      }
    };
    return c;
  }
  template <class M>
  [[nodiscard]] static bool has_boundary(const M& model) {
    if constexpr (requires { model.times_boundaries(); }) return model.times_boundaries();
    else return times_boundary<M>;
  }

  erased<calls> model_;
  bool times_optimizer_, times_boundaries_, tells_parts_;
};

/// Adapts a model whose `time` returns seconds as a plain double; so must its optional members, if it has them.
template <class M>
struct assume_si {
  static_assert(
      !names_optimizer_step<M> || requires(const M& m, const layer& l, const device& d) {
        { m.optimizer_step(l, d) } -> std::same_as<double>;
      }, "the optimizer step of a model in assume_si is: double optimizer_step(const hetplan::layer&, const hetplan::device&) const");
  static_assert(
      !names_boundary<M> ||
          requires(const M& m, const layer& l, const work_kind& k, const device& d) {
            { m.boundary(l, l, k, d) } -> std::same_as<double>;
          },
      "the boundary of a model in assume_si is: double boundary(const hetplan::layer&, const hetplan::layer&, "
      "const hetplan::work_kind&, const hetplan::device&) const");
  static_assert(
      !names_largest_batch<M> || requires(const M& m, const work& w, const device& d) {
        { m.largest_batch(w, d) } -> std::same_as<double>;
      }, "the largest batch of a model in assume_si is: double largest_batch(const hetplan::work&, const hetplan::device&) const");
  static_assert(
      !names_parts<M> || requires(const M& m, const work& w, const device& d) {
        { m.parts(w, d) } -> std::same_as<time_parts>;
      }, "the parts of a time are, in assume_si too: hetplan::time_parts parts(const hetplan::work&, const hetplan::device&) const");
  M model;
  [[nodiscard]] seconds time(const work& w, const device& d) const
    requires requires(const M& m) {
      { m.time(w, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.time(w, d));
  }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires requires(const M& m) {
      { m.optimizer_step(l, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.optimizer_step(l, d));
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires requires(const M& m) {
      { m.boundary(before, after, k, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.boundary(before, after, k, d));
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const
    requires requires(const M& m) {
      { m.largest_batch(w, d) } -> std::same_as<double>;
    }
  {
    return model.largest_batch(w, d);
  }
  [[nodiscard]] time_parts parts(const work& w, const device& d) const
    requires requires(const M& m) {
      { m.parts(w, d) } -> std::same_as<time_parts>;
    }
  {
    return model.parts(w, d);
  }
};
template <class M>
assume_si(M) -> assume_si<M>;

static_assert(check_cost_model<any_cost_model>());

namespace detail {

/// Returns the reason why the workload cannot run the model; nothing if it can.
[[nodiscard]] std::optional<std::string> mode_fault(const planning_graph& model, const workload& w);

}  // namespace detail

/// Does a call read the weights of its layer? A forward does; a backward_input with FLOP or backward_traffic, and a backward_weight with
/// FLOP. Of a layer with a profile for the device's kind, each phase with a part of the measured backward.
/// Source  semantics, section 4.
[[nodiscard]] bool reads_weights(const work& w, const device& d);

/// Checks that a mode can run a model; called for problems, plans, tables and bounds.
///
/// Throws  invalid_input (generation, and a layer with attention over all tokens would be cut into chunks).
void check_mode(const planning_graph& model, const workload& w);

/// Roofline of two kernels, products and attention, which run one after the other, for b sequences with n new tokens each:
///
///     max(b FLOP (r + h) / r / (peak eff), (weights + b traffic) / (bandwidth meff))
///   + max(b attention FLOP / (peak eff), b (cache / ceff + attention traffic) / (bandwidth meff)) + calls launch
///
/// Weights in a tier below the device's memory leave the first maximum, and weights / (bandwidth of the tier) is added.
///
/// Rows r are b rows n / T (by default b n); h is the device's half_rows, or its half_batch, which counts samples: r = b. `eff`, `meff` and
/// `ceff` are its attained shares (efficiency, memory_efficiency, cache_efficiency), its peak is that of the model's precision.
///
/// Tensor parallelism g divides FLOP and bytes by g. Per layer it adds the time to gather 2(g-1)/g of the largest out-edge over the
/// interconnect of g accelerators, in the forward and again in backward_input, but not in a phase without FLOP. A forward always counts, a
/// backward_input with FLOP or backward_traffic, a backward_weight with FLOP.
///
/// Parts: a maximum is arithmetic if its first term is not the smaller one, else memory bandwidth, divided by bytes: weights and other
/// traffic, cache and attention's traffic. The reading of a tier is a part of its own.
///
/// Throws  invalid_input: unknown FLOP of the layer, unknown compute of the device in any fitting precision, no share for the model's
///         weight format, no interconnect where g > 1.
/// Source  semantics, section 4.
struct roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] time_parts parts(const work& w, const device& d) const;

 private:
  /// A kernel's seconds of arithmetic and of traffic, of which it takes the larger.
  struct kernel {
    seconds arithmetic, traffic;
    double share = 0;  ///< of the traffic: weights, or cache
    [[nodiscard]] seconds time() const { return std::max(arithmetic, traffic); }
    [[nodiscard]] bool memory_bound() const { return traffic > arithmetic; }
  };
  struct kernels {
    kernel products, attention;
  };
  /// Returns nothing for a backward part that does not count.
  [[nodiscard]] static std::optional<kernels> kernels_of(const work& w, const device& d);
  [[nodiscard]] static seconds gathering(const work& w, const device& d);
};

static_assert(check_cost_model<roofline>());

/// Measured times: piecewise linear in the batch, in generation in batch times new tokens, from the layer's profile for the device's kind.
/// Below the first entry its value holds, above the last the last slope; one entry is constant. The measured backward is divided between
/// backward_input and backward_weight in proportion to their FLOP, in halves if both are 0. Reading weights from a tier comes on top, in
/// the forward and in each part of the backward that is not 0.
///
/// Throws  invalid_input: no profile for the kind, no backward in it, tensor parallelism > 1; in generation, a sample of several tokens.
///         unknown_time: the last slope falls, and the batch is so large that its time would be negative.
struct profiled {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  /// Returns what reading a tier takes; a profile does not tell more, so the rest is all arithmetic.
  [[nodiscard]] time_parts parts(const work& w, const device& d) const;
  /// Returns the last batch whose time is not negative if the last slope falls, else infinity.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const;

 private:
  static constexpr double most_batch = 1e9;  ///< larger batches do not occur

  [[nodiscard]] static double interpolate(std::span<const double> x, std::span<const double> y, double at);
};

/// Profile of the layer for the device's kind if there is one, else the roofline: the model of files.
struct profiled_or_roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return profiled{}.largest_batch(w, d); }
  /// Returns those of the roofline, or of the profile.
  [[nodiscard]] time_parts parts(const work& w, const device& d) const;
};

static_assert(check_cost_model<profiled>() && check_cost_model<profiled_or_roofline>());

/// Cost model in which every time is divided by the device's factor. Factors are by device id and > 0.
/// Throws  invalid_model if a device has no factor.
/// Source  semantics, section 10: a device at half its speed takes twice as long for everything.
template <cost_model Cost>
struct slowed {
  static_assert(check_cost_model<Cost>());
  Cost cost;
  std::vector<double> factor;

  [[nodiscard]] seconds time(const work& w, const device& d) const { return cost.time(w, d) / factor_of(d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires times_optimizer_step<Cost>
  {
    return cost.optimizer_step(l, d) / factor_of(d);
  }
  [[nodiscard]] bool times_optimizer() const
    requires requires(const Cost& c) { c.times_optimizer(); }
  {
    return cost.times_optimizer();
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires times_boundary<Cost>
  {
    return cost.boundary(before, after, k, d) / factor_of(d);
  }
  [[nodiscard]] bool times_boundaries() const
    requires requires(const Cost& c) { c.times_boundaries(); }
  {
    return cost.times_boundaries();
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const
    requires limits_batches<Cost>
  {
    return cost.largest_batch(w, d);
  }
  [[nodiscard]] time_parts parts(const work& w, const device& d) const
    requires times_parts<Cost>
  {
    return cost.parts(w, d) / factor_of(d);
  }
  [[nodiscard]] bool tells_parts() const
    requires requires(const Cost& c) { c.tells_parts(); }
  {
    return cost.tells_parts();
  }

 private:
  [[nodiscard]] double factor_of(const device& d) const {
    if (d.id.index() < factor.size()) return factor[d.id.index()];
    throw invalid_model("slowed: " + std::to_string(factor.size()) + " factors, none for device " + std::to_string(d.id.value) + " \"" +
                        d.name + "\"; expected one for each device of the cluster");
  }
};

/// Returns the slowed model. An any_cost_model stays one, so that code compiled for it serves both.
template <cost_model Cost>
[[nodiscard]] auto slow_down(Cost cost, std::vector<double> factor) {
  if constexpr (std::is_same_v<Cost, any_cost_model>) return any_cost_model(slowed<Cost>{std::move(cost), std::move(factor)});
  else return slowed<Cost>{std::move(cost), std::move(factor)};
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/cost_model.ipp>
#endif
