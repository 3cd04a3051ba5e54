// SPDX-License-Identifier: BSL-1.0
#pragma once
/// No partition can have a smaller largest load: work spread over devices of several kinds as if it could be split.

#include <span>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan::place {

/// How much a unit of load on each kind weighs in the bound
///
///   largest load >= sum over nodes of min over kinds of weight[kind] work(node, kind)
///
/// which holds for any weights >= 0 with sum over kinds of devices[kind] weight[kind] = 1: the left side is at least the weighted sum
/// of all loads. The best weights give the optimum of the linear program in which every node may be split.
///
/// @param devices   of each kind, >= 0.
/// @param work      by kind, then node; infinite where a node cannot be on a kind.
/// @return          weights; all 0 where there is no device. Of kinds without devices: infinite.
/// Complexity       O(kinds^3 nodes log nodes) a round, at most 20 rounds.
/// Determinism      exact for two kinds; for more, coordinates in turn until none improves: valid, not always the best.
/// Source           duality of linear programs; the bound is ours.
[[nodiscard]] std::vector<double> bound_weights(std::span<const int> devices, const std::vector<std::vector<double>>& work);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/load_bound.ipp>
#endif
