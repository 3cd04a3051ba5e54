// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedules of transfers, and priorities of list schedulers: the concept and the priorities that ship.

#include <algorithm>
#include <concepts>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

/// A schedule of a CEP graph's transfers. Devices can follow rules only: chunks, release times, priorities. A solver's rates need control
/// over physical bandwidth, which no device has; they show the best that an order could give.
/// Source  Dora, section 4.2; enforced as `priority` and `prescribed` in semantics, section 6.
struct network_schedule {
  hetplan::status status = {};  ///< stopped: a limit ended the search, or a solver failed; this is the best schedule so far
  sharing sharing_policy = sharing::fair_share;  ///< fair_share: transfers are uncontrolled; priority: they follow the rules
  message_rules rules = {};                      ///< empty under fair_share
  prescribed rates = {};                         ///< a solver's rates; empty for schedules that devices can follow
  seconds latency = {};                          ///< simulated
  seconds bound = {};                            ///< no schedule of these transfers ends earlier
  double gap = 0;                                ///< latency / bound - 1
  long long steps = 0;                           ///< simulated runs or solver iterations spent
  long long work = 0;                            ///< approximate steps of a step_budget spent; set by a transfer_scheduler
  bool out_of_steps = false;                     ///< true if a limit on `work` stopped the search

  [[nodiscard]] bool is_prescribed() const { return !rates.rates.empty(); }
};

/// Returns latency / bound - 1, or 0 if rounding makes it negative.
[[nodiscard]] inline double gap_of(const network_schedule& s) { return std::max(0.0, gap_to(s.latency, s.bound)); }

/// Returns the simulated run of a schedule.
[[nodiscard]] trace run(const cep_graph& cep, const network_schedule& s, const simulator_options& options = {});

/// Returns the simulated schedule that given rules make.
[[nodiscard]] network_schedule follow(const cep_graph& cep, message_rules rules);

/// Returns the schedule without rules: fair sharing, as with uncontrolled TCP.
[[nodiscard]] network_schedule uncontrolled(const cep_graph& cep);

/// Returns a plan that follows a schedule of its own transfers.
/// Throws  invalid_input if the schedule has a solver's rates.
[[nodiscard]] plan apply(plan p, const cep_graph& cep, const network_schedule& s);

/// Times of a transfer on a network without contention.
struct transfer_times {
  double earliest_start_s = 0;  ///< earliest possible start
  double alone_s = 0;           ///< latency, and volume at peak rate
  double tail_s = 0;            ///< longest path from its end to the end of the run
};

template <class P>
concept rates_urgency = requires(const P& p, const tasks::transfer& t, const transfer_times& when) {
  { p.urgency(t, when) } -> std::same_as<double>;  // larger first; ties by number; pure
};

/// Priority of list schedulers: transfers of larger urgency go first. `urgency` takes a transfer and its times without contention.
///
/// * Any number is valid, also infinity; NaN is `invalid_model`. A message of several transfers is as urgent as its most urgent one. If
///   transfers are cut, each chunk counts as a transfer with its own volume and tail.
/// * Pure; several threads call it at once if `refine` has threads.
/// * All schedulers search under `priority`, where a more urgent transfer pre-empts the others at once, so cutting transfers changes
///   little. Chunks matter to executors that can stop only between chunks, and under `exclusive`, where other transfers pass between them:
///   set the plan's `sharing_policy` to `exclusive` after `apply`, and judge it.
///
/// Ships: `critical_path_first` (the default), `longest_tail_first` (optimal on one resource for given tails), `earliest_first`,
/// `smallest_first`.
template <class P>
concept transfer_priority = rates_urgency<P>;

template <class P>
consteval bool check_transfer_priority() {
  static_assert(rates_urgency<P>,
                "transfer_priority needs: double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times&) const");
  return transfer_priority<P>;
}

/// Longest path from the transfer's start to the end of the run first. Source: Dora, section 4.2.
struct critical_path_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.alone_s + when.tail_s; }
};
/// Longest path from the transfer's end first, as on one machine with pre-emption (Jackson's rule).
struct longest_tail_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.tail_s; }
};
/// Earliest possible start without contention first.
struct earliest_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return -when.earliest_start_s; }
};
/// Fewest bytes first.
struct smallest_first {
  [[nodiscard]] double urgency(const tasks::transfer& t, const transfer_times&) const { return -t.volume_bytes; }
};

static_assert(check_transfer_priority<critical_path_first>() && check_transfer_priority<longest_tail_first>() &&
              check_transfer_priority<earliest_first>() && check_transfer_priority<smallest_first>());

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/transfer_priority.ipp>
#endif
