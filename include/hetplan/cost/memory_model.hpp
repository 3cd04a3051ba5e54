// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Memory models: the concept, and the models that ship.

#include <concepts>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/optimizer.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

template <class M>
concept holds_state = requires(const M& m, const layer& l, const workload& w) {
  { m.state(l, w) } -> std::same_as<bytes>;  // weights, gradients, optimizer of a layer; held all the time
};
template <class M>
concept holds_activations = requires(const M& m, const layer& l, const workload& w) {
  { m.activations(l, w) } -> std::same_as<bytes>;  // per sample, from its forward until its last backward part
};
template <class M>
concept holds_cache = requires(const M& m, const layer& l, const workload& w) {
  { m.cache(l, w) } -> std::same_as<bytes>;  // per sequence, for the whole run; called in generation only
};

/// Bytes that a layer holds on a device. Finite, >= 0 and pure, or `invalid_model`. Called by one thread at a time.
///
/// * `state` is called once per weight group and stage, for its first layer. A device with several stages of a group holds the largest.
/// * `activations` is per sample and multiplied by the device's share; the simulator tracks the samples in flight. Inference holds them
///   until the end of the forward.
/// * If a stage recomputes (`stage::recompute`), activations are held from the start of its backward; its inputs are accounted elsewhere.
///
/// Ships: `plain_memory` (default), `framework_memory` (fragmentation, optimizer precision), `any_memory_model` (chosen at run time).
template <class M>
concept memory_model = holds_state<M> && holds_activations<M> && holds_cache<M>;

/// A refinement: the part of the activations that a separate backward_weight needs; the rest is released before. Default: all.
template <class M>
concept splits_activations = memory_model<M> && requires(const M& m, const layer& l, const workload& w) {
  { m.activations_for_weights(l, w) } -> std::same_as<bytes>;  // per sample; at most activations(l, w)
};
/// A refinement: the optimizer's part of the state, which a stage can shard (stage::shard). Without it, sharding is an error.
template <class M>
concept tells_optimizer_state = memory_model<M> && requires(const M& m, const layer& l, const workload& w) {
  { m.optimizer_state(l, w) } -> std::same_as<bytes>;  // at most state(l, w)
};

namespace detail {
struct activations_for_weights_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.activations_for_weights(a...));
  template <class M>
  static auto address() -> decltype(&M::activations_for_weights);
};
struct optimizer_state_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.optimizer_state(a...));
  template <class M>
  static auto address() -> decltype(&M::optimizer_state);
};
}  // namespace detail

template <class M>
concept names_activations_for_weights = splits_activations<M> || names_member<M, detail::activations_for_weights_call, layer, workload>;
template <class M>
concept names_optimizer_state = tells_optimizer_state<M> || names_member<M, detail::optimizer_state_call, layer, workload>;

namespace detail {
template <class M>
concept nearly_names_activations_for_weights =
    HETPLAN_HAS_FUNCTION(M, activation_for_weights) || HETPLAN_HAS_FUNCTION(M, activations_for_weight) ||
    HETPLAN_HAS_FUNCTION(M, activation_for_weight) || HETPLAN_HAS_FUNCTION(M, activationsForWeights) ||
    HETPLAN_HAS_FUNCTION(M, activations_of_weights) || HETPLAN_HAS_FUNCTION(M, activations_for_wights) ||
    HETPLAN_HAS_FUNCTION(M, activations_for_weigths);
template <class M>
concept nearly_names_optimizer_state =
    HETPLAN_HAS_FUNCTION(M, optimiser_state) || HETPLAN_HAS_FUNCTION(M, optimizer_states) || HETPLAN_HAS_FUNCTION(M, optimiser_states) ||
    HETPLAN_HAS_FUNCTION(M, optimizerstate) || HETPLAN_HAS_FUNCTION(M, optimizerState) || HETPLAN_HAS_FUNCTION(M, optimzer_state) ||
    HETPLAN_HAS_FUNCTION(M, state_of_optimizer);
}  // namespace detail

