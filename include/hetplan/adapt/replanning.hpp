// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The planner of a policy, asked for the problem of the moment; and what it answered.

#include <algorithm>
#include <concepts>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/present_problem.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace HETPLAN_NAMESPACE::adapt {

template <class P, class Problem>
concept plans_problem = requires(const P& p, const Problem& problem) {
  { p(problem) } -> std::same_as<plan_result>;  // plans of that problem, best first; deterministic
};
/// What re-planning calls: any recipe behind a callable, for the problem of the moment. Its job says what is wanted.
template <class P, class Problem>
concept planner = plans_problem<P, Problem>;

/// A planner's last answers, by the moments that it was asked for. Policies that ask the same planner about the same problem may
/// share one; it changes nothing but how often the planner works.
///
/// Source  ours.
class planning_memory {
 public:
  static constexpr std::size_t most = 64;

  /// How often the planner was asked.
  [[nodiscard]] long long plannings() const { return plannings_; }
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

  [[nodiscard]] const plan_result* find(const std::vector<double>& moment) {
    const auto it = std::find_if(answers_.begin(), answers_.end(), [&](const answer& a) { return a.moment == moment; });
    if (it == answers_.end()) return nullptr;
    answers_.splice(answers_.begin(), answers_, it);
    return &it->result;
  }
  /// Valid until as many others have been kept.
  const plan_result& keep(std::vector<double> moment, plan_result r) {
    ++plannings_;
    if (answers_.size() == most) answers_.pop_back();
    return answers_.emplace_front(answer{std::move(moment), std::move(r)}).result;
  }

 private:
  struct answer {
    std::vector<double> moment;
    plan_result result;
  };
  std::list<answer> answers_;  ///< the last one used first
  long long plannings_ = 0;
};

/// A planner asked for the problem of the moment, in rounded conditions: moments that are alike are planned once, while they are
/// remembered.
template <class Problem, class Planner>
class replanning {
 public:
  /// @param memory  none: one of its own.
  replanning(const Problem& problem, Planner planner, std::shared_ptr<planning_memory> memory = {})
      : problem_(&problem), planner_(std::move(planner)), memory_(memory ? std::move(memory) : std::make_shared<planning_memory>()) {}

  /// Plans of the whole cluster's numbering, best first; infeasible where no device works.
  [[nodiscard]] const plan_result& operator()(const conditions& noticed, std::span<const foreign_traffic> traffic,
                                              const qoe_target& wanted) {
    const conditions now = rounded(offered(noticed, traffic, problem_->cluster.network()), problem_->cluster);
    std::vector<double> k{wanted.latency ? wanted.latency->value() : -1, wanted.deadline ? wanted.deadline->value() : -1,
                          wanted.iterations ? static_cast<double>(*wanted.iterations) : -1};
    for (std::size_t d = 0; d < now.speed.size(); ++d) k.push_back(now.present[d] != 0 ? now.speed[d] : -1);
    for (const bytes_per_second c : now.capacity) k.push_back(c.value());
    if (const plan_result* known = memory_->find(k)) return *known;
    return memory_->keep(std::move(k), plan_for(now, wanted));
  }

 private:
  [[nodiscard]] plan_result plan_for(const conditions& now, const qoe_target& wanted) const {
    const auto devices = problem_->cluster.devices();
    if (std::none_of(devices.begin(), devices.end(), [&](const device& d) { return now.works(d.id); })) {
      plan_result none;
      none.status = {outcome::infeasible, "no device works"};
      return none;
    }
    const present_problem there(*problem_, now, wanted);
    static_assert(planner<Planner, std::remove_cvref_t<decltype(*there)>>,
                  "a planner needs: hetplan::plan_result operator()(const auto& problem) const");
    return there.outside(planner_(*there));
  }

  const Problem* problem_;
  Planner planner_;
  std::shared_ptr<planning_memory> memory_;
};

}  // namespace HETPLAN_NAMESPACE::adapt
