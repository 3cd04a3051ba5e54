// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A memory model chosen at run time.

#include <concepts>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <hetplan/cost/memory_model.hpp>
#include <hetplan/graph/distinct_tensors.hpp>

namespace hetplan {

/// Holds any memory model by value; copies share it (models are pure). One virtual call per question, one question at a time: a user's
/// model is never called from two threads at once. By default plain_memory, what files mean.
class any_memory_model {
 public:
  any_memory_model() : any_memory_model(plain_memory{}) {}
  template <class M>
    requires(!std::same_as<M, any_memory_model>)
  any_memory_model(M model) {
    static_assert(check_memory_model<M>());
    if constexpr (memory_model<M>) model_ = std::make_shared<holder<M>>(std::move(model));
  }

  [[nodiscard]] bytes state(const layer& l, const workload& w) const { return model_->state(l, w); }
  [[nodiscard]] bytes activations(const layer& l, const workload& w) const { return model_->activations(l, w); }
  [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return model_->cache(l, w); }
  /// All activations where the model that it holds does not split them.
  [[nodiscard]] bytes activations_for_weights(const layer& l, const workload& w) const { return model_->activations_for_weights(l, w); }
  /// Throws invalid_input where the model that it holds does not tell it.
  [[nodiscard]] bytes optimizer_state(const layer& l, const workload& w) const { return model_->optimizer_state(l, w); }
  [[nodiscard]] bool has_optimizer_state() const { return model_->has_optimizer_state(); }

  /// Bytes per sample of several layers: their activations, and the part of them that the weight part of a backward needs.
  struct activation_bytes {
    double all = 0, for_weights = 0;
  };
  /// One virtual call for all of them, each answer checked.  Throws invalid_model.
  [[nodiscard]] activation_bytes total_activations(const planning_graph& g, std::span<const layer_id> layers, const workload& w) const {
    return model_->total_activations(g, layers, w);
  }
  /// checked_state of the distinct tensors of several layers.
  [[nodiscard]] double total_state(const planning_graph& g, std::span<const layer_id> layers, const workload& w, int shards) const {
    return model_->total_state(g, layers, w, shards);
  }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual bytes state(const layer&, const workload&) const = 0;
    [[nodiscard]] virtual bytes activations(const layer&, const workload&) const = 0;
    [[nodiscard]] virtual bytes cache(const layer&, const workload&) const = 0;
    [[nodiscard]] virtual bytes activations_for_weights(const layer&, const workload&) const = 0;
    [[nodiscard]] virtual bytes optimizer_state(const layer&, const workload&) const = 0;
    [[nodiscard]] virtual bool has_optimizer_state() const = 0;
    [[nodiscard]] virtual activation_bytes total_activations(const planning_graph&, std::span<const layer_id>, const workload&) const = 0;
    [[nodiscard]] virtual double total_state(const planning_graph&, std::span<const layer_id>, const workload&, int shards) const = 0;
  };
  template <class M>
  struct holder final : interface {
    explicit holder(M m) : model(std::move(m)) {}
    [[nodiscard]] bytes state(const layer& l, const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      return model.state(l, w);
    }
    [[nodiscard]] bytes activations(const layer& l, const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      return model.activations(l, w);
    }
    [[nodiscard]] bytes cache(const layer& l, const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      return model.cache(l, w);
    }
    [[nodiscard]] bytes activations_for_weights(const layer& l, const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      if constexpr (splits_activations<M>) return model.activations_for_weights(l, w);
      else return model.activations(l, w);
    }
    [[nodiscard]] bytes optimizer_state(const layer& l, const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      if constexpr (tells_optimizer_state<M>) return model.optimizer_state(l, w);
      else throw_no_optimizer_state();
    }
    [[nodiscard]] bool has_optimizer_state() const override { return tells_optimizer_state<M>; }
    [[nodiscard]] activation_bytes total_activations(const planning_graph& g, std::span<const layer_id> layers,
                                                     const workload& w) const override {
      const std::lock_guard lock(one_at_a_time);
      activation_bytes total;
      for (const layer_id l : layers) {
        total.all += checked_bytes(model.activations(g[l], w), "activations", g[l]);
        total.for_weights += checked_activations_for_weights(model, g[l], w);
      }
      return total;
    }
    [[nodiscard]] double total_state(const planning_graph& g, std::span<const layer_id> layers, const workload& w,
                                     int shards) const override {
      const std::lock_guard lock(one_at_a_time);
      double total = 0;
      for_each_tensor(g, layers, [&](const layer& l) { total += checked_state(model, l, w, shards); });
      return total;
    }
    M model;
    mutable std::mutex one_at_a_time = {};
  };
  std::shared_ptr<const interface> model_;
};

static_assert(check_memory_model<any_memory_model>());

}  // namespace hetplan
