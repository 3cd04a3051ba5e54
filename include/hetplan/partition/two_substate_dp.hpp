// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's two-substate dynamic program: cuts a layer sequence into stages on groups of devices, from the sinks.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_context.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::partition::detail {

/// Returns the plan of a chain of partial plans. Its groups get devices in order: of each class the next free ones.
/// Source  Dora, section 4.1: the plan behind the best value of eq. 5. Own: devices of a class are chosen last.
template <class Store>
[[nodiscard]] found_plan rebuild_plan(const incumbents::complete& whole, const Store& store, const std::vector<std::size_t>& boundaries,
                                      const search_tables& t, const device_space& space, const candidate_costs& costs, const plan& blank,
                                      const search_options& options) {
  found_plan found{.plan = blank, .score = whole.rank};
  found.plan.stages.clear();
  evaluation& e = found.estimate;
  e.latency = whole.times.makespan;
  if (blank.workload.mode == mode::generation) e.ttft = whole.times.ttft;
  if (blank.workload.mode == mode::generation && blank.workload.tokens > 1) e.time_between_tokens = whole.times.between_tokens;
  e.devices.resize(t.cluster.size());
  std::vector<const partial_node*> heads;
  std::vector<std::size_t> stage_of(t.sequence.size()), ends;
  for (const partial_node* n = &whole; n->stages > 0; n = &store[n->parent]) {
    std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(boundaries[n->boundary]), stage_of.end(), heads.size());
    if (!heads.empty()) ends.push_back(boundaries[n->boundary]);
    heads.push_back(n);
  }
  ends.push_back(t.sequence.size());
  std::vector<std::size_t> used(space.classes.size(), 0);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const partial_node& n = *heads[i];
    const std::size_t first = boundaries[n.boundary], last = ends[i];
    stage s = costs.blank_stage("s" + std::to_string(i), n.group);
    s.layers = t.layers_of(first, last);
    const stage_traffic traffic = costs.traffic(t.cuts.bytes_in(first, last), t.cuts.bytes_out(first, last, stage_of));
    for (const share_run& run : costs.shares(first, last, n.group, n.in_flight)) {
      const device_part x = costs.part(first, last, n.group, run, traffic);
      const double held = costs.held_bytes(first, last, n.group, run.samples, n.in_flight);
      for (int d = 0; d < run.devices; ++d) {
        const device_id id = space.classes[run.of_class][used[run.of_class]++];
        s.devices.push_back({id, run.samples, t.table.time(first, last, id, run.samples).degree});
        e.devices[id.index()] = {true, joules(x.energy_J + x.idle_W * e.latency.value()), bytes(held), seconds(x.busy_s)};
      }
    }
    found.plan.stages.push_back(std::move(s));
  }
  set_warmup(found.plan, t.model, options.warmup);
  return found;
}

}  // namespace hetplan::partition::detail

namespace hetplan::partition {

/// The partial plan behind a new stage, as seen by the stage. Source: own.
struct seen_suffix {
  pipeline_tail tails;
  int depth = 0;
  std::pair<double, double> out = {};  ///< bytes per sample to all stages behind, and bytes of the returning gradients
};

/// Extension of the ports of partial plans. Buffers are reused.
///
/// Complexity  per call: O(crossings x ports + ports^2) of the boundary.
/// Source      own: the step law of chains on a graph of stages, as in Dora's plans (section 4.1).
class graph_tails {
 public:
  graph_tails(const crossing_table& cuts, const group_links& links) : cuts_(cuts), links_(links) {}

  /// Returns what a stage of blocks [first, last) on a group sees of a partial plan that begins at `last`. A tensor is sent once to each
  /// stage that reads it, with the largest number of bytes read there.
  template <step_law Law>
  [[nodiscard]] seen_suffix look(const Law& law, const pipelining& p, std::size_t first, std::size_t last, std::size_t group,
                                 std::span<const tail> ports) {
    add_traffic(first, last, ports);
    seen_suffix seen;
    for (std::size_t i = 0; i < traffic_.size(); ++i) {
      const traffic_to& f = traffic_[i];
      if (!f.used) continue;
      const tail& t = ports[i];
      const link_times link = links_.time(links_.between(group, t.group), f.bytes);
      seen.tails = larger_of(seen.tails, law.extend(p, link, t));
      seen.depth = std::max(seen.depth, static_cast<int>(t.depth));
      seen.out.first += f.bytes.forward_bytes;
      seen.out.second += f.bytes.gradient_bytes;
    }
    return seen;
  }

