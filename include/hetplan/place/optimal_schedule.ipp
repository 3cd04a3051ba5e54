// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/optimal_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/partial_schedule.hpp>

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
  sort_by(pairs_, [](const pair& x) { return std::pair(x.a, x.b); });
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

namespace detail {

/// Returns, by device, the lowest number among the devices that are interchangeable with it in every schedule.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> device_twins(const placement_table& t, const placement_rules& r,
                                                                   const device_domains& domains) {
  const std::size_t d = t.devices();
  const auto alike = [&](std::size_t a, std::size_t b) {
    if (r.contention == contention::per_link || r.contention == contention::shared) return false;  // wires would also have to be alike
    if (t.capacity_bytes(a) != t.capacity_bytes(b)) return false;
    for (std::size_t v = 0; v < t.size(); ++v) {
      if (t.time_s(v, a) != t.time_s(v, b)) return false;
    }
    for (std::size_t e = 0; e < t.edges().size(); ++e) {
      if (domains.carried_s(e, a, b) != domains.carried_s(e, b, a)) return false;
      for (std::size_t k = 0; k < d; ++k) {
        if (k == a || k == b) continue;
        if (domains.carried_s(e, a, k) != domains.carried_s(e, b, k) || domains.carried_s(e, k, a) != domains.carried_s(e, k, b))
          return false;
      }
    }
    return true;
  };
  std::vector<std::size_t> twin;
  for (std::size_t k = 0; k < d; ++k) {
    twin.push_back(k);
    for (std::size_t other = 0; other < k && twin[k] == k; ++other) {
      if (twin[other] == other && alike(other, k)) twin[k] = other;
    }
  }
  return twin;
}

/// Depth-first search over the devices of all operators for schedules below a limit.
class device_search {
 public:
  device_search(const placement_table& t, const placement_rules& r)
      : table_(t), rules_(r), domains_(t, r), twin_(device_twins(t, r, domains_)) {}

  /// Returns true if all schedules below the limit were covered. A schedule that was found is in best().
  bool run(double limit_s, long long& nodes) {
    limit_s_ = limit_s;
    nodes_ = &nodes;
    best_ = {};
    open_bound_s_ = shared_bound_s_ = std::numeric_limits<double>::infinity();
    return explore(domains_.all(), 0);
  }
  [[nodiscard]] const operator_schedule& best() const { return best_; }
  /// Returns the bound of a search that was cut off: no schedule that it left out is shorter.
  [[nodiscard]] double open_bound_s() const { return open_bound_s_; }
  /// Returns, under contention::shared, the bound of the schedules that were covered, however their transfers share the network.
  [[nodiscard]] double shared_bound_s() const { return shared_bound_s_; }

 private:
  bool explore(std::vector<device_set> sets, double parent_bound_s) {
    if (*nodes_ <= 0) {
      open_bound_s_ = std::min(open_bound_s_, parent_bound_s);
      return false;
    }
    --*nodes_;
    const double bound_s = domains_.narrow(sets, limit_s_);
    if (!(bound_s < limit_s_)) return true;
    const std::size_t op = choose_operator(sets);
    if (op == table_.size()) return sequence(sets, bound_s);
    std::vector<std::tuple<double, double, std::size_t>> devices;
    each_device(sets[op], [&](std::size_t k) {
      if (!is_repeated(sets, op, k)) devices.emplace_back(domains_.through_s(op, k), table_.time_s(op, k), k);
    });
    sort_stably(devices);
    for (const auto& [through_s, time_s, k] : devices) {
      if (std::max(bound_s, through_s) >= limit_s_) break;
      std::vector<device_set> child = sets;
      child[op] = device_set{1} << k;
      if (!explore(std::move(child), std::max(bound_s, through_s))) {
        open_bound_s_ = std::min(open_bound_s_, bound_s);
        return false;
      }
    }
    return true;
  }

  /// Returns the undecided operator with the longest path on its best device; size() if all are decided.
  [[nodiscard]] std::size_t choose_operator(const std::vector<device_set>& sets) const {
    std::size_t chosen = table_.size();
    double most_s = -1;
    for (const std::size_t v : table_.order()) {
      if (is_one(sets[v])) continue;
      double least_s = std::numeric_limits<double>::infinity();
      each_device(sets[v], [&](std::size_t k) { least_s = std::min(least_s, domains_.through_s(v, k)); });
      if (least_s > most_s) most_s = least_s, chosen = v;
    }
    return chosen;
  }

