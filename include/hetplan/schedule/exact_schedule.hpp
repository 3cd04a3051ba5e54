// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Optimal schedules over all orders of events by mixed-integer programming: the reference for small graphs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

/// Returns rates from the fractions of volumes that `share_of(transfer, interval)` gives; `times_s` holds the intervals' limits.
///
/// Every transfer has rate 0 from the last limit on. Intervals shorter than 1e-12 of the run are skipped, since a solver's rounding is
/// large in them. Rates beyond a capacity are reduced to it.
template <class ShareOf>
[[nodiscard]] std::vector<rate_change> rates_of_shares(const cep_graph& cep, const std::vector<std::uint32_t>& draining,
                                                       const std::vector<double>& times_s, ShareOf&& share_of) {
  const tasks::task_graph& g = cep.tasks();
  const auto via = [&](std::uint32_t t) -> const auto& { return g.routes[g.transfers[t].route].via; };
  std::vector<rate_change> out;
  std::vector<double> rate(draining.size()), before(draining.size(), -1), used(cep.network().resources().size());
  for (std::size_t k = 0; k + 1 < times_s.size(); ++k) {
    const double length_s = times_s[k + 1] - times_s[k];
    if (length_s <= 1e-12 * times_s.back()) continue;
    std::fill(used.begin(), used.end(), 0);
    for (std::size_t i = 0; i < draining.size(); ++i) {
      rate[i] = std::max(0.0, share_of(draining[i], k)) * g.transfers[draining[i]].volume_bytes / length_s;
      for (const resource_use& u : via(draining[i])) used[u.resource.index()] += u.weight * rate[i];
    }
    for (std::size_t i = 0; i < draining.size(); ++i) {
      double fits = 1;
      for (const resource_use& u : via(draining[i])) {
        const double capacity = cep.network()[u.resource].capacity.value();
        if (used[u.resource.index()] > capacity) fits = std::min(fits, capacity / used[u.resource.index()]);
      }
      if (rate[i] * fits != before[i]) out.push_back({times_s[k], draining[i], rate[i] * fits});
      before[i] = rate[i] * fits;
    }
  }
  for (std::size_t i = 0; i < draining.size(); ++i) {
    if (before[i] > 0) out.push_back({times_s.back(), draining[i], 0});
  }
  return out;
}

/// A run with its rates recorded, and the window in which a program may change it.
struct order_frame {
  trace run;
  time_window window = {};
};

/// Linear program that minimises the makespan for a fixed order of events. Outside the frame's window the run is fixed, but its part
/// behind the window moves with the makespan.
///
/// Between two events the set of active transfers is constant, so the program only chooses the fraction of its volume that each moves
/// there. Columns are the timing, and a fraction for every transfer and interval between its start and end. Rows limit every resource to
/// its capacity times the interval's length. Times are in units of the run, so that numbers are near 1.
///
/// Complexity  one interval per event; one fraction per transfer and interval that it spans.
/// Source      Dora, eq. 6 for a fixed order.
class order_program {
 public:
  order_program(const cep_graph& cep, std::shared_ptr<const order_frame> frame, event_order order);

  /// @param order   of all events, from any run: every draining transfer's start and, later, its end.
  /// @param unit_s  approximate latency of the schedule.
  order_program(const cep_graph& cep, event_order order, double unit_s);

  [[nodiscard]] const lp_problem& problem() const { return lp_; }
  [[nodiscard]] const event_order& order() const { return order_; }
  [[nodiscard]] const std::shared_ptr<const order_frame>& frame() const { return frame_; }
  [[nodiscard]] bool covers_all() const { return std::isinf(frame_->window.from_s) && std::isinf(frame_->window.to_s); }

  [[nodiscard]] double makespan_s(const lp_solution& s) const { return seconds_of(timing_.makespan(), s); }
  [[nodiscard]] double event_s(std::size_t i, const lp_solution& s) const { return seconds_of(time(order_[i]), s); }

  /// Returns the rates of a solution inside the window and those of the run around it.
  [[nodiscard]] prescribed rates(const lp_solution& s) const;

  /// Returns the basis of another order in the same frame for common columns and rows; new columns start at 0, new rows basic.
  [[nodiscard]] lp_basis start_from(const order_program& other, const lp_basis& basis) const;

 private:
  [[nodiscard]] static trace whole_run(const cep_graph& cep, double unit_s);

  [[nodiscard]] lp_time time(const transfer_event& e) const;
  [[nodiscard]] double seconds_of(const lp_time& t, const lp_solution& s) const;

  /// Adds a fraction for every draining transfer and interval in which it is active. They sum to its share of volume in the window.
  void add_shares();

  /// Returns the bytes that the run moves before and behind the window, by transfer.
  [[nodiscard]] keyed<double> moved_outside() const;

  /// Adds the row sum of weight * volume * fraction / capacity <= length for each resource and interval.
  void capacity_rows();
  /// Adds an empty row with the upper limit until - from.
  void add_length(const lp_time& from, const lp_time& until);

  const cep_graph& cep_;
  std::shared_ptr<const order_frame> frame_;
  event_order order_;
  lp_problem lp_;
  timing_rows timing_;
  std::vector<lp_time> times_;  ///< limits of intervals: the window's start, the events, the window's end
  bool opens_ = false;          ///< true if the window begins within the run
  keyed<int> share_;            ///< columns of fractions, by transfer and interval, in this order
  keyed<int> capacity_;         ///< rows of capacities, by resource and interval
  std::size_t first_share_ = 0, first_capacity_ = 0;
};

struct exact_options {
  std::size_t most_transfers = 10;  ///< limit on draining transfers, since cost grows exponentially
};