  /// Returns the ports after the stage, with tail `mine`, is placed. Valid until the next call.
  [[nodiscard]] std::span<const tail> extend(std::size_t first, std::size_t last, std::span<const tail> ports, tail mine);

 private:
  static constexpr std::uint32_t new_stage = 1U << 20, old_stage = new_stage + 1;
  struct traffic_to {
    crossing bytes = {};
    bool used = false;
  };

  void add_traffic(std::size_t first, std::size_t last, std::span<const tail> ports);

  const crossing_table& cuts_;
  const group_links& links_;
  std::vector<traffic_to> traffic_;  ///< by port, stored at the first port of each stage
  std::vector<crossing> most_;
  std::vector<tail> tails_;
};

}  // namespace hetplan::partition

namespace hetplan::partition::detail {

/// Worker that puts one more stage before the ready partial plans. Several extenders share the boundaries; each fills only cells that begin
/// at its own boundaries, so none waits.
///
/// Complexity   O(moves of the states x own boundaries x partial plans) per call, before pruning.
/// Determinism  a cell receives the same partial plans in the same order for any number of extenders.
/// Source       Dora, section 4.1, the minimum of eqs. 3-5 over cuts and groups. Own: pruning, and sharing the boundaries.
template <cell_policy Policy>
class label_extender {
 public:
  label_extender(search_context<Policy>& c, std::size_t number, std::size_t label_extenders)
      : c_(c), number_(number), extenders_(label_extenders), costs_(c.costs), memo_(costs_, c.boundaries, c.stages),
        tails_(c.tables.crossings, c.links) {}

  /// Puts one stage before each partial plan that is ready at boundary p in states [first, last).
  void extend(std::size_t p, std::size_t first, std::size_t last) {
    c_.law.visit([&](const auto& law) {
      list_moves(law, p, first, last);
      for (std::size_t block = (p - 1) / neighbours + 1; block-- > 0 && !open_.empty();) {
        if (block % extenders_ != number_) continue;
        for (open_move& m : open_) extend_into(law, block, p, m);
        std::erase_if(open_, [&](const open_move& m) { return m.longest >= block * neighbours; });
      }
    });
  }
  [[nodiscard]] long long extended() const { return extended_; }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();
  /// Boundaries in one block. All moves to a block are made one after the other, while its cells are in the cache.
  static constexpr std::size_t neighbours = 8;
  static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

  /// A move from a state with ready partial plans.
  struct open_move {
    const device_space::move* move;
    std::size_t behind;   ///< index of the partial plans, as seen from the move's group
    std::size_t longest;  ///< begin of the longest stage that may be of use
  };

