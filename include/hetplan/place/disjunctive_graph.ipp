// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/disjunctive_graph.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::place {

HETPLAN_INLINE job_order disjunctive_search::run(const disjunctive_graph& g, double limit_s, long long& nodes) {
  load(g);
  limit_s_ = limit_s;
  nodes_ = &nodes;
  best_ = {};
  best_.complete = explore();
  return std::move(best_);
}

HETPLAN_INLINE void disjunctive_search::load(const disjunctive_graph& g) {
  const std::size_t n = g.work_s.size();
  work_s_ = g.work_s;
  machines_ = g.machines;
  shared_ = g.shared;
  head_s_.assign(n, 0);
  tail_s_.assign(n, 0);
  waits_for_.assign(n, 0);
  if (after_.size() < n) after_.resize(n);
  for (std::size_t i = 0; i < n; ++i) after_[i].clear();
  for (const auto& [before, after] : g.arcs) {
    after_[before].push_back(static_cast<std::uint32_t>(after));
    ++waits_for_[after];
  }
  trail_.clear();
  pairs_.clear();
  for (const auto& machine : machines_) {
    for (std::size_t i = 0; i < machine.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) pairs_.push_back({std::min(machine[i], machine[j]), std::max(machine[i], machine[j])});
    }
  }
  std::sort(pairs_.begin(), pairs_.end(), [](const pair& x, const pair& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  const auto same = [](const pair& x, const pair& y) { return x.a == y.a && x.b == y.b; };
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same), pairs_.end());
}

HETPLAN_INLINE bool disjunctive_search::explore() {
  if (*nodes_ <= 0) return false;
  --*nodes_;
  const std::size_t mark = trail_.size();
  if (!propagate() || machines_too_long()) {
    undo(mark);
    return true;
  }
  const pair* chosen = most_costly_overlap();
  if (chosen == nullptr) {
    double end_s = 0;
    for (std::size_t i = 0; i < work_s_.size(); ++i) end_s = std::max(end_s, head_s_[i] + work_s_[i]);
    for (const auto& machine : shared_) end_s = std::max(end_s, shared_bound_s(machine));
    best_.start_s = head_s_;
    best_.makespan_s = end_s;
    limit_s_ = below(end_s);
    undo(mark);
    return true;
  }
  pair& p = pairs_[static_cast<std::size_t>(chosen - pairs_.data())];
  const std::pair costs_s(through_s(p.a, p.b), through_s(p.b, p.a));
  const bool a_first = costs_s.first <= costs_s.second;
  bool complete = true;
  for (const bool order : {a_first, !a_first}) {
    if ((order ? costs_s.first : costs_s.second) >= limit_s_) continue;
    const std::size_t before = trail_.size();
    decide(p, order);
    complete = explore();
    undo(before);
    if (!complete) break;
  }
  undo(mark);
  return complete;
}

HETPLAN_INLINE bool disjunctive_search::propagate() {
  for (bool changed = true; changed;) {
    if (!measure()) return false;
    changed = false;
    for (pair& p : pairs_) {
      if (p.decided) continue;
      const bool a_cannot = through_s(p.a, p.b) >= limit_s_, b_cannot = through_s(p.b, p.a) >= limit_s_;
      if (a_cannot && b_cannot) return false;
      if (!a_cannot && !b_cannot) continue;
      decide(p, b_cannot);
      changed = true;
    }
  }
  return true;
}

HETPLAN_INLINE bool disjunctive_search::measure() {
  const std::size_t n = work_s_.size();
  waiting_ = waits_for_;
  order_.clear();
  for (std::uint32_t i = 0; i < n; ++i) {
    head_s_[i] = tail_s_[i] = 0;
    if (waiting_[i] == 0) order_.push_back(i);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const std::uint32_t i = order_[at];
    const double end_s = head_s_[i] + work_s_[i];
    if (end_s >= limit_s_) return false;
    for (const std::uint32_t j : after_[i]) {
      head_s_[j] = std::max(head_s_[j], end_s);
      if (--waiting_[j] == 0) order_.push_back(j);
    }
  }
  if (order_.size() < n) return false;
  for (std::size_t at = n; at-- > 0;) {
    const std::uint32_t i = order_[at];
    for (const std::uint32_t j : after_[i]) tail_s_[i] = std::max(tail_s_[i], work_s_[j] + tail_s_[j]);
  }
  return true;
}

HETPLAN_INLINE double disjunctive_search::shared_bound_s(const std::vector<disjunctive_graph::part_of_machine>& machine) {
  jobs_.clear();
  for (const auto& [job, work_s] : machine) jobs_.push_back({head_s_[job], work_s, tail_s_[job]});
  return jobs_.size() < 2 ? 0 : preemptive_machine_bound(jobs_);
}

HETPLAN_INLINE bool disjunctive_search::machines_too_long() {
  for (const auto& machine : shared_) {
    if (shared_bound_s(machine) >= limit_s_) return true;
  }
  return std::any_of(machines_.begin(), machines_.end(), [&](const auto& machine) {
    if (machine.size() < 2) return false;
    jobs_.clear();
    for (const std::size_t i : machine) jobs_.push_back({head_s_[i], work_s_[i], tail_s_[i]});
    return preemptive_machine_bound(jobs_) >= limit_s_;
  });
}

HETPLAN_INLINE auto disjunctive_search::most_costly_overlap() const -> const pair* {
  const pair* chosen = nullptr;
  std::pair most(0.0, 0.0);
  for (const pair& p : pairs_) {
    if (p.decided || head_s_[p.a] >= head_s_[p.b] + work_s_[p.b] || head_s_[p.b] >= head_s_[p.a] + work_s_[p.a]) continue;
    const auto costs_s = std::minmax({through_s(p.a, p.b), through_s(p.b, p.a)});
    if (chosen != nullptr && !(costs_s > most)) continue;
    chosen = &p;
    most = costs_s;
  }
  return chosen;
}

HETPLAN_INLINE void disjunctive_search::decide(pair& p, bool a_first) {
  const std::size_t first = a_first ? p.a : p.b, second = a_first ? p.b : p.a;
  p.decided = true;
  after_[first].push_back(static_cast<std::uint32_t>(second));
  ++waits_for_[second];
  trail_.emplace_back(static_cast<std::size_t>(&p - pairs_.data()), a_first);
}

HETPLAN_INLINE void disjunctive_search::undo(std::size_t mark) {
  while (trail_.size() > mark) {
    const auto [at, a_first] = trail_.back();
    trail_.pop_back();
    pair& p = pairs_[at];
    p.decided = false;
    after_[a_first ? p.a : p.b].pop_back();
    --waits_for_[a_first ? p.b : p.a];
  }
}

}  // namespace hetplan::place
