// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What list schedulers share: the choice of a device within memory, and the way back where memory runs out.

#include <cstddef>
#include <functional>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

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

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/list_schedule.ipp>
#endif