  /// Fills open_ and behind_.
  template <step_law Law>
  void list_moves(const Law& law, std::size_t p, std::size_t first, std::size_t last) {
    open_.clear();
    longest_.assign(c_.space.groups.size(), unknown);
    std::size_t used = 0;
    for (std::size_t state = first; state < last; ++state) {
      if (c_.ready[state].empty()) continue;
      std::size_t seen_from = unknown;  // group
      for (const device_space::move& m : c_.space.moves[state]) {
        if (seen_from == unknown || (c_.serial && !c_.links.uniform() && m.group != seen_from)) {
          seen_from = m.group;
          if (used == behind_.size()) behind_.emplace_back();
          closed_cells& seen = behind_[used++];
          seen.ranges = c_.ready[state];
          if (c_.serial) {
            const auto link_to = [&](std::size_t other) { return c_.serial_link(c_.links.between(m.group, other), c_.boundaries[p]); };
            seen.look_through_links(c_.store, law, c_.job, c_.links.uniform(), link_to);
          }
        }
        if (c_.serial && !(behind_[used - 1].best.reach_s < inf)) continue;  // no route
        if (longest_[m.group] == unknown) longest_[m.group] = longest_stage(law, p, m.group);
        open_.push_back({&m, used - 1, longest_[m.group]});
      }
    }
  }
  /// Returns true if no plan with a stage of at least these times is of use. If so, none with a longer stage is.
  template <step_law Law>
  [[nodiscard]] bool too_slow(const Law& law, stage_times stage, std::size_t a, std::size_t p, std::size_t group) const {
    run_times least;
    constexpr bool users = std::same_as<Law, hetplan::detail::erased_step_law>;  // may fall as total and backward grow together
    if (!users && c_.serial) {                                                   // ranks in graphs know of no collectives
      stage.collective_s = costs_.least_collective_s(c_.boundaries[a], c_.boundaries[p], group);
      least = times_by(law, c_.job, law.extend(c_.job, stage, pipeline_tail{}));
    } else {
      least = c_.bound(law, {}, {}, {0, stage.total_s}, {0, stage.first_s}, {0, stage.later_s});
    }
    return !(least.makespan.value() < inf) || c_.best.score(least, 0) > c_.worth;  // infinite: a route is missing
  }
  /// Returns the start of the longest stage on a group up to boundary p that is not too slow by itself.
  template <step_law Law>
  [[nodiscard]] std::size_t longest_stage(const Law& law, std::size_t p, std::size_t group) const {
    if (!c_.options.prune) return 0;
    std::size_t first = 0, last = p;  // too slow before first, not from last on
    while (first < last) {
      const std::size_t a = (first + last) / 2;
      if (too_slow(law, c_.least_stage(group, a, p), a, p, group)) first = a + 1;
      else last = a;
    }
    return first;
  }
  /// Puts the stages of a move that begin in a block of boundaries.
  template <step_law Law>
  void extend_into(const Law& law, std::size_t block, std::size_t p, open_move& open) {
    const device_space::move& m = *open.move;
    const closed_cells& behind = behind_[open.behind];
    const std::size_t chain = c_.tables.sequence.chain_of(c_.boundaries[p] - 1);
    const bool at_end = c_.tables.sequence.chain_end(chain) == c_.boundaries[p];
    const std::size_t first = std::max(open.longest, block * neighbours);
    for (std::size_t a = std::min({p - 1, c_.start[m.to], block * neighbours + neighbours - 1}) + 1; a-- > first;) {
      const bool inside = c_.boundaries[a] >= c_.tables.sequence.chain_first[chain];
      if (!inside && !at_end) {
        open.longest = p;
        return;
      }
      if (inside || c_.tables.sequence.is_stage(c_.boundaries[a], c_.boundaries[p])) {
        const work_to_come ahead = c_.work_to_come_before(a, m.to);
        const bool prune = c_.serial && c_.options.prune;
        const auto bounded_out = [&] {
          const double rank = least_rank(law, c_.least_stage(m.group, a, p), behind, ahead);
          return rank > c_.worth || all_closed(rank, behind, a, m.to);
        };
        const bool placed = memo_.has(a, p, m.group);  // such a stage has better bounds
        if (prune && !placed && bounded_out()) continue;
        const placed_stage& unlimited = memo_.unlimited(a, p, m.group).placed;
        double rank = 0;
        if (prune) {
          const stage_times least = least_times(unlimited, m.group, a, p);
          rank = least_rank(law, least, behind, ahead);
          if (rank > c_.worth && costs_.longer_is_slower() && too_slow(law, least, a, p, m.group)) {
            open.longest = p;
            return;
          }
          if (rank > c_.worth || all_closed(rank, behind, a, m.to) || (placed && bounded_out())) continue;
        }
        if (!memo_.may_hold(a, p, m.group)) {
          open.longest = p;
          return;
        }
        if (c_.serial) extend_serial(law, p, a, m, behind, ahead, rank);
        else extend_graph(law, p, a, m, behind, ahead);
      }
    }
  }

