// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Can the orders of a plan be worked off at all? A run without times.

#include <optional>

#include <hetplan/core/id.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

/// The first device (by id) that never finishes its order, or nothing. One step suffices for generation:
/// later steps repeat it behind finished work.
///
/// The plan must be otherwise valid. Complexity: O(tasks * stage edges * devices per stage).
[[nodiscard]] std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/runnable.ipp>
#endif
