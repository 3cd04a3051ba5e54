// SPDX-License-Identifier: BSL-1.0
#pragma once
/// List schedulers (HEFT, PEFT, m-ETF, m-SCT, GETF) with their common steps: priorities, choice of devices within memory, repair.

#include <cstddef>
#include <functional>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Predicate that is true if an operator may go to a device, memory aside. Empty: every device.
using device_filter = std::function<bool(std::size_t op, std::size_t device)>;
/// Score of an operator on a device; the device with the least score is chosen.
using device_score = std::function<double(std::size_t op, std::size_t device, const trial&)>;

/// Schedules operators in a given order, each on the device with the least score among those that may take it, can run it and have room;
/// ties go to the smaller number. If no device has room the operator goes to the best one anyway. At the end such a placement is repaired
/// (repair_memory) and scheduled in the same order.
///
/// @return      none found if a search for a placement within memory was cut off, or no route joins the chosen devices; infeasible if no
///              placement is within memory.
/// Complexity   O(operators x devices x partial_schedule::try_on).
/// Source       ours: the common part of HEFT, PEFT and similar schedulers.
[[nodiscard]] operator_schedule schedule_greedily(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& order,
                                                  const device_score& score, const device_filter& may = {});

/// Returns the schedule of a placement, repaired if it exceeds memory.
[[nodiscard]] operator_schedule schedule_within_memory(const placement_table& t, const placement_rules& r,
                                                       const std::vector<std::size_t>& order, const std::vector<std::size_t>& device);

/// Schedules all operators on one device, the fastest that holds them.
/// @return      none found if no device holds all operators.
/// Complexity   O(operators x devices), and one schedule.
/// Source       ours: with slow transfers, list schedules are up to several times longer.
[[nodiscard]] operator_schedule one_device(const placement_table& t, const placement_rules& r);

/// Returns a list schedule, or everything on one device if that is shorter or the list scheduler found nothing.
/// Source  ours: a list scheduler counts the delay of a transfer, but not that it could do without the transfer.
[[nodiscard]] operator_schedule or_one_device(const placement_table& t, const placement_rules& r, operator_schedule listed);

/// Returns the mean time of an edge's transfer over all joined pairs of devices; 0 if none is joined.
/// Source  HEFT (Topcuoglu et al., 2002), eq. 6.
[[nodiscard]] double mean_transfer_s(const placement_table& t, std::size_t edge);

/// Returns the upward ranks: seconds from an operator's start to the end of its longest path, with mean times over the devices that can
/// run each operator, and mean transfers over all joined pairs of devices.
/// Complexity  O(operators x devices + edges x devices^2).   Source  HEFT (Topcuoglu et al., 2002), eq. 8.
[[nodiscard]] std::vector<double> upward_ranks(const placement_table& t);

/// Returns lower bounds on the seconds from an operator's start on a device to the end of the schedule. Each reader of an output is on
/// the best device for that output, as if paths did not meet again.
///
/// @return     operators x devices, row-major; infinite if a device cannot run the operator.
/// Complexity  O(operators x devices + edges x devices^2).
/// Source      ours: the longest path with a device at each node, relaxed to a tree. As an optimistic cost table: PEFT (Arabnejad and
///             Barbosa, 2014), eq. 5, which excludes the operator's own time.
[[nodiscard]] std::vector<double> tails_s(const placement_table& t);

/// Returns lower bounds on the seconds from the start of the schedule to an operator's start on a device: tails_s of the reversed graph.
/// @return     operators x devices, row-major.
/// Complexity  O(edges x devices^2).   Source  ours.
[[nodiscard]] std::vector<double> heads_s(const placement_table& t);

/// Returns the operators by falling priority, producers before readers; ties go to the smaller number.
/// @param priority  by operator; non-increasing along edges.
/// Complexity       O(operators log operators + edges).   Source  ours: ranks of operators without duration tie.
[[nodiscard]] std::vector<std::size_t> order_by(const placement_table& t, const std::vector<double>& priority);

/// Returns the schedule of heterogeneous earliest finish time (HEFT), with insertion.
/// Complexity   O(operators x (log + devices x in-edges) + edges x devices^2), and the gaps that are passed.
/// Determinism  ties: the smaller operator, the smaller device.
/// Source       Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing", TPDS 2002,
///              section 4. Deviations: memory (schedule_greedily), contention of transfers, devices that cannot run an operator; one
///              device if that is shorter (or_one_device).
[[nodiscard]] inline operator_schedule heft(const placement_table& t, const placement_rules& r) {
  return or_one_device(
      t, r, schedule_greedily(t, r, order_by(t, upward_ranks(t)), [](std::size_t, std::size_t, const trial& at) { return at.end_s; }));
}