  /// Returns lower bounds on the times of all completions of a partial plan.
  template <step_law Law>
  [[nodiscard]] run_times least_run(const Law& law, const pipeline_tail& x, const work_to_come& ahead) const {
    if (ahead.none) return times_by(law, c_.job, x);
    return c_.bound(law, x, ahead.least_link, ahead.mean, ahead.first, ahead.later);
  }
  [[nodiscard]] double rank_of(const run_times& t, double energy_J, double idle_W, const work_to_come& ahead) const {
    if (!(t.makespan.value() < inf)) return inf;  // a route is missing: the objective is not called
    return c_.energy_matters ? c_.best.score(t, energy_J + ahead.energy_J + idle_W * t.makespan.value()) : c_.best.score(t, 0);
  }
  /// Returns lower bounds on the times of all shares of a stage that is placed without memory limits: its own times, but with several
  /// classes of devices other shares may take less of one part of a run of generation.
  [[nodiscard]] stage_times least_times(const placed_stage& unlimited, std::size_t group, std::size_t a, std::size_t p) const {
    stage_times least{unlimited.total_s, unlimited.total_s, unlimited.collective_s, unlimited.first_s, unlimited.later_s};
    if (c_.tables.table.has_parts() && c_.space.groups[group].size() > 1) {
      const stage_times any = c_.least_stage(group, a, p);
      least.first_s = std::min(least.first_s, any.first_s);
      least.later_s = std::min(least.later_s, any.later_s);
    }
    return least;
  }
  /// Returns a lower bound on the ranks of all partial plans that a stage of at least these times extends.
  template <step_law Law>
  [[nodiscard]] double least_rank(const Law& law, const stage_times& least, const closed_cells& behind, const work_to_come& ahead) const {
    return rank_of(least_run(law, law.extend(c_.job, least, behind.best), ahead), behind.best_energy_J, behind.best_idle_W, ahead);
  }
  /// Returns true if no cell that the extensions go to takes a partial plan of this rank.
  [[nodiscard]] bool all_closed(double rank, const closed_cells& behind, std::size_t a, std::size_t state) const {
    const auto closed = [&](const closed_cells::range& r) { return rank >= c_.store.bar(c_.cell(a, state, r.stages + 1)); };
    return a > 0 && std::all_of(behind.ranges.begin(), behind.ranges.end(), closed);
  }

  /// @param least_of_all  lower bound on the ranks of all extensions.
  template <step_law Law>
  void extend_serial(const Law& law, std::size_t p, std::size_t a, const device_space::move& m, const closed_cells& behind,
                     const work_to_come& ahead, double least_of_all) {
    const placed_stage& unlimited = memo_.unlimited(a, p, m.group).placed;
    for (const closed_cells::range& r : behind.ranges) {
      const std::size_t target = c_.cell(a, m.to, r.stages + 1);
      const double bar = a > 0 ? c_.store.bar(target) : inf;
      if ((c_.options.prune && least_of_all >= bar) || a > c_.reach.last(m.to, static_cast<std::size_t>(r.stages) + 1)) continue;
      double rank = 0;  // of such an extension of the range's best
      /// Returns true if the extension could improve the result and enter a full cell.
      const auto may_enter = [&](const pipeline_tail& x, const stage_budget& b) {
        rank = rank_of(least_run(law, x, ahead), r.ideal.energy_J + b.energy_J, r.ideal.idle_W + b.idle_W, ahead);
        return rank <= c_.worth && rank < bar;
      };
      if (c_.options.prune && r.in_flight > unlimited.most_in_flight &&
          !may_enter(law.extend(c_.job, least_times(unlimited, m.group, a, p), r.best), {}))
        continue;
      stage_memo::entry& e = memo_.at(a, p, m.group, r.in_flight);
      const placed_stage& s = e.placed;
      if (!s.exists) continue;
      const stage_times times = s.times();
      const pipeline_tail best = law.extend(c_.job, times, r.best);
      if (c_.options.prune && !may_enter(best, {})) continue;
      stage_budget b;
      if (c_.energy_matters) {
        b = serial_budget(e, a, p, m.group, r.in_flight);
        if (c_.options.prune && !may_enter(best, b)) continue;
      }
      const partial_node blank{.rank = rank,
                               .link = c_.links.key(m.group),
                               .group = static_cast<std::uint32_t>(m.group),
                               .boundary = static_cast<std::uint32_t>(a),
                               .in_flight = r.in_flight};
      if (c_.options.prune && a > 0) {
        extended_ += looks(target);
        if (all_covered(target, blank, best, r.ideal, b)) continue;
      }
      partial_node last = blank;  // last one offered: it was kept, or one that is no worse
      partial_plan last_plan, plan;
      const bool whole = c_.store.whole();
      extended_ += static_cast<long long>(r.end - r.begin);
      partial_node next = blank;
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const closed_cells::suffix& old = behind.suffix_of(n);
        next.tail = law.extend(c_.job, times, old.tail);
        next.stages = old.stages + 1;
        if (whole) plan = extended(c_.store.plan(n), serial_tail(next), b);
        if (a > 0 && n > r.begin && c_.store.covers(last, whole ? &last_plan : nullptr, next, whole ? &plan : nullptr)) continue;
        last = next;
        if (whole) last_plan = plan;
        next.parent = static_cast<std::uint32_t>(n);
        offer(next, whole ? &plan : nullptr, least_run(law, next.tail, ahead), target, ahead);
      }
    }
  }
  /// Returns true if a cell covers all extensions whose best tail is x, of partial plans no better than `ideal`.
  [[nodiscard]] bool all_covered(std::size_t cell, const partial_node& blank, const pipeline_tail& x, const partial_plan& ideal,
                                 const stage_budget& b) const {
    partial_node next = extended(blank, x, ideal.stages);
    if (!c_.store.whole()) return c_.store.covered(cell, next, nullptr);
    const partial_plan plan = extended(ideal, serial_tail(next), b);
    next.rank = inf;  // that of the blank disregards limits
    return c_.store.covered(cell, next, &plan);
  }
  [[nodiscard]] static partial_node extended(partial_node blank, const pipeline_tail& x, int stages_behind) {
    blank.tail = x;
    blank.stages = stages_behind + 1;
    return blank;
  }
  /// Returns the tail of a serial sequence, whose earlier stages all read from its first stage.
  [[nodiscard]] static tail serial_tail(const partial_node& n) { return {n.tail, 0, n.link, 0}; }
  [[nodiscard]] static partial_plan extended(const partial_plan& old, const tail& finished, const stage_budget& b) {
    partial_plan next;
    next.finished = finished;
    next.energy_J = old.energy_J + b.energy_J;
    next.idle_W = old.idle_W + b.idle_W;
    next.limit_s = std::min(old.limit_s, b.limit_s);
    next.stretch_s = std::max(old.stretch_s, b.stretch_s);
    next.stages = old.stages + 1;
    return next;
  }

