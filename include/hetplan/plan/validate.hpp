// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Validation of plans: which rule is broken where, before anything is expanded or simulated.

#include <optional>
#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan {

/// Returns the first device (by id) that never finishes its order in a run without times, or nothing. One step suffices
/// for generation: later steps repeat it behind finished work.
///
/// The plan must be otherwise valid. Complexity: O(tasks * stage edges * devices per stage).
[[nodiscard]] std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices);

/// Broken rule: its place in the plan, as a JSON pointer into the plan file, and what was given and expected.
struct violation {
  std::string where;
  std::string what;
};

/// Returns the first rule that the plan breaks, or nothing: rules of semantics, section 5, and of plan files.
/// Complexity  O(size of the plan + microbatches); explicit orders: O(tasks log tasks).
[[nodiscard]] std::optional<violation> validate(const plan& p, const planning_graph& model, const cluster& c);

/// Returns the first layer that the plan does not keep on the device that the job pins it to, or nothing. The plan must be valid.
/// Complexity  O(layers of all stages).
[[nodiscard]] std::optional<violation> broken_pin(const plan& p, const planning_problem& problem);

/// Returns the first rule that the plan breaks as an answer to a problem, its job's pins included, or nothing.
[[nodiscard]] std::optional<violation> validate(const plan& p, const planning_problem& problem);

/// Returns the stage graph of a valid plan. Throws invalid_input with the violation's place and text.
stage_graph require_valid(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/validate.ipp>
#endif
