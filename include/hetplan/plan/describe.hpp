// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan in a few lines of text, for people.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan {

/// 1.93 s, 214 ms, 40 us: three digits, the unit that fits.
[[nodiscard]] std::string readable(seconds t);
[[nodiscard]] std::string readable(bytes b);
[[nodiscard]] std::string readable(joules j);

/// One line per stage whatever the names hold.
[[nodiscard]] std::string describe(const plan& p, const planning_graph& model, const cluster& c);
/// The same, then one line per used device with what the plan costs there, then the totals.
[[nodiscard]] std::string describe(const ranked_plan& r, const planning_graph& model, const cluster& c);
/// Of what there is no solution, and a line per row; or how many steps excluded the whole space.
[[nodiscard]] std::string describe(const infeasibility_proof& proof);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/describe.ipp>
#endif
