// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun that network schedulers make: how transfers run, what that takes, and how good it provably is.

#include <algorithm>

#include <hetplan/core/status.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/prescribed.hpp>

namespace hetplan::schedule {

/// A schedule of a CEP graph's transfers.
///
/// Rules are all that devices can follow: chunks, release times, priorities. A solver's own rates need control over
/// physical bandwidth, which no device has; they show what the order could give at best.
///
/// Source  Dora, section 4.2; enforced as semantics, section 6, says of `priority` and `prescribed`.
struct network_schedule {
  hetplan::status status = {};                   ///< stopped: a limit ended the search, or a solver failed; this is the best so far
  sharing sharing_policy = sharing::fair_share;  ///< fair_share: transfers are left alone; priority: they follow the rules
  message_rules rules = {};                      ///< empty under fair_share
  prescribed rates = {};                         ///< a solver's rates; empty for schedules that devices can follow
  seconds latency = {};                          ///< simulated
  seconds bound = {};                            ///< no schedule of these transfers ends earlier
  double gap = 0;                                ///< latency / bound - 1
  long long steps = 0;                           ///< simulated runs or solver iterations that it took
  long long work = 0;                            ///< the same in steps of a step_budget, about; of a transfer_scheduler
  bool out_of_steps = false;                     ///< stopped by a limit on that

  [[nodiscard]] bool is_prescribed() const { return !rates.rates.empty(); }
};

/// latency / bound - 1; a bound that is met but for the last digits gives 0.
[[nodiscard]] inline double gap_of(const network_schedule& s) { return std::max(0.0, gap_to(s.latency, s.bound)); }

/// Runs a schedule in the simulator.
[[nodiscard]] trace run(const cep_graph& cep, const network_schedule& s, const simulator_options& options = {});

/// The schedule that rules make, simulated.
[[nodiscard]] network_schedule follow(const cep_graph& cep, message_rules rules);

/// Transfers left alone: what uncontrolled TCP does.
[[nodiscard]] network_schedule uncontrolled(const cep_graph& cep);

/// A plan that follows a schedule of its own transfers; its prediction is void.
///
/// Throws  invalid_input if the schedule has a solver's rates.
[[nodiscard]] plan apply(plan p, const cep_graph& cep, const network_schedule& s);

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/network_schedule.ipp>
#endif