  template <step_law Law>
  void extend_graph(const Law& law, std::size_t p, std::size_t a, const device_space::move& m, const closed_cells& behind,
                    const work_to_come& ahead) {
    const std::size_t first = c_.boundaries[a], last = c_.boundaries[p];
    const auto in = c_.tables.cuts.bytes_in(first, last);
    const bool is_source = !c_.tables.cuts.reads_from_before(first, last);
    for (const closed_cells::range& r : behind.ranges) {
      for (std::size_t n = r.begin; n < r.end; ++n) {
        ++extended_;
        const partial_plan& old = c_.store.plan(n);
        const seen_suffix seen = tails_.look(law, c_.job, first, last, m.group, old.ports);
        const int depth = seen.depth + 1;
        const placed_stage& s = memo_.at(a, p, m.group, c_.in_flight(depth)).placed;
        if (!s.exists || !(seen.tails.reach_s < inf)) continue;
        const pipeline_tail mine = law.extend(c_.job, s.times(), seen.tails);
        const auto level = static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(depth), c_.levels));
        tail finished = old.finished;
        if (is_source) finished = {larger_of(finished, mine), 0, 0, 0};
        const auto ports = tails_.extend(first, last, old.ports, {mine, level, c_.links.key(m.group), 0});
        // Later stages may lie before only some of the tails, so no path through all of them is certain.
        run_times least = times_by(law, c_.job, finished);
        if (a > 0) {
          pipeline_tail most = finished;
          for (const tail& t : ports) most = larger_of(most, t);
          most.rest_s = most.first_rest_s = 0;
          least = c_.bound(law, most, {}, {0, ahead.mean.busiest_s}, {0, ahead.first.busiest_s}, {0, ahead.later.busiest_s});
        }
        const stage_budget b =
            c_.energy_matters ? costs_.budget(first, last, m.group, c_.in_flight(depth), costs_.traffic(in, seen.out)) : stage_budget{};
        partial_plan next = extended(old, finished, b);
        next.ports = ports;
        partial_node node{.tail = finished,
                          .stages = next.stages,
                          .parent = static_cast<std::uint32_t>(n),
                          .group = static_cast<std::uint32_t>(m.group),
                          .boundary = static_cast<std::uint32_t>(a),
                          .in_flight = c_.in_flight(depth)};
        offer(node, &next, least, c_.cell(a, m.to, next.stages), ahead);
      }
    }
  }

  /// Ranks an extension of a partial plan and keeps it in a cell if it may still matter, or as a complete plan if nothing lies ahead.
  ///
  /// @param plan  that of the node, if the store keeps whole plans.
  void offer(partial_node& next, partial_plan* plan, run_times times, std::size_t cell, const work_to_come& ahead) {
    if (next.stages > c_.options.max_stages || !(times.makespan.value() < inf)) return;
    if (c_.energy_matters) {
      stretch(times, plan->stretch_s);
      if (times.makespan.value() > plan->limit_s) return;
    }
    next.rank = plan ? rank_of(times, plan->energy_J, plan->idle_W, ahead) : rank_of(times, 0, 0, ahead);
    if (c_.options.prune && next.rank > c_.worth) return;
    if (ahead.none) return c_.best.add({next, times});
    if (next.rank >= c_.store.bar(cell)) return;
    if (plan) plan->rank = next.rank;
    extended_ += looks(cell);
    c_.store.keep(next, plan, cell, lists_);
  }
  /// Returns the cost of comparing with all plans of a large cell, in extensions. For small cells it is part of each extension.
  [[nodiscard]] long long looks(std::size_t cell) const {
    constexpr std::size_t small = 32;
    return c_.store.capacity() > small ? static_cast<long long>(c_.store.cell(cell).size() / 8) : 0;
  }

  /// Returns a stage's budget in a serial sequence, where its traffic does not depend on the other cuts.
  const stage_budget& serial_budget(stage_memo::entry& e, std::size_t a, std::size_t p, std::size_t group, int in_flight) {
    if (e.budget.energy_J < 0) {
      const std::size_t first = c_.boundaries[a], last = c_.boundaries[p];
      const stage_traffic all =
          costs_.traffic(c_.tables.cuts.bytes_in(first, last), c_.tables.cuts.bytes_in(last, c_.tables.sequence.size()));
      e.budget = costs_.budget(first, last, group, in_flight, all);
    }
    return e.budget;
  }

  search_context<Policy>& c_;
  std::size_t number_, extenders_;
  candidate_costs costs_;  ///< one per extender, as it has buffers
  stage_memo memo_;
  graph_tails tails_;
  port_lists lists_;
  std::vector<open_move> open_;       ///< at the current boundary
  std::vector<closed_cells> behind_;  ///< those in use first
  std::vector<std::size_t> longest_;  ///< by group
  long long extended_ = 0;
};