  /// Returns true if a smaller device of the operator's set is still interchangeable with this one.
  [[nodiscard]] bool is_repeated(const std::vector<device_set>& sets, std::size_t op, std::size_t device) const {
    for (std::size_t other = 0; other < device; ++other) {
      if (twin_[other] != twin_[device] || !has(sets[op], other)) continue;
      const bool told_apart = std::any_of(sets.begin(), sets.end(), [&](device_set s) { return has(s, other) != has(s, device); });
      if (!told_apart) return true;
    }
    return false;
  }

  /// Finds the best order for chosen devices. If transfers may share, orders of operators alone are searched first, with a bound of each
  /// resource. Only what this leaves open is searched for transfers that take turns.
  bool sequence(const std::vector<device_set>& sets, double bound_s) {
    std::vector<std::size_t> device;
    for (const device_set s : sets) device.push_back(only(s));
    if (largest_overflow_bytes(table_, device) > 0) return true;
    const bool shares = rules_.contention == contention::shared;
    double alone_s = 0;
    if (shares) {
      const job_order any_way = orders_.run(jobs_of(device, true).graph, limit_s_, *nodes_);
      if (!any_way.complete) open_bound_s_ = std::min(open_bound_s_, bound_s);
      if (!any_way.complete || any_way.start_s.empty()) return any_way.complete;
      alone_s = any_way.makespan_s;
    }
    const placed_jobs jobs = jobs_of(device, false);
    const job_order order = orders_.run(jobs.graph, limit_s_, *nodes_);
    if (!order.start_s.empty()) keep(device, jobs, order);
    if (!order.complete) open_bound_s_ = std::min(open_bound_s_, std::max(bound_s, alone_s));
    if (shares) shared_bound_s_ = std::min(shared_bound_s_, alone_s >= below(order.makespan_s) ? order.makespan_s : alone_s);
    return order.complete;
  }

  /// Operators and transfers of a placement as jobs of devices and channels.
  struct placed_jobs {
    disjunctive_graph graph;
    struct transfer {
      std::size_t edge, job;  ///< last job of the transfer
      double takes_s;
    };
    std::vector<transfer> transfers;
  };

  /// @param shared  true if transfers may run on a channel in parallel.
  [[nodiscard]] placed_jobs jobs_of(const std::vector<std::size_t>& device, bool shared) const {
    const std::size_t n = table_.size();
    placed_jobs jobs;
    disjunctive_graph& g = jobs.graph;
    g.machines.resize(table_.devices() + domains_.holds().size());
    if (shared) g.shared.resize(domains_.holds().size());
    for (std::size_t v = 0; v < n; ++v) {
      g.work_s.push_back(table_.time_s(v, device[v]));
      g.machines[device[v]].push_back(v);
    }
    keyed<std::size_t> sent;  // by edge or producer, and receiver
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [u, v, size] = table_.edges()[e];
      if (device[u] == device[v]) {
        g.arcs.emplace_back(u, v);
        continue;
      }
      const std::size_t key = rules_.copies == transfer_copies::per_device ? u : n + e;
      if (!sent.contains({key, device[v]})) sent[{key, device[v]}] = add_transfer(jobs, e, device[u], device[v], shared);
      g.arcs.emplace_back(*sent.find({key, device[v]}), v);
    }
    return jobs;
  }

  /// Adds a transfer as a job that holds its channels, behind a job without channels if it holds them at its end only. Returns the last.
  [[nodiscard]] std::size_t add_transfer(placed_jobs& jobs, std::size_t e, std::size_t from, std::size_t to, bool shared) const {
    disjunctive_graph& g = jobs.graph;
    const double takes_s = domains_.carried_s(e, from, to), holds_s = held_s(table_, rules_, e, from, to);
    std::size_t before = table_.edges()[e].from;
    const auto add_job = [&](double work_s) {
      g.arcs.emplace_back(before, g.work_s.size());
      before = g.work_s.size();
      g.work_s.push_back(work_s);
    };
    if (holds_s < takes_s) add_job(takes_s - holds_s);
    if (holds_s > 0 || holds_s == takes_s) add_job(holds_s);
    jobs.transfers.push_back({e, before, takes_s});
    const auto held = domains_.holds().of(from, to);
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (shared) g.shared[held[i]].push_back({before, busy_s(table_, rules_, e, from, to, i)});
      else if (rules_.contention != contention::shared || holds_s > 0) g.machines[table_.devices() + held[i]].push_back(before);
    }
    return before;
  }

  void keep(const std::vector<std::size_t>& device, const placed_jobs& jobs, const job_order& order) {
    const std::size_t n = table_.size();
    best_ = operator_schedule();
    best_.device = device;
    best_.start_s.assign(order.start_s.begin(), order.start_s.begin() + static_cast<std::ptrdiff_t>(n));
    best_.makespan_s = order.makespan_s;
    for (const auto& [e, job, takes_s] : jobs.transfers) {
      const auto [from, to, size] = table_.edges()[e];
      const double holds_s = jobs.graph.work_s[job], from_s = order.start_s[job];
      const double start_s =
          holds_s == takes_s ? from_s : std::max(order.start_s[from] + jobs.graph.work_s[from], from_s + holds_s - takes_s);
      best_.transfers.push_back({e, device[from], device[to], start_s, from_s + holds_s});
    }
    sort_transfers(best_.transfers);
    limit_s_ = below(best_.makespan_s);
  }

  const placement_table& table_;
  placement_rules rules_;
  device_domains domains_;
  std::vector<std::size_t> twin_;
  disjunctive_search orders_;
  operator_schedule best_;
  double limit_s_ = 0, open_bound_s_ = 0, shared_bound_s_ = 0;
  long long* nodes_ = nullptr;
};

}  // namespace detail