template <class M>
consteval bool check_memory_model() {
  static_assert(holds_state<M>, "memory_model needs: hetplan::bytes state(const hetplan::layer&, const hetplan::workload&) const");
  static_assert(holds_activations<M>,
                "memory_model needs: hetplan::bytes activations(const hetplan::layer&, const hetplan::workload&) const");
  static_assert(holds_cache<M>, "memory_model needs: hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const");
  static_assert(splits_activations<M> || !names_activations_for_weights<M>,
                "a memory_model's split of activations is: hetplan::bytes activations_for_weights(const hetplan::layer&, const "
                "hetplan::workload&) const");
  static_assert(
      tells_optimizer_state<M> || !names_optimizer_state<M>,
      "a memory_model's optimizer state is: hetplan::bytes optimizer_state(const hetplan::layer&, const hetplan::workload&) const");
  static_assert(splits_activations<M> || !detail::nearly_names_activations_for_weights<M>,
                "a memory_model's optional member is called activations_for_weights; this model has one of nearly that name");
  static_assert(tells_optimizer_state<M> || !detail::nearly_names_optimizer_state<M>,
                "a memory_model's optional member is called optimizer_state; this model has one of nearly that name");
  return memory_model<M>;
}

namespace detail {
[[noreturn]] void refuse_bytes(double given, const char* member, const layer& l);
[[noreturn]] void refuse_part(double given, const char* member, const layer& l, double all, const char* whole);
}  // namespace detail

/// Returns the bytes given by a memory model after checks. Throws invalid_model, naming member and layer.
[[nodiscard]] inline double checked_bytes(bytes given, const char* member, const layer& l) {
  const double b = given.value();
  if (!(b >= 0 && b <= std::numeric_limits<double>::max())) detail::refuse_bytes(b, member, l);
  return b;
}

/// Returns the bytes of a part of a whole of `all` bytes after checks. Throws invalid_model, naming member and layer.
[[nodiscard]] inline double checked_part(bytes given, const char* member, const layer& l, double all, const char* whole) {
  const double b = checked_bytes(given, member, l);
  if (!(b <= all)) detail::refuse_part(b, member, l, all, whole);
  return b;
}

[[noreturn]] void throw_no_optimizer_state();

/// Returns the state of a layer on one of `shards` devices that shard the optimizer's part of it. Throws invalid_model; invalid_input if
/// there are several shards and the model does not tell that part.
template <memory_model M>
[[nodiscard]] double checked_state(const M& memory, const layer& l, const workload& w, int shards) {
  const double all = checked_bytes(memory.state(l, w), "state", l);
  if (shards <= 1) return all;
  static_assert(check_memory_model<M>());
  if constexpr (tells_optimizer_state<M>) {
    return all - checked_part(memory.optimizer_state(l, w), "optimizer_state", l, all, "state") * (1 - 1.0 / shards);
  } else {
    throw_no_optimizer_state();
  }
}

/// Returns what a layer's weights take in a workload: in training W + trainable W (1 + optimizer_factor), or what the named optimizer
/// holds of each parameter; else W.
[[nodiscard]] trained_bytes trained_bytes_of(const layer& l, const workload& w);

/// State: trained_bytes_of. Cache: kv_bytes_per_token for each token of a sequence that the
/// layer keeps at the end of the run: context, prompt and new tokens, at most its window.
struct plain_memory {
  [[nodiscard]] bytes state(const layer& l, const workload& w) const;
  [[nodiscard]] bytes optimizer_state(const layer& l, const workload& w) const;
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const {
    return w.mode == mode::training ? l.activation : l.forward_activation;
  }
  [[nodiscard]] bytes activations_for_weights(const layer& l, const workload& w) const {
    return w.mode == mode::training ? l.activation_for_weights : l.forward_activation;
  }
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return l.kv_bytes_per_token * l.sequence.kept(w.length(l)); }
};

/// Memory of real frameworks: allocations grow by a fraction (alignment, fragmentation), and the optimizer state of trainable weights may
/// have another precision (a bf16 model with fp32 optimizer: 2.0).
struct framework_memory {
  double fragmentation = 0.1;
  double optimizer_precision = 1;  ///< bytes of optimizer state per byte of weight and unit of optimizer_factor; not of named optimizers

  [[nodiscard]] bytes state(const layer& l, const workload& w) const { return (1 + fragmentation) * plain_memory{}.state(l, precise(w)); }
  [[nodiscard]] bytes optimizer_state(const layer& l, const workload& w) const;
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const;
  [[nodiscard]] bytes activations_for_weights(const layer& l, const workload& w) const;
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return (1 + fragmentation) * plain_memory{}.cache(l, w); }

 private:
  [[nodiscard]] workload precise(workload w) const;
};

static_assert(check_memory_model<plain_memory>() && check_memory_model<framework_memory>());

