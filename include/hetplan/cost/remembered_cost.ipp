// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/remembered_cost.hpp>

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace HETPLAN_NAMESPACE {

struct remembered_cost::tables {
  struct question {
    std::size_t device;
    work_kind kind;
    friend bool operator==(const question&, const question&) = default;
  };
  struct hash {
    [[nodiscard]] std::size_t operator()(const question& q) const {
      std::size_t h = std::hash<double>{}(q.kind.batch);
      for (const std::size_t part : {q.device, static_cast<std::size_t>(q.kind.phase), static_cast<std::size_t>(q.kind.tensor_parallel),
                                     static_cast<std::size_t>(q.kind.context)}) {
        h = h * 1000003 + part;
      }
      return h;
    }
  };

  any_cost_model asked;
  const planning_graph* model;
  std::span<const device> devices;
  std::size_t most;
  std::mutex one_at_a_time = {};
  std::unordered_map<question, std::vector<double>, hash> seconds_of = {};  ///< by layer; NaN: not asked yet

  [[nodiscard]] bool knows(const planning_graph& m, const device& d) const {
    return &m == model && d.id.valid() && d.id.index() < devices.size() && &d == &devices[d.id.index()];
  }
  [[nodiscard]] std::vector<double>& row(const question& q) {
    const auto it = seconds_of.find(q);
    if (it != seconds_of.end()) return it->second;
    if ((seconds_of.size() + 1) * model->size() > most) seconds_of.clear();
    return seconds_of.emplace(q, std::vector<double>(model->size(), std::numeric_limits<double>::quiet_NaN())).first->second;
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

HETPLAN_INLINE double remembered_cost::largest_batch(const work& w, const device& d) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  return tables_->asked.largest_batch(w, d);
}

HETPLAN_INLINE double remembered_cost::total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k,
                                               const device& d, double before) const {
  const std::lock_guard lock(tables_->one_at_a_time);
  if (!tables_->knows(model, d)) return tables_->asked.total_s(model, layers, k, d, before);
  std::vector<double>& row = tables_->row({d.id.index(), k});
  double total = before;
  for (const layer_id l : layers) {
    double& s = row[l.index()];
    if (std::isnan(s)) s = checked_time_s(tables_->asked, k.of(model[l]), d);
    total += s;
  }
  return total;
}

}  // namespace HETPLAN_NAMESPACE
