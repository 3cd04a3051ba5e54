// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What list schedulers share: the choice of a device within memory, and the way back where memory runs out.

#include <cstddef>
#include <functional>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Whether an operator may go to a device, memory aside; none: everywhere.
using device_filter = std::function<bool(std::size_t op, std::size_t device)>;
/// What a device costs an operator: the least is chosen.
using device_score = std::function<double(std::size_t op, std::size_t device, const trial&)>;

/// Operators in an order, each on the device with the least score among those that may take it, can run it and have room; the smaller
/// number on a tie. Where none has room it goes to the best one all the same, and at the end the placement is repaired
/// (repair_memory) and scheduled in the same order.
///
/// @return      none found where a search for a placement within memory was cut off, or no route joins what the choice put apart;
///              infeasible where none is within memory.
/// Complexity   O(operators x devices x partial_schedule::try_on).
/// Source       ours: what HEFT, PEFT and their kin have in common.
[[nodiscard]] operator_schedule schedule_greedily(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& order,
                                                  const device_score& score, const device_filter& may = {});

/// The schedule of a placement that may exceed memory: itself, or repaired.
[[nodiscard]] operator_schedule schedule_within_memory(const placement_table& t, const placement_rules& r,
                                                       const std::vector<std::size_t>& order, const std::vector<std::size_t>& device);

/// Everything on one device, the fastest that holds it.
///
/// @return      none found where no device holds all operators.
/// Complexity   O(operators x devices), and one schedule.
/// Source       ours: where transfers are slow, list schedules are up to several times worse than this.
[[nodiscard]] operator_schedule one_device(const placement_table& t, const placement_rules& r);

/// What a list scheduler found, or everything on one device where that is shorter, or where the scheduler found nothing.
///
/// Source  ours: a list schedule counts what a transfer delays, not that it could do without.
[[nodiscard]] operator_schedule or_one_device(const placement_table& t, const placement_rules& r, operator_schedule listed);

// What operators still have behind them: the priorities of list schedules, and the simplest bounds.

/// Seconds of an edge's transfer, the mean over all pairs of devices that are joined; 0 where none is.
///
/// Source  HEFT (Topcuoglu et al., 2002), eq. 6.
[[nodiscard]] double mean_transfer_s(const placement_table& t, std::size_t edge);

/// Seconds from an operator's start to the end of all on its longest way, with mean times over the devices that can run each, and mean
/// transfers over all pairs that are joined.
///
/// Complexity  O(operators x devices + edges x devices^2).   Source  HEFT (Topcuoglu et al., 2002), eq. 8.
[[nodiscard]] std::vector<double> upward_ranks(const placement_table& t);

/// Seconds from an operator's start on a device to the end of all at least: each reader of an output is on the device that suits that
/// output best, as if outputs did not meet again.
///
/// @return     operators x devices, row-major; infinite where a device cannot run the operator.
/// Complexity  O(operators x devices + edges x devices^2).
/// Source      ours: the longest path with a device at each node, relaxed to a tree. As an optimistic cost table: PEFT (Arabnejad and
///             Barbosa, 2014), eq. 5, which leaves the operator's own time out.
[[nodiscard]] std::vector<double> tails_s(const placement_table& t);

/// Seconds from the start of all to an operator's start on a device at least: tails_s the other way round.
///
/// @return     operators x devices, row-major.
/// Complexity  O(edges x devices^2).   Source  ours.
[[nodiscard]] std::vector<double> heads_s(const placement_table& t);

/// Operators by falling priority, producers before readers; the smaller number first on a tie.
///
/// @param priority  by operator; falls along edges or stays.
/// Complexity       O(operators log operators + edges).   Source  ours: ranks of operators without time tie.
[[nodiscard]] std::vector<std::size_t> order_by(const placement_table& t, const std::vector<double>& priority);

// HEFT: operators by upward rank, each where it ends first; and the same with a look ahead.

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

// m-ETF: of all operators that are ready, the one that can start first, within memory.

/// Seconds from which an operator that could start on a device at `at` is taken to start there: what the rules that m-ETF, m-SCT and
/// GETF have beside each other come down to. Infinite: not there, as long as there is another device.
using start_rule = std::function<double(std::size_t op, std::size_t device, const trial& at, const partial_schedule& so_far)>;

