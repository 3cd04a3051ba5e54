// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The planning problem of the moment: the devices that are there, as fast as they are, on the network as it is.

#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/conditions.hpp>
#include <hetplan/cluster/part.hpp>
#include <hetplan/cost/slowed.hpp>
#include <hetplan/plan/rename_devices.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// What one more transfer would find of each resource while others use it: its max-min share beside them.
///
/// A planner cannot model traffic that is not its own; this is what a probe of the network would tell it.
/// Complexity  O(flows x resources per route + resources).
[[nodiscard]] inline conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net) {
  std::vector<double> others(now.capacity.size(), 0);
  for (const foreign_traffic& f : traffic) {
    for (const resource_use& u : net.find(f.from, f.to)->via) others[u.resource.index()] += u.weight;
  }
  for (std::size_t r = 0; r < others.size(); ++r) now.capacity[r] = now.capacity[r] / (1 + others[r]);
  return now;
}

/// A problem seen through conditions, for every planner: devices that are away or stand still are left out, slower ones
/// take longer, capacities are those of the moment, and the job wants what is wanted now.
///
/// Plans cross the border by `inside` and `outside`, which change nothing but the numbers of devices.
/// Source  semantics, section 10: what re-planning sees of speeds and capacities.
template <class Problem>
class present_problem {
 public:
  /// `whole` must outlive it.  Throws  invalid_input if no device works.
  present_problem(const Problem& whole, const conditions& now, const qoe_target& wanted)
      : part_(part_of(whole.cluster, working(now), now.capacity)),
        devices_(whole.cluster.size()),
        problem_{whole.model, part_.devices, slow_down(whole.cost, speeds(now)), wanting(whole.job, wanted), whole.models,
                 whole.lp,    whole.steps} {}
  present_problem(const present_problem&) = delete;
  present_problem& operator=(const present_problem&) = delete;

  [[nodiscard]] const auto& operator*() const { return problem_; }
  [[nodiscard]] const auto* operator->() const { return &problem_; }

  /// A plan of the whole, which uses working devices only.
  [[nodiscard]] plan inside(plan p) const { return rename_devices(std::move(p), part_.renamed, part_.original.size()); }
  [[nodiscard]] plan outside(plan p) const { return rename_devices(std::move(p), part_.original, devices_); }
  [[nodiscard]] plan_result outside(plan_result r) const {
    for (plan& p : r.plans) p = outside(std::move(p));
    if (r.binding) r.binding->device = part_.original[r.binding->device.index()];
    return r;
  }

 private:
  using slowed_cost = decltype(slow_down(std::declval<const Problem&>().cost, {}));

  [[nodiscard]] static std::vector<char> working(const conditions& now) {
    std::vector<char> keep;
    for (std::size_t d = 0; d < now.present.size(); ++d) keep.push_back(now.works(device_id(d)) ? 1 : 0);
    return keep;
  }
  [[nodiscard]] std::vector<double> speeds(const conditions& now) const {
    std::vector<double> s;
    for (const device_id d : part_.original) s.push_back(now.speed[d.index()]);
    return s;
  }
  [[nodiscard]] static job wanting(job j, const qoe_target& wanted) {
    j.qoe = wanted;
    return j;
  }

  cluster_part part_;
  std::size_t devices_;
  planning_problem<slowed_cost, decltype(std::declval<const Problem&>().models), decltype(std::declval<const Problem&>().lp)> problem_;
};

}  // namespace HETPLAN_NAMESPACE::adapt