/// One run of the recurrence over given boundaries, from the last to the first. At each boundary it closes the cells there and puts one
/// more stage before their partial plans: on every group that the device space allows next, from every valid start. plain_dp is the
/// recurrence without optimisations.
/// Source  Dora, section 4.1, eqs. 3-5. Deviations: see two_substate_dp.
template <cell_policy Policy>
class substate_search {
 public:
  substate_search(const search_tables& t, const device_space& space, const plan& blank, const any_objective& o, const Policy& policy,
                  const search_options& options, std::vector<std::size_t> boundaries, double known_score,
                  any_observer<cell_filled> watch = {})
      : c_(t, space, blank, o, policy, options, std::move(boundaries), known_score), objective_(o), watch_(watch) {}

  search_result run() {
    search_result r;
    if (c_.reach.last(0, 0) + 1 < c_.boundaries.size()) {
      r.status = {outcome::none_found, "no plan of the searched space fits into memory"};
      return r;
    }
    std::deque<label_extender<Policy>> label_extenders;
    const auto several = static_cast<std::size_t>(std::max(1, c_.options.threads));
    for (std::size_t i = 0; i < several; ++i) label_extenders.emplace_back(c_, i, several);
    std::size_t p = 0, first = 0, last = 0;
    crew all(several, [&](std::size_t i) { label_extenders[i].extend(p, first, last); });
    bool stopped = false;
    for (p = c_.boundaries.size() - 1; p > 0 && !stopped; --p) {
      c_.lower_starts();
      for (first = 0; first < c_.space.states() && !stopped; first = last) {
        stopped = r.counts.extended >= c_.options.most_extensions || make_ready(p, first, last, r.counts) == control::stop;
        if (stopped) break;
        c_.worth = c_.best.worth_keeping();
        all.call();
        r.counts.extended = 0;
        for (const auto& e : label_extenders) r.counts.extended += e.extended();
      }
    }
    for (const incumbents::complete& whole : c_.best.all()) r.plans.push_back(rebuild(whole));
    const bool spent = r.counts.extended >= c_.options.most_extensions;
    if (stopped) r.status = {outcome::stopped, spent ? "stopped by the limit of extensions" : "stopped by an observer"};
    else if (c_.best.all().empty()) r.status = {outcome::none_found, "no plan of the searched space keeps the limits"};
    return r;
  }

