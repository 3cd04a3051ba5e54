// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's two-substate dynamic program: cuts a layer sequence into stages on groups of devices, from the sinks.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <deque>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/partition/completion_bounds.hpp>
#include <hetplan/partition/step_rule.hpp>
#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::partition {

struct search_options {
  int plans = 10;        ///< how many to return
  int max_stages = 16;
  warmup_rule warmup = warmup_rule::hide_communication;
  bool keep_budgets = true;  ///< energy and busy share; memory is always kept
  bool prune = true;         ///< by the best plans known and what completions cost at least
  std::size_t coarse_boundaries = 40;  ///< of the run that finds the first plans to prune with; 0: none
};

/// A plan as the search sees it: its own estimate, which bounds nothing.
struct found_plan {
  hetplan::plan plan;
  double response_s = 0;
  double energy_J = 0;
  double score = 0;
};

struct search_counts {
  long long cells = 0;     ///< that kept anything
  long long kept = 0;      ///< partial plans
  long long extended = 0;  ///< extensions weighed
};

/// Plans best first. Infeasible: nothing in the space keeps the limits. Stopped: the best so far.
struct search_result {
  hetplan::status status;
  std::vector<found_plan> plans;
  search_counts counts;
};

/// A cell is final; for progress, for stopping and for looking at the table.
struct cell_filled {
  std::size_t blocks_left;      ///< the cell's plans hold the blocks from here on
  std::size_t blocks;           ///< of the sequence
  std::size_t state;            ///< of the device space
  int stages;
  std::span<const partial_plan* const> kept;  ///< by rank
};

namespace detail {

template <objective Objective, cell_policy Policy, class... Observers>
class substate_search {
 public:
  substate_search(const search_tables& t, const device_space& space, const plan& blank, const Objective& o, const Policy& policy,
                  const search_options& options, std::vector<std::size_t> boundaries, double known_score, Observers&... observers)
      : t_(t), space_(space), blank_(blank), objective_(o), policy_(policy), options_(options), observers_(observers...),
        boundaries_(std::move(boundaries)), serial_(t.cuts.serial()), training_(blank.workload.mode == mode::training),
        generation_(blank.workload.mode == mode::generation), energy_matters_(asks_for_energy()), rule_(blank.workload.mode, blank.microbatch_size, blank.microbatches), costs_(t.table, space, t.cluster, t.slopes, blank),
        bounds_(t, space, boundaries_, blank, serial_), capacity_(policy.capacity()), threshold_(known_score),
        levels_(static_cast<std::size_t>(levels())), cells_(boundaries_.size() * space.states() * levels_),
        start_(space.states(), boundaries_.size() - 1) {
    join_classes();
    for (const std::size_t b : boundaries_) least_links_.push_back(b == 0 ? link_step{} : least_link(b));
  }

