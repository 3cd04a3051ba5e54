// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The recurrence behind two_substate_dp: one run over given boundaries.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/partition/closed_cells.hpp>
#include <hetplan/partition/completion_bounds.hpp>
#include <hetplan/partition/graph_tails.hpp>
#include <hetplan/partition/incumbents.hpp>
#include <hetplan/partition/memory_reach.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/rebuild_plan.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/partition/stage_memo.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/any_step_law.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// Walks the boundaries from the end. At each it closes the cells there and puts one more stage before their partial
/// plans: on every group that the device space allows next, from every boundary that makes a stage.
///
/// Source  Dora, section 4.1, eqs. 3-5. Deviations: see two_substate_dp.
template <cell_policy Policy>
class substate_search {
 public:
  substate_search(const search_tables& t, const device_space& space, const plan& blank, const any_objective& o, const Policy& policy,
                  const search_options& options, std::vector<std::size_t> boundaries, double known_score,
                  any_observer<cell_filled> watch = {})
      : t_(t), space_(space), blank_(blank), objective_(o), options_(options), watch_(watch), boundaries_(std::move(boundaries)),
        serial_(t.cuts.serial()), warmup_(blank, options), levels_(warmup_.levels()), best_(o, options, known_score),
        energy_matters_(asks_for_energy()), law_(options.law.value_or(any_step_law(blank.workload.mode))),
        pipelining_(pipelining_of(blank, options.warmup)), costs_(t.table, space, t.cluster, t.slopes, blank, options.keep_budgets),
        bounds_(t, space, boundaries_, blank, serial_), links_(space, t.cluster.network(), blank), tails_(t.crossings, links_),
        memo_(costs_, boundaries_, space.groups.size()), store_(policy, boundaries_.size() * space.states() * levels_),
        reach_(costs_, space, boundaries_, options.max_stages, [&](int depth) { return in_flight(serial_ ? depth : 1); }),
        start_(space.states()) {
    for (std::size_t s = 0; s < start_.size(); ++s) start_[s] = reach_.last(s, 1);
    for (const std::size_t b : boundaries_) least_links_.push_back(b == 0 ? link_times{} : serial_link(links_.best(), b));
  }

  search_result run() {
    search_result r;
    bool stopped = false;
    if (reach_.last(0, 0) + 1 < boundaries_.size()) {
      r.status = {outcome::infeasible, "no plan of the searched space fits into memory"};
      return r;
    }
    for (std::size_t p = boundaries_.size() - 1; p > 0 && !stopped; --p) {
      lower_starts();
      for (std::size_t s = 0; s < space_.states() && !stopped; ++s) stopped = extend_from(p, s, r.counts) == control::stop;
    }
    for (const partial_node& whole : best_.all()) r.plans.push_back(rebuild(whole));
    r.counts.extended = extended_;
    const bool spent = extended_ >= options_.most_extensions;
    if (stopped) r.status = {outcome::stopped, spent ? "stopped by the limit of extensions" : "stopped by an observer"};
    else if (best_.all().empty()) r.status = {outcome::infeasible, "no plan of the searched space keeps the limits"};
    return r;
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  [[nodiscard]] int in_flight(int depth) const { return warmup_.in_flight(depth); }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t state, int stages) const {
    return (state * boundaries_.size() + boundary) * levels_ + std::min(static_cast<std::size_t>(stages), levels_) - 1;
  }

