// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/ranking.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/prove_infeasible.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/quick_judgement.hpp>

namespace hetplan {

HETPLAN_INLINE void check_keep(int keep, const char* who) {
  if (keep < 1) throw invalid_input(std::string(who) + ": keep = " + std::to_string(keep) + "; expected an integer >= 1");
}

HETPLAN_INLINE std::vector<layer_id> all_layers(const planning_graph& model) {
  std::vector<layer_id> layers;
  for (const layer& l : model.layers()) layers.push_back(l.id);
  return layers;
}

HETPLAN_INLINE ranking::ranking(const planning_problem& problem, const any_objective& objective, int keep)
    : problem_(problem), objective_(objective), keep_(keep) {
  check_keep(keep, "planner");
}

HETPLAN_INLINE ranking::ranking(const planning_problem& problem, const any_objective& objective, int keep, const step_budget& budget)
    : ranking(problem, objective, keep) {
  budget_ = budget;
}

HETPLAN_INLINE control ranking::consider(plan candidate, long long total, const candidate_observer& observer) {
  if ((count_.judged > 0 || any_fitted()) && out_of_steps()) return control::stop;
  remember_planner(candidate);
  const bool estimated = runs_long(candidate);
  std::optional<evaluation> e = judged(candidate, true);
  last_fitted_ = e && take(std::move(candidate), *std::move(e), estimated);
  return tell(total, observer);
}

HETPLAN_INLINE control ranking::consider(plan candidate, evaluation e, long long total, const candidate_observer& observer) {
  remember_planner(candidate);
  last_fitted_ = take(std::move(candidate), std::move(e), false);
  return tell(total, observer);
}

HETPLAN_INLINE void ranking::remember_planner(const plan& p) {
  if (std::find(planners_.begin(), planners_.end(), p.planner) == planners_.end()) planners_.push_back(p.planner);
}

HETPLAN_INLINE void ranking::know(plan candidate) {
  evaluation e = *std::move(candidate.predicted);
  e.bound = e.placement_bound = {};
  e.gap = 0;
  last_fitted_ = take(std::move(candidate), std::move(e), false);
}

HETPLAN_INLINE bool ranking::out_of_steps() {
  cut_ = cut_ || budget_.spent();
  return budget_.spent();
}

HETPLAN_INLINE std::vector<plan> ranking::kept() const {
  std::vector<plan> plans;
  for (const ranked& r : best_) {
    if (plans.size() < static_cast<std::size_t>(keep_)) plans.push_back(r.plan);
  }
  return plans;
}

HETPLAN_INLINE std::vector<plan> ranking::nearest() const {
  std::vector<plan> plans;
  for (const auto& [overflow, p] : near_) plans.push_back(p);
  return plans;
}

HETPLAN_INLINE plan_result ranking::result(int keep) && {
  if (in_full_ != static_cast<int>(best_.size()) || best_.empty()) judge_in_full(keep);
  if (best_.size() > static_cast<std::size_t>(keep)) best_.resize(static_cast<std::size_t>(keep));
  plan_result r;
  r.candidates = count_.judged;
  for (auto& [score, p, estimated] : best_) {
    if (!problem_.with_bounds) {
      r.plans.push_back(std::move(p));
      continue;
    }
    evaluation& e = *p.predicted;
    const auto plain = [](const plan& x) { return std::ranges::all_of(x.stages, [](const stage& s) { return s.is_plain(); }); };
    if (r.plans.empty() || !plain(r.plans.front()) || !plain(p)) {
      certify(e, p, problem_.model, problem_.cluster, problem_.cost, problem_.models.memory, problem_.lp);
    } else {  // one job, and all within memory: one bound
      e.bound = r.plans.front().predicted->bound;
      e.gap = gap_to(e.latency, e.bound);
    }
    r.plans.push_back(std::move(p));
  }
  // Who wants no bounds asks for parts of an answer, and proves of the whole.
  if (stopped_) {
    r.status = {outcome::stopped, "stopped by an observer after " + std::to_string(count_.judged) + " candidates"};
  } else if (auto proof = r.plans.empty() && problem_.with_bounds ? prove_infeasible(problem_) : std::nullopt) {
    r.binding = nearest_;
    r.status = {outcome::infeasible, why_none(), std::move(proof)};
  } else if (cut_) {
    r.status = {outcome::stopped, hetplan::out_of_steps(problem_.steps, count_.judged, !r.plans.empty())};
    r.out_of_steps = true;
  } else if (r.plans.empty()) {
    r.binding = nearest_;
    r.status = {outcome::none_found, why_none() + tried()};
  }
  r.steps = budget_.used();
  r.elapsed = seconds(clock_.elapsed_s());
  return r;
}

HETPLAN_INLINE std::string ranking::why_none() const {
  if (nearest_) return to_string(*nearest_, problem_.cluster);
  return not_judged_.empty() ? "no candidate plan exists" : not_judged_;
}

HETPLAN_INLINE std::string ranking::tried() const {
  if (count_.judged == 0) return {};
  std::string text = " (" + std::to_string(count_.judged) + (count_.judged == 1 ? " plan of " : " plans of ");
  for (std::size_t i = 0; i < planners_.size(); ++i) text += (i == 0 ? "" : ", ") + planners_[i];
  return text + " tried" + (nearest_ && count_.judged > 1 ? ", this one nearest)" : ")");
}

HETPLAN_INLINE control ranking::tell(long long total, const candidate_observer& observer) {
  count_.next(total);
  const plan* best = best_.empty() ? nullptr : &best_.front().plan;
  const control answer = observer(candidate_judged{count_.judged, count_.total, best, best != nullptr && best_.front().estimated});
  stopped_ = stopped_ || answer == control::stop;
  return answer;
}

HETPLAN_INLINE std::optional<evaluation> ranking::judged(const plan& p, bool quickly) {
  if (const auto size = too_large_an_expansion(p, problem_.model)) {
    if (not_judged_.empty()) {
      not_judged_ = "a plan of " + to_text(*size) + " tasks and transfers; at most " + to_text(max_expansion) + " can be simulated";
    }
    return std::nullopt;
  }
  try {
    if (quickly) {
      quick_judgement q = judge_quickly(problem_, p);
      budget_.spend(q.steps);
      return std::move(q.evaluation);
    }
    judgement j = judge(p, problem_.model, problem_.cluster, problem_.cost, problem_.models);
    budget_.spend(static_cast<long long>(j.graph.size()));
    return std::move(j.evaluation);
  } catch (const missing_route& m) {
    if (not_judged_.empty()) not_judged_ = m.what();
    return std::nullopt;
  }
}

HETPLAN_INLINE void ranking::judge_in_full(int keep) {
  std::vector<ranked> candidates;
  candidates.swap(best_);
  in_full_ = 0;
  int fitting = 0, tried = 0;
  for (ranked& candidate : candidates) {
    if (!candidate.estimated) {
      ++fitting;
      evaluation e = *std::move(candidate.plan.predicted);
      static_cast<void>(take(std::move(candidate.plan), std::move(e), false));
    } else if (fitting < keep) {
      if (budget_.spent() && (fitting > 0 || tried >= keep_)) {
        cut_ = true;
        continue;
      }
      ++tried;
      fitting += take_in_full(std::move(candidate.plan)) ? 1 : 0;
    }
  }
  const bool is_nearest = nearest_estimate_ && (!nearest_ || nearest_estimate_->first < nearest_->overflow());
  if (best_.empty() && is_nearest) static_cast<void>(take_in_full(std::move(nearest_estimate_->second)));
}

HETPLAN_INLINE bool ranking::take_in_full(plan&& p) {
  std::optional<evaluation> e = judged(p, false);
  return e && take(std::move(p), *std::move(e), false);
}

HETPLAN_INLINE bool ranking::take(plan&& p, evaluation&& e, bool estimated) {
  constexpr std::size_t most_near = 5;
  const auto limit = find_broken_limit(e, problem_.cluster);
  if (limit && best_.empty() && (near_.size() < most_near || limit->overflow() < near_.back().first)) {
    const auto farther = [](double overflow, const auto& n) { return overflow < n.first; };
    near_.emplace(std::upper_bound(near_.begin(), near_.end(), limit->overflow(), farther), limit->overflow(), p);
    if (near_.size() > most_near) near_.pop_back();
  }
  if (!limit) {
    near_.clear();
    insert(std::move(p), std::move(e), estimated);
  } else if (estimated) {
    if (!nearest_estimate_ || limit->overflow() < nearest_estimate_->first) nearest_estimate_.emplace(limit->overflow(), std::move(p));
  } else if (!nearest_ || limit->overflow() < nearest_->overflow()) {
    nearest_ = limit;
  }
  return !limit;
}

HETPLAN_INLINE void ranking::insert(plan&& p, evaluation&& e, bool estimated) {
  const double score = hetplan::score(objective_, e);
  if (std::isnan(score))
    throw invalid_model("objective: score(a plan of latency " + to_text(e.latency.value()) + " s) = nan; expected a number");
  p.predicted = std::move(e);
  const auto key = [](double s, const plan& x) { return std::pair(s, x.stages.size()); };
  const auto at = std::find_if(best_.begin(), best_.end(), [&](const ranked& b) { return key(score, p) < key(b.score, b.plan); });
  best_.insert(at, {score, std::move(p), estimated});
  in_full_ += estimated ? 0 : 1;
  while (in_full_ - (best_.back().estimated ? 0 : 1) >= keep_) {
    in_full_ -= best_.back().estimated ? 0 : 1;
    best_.pop_back();
  }
}

}  // namespace hetplan
