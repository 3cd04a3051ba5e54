// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where memory asks for a lower warm-up, it need not be lower everywhere.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/any_memory_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// Gives each stage of a 1F1B training plan the largest warm-up up to 2 depth - 1 that its devices hold, and no stage
/// more than those that feed it (the 1F1B rule for equal microbatch sizes).
///
/// Plans of other kinds stay as they are. A stage that holds not even one microbatch gets 1.
/// Complexity  O(layers x devices per stage + stage edges).
/// Source      Asteroid, section 3.2 (2 depth - 1); lowering it stage by stage is ours.
void fit_warmup(plan& p, const planning_graph& model, const cluster& c, const any_memory_model& memory);

/// A warm-up list that says what its absence says, as far as there are microbatches, is left out. Source: own.
void drop_usual_warmup(plan& p, const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/fit_warmup.ipp>
#endif