  search_result run() {
    search_result r;
    arena_.push_back({});  // nothing placed yet
    bool stopped = false;
    for (std::size_t p = boundaries_.size() - 1; p > 0 && !stopped; --p) {
      lower_starts();
      placed_.assign(space_.groups.size(), {});
      for (std::size_t s = 0; s < space_.states() && !stopped; ++s) stopped = extend_from(p, s, r.counts) == flow::stop;
    }
    for (const final& f : finals_) r.plans.push_back(to_plan(f));
    r.counts.extended = extended_;
    if (stopped) r.status = {outcome::stopped, "stopped by an observer"};
    else if (finals_.empty()) r.status = {outcome::infeasible, "no plan of the searched space keeps the limits"};
    return r;
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t none = 0;

  /// A partial plan with the way back to its parts.
  struct node : partial_plan {
    std::uint32_t parent = none;   ///< in the arena
    std::uint32_t group = 0;
    std::uint32_t boundary = 0;    ///< where it begins
    int in_flight = 0;
  };
  struct final {
    double score;
    node last;
  };
  using cell = std::vector<node>;

  /// Stages that end at one boundary on one group, by where they begin: index p - 1 - begin.
  struct column {
    std::vector<placed_stage> any_memory;
    std::vector<std::pair<int, std::vector<placed_stage>>> limited;  ///< by microbatches in flight
    std::vector<std::pair<int, std::vector<stage_budget>>> budgets;  ///< the same; 0: any
  };

  /// Depths from which warm-up no longer grows share a level.
  [[nodiscard]] int levels() const {
    int saturated = 1;
    while (training_ && blank_.schedule.kind == schedule_kind::one_f_one_b && in_flight(saturated) < blank_.microbatches &&
           in_flight(saturated + 1) > in_flight(saturated)) {
      ++saturated;
    }
    return std::min(saturated, options_.max_stages);
  }
  [[nodiscard]] int in_flight(int depth) const {
    if (!training_) return 1;
    if (blank_.schedule.kind == schedule_kind::gpipe) return blank_.microbatches;
    return std::min(warmup_of(options_.warmup, depth), blank_.microbatches);
  }
  [[nodiscard]] std::size_t at(std::size_t boundary, std::size_t state, int stages) const {
    const auto level = static_cast<std::size_t>(std::min(stages, static_cast<int>(levels_)) - 1);
    return (boundary * space_.states() + state) * levels_ + level;
  }

  /// Without an objective that reads energy, budgets or busy caps, energy is worked out for the plans found only.
  [[nodiscard]] bool asks_for_energy() const {
    if (options_.keep_budgets) {
      for (const device& d : t_.cluster.devices()) {
        if (d.energy_budget || d.max_busy < 1) return true;
      }
    }
    if constexpr (monotone_objective<Objective>) {
      for (const double t : {0.0, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
        if (score_of(t, 0) != score_of(t, 1e30)) return true;
      }
    }
    return false;
  }

  /// Peak traffic between classes, and whether all pairs are alike.
  void join_classes() {
    const std::size_t n = space_.classes.size();
    joined_.resize(n * n);
    best_link_ = {{inf, inf}, {inf, inf}, false};
    bool first = true, any_half = false, all_half = true;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b && space_.classes[a].size() < 2) continue;
        const device_id one[] = {space_.classes[a].front()}, other[] = {space_.classes[b][a == b ? 1 : 0]};
        const exchange_cost x = joined_[a * n + b] = peak_exchange(t_.cluster.network(), one, other);
        if (first) joined_alike_ = x;
        uniform_ = uniform_ && x == joined_alike_;
        first = false;
        any_half = any_half || x.half_duplex;
        all_half = all_half && x.half_duplex;
        best_link_.there = {std::min(best_link_.there.latency_s, x.there.latency_s), std::min(best_link_.there.s_per_byte, x.there.s_per_byte)};
        best_link_.back = {std::min(best_link_.back.latency_s, x.back.latency_s), std::min(best_link_.back.s_per_byte, x.back.s_per_byte)};
      }
    }
    best_link_.half_duplex = any_half && all_half;
    if (first) best_link_ = {};
  }
  [[nodiscard]] exchange_cost between(std::size_t group, std::size_t other) const {
    if (uniform_) return joined_alike_;
    exchange_cost all;
    for (const auto& a : space_.groups[group]) {
      for (const auto& b : space_.groups[other]) all.cover(joined_[a.of_class * space_.classes.size() + b.of_class]);
    }
    return all;
  }

  [[nodiscard]] double score_of(double response_s, double energy_J) const {
    if constexpr (monotone_objective<Objective>) return objective_.score(seconds(response_s), joules(energy_J));
    else return 0;
  }
  /// The largest score that still matters, with room for rounding.
  [[nodiscard]] double worth_keeping() const { return threshold_ + 1e-9 * std::abs(threshold_); }

  /// Beyond its start, what is left for a state costs too much whatever lies behind.
  void lower_starts() {
    for (std::size_t s = 0; s < start_.size(); ++s) {
      while (start_[s] > 0 && (!bounds_.fits(s, start_[s]) || (options_.prune && too_late(s, start_[s])))) --start_[s];
    }
  }
  [[nodiscard]] bool too_late(std::size_t state, std::size_t boundary) const {
    return score_of(rule_.response_at_least_s(0, 0, {}, 0, bounds_.busiest_s(state, boundary)), bounds_.energy_J(boundary)) > worth_keeping();
  }