 private:
  /// Pairs of a move and a boundary per round. Plans found in a round prune from the next round on.
  static constexpr std::size_t round = 100'000;

  /// Closes the cells of boundary p from state `first` on, enough for a round.
  control make_ready(std::size_t p, std::size_t first, std::size_t& last, search_counts& counts) {
    std::size_t work = 0;
    for (last = first; last < c_.space.states() && work < round; ++last) {
      auto& ranges = c_.ready[last];
      ranges.clear();
      if (p + 1 == c_.boundaries.size()) {
        if (last == 0) ranges.push_back({.begin = 0, .end = 1, .stages = 0, .in_flight = c_.in_flight(1)});
      } else {
        for (int stages = 1; stages <= static_cast<int>(c_.levels); ++stages) {
          const std::size_t cell = c_.cell(p, last, stages);
          const auto& kept = c_.store.cell(cell);
          if (kept.empty()) continue;
          ++counts.cells;
          counts.kept += static_cast<long long>(kept.size());
          if (tell(p, last, stages, cell) == control::stop) return control::stop;
          const auto [begin, end] = c_.store.close(cell);
          ranges.push_back({.begin = begin, .end = end, .stages = stages, .in_flight = c_.in_flight(stages + 1)});
        }
      }
      if (!ranges.empty()) work += c_.space.moves[last].size() * p;
    }
    return control::go;
  }
  control tell(std::size_t p, std::size_t state, int stages, std::size_t cell) {
    if (!watch_) return control::go;
    const std::vector<partial_plan> plans = c_.store.plans_of(cell);
    std::vector<const partial_plan*> kept(plans.size());
    std::transform(plans.begin(), plans.end(), kept.begin(), [](const partial_plan& x) { return &x; });
    return watch_(cell_filled{c_.boundaries[p], c_.tables.sequence.size(), state, stages, kept});
  }

  [[nodiscard]] found_plan rebuild(const incumbents::complete& whole) const {
    found_plan f = rebuild_plan(whole, c_.store, c_.boundaries, c_.tables, c_.space, c_.costs, c_.blank, c_.options);
    if (!objective_.monotone()) {
      f.score = score(objective_, f.estimate);
      if (std::isnan(f.score)) refuse_score(f.estimate.times(), f.estimate.energy().value());
    }
    return f;
  }

  search_context<Policy> c_;
  const any_objective& objective_;
  any_observer<cell_filled> watch_;
};

}  // namespace hetplan::partition::detail

namespace hetplan::partition {
namespace detail {

/// Returns the ends of chains, and of the boundaries inside chains about `wanted` that split the work evenly.
[[nodiscard]] std::vector<std::size_t> even_boundaries(const search_tables& t, std::size_t wanted);

/// Returns the options, with prune off if the objective is not monotone. Throws invalid_input for unusable input; invalid_model if a step
/// law, or an objective declared monotone, is not monotone on a grid of points.
[[nodiscard]] search_options checked_options(search_options options, const plan& blank, const any_objective& objective,
                                             const planning_graph& model, std::size_t capacity, bool drops);

/// Result of the coarse runs over ever more boundaries, which give plans to prune the run over all boundaries.
struct coarse_runs {
  search_result found = {};  ///< by the last run
  double known_score = std::numeric_limits<double>::infinity();
  search_options left = {};  ///< options with the extensions that remain
};
[[nodiscard]] coarse_runs run_coarse(const search_tables& tables, const device_space& space, const plan& blank,
                                     const any_objective& objective, const search_options& options);

/// Returns the result of all runs. Plans of coarse runs that the last run lost to a cell's capacity are included.
[[nodiscard]] search_result merge_runs(search_result last, coarse_runs coarse, const search_options& options);

template <cell_policy Policy>
[[nodiscard]] search_result ever_finer_runs(const search_tables& tables, const device_space& space, const plan& blank,
                                            const any_objective& objective, const Policy& policy, search_options options,
                                            const any_observer<cell_filled>& watch) {
  require_device_space(space, tables.cluster, "two_substate_dp");
  options = checked_options(options, blank, objective, tables.model, policy.capacity(), !std::same_as<Policy, exhaustive>);
  coarse_runs coarse = run_coarse(tables, space, blank, objective, options);
  std::vector<std::size_t> all(tables.sequence.size() + 1);
  std::iota(all.begin(), all.end(), std::size_t{0});
  search_result last =
      substate_search(tables, space, blank, objective, policy, coarse.left, std::move(all), coarse.known_score, watch).run();
  return merge_runs(std::move(last), std::move(coarse), options);
}

#ifdef HETPLAN_SEPARATE
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const top_k&,
                                              search_options, const any_observer<cell_filled>&);
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&,
                                              const dominance&, search_options, const any_observer<cell_filled>&);
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&,
                                              const exhaustive&, search_options, const any_observer<cell_filled>&);
