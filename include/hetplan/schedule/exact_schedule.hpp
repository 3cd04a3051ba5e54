// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The optimum over all orders of events, by mixed-integer programming: the reference for small graphs.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/solve/milp.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

struct exact_options {
  std::size_t most_transfers = 10;  ///< larger graphs are left alone: cost grows exponentially
};

namespace detail {

/// Which of a few nodes of a CEP graph can be reached from which nodes. Complexity O((nodes + dependencies) * targets / 64).
class reachability {
 public:
  reachability(const cep_graph& cep, const std::vector<tasks::node_id>& targets);
  /// Is there a path from a to b, or are they one?
  ///
  /// @param b  a target.
  [[nodiscard]] bool operator()(tasks::node_id a, tasks::node_id b) const;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> number_;  ///< by node, among the targets
  std::size_t words_;
  std::vector<std::uint64_t> reached_;
};

/// The mixed-integer program: order_program where the order is a variable.
///
/// 2F points in time for the events of F draining transfers, one event each. u(f, k) = 1: transfer f has started at point
/// k or before; v(f, k): it has ended. In the interval after point k it may move only if u(f, k) - v(f, k) = 1.
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

  /// Orders that every schedule keeps, or that some optimal one does: they cut the search, not the optimum.
  void known_orders();
  /// Does every node of `from` reach some node of `to`?
  static bool all_reach(const reachability& reaches, const std::vector<tasks::node_id>& from, const std::vector<tasks::node_id>& to);
  /// Is every node of `to` reached from some node of `from`?
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

/// The best rates over all orders of events.
///
/// @param given  any schedule; its latency limits the program.
/// @return       status feasible: proven optimal, within the solver's tolerance, whatever the way bandwidth is shared.
///               stopped: the graph is too large, or the solver met a limit or was wrong; then the better of `given` and what it found,
///               and the best bound known.
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
    network_schedule found;  // field by field, as in order_search
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

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/exact_schedule.ipp>
#endif
