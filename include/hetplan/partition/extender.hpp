// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The step of the search: one more stage before everything that ends at a boundary.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/partition/graph_tails.hpp>
#include <hetplan/partition/search_context.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// Puts stages that begin at boundaries of its own before the partial plans that are ready: one of several that share out the
/// boundaries, so that each fills cells of its own and none waits.
///
/// Complexity   O(moves of the states x boundaries of its own x partial plans) a call, before pruning.
/// Determinism  a cell is offered the same partial plans in the same order, however many extenders there are.
/// Source       Dora, section 4.1, the minimum of eqs. 3-5 over cuts and groups. Own: pruning, and sharing out the boundaries.
template <cell_policy Policy>
class extender {
 public:
  extender(search_context<Policy>& c, std::size_t number, std::size_t extenders)
      : c_(c), number_(number), extenders_(extenders), costs_(c.costs), memo_(costs_, c.boundaries, c.stages),
        tails_(c.tables.crossings, c.links) {}

  /// A stage before each partial plan that is ready at boundary p in states [first, last).
  void extend(std::size_t p, std::size_t first, std::size_t last) {
    c_.law.visit([&](const auto& law) {
      for (std::size_t state = first; state < last; ++state) {
        if (c_.ready[state].empty()) continue;
        suffixes_.ranges = c_.ready[state];
        for (const device_space::move& m : c_.space.moves[state]) extend_by(law, p, m);
      }
    });
  }
  /// Extensions weighed so far.
  [[nodiscard]] long long extended() const { return extended_; }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();
  static constexpr std::size_t neighbours = 8;  ///< that one extender owns together: cells side by side in memory

  /// The largest boundary of its own up to this one.
  [[nodiscard]] std::optional<std::size_t> own_up_to(std::size_t a) const {
    const std::size_t group = a / neighbours, behind = (group + extenders_ - number_) % extenders_;
    if (behind == 0) return a;
    if (group < behind) return {};
    return (group - behind) * neighbours + neighbours - 1;
  }
  [[nodiscard]] std::optional<std::size_t> next_own(std::size_t a) const { return a == 0 ? std::nullopt : own_up_to(a - 1); }

  template <step_law Law>
  bool prepare_links(const Law& law, std::size_t p, std::size_t group) {
    const auto link_to = [&](std::size_t other) { return c_.serial_link(c_.links.between(group, other), c_.boundaries[p]); };
    return suffixes_.look_through_links(c_.store, law, c_.job, c_.links.uniform(), link_to);
  }
  /// Where the longest stage on a group up to boundary p begins that is not too slow by itself.
  template <step_law Law>
  [[nodiscard]] std::size_t longest_stage(const Law& law, std::size_t p, std::size_t group) const {
    if (!c_.options.prune) return 0;
    std::size_t first = 0, last = p;  // too slow before first, not so from last on
    while (first < last) {
      const std::size_t a = (first + last) / 2;
      if (c_.best.score(c_.bound_s(law, {}, {}, 0, c_.bounds.stage_s(group, a, p)), 0) > c_.worth) first = a + 1;
      else last = a;
    }
    return first;
  }
  template <step_law Law>
  void extend_by(const Law& law, std::size_t p, const device_space::move& m) {
    if (c_.serial && !prepare_links(law, p, m.group)) return;
    const std::size_t chain = c_.tables.sequence.chain_of(c_.boundaries[p] - 1);
    const bool at_end = c_.tables.sequence.chain_end(chain) == c_.boundaries[p];
    const std::size_t longest = longest_stage(law, p, m.group);
    for (std::optional<std::size_t> own = own_up_to(std::min(p - 1, c_.start[m.to])); own && *own >= longest; own = next_own(*own)) {
      const std::size_t a = *own;
      const bool inside = c_.boundaries[a] >= c_.tables.sequence.chain_first[chain];
      if (!inside && !at_end) return;
      if (inside || c_.tables.sequence.is_stage(c_.boundaries[a], c_.boundaries[p])) {
        const double least_s = c_.bounds.stage_s(m.group, a, p);
        if (c_.serial && nothing_comes_of(law, stage_times{least_s, least_s, 0}, a, m.to)) continue;
        if (!memo_.may_hold(a, p, m.group)) return;
        if (c_.serial) extend_serial(law, p, a, m);
        else extend_graph(law, p, a, m);
      }
    }
  }