#endif

}  // namespace detail

/// Searches every cut of the sequence into stages (pieces of one chain or runs of whole chains) on every choice of groups that the device
/// space allows, for one microbatch size. Shares by candidate_costs, none larger than the tables cover.
///
/// @param blank      plan of the job without decisions: workload, microbatch size and count, schedule.
/// @param objective  copied as any_objective with its own type, not that of a base.
/// @param policy     what cells keep. `exhaustive` and `dominance` are exact under the estimate; top_k{K} keeps K per cell.
/// @return           options.plans plans, best first by (score, stages), with their estimates.
/// Complexity        O(plans of the cells x boundaries x moves) extensions, with boundaries x states x levels cells, before pruning
///                   (measured in docs/performance.md). Memory: kept partial plans.
/// Throws            invalid_input (options, a policy of capacity 0, an invalid device space); invalid_model (a model, the objective or the
///                   step law violates its concept).
/// Determinism       yes; ties: fewer stages, then first found.
/// Source            Dora, section 4.1, eqs. 3-5, from the sinks, because memory depends on the number of following stages, with the exact
///                   state (D, R, X, C) per port of the boundary in place of one latency. Deviations: devices may be left out; on a graph
///                   of stages, sums run along the longest path.
template <objective Objective, cell_policy Policy = top_k, observer<cell_filled>... Observers>
[[nodiscard]] search_result two_substate_dp(const search_tables& tables, const device_space& space, const plan& blank,
                                            const Objective& objective, const Policy& policy = {}, search_options options = {},
                                            Observers&&... observers) {
  static_assert(monotone_objective<Objective> || std::same_as<Policy, exhaustive>,
                "dropping partial plans needs a monotone objective: double score(seconds response, joules energy) const; "
                "any other objective can be searched with the cell policy exhaustive");
  const auto watch = all_of(observers...);
  return detail::ever_finer_runs(tables, space, blank, any_objective(objective), policy, options,
                                 sizeof...(Observers) > 0 ? any_observer<cell_filled>(watch) : any_observer<cell_filled>());
}

// Searches side by side on threads.

/// One of several searches over the same tables, by microbatch size, device order and warm-up rule.
struct search_variant {
  plan blank;  ///< microbatch size and count, schedule
  std::shared_ptr<const device_space> space;
  warmup_rule warmup = warmup_rule::hide_communication;
};

/// Consumer of search results, called in order from the thread that started the searches.
struct search_taker {
  /// Returns the extension limit of the next search; nothing if neither it nor the later ones are wanted.
  std::function<std::optional<long long>()> allowance;
  std::function<control(const search_result&)> take;
};

/// Runs the variants on threads and hands their results to the taker in order, each equal to that of sequential searches. A search that
/// started with a larger limit than its allowance, and reached the latter, is repeated with the allowance.
///
/// @param options  common to all searches, except for warm-up (from the variant) and most_extensions (from the taker).
/// @param threads  0: as many as the hardware runs concurrently.
/// @return         stop if the taker stopped.
/// Complexity      the sum of the searches' divided by the threads; at most one repetition for each search that reached its limit.
/// Throws          as two_substate_dp.
/// Determinism     yes, for any number of threads.
/// Source          our own; Dora, section 4.1, searches one order with one warm-up rule.
control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants, const any_objective& objective,
                            const top_k& policy, const search_options& options, int threads, const search_taker& taker);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/two_substate_dp.ipp>
#endif
