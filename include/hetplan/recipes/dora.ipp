// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/partition/best_grid.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/few_blocks.hpp>
#include <hetplan/recipes/moirai.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/recipes/placers.hpp>
#include <hetplan/recipes/recomputed_blocks.hpp>
#include <hetplan/search/mend_limits.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int /*keep*/,
                                           const candidate_observer& observer) {
  using namespace partition;
  constexpr int k = 10;
  candidate_rounds rounds(2, objective, observer);
  const cluster view = uncontended(problem.cluster);
  const layer_sequence row = cut_between_places(decompose::serial_chains{}(problem.model), problem.pinned);
  const search_tables tables(problem.model, row, view, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                             problem.job.largest_share(), {}, problem.pinned);
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto blank = [&](int size) { return blank_plan(problem, "dora-printed", size); };

  ranking choice(problem, objective, 1);
  std::vector<found_plan> found;
  for (const warmup_rule warmup : warmup_rules) {
    for (const int size : sizes) {
      if (!found.empty() && choice.out_of_steps()) break;
      search_result s = two_substate_dp(tables, by_memory(tables, size), blank(size), steering, top_k{k},
                                        {.plans = k, .warmup = warmup, .most_extensions = choice.budget().extensions_left()});
      choice.budget().spend_extensions(s.counts.extended);
      if (s.status.result == outcome::stopped) choice.cut();
      for (found_plan& f : s.plans) found.push_back(std::move(f));
    }
    if (!found.empty()) break;
  }
  sort_by(found, &found_plan::score);
  if (found.size() > static_cast<std::size_t>(k)) found.resize(static_cast<std::size_t>(k));
  if (found.empty()) {
    if (auto nearest = least_overflow(tables, by_memory(tables, sizes.front()), blank(sizes.front())))  // none where pins forbid all
      found.push_back({*std::move(nearest)});
  }
  const candidate_observer phase_1 = rounds.part();
  for (found_plan& f : found) {
    if (choice.consider(std::move(f.plan), static_cast<long long>(found.size()), phase_1) == control::stop || choice.last_fitted()) break;
  }
  plan_result chosen = std::move(choice).result();
  if (!chosen.status.ok()) return chosen;

  planning_problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - chosen.steps);
  plan_result scheduled = schedule::refine_judged(rest, objective, chosen.plans, 1, {}, rounds.part());
  scheduled.candidates += chosen.candidates;
  scheduled.elapsed += chosen.elapsed;
  scheduled.steps += chosen.steps;
  return scheduled;
}

