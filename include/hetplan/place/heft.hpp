// SPDX-License-Identifier: BSL-1.0
#pragma once
/// HEFT: operators by upward rank, each where it ends first; and the same with a look ahead.

#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/ranking.hpp>

namespace hetplan::place {

/// Heterogeneous earliest finish time, with insertion.
///
/// Complexity   O(operators x (log + devices x in-edges) + edges x devices^2), and the gaps that are passed.
/// Determinism  ties: the smaller operator, the smaller device.
/// Source       Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing", TPDS 2002,
///              section 4. Deviations: memory (schedule_greedily), transfers that contend, devices that cannot run an operator; one device
///              where that is shorter (or_one_device).
[[nodiscard]] inline operator_schedule heft(const placement_table& t, const placement_rules& r) {
  return or_one_device(
      t, r, schedule_greedily(t, r, order_by(t, upward_ranks(t)), [](std::size_t, std::size_t, const trial& at) { return at.end_s; }));
}

/// The same with a look ahead: by the tail of the best device, each where its end and its tail from there are least.
///
/// Complexity   as heft.   Determinism  as heft.
/// Source       Arabnejad and Barbosa, "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost Table", TPDS 2014.
///              Deviations: the order is by the least tail, not the mean; one device where that is shorter.
[[nodiscard]] operator_schedule peft(const placement_table& t, const placement_rules& r);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/heft.ipp>
#endif
