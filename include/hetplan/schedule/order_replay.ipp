// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_replay.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE double order_timeline::longest_span() const { return spans.empty() ? 0 : *std::max_element(spans.begin(), spans.end()); }

namespace detail {

/// Ends of forwards and gradients of inputs, as far as they have run.
class replay_run {
 public:
  replay_run(const pipeline_times& p, const orders_by_device& orders)
      : p_(p), orders_(orders), m_(static_cast<std::size_t>(p.microbatches)), ahead_(p.stages.size()), behind_(p.stages.size()),
        split_(p.stages.size(), false), ends_(2, std::vector<double>(p.stages.size() * m_, not_yet)) {
    if (orders.size() > p.devices())
      throw invalid_input("orders of " + std::to_string(orders.size()) + " devices; expected at most " + std::to_string(p.devices()));
    for (const stage_delay& e : p.edges) {
      ahead_[e.to].push_back(&e);
      behind_[e.from].push_back(&e);
    }
    std::vector<bool> seen(3 * p.stages.size() * m_, false);
    for (std::size_t d = 0; d < orders.size(); ++d) {
      for (const order_entry& e : orders[d]) {
        const std::size_t s = e.stage.index(), kind = static_cast<std::size_t>(e.what);
        if (kind > 2 || s >= p.stages.size() || p.stages[s].device != d || e.microbatch < 0 || e.microbatch >= p.microbatches) {
          throw invalid_input("orders of device " + std::to_string(d) + ": no task of stage " + std::to_string(s) + ", microbatch " +
                              std::to_string(e.microbatch) + " is its own");
        }
        if (seen[(kind * p.stages.size() + s) * m_ + static_cast<std::size_t>(e.microbatch)]) {
          throw invalid_input("orders of device " + std::to_string(d) + ": a task of stage " + std::to_string(s) + " twice");
        }
        seen[(kind * p.stages.size() + s) * m_ + static_cast<std::size_t>(e.microbatch)] = true;
        if (e.what == phase::backward_weight) split_[s] = true;
      }
    }
  }

  [[nodiscard]] order_timeline run() {
    order_timeline out;
    const std::size_t devices = p_.devices();
    out.tasks.resize(devices);
    out.spans.assign(devices, 0);
    out.peaks.assign(devices, 0);
    std::vector<double> held(devices, 0.0), free(devices, 0.0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < orders_.size(); ++d) {
        while (out.tasks[d].size() < orders_[d].size()) {
          const order_entry& e = orders_[d][out.tasks[d].size()];
          const double ready = ready_at(e);
          if (ready == not_yet) break;
          const double start = std::max(free[d], ready);
          free[d] = start + length(e);
          record(e, free[d]);
          out.tasks[d].push_back({e, start, free[d]});
          hold(e, held[d], out.peaks[d]);
          moved = true;
        }
      }
    }
    for (std::size_t d = 0; d < orders_.size(); ++d) {
      if (out.tasks[d].size() < orders_[d].size()) out.ends = false;
      if (out.tasks[d].empty()) continue;
      out.spans[d] = out.tasks[d].back().end - out.tasks[d].front().start;
      out.makespan = std::max(out.makespan, out.tasks[d].back().end);
    }
    return out;
  }

 private:
  static constexpr double not_yet = std::numeric_limits<double>::infinity();

  [[nodiscard]] double end_of(phase what, std::size_t stage, const order_entry& e) const {
    return ends_[what == phase::forward ? 0 : 1][stage * m_ + static_cast<std::size_t>(e.microbatch)];
  }
  [[nodiscard]] double ready_at(const order_entry& e) const {
    const std::size_t s = e.stage.index();
    double t = 0;
    if (e.what == phase::forward) {
      for (const stage_delay* a : ahead_[s]) t = std::max(t, end_of(phase::forward, a->from, e) + a->forward);
    } else if (e.what == phase::backward_input) {
      t = end_of(phase::forward, s, e);
      for (const stage_delay* b : behind_[s]) t = std::max(t, end_of(phase::backward_input, b->to, e) + b->backward);
    } else {
      t = end_of(phase::backward_input, s, e);
    }
    return t;
  }
  [[nodiscard]] double length(const order_entry& e) const {
    const phase_times& t = p_.stages[e.stage.index()];
    if (e.what == phase::forward) return t.forward;
    if (e.what == phase::backward_weight) return t.backward_weight;
    return t.backward_input + (split_[e.stage.index()] ? 0 : t.backward_weight);
  }
  void record(const order_entry& e, double end) {
    if (e.what != phase::backward_weight) {
      ends_[e.what == phase::forward ? 0 : 1][e.stage.index() * m_ + static_cast<std::size_t>(e.microbatch)] = end;
    }
  }
  void hold(const order_entry& e, double& held, double& peak) const {
    const phase_times& t = p_.stages[e.stage.index()];
    if (e.what == phase::forward) held += t.activation;
    if (e.what == phase::backward_input) held += t.recomputed;
    peak = std::max(peak, held);
    const double kept = split_[e.stage.index()] ? t.kept_for_weights : 0;
    if (e.what == phase::backward_input) held -= t.recomputed + t.activation - kept;
    if (e.what == phase::backward_weight) held -= kept;
  }

  const pipeline_times& p_;
  const orders_by_device& orders_;
  std::size_t m_;
  std::vector<std::vector<const stage_delay*>> ahead_, behind_;
  std::vector<bool> split_;
  std::vector<std::vector<double>> ends_;
};

}  // namespace detail

HETPLAN_INLINE order_timeline replay_orders(const pipeline_times& p, const orders_by_device& orders) {
  return detail::replay_run(p, orders).run();
}

}  // namespace hetplan::schedule