/// Takes the pair of ready operator and device whose start is least, again and again; memory first. Of more than 128 operators that are
/// ready, those with the highest upward rank are compared; of fewer where operators have many in-edges or are more than 10 000.
///
/// A heap holds an old start of every ready operator; the least is asked again before it is believed. A start that has fallen meanwhile
/// (a favourite was placed, a device ran full, another reader fetched the data) is seen when its turn comes.
///
/// @param starts  none: when it could start.
/// @return        see schedule_greedily.
/// Complexity     O(operators x (log + devices x in-edges)), and as much for every start that has grown meanwhile: 128 times at most.
/// Determinism    ties: the higher upward rank, the smaller operator; the earlier end, the smaller device.
/// Source         ours, for the three.
[[nodiscard]] operator_schedule earliest_start_first(const placement_table& t, const placement_rules& r, const start_rule& starts = {});

/// Memory-constrained earliest task first.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.1; ETF: Hwang et al., 1989.
///         Deviations: insertion, devices that differ, transfers that contend, a repair where memory runs out, and one device where
///         that is shorter.
[[nodiscard]] operator_schedule m_etf(const placement_table& t, const placement_rules& r);

// m-SCT: as m-ETF, and each operator may have a favourite reader that is to follow it on its device.

inline constexpr std::size_t no_operator = ~std::size_t{0};

/// The favourite reader of each operator: at most one each, and an operator is the favourite of at most one.
///
/// The relaxed program: an edge whose x is 0 costs no transfer, each operator has at most one such edge out and one in, and the longest
/// path with least times and mean transfers is shortest. Edges with x <= 1/2, the smallest first, become favourites as long as both ends
/// are free: that is the repair, for at 1/2 two of them may share an end. Without solver, or for more edges than `most_edges`, edges by the
/// length of the longest way through them take its place.
///
/// @return     by operator: its favourite reader, or no_operator.
/// Complexity  the program: operators + edges columns, 3 operators + edges rows at most. Without: O(edges x (log edges + devices^2)).
/// Source      Hanen and Munier, 1995 (SCT); Jeon et al., SoCC 2020, section 3.2 (its relaxed program).
[[nodiscard]] std::vector<std::size_t> favourite_readers(const placement_table& t, const any_lp_solver& lp = {},
                                                         std::size_t most_edges = 3000);

/// Memory-constrained small communication times: where an operator has a favourite reader that is not placed yet, its device takes
/// another one only as late as the favourite could start elsewhere.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.2. Deviations: as m_etf's; the
///         time that a device waits is the mean transfer of that edge.
[[nodiscard]] operator_schedule m_sct(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

// GETF: a group of like devices for each operator by a relaxed program, then the earliest start within the group.

/// Devices that take the same time for every operator are a group; groups are numbered by their first device.
///
/// @return  by device.   Complexity  O(operators x devices^2).   Source  GETF's groups of equal speed, for devices that are not related.
[[nodiscard]] std::vector<std::size_t> device_groups(const placement_table& t);

/// The group of each operator. The relaxed program shares every operator out over the groups, so that neither the load of a device nor the
/// longest path exceeds a least T. Rounded, restated for unlike devices: groups by an operator's time, fastest first; the operator goes
/// to the last group of those that hold the first half of its share, so its time is at most twice that of its shares.
/// Without solver, or for more than `most` operators times groups, every operator goes where its time, weighted by the group's
/// price, is least; prices rise by rounds for the group with most load.
///
/// Complexity  the program: operators x (groups + 1) columns, 3 operators + edges + groups rows; without: O(rounds x operators x groups).
/// Source      Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020,
///             section 3 (the program and its rounding by speeds).
[[nodiscard]] std::vector<std::size_t> operator_groups(const placement_table& t, const any_lp_solver& lp = {}, std::size_t most = 1500);

/// Generalized earliest time first.
///
/// Source  as operator_groups. Deviations: memory, insertion, a group that has no room or no route gives way to another, and one device
/// where
///         that is shorter.
[[nodiscard]] operator_schedule getf(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/list_schedule.ipp>
#endif