  flow extend_from(std::size_t p, std::size_t state, search_counts& counts) {
    flow answer = flow::go;
    ranges_.clear();
    if (p + 1 == boundaries_.size()) {
      if (state > 0) return flow::go;
      ranges_.push_back({.begin = 0, .end = 1, .stages = 0});
    } else {
      for (int stages = 1; stages <= static_cast<int>(levels_); ++stages) {
        cell& c = cells_[at(p, state, stages)];
        if (c.empty()) continue;
        ++counts.cells;
        counts.kept += static_cast<long long>(c.size());
        if constexpr (sizeof...(Observers) > 0) {
          std::vector<const partial_plan*> kept(c.size());
          std::transform(c.begin(), c.end(), kept.begin(), [](const node& n) { return &n; });
          const cell_filled event{boundaries_[p], t_.sequence.size(), state, stages, kept};
          answer = std::apply([&](auto&... o) { return notify(event, o...); }, observers_);
          if (answer == flow::stop) return answer;
        }
        const std::size_t begin = arena_.size();
        arena_.insert(arena_.end(), c.begin(), c.end());
        ranges_.push_back({.begin = begin, .end = arena_.size(), .stages = stages});
        cell().swap(c);
      }
    }
    if (ranges_.empty()) return answer;
    for (const device_space::move& m : space_.moves[state]) extend_by(p, m);
    return answer;
  }

  /// Puts one more stage before every partial plan of the ranges: on the move's group, from every allowed boundary.
  void extend_by(std::size_t p, const device_space::move& m) {
    if (serial_ && !prepare_links(p, m.group)) return;
    const std::size_t first_chain = t_.sequence.chain_of(boundaries_[p] - 1);
    const bool at_end = t_.sequence.chain_end(first_chain) == boundaries_[p];
    for (std::size_t a = std::min(p - 1, start_[m.to]);; --a) {
      const bool inside = boundaries_[a] >= t_.sequence.chain_first[first_chain];
      if (!inside && !at_end) return;
      if (inside || t_.sequence.is_stage(boundaries_[a], boundaries_[p])) {
        const placed_stage& any = placed(p, a, m.group, 0);
        if (any.most_in_flight < 1 && !costs_.has_room(boundaries_[a], boundaries_[p], m.group, 1)) return;
        if (options_.prune && score_of(rule_.response_at_least_s(0, 0, {}, 0, any.total_s), 0) > worth_keeping()) return;
        if (serial_) extend_serial(p, a, m); else extend_graph(p, a, m);
      }
      if (a == 0) return;
    }
  }

  const placed_stage& placed(std::size_t p, std::size_t a, std::size_t group, int in_flight) {
    column& c = placed_[group];
    const std::size_t i = p - 1 - a;
    while (c.any_memory.size() <= i) {
      c.any_memory.push_back(costs_.place(boundaries_[p - 1 - c.any_memory.size()], boundaries_[p], group, 0));
    }
    if (in_flight <= c.any_memory[i].most_in_flight) return c.any_memory[i];
    auto it = std::find_if(c.limited.begin(), c.limited.end(), [&](const auto& l) { return l.first == in_flight; });
    if (it == c.limited.end()) it = c.limited.insert(it, {in_flight, {}});
    std::vector<placed_stage>& limited = it->second;
    if (limited.size() <= i) limited.resize(i + 1, placed_stage{.total_s = -1});
    if (limited[i].total_s < 0) limited[i] = costs_.place(boundaries_[a], boundaries_[p], group, in_flight);
    return limited[i];
  }

  /// Serial sequences: what each partial plan amounts to behind the link to a group. False if no link is possible.
  bool prepare_links(std::size_t p, std::size_t group) {
    behind_.clear();
    if (p + 1 == boundaries_.size()) {
      behind_.push_back(ranges_.front().best = rule_.nothing_behind());
      return true;
    }
    double forward = 0, gradient = 0;
    for (const crossing& c : t_.cuts.crossings(boundaries_[p])) {
      forward += c.forward_bytes;
      gradient += c.gradient_bytes;
    }
    link_step step = rule_.link(joined_alike_, forward, gradient);
    std::size_t last_group = none;
    bool any = false;
    for (range& r : ranges_) {
      r.best = {inf, inf};
      for (std::size_t n = r.begin; n < r.end; ++n) {
        if (!uniform_ && (arena_[n].group != last_group || n == r.begin)) {
          last_group = arena_[n].group;
          step = rule_.link(between(group, last_group), forward, gradient);
        }
        behind_.push_back(rule_.through(step, arena_[n].finished.reach_s, arena_[n].finished.rest_s));
        r.best = {std::min(r.best.reach_s, behind_.back().reach_s), std::min(r.best.rest_s, behind_.back().rest_s)};
        any = any || behind_.back().reach_s < inf;
      }
    }
    return any;
  }

