// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What operators still have behind them: the priorities of list schedules, and the simplest bounds.

#include <cstddef>
#include <vector>

#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

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

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/ranking.ipp>
#endif
