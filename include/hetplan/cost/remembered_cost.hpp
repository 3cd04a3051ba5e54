// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cost model asked once: its answers for one model on one cluster, kept in tables.

#include <memory>
#include <span>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/any_cost_model.hpp>

namespace hetplan {

/// A cost model that asks another one. `total_s` asks about each layer once per device and kind of work, and remembers: a search
/// judges thousands of plans whose stages differ little. Of the boundaries before a layer it remembers the last one: rows of layers
/// rarely differ in who comes before whom. Copies share what is remembered. It asks one question at a time, so a user's
/// model is never called from two threads at once.
///
/// Tables are per device, not per class of devices: a model may tell devices of one kind apart. Other graphs and clusters than its
/// own are asked about, not remembered.
///
/// Complexity  a total: O(layers of the call) additions. Memory: 8 bytes per layer, device and kind of work that was asked for, at most
///             `most` of them (three times as many where the model prices boundaries); then it forgets all.
class remembered_cost {
 public:
  static constexpr std::size_t most_numbers = std::size_t{1} << 24;

  /// Model and cluster must outlive it.
  remembered_cost(any_cost_model asked, const planning_graph& model, const cluster& c, std::size_t most = most_numbers);
  // A temporary is gone at the end of the line.
  remembered_cost(any_cost_model, const planning_graph&& the_model_must_outlive_it, const cluster&, std::size_t = most_numbers) = delete;
  remembered_cost(any_cost_model, const planning_graph&, const cluster&& the_cluster_must_outlive_it, std::size_t = most_numbers) = delete;

  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] bool times_optimizer() const;
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const;
  [[nodiscard]] bool times_boundaries() const;
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const;
  [[nodiscard]] double largest_batch(const work& w, const device& d) const;
  void times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const;
  [[nodiscard]] double total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k, const device& d,
                               double before) const;

 private:
  struct tables;
  std::shared_ptr<tables> tables_;
};

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cost/remembered_cost.ipp>
#endif