namespace detail {

class grid_mover {
 public:
  grid_mover(const planning_problem& problem, const any_objective& objective, const layer_sequence& row, step_budget& budget,
             const grid_moves& options)
      : problem_(problem), objective_(objective), row_(each_layer_of(row)), light_(light_boundaries(problem.model, row_)), budget_(budget),
        options_(options) {
    const std::vector<layer_id> all = all_layers(problem.model);
    const token_passes passes(problem.job.workload, problem.model);
    const auto speed = [&](const device& d) {
      return stage_time_s(problem.cost, problem.model, {.layers = all}, {d.id}, d, phase::forward, passes);
    };
    std::vector<std::pair<double, device_id>> timed;
    for (const device& d : problem.cluster.devices()) timed.emplace_back(speed(d), d.id);
    sort_by(timed, [](const auto& x) { return x.first; });
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
    sort_by(found, [](const auto& x) { return x.first; });
    std::vector<plan> plans;
    for (auto& [score, p] : found) {
      if (std::find(plans.begin(), plans.end(), p) == plans.end()) plans.push_back(std::move(p));
    }
    return plans;
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// Returns true if an improvement is large enough to justify shared tensors.
  [[nodiscard]] static bool gains(double now, double before) { return before == inf ? now < inf : now < before - 1e-3 * std::abs(before); }

  /// Completes and judges the plan. Returns infinity if it is invalid, breaks a limit, or no judgement is left.
  double score_of(plan& p) {
    key_parts name{p.microbatch_size};
    for (const stage& s : p.stages) {
      for (const layer_id l : s.layers) name.emplace_back(l);
      for (const assignment& a : s.devices) name.insert(name.end(), {-1 - std::int64_t{a.device.value}, a.samples, a.tensor_parallel});
      for (const int w : s.columns) name.emplace_back(-w);
      name.emplace_back(std::numeric_limits<std::int64_t>::min());
    }
    try {
      fit_warmup(p, problem_.model, problem_.cluster, problem_.models.memory);
      drop_usual_warmup(p, problem_.model);
      if (const double* score = known_.find(name)) return *score;
      if (budget_.spent() || left_ <= 0 || broken_pin(p, problem_)) return inf;
      --left_;
      const auto [e, steps] = judge_offloaded(problem_, p);
      budget_.spend(steps);
      return known_[name] = find_broken_limit(e, problem_.cluster) ? inf : hetplan::score(objective_, e);
    } catch (const invalid_input&) {  // invalid plan: a tensor in two stages, a cycle, a missing route
      return known_[name] = inf;
    }
  }

  /// Puts stage s on the best grid of a short search. Returns true if that helps.
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

  /// Returns a lower bound on the score: a device that is busy so long for every microbatch and token ends no sooner.
  [[nodiscard]] std::function<double(double)> at_least(const plan& p) const {
    if (!objective_.monotone()) return {};
    const double passes = static_cast<double>(p.microbatches) * pass_count(p.workload, problem_.model.tokens_per_sample());
    const bool tokens = p.workload.mode == mode::generation;
    return [this, passes, tokens](double busy_s) {
      evaluation e{.latency = seconds(passes * busy_s)};
      if (tokens) e.ttft = e.time_between_tokens = seconds(0);
      return hetplan::score(objective_, e);
    };
  }

  /// Returns the fastest devices that only stages s and t have, or no stage.
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
    sort_stably(all);
    return all;
  }