  void extend_serial(std::size_t p, std::size_t a, const device_space::move& m) {
    const double path_s = bounds_.path_s(m.to, a), busiest_s = bounds_.busiest_s(m.to, a);
    const link_step& least = least_links_[a];
    const auto response_s = [&](const step_rule::behind& x) {
      return a == 0 ? rule_.response_s(x.reach_s, x.rest_s) : rule_.response_at_least_s(x.reach_s, x.rest_s, least, path_s, busiest_s);
    };
    for (const range& r : ranges_) {
      const placed_stage& s = placed(p, a, m.group, in_flight(r.stages + 1));
      if (!s.exists) continue;
      const stage_budget* budget = &no_budget_;
      const auto best = rule_.extend(r.best, s.total_s, s.backward_s, s.collective_s);
      if (options_.prune && score_of(response_s(best), bounds_.energy_J(a)) > worth_keeping()) continue;
      if (energy_matters_) budget = &budget_of(p, a, m.group, in_flight(r.stages + 1));
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const node& old = arena_[n];
        const step_rule::behind x = rule_.extend(behind_[n - ranges_.front().begin], s.total_s, s.backward_s, s.collective_s);
        ++extended_;
        candidate c{response_s(x), old.energy_J + budget->energy_J, old.idle_W + budget->idle_W, 0};
        if (!worth_a_place(c, old, *budget, a, m.to) || old.stages >= options_.max_stages) continue;
        node next = begin_node(c, old, *budget, n, a, m.group, r.stages + 1);
        next.finished = {x.reach_s, x.rest_s, 0, uniform_ ? 0U : static_cast<std::uint32_t>(m.group), 0};
        offer(next, a, m.to);
      }
    }
  }

  /// The least that the link over a boundary costs, whoever is joined by it.
  [[nodiscard]] link_step least_link(std::size_t block) const {
    double forward = 0, gradient = 0;
    for (const crossing& c : t_.cuts.crossings(block)) {
      forward += c.forward_bytes;
      gradient += c.gradient_bytes;
    }
    return rule_.link(best_link_, forward, gradient);
  }

  struct candidate {
    double response_s, energy_J, idle_W, rank;
  };
  /// Ranks an extension; false if it cannot matter.
  bool worth_a_place(candidate& c, const node& old, const stage_budget& budget, std::size_t a, std::size_t state) {
    if (energy_matters_) {
      c.response_s = std::max({c.response_s, old.stretch_s, budget.stretch_s});
      if (c.response_s > std::min(old.limit_s, budget.limit_s)) return false;
    }
    if (!(c.response_s < inf)) return false;
    c.rank = score_of(c.response_s, c.energy_J + bounds_.energy_J(a) + c.idle_W * c.response_s);
    if (options_.prune && c.rank > worth_keeping()) return false;
    if (a == 0) return true;
    const cell& target = cells_[at(a, state, old.stages + 1)];
    return target.size() < capacity_ || c.rank < target.back().rank;
  }
  [[nodiscard]] node begin_node(const candidate& c, const node& old, const stage_budget& budget, std::size_t parent, std::size_t a,
                                std::size_t group, int depth) const {
    node next;
    next.energy_J = c.energy_J;
    next.idle_W = c.idle_W;
    next.limit_s = std::min(old.limit_s, budget.limit_s);
    next.stretch_s = std::max(old.stretch_s, budget.stretch_s);
    next.rank = c.rank;
    next.stages = old.stages + 1;
    next.parent = static_cast<std::uint32_t>(parent);
    next.group = static_cast<std::uint32_t>(group);
    next.boundary = static_cast<std::uint32_t>(a);
    next.in_flight = in_flight(depth);
    return next;
  }
  void offer(node& next, std::size_t a, std::size_t state) {
    if (a == 0) finish(next); else keep(next, cells_[at(a, state, next.stages)]);
  }
  [[nodiscard]] stage_budget budget(std::size_t first, std::size_t last, std::size_t group, int in_flight, double sent, double received) const {
    stage_budget b = costs_.budget(first, last, group, in_flight, sent, received);
    if (!options_.keep_budgets) {
      b.limit_s = inf;
      b.stretch_s = 0;
    }
    return b;
  }
  /// Serial sequences: what a stage exchanges does not depend on how the rest is cut.
  const stage_budget& budget_of(std::size_t p, std::size_t a, std::size_t group, int in_flight) {
    const placed_stage& any = placed_[group].any_memory[p - 1 - a];
    auto& known = placed_[group].budgets;
    const int key = in_flight <= any.most_in_flight ? 0 : in_flight;
    auto it = std::find_if(known.begin(), known.end(), [&](const auto& l) { return l.first == key; });
    if (it == known.end()) it = known.insert(it, {key, {}});
    auto& by_begin = it->second;
    const std::size_t i = p - 1 - a;
    if (by_begin.size() <= i) by_begin.resize(i + 1, stage_budget{.energy_J = -1});
    if (by_begin[i].energy_J < 0) {
      const std::size_t first = boundaries_[a], last = boundaries_[p];
      const auto [in, back] = t_.cuts.bytes_in(first, last);
      const auto [out, returned] = last == t_.sequence.size() ? std::pair(0.0, 0.0) : t_.cuts.bytes_in(last, t_.sequence.size());
      by_begin[i] = budget(first, last, group, key, out + (training_ ? back : 0), in + (training_ ? returned : 0));
    }
    return by_begin[i];
  }

  void finish(const node& whole) {
    const auto worse = [](const final& x, const final& y) { return std::pair(x.score, x.last.stages) < std::pair(y.score, y.last.stages); };
    const final f{whole.rank, whole};
    finals_.insert(std::upper_bound(finals_.begin(), finals_.end(), f, worse), f);
    if (finals_.size() > static_cast<std::size_t>(options_.plans)) finals_.pop_back();
    if (finals_.size() == static_cast<std::size_t>(options_.plans)) threshold_ = std::min(threshold_, finals_.back().score);
  }

  void keep(node& next, cell& c) {
    for (const node& n : c) {
      if (comparable(n, next) && policy_.covers(n, next)) return;
    }
    std::erase_if(c, [&](const node& n) { return comparable(next, n) && policy_.covers(next, n); });
    if (c.size() >= capacity_) c.pop_back();
    if (!next.ports.empty()) {
      ports_.emplace_back(next.ports.begin(), next.ports.end());
      next.ports = ports_.back();
    }
    c.insert(std::upper_bound(c.begin(), c.end(), next.rank, [](double rank, const node& n) { return rank < n.rank; }), next);
  }
  [[nodiscard]] static bool comparable(const node& x, const node& y) {
    if (x.finished.group != y.finished.group) return false;
    for (std::size_t i = 0; i < x.ports.size(); ++i) {
      const tail &s = x.ports[i], &t = y.ports[i];
      if (s.depth != t.depth || s.group != t.group || s.twin != t.twin) return false;
    }
    return true;
  }

  /// Graphs: the new stage sees a tail through each stage that reads from it.
  void extend_graph(std::size_t p, std::size_t a, const device_space::move& m) {
    const std::size_t first = boundaries_[a], last = boundaries_[p];
    const auto& old_ports = t_.cuts.ports(last);
    const auto& new_ports = t_.cuts.ports(first);
    const auto [in, back] = t_.cuts.bytes_in(first, last);
    const bool is_source = !t_.cuts.reads_from_before(first, last);
    for (const range& r : ranges_) {
      for (std::size_t n = r.begin; n < r.end; ++n) {
        if (arena_[n].stages >= options_.max_stages) continue;
        ++extended_;
        const node& old = arena_[n];
        // What the stage sends through each port's stage: a tensor once per stage, with the most bytes that it reads.
        flows_.assign(old_ports.size(), {0, 0, false});
        const auto& all = t_.cuts.crossings(last);
        for (std::size_t i = 0; i < all.size() && all[i].from >= first;) {
          const std::size_t tensor = all[i].tensor;
          most_.clear();
          for (; i < all.size() && all[i].tensor == tensor; ++i) {
            const std::size_t to = old.ports[all[i].port].twin;
            auto it = std::find_if(most_.begin(), most_.end(), [&](const auto& x) { return x.port == to; });
            if (it == most_.end()) it = most_.insert(it, {0, to, 0, 0, 0});
            it->forward_bytes = std::max(it->forward_bytes, all[i].forward_bytes);
            it->gradient_bytes = std::max(it->gradient_bytes, all[i].gradient_bytes);
          }
          for (const crossing& x : most_) {
            flows_[x.port].forward += x.forward_bytes;
            flows_[x.port].gradient += x.gradient_bytes;
            flows_[x.port].used = true;
          }
        }
        step_rule::behind behind = rule_.nothing_behind();
        std::uint32_t depth = 0;
        double out = 0, returned = 0;
        for (std::size_t i = 0; i < flows_.size(); ++i) {
          if (!flows_[i].used) continue;
          const tail& t = old.ports[i];
          const exchange_cost x = uniform_ ? joined_alike_ : between(m.group, t.group);
          const auto through = rule_.through(rule_.link(x, flows_[i].forward, flows_[i].gradient), t.reach_s, t.rest_s);
          behind = {std::max(behind.reach_s, through.reach_s), std::max(behind.rest_s, through.rest_s)};
          depth = std::max(depth, t.depth);
          out += flows_[i].forward;
          returned += flows_[i].gradient;
        }
        if (!(behind.reach_s < inf)) continue;
        const int stage_depth = static_cast<int>(depth) + 1;
        const placed_stage& s = placed(p, a, m.group, in_flight(stage_depth));
        if (!s.exists) continue;
        const auto [reach, rest] = rule_.extend(behind, s.total_s, s.backward_s, s.collective_s);
        const auto level = static_cast<std::uint32_t>(std::min(stage_depth, static_cast<int>(levels_)));
        tail finished = old.finished;
        if (is_source) finished = {std::max(finished.reach_s, reach), std::max(finished.rest_s, rest), 0, 0, 0};
        new_tails_.clear();
        double least_reach = finished.reach_s, least_rest = finished.rest_s;
        for (std::size_t i = 0, j = 0; i < new_ports.size(); ++i) {
          tail t{reach, rest, level, uniform_ ? 0U : static_cast<std::uint32_t>(m.group), own_twin};
          if (new_ports[i] >= last) {
            while (old_ports[j] != new_ports[i]) ++j;
            t = old.ports[j];
            t.twin += old_twin;
          }
          least_reach = std::max(least_reach, t.reach_s);
          least_rest = std::max(least_rest, t.rest_s);
          new_tails_.push_back(t);
        }
        const stage_budget b = energy_matters_ ? budget(first, last, m.group, in_flight(stage_depth), out + (training_ ? back : 0),
                                                        in + (training_ ? returned : 0))
                                               : no_budget_;
        candidate c{a == 0 ? rule_.response_s(finished.reach_s, finished.rest_s)
                           : rule_.response_at_least_s(least_reach, generation_ ? least_rest : 0, {}, 0, bounds_.busiest_s(m.to, a)),
                    old.energy_J + b.energy_J, old.idle_W + b.idle_W, 0};
        if (!worth_a_place(c, old, b, a, m.to)) continue;
        number_twins();
        node next = begin_node(c, old, b, n, a, m.group, stage_depth);
        next.finished = finished;
        next.ports = new_tails_;
        offer(next, a, m.to);
      }
    }
  }
  /// Twins by the numbering of the new ports: the first port that leads to the same stage.
  void number_twins() {
    for (std::size_t i = 0; i < new_tails_.size(); ++i) {
      if (new_tails_[i].twin < own_twin) continue;  // done
      const std::uint32_t stage = new_tails_[i].twin;
      for (std::size_t j = i; j < new_tails_.size(); ++j) {
        if (new_tails_[j].twin == stage) new_tails_[j].twin = static_cast<std::uint32_t>(i);
      }
    }
  }

  [[nodiscard]] found_plan to_plan(const final& f) const {
    found_plan found{.plan = blank_, .response_s = 0, .energy_J = 0, .score = f.score};
    found.response_s = std::max(rule_.response_s(f.last.finished.reach_s, f.last.finished.rest_s), f.last.stretch_s);
    std::vector<const node*> stages;
    std::vector<std::size_t> stage_of(t_.sequence.size());
    for (const node* n = &f.last; n->stages > 0; n = &arena_[n->parent]) {
      std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(boundaries_[n->boundary]), stage_of.end(), stages.size());
      stages.push_back(n);
    }
    std::vector<int> used(space_.classes.size(), 0);
    double idle_W = 0;
    for (const node* n : stages) {
      const std::size_t first = boundaries_[n->boundary], last = n->parent == none ? t_.sequence.size() : boundaries_[arena_[n->parent].boundary];
      stage s{.name = "s" + std::to_string(found.plan.stages.size())};
      for (std::size_t b = first; b < last; ++b) s.layers.insert(s.layers.end(), t_.sequence.blocks[b].begin(), t_.sequence.blocks[b].end());
      std::sort(s.layers.begin(), s.layers.end());
      for (const share_run& run : costs_.shares(first, last, n->group, n->in_flight)) {
        for (int i = 0; i < run.devices; ++i) {
          const device_id d = space_.classes[run.of_class][static_cast<std::size_t>(used[run.of_class]++)];
          s.devices.push_back({d, run.samples, t_.table.time(first, last, d, run.samples).degree});
        }
      }
      found.plan.stages.push_back(std::move(s));
      const auto [in, back] = t_.cuts.bytes_in(first, last);
      const auto [out, returned] = t_.cuts.bytes_out(first, last, stage_of);
      const stage_budget b = budget(first, last, n->group, n->in_flight, out + (training_ ? back : 0), in + (training_ ? returned : 0));
      found.energy_J += b.energy_J;
      idle_W += b.idle_W;
    }
    found.energy_J += idle_W * found.response_s;
    if (training_ && blank_.schedule.kind == schedule_kind::one_f_one_b && options_.warmup != warmup_rule::hide_communication) {
      for (const auto& n : make_stage_graph(found.plan, t_.model).nodes) found.plan.schedule.warmup.push_back(warmup_of(options_.warmup, n.depth));
    }
    return found;
  }

  struct range {
    std::size_t begin, end;
    int stages;
    step_rule::behind best = {};  ///< no member is better behind the link
  };
  struct port_flow {
    double forward, gradient;
    bool used;
  };
  static constexpr std::uint32_t own_twin = 1U << 20, old_twin = own_twin + 1;

  const search_tables& t_;
  const device_space& space_;
  const plan& blank_;
  const Objective& objective_;
  const Policy& policy_;
  const search_options& options_;
  std::tuple<Observers&...> observers_;
  std::vector<std::size_t> boundaries_;
  bool serial_, training_, generation_, energy_matters_, uniform_ = true;
  step_rule rule_;
  stage_costs costs_;
  completion_bounds bounds_;
  std::size_t capacity_;
  double threshold_;
  std::size_t levels_;
  std::vector<cell> cells_;
  std::vector<std::size_t> start_;  ///< by state: stages that lead to it begin here or before
  std::vector<exchange_cost> joined_;
  exchange_cost joined_alike_, best_link_;
  std::vector<node> arena_;
  std::deque<std::vector<tail>> ports_;
  std::vector<column> placed_;
  std::vector<range> ranges_;
  std::vector<step_rule::behind> behind_;
  std::vector<port_flow> flows_;
  std::vector<crossing> most_;
  std::vector<tail> new_tails_;
  std::vector<link_step> least_links_;  ///< by boundary
  stage_budget no_budget_;
  std::vector<final> finals_;
  long long extended_ = 0;
};

