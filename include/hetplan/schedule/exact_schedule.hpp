// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The optimum over all orders of events, by mixed-integer programming: the reference for small graphs.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/schedule/order_program.hpp>
#include <hetplan/solve/milp.hpp>

namespace hetplan::schedule {

struct exact_options {
  std::size_t most_transfers = 10;  ///< larger graphs are left alone: cost grows exponentially
};

namespace detail {

/// Which of a few nodes of a CEP graph can be reached from which nodes. Complexity O((nodes + dependencies) * targets / 64).
class reachability {
 public:
  reachability(const cep_graph& cep, const std::vector<tasks::node_id>& targets)
      : number_(cep.tasks().size(), none), words_((targets.size() + 63) / 64), reached_(cep.tasks().size() * words_, 0) {
    std::uint32_t numbers = 0;
    for (const tasks::node_id n : targets) {
      if (number_[n] == none) number_[n] = numbers++;
    }
    const tasks::task_graph& g = cep.tasks();
    const std::vector<tasks::node_id> order = tasks::longest_paths(g, cep.network()).order, next = tasks::detail::next_on_device(g);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      std::uint64_t* mine = &reached_[*it * words_];
      if (number_[*it] != none) mine[number_[*it] / 64] |= std::uint64_t{1} << number_[*it] % 64;
      const auto join = [&](tasks::node_id m) {
        for (std::size_t i = 0; i < words_; ++i) mine[i] |= reached_[m * words_ + i];
      };
      for (const tasks::node_id m : g.successors_of(*it)) join(m);
      if (g.is_compute(*it) && next[*it] < g.size()) join(next[*it]);
    }
  }
  /// Is there a path from a to b, or are they one?
  ///
  /// @param b  a target.
  [[nodiscard]] bool operator()(tasks::node_id a, tasks::node_id b) const {
    return (reached_[a * words_ + number_[b] / 64] >> number_[b] % 64 & 1) != 0;
  }

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
  order_choice(const cep_graph& cep, const trace& known) : cep_(cep), timing_(cep, known, {}, program_.relaxation) {
    lp_problem& lp = program_.relaxation;
    const auto makespan = static_cast<std::size_t>(timing_.makespan().column);
    lp.upper[makespan] = std::max(1.0, lp.lower[makespan]);  // units of the schedule that is known; it may be at its bound
    const auto& f = timing_.draining();
    points_ = 2 * f.size();
    for (std::size_t k = 0; k < points_; ++k) {
      time_.push_back(lp.add_column(0, 0, 1));
      if (k > 0) lp.rows.push_back({.terms = {{time_[k], 1}, {time_[k - 1], -1}}, .lower = 0});
    }
    for (std::size_t i = 0; i < f.size(); ++i) add_transfer(i);
    for (std::size_t k = 0; k < points_; ++k) one_event_per_point(k);
    capacities();
    known_orders();
  }

  [[nodiscard]] const milp_problem& problem() const { return program_; }
  [[nodiscard]] double unit_s() const { return timing_.unit_s(); }
  [[nodiscard]] prescribed rates(const milp_solution& s) const {
    std::vector<double> times_s;
    for (const int column : time_) times_s.push_back(s.x[static_cast<std::size_t>(column)] * unit_s());
    for (std::size_t k = 1; k < times_s.size(); ++k) times_s[k] = std::max(times_s[k], times_s[k - 1]);
    return {rates_of_shares(cep_, timing_.draining(), times_s, [&](std::uint32_t t, std::size_t k) {
      const auto i =
          static_cast<std::size_t>(std::lower_bound(timing_.draining().begin(), timing_.draining().end(), t) - timing_.draining().begin());
      return s.x[static_cast<std::size_t>(share_[i][k])];
    })};
  }

 private:
  int add_binary() {
    program_.integers.push_back(program_.relaxation.add_column(0, 0, 1));
    return program_.integers.back();
  }
  void add_row(std::vector<std::pair<int, double>> terms, double lower, double upper = std::numeric_limits<double>::infinity()) {
    program_.relaxation.rows.push_back({std::move(terms), lower, upper});
  }

  void add_transfer(std::size_t i) {
    const std::uint32_t t = timing_.draining()[i];
    const int ready = timing_.ready(t).column, end = timing_.end(cep_.tasks().node_of_transfer(t)).column;
    started_.emplace_back();
    ended_.emplace_back();
    share_.emplace_back();
    std::vector<std::pair<int, double>> whole;
    for (std::size_t k = 0; k < points_; ++k) {
      started_[i].push_back(add_binary());
      ended_[i].push_back(add_binary());
      const int u = started_[i][k], v = ended_[i][k];
      if (k > 0) {
        add_row({{u, 1}, {started_[i][k - 1], -1}}, 0);
        add_row({{v, 1}, {ended_[i][k - 1], -1}}, 0);
        add_row({{started_[i][k - 1], 1}, {v, -1}}, 0);  // ends after its start
      }
      add_row({{time_[k], 1}, {ready, -1}, {u, -1}}, -1);                       // u = 1: ready <= time k
      if (k + 1 < points_) add_row({{end, 1}, {time_[k + 1], -1}, {v, 1}}, 0);  // v = 0: end >= time k + 1
      if (k + 1 == points_) break;
      share_[i].push_back(program_.relaxation.add_column(0, 0, 1));
      add_row({{u, 1}, {v, -1}, {share_[i][k], -1}}, 0);
      whole.emplace_back(share_[i][k], 1);
    }
    fix(ended_[i].front(), 0);
    fix(started_[i].back(), 1);
    fix(ended_[i].back(), 1);
    add_row(std::move(whole), 1, 1);
  }
  void fix(int column, double value) {
    program_.relaxation.lower[static_cast<std::size_t>(column)] = program_.relaxation.upper[static_cast<std::size_t>(column)] = value;
  }

