// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Is this a plan at all? Says which rule breaks where, before anything is expanded or simulated.

#include <optional>
#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

// Can the orders of a plan be worked off at all? A run without times.

/// The first device (by id) that never finishes its order, or nothing. One step suffices for generation:
/// later steps repeat it behind finished work.
///
/// The plan must be otherwise valid. Complexity: O(tasks * stage edges * devices per stage).
[[nodiscard]] std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices);

/// A broken rule: where in the plan, as a JSON pointer into its file, and what was given and expected.
struct violation {
  std::string where;
  std::string what;
};

/// The first rule that the plan breaks, or nothing. Rules: semantics, section 5, and the plan file's.
///
/// Complexity  O(size of the plan + microbatches); explicit orders: O(tasks log tasks).
[[nodiscard]] std::optional<violation> validate(const plan& p, const planning_graph& model, const cluster& c);

/// The stage graph of a valid plan. Throws invalid_input with the violation's place and text.
stage_graph require_valid(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/validate.ipp>
#endif
