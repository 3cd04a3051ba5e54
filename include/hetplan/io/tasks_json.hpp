// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The task graph of a judged plan as a file for those who run it: hetplan/tasks/1.

#include <string>
#include <string_view>

#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io {

inline constexpr std::string_view tasks_format = "hetplan/tasks/1";

/// The largest tasks file, in tasks and transfers: the document takes 1.2 kB of memory for each.
inline constexpr double max_tasks_file = 1e6;

/// Throws invalid_input unless a valid plan can have a tasks file; asks before it is expanded. Who runs one has no grids, no gathers and
/// scatters, and no backward of a part of a forward.
void require_tasks_file(const plan& p, const planning_graph& model);

/// The tasks file of a plan: what `judge` expanded and simulated, with the names that files have.
///
/// Tasks and transfers are numbered as in the judgement's graph. `reductions` say which gradients the sync transfers sum;
/// several pipelines (`pipeline` of a stage) and a parameter server are named, for an executor that has none to refuse.
///
/// @param j    of this plan on this model and cluster, run to its end.
/// Units       SI.   Complexity  O(tasks + transfers + dependencies).
/// Throws      as require_tasks_file.
/// Source      docs/reference/files.md, hetplan/tasks/1; semantics, sections 4-7.
[[nodiscard]] std::string write_tasks(const plan& p, const planning_graph& model, const cluster& c, const judgement& j);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/tasks_json.ipp>
#endif
