// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measurements that were perhaps meant for a device of another kind.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/work.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::io {

// What a model file and a cluster file must agree on.

/// Every layer can be timed on every device: by a profile for the device's kind, else by FLOP and compute;
/// where the mode is given, it can run the model (see check_mode), and in training that profile has a backward.
///
/// @param file  the cluster's, for messages.
/// Throws       invalid_input, as in `home.json: /devices/2/compute: expected FLOP/s > 0, got nothing: ...`.
void check_together(const planning_graph& model, const cluster& c, std::string_view file, std::optional<mode> mode = {});

// What a plan file says and a run of the plan does not look at.

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

// What a cluster file says and no plan can make use of.

/// The resources that a route between two of its devices takes.
///
/// Complexity  O(devices^2, resources of their routes).
[[nodiscard]] std::set<std::string_view> resources_on_routes(const cluster& c);

/// The fields of a cluster that change no plan of any model, each as a line `FILE: /pointer: why; not used`, in the order of the file.
///
/// @param n  the cluster in its file, which has been read.
/// @param c  that cluster.
/// Source    docs/reference/files.md, hetplan/cluster/1; semantics, section 3.
[[nodiscard]] std::vector<std::string> unused_cluster_fields(const json_node& n, const cluster& c);

// What a job file says and nothing looks at.

/// What a job is read for.
struct job_use {
  bool over_time = false;         ///< a run over a timeline; else planning alone
  bool latency_may_come = false;  ///< the timeline may ask for one
};

/// The fields of a job that change nothing, each as a line `FILE: /pointer: why; not used`, in the order of the file.
///
/// @param n  the job in its file, which has been read.
/// @param j  the job after what the command line changes about it.
/// Source    docs/reference/files.md, hetplan/job/1.
[[nodiscard]] std::vector<std::string> unused_job_fields(const json_node& n, const job& j, const job_use& use = {});

// What a timeline file says and a run over it does not look at.

/// The parts of a timeline that change nothing, each as a line `FILE: /pointer: why; not used`, in the order of the file; all events from
/// the end on are one line.
///
/// @param n           the timeline in its file, which has been read.
/// @param priorities  may a plan that runs look at priorities of transfers?
/// Source             docs/reference/files.md, hetplan/timeline/1.
[[nodiscard]] std::vector<std::string> unused_timeline_fields(const json_node& n, const cluster& c, const job& j, bool priorities = true);

// Faults of what is gone already.

/// The faults that take away what an earlier one has taken, each as a line `FILE: /pointer: why; not used`, in the order of the file:
/// nothing is repaired.
///
/// @param n    the faults in their file, which has been read.
/// @param all  those faults.
/// Source      docs/reference/serving-files.md, hetplan/faults/1; semantics, section 11.
[[nodiscard]] std::vector<std::string> unused_faults(const json_node& n, const std::vector<serve::serving_fault>& all,
                                                     const serve::edge_cloud& cloud);

/// One line about the first layer that has a profile for a kind of which no device is, where a device is timed by its FLOP for
/// want of a profile; none where every device has one, or no profile is left over: a model may know more kinds than a cluster has.
///
/// Complexity  O(layers (kinds of devices + profiles) log of them).
[[nodiscard]] std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/unused_fields.ipp>
#endif