/// Returns the schedule of PEFT, which is HEFT with a look-ahead: operators by the tail of their best device, each on the device with the
/// least end plus tail from there.
/// Complexity   as heft.   Determinism  as heft.
/// Source       Arabnejad and Barbosa, "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost Table", TPDS 2014.
///              Deviations: the order is by the least tail, not the mean; one device if that is shorter.
[[nodiscard]] operator_schedule peft(const placement_table& t, const placement_rules& r);

/// Priority [s] of starting an operator on a device where it could start at `at`: the form that the rules of m-ETF, m-SCT and GETF share.
/// The least is chosen. Infinite: only if there is no other device.
using start_rule = std::function<double(std::size_t op, std::size_t device, const trial& at, const partial_schedule& so_far)>;

/// Schedules the pair of ready operator and device with the least start, again and again; memory comes first. Of more than 128 ready
/// operators, those with the highest upward rank are compared; of fewer if operators have many in-edges or are more than 10 000.
///
/// A heap holds a possibly outdated start of every ready operator; the least is recomputed before use. A start that has fallen meanwhile
/// (a favourite was placed, a device ran full, another reader fetched the data) is noticed at its turn.
///
/// @param starts  priority rule; none: the possible start.
/// @return        as schedule_greedily.
/// Complexity     O(operators x (log + devices x in-edges)), and as much for every start that has grown meanwhile: 128 times at most.
/// Determinism    ties: the higher upward rank, the smaller operator; the earlier end, the smaller device.
/// Source         ours, as the common loop of m-ETF, m-SCT and GETF.
[[nodiscard]] operator_schedule earliest_start_first(const placement_table& t, const placement_rules& r, const start_rule& starts = {});

/// Returns the schedule of memory-constrained earliest task first (m-ETF).
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.1; ETF: Hwang et al., 1989.
///         Deviations: insertion, heterogeneous devices, contention of transfers, a repair if memory runs out, one device if it is shorter.
[[nodiscard]] operator_schedule m_etf(const placement_table& t, const placement_rules& r);

inline constexpr std::size_t no_operator = ~std::size_t{0};

/// Returns the favourite reader of each operator: at most one each, and an operator is the favourite of at most one.
///
/// The relaxed program: an edge with x = 0 costs no transfer, each operator has at most one such edge out and one in, and the longest path
/// with least times and mean transfers is minimised. Edges with x <= 1/2, the smallest first, become favourites while both their ends are
/// free. That is the repair, for at 1/2 two of them may share an end. Without a solver, or for more edges than `most_edges`, edges are
/// taken by the length of the longest path through them instead.
///
/// @return     by operator: its favourite reader, or no_operator.
/// Complexity  the program: operators + edges columns, 3 operators + edges rows at most. Without: O(edges x (log edges + devices^2)).
/// Source      Hanen and Munier, 1995 (SCT); Jeon et al., SoCC 2020, section 3.2 (its relaxed program).
[[nodiscard]] std::vector<std::size_t> favourite_readers(const placement_table& t, const any_lp_solver& lp = {},
                                                         std::size_t most_edges = 3000);

/// Returns the schedule of memory-constrained small communication times (m-SCT). While an operator's favourite reader is not placed, the
/// operator's device takes another one only as late as the favourite could start elsewhere.
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.2. Deviations: as m_etf's; the
///         device waits for the mean transfer of the edge to the favourite.
[[nodiscard]] operator_schedule m_sct(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

/// Returns the group of each device. Devices with the same time for every operator form a group, numbered by its first device.
/// Complexity  O(operators x devices^2).   Source  GETF's groups of equal speed, for unrelated devices.
[[nodiscard]] std::vector<std::size_t> device_groups(const placement_table& t);

/// Returns the group of each operator. The relaxed program divides every operator among the groups and minimises T, which bounds the load
/// of a device and the longest path. The rounding is restated for unrelated devices: with groups by the operator's time, fastest first,
/// the operator goes to the last group of those that hold the first half of its share, so its time is at most twice that of its shares.
/// Without a solver, or for more than `most` operators times groups, every operator goes to the group with the least time, weighted by the
/// group's price; prices rise by rounds for the most loaded group.
///
/// Complexity  the program: operators x (groups + 1) columns, 3 operators + edges + groups rows; without: O(rounds x operators x groups).
/// Source      Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020,
///             section 3 (the program and its rounding by speeds).
[[nodiscard]] std::vector<std::size_t> operator_groups(const placement_table& t, const any_lp_solver& lp = {}, std::size_t most = 1500);

/// Returns the schedule of generalized earliest time first (GETF).
/// Source  as operator_groups. Deviations: memory, insertion, a group without room or route gives way; one device if it is shorter.
[[nodiscard]] operator_schedule getf(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/list_schedule.ipp>
#endif
