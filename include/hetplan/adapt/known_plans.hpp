// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a policy remembers: the plans it has met, what they do under which conditions, and what its planner answered.

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/present_problem.hpp>
#include <hetplan/adapt/reschedule.hpp>
#include <hetplan/adapt/wish.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::adapt {

template <class P, class Problem>
concept plans_problem = requires(const P& p, const Problem& problem) {
  { p(problem) } -> std::same_as<plan_result>;  // plans of that problem, best first; deterministic
};
/// What re-planning calls: any recipe behind a callable, for the problem of the moment. Its job says what is wanted.
template <class P, class Problem>
concept planner = plans_problem<P, Problem>;

/// Plans that can be tried under any conditions. The same question is simulated once.
///
/// Source  the plans that Dora's adapter keeps (section 4.3); that they are tried again under new conditions is ours.
template <class Problem>
class known_plans {
 public:
  /// The problem must outlive it.
  explicit known_plans(const Problem& problem) : problem_(&problem) {}

  /// Takes a plan in, unless it is known; its index.  Throws  as tasks::expand.
  std::size_t add(plan p) {
    p.predicted.reset();
    for (std::size_t i = 0; i < runners_.size(); ++i) {
      if (runners_[i].what() == p) return i;
    }
    runners_.emplace_back(*problem_, std::move(p));
    seen_.emplace_back();
    scheduled_.emplace_back();
    return runners_.size() - 1;
  }
  /// The same plan with its transfers scheduled for the moment (reschedule), as another known plan; nothing where that
  /// finds none.  Complexity: that of adapt::reschedule, if the moment is new.
  std::optional<std::size_t> reschedule(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                        const schedule::refine_options& options) {
    std::vector<double> k = felt(i, offered(now, traffic, problem_->cluster.network()));
    k.push_back(wanted.latency ? wanted.latency->value() : -1);
    const auto it = scheduled_[i].find(k);
    if (it != scheduled_[i].end()) return it->second;
    std::optional<std::size_t> found;
    if (auto p = adapt::reschedule(*problem_, runners_[i].what(), now, traffic, wanted, options)) found = add(std::move(*p));
    scheduled_[i].emplace(std::move(k), found);
    return found;
  }
  [[nodiscard]] std::size_t size() const { return runners_.size(); }
  [[nodiscard]] const plan& operator[](std::size_t i) const { return runners_[i].what(); }
  [[nodiscard]] std::span<const device_id> devices(std::size_t i) const { return runners_[i].devices(); }

  /// The index of the plan that serves best, of all or of some; nothing if none of them can run. Ties: the first.
  /// Complexity  that of try_out for each.
  [[nodiscard]] std::optional<std::size_t> best(const wish& wanted, const conditions& now, std::span<const foreign_traffic> traffic,
                                                std::optional<std::span<const plan>> among = {}) {
    std::optional<std::size_t> found;
    serving least;
    const auto offer = [&](std::size_t i) {
      const iteration each = try_out(i, now, traffic);
      const serving x = wanted.of(each);
      if (!each.ended || (found && x >= least)) return;
      found = i;
      least = x;
    };
    if (among) {
      for (const plan& p : *among) offer(add(p));
    } else {
      for (std::size_t i = 0; i < size(); ++i) offer(i);
    }
    return found;
  }

  /// An iteration while nothing changes; infinite where the plan cannot run.  Complexity: one simulation, if it is new.
  [[nodiscard]] iteration try_out(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic) {
    if (!traffic.empty()) return runners_[i].rehearse(now, traffic);
    auto [it, is_new] = seen_[i].try_emplace(felt(i, now));
    if (is_new) it->second = runners_[i].rehearse(now);
    return it->second;
  }

 private:
  /// Of the conditions, what a plan feels: its own devices, and the network.
  [[nodiscard]] std::vector<double> felt(std::size_t i, const conditions& now) const {
    std::vector<double> k;
    for (const device_id d : runners_[i].devices()) k.push_back(now.present[d.index()] != 0 ? now.speed[d.index()] : -1);
    for (const bytes_per_second c : now.capacity) k.push_back(c.value());
    return k;
  }

  const Problem* problem_;
  std::vector<plan_runner<Problem>> runners_;
  std::vector<std::map<std::vector<double>, iteration>> seen_;                         ///< by plan and what it feels
  std::vector<std::map<std::vector<double>, std::optional<std::size_t>>> scheduled_;
};

/// A planner asked for the problem of the moment; the same moment is planned once.
template <class Problem, class Planner>
class replanning {
 public:
  replanning(const Problem& problem, Planner planner) : problem_(&problem), planner_(std::move(planner)) {}

  /// Plans of the whole cluster's numbering, best first; infeasible where no device works.
  [[nodiscard]] const plan_result& operator()(const conditions& noticed, std::span<const foreign_traffic> traffic, const qoe_target& wanted) {
    const conditions now = offered(noticed, traffic, problem_->cluster.network());
    std::vector<double> k{wanted.latency ? wanted.latency->value() : -1, wanted.deadline ? wanted.deadline->value() : -1,
                          wanted.iterations ? static_cast<double>(*wanted.iterations) : -1};
    for (std::size_t d = 0; d < now.speed.size(); ++d) k.push_back(now.present[d] != 0 ? now.speed[d] : -1);
    for (const bytes_per_second c : now.capacity) k.push_back(c.value());
    auto [it, is_new] = answers_.try_emplace(std::move(k));
    if (!is_new) return it->second;
    bool any = false;
    for (const device& d : problem_->cluster.devices()) any = any || now.works(d.id);
    if (!any) {
      it->second.status = {outcome::infeasible, "no device works"};
      return it->second;
    }
    const present_problem there(*problem_, now, wanted);
    static_assert(planner<Planner, std::remove_cvref_t<decltype(*there)>>,
                  "a planner needs: hetplan::plan_result operator()(const auto& problem) const");
    return it->second = there.outside(planner_(*there));
  }

 private:
  const Problem* problem_;
  Planner planner_;
  std::map<std::vector<double>, plan_result> answers_;
};

}  // namespace hetplan::adapt
