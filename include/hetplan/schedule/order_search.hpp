// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs over orders of events: the best rates of an order, and of the orders around it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/schedule/order_program.hpp>

namespace hetplan::schedule {

struct order_search_options {
  long long solves = 20;          ///< linear programs, at most; 1 keeps to the given order
  std::uint64_t seed = 1;
  std::size_t most_rows = 500;    ///< larger programs are left alone: cost grows with about the cube of the rows
};

namespace detail {

template <lp_solver Solver>
class order_searcher {
 public:
  order_searcher(const cep_graph& cep, const Solver& solver, const order_search_options& options)
      : cep_(cep), solver_(solver), options_(options), random_(options.seed) {}

  [[nodiscard]] network_schedule run(const network_schedule& given) {
    best_ = given;
    best_.steps = 0;
    const event_order order = order_of_run(cep_, schedule::run(cep_, given));
    order_program now(cep_, order, given.latency.value());
    if (order.empty()) return best_;
    if (now.problem().rows.size() > options_.most_rows) {
      return stopped("the linear program of this order has " + std::to_string(now.problem().rows.size()) + " rows; at most " +
                     std::to_string(options_.most_rows) + " are solved (order_search_options::most_rows)");
    }
    lp_solution solution = solve(now, {});
    if (solution.status != lp_status::optimal) return stopped("the solver left the linear program of this order unsolved");
    if (!keep(now, solution)) return stopped("the solver's rates did not pass the simulator");
    double least_s = now.makespan_s(solution);
    while (best_.steps < options_.solves && least_s > cep_.bound().value() * (1 + tied)) {
      const std::vector<std::size_t> swaps = ties(now, solution);
      if (swaps.empty()) break;
      event_order swapped = now.order();
      const std::size_t at = swaps[static_cast<std::size_t>(random_() % swaps.size())];
      std::swap(swapped[at], swapped[at + 1]);
      order_program next(cep_, std::move(swapped), given.latency.value());
      lp_solution answer = solve(next, next.start_from(now, solution.basis));
      if (answer.status != lp_status::optimal) continue;
      const double makespan_s = next.makespan_s(answer);
      if (makespan_s > now.makespan_s(solution) * (1 + tied)) continue;
      now = std::move(next);
      solution = std::move(answer);
      if (makespan_s < least_s * (1 - tied) && keep(now, solution)) least_s = makespan_s;
    }
    return best_;
  }

  /// The order behind the best rates; empty if no program was solved.
  [[nodiscard]] const event_order& best_order() const { return best_order_; }

 private:
  static constexpr double tied = 1e-9;  ///< of the run's length

  lp_solution solve(const order_program& p, const lp_basis& start) {
    ++best_.steps;
    lp_solution s = solve_from(solver_, p.problem(), start);
    if (s.status == lp_status::optimal && s.x.size() != p.problem().objective.size()) s.status = lp_status::unsolved;
    return s;
  }

  /// Neighbours in the order that the solution puts at one time: their swap keeps the solution, and may open a better one.
  [[nodiscard]] static std::vector<std::size_t> ties(const order_program& p, const lp_solution& s) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i + 1 < p.order().size(); ++i) {
      const transfer_event &a = p.order()[i], &b = p.order()[i + 1];
      const auto time = [&](const transfer_event& e) { return s.x[static_cast<std::size_t>(p.column(e))]; };
      if (a.transfer != b.transfer && std::abs(time(b) - time(a)) <= tied) out.push_back(i);
    }
    return out;
  }

  /// Replays the rates; a schedule is what the simulator says of it, never what the solver says. It may end sooner than
  /// the program does, where the order alone makes an event wait for another.
  bool keep(const order_program& p, const lp_solution& s) {
    network_schedule replayed{.rates = p.rates(s), .bound = cep_.bound(), .steps = best_.steps};
    if (!replayed.is_prescribed()) return false;
    try {
      replayed.latency = schedule::run(cep_, replayed).latency;
    } catch (const invalid_input&) {  // rates that take too much or move too little: a solver beyond its tolerances
      return false;
    }
    const double most_s = std::min(p.makespan_s(s), best_.latency.value());
    if (!(replayed.latency.value() <= most_s * (1 + 1e-6))) return false;  // nor if the solver's value is no number
    replayed.gap = gap_to(replayed.latency, replayed.bound);
    best_ = std::move(replayed);
    best_order_ = p.order();
    return true;
  }

  network_schedule stopped(const std::string& why) {
    best_.status = {outcome::stopped, "order search: " + why};
    return std::move(best_);
  }

  const cep_graph& cep_;
  const Solver& solver_;
  const order_search_options& options_;
  std::mt19937_64 random_;
  network_schedule best_;
  event_order best_order_;
};

}  // namespace detail

/// The answer of order_search.
struct order_search_result {
  network_schedule schedule;  ///< the solver's rates, replayed; the given schedule where `stopped`
  event_order order;          ///< what the rates keep to; empty where `stopped`
};

/// Solves the linear program of a run's order, then those of neighbouring orders, each from the basis before.
///
/// @param given  a schedule of whole transfers: local_search with most_chunks = 1, a list schedule, or uncontrolled.
/// @return       rates that end no later than `given`. Status stopped, with `given`: the program is too large, or the
///               solver gave up or was wrong.
/// Complexity    options.solves programs.  Determinism  the solver's, and the seed.
/// Source        Dora, section 4.2, eq. 6.
template <lp_solver Solver>
[[nodiscard]] order_search_result order_search(const cep_graph& cep, const network_schedule& given, const Solver& solver, const order_search_options& options = {}) {
  static_assert(check_lp_solver<Solver>());
  if (std::any_of(given.rules.begin(), given.rules.end(), [](const auto& chunks) { return chunks.size() != 1; })) {
    throw invalid_input("order_search: the given schedule cuts transfers into chunks; expected whole transfers");
  }
  detail::order_searcher<Solver> search(cep, solver, options);
  network_schedule s = search.run(given);
  return {std::move(s), search.best_order()};
}

}  // namespace hetplan::schedule