  [[nodiscard]] static plan merged(plan p, std::size_t s) {
    auto& layers = p.stages[s].layers;
    const auto& behind = p.stages[s + 1].layers;
    layers.insert(layers.end(), behind.begin(), behind.end());
    sort_stably(layers);
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

  /// Returns the best plans of one stage, for each microbatch size of the ranked plans, or each of the job if there are none.
  std::vector<plan> of_all_layers(const std::vector<plan>& ranked) {
    std::vector<int> sizes;
    for (const plan& p : ranked) sizes.push_back(p.microbatch_size);
    if (sizes.empty()) sizes = problem_.job.candidate_microbatch_sizes();
    sizes.push_back(problem_.job.largest_share());
    sort_distinct(sizes);
    std::vector<std::pair<double, plan>> all;
    left_ = options_.judged;
    for (const int size : sizes) {
      plan p = blank_plan(problem_, "dora", size);
      p.stages = {stage{.name = "s0", .layers = all_layers(problem_.model)}};
      double score = inf;
      if (regrid(p, score, 0, devices_for(p, 0, 0))) all.emplace_back(score, std::move(p));
    }
    sort_by(all, [](const auto& x) { return x.first; });
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
  keyed<double> known_;
  int left_ = 0;
};

}  // namespace detail

HETPLAN_INLINE std::vector<plan> with_grids(const planning_problem& problem, const any_objective& objective,
                                            const std::vector<plan>& ranked, const layer_sequence& row, step_budget& budget,
                                            const grid_moves& options) {
  if (problem.cluster.size() < 2) return {};
  return detail::grid_mover(problem, objective, row, budget, options).run(ranked);
}

HETPLAN_INLINE std::vector<incumbent_planner> usual_incumbents() {
  using enum incumbent_planner::large_models;
  const auto placing = [](auto planner, incumbent_planner::large_models large, int part_of_steps = 32) {
    return incumbent_planner{[planner](const planning_problem& p, const any_objective& o, int, const candidate_observer& observer) {
                               const double least_steps = static_cast<double>(p.model.size()) * static_cast<double>(p.cluster.size());
                               if (p.job.workload.mode != mode::inference || least_steps > static_cast<double>(p.steps))
                                 return plan_result{};
                               return planner(p, o, placement_view{}, observer);
                             },
                             large, part_of_steps};
  };
  return {{on_device, whole},
          {data_parallel, whole},
          {pipeline},
          {gpipe},
          {pipedream},
          {dapple},
          {edgeshard},
          {alpa},
          {metis},
          {asteroid},
          {hetpipe},
          {even_split},
          {dora_as_printed, not_at_all},
          placing(heft, whole),
          placing(m_etf, whole),
          placing(m_sct, whole),
          placing(getf, whole),
          placing(moirai, not_at_all, 4)};
}

namespace detail {

HETPLAN_INLINE plan_result scheduled(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                     const schedule::refine_options& options, const candidate_observer& observer) {
  planning_problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - found.steps);
  plan_result best = schedule::refine_judged(rest, objective, found.plans, keep, options, observer);
  best.candidates += found.candidates;
  best.elapsed += found.elapsed;
  best.steps += found.steps;
  if ((best.status.ok() && found.out_of_steps) || best.out_of_steps) {
    best.out_of_steps = true;
    best.status = {outcome::stopped, out_of_steps(problem.steps, best.candidates)};
  }
  return best;
}

/// Returns what a planner finds for blocks of the model, as plans of the model itself.
[[nodiscard]] HETPLAN_INLINE plan_result plan_in_blocks(const planning_problem& problem, few_blocks& blocks,
                                                        const incumbent_planner& planner, const any_objective& objective,
                                                        const candidate_observer& observer) {
  blocks.problem().steps = problem.steps;
  plan_result found = planner.plan(blocks.problem(), objective, 1, {});
  step_budget budget(problem.steps);
  budget.spend(found.steps);
  ranking best(problem, objective, 1, budget);
  for (ranked_plan& r : found.plans) static_cast<void>(best.consider(blocks.expand(std::move(r.plan)), 1, observer));
  return std::move(best).result();
}

[[nodiscard]] HETPLAN_INLINE plan_result judged_all(const planning_problem& problem, const any_objective& objective,
                                                    const std::vector<plan>& plans, int keep, const step_budget& budget,
                                                    const candidate_observer& observer) {
  ranking best(problem, objective, keep, budget);
  for (const plan& p : plans) {
    if (best.consider(p, static_cast<long long>(plans.size()), observer) == control::stop) break;
  }
  return std::move(best).result();
}

/// Returns the best plans found when an observer stops the search.
[[nodiscard]] HETPLAN_INLINE plan_result ended(const planning_problem& problem, const any_objective& objective, plan_result found,
                                               int keep) {
  ranking best(problem, objective, keep);
  for (ranked_plan& r : found.plans) best.know(std::move(r));
  found.plans = std::move(best).result().plans;
  found.status.reason = "stopped by an observer after " + std::to_string(found.candidates) + " candidates";
  return found;
}

/// Returns the best of an answer and of further plans, which are judged with what is left of a budget.
[[nodiscard]] HETPLAN_INLINE plan_result beside(const planning_problem& problem, const any_objective& objective,
                                                const std::vector<plan>& plans, plan_result answer, int keep, const step_budget& budget,
                                                candidate_rounds& rounds) {
  plan_result found = judged_all(problem, objective, plans, keep, budget, rounds.part());
  ranking all(problem, objective, keep, budget);
  for (auto* of : {&answer.plans, &found.plans}) {
    for (ranked_plan& r : *of) all.know(std::move(r));
  }
  const bool none = !all.any_fitted();
  plan_result best = std::move(all).result(keep);
  best.candidates = answer.candidates + found.candidates;
  best.elapsed += answer.elapsed + found.elapsed;
  best.steps = std::max(found.steps, budget.used());
  best.out_of_steps = answer.out_of_steps || found.out_of_steps;
  best.status = {};
  if (best.out_of_steps) {
    best.status = {outcome::stopped, out_of_steps(problem.steps, best.candidates, !none)};
  } else if (found.status.result == outcome::stopped) {
    best.status = found.status;
  } else if (none) {  // a proof may not cover the further plans
    best.status = {outcome::none_found, answer.status.reason};
    best.binding = answer.binding;
  }
  return best;
}

HETPLAN_INLINE plan_result beside_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& starts,
                                        plan_result answer, int keep, const dora_options& options, candidate_rounds& rounds) {
  step_budget budget(problem.steps);
  budget.spend(answer.steps);
  const std::vector<plan> plans = with_grids(problem, objective, starts, decompose::joined_chains{}(problem.model), budget, options.grids);
  return beside(problem, objective, plans, std::move(answer), keep, budget, rounds);
}

HETPLAN_INLINE plan_result beside_drafts(const planning_problem& problem, const any_objective& objective, std::vector<plan> starts,
                                         plan_result answer, int keep, const dora_options& options, candidate_rounds& rounds) {
  const std::size_t most_judged = problem.pinned.empty() ? 4 : 16;
  step_budget budget(problem.steps);
  budget.spend(answer.steps);
  if (budget.spent() || answer.status.result == outcome::infeasible) return answer;  // a proof covers these plans, too
  if (!problem.pinned.empty()) {  // the best plan without pins: drafts put its pinned layers where they must be, so that devices return
    planning_problem free = problem;
    free.job.pins.clear();
    free.pinned.clear();
    free.steps = std::max(1LL, budget.left() / 4);
    const candidate_observer shown = rounds.part();
    const auto counted = [&shown](const candidate_judged& c) { return shown({c.judged, c.total}); };  // its plans break pins
    plan_result found = dora_partitioner(free, objective, 1, options.partitioner, shown ? candidate_observer(counted) : shown);
    budget.spend(found.steps);
    answer.candidates += found.candidates;
    answer.steps += found.steps;
    for (ranked_plan& r : found.plans) starts.insert(starts.begin(), std::move(r.plan));
  }
  if (!answer.plans.empty()) starts.insert(starts.begin(), answer.plans.front().plan);  // one, however many are wanted
  // Of two orders of the layers, the model's own and that of its chains, the one in which the plans so far can be cut best.
  const planning_graph& model = problem.model;
  constexpr std::size_t most_blocks = 200;
  // With pins, cuts at heavy boundaries, too: devices that return have no other search.
  const auto blocks_of = [&](const layer_sequence& each) {
    if (!problem.pinned.empty() && model.size() <= most_blocks) return each;
    return cut_between_places(light_blocks(model, each, most_blocks), problem.pinned);
  };
  layer_sequence row = blocks_of(sequence_of(model));
  layer_sequence chains = blocks_of(each_layer_of(decompose::joined_chains{}(model)));
  const auto tables_of = [&](const layer_sequence& s) {
    return partition::search_tables(model, s, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                                    problem.job.workload, problem.job.largest_share(), {}, problem.pinned);
  };
  std::optional<partition::search_tables> tables(tables_of(row));
  if (chains != row) {
    const auto least_s = [&](const partition::search_tables& t) {
      partition::draft_replay replay(problem, t);
      double least = std::numeric_limits<double>::infinity();
      for (const plan& p : starts) {
        if (const auto d = draft_of(p, t)) least = std::min(least, replay(*d).times.makespan.value());
      }
      return least;
    };
    const partition::search_tables other = tables_of(chains);
    if (least_s(other) < least_s(*tables)) {
      row = std::move(chains);
      tables.emplace(tables_of(row));
    }
  }
  // No longer than all else took, unless pins let devices return, which nothing else tries; and no longer than pays. All that is left if
  // more steps than usual were asked for.
  const long long pays = options.drafts.steps_per_choice * static_cast<long long>(row.size() * problem.cluster.size());
  const long long usual = problem.pinned.empty() ? std::min(answer.steps, pays) : pays;
  const long long steps = std::min(budget.left(), std::max(usual, problem.steps - standard_steps));
  std::vector<plan> plans;
  partition::draft_replay replay(problem, *tables);
  for (const partition::pipeline_draft& d : search_drafts(problem, objective, *tables, starts, budget, steps, options.drafts)) {
    if (plans.size() < most_judged) plans.push_back(replay.to_plan(d, "dora"));
  }
  return beside(problem, objective, plans, std::move(answer), keep, budget, rounds);
}

/// Number of plans of phase 1 that drafts start from, and of the best plans whose savers vary.
inline constexpr int starts_of_savers = 3;

/// Returns true if an observer has ended a search.
[[nodiscard]] inline bool told_to_stop(const plan_result& r) { return r.status.result == outcome::stopped && !r.out_of_steps; }

HETPLAN_INLINE plan_result beside_savers(const planning_problem& problem, const any_objective& objective, plan_result answer, int keep,
                                         const dora_options& options, candidate_rounds& rounds) {
  if (answer.status.result == outcome::infeasible || answer.steps >= problem.steps) return answer;  // a proof covers these plans, too
  const auto room = [&] {
    step_budget budget(problem.steps);
    budget.spend(answer.steps);
    return budget;
  };
  planning_problem part = problem;
  part.steps = std::max(1LL, (problem.steps - answer.steps) / 2);
  plan_result found = dora_partitioner(part, objective, starts_of_savers, options.partitioner, rounds.part());
  answer.candidates += found.candidates;
  answer.steps += found.steps;
  std::vector<plan> starts = plans_of(found.plans);
  if (problem.job.memory_savers.recompute && !told_to_stop(found) && recomputed_blocks::exist_in(problem.model)) {
    part.steps = std::max(1LL, (problem.steps - answer.steps) / 2);
    const recomputed_blocks view(part);
    const plan_result of_view = dora_partitioner(view.problem(), objective, starts_of_savers, options.partitioner, {});
    answer.steps += of_view.steps;
    for (const ranked_plan& r : of_view.plans) starts.push_back(view.restored(r.plan));
  }
  answer = beside(problem, objective, starts, std::move(answer), keep, room(), rounds);
  if (told_to_stop(found)) answer.status = found.status;
  if (options.drafts.slots > 0 && !told_to_stop(answer))
    answer = beside_drafts(problem, objective, std::move(starts), std::move(answer), keep, options, rounds);
  if (told_to_stop(answer)) return answer;
  starts.clear();
  for (const ranked_plan& r : answer.plans) {
    if (starts.size() < starts_of_savers) starts.push_back(r.plan);
  }
  step_budget budget(std::min(problem.steps, answer.steps + answer.steps / 2));  // fsdp's transfers take as long as all else
  budget.spend(answer.steps);
  if (problem.job.memory_savers.shard_state && problem.job.schedule == schedule_kind::one_f_one_b) {
    for (const int size : problem.job.candidate_microbatch_sizes()) {
      if (size >= static_cast<int>(problem.cluster.size())) starts.push_back(even_replicas(problem, "dora", size, sharding::fsdp));
    }
  }
  std::vector<plan> plans = choose_savers(problem, objective, starts, budget);
  for (const ranked_plan& r : answer.plans) std::erase(plans, r.plan);
  answer.steps = budget.used();
  return beside(problem, objective, plans, std::move(answer), keep, room(), rounds);
}

/// Runs dora with the usual orders and without shared tensors.
///
/// @param starts  receives the plans of phase 1.
[[nodiscard]] HETPLAN_INLINE plan_result search_dora(const planning_problem& problem, const any_objective& objective, int keep,
                                                     const dora_options& options, const candidate_observer& observer,
                                                     std::vector<plan>& starts) {
  candidate_rounds rounds(static_cast<int>(options.incumbents.size()) + 2, objective, observer);
  for (std::size_t i = 0; i < options.incumbents.size(); ++i)
    require_function(options.incumbents[i].plan, "dora: incumbent " + std::to_string(i), "a planner, such as recipes::pipeline");
  partitioner_options search = options.partitioner;
  plan_result before;  // effort of the incumbents
  const auto add = [&before](plan_result& r) {
    r.candidates = before.candidates += r.candidates;
    r.elapsed = before.elapsed += r.elapsed;
    r.steps = before.steps += r.steps;
  };
  planning_problem part = problem;
  part.with_bounds = false;  // phase 2 computes them for the plans that are left
  std::optional<few_blocks> blocks;
  const bool gpipe_alone = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::gpipe;
  for (const incumbent_planner& incumbent : options.incumbents) {
    using enum incumbent_planner::large_models;
    if (!search.known.empty() && before.steps >= problem.steps / 2) break;
    if (problem.model.size() > few_layers && incumbent.large == not_at_all) continue;
    if (incumbent.part_of_steps < 1)
      throw invalid_input("dora: part_of_steps = " + std::to_string(incumbent.part_of_steps) +
                          " of an incumbent; expected an integer >= 1");
    part.steps = std::max(1LL, problem.steps / incumbent.part_of_steps);
    plan_result found;
    if (problem.model.size() > layers_planned_whole && incumbent.large == in_blocks) {
      if (!blocks) blocks.emplace(part, blocks_of_large_models);
      found = plan_in_blocks(part, *blocks, incumbent, objective, rounds.part());
    } else {
      found = incumbent.plan(part, objective, 1, rounds.part());
    }
    add(found);
    for (ranked_plan& r : found.plans) {
      if (gpipe_alone && r.plan.schedule.kind != schedule_kind::gpipe) continue;
      r.plan.planner = "dora, from " + r.plan.planner;
      search.known.push_back(std::move(r));
    }
    if (found.status.result == outcome::stopped && !found.out_of_steps) {
      found.plans = std::move(search.known);
      return ended(problem, objective, std::move(found), keep);
    }
  }
  part.steps = std::max(1LL, (problem.steps - before.steps) / 2);  // the other half is for the transfers
  plan_result found = dora_partitioner(part, objective, std::max(keep, search.k), search, rounds.part());
  add(found);
  if (found.out_of_steps) found.status.reason = out_of_steps(problem.steps, found.candidates, !found.plans.empty());
  if (found.plans.empty()) {
    if (auto proof = told_to_stop(found) ? std::nullopt : prove_infeasible(problem)) {
      std::string why = found.binding        ? to_string(*found.binding, problem.cluster)
                        : found.out_of_steps ? "no plan keeps the limits"
                                             : std::move(found.status.reason);
      found.status = {outcome::infeasible, std::move(why), std::move(proof)};
      found.out_of_steps = false;
    }
    return found;
  }
  if (!found.status.ok() && !found.out_of_steps) return ended(problem, objective, std::move(found), keep);
  starts = plans_of(found.plans);
  return scheduled(problem, objective, std::move(found), keep, options.network, rounds.part());
}

/// Returns how a model's work splits, for searches that price zero-bubble orders.
HETPLAN_INLINE split_backward split_of(const planning_graph& model) {
  double forward = 0, input = 0, weight = 0;
  for (const layer& l : model.layers()) {
    forward += l.forward_flops.value();
    input += l.backward_input_flops.value();
    weight += l.backward_weight_flops.value();
  }
  const double all = forward + input + weight;
  return all > 0 ? split_backward{.forward_share = forward / all, .input_share = input / all} : split_backward{};
}

}  // namespace detail