namespace detail {

/// Reachability of target nodes from all nodes of a CEP graph. Complexity O((nodes + dependencies) * targets / 64).
class reachability {
 public:
  reachability(const cep_graph& cep, const std::vector<tasks::node_id>& targets);
  /// True if there is a path from a to the target b, or if they are the same node.
  [[nodiscard]] bool operator()(tasks::node_id a, tasks::node_id b) const;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number_;  ///< by node: index among the targets
  std::size_t words_;
  std::vector<std::uint64_t> reached_;
};

/// Mixed-integer program: order_program with the order as a variable. The events of F draining transfers take 2F points in time, one each.
/// The binary u(f, k) is 1 if transfer f has started at point k or before, v(f, k) if it has ended. In the interval after point k the
/// transfer may move only if u(f, k) - v(f, k) = 1.
class order_choice {
 public:
  order_choice(const cep_graph& cep, const trace& known);

  [[nodiscard]] const milp_problem& problem() const { return program_; }
  [[nodiscard]] double unit_s() const { return timing_.unit_s(); }
  [[nodiscard]] prescribed rates(const milp_solution& s) const;

 private:
  int add_binary();
  void add_row(std::vector<std::pair<int, double>> terms, double lower, double upper = std::numeric_limits<double>::infinity());

  void add_transfer(std::size_t i);
  void fix(int column, double value);

  void one_event_per_point(std::size_t k);

  void capacities();

  /// Adds orders that hold in every schedule or in some optimal one. They shrink the search without losing the optimum.
  void known_orders();
  /// True if every node of `from` reaches some node of `to`.
  static bool all_reach(const reachability& reaches, const std::vector<tasks::node_id>& from, const std::vector<tasks::node_id>& to);
  /// True if every node of `to` is reached from some node of `from`.
  static bool all_reached(const reachability& reaches, const std::vector<tasks::node_id>& from, const std::vector<tasks::node_id>& to);
  [[nodiscard]] std::vector<std::vector<tasks::node_id>> predecessors() const;

  const cep_graph& cep_;
  milp_problem program_;
  timing_rows timing_;
  std::size_t points_ = 0;
  std::vector<int> time_;                          ///< by point
  std::vector<std::vector<int>> started_, ended_;  ///< u, v by draining transfer and point
  std::vector<std::vector<int>> share_;            ///< by draining transfer and interval
};

}  // namespace detail

/// Returns the schedule with the best rates over all orders of events.
///
/// @param given  any schedule; its latency limits the program.
/// @return       status feasible: optimal under any sharing of bandwidth, within the solver's tolerance. Status stopped: the graph is too
///               large, or the solver met a limit or was wrong; then the better of `given` and the solver's, with the best bound.
/// Complexity    exponential in the transfers.  Determinism  the solver's.
/// Source        Dora, eq. 6, as a mixed-integer program of our own.
template <milp_solver Solver>
[[nodiscard]] network_schedule exact_schedule(const cep_graph& cep, const network_schedule& given, const Solver& solver,
                                              const exact_options& options = {}) {
  static_assert(check_milp_solver<Solver>());
  network_schedule best = given;
  best.steps = 0;
  best.status = {};
  const auto stopped = [&](const std::string& why) {
    best.status = {outcome::stopped, "exact schedule: " + why};
    return best;
  };
  const tasks::task_graph& g = cep.tasks();
  const auto transfers =
      static_cast<std::size_t>(std::count_if(g.transfers.begin(), g.transfers.end(), [&](const auto& t) { return drains(g, t); }));
  if (transfers == 0) return best;
  if (transfers > options.most_transfers) {
    return stopped(std::to_string(transfers) + " transfers; at most " + std::to_string(options.most_transfers) +
                   " are solved (exact_options::most_transfers)");
  }
  trace known = run(cep, network_schedule{});
  known.latency = given.latency;  // the program's unit and limit
  const detail::order_choice choice(cep, known);
  const milp_solution s = solver.solve(choice.problem());
  best.steps = s.nodes;
  if (s.status == milp_status::infeasible || s.status == milp_status::unbounded)
    return stopped("the solver says that there is no schedule, but one is given");
  if (s.status == milp_status::optimal || s.status == milp_status::feasible) {
    constexpr double tolerance = 1e-6;
    const bool optimal = s.status == milp_status::optimal;
    const double claimed_s = s.objective * choice.unit_s(), bound_s = (optimal ? s.objective : s.bound) * choice.unit_s();
    if (s.x.size() != choice.problem().relaxation.objective.size()) return stopped("the solver's answer has another size than its problem");
    network_schedule found;  // field by field: see order_searcher::keep
    found.rates = choice.rates(s);
    found.bound = best.bound;
    found.steps = s.nodes;
    if (!found.is_prescribed()) return stopped("the solver's rates move nothing");
    try {
      found.latency = run(cep, found).latency;
    } catch (const invalid_input&) {
      return stopped("the solver's rates did not pass the simulator");
    }
    const bool confirmed = found.latency.value() <= claimed_s * (1 + tolerance);
    if (found.latency < best.latency) best = std::move(found);
    best.gap = gap_of(best);
    if (!confirmed || !(bound_s <= best.latency.value() * (1 + tolerance)))
      return stopped("the simulator did not confirm what the solver says");
    best.bound = std::max(best.bound, std::min(best.latency, seconds(bound_s)));
    best.gap = gap_of(best);
  }
  if (s.status != milp_status::optimal) return stopped("the solver met a limit after " + std::to_string(s.nodes) + " nodes");
  return best;
}

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/exact_schedule.ipp>
#endif
