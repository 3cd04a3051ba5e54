// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans and proofs of infeasibility as text for people.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan {

/// Returns three digits and the unit that fits: 1.93 s, 214 ms, 40 us.
[[nodiscard]] std::string readable(seconds t);
[[nodiscard]] std::string readable(bytes b);
[[nodiscard]] std::string readable(joules j);

/// Returns ", 4.2 GB of weights (129 layers) in ram" for each tier in which a stage has weights.
[[nodiscard]] std::string describe_offload(const stage& s, const planning_graph& model);

/// Returns the number of microbatches and their samples: "16 microbatches of 2", "12 microbatches of 1 to 4".
[[nodiscard]] std::string describe_microbatches(const plan& p);

/// Describes a plan: one line per stage, whatever the names hold (or per device, for many single-device stages).
[[nodiscard]] std::string describe(const plan& p, const planning_graph& model, const cluster& c);
/// Also one line per used device with its costs, and the totals.
[[nodiscard]] std::string describe(const ranked_plan& r, const planning_graph& model, const cluster& c);
/// Describes a proof: the problem without a solution, and a line per row or the steps that excluded its space.
[[nodiscard]] std::string describe(const infeasibility_proof& proof);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/describe.ipp>
#endif
