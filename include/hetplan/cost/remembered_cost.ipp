// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/remembered_cost.hpp>

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hetplan {

struct remembered_cost::tables {
  struct question {
    std::size_t device;
    work_kind kind;
    friend bool operator==(const question&, const question&) = default;
  };
  struct hash {
    [[nodiscard]] std::size_t operator()(const question& q) const {
      std::size_t h = std::hash<double>{}(q.kind.batch) * 31 + std::hash<double>{}(q.kind.fraction);
      for (const std::size_t part : {q.device, static_cast<std::size_t>(q.kind.phase), static_cast<std::size_t>(q.kind.tensor_parallel),
                                     static_cast<std::size_t>(q.kind.context)}) {
        h = h * 1000003 + part;
      }
      return h;
    }
  };

  /// Of one device and kind of work, by layer.
  struct row {
    struct price {
      layer_id before;  ///< invalid: not asked yet
      double s = 0;
    };
    std::vector<double> time_s;   ///< NaN: not asked yet
    std::vector<price> boundary;  ///< behind the layer that was asked about last; empty where there are no prices
  };

  any_cost_model asked;
  const planning_graph* model;
  std::span<const device> devices;
  std::size_t most;
  bool boundaries = asked.times_boundaries();
  std::mutex one_at_a_time = {};
  std::unordered_map<question, row, hash> rows = {};

  [[nodiscard]] bool knows(const planning_graph& m, const device& d) const {
    return &m == model && d.id.valid() && d.id.index() < devices.size() && &d == &devices[d.id.index()];
  }
  [[nodiscard]] row& row_of(const question& q) {
    const auto it = rows.find(q);
    if (it != rows.end()) return it->second;
    if ((rows.size() + 1) * model->size() > most) rows.clear();
    row empty{std::vector<double>(model->size(), std::numeric_limits<double>::quiet_NaN()), {}};
    if (boundaries) empty.boundary.resize(model->size());
    return rows.emplace(q, std::move(empty)).first->second;
  }
};

HETPLAN_INLINE remembered_cost::remembered_cost(any_cost_model asked, const planning_graph& model, const cluster& c, std::size_t most)
    : tables_(std::make_shared<tables>(std::move(asked), &model, c.devices(), most)) {}

HETPLAN_INLINE seconds remembered_cost::time(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.time(w, d);
}

HETPLAN_INLINE bool remembered_cost::times_optimizer() const { return tables_->asked.times_optimizer(); }

HETPLAN_INLINE seconds remembered_cost::optimizer_step(const layer& l, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.optimizer_step(l, d);
}

HETPLAN_INLINE bool remembered_cost::times_boundaries() const { return tables_->boundaries; }

HETPLAN_INLINE seconds remembered_cost::boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.boundary(before, after, k, d);
}

HETPLAN_INLINE double remembered_cost::largest_batch(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.largest_batch(w, d);
}

HETPLAN_INLINE void remembered_cost::times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  tables_->asked.times_s(model, k, d, by_layer);
}

HETPLAN_INLINE double remembered_cost::total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k,
                                               const device& d, double before) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  if (!tables_->knows(model, d)) return tables_->asked.total_s(model, layers, k, d, before);
  tables::row& row = tables_->row_of({d.id.index(), k});
  const auto time_s = [&](layer_id l) {
    double& s = row.time_s[l.index()];
    if (std::isnan(s)) s = checked_time_s(tables_->asked, k.of(model[l]), d);
    return s;
  };
  const auto boundary_s = [&](layer_id l, layer_id next) {
    tables::row::price& p = row.boundary[next.index()];
    if (p.before != l) p = {l, checked_boundary_s(tables_->asked, model[l], model[next], k, d)};
    return p.s;
  };
  return detail::add_run(before, layers, tables_->boundaries, time_s, boundary_s);
}

}  // namespace hetplan
