// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan file says and a run of the plan does not look at.

#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::io {

/// The fields of a plan that change nothing, each as a line `FILE: /pointer: why; not used`, in the order of the file; many flows that
/// have the same one are one line. A value that says what would be so anyway, such as a default, is not told.
///
/// @param n        the plan in its file, which has been read.
/// @param p        the plan after what the command line changes about it; valid.
/// @param by_rule  a planner has made it that says what its rule says, whether it matters in this plan or not: a warm-up beyond the
///                 microbatches and copies per device where none is read twice are not told.
/// Source          docs/reference/files.md, hetplan/plan/1; semantics, sections 2, 5 and 6.
[[nodiscard]] std::vector<std::string> unused_plan_fields(const json_node& n, const plan& p, const planning_graph& model, const cluster& c,
                                                          bool by_rule = false);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_plan_fields.ipp>
#endif