  /// T at least, for a partial plan that begins at a boundary and leaves a state.
  template <step_law Law>
  [[nodiscard]] double response_s(const Law& law, const pipeline_tail& x, std::size_t a, std::size_t state) const {
    if (a == 0) return law.response_s(c_.job, x);
    return c_.bound_s(law, x, c_.least_links[a], c_.bounds.path_s(state, a), c_.bounds.busiest_s(state, a));
  }
  [[nodiscard]] double rank_of(double response_s, double energy_J, double idle_W, std::size_t a) const {
    if (!(response_s < inf)) return inf;  // a route is missing; nobody is asked what that is worth
    return c_.energy_matters ? c_.best.score(response_s, energy_J + c_.bounds.energy_J(a) + idle_W * response_s)
                             : c_.best.score(response_s, 0);
  }
  /// A stage that takes at least so long before any of the partial plans.
  template <step_law Law>
  [[nodiscard]] bool nothing_comes_of(const Law& law, const stage_times& least, std::size_t a, std::size_t state) const {
    return c_.options.prune && hopeless(law, law.extend(c_.job, least, suffixes_.best), a, state);
  }
  /// Can nothing come of extensions that are no better than this?
  template <step_law Law>
  [[nodiscard]] bool hopeless(const Law& law, const pipeline_tail& x, std::size_t a, std::size_t state) const {
    const double rank = rank_of(response_s(law, x, a, state), suffixes_.best_energy_J, suffixes_.best_idle_W, a);
    if (rank > c_.worth) return true;
    const auto closed = [&](const closed_cells::range& r) { return rank >= c_.store.bar(c_.cell(a, state, r.stages + 1)); };
    return a > 0 && std::all_of(suffixes_.ranges.begin(), suffixes_.ranges.end(), closed);
  }

