// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Checks across files: models against clusters, and fields that have no effect.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::io {

/// Checks that every layer can be timed on every device: by a profile for the device's kind, else by FLOP and compute. If a workload is
/// given, the model must support it (see check_mode), in training a profile must have a backward, and in generation be of single tokens.
///
/// @param file  the cluster's, for messages.
/// Throws       invalid_input, as in `home.json: /devices/2/compute: expected FLOP/s > 0, got nothing: ...`.
void check_together(const planning_graph& model, const cluster& c, std::string_view file, std::optional<workload> w = {});

/// Returns the fields of a plan without effect, as lines `FILE: /pointer: why; not used` in the order of the file. Flows with the same
/// field share a line. Values equal to the default are not reported.
///
/// @param n        the plan in its file, already read.
/// @param file     what was read, after changes of the plan by the command line; the plan is valid.
/// @param by_rule  true if a planner's rule sets warm-up and copies whether they matter or not. Warm-ups beyond the microbatches and copies
///                 per device without a second reader are then not reported.
/// Source          docs/reference/files.md, hetplan/plan/1; semantics, sections 2, 5 and 6.
[[nodiscard]] std::vector<std::string> unused_plan_fields(const json_node& n, const plan_file& file, const planning_graph& model,
                                                          const cluster& c, bool by_rule = false);

/// Returns the names of resources on routes between devices.
///
/// Complexity  O(devices^2, resources of their routes).
[[nodiscard]] std::set<std::string_view> resources_on_routes(const cluster& c);

/// Returns the fields of a cluster without effect on any plan, as lines `FILE: /pointer: why; not used` in the order of the file.
///
/// @param n  the cluster in its file, already read.
/// @param c  the same cluster.
/// Source    docs/reference/files.md, hetplan/cluster/1; semantics, section 3.
[[nodiscard]] std::vector<std::string> unused_cluster_fields(const json_node& n, const cluster& c);

/// Purpose for which a job is read.
struct job_use {
  bool over_time = false;         ///< true for a run over a timeline, false for planning alone
  bool latency_may_come = false;  ///< true if the timeline may set a latency
};

/// Returns the fields of a job without effect, as lines `FILE: /pointer: why; not used` in the order of the file.
///
/// @param n  the job in its file, already read.
/// @param j  the job after changes by the command line.
/// Source    docs/reference/files.md, hetplan/job/1.
[[nodiscard]] std::vector<std::string> unused_job_fields(const json_node& n, const job& j, const job_use& use = {});

/// Returns the parts of a timeline without effect, as lines `FILE: /pointer: why; not used` in file order. Events after the end share one.
///
/// @param n           the timeline in its file, already read.
/// @param priorities  true if a plan of the run may use priorities of transfers.
/// Source             docs/reference/files.md, hetplan/timeline/1.
[[nodiscard]] std::vector<std::string> unused_timeline_fields(const json_node& n, const cluster& c, const job& j, bool priorities = true);

/// Returns the faults of parts that are already gone, as lines `FILE: /pointer: why; not used` in the order of the file. Failed parts are
/// not repaired, so that a second failure has no effect.
///
/// @param n    the faults in their file, already read.
/// @param all  the same faults.
/// Source      docs/reference/serving-files.md, hetplan/faults/1; semantics, section 11.
[[nodiscard]] std::vector<std::string> unused_faults(const json_node& n, const std::vector<serve::serving_fault>& all,
                                                     const serve::edge_cloud& cloud);

/// Returns a line about the first layer with a profile for a kind that no device has while some device lacks a profile and is timed by
/// FLOP: perhaps a misspelled kind. None otherwise, as a model may have profiles for more kinds than a cluster has.
///
/// Complexity  O(layers (kinds of devices + profiles) log of them).
[[nodiscard]] std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/unused_fields.ipp>
#endif