HETPLAN_INLINE plan_result dora(const planning_problem& problem, const any_objective& objective, int keep, const dora_options& options,
                                const candidate_observer& observer) {
  check_keep(keep, "dora");
  const job& j = problem.job;
  const bool orders = j.workload.mode == mode::training && (!j.orders.empty() || !options.schedules.empty() || j.only_orders);
  const bool grids = j.split_tensors && problem.cluster.size() > 1;
  const bool drafts = options.drafts.slots > 0 && !j.only_orders;
  const bool savers = j.memory_savers != memory_savers{} && !j.only_orders;
  std::vector<plan> starts;
  if (!orders && !grids && !drafts && !savers) return detail::search_dora(problem, objective, keep, options, observer, starts);
  const int parts = 1 + (orders ? 2 : 0) + (grids ? 1 : 0) + (drafts ? 1 : 0) + (savers ? 4 : 0);
  candidate_rounds rounds(parts, objective, observer);
  dora_options how = options;
  if (j.only_orders && !how.partitioner.law) how.partitioner.law = detail::split_of(problem.model);
  planning_problem whole = problem;  // bounds are computed for the best of all
  whole.with_bounds = false;
  planning_problem unordered = whole;
  if (orders) unordered.steps = std::max(1LL, problem.steps - problem.steps / 4);
  planning_problem frugal = unordered;
  frugal.job.memory_savers = {};  // so that no answer is worse than without savers
  if (savers) frugal.steps = std::max(1LL, unordered.steps / 2);
  planning_problem plain = frugal;
  if (grids) plain.steps = std::max(1LL, frugal.steps - frugal.steps / dora_options::part_for_grids);
  // The first plan must not depend on how many are wanted, so that further parts start from as many in any case.
  const int most = orders ? std::max(keep, how.partitioner.k) : savers ? std::max(keep, detail::starts_of_savers) : keep;
  const auto with_bounds = [&](plan_result r) {
    if (r.plans.empty()) return r;
    ranking all(problem, objective, keep);
    for (ranked_plan& p : r.plans) all.know(std::move(p));
    r.plans = std::move(all).result(keep).plans;
    return r;
  };
  plan_result answer = detail::search_dora(plain, objective, most, how, rounds.part(), starts);
  if (grids && !detail::told_to_stop(answer))
    answer = detail::beside_grids(frugal, objective, starts, std::move(answer), most, options, rounds);
  if (drafts && !detail::told_to_stop(answer))
    answer = detail::beside_drafts(frugal, objective, starts, std::move(answer), most, options, rounds);
  if (savers && !detail::told_to_stop(answer))
    answer = detail::beside_savers(unordered, objective, std::move(answer), most, options, rounds);
  if (!orders || answer.plans.empty() || detail::told_to_stop(answer)) return with_bounds(std::move(answer));
  plan_result chosen = schedule::choose_orders(whole, objective, std::move(answer), keep, rounds.part(), options.schedules);
  if (j.orders.empty() || detail::told_to_stop(chosen)) return with_bounds(std::move(chosen));
  // The best pipelines with one stage per device, and those recut from them, may be far from the best of the search.
  planning_problem part = whole;
  part.steps = std::max(1LL, problem.steps / 8);
  plan_result pipelines = zero_bubble(part, objective, keep, rounds.part());
  for (ranked_plan& r : pipelines.plans) {
    r.plan.planner = "dora, from " + r.plan.planner;
    chosen.plans.push_back(std::move(r));
  }
  if (chosen.status.result == outcome::none_found && !chosen.plans.empty()) chosen.status = {};
  chosen.candidates += pipelines.candidates;
  chosen.elapsed += pipelines.elapsed;
  return with_bounds(std::move(chosen));
}

HETPLAN_INLINE plan_result dora(const planning_problem& problem, const any_objective& objective, int keep,
                                const candidate_observer& observer) {
  return dora(problem, objective, keep, dora_options{}, observer);
}

}  // namespace hetplan::recipes