  template <step_law Law>
  void extend_serial(const Law& law, std::size_t p, std::size_t a, const device_space::move& m) {
    const double worth = c_.worth;
    const placed_stage& unlimited = memo_.unlimited(a, p, m.group).placed;
    const stage_times least{unlimited.total_s, unlimited.total_s, unlimited.collective_s};
    if (nothing_comes_of(law, least, a, m.to)) return;
    for (const closed_cells::range& r : suffixes_.ranges) {
      if (a > c_.reach.last(m.to, static_cast<std::size_t>(r.stages) + 1)) continue;
      const std::size_t target = c_.cell(a, m.to, r.stages + 1);
      const double bar = a > 0 ? c_.store.bar(target) : inf;
      /// Could an extension this good of a member of the range matter, and beat what a full cell holds?
      const auto may_enter = [&](const pipeline_tail& x, const stage_budget& b) {
        const double rank = rank_of(response_s(law, x, a, m.to), r.ideal.energy_J + b.energy_J, r.ideal.idle_W + b.idle_W, a);
        return rank <= worth && rank < bar;
      };
      if (c_.options.prune && !may_enter(law.extend(c_.job, least, r.best), {})) continue;
      const int in_flight = c_.in_flight(r.stages + 1);
      stage_memo::entry& e = memo_.at(a, p, m.group, in_flight);
      const placed_stage& s = e.placed;
      if (!s.exists) continue;
      const stage_times times{s.total_s, s.backward_s, s.collective_s};
      const stage_budget b = c_.energy_matters ? serial_budget(e, a, p, m.group, in_flight) : stage_budget{};
      if (c_.options.prune) {
        const pipeline_tail best = law.extend(c_.job, times, r.best);
        if (!may_enter(best, b)) continue;
        if (a > 0) extended_ += looks(target);
        if (a > 0 && !c_.store.cell(target).empty() && c_.store.covered(target, extended(r.ideal, serial_tail(best, m.group), b))) continue;
      }
      partial_plan last;  // that was offered: kept, or something is that is no worse
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const pipeline_tail x = law.extend(c_.job, times, suffixes_.suffix_of(n));
        ++extended_;
        const partial_plan next = extended(c_.store[n], serial_tail(x, m.group), b);
        if (a > 0 && n > r.begin && c_.store.covers(last, next)) continue;
        last = next;
        offer(next, n, response_s(law, x, a, m.to), a, m, r.stages + 1);
      }
    }
  }
  /// Of a serial sequence: everything before it reads from its first stage.
  [[nodiscard]] tail serial_tail(const pipeline_tail& x, std::size_t group) const {
    return {x.reach_s, x.rest_s, 0, c_.links.key(group), 0};
  }
  /// A partial plan with one more stage.
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
  void extend_graph(const Law& law, std::size_t p, std::size_t a, const device_space::move& m) {
    const std::size_t first = c_.boundaries[a], last = c_.boundaries[p];
    const auto in = c_.tables.cuts.bytes_in(first, last);
    const bool is_source = !c_.tables.cuts.reads_from_before(first, last);
    for (const closed_cells::range& r : suffixes_.ranges) {
      for (std::size_t n = r.begin; n < r.end; ++n) {
        ++extended_;
        const partial_node& old = c_.store[n];
        const seen_suffix seen = tails_.look(law, c_.job, first, last, m.group, old.ports);
        const int depth = seen.depth + 1;
        const placed_stage& s = memo_.at(a, p, m.group, c_.in_flight(depth)).placed;
        if (!s.exists || !(seen.tails.reach_s < inf)) continue;
        const auto [reach, rest] = law.extend(c_.job, stage_times{s.total_s, s.backward_s, s.collective_s}, seen.tails);
        const auto level = static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(depth), c_.levels));
        tail finished = old.finished;
        if (is_source) finished = {std::max(finished.reach_s, reach), std::max(finished.rest_s, rest), 0, 0, 0};
        const auto ports = tails_.extend(first, last, old.ports, {reach, rest, level, c_.links.key(m.group), 0});
        // What is to come lies before some of the tails only: no way through it is certain.
        double response = law.response_s(c_.job, {finished.reach_s, finished.rest_s});
        if (a > 0) {
          double least_reach = finished.reach_s;
          for (const tail& t : ports) least_reach = std::max(least_reach, t.reach_s);
          response = c_.bound_s(law, {least_reach, 0}, {}, 0, c_.bounds.busiest_s(m.to, a));
        }
        const stage_budget b =
            c_.energy_matters ? costs_.budget(first, last, m.group, c_.in_flight(depth), costs_.traffic(in, seen.out)) : stage_budget{};
        partial_plan next = extended(old, finished, b);
        next.ports = ports;
        offer(next, n, response, a, m, depth);
      }
    }
  }

  /// Ranks an extension of a partial plan and keeps it where it may still matter.
  void offer(const partial_plan& extension, std::size_t parent, double response_s, std::size_t a, const device_space::move& m, int depth) {
    if (extension.stages > c_.options.max_stages || !(response_s < inf)) return;
    if (c_.energy_matters) {
      response_s = std::max(response_s, extension.stretch_s);
      if (response_s > extension.limit_s) return;
    }
    const double rank = rank_of(response_s, extension.energy_J, extension.idle_W, a);
    const std::size_t target = a > 0 ? c_.cell(a, m.to, extension.stages) : 0;
    if ((c_.options.prune && rank > c_.worth) || (a > 0 && rank >= c_.store.bar(target))) return;
    partial_node next{extension};
    next.rank = rank;
    next.parent = static_cast<std::uint32_t>(parent);
    next.group = static_cast<std::uint32_t>(m.group);
    next.boundary = static_cast<std::uint32_t>(a);
    next.in_flight = c_.in_flight(depth);
    if (a == 0) return c_.best.add(next);
    extended_ += looks(target);
    c_.store.keep(next, target, lists_);
  }
  /// Comparing with all that a large cell keeps takes as long as so many extensions; with what a small one keeps it is part of each.
  [[nodiscard]] long long looks(std::size_t cell) const {
    constexpr std::size_t small = 32;
    return c_.store.capacity() > small ? static_cast<long long>(c_.store.cell(cell).size() / 8) : 0;
  }

  /// Serial sequences: what a stage exchanges does not depend on how the rest is cut.
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
  candidate_costs costs_;  ///< its own: they remember
  stage_memo memo_;
  graph_tails tails_;
  port_lists lists_;
  closed_cells suffixes_;  ///< of the state at hand
  long long extended_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::partition::detail
