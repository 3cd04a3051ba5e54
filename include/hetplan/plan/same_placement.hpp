// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Is the work of two plans in the same places?

#include <tuple>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan {

namespace detail {

/// Who holds what of which layer: one entry per distinct (layer, device, tensor-parallel degree, part of the optimizer's state,
/// of so many parts), sorted.
[[nodiscard]] std::vector<std::tuple<layer_id, device_id, int, int, int>> placement_of(const plan& p);

}  // namespace detail

/// Do the same devices run the same layers, cut up in the same way? Then no weights move from one plan to the other.
///
/// Microbatch sizes, the sizes of shares, names and how layers are grouped into stages do not matter, nor does the order of
/// devices, but where they share out the optimizer's state: the order says who has which part of it.
/// In generation shares decide whose memory has which sequence's cache: those may move all the same.
///
/// Complexity  O(n log n) for n layers of all stages x devices of their stage.
[[nodiscard]] bool same_placement(const plan& a, const plan& b);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/same_placement.ipp>
#endif