HETPLAN_INLINE long long steps_per_node(std::size_t operators, std::size_t edges, std::size_t devices) {
  return 1 + static_cast<long long>(std::max(operators * operators / 1024, (operators + edges) * devices * devices / 1024));
}

HETPLAN_INLINE operator_schedule optimal_schedule(const placement_table& t, const placement_rules& r, operator_schedule known,
                                                  const optimal_options& options, const any_observer<schedule_improved>& observer) {
  if (t.devices() > 64) throw invalid_input("optimal_schedule: expected at most 64 devices, got " + std::to_string(t.devices()));
  operator_schedule best = std::move(known);
  detail::device_search search(t, r);
  const long long steps_before = best.steps, steps_of_node = steps_per_node(t.size(), t.edges().size(), t.devices());
  const long long nodes = options.steps / steps_of_node;
  long long left = nodes;
  bool stopped = false;
  // Searches for schedules shorter than a makespan; true if all of them were covered.
  const auto look = [&](double than_s, long long most_nodes) {
    long long mine = std::min(most_nodes, left);
    left -= mine;
    const bool complete = search.run(below(than_s), mine);
    left += mine;
    const double bound_s = best.bound_s;
    if (search.best().found()) best = search.best();
    best.bound_s = bound_s;
    best.steps = steps_before + (nodes - left) * steps_of_node;
    const double seen_s = std::min({complete ? than_s : search.open_bound_s(), search.shared_bound_s(), best.makespan_s});
    if (std::isfinite(seen_s)) best.bound_s = std::max(bound_s, seen_s);
    stopped = best.found() && observer && observer({best.makespan_s, best.steps}) == control::stop;
    return complete;
  };
  const bool complete = look(best.makespan_s, nodes / 2);
  if (complete && !best.found()) {
    best.status = infeasible_after(t, nodes - left);
    best.bound_s = std::numeric_limits<double>::infinity();
    return best;
  }
  for (double high_s = best.makespan_s; !complete && !stopped && left > 0 && best.found();) {
    const double than_s = (best.bound_s + std::min(high_s, best.makespan_s)) / 2;
    if (than_s - best.bound_s < 1e-4 * best.makespan_s) break;
    high_s = look(than_s, std::max(left / 4, nodes / 64)) ? best.makespan_s : than_s;
  }
  best.status = {};
  best.exhausted = complete;
  if (stopped) best.status = {outcome::stopped, "an observer stopped the search; the best so far"};
  else if (!complete && best.gap() > 0) {
    const std::string ended = "the budget of " + std::to_string(options.steps) + " steps ended the branch and bound";
    best.status = best.found() ? status{outcome::stopped, ended + "; the best so far"}
                               : status{outcome::none_found, ended + " before it met a placement that keeps memory and routes"};
  }
  return best;
}

}  // namespace hetplan::place
