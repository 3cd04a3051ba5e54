// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Gradient reduction at the end of an iteration: rings inside stages, then rings or a server across them.

#include <vector>

#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::tasks {

/// Adds the reductions of an iteration: rings inside stages, then rings or a parameter server across them.
///
/// @param finished  by stage: when its last backward part is done on all its devices.
/// @return          by stage: when its reductions are done, its own and those across stages.
/// Source           semantics, section 6.
[[nodiscard]] std::vector<task_graph_builder::handle> reduce_gradients(const plan& p, const planning_graph& model,
                                                                       const stage_graph& stages,
                                                                       const std::vector<task_graph_builder::handle>& finished,
                                                                       transfer_sender& sender);

}  // namespace hetplan::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/reduction.ipp>
#endif
