// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Task graphs of judged plans as files for executors: hetplan/tasks/1.

#include <string>
#include <string_view>

#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io {

inline constexpr std::string_view tasks_format = "hetplan/tasks/1";

/// Most tasks and transfers of a tasks file; each takes 1.2 kB of memory.
inline constexpr double max_tasks_file = 1e6;

/// Throws invalid_input unless a valid plan can have a tasks file. Executors support no grids, no gathers and scatters, and no backward of
/// a part of a forward. The check precedes the expansion of the plan.
void require_tasks_file(const plan& p, const planning_graph& model);

/// Returns the tasks file of a plan: the task graph that `judge` expanded and simulated, with the names used in files.
///
/// Tasks and transfers are numbered as in the judgement's graph. `reductions` tell which gradients the sync transfers sum. Several
/// pipelines (`pipeline` of a stage) and a parameter server are named, so that an executor without them can refuse.
///
/// @param j    the judgement of this plan on this model and cluster, run to its end.
/// Units       SI.
/// Complexity  O(tasks + transfers + dependencies).
/// Throws      as require_tasks_file.
/// Source      docs/reference/files.md, hetplan/tasks/1; semantics, sections 4-7.
[[nodiscard]] std::string write_tasks(const plan& p, const planning_graph& model, const cluster& c, const judgement& j);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/tasks_json.ipp>
#endif