  /// Without an objective that reads energy, budgets or busy caps, energy is worked out for the plans found only.
  [[nodiscard]] bool asks_for_energy() const {
    for (const device& d : t_.cluster.devices()) {
      if (options_.keep_budgets && (d.energy_budget || d.max_busy < 1)) return true;
    }
    for (const double t : {0.0, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
      if (best_.score(t, 0) != best_.score(t, 1e30)) return true;
    }
    return false;
  }

  /// T at least, when these are to come before a tail: see tells_bound.
  template <step_law Law>
  [[nodiscard]] double bound_s(const Law& law, const pipeline_tail& x, const link_times& least, double path_s, double busiest_s) const {
    if constexpr (tells_bound<Law>) return law.bound_s(pipelining_, x, least, path_s, busiest_s);
    else return law.response_s(pipelining_, x);
  }
  [[nodiscard]] double least_s(double busiest_s) const {
    return law_.visit([&](const auto& law) { return bound_s(law, {}, {}, 0, busiest_s); });
  }

  /// Beyond its start, what is left for a state costs too much whatever lies behind.
  void lower_starts() {
    const auto too_late = [&](std::size_t s, std::size_t a) {
      return options_.prune && best_.score(least_s(bounds_.busiest_s(s, a)), bounds_.energy_J(a)) > best_.worth_keeping();
    };
    for (std::size_t s = 0; s < start_.size(); ++s) {
      while (start_[s] > 0 && too_late(s, start_[s])) --start_[s];
    }
  }

  control extend_from(std::size_t p, std::size_t state, search_counts& counts) {
    if (extended_ >= options_.most_extensions) return control::stop;
    suffixes_.ranges.clear();
    if (p + 1 == boundaries_.size()) {
      if (state == 0) suffixes_.ranges.push_back({.begin = 0, .end = 1, .stages = 0});
    } else {
      for (int stages = 1; stages <= static_cast<int>(levels_); ++stages) {
        const auto& kept = store_.cell(cell(p, state, stages));
        if (kept.empty()) continue;
        ++counts.cells;
        counts.kept += static_cast<long long>(kept.size());
        if (tell(p, state, stages, kept) == control::stop) return control::stop;
        const auto [begin, end] = store_.close(cell(p, state, stages));
        suffixes_.ranges.push_back({.begin = begin, .end = end, .stages = stages});
      }
    }
    if (suffixes_.ranges.empty()) return control::go;
    law_.visit([&](const auto& law) {
      for (const device_space::move& m : space_.moves[state]) extend_by(law, p, m);
    });
    return control::go;
  }
  control tell(std::size_t p, std::size_t state, int stages, const std::vector<partial_node>& cell) {
    if (!watch_) return control::go;
    std::vector<const partial_plan*> kept(cell.size());
    std::transform(cell.begin(), cell.end(), kept.begin(), [](const partial_node& n) { return &n; });
    return watch_(cell_filled{boundaries_[p], t_.sequence.size(), state, stages, kept});
  }

  template <step_law Law>
  void extend_by(const Law& law, std::size_t p, const device_space::move& m) {
    if (serial_ && !prepare_links(law, p, m.group)) return;
    const std::size_t chain = t_.sequence.chain_of(boundaries_[p] - 1);
    const bool at_end = t_.sequence.chain_end(chain) == boundaries_[p];
    for (std::size_t a = std::min(p - 1, start_[m.to]);; --a) {
      const bool inside = boundaries_[a] >= t_.sequence.chain_first[chain];
      if (!inside && !at_end) return;
      if (inside || t_.sequence.is_stage(boundaries_[a], boundaries_[p])) {
        const double least_s = bounds_.stage_s(m.group, a, p);
        if (options_.prune && best_.score(bound_s(law, {}, {}, 0, least_s), 0) > best_.worth_keeping()) return;
        if (!serial_ || !options_.prune ||
            !hopeless(law, law.extend(pipelining_, stage_times{least_s, least_s, 0}, suffixes_.best), a, m.to)) {
          if (!memo_.may_hold(a, p, m.group)) return;
          if (serial_) extend_serial(law, p, a, m);
          else extend_graph(law, p, a, m);
        }
      }
      if (a == 0) return;
    }
  }

  /// T at least, for a partial plan that begins at a boundary and leaves a state.
  template <step_law Law>
  [[nodiscard]] double response_s(const Law& law, const pipeline_tail& x, std::size_t a, std::size_t state) const {
    if (a == 0) return law.response_s(pipelining_, x);
    return bound_s(law, x, least_links_[a], bounds_.path_s(state, a), bounds_.busiest_s(state, a));
  }
  [[nodiscard]] double rank_of(double response_s, double energy_J, double idle_W, std::size_t a) const {
    if (!(response_s < inf)) return inf;  // a route is missing; nobody is asked what that is worth
    return energy_matters_ ? best_.score(response_s, energy_J + bounds_.energy_J(a) + idle_W * response_s) : best_.score(response_s, 0);
  }
  /// Can nothing come of extensions that are no better than this?
  template <step_law Law>
  [[nodiscard]] bool hopeless(const Law& law, const pipeline_tail& x, std::size_t a, std::size_t state) const {
    const double rank = rank_of(response_s(law, x, a, state), suffixes_.best_energy_J, suffixes_.best_idle_W, a);
    if (rank > best_.worth_keeping()) return true;
    const auto closed = [&](const closed_cells::range& r) { return rank >= store_.bar(cell(a, state, r.stages + 1)); };
    return a > 0 && std::all_of(suffixes_.ranges.begin(), suffixes_.ranges.end(), closed);
  }

  [[nodiscard]] link_times serial_link(const exchange_cost& x, std::size_t block) const {
    double forward = 0, gradient = 0;
    for (const crossing& c : t_.crossings.crossings(block)) {
      forward += c.forward_bytes;
      gradient += c.gradient_bytes;
    }
    return links_.time(x, forward, gradient);
  }
  template <step_law Law>
  bool prepare_links(const Law& law, std::size_t p, std::size_t group) {
    return suffixes_.look_through_links(store_, law, pipelining_, links_.uniform(),
                                        [&](std::size_t other) { return serial_link(links_.between(group, other), boundaries_[p]); });
  }

  template <step_law Law>
  void extend_serial(const Law& law, std::size_t p, std::size_t a, const device_space::move& m) {
    const double worth = best_.worth_keeping(), unlimited_s = memo_.unlimited(a, p, m.group).placed.total_s;
    for (const closed_cells::range& r : suffixes_.ranges) {
      if (a > reach_.last(m.to, static_cast<std::size_t>(r.stages) + 1)) continue;
      const std::size_t target = cell(a, m.to, r.stages + 1);
      const double bar = a > 0 ? store_.bar(target) : inf;
      /// Could an extension this good of a member of the range matter, and beat what a full cell holds?
      const auto may_enter = [&](const pipeline_tail& x, const stage_budget& b) {
        const double rank = rank_of(response_s(law, x, a, m.to), r.ideal.energy_J + b.energy_J, r.ideal.idle_W + b.idle_W, a);
        return rank <= worth && rank < bar;
      };
      if (options_.prune && !may_enter(law.extend(pipelining_, stage_times{unlimited_s, unlimited_s, 0}, r.best), {})) continue;
      stage_memo::entry& e = memo_.at(a, p, m.group, in_flight(r.stages + 1));
      const placed_stage& s = e.placed;
      if (!s.exists) continue;
      const stage_times times{s.total_s, s.backward_s, s.collective_s};
      const stage_budget b = energy_matters_ ? serial_budget(e, a, p, m.group, in_flight(r.stages + 1)) : stage_budget{};
      if (options_.prune) {
        const pipeline_tail best = law.extend(pipelining_, times, r.best);
        if (!may_enter(best, b)) continue;
        if (a > 0 && !store_.cell(target).empty() && store_.covered(target, extended(r.ideal, best, b, m.group))) continue;
      }
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const pipeline_tail x = law.extend(pipelining_, times, suffixes_.suffix_of(n));
        ++extended_;
        offer(store_[n], n, b, response_s(law, x, a, m.to), a, m, r.stages + 1, [&](partial_node& next) {
          next.finished = {x.reach_s, x.rest_s, 0, links_.key(m.group), 0};
        });
      }
    }
  }
  [[nodiscard]] partial_plan extended(const partial_plan& old, const pipeline_tail& x, const stage_budget& b, std::size_t group) const {
    partial_plan next;
    next.finished = {x.reach_s, x.rest_s, 0, links_.key(group), 0};
    next.energy_J = old.energy_J + b.energy_J;
    next.idle_W = old.idle_W + b.idle_W;
    next.limit_s = std::min(old.limit_s, b.limit_s);
    next.stretch_s = std::max(old.stretch_s, b.stretch_s);
    next.stages = old.stages + 1;
    return next;
  }