/// Ends of chains, and of the boundaries inside chains about `wanted` that split the work evenly.
[[nodiscard]] inline std::vector<std::size_t> even_boundaries(const search_tables& t, std::size_t wanted) {
  const std::size_t n = t.sequence.size();
  std::vector<std::size_t> chosen;
  const double* work = t.table.totals(t.classes.front().front(), t.table.max_share());
  double next = 0;
  for (std::size_t b = 0; b <= n; ++b) {
    const bool end = b == n || std::binary_search(t.sequence.chain_first.begin(), t.sequence.chain_first.end(), b);
    if (!end && work[b] < next) continue;
    chosen.push_back(b);
    next = work[b] + work[n] / static_cast<double>(wanted);
  }
  return chosen;
}

/// An objective that says it is monotone is asked on a grid whether it is. Throws invalid_model with the two points.
template <objective Objective>
void probe(const Objective& o) {
  if constexpr (monotone_objective<Objective>) {
    const double points[] = {0, 1e-3, 1, 30, 1e3, 1e6};
    const auto ask = [&](double t, double e) {
      const double s = o.score(seconds(t), joules(e));
      if (std::isnan(s)) throw invalid_model("objective: score(" + to_text(t) + " s, " + to_text(e) + " J) = nan; expected a number");
      return s;
    };
    const auto fell = [&](double t, double e, double t2, double e2) {
      throw invalid_model("objective: score(" + to_text(t) + " s, " + to_text(e) + " J) = " + to_text(ask(t, e)) + " falls to " +
                          to_text(ask(t2, e2)) + " at " + to_text(t2) + " s, " + to_text(e2) + " J; expected non-decreasing in both");
    };
    for (std::size_t i = 0; i < std::size(points); ++i) {
      for (std::size_t j = 0; j + 1 < std::size(points); ++j) {
        const double x = points[i], low = points[j], high = points[j + 1];
        if (ask(low, x) > ask(high, x)) fell(low, x, high, x);
        if (ask(x, low) > ask(x, high)) fell(x, low, x, high);
      }
    }
  }
}

}  // namespace detail