  void one_event_per_point(std::size_t k) {
    std::vector<std::pair<int, double>> terms;
    for (std::size_t i = 0; i < started_.size(); ++i) {
      terms.emplace_back(started_[i][k], 1);
      terms.emplace_back(ended_[i][k], 1);
    }
    const double events = static_cast<double>(k) + 1;
    add_row(std::move(terms), events, events);
  }

  void capacities() {
    const tasks::task_graph& g = cep_.tasks();
    for (std::size_t k = 0; k + 1 < points_; ++k) {
      std::vector<std::vector<std::pair<int, double>>> load(cep_.network().resources().size());
      for (std::size_t i = 0; i < share_.size(); ++i) {
        const tasks::transfer& x = g.transfers[timing_.draining()[i]];
        for (const resource_use& u : g.routes[x.route].via) {
          load[u.resource.index()].emplace_back(share_[i][k], tasks::work_s(x, u, cep_.network()) / unit_s());
        }
      }
      for (auto& terms : load) {
        if (terms.empty()) continue;
        terms.emplace_back(time_[k + 1], -1);
        terms.emplace_back(time_[k], 1);
        add_row(std::move(terms), -std::numeric_limits<double>::infinity(), 0);
      }
    }
  }

  /// Orders that every schedule keeps, or that some optimal one does: they cut the search, not the optimum.
  void known_orders() {
    const tasks::task_graph& g = cep_.tasks();
    const std::vector<std::vector<tasks::node_id>> before = predecessors();
    const auto& f = timing_.draining();
    std::vector<tasks::node_id> asked;  // the transfers, what they wait for and what waits for them
    for (const std::uint32_t t : f) {
      const tasks::node_id n = g.node_of_transfer(t);
      asked.push_back(n);
      asked.insert(asked.end(), before[n].begin(), before[n].end());
      asked.insert(asked.end(), g.successors_of(n).begin(), g.successors_of(n).end());
    }
    const reachability reaches(cep_, asked);
    for (std::size_t a = 0; a < f.size(); ++a) {
      for (std::size_t b = 0; b < f.size(); ++b) {
        const tasks::node_id na = g.node_of_transfer(f[a]), nb = g.node_of_transfer(f[b]);
        if (a == b) continue;
        if (reaches(na, nb)) {  // b starts after a ends
          for (std::size_t k = 1; k < points_; ++k) add_row({{ended_[a][k - 1], 1}, {started_[b][k], -1}}, 0);
          fix(started_[b].front(), 0);
          continue;
        }
        const tasks::transfer &x = g.transfers[f[a]], &y = g.transfers[f[b]];
        const auto no_later = [&](const tasks::transfer& s, tasks::node_id ns, const tasks::transfer& t, tasks::node_id nt) {
          return s.release_s <= t.release_s && s.latency_s <= t.latency_s && all_reach(reaches, before[ns], before[nt]);
        };
        if (!no_later(x, na, y, nb) || (a > b && no_later(y, nb, x, na))) continue;  // ready together: by number
        for (std::size_t k = 0; k < points_; ++k) add_row({{started_[a][k], 1}, {started_[b][k], -1}}, 0);
        // On one route the first bytes may go to a, if all that waits for b waits for a in any case.
        std::vector<tasks::node_id> after_a(g.successors_of(na).begin(), g.successors_of(na).end());
        std::vector<tasks::node_id> after_b(g.successors_of(nb).begin(), g.successors_of(nb).end());
        if (x.route != y.route || !all_reached(reaches, after_a, after_b)) continue;
        for (std::size_t k = 0; k < points_; ++k) add_row({{ended_[a][k], 1}, {ended_[b][k], -1}}, 0);
      }
    }
  }
  /// Does every node of `from` reach some node of `to`?
  static bool all_reach(const reachability& reaches, const std::vector<tasks::node_id>& from, const std::vector<tasks::node_id>& to) {
    return std::all_of(from.begin(), from.end(), [&](tasks::node_id a) {
      return std::any_of(to.begin(), to.end(), [&](tasks::node_id b) { return reaches(a, b); });
    });
  }
  /// Is every node of `to` reached from some node of `from`?
  static bool all_reached(const reachability& reaches, const std::vector<tasks::node_id>& from, const std::vector<tasks::node_id>& to) {
    return std::all_of(to.begin(), to.end(), [&](tasks::node_id b) {
      return std::any_of(from.begin(), from.end(), [&](tasks::node_id a) { return reaches(a, b); });
    });
  }
  [[nodiscard]] std::vector<std::vector<tasks::node_id>> predecessors() const {
    std::vector<std::vector<tasks::node_id>> before(cep_.tasks().size());
    for (tasks::node_id n = 0; n < cep_.tasks().size(); ++n) {
      for (const tasks::node_id m : cep_.tasks().successors_of(n)) before[m].push_back(n);
    }
    return before;
  }

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
    network_schedule found{.rates = choice.rates(s), .bound = best.bound, .steps = s.nodes};
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
