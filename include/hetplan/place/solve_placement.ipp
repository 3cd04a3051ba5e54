// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/solve_placement.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/place/fit_memory.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace HETPLAN_NAMESPACE::place::detail {

/// The rules of a program: its transfers hold their channels to the end, latencies included.
[[nodiscard]] HETPLAN_INLINE placement_rules rules_of_program(placement_rules r) {
  if (r.contention == contention::shared) r.contention = contention::per_link;
  return r;
}

/// A schedule without rules broken, or none; as one of the program.
[[nodiscard]] HETPLAN_INLINE operator_schedule checked_schedule(const placement_table& t, const placement_rules& r,
                                                                const operator_schedule& known) {
  if (!known.found()) return known;
  if (const auto fault = find_broken_rule(t, r, known)) throw invalid_input("solve_placement: the known schedule: " + *fault);
  return r.contention == contention::shared ? schedule_in_order(t, rules_of_program(r), sequence_of(t, known), known.device) : known;
}

HETPLAN_INLINE placement_questions::placement_questions(const placement_table& t, const placement_rules& r, const operator_schedule& known,
                                                        formulation f)
    : table_(t), rules_(rules_of_program(r)), shares_(r.contention == contention::shared), known_(shares_ ? known : operator_schedule()),
      best_(checked_schedule(t, r, known)), given_bound_s_(known.bound_s),
      program_(t, rules_, best_.makespan_s > 0 ? best_ : operator_schedule{}, f) {
  best_.status = {};
  best_.steps = 0;
  best_.bound_s = 0;
  if (best_.found() && best_.makespan_s <= 0) open_ = false;
  if (best_.found()) return;
  if (status none = refute_placements(t); !none.ok()) {
    open_ = false;
    best_.status = std::move(none);
  }
}

HETPLAN_INLINE void placement_questions::take(const milp_solution& s) {
  constexpr double tolerance = 1e-6;
  constexpr int most_overfilled = 100;
  best_.steps += s.nodes;
  const double unit_s = program_.unit_s();
  if (s.status == milp_status::infeasible && !best_.found()) {
    open_ = false;
    best_.status = {
        outcome::infeasible, "no placement keeps memory and routes",
        infeasibility_proof{named_problem(table_) + ", as the mixed-integer program's solver says", {}, std::max(1LL, best_.steps)}};
    return;
  }
  if (s.status == milp_status::infeasible) return end("the solver says that there is no schedule, but one is known");
  if (s.status == milp_status::unbounded) return end("the solver says that makespans are unbounded");
  if (s.status == milp_status::unsolved) {
    raise_bound(s.bound * unit_s);
    return end("the solver met a limit after " + std::to_string(best_.steps) + " nodes");
  }
  if (s.x.size() != problem().relaxation.objective.size()) return end("the solver's answer has another size than its problem");
  operator_schedule found = program_.read(s.x);
  if (!found.found()) return end("the solver's answer is no placement");
  const bool optimal = s.status == milp_status::optimal;
  const double claimed_s = s.objective * unit_s, bound_s = (optimal ? s.objective : s.bound) * unit_s;
  if (largest_overflow_bytes(table_, found.device) > 0) {
    raise_bound(bound_s);
    program_.forbid_overflow(found.device);
    if (++overfilled_ == most_overfilled) end("the solver's placements exceed memory");
    return;
  }
  HETPLAN_ASSERT(!find_broken_rule(table_, rules_, found));
  const bool confirmed = found.makespan_s <= claimed_s * (1 + tolerance);
  if (found.makespan_s < best_.makespan_s) {
    best_.device = std::move(found.device);
    best_.start_s = std::move(found.start_s);
    best_.transfers = std::move(found.transfers);
    best_.makespan_s = found.makespan_s;
  }
  if (!confirmed || bound_s > best_.makespan_s * (1 + tolerance)) return end("the schedule does not confirm what the solver says");
  raise_bound(optimal ? best_.makespan_s : bound_s);
  if (optimal) open_ = false;
  else end("the solver met a limit after " + std::to_string(best_.steps) + " nodes; the best so far");
}

HETPLAN_INLINE operator_schedule placement_questions::answer() && {
  if (shares_ && best_.found()) {
    if (known_.makespan_s < best_.makespan_s) {
      known_.status = std::move(best_.status);
      known_.steps = best_.steps;
      best_ = std::move(known_);
    }
    best_.bound_s = std::min(given_bound_s_, best_.makespan_s);
    return std::move(best_);
  }
  if (best_.found() && best_.status.ok()) best_.bound_s = best_.makespan_s;
  else if (best_.status.result != outcome::infeasible) raise_bound(given_bound_s_);
  return std::move(best_);
}

HETPLAN_INLINE void placement_questions::end(const std::string& why) {
  open_ = false;
  best_.status = {best_.found() ? outcome::stopped : outcome::none_found, "solve placement: " + why};
}

HETPLAN_INLINE void placement_questions::raise_bound(double bound_s) {
  best_.bound_s = std::max(best_.bound_s, std::min(bound_s, best_.makespan_s));
}

}  // namespace HETPLAN_NAMESPACE::place::detail
