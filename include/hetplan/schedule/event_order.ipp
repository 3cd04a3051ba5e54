// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/event_order.hpp>

#include <tuple>
#include <utility>

#include <hetplan/core/sorting.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE bool drains(const tasks::task_graph& g, const tasks::transfer& t) {
  return t.volume_bytes > 0 && !g.routes[t.route].via.empty();
}

HETPLAN_INLINE timing_rows::timing_rows(const cep_graph& cep, const trace& run, const time_window& window, lp_problem& lp)
    : cep_(cep), run_(run), window_(window), unit_s_(run.latency.value()), paths_(tasks::longest_paths(cep.tasks(), cep.network())) {
  constexpr double rounding = 1e-12;  // a run may fall below the bound by rounding
  const tasks::task_graph& g = cep.tasks();
  makespan_ = {lp.add_column(1, cep.bound().value() / unit_s_ * (1 - rounding)), 0};
  end_.resize(g.size());
  ready_.resize(g.transfers.size());
  find_barriers();
  for (tasks::node_id n = 0; n < g.size(); ++n) add_times(lp, n);
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) follow(lp, n, m);
    if (paths_.tail_s[n] == 0) after(lp, makespan_, end_[n], 0);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) follow(lp, order[i - 1], order[i]);
  }
  for (std::size_t t = 0; t < g.transfers.size(); ++t) {  // transfers behind the window move as a block but keep their releases
    const double latency_s = g.transfers[t].latency_s, ready_s = run.transfers[t].start_s + latency_s;
    if (ready_s >= window.to_s) after(lp, moment(ready_s), {-1, (g.transfers[t].release_s + latency_s) / unit_s_}, 0);
  }
}

HETPLAN_INLINE lp_time timing_rows::moment(double at_s) const {
  if (at_s < window_.to_s) return {-1, at_s / unit_s_};
  return {makespan_.column, (at_s - run_.latency.value()) / unit_s_};
}

HETPLAN_INLINE void timing_rows::after(lp_problem& lp, lp_time later, lp_time earlier, double seconds) const {
  if (later.column == earlier.column) return;
  lp_problem::row row{.terms = {}, .lower = seconds / unit_s_ - later.constant + earlier.constant};
  if (later.column >= 0) row.terms.emplace_back(later.column, 1);
  if (earlier.column >= 0) row.terms.emplace_back(earlier.column, -1);
  lp.rows.push_back(std::move(row));
}

HETPLAN_INLINE lp_time timing_rows::time(lp_problem& lp, double begins_s, double late_s, double at_s, double earliest_s) const {
  if (late_s >= window_.to_s) return moment(at_s);
  if (begins_s < window_.from_s) return {-1, at_s / unit_s_};
  return {lp.add_column(0, earliest_s / unit_s_ * (1 - 1e-12)), 0};
}

HETPLAN_INLINE void timing_rows::add_times(lp_problem& lp, tasks::node_id n) {
  const tasks::task_graph& g = cep_.tasks();
  const double earliest_s = paths_.earliest_end_s[n];
  if (!g.is_compute(n) && !g.is_transfer(n)) {
    end_[n] = time(lp, barrier_s_[n], barrier_s_[n], barrier_s_[n], earliest_s);
    return;
  }
  const interval& when = g.is_compute(n) ? run_.computes[n] : run_.transfers[n - g.computes.size()];
  if (g.is_compute(n) || !drains(g, g.transfer_at(n))) {
    end_[n] = time(lp, when.start_s, when.start_s, when.end_s, earliest_s);
    return;
  }
  const auto t = static_cast<std::uint32_t>(n - g.computes.size());
  const double ready_s = when.start_s + g.transfers[t].latency_s;
  ready_[t] = time(lp, when.start_s, ready_s, ready_s, paths_.earliest_start_s[n] + g.transfers[t].latency_s);
  end_[n] = time(lp, when.end_s, when.end_s, when.end_s, earliest_s);
  if (ready_s >= window_.to_s || when.end_s < window_.from_s) return;
  draining_.push_back(t);
  after(lp, end_[n], ready_[t], 0);
}

HETPLAN_INLINE void timing_rows::follow(lp_problem& lp, tasks::node_id before, tasks::node_id n) const {
  const tasks::task_graph& g = cep_.tasks();
  if (g.is_compute(n)) return after(lp, end_[n], end_[before], g.computes[n].duration_s);
  if (!g.is_transfer(n)) return after(lp, end_[n], end_[before], 0);
  const bool draining = drains(g, g.transfer_at(n));
  after(lp, draining ? ready_[n - g.computes.size()] : end_[n], end_[before], g.transfer_at(n).latency_s);
}

HETPLAN_INLINE void timing_rows::find_barriers() {
  const tasks::task_graph& g = cep_.tasks();
  barrier_s_.assign(g.size(), 0);
  for (const tasks::node_id n : paths_.order) {
    const double end_s = g.is_compute(n)    ? run_.computes[n].end_s
                         : g.is_transfer(n) ? run_.transfers[n - g.computes.size()].end_s
                                            : barrier_s_[n];
    for (const tasks::node_id m : g.successors_of(n)) barrier_s_[m] = std::max(barrier_s_[m], end_s);
  }
}

HETPLAN_INLINE event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window) {
  const tasks::task_graph& g = cep.tasks();
  std::vector<std::tuple<double, int, std::uint32_t>> events;  // time; 0 for ends, 1 for starts, 2 for ends at their own start; transfer
  for (std::uint32_t i = 0; i < g.transfers.size(); ++i) {
    if (!drains(g, g.transfers[i])) continue;
    const double start = t.transfers[i].start_s + g.transfers[i].latency_s, end = std::max(start, t.transfers[i].end_s);
    if (start >= window.from_s && start < window.to_s) events.emplace_back(start, 1, i);
    if (end >= window.from_s && end < window.to_s) events.emplace_back(end, end > start ? 0 : 2, i);
  }
  sort_stably(events);
  event_order order;
  for (const auto& [time, kind, transfer] : events) order.push_back({transfer, kind != 1});
  return order;
}

HETPLAN_INLINE std::vector<message_chunk> sequence_of_order(const cep_graph& cep, const event_order& order) {
  std::vector<std::pair<std::size_t, std::uint32_t>> last(cep.messages());
  for (std::uint32_t f = 0; f < cep.messages(); ++f) last[f] = {0, f};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].ends) last[cep.message_of(order[i].transfer)].first = i;
  }
  sort_stably(last);
  std::vector<message_chunk> sequence;
  for (const auto& [position, message] : last) sequence.push_back({message, 0});
  return sequence;
}

}  // namespace hetplan::schedule
