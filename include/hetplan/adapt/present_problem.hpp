// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The planning problem of the moment: the devices that are there, as fast as they are, on the network as it is.

#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/conditions.hpp>
#include <hetplan/cluster/part.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/rename_devices.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// What one more transfer would find of each resource while others use it: its max-min share beside them.
///
/// A planner cannot model traffic that is not its own; this is what a probe of the network would tell it.
/// Complexity  O(transfers x resources per route + resources).
[[nodiscard]] conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net);

/// A problem seen through conditions, for every planner: devices that are away or stand still are left out, slower ones
/// take longer, capacities are those of the moment, and the job wants what is wanted now.
///
/// Plans cross the border by `inside` and `outside`, which change nothing but the numbers of devices.
/// Source  semantics, section 10: what re-planning sees of speeds and capacities.
class present_problem {
 public:
  /// `whole` must outlive it.  Throws  invalid_input if no device works.
  present_problem(const planning_problem& whole, const conditions& now, const qoe_target& wanted);
  present_problem(const present_problem&) = delete;
  present_problem& operator=(const present_problem&) = delete;

  [[nodiscard]] const auto& operator*() const { return problem_; }
  [[nodiscard]] const auto* operator->() const { return &problem_; }

  /// A plan of the whole, which uses working devices only.
  [[nodiscard]] plan inside(plan p) const { return rename_devices(std::move(p), part_.renamed, part_.original.size()); }
  [[nodiscard]] plan outside(plan p) const { return rename_devices(std::move(p), part_.original, devices_); }
  [[nodiscard]] plan_result outside(plan_result r) const;

 private:
  [[nodiscard]] static std::vector<char> working(const conditions& now);
  [[nodiscard]] std::vector<double> speeds(const conditions& now) const;
  [[nodiscard]] static job wanting(job j, const qoe_target& wanted);

  cluster_part part_;
  std::size_t devices_;
  planning_problem problem_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/present_problem.ipp>
#endif
