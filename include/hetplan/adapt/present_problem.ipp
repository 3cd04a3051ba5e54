// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/present_problem.hpp>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/cost/slowed.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE conditions offered(conditions now, std::span<const foreign_traffic> traffic, const network& net) {
  std::vector<double> others(now.capacity.size(), 0);
  for (const foreign_traffic& f : traffic) {
    for (const resource_use& u : net.find(f.from, f.to)->via) others[u.resource.index()] += u.weight;
  }
  for (auto&& [capacity, weight] : ranges::views::zip(now.capacity, others)) capacity = capacity / (1 + weight);
  return now;
}

HETPLAN_INLINE present_problem::present_problem(const planning_problem& whole, const conditions& now, const qoe_target& wanted)
    : part_(part_of(whole.cluster, working(now), now.capacity)), devices_(whole.cluster.size()),
      problem_{whole.model, part_.devices, slow_down(whole.cost, speeds(now)), wanting(whole.job, wanted), whole.models,
               whole.lp,    whole.steps} {}

HETPLAN_INLINE plan_result present_problem::outside(plan_result r) const {
  for (plan& p : r.plans) p = outside(std::move(p));
  if (r.binding) r.binding->device = part_.original[r.binding->device.index()];
  return r;
}

HETPLAN_INLINE std::vector<char> present_problem::working(const conditions& now) {
  std::vector<char> keep;
  for (std::size_t d = 0; d < now.present.size(); ++d) keep.push_back(now.works(device_id(d)) ? 1 : 0);
  return keep;
}

HETPLAN_INLINE std::vector<double> present_problem::speeds(const conditions& now) const {
  return part_.original | ranges::views::transform([&](device_id d) { return now.speed[d.index()]; }) | ranges::to<std::vector>();
}

HETPLAN_INLINE job present_problem::wanting(job j, const qoe_target& wanted) {
  j.qoe = wanted;
  return j;
}

}  // namespace hetplan::adapt
