// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a switch of plans would take now: for those who decide whether it is worth it.

#include <optional>
#include <utility>

#include <hetplan/adapt/holdings.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Seconds during which nothing runs and joules beyond idling, if everything moves with the plan stopped and the network to
/// itself; nothing where weights are missing.
///
/// Complexity  that of delta_migration and run_migration.
/// Source      Dora, eq. 8: the switching overhead of a plan.
[[nodiscard]] std::optional<mix::switch_cost> estimate_switch(const planning_problem& problem, const holdings& held, const plan& next,
                                                              const conditions& now);

/// A migration in two: what may come while a plan runs, that is what nothing changes, to devices that have room for all of it
/// beside that plan; and what has to wait for the stop.
///
/// Source  Dora, section 4.3, asynchronous switching; the room is ours.
[[nodiscard]] std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                           const cluster& c, const any_memory_model& memory);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/switch_estimate.ipp>
#endif