  template <step_law Law>
  void extend_graph(const Law& law, std::size_t p, std::size_t a, const device_space::move& m) {
    const std::size_t first = boundaries_[a], last = boundaries_[p];
    const auto in = t_.cuts.bytes_in(first, last);
    const bool is_source = !t_.cuts.reads_from_before(first, last);
    for (const closed_cells::range& r : suffixes_.ranges) {
      for (std::size_t n = r.begin; n < r.end; ++n) {
        ++extended_;
        const partial_node& old = store_[n];
        const seen_suffix seen = tails_.look(law, pipelining_, first, last, m.group, old.ports);
        const int depth = seen.depth + 1;
        const placed_stage& s = memo_.at(a, p, m.group, in_flight(depth)).placed;
        if (!s.exists || !(seen.tails.reach_s < inf)) continue;
        const auto [reach, rest] = law.extend(pipelining_, stage_times{s.total_s, s.backward_s, s.collective_s}, seen.tails);
        const auto level = static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(depth), levels_));
        tail finished = old.finished;
        if (is_source) finished = {std::max(finished.reach_s, reach), std::max(finished.rest_s, rest), 0, 0, 0};
        const auto ports = tails_.extend(first, last, old.ports, {reach, rest, level, links_.key(m.group), 0});
        // What is to come lies before some of the tails only: no way through it is certain.
        double response = law.response_s(pipelining_, {finished.reach_s, finished.rest_s});
        if (a > 0) {
          double least_reach = finished.reach_s;
          for (const tail& t : ports) least_reach = std::max(least_reach, t.reach_s);
          response = bound_s(law, {least_reach, 0}, {}, 0, bounds_.busiest_s(m.to, a));
        }
        const stage_budget b =
            energy_matters_ ? costs_.budget(first, last, m.group, in_flight(depth), costs_.traffic(in, seen.out)) : stage_budget{};
        offer(old, n, b, response, a, m, depth, [&](partial_node& next) {
          next.finished = finished;
          next.ports = ports;
        });
      }
    }
  }

  /// Ranks an extension and keeps it where it may still matter; `tell_tails` sets what lies behind.
  template <class TellTails>
  void offer(const partial_node& old, std::size_t parent, const stage_budget& b, double response_s, std::size_t a,
             const device_space::move& m, int depth, TellTails&& tell_tails) {
    if (old.stages >= options_.max_stages || !(response_s < inf)) return;
    if (energy_matters_) {
      response_s = std::max({response_s, old.stretch_s, b.stretch_s});
      if (response_s > std::min(old.limit_s, b.limit_s)) return;
    }
    const double rank = rank_of(response_s, old.energy_J + b.energy_J, old.idle_W + b.idle_W, a);
    const std::size_t target = a > 0 ? cell(a, m.to, old.stages + 1) : 0;
    if ((options_.prune && rank > best_.worth_keeping()) || (a > 0 && rank >= store_.bar(target))) return;
    partial_node next;
    static_cast<partial_plan&>(next) = extended(old, {}, b, m.group);
    tell_tails(next);
    next.rank = rank;
    next.parent = static_cast<std::uint32_t>(parent);
    next.group = static_cast<std::uint32_t>(m.group);
    next.boundary = static_cast<std::uint32_t>(a);
    next.in_flight = in_flight(depth);
    if (a > 0) store_.keep(next, target);
    else best_.add(next);
  }

  [[nodiscard]] found_plan rebuild(const partial_node& whole) const {
    const double by_law_s = law_.visit([&](const auto& law) {
      return law.response_s(pipelining_, {whole.finished.reach_s, whole.finished.rest_s});
    });
    const double response_s = std::max(by_law_s, whole.stretch_s);
    found_plan f = rebuild_plan(whole, store_, boundaries_, t_, space_, costs_, blank_, options_, response_s);
    if (!objective_.monotone()) {
      f.score = score(objective_, f.estimate);
      if (std::isnan(f.score)) refuse_score(f.estimate.response().value(), f.estimate.energy().value());
    }
    return f;
  }
  /// Serial sequences: what a stage exchanges does not depend on how the rest is cut.
  const stage_budget& serial_budget(stage_memo::entry& e, std::size_t a, std::size_t p, std::size_t group, int in_flight) {
    if (e.budget.energy_J < 0) {
      const std::size_t first = boundaries_[a], last = boundaries_[p];
      const stage_traffic all = costs_.traffic(t_.cuts.bytes_in(first, last), t_.cuts.bytes_in(last, t_.sequence.size()));
      e.budget = costs_.budget(first, last, group, in_flight, all);
    }
    return e.budget;
  }

  const search_tables& t_;
  const device_space& space_;
  const plan& blank_;
  const any_objective& objective_;
  const search_options& options_;
  any_observer<cell_filled> watch_;
  std::vector<std::size_t> boundaries_;
  bool serial_;
  warmup_levels warmup_;
  std::size_t levels_;
  incumbents best_;
  bool energy_matters_;
  any_step_law law_;
  pipelining pipelining_;
  candidate_costs costs_;
  completion_bounds bounds_;
  group_links links_;
  graph_tails tails_;
  stage_memo memo_;
  partial_store<Policy> store_;
  memory_reach reach_;
  std::vector<std::size_t> start_;       ///< by state: stages that lead to it begin here or before
  std::vector<link_times> least_links_;  ///< by boundary
  closed_cells suffixes_;                ///< of the boundary and state at hand
  long long extended_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::partition::detail
