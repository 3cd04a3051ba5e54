// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_grids.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/light_boundaries.hpp>
#include <hetplan/partition/best_grid.hpp>
#include <hetplan/partition/move_boundaries.hpp>
#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/simulate/quick_judgement.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

class grid_mover {
 public:
  grid_mover(const planning_problem& problem, const any_objective& objective, const layer_sequence& row, step_budget& budget,
             const grid_moves& options)
      : problem_(problem), objective_(objective), row_(each_layer_of(row)), light_(light_boundaries(problem.model, row_)), budget_(budget),
        options_(options) {
    const std::vector<layer_id> all = all_layers(problem.model);
    const auto speed = [&](const device& d) {
      const work_kind one{.phase = phase::forward, .batch = 1, .context = problem.job.workload.context};
      return problem.cost.total_s(problem.model, all, one, d, 0);
    };
    std::vector<std::pair<double, device_id>> timed;
    for (const device& d : problem.cluster.devices()) timed.emplace_back(speed(d), d.id);
    std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [s, d] : timed) by_speed_.push_back(d);
  }

  std::vector<plan> run(const std::vector<plan>& ranked) {
    std::vector<std::pair<double, plan>> found;
    left_ = options_.judged;
    double before = inf;
    for (plan p : ranked) before = std::min(before, score_of(p));
    const auto climb = [&](plan p) {
      left_ = options_.judged;
      double score = score_of(p);
      improve(p, score);
      const bool grids = std::any_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return s.column_count() > 1; });
      if (grids && gains(score, before)) found.emplace_back(score, std::move(p));
    };
    for (plan& p : of_all_layers(ranked)) climb(std::move(p));
    int taken = 0;
    for (const plan& p : ranked) {
      const bool plain = p.pipelines.empty() && p.schedule.kind != schedule_kind::explicit_orders && p.schedule.transfers.empty() &&
                         p.transfers == transfer_mode::overlap;
      if (!plain || taken == options_.plans) continue;
      ++taken;
      climb(p);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<plan> plans;
    for (auto& [score, p] : found) {
      if (std::find(plans.begin(), plans.end(), p) == plans.end()) plans.push_back(std::move(p));
    }
    return plans;
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// A gain that is worth sharing tensors for.
  [[nodiscard]] static bool gains(double now, double before) { return before == inf ? now < inf : now < before - 1e-3 * std::abs(before); }

  /// Completes the plan; infinite where it is none, breaks a limit, or nothing is left to judge it with.
  double score_of(plan& p) {
    p.predicted.reset();
    std::vector<std::int64_t> name{p.microbatch_size};
    for (const stage& s : p.stages) {
      for (const layer_id l : s.layers) name.push_back(l.value);
      for (const assignment& a : s.devices) name.insert(name.end(), {-1 - std::int64_t{a.device.value}, a.samples, a.tensor_parallel});
      for (const int w : s.columns) name.push_back(-w);
      name.push_back(std::numeric_limits<std::int64_t>::min());
    }
    try {
      fit_warmup(p, problem_.model, problem_.cluster, problem_.models.memory);
      drop_usual_warmup(p, problem_.model);
      if (const auto it = known_.find(name); it != known_.end()) return it->second;
      if (budget_.spent() || left_ <= 0) return inf;
      --left_;
      const auto [e, steps] = judge_quickly(problem_, p);
      budget_.spend(steps);
      return known_[name] = find_broken_limit(e, problem_.cluster) ? inf : hetplan::score(objective_, e);
    } catch (const invalid_input&) {  // no plan: a tensor in two stages, a circle, a route that is missing
      return known_[name] = inf;
    }
  }

  /// Stage s of a plan on the best grid that a short search finds; true where that helps.
  bool regrid(plan& p, double& score, std::size_t s, const std::vector<device_id>& devices) {
    plan tried = p, best;
    double least = score;
    const partition::grid_judge judge{[&](const stage& with) {
                                        tried = p;
                                        tried.stages[s] = with;
                                        const double now = score_of(tried);
                                        if (now < least) {
                                          least = now;
                                          best = tried;
                                        }
                                        return now;
                                      },
                                      at_least(p)};
    const int size = p.size_of(p.stages[s]);
    static_cast<void>(partition::best_grid(problem_, p.stages[s], devices, size, judge,
                                           {.subsets = true, .all_up_to = 0, .judged = options_.judged_a_grid}));
    if (!gains(least, score)) return false;
    score = least;
    p = std::move(best);
    return true;
  }

  /// A device that works so long for every microbatch, and token, ends no sooner.
  [[nodiscard]] std::function<double(double)> at_least(const plan& p) const {
    if (!objective_.monotone()) return {};
    const double passes = static_cast<double>(p.microbatches) * p.workload.steps();
    const bool tokens = p.workload.mode == mode::generation;
    return [this, passes, tokens](double busy_s) {
      evaluation e{.latency = seconds(passes * busy_s)};
      if (tokens) e.time_between_tokens = seconds(0);
      return hetplan::score(objective_, e);
    };
  }

  /// The fastest of those that stage s has, or stages s and t have, and that no other stage has.
  [[nodiscard]] std::vector<device_id> devices_for(const plan& p, std::size_t s, std::size_t t) const {
    std::vector<device_id> all;
    for (const device_id d : by_speed_) {
      bool taken = false;
      for (std::size_t i = 0; i < p.stages.size(); ++i) {
        if (i == s || i == t) continue;
        taken = taken ||
                std::any_of(p.stages[i].devices.begin(), p.stages[i].devices.end(), [&](const assignment& a) { return a.device == d; });
      }
      if (!taken && all.size() < options_.devices) all.push_back(d);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  [[nodiscard]] static plan merged(plan p, std::size_t s) {
    auto& layers = p.stages[s].layers;
    const auto& behind = p.stages[s + 1].layers;
    layers.insert(layers.end(), behind.begin(), behind.end());
    std::sort(layers.begin(), layers.end());
    p.stages.erase(p.stages.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    p.schedule.warmup.clear();
    for (std::size_t i = 0; i < p.stages.size(); ++i) p.stages[i].name = "s" + std::to_string(i);
    return p;
  }

  void improve(plan& p, double& score) {
    for (bool helped = true; helped && left_ > 0 && !budget_.spent();) {
      helped = false;
      for (std::size_t s = 0; s + 1 < p.stages.size(); ++s) {
        const std::vector<device_id> devices = devices_for(p, s, s + 1);
        plan one = merged(p, s);
        double least = score;
        if (!devices.empty() && regrid(one, least, s, devices)) {
          score = least;
          p = std::move(one);
          helped = true;
        }
      }
      for (std::size_t s = 0; s < p.stages.size(); ++s) {
        const std::vector<device_id> devices = devices_for(p, s, s);
        if (!devices.empty() && regrid(p, score, s, devices)) helped = true;
      }
      if (p.stages.size() < 2) continue;
      plan moved = partition::move_boundaries(
          p, row_, light_, [&](plan& q) { return score_of(q); }, options_.judged_a_grid);
      if (const double now = score_of(moved); now < score) {
        score = now;
        p = std::move(moved);
        helped = true;
      }
    }
  }

  /// One stage, for each microbatch size of the ranked plans, or each that the job may have.
  std::vector<plan> of_all_layers(const std::vector<plan>& ranked) {
    std::vector<int> sizes;
    for (const plan& p : ranked) sizes.push_back(p.microbatch_size);
    if (sizes.empty()) sizes = problem_.job.candidate_microbatch_sizes();
    sizes.push_back(problem_.job.largest_share());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    std::vector<std::pair<double, plan>> all;
    left_ = options_.judged;
    for (const int size : sizes) {
      plan p = blank_plan(problem_, "dora", size);
      p.stages = {stage{.name = "s0", .layers = all_layers(problem_.model)}};
      double score = inf;
      if (regrid(p, score, 0, devices_for(p, 0, 0))) all.emplace_back(score, std::move(p));
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<plan> best;
    for (auto& [score, p] : all) {
      if (best.size() < static_cast<std::size_t>(options_.plans)) best.push_back(std::move(p));
    }
    return best;
  }

  const planning_problem& problem_;
  const any_objective& objective_;
  layer_sequence row_;
  std::vector<std::size_t> light_;
  step_budget& budget_;
  const grid_moves& options_;
  std::vector<device_id> by_speed_;
  std::map<std::vector<std::int64_t>, double> known_;
  int left_ = 0;  ///< judgements of this start
};

}  // namespace detail

HETPLAN_INLINE std::vector<plan> with_grids(const planning_problem& problem, const any_objective& objective,
                                            const std::vector<plan>& ranked, const layer_sequence& row, step_budget& budget,
                                            const grid_moves& options) {
  if (problem.cluster.size() < 2) return {};
  return detail::grid_mover(problem, objective, row, budget, options).run(ranked);
}

}  // namespace HETPLAN_NAMESPACE::recipes
