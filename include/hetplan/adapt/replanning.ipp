// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/replanning.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/environment.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE const plan_result* planning_memory::find(const std::vector<double>& moment) {
  const auto it = std::find_if(answers_.begin(), answers_.end(), [&](const answer& a) { return a.moment == moment; });
  if (it == answers_.end()) return nullptr;
  answers_.splice(answers_.begin(), answers_, it);
  return &it->result;
}

HETPLAN_INLINE const plan_result& planning_memory::keep(std::vector<double> moment, plan_result r) {
  ++plannings_;
  if (answers_.size() == most) answers_.pop_back();
  return answers_.emplace_front(answer{std::move(moment), std::move(r)}).result;
}

HETPLAN_INLINE replanning::replanning(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory)
    : problem_(&problem), planner_(std::move(planner)), memory_(memory ? std::move(memory) : std::make_shared<planning_memory>()) {}

HETPLAN_INLINE const plan_result& replanning::operator()(const conditions& noticed, std::span<const foreign_traffic> traffic,
                                                         const qoe_target& wanted) {
  return answer(rounded(offered(noticed, traffic, problem_->cluster.network()), problem_->cluster), wanted);
}

HETPLAN_INLINE const plan_result& replanning::answer(const conditions& now, const qoe_target& wanted) {
  std::vector<double> k{wanted.latency ? wanted.latency->value() : -1, wanted.deadline ? wanted.deadline->value() : -1,
                        wanted.iterations ? static_cast<double>(*wanted.iterations) : -1};
  for (std::size_t d = 0; d < now.speed.size(); ++d) k.push_back(now.present[d] != 0 ? now.speed[d] : -1);
  for (const bytes_per_second c : now.capacity) k.push_back(c.value());
  if (const plan_result* known = memory_->find(k)) return *known;
  return memory_->keep(std::move(k), plan_for(now, wanted));
}

HETPLAN_INLINE plan_result replanning::plan_for(const conditions& now, const qoe_target& wanted) {
  const auto devices = problem_->cluster.devices();
  if (std::none_of(devices.begin(), devices.end(), [&](const device& d) { return now.works(d.id); })) {
    plan_result none;
    none.status = {outcome::infeasible, "no device works", infeasibility_proof{.of = "plans", .rows = {{"devices that work", 1, 0}}}};
    return none;
  }
  const present_problem there(*problem_, now, wanted);
  planning_problem asked = *there;
  asked.job.split_tensors = false;  // moves between grids are not defined
  asked.with_bounds = false;        // bounds are not needed, and take as long as parts of the search
  conditions usual = now;
  usual.capacity = nominal(problem_->cluster).capacity;
  const auto outside = [&](plan_result r) {
    for (const ranked_plan& x : r.plans) detail::check_plan_of_policy(x.plan, asked, "any_planner: ");
    return there.outside(std::move(r));
  };
  if (!planner_.uses_known_plans() || usual == now) return outside(planner_(asked));
  std::vector<plan> known;
  for (const ranked_plan& r : answer(usual, wanted).plans) known.push_back(there.inside(r.plan));
  return outside(known.empty() ? planner_(asked) : planner_(asked, known));
}

}  // namespace hetplan::adapt