/// Searches every cut of the sequence into stages (pieces of one chain or runs of whole chains) on every choice of
/// groups that the device space allows, for one microbatch size; shares by stage_costs.
///
/// @param blank    the job's plan with nothing decided: workload, microbatch size and count, schedule.
/// @param policy   what cells keep. `exhaustive` and `dominance` are exact under the estimate; top_k{K} keeps K per cell.
/// @return         options.plans plans, best first by (score, stages), with their estimates.
/// Complexity      O(cells' plans x boundaries x moves) extensions, cells = boundaries x states x levels, before pruning
///                 (measured in docs/performance.md). Memory: kept partial plans.
/// Throws          invalid_input (options, a policy of capacity 0); invalid_model (a model or the objective misbehaves).
/// Determinism     yes: ties by fewer stages, then first found.
/// Source          Dora, section 4.1, eqs. 3-5, from the sinks (memory depends on how many stages follow), with the
///                 exact state (D, R, X, C) per port of the boundary instead of one latency. Deviation: stages may
///                 leave devices out, and on a graph of stages sums run along the longest way.
template <objective Objective, cell_policy Policy = top_k, observer<cell_filled>... Observers>
[[nodiscard]] search_result two_substate_dp(const search_tables& tables, const device_space& space, const plan& blank,
                                            const Objective& objective, const Policy& policy = {}, search_options options = {},
                                            Observers&&... observers) {
  static_assert(monotone_objective<Objective> || std::same_as<Policy, exhaustive>,
                "dropping partial plans needs a monotone objective: double score(seconds response, joules energy) const; "
                "any other objective can be searched with the cell policy exhaustive");
  const auto require = [](bool ok, const char* what, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("two_substate_dp: ") + what + " = " + to_text(given) + "; expected " + expected);
  };
  require(options.plans >= 1, "plans", options.plans, "an integer >= 1");
  require(options.max_stages >= 1, "max_stages", options.max_stages, "an integer >= 1");
  require(policy.capacity() >= 1, "the cell policy's capacity", 0, "an integer >= 1");
  require(blank.microbatch_size >= 1 && blank.microbatch_size <= tables.table.max_share(), "microbatch_size", blank.microbatch_size,
          "one that the tables cover");
  detail::probe(objective);
  options.prune = options.prune && monotone_objective<Objective>;

  std::vector<std::size_t> all(tables.sequence.size() + 1);
  std::iota(all.begin(), all.end(), std::size_t{0});
  search_result coarse;
  double known = std::numeric_limits<double>::infinity();
  if (options.prune && options.coarse_boundaries > 0) {
    auto few = detail::even_boundaries(tables, options.coarse_boundaries);
    if (few.size() < all.size()) {
      const top_k one{1};
      coarse = detail::substate_search(tables, space, blank, objective, one, options, std::move(few), known).run();
      if (coarse.plans.size() == static_cast<std::size_t>(options.plans)) known = coarse.plans.back().score;
    }
  }
  search_result r = detail::substate_search(tables, space, blank, objective, policy, options, std::move(all), known, observers...).run();
  // What the coarse run knows and a cell of limited capacity lost is not lost.
  for (found_plan& f : coarse.plans) {
    const auto same = [&](const found_plan& x) { return x.plan.stages == f.plan.stages; };
    if (std::none_of(r.plans.begin(), r.plans.end(), same)) r.plans.push_back(std::move(f));
  }
  std::stable_sort(r.plans.begin(), r.plans.end(), [](const found_plan& a, const found_plan& b) {
    return std::pair(a.score, a.plan.stages.size()) < std::pair(b.score, b.plan.stages.size());
  });
  if (r.plans.size() > static_cast<std::size_t>(options.plans)) r.plans.resize(static_cast<std::size_t>(options.plans));
  if (!r.plans.empty() && r.status.result == outcome::infeasible) r.status = {};
  return r;
}

}  // namespace hetplan::partition
