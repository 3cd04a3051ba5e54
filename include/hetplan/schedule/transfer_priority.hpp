// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a list scheduler prefers: the door for priorities, and the ones that ship.

#include <algorithm>
#include <concepts>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

// The noun that network schedulers make: how transfers run, what that takes, and how good it provably is.

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

/// A transfer's times on a network of its own.
struct transfer_times {
  double earliest_start_s = 0;  ///< no sooner can it start
  double alone_s = 0;           ///< latency and volume at its peak rate
  double tail_s = 0;            ///< what must follow its end: the longest path to the end of everything
};

template <class P>
concept rates_urgency = requires(const P& p, const tasks::transfer& t, const transfer_times& when) {
  { p.urgency(t, when) } -> std::same_as<double>;  // larger first; ties by number; pure
};

/// What a list scheduler prefers: the larger the urgency, the sooner. Asked with a transfer and its times on a network of its own.
///
/// * Any number will do, infinities included; a NaN is `invalid_model`. A message of several transfers is as urgent as its most urgent
///   one. Where transfers are cut, a chunk is asked for like a transfer: its own volume, its own tail.
/// * Pure; called from several threads at once where `refine` has threads.
/// * Under `priority`, for which every scheduler searches, a more urgent transfer pre-empts the others at once, so cutting transfers
///   changes little. Chunks matter to executors that can only stop between two, and under `exclusive`, where others pass between them:
///   set the plan's `sharing_policy` to that after `apply`, and judge it.
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

/// The longest path from the transfer's start to the end. Source: Dora, section 4.2.
struct critical_path_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.alone_s + when.tail_s; }
};
/// The longest path from its end, as on one machine with pre-emption (Jackson's rule).
struct longest_tail_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.tail_s; }
};
/// The earliest possible start first, on a network of its own.
struct earliest_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return -when.earliest_start_s; }
};
/// The fewest bytes first.
struct smallest_first {
  [[nodiscard]] double urgency(const tasks::transfer& t, const transfer_times&) const { return -t.volume_bytes; }
};

static_assert(check_transfer_priority<critical_path_first>() && check_transfer_priority<longest_tail_first>() &&
              check_transfer_priority<earliest_first>() && check_transfer_priority<smallest_first>());

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/transfer_priority.ipp>
#endif