/// Type-erased memory model, held by value and shared by copies. One indirect call per question, one at a time. Default: plain_memory.
class any_memory_model {
 public:
  any_memory_model() : any_memory_model(plain_memory{}) {}
  template <class M>
    requires(!std::same_as<M, any_memory_model>)
  any_memory_model(M model) : tells_optimizer_state_(tells_optimizer_state<M>) {
    static_assert(check_memory_model<M>());
    if constexpr (memory_model<M>) model_ = {std::move(model), calls_of<M>()};
  }

  [[nodiscard]] bytes state(const layer& l, const workload& w) const { return ask(model_->state, l, w); }
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const { return ask(model_->activations, l, w); }
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return ask(model_->cache, l, w); }
  /// Returns all activations if the held model does not split them.
  [[nodiscard]] bytes activations_for_weights(const layer& l, const workload& w) const {
    return ask(model_->activations_for_weights, l, w);
  }
  /// Throws invalid_input if the held model does not tell it.
  [[nodiscard]] bytes optimizer_state(const layer& l, const workload& w) const { return ask(model_->optimizer_state, l, w); }
  [[nodiscard]] bool has_optimizer_state() const { return tells_optimizer_state_; }

  /// Bytes per sample of several layers: their activations, and the part of them that backward_weight needs.
  struct activation_bytes {
    double all = 0, for_weights = 0;
  };
  /// Returns the activations of several layers after checks: one indirect call for all.  Throws invalid_model.
  [[nodiscard]] activation_bytes total_activations(const planning_graph& g, std::span<const layer_id> layers, const workload& w) const {
    return ask(model_->total_activations, g, layers, w);
  }
  /// Returns checked_state, added up over the distinct tensors of several layers.
  [[nodiscard]] double total_state(const planning_graph& g, std::span<const layer_id> layers, const workload& w, int shards) const {
    return ask(model_->total_state, g, layers, w, shards);
  }

 private:
  struct calls {
    using of_layer = bytes(void*, const layer&, const workload&);
    of_layer *state, *activations, *cache, *activations_for_weights, *optimizer_state;
    activation_bytes (*total_activations)(void*, const planning_graph&, std::span<const layer_id>, const workload&);
    double (*total_state)(void*, const planning_graph&, std::span<const layer_id>, const workload&, int shards);
  };
  template <class M>
  [[nodiscard]] static calls calls_of() {
    calls c;
    c.state = [](void* m, auto... a) { return as<const M>(m).state(a...); };
    c.activations = [](void* m, auto... a) { return as<const M>(m).activations(a...); };
    c.cache = [](void* m, auto... a) { return as<const M>(m).cache(a...); };
    c.activations_for_weights = [](void* m, auto... a) {
      if constexpr (splits_activations<M>) return as<const M>(m).activations_for_weights(a...);
      else return as<const M>(m).activations(a...);
    };
    c.optimizer_state = [](void* m, auto... a) -> bytes {
      if constexpr (tells_optimizer_state<M>) return as<const M>(m).optimizer_state(a...);
      else throw_no_optimizer_state();
    };
    c.total_activations = [](void* m, const planning_graph& g, std::span<const layer_id> layers, const workload& w) {
      activation_bytes total;
      for (const layer_id l : layers) {
        const double all = checked_bytes(as<const M>(m).activations(g[l], w), "activations", g[l]);
        total.all += all;
        if constexpr (splits_activations<M>) {
          const bytes part = as<const M>(m).activations_for_weights(g[l], w);
          total.for_weights += checked_part(part, "activations_for_weights", g[l], all, "activations");
        } else {
          total.for_weights += all;
        }
      }
      return total;
    };
    c.total_state = [](void* m, const planning_graph& g, std::span<const layer_id> layers, const workload& w, int shards) {
      double total = 0;
      for_each_tensor(g, layers, [&](const layer& l) { total += checked_state(as<const M>(m), l, w, shards); });
      return total;
    };
    return c;
  }
  template <class R, class... P, class... A>
  [[nodiscard]] R ask(R (*call)(void*, P...), const A&... a) const {
    const std::lock_guard lock(*one_at_a_time_);
    return call(model_.get(), a...);
  }

  erased<calls> model_;
  std::shared_ptr<std::mutex> one_at_a_time_ = std::make_shared<std::mutex>();
  bool tells_optimizer_state_;
};

static_assert(check_memory_model<any_memory_model>());

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/memory_model.ipp>
#endif
