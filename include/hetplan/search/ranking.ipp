// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/search/ranking.hpp>

#include <cmath>
#include <cstddef>

#include <hetplan/estimate/bounds.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/search/fit_offload.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

HETPLAN_INLINE candidate_rounds::candidate_rounds(int parts, any_objective objective, const candidate_observer& observer)
    : parts_(parts), objective_(std::move(objective)), observer_(observer) {}

HETPLAN_INLINE candidate_observer candidate_rounds::part() {
  begun_ = std::min(begun_ + 1, parts_);
  return observer_ ? candidate_observer(*this) : candidate_observer{};
}

HETPLAN_INLINE control candidate_rounds::operator()(const candidate_judged& c) {
  if (c.best != nullptr) {
    const double score = hetplan::score(objective_, c.best->evaluation);
    if (!best_ || score < best_score_) {
      best_ = *c.best;
      best_score_ = score;
      estimated_ = c.estimated;
    }
  }
  // Finished share of all parts: (begun - 1 + judged / total) / parts.
  const double done = begun_ - 1 + static_cast<double>(c.judged) / static_cast<double>(c.total);
  count_.next(static_cast<long long>(static_cast<double>(count_.judged + 1) * parts_ / done));
  return observer_(candidate_judged{count_.judged, count_.total, best_ ? &*best_ : nullptr, estimated_});
}

namespace detail {

/// Returns the number of microbatches or tokens after which a plan's pipeline is full.
[[nodiscard]] HETPLAN_INLINE int filled_after(const plan& p) { return 16 + 4 * static_cast<int>(p.stages.size()); }

[[nodiscard]] bool has_many_tokens(const plan& p);

}  // namespace detail

namespace detail {

[[nodiscard]] HETPLAN_INLINE bool has_many_microbatches(const plan& p) {
  return p.microbatches > std::max(most_microbatches_in_full, 4 * filled_after(p));
}

HETPLAN_INLINE bool has_many_tokens(const plan& p) {
  return p.workload.mode == mode::generation && p.workload.tokens > std::max(most_tokens_in_full, 4 * filled_after(p));
}

}  // namespace detail

HETPLAN_INLINE bool runs_long(const plan& p) {
  const bool shortens = p.pipelines.empty() && p.schedule.kind != schedule_kind::explicit_orders && p.schedule.transfers.empty() &&
                        std::all_of(p.stages.begin(), p.stages.end(), [&](const stage& s) { return p.size_of(s) == p.microbatch_size; });
  return shortens && (detail::has_many_microbatches(p) || detail::has_many_tokens(p));
}

namespace detail {

HETPLAN_INLINE evaluation extrapolate(const evaluation& a, const evaluation& b, double times) {
  const auto further = [&](auto x, auto y) { return std::max(decltype(y){}, y + times * (y - x)); };
  evaluation e = b;
  e.latency = further(a.latency, b.latency);
  if (e.time_between_tokens) e.time_between_tokens = further(*a.time_between_tokens, *b.time_between_tokens);
  for (std::size_t d = 0; d < e.devices.size(); ++d) {
    device_evaluation& x = e.devices[d];
    x.energy = further(a.devices[d].energy, x.energy);
    x.peak_memory = further(a.devices[d].peak_memory, x.peak_memory);
    x.busy = further(a.devices[d].busy, x.busy);
  }
  for (std::size_t r = 0; r < e.resource_bytes.size(); ++r) e.resource_bytes[r] = further(a.resource_bytes[r], e.resource_bytes[r]);
  e.schedule_bound = further(a.schedule_bound, b.schedule_bound);
  e.contention_bound = further(a.contention_bound, b.contention_bound);
  e.schedule_gap = gap_to(e.latency, e.schedule_bound);
  return e;
}

}  // namespace detail

HETPLAN_INLINE quick_judgement judge_quickly(const planning_problem& problem, const plan& p) {
  if (runs_long(p)) {
    const int filled = detail::filled_after(p);
    plan shorter = p, longer = p;
    const bool tokens = detail::has_many_tokens(p);
    const auto shorten = [&](plan& q, int to) {
      (tokens ? q.workload.tokens : q.microbatches) = to;
      if (tokens) q.workload.sampled_from = p.workload.all_tokens();  // steps behind short contexts and long ones
    };
    shorten(shorter, filled);
    shorten(longer, 2 * filled);
    quick_judgement a = judge_quickly(problem, shorter), b = judge_quickly(problem, longer);
    // The time between tokens is a mean; extrapolation needs the sum.
    const auto spans = [&](evaluation& e, double times) {
      if (tokens) e.time_between_tokens = times * *e.time_between_tokens;
    };
    spans(a.evaluation, filled - 1);
    spans(b.evaluation, 2 * filled - 1);
    const int whole = tokens ? p.workload.tokens : p.microbatches;
    quick_judgement q{detail::extrapolate(a.evaluation, b.evaluation, static_cast<double>(whole - 2 * filled) / filled), a.steps + b.steps};
    spans(q.evaluation, 1.0 / (whole - 1));
    if (tokens && q.evaluation.latency.value() > 0)
      q.evaluation.tokens_per_second = static_cast<double>(p.batch()) * whole / q.evaluation.latency.value();
    return q;
  }
  judgement j = judge(p, problem.model, problem.cluster, problem.cost, problem.models);
  return {std::move(j.evaluation), static_cast<long long>(j.graph.size())};
}

HETPLAN_INLINE quick_judgement judge_offloaded(const planning_problem& problem, plan& p) {
  if (!problem.cluster.has_tiers()) return judge_quickly(problem, p);
  for (stage& s : p.stages) s.offload.clear();
  quick_judgement q = judge_quickly(problem, p);
  if (within_memory(q.evaluation, problem.cluster)) return q;
  auto fitted = fit_offload(problem, p, q.evaluation);
  if (!fitted) return q;
  p = *std::move(fitted);
  const long long steps = q.steps;
  q = judge_quickly(problem, p);
  q.steps += steps;
  return q;
}

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
  std::optional<evaluation> e = keeps_pins(candidate) ? judged(candidate, true) : std::nullopt;
  last_fitted_ = e && take({std::move(candidate), *std::move(e)}, estimated);
  return tell(total, observer);
}

HETPLAN_INLINE control ranking::consider(plan candidate, evaluation e, long long total, const candidate_observer& observer) {
  remember_planner(candidate);
  last_fitted_ = keeps_pins(candidate) && take({std::move(candidate), std::move(e)}, false);
  return tell(total, observer);
}

HETPLAN_INLINE void ranking::remember_planner(const plan& p) {
  if (std::find(planners_.begin(), planners_.end(), p.planner) == planners_.end()) planners_.push_back(p.planner);
}

HETPLAN_INLINE void ranking::know(ranked_plan candidate) {
  evaluation& e = candidate.evaluation;
  e.bound = e.placement_bound = {};
  e.gap = 0;
  last_fitted_ = keeps_pins(candidate.plan) && take(std::move(candidate), false);
}

HETPLAN_INLINE bool ranking::keeps_pins(const plan& p) {
  const auto broken = broken_pin(p, problem_);
  if (broken && pin_.empty()) pin_ = "planner " + p.planner + " does not keep a pin: " + broken->where + ": " + broken->what;
  return !broken;
}

HETPLAN_INLINE bool ranking::out_of_steps() {
  cut_ = cut_ || budget_.spent();
  return budget_.spent();
}

HETPLAN_INLINE std::vector<ranked_plan> ranking::kept() const {
  std::vector<ranked_plan> plans;
  for (const entry& b : best_) {
    if (plans.size() < static_cast<std::size_t>(keep_)) plans.push_back(b.what);
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
  for (entry& b : best_) {
    auto& [p, e] = r.plans.emplace_back(std::move(b.what));
    if (!problem_.with_bounds) continue;
    const auto plain = [](const plan& x) { return std::ranges::all_of(x.stages, [](const stage& s) { return s.is_plain(); }); };
    if (r.plans.size() == 1 || !plain(r.plans.front().plan) || !plain(p)) {
      certify(e, p, problem_.model, problem_.cluster, problem_.cost, problem_.models.memory, problem_.lp);
    } else {  // plain plans of one job share the bound
      e.bound = r.plans.front().evaluation.bound;
      e.gap = gap_to(e.latency, e.bound);
    }
  }
  // Calls without bounds are parts of a planner, which proves infeasibility of the whole.
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
  if (!not_judged_.empty()) return not_judged_;
  if (!pin_.empty()) return pin_;
  return problem_.pinned.empty() ? "no candidate plan exists" : "no candidate plan that keeps the job's pins exists";
}

HETPLAN_INLINE std::string ranking::tried() const {
  if (count_.judged == 0) return {};
  std::string text = " (" + std::to_string(count_.judged) + (count_.judged == 1 ? " plan of " : " plans of ");
  for (std::size_t i = 0; i < planners_.size(); ++i) text += (i == 0 ? "" : ", ") + planners_[i];
  return text + " tried" + (nearest_ && count_.judged > 1 ? ", this one nearest)" : ")");
}

HETPLAN_INLINE control ranking::tell(long long total, const candidate_observer& observer) {
  count_.next(total);
  const ranked_plan* best = best_.empty() ? nullptr : &best_.front().what;
  const control answer = observer(candidate_judged{count_.judged, count_.total, best, best != nullptr && best_.front().estimated});
  stopped_ = stopped_ || answer == control::stop;
  return answer;
}

HETPLAN_INLINE std::optional<evaluation> ranking::judged(plan& p, bool quickly) {
  if (const auto size = too_large_an_expansion(p, problem_.model)) {
    if (not_judged_.empty()) {
      not_judged_ = "a plan of " + to_text(*size) + " tasks and transfers; at most " + to_text(max_expansion) + " can be simulated";
    }
    return std::nullopt;
  }
  try {
    if (quickly) {
      quick_judgement q = judge_offloaded(problem_, p);
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
  std::vector<entry> candidates;
  candidates.swap(best_);
  in_full_ = 0;
  int fitting = 0, tried = 0;
  for (entry& candidate : candidates) {
    if (!candidate.estimated) {
      ++fitting;
      static_cast<void>(take(std::move(candidate.what), false));
    } else if (fitting < keep) {
      if (budget_.spent() && (fitting > 0 || tried >= keep_)) {
        cut_ = true;
        continue;
      }
      ++tried;
      fitting += take_in_full(std::move(candidate.what.plan)) ? 1 : 0;
    }
  }
  const bool is_nearest = nearest_estimate_ && (!nearest_ || nearest_estimate_->first < nearest_->overflow());
  if (best_.empty() && is_nearest) static_cast<void>(take_in_full(std::move(nearest_estimate_->second)));
}

HETPLAN_INLINE bool ranking::take_in_full(plan&& p) {
  std::optional<evaluation> e = judged(p, false);
  return e && take({std::move(p), *std::move(e)}, false);
}

HETPLAN_INLINE bool ranking::take(ranked_plan&& candidate, bool estimated) {
  constexpr std::size_t most_near = 5;
  auto& [p, e] = candidate;
  const auto limit = find_broken_limit(e, problem_.cluster);
  if (limit && best_.empty() && (near_.size() < most_near || limit->overflow() < near_.back().first)) {
    const auto farther = [](double overflow, const auto& n) { return overflow < n.first; };
    near_.emplace(std::upper_bound(near_.begin(), near_.end(), limit->overflow(), farther), limit->overflow(), p);
    if (near_.size() > most_near) near_.pop_back();
  }
  if (!limit) {
    near_.clear();
    insert(std::move(candidate), estimated);
  } else if (estimated) {
    if (!nearest_estimate_ || limit->overflow() < nearest_estimate_->first) nearest_estimate_.emplace(limit->overflow(), std::move(p));
  } else if (!nearest_ || limit->overflow() < nearest_->overflow()) {
    nearest_ = limit;
  }
  return !limit;
}

HETPLAN_INLINE void ranking::insert(ranked_plan&& candidate, bool estimated) {
  const double score = hetplan::score(objective_, candidate.evaluation);
  if (std::isnan(score)) {
    throw invalid_model("objective: score(a plan of latency " + to_text(candidate.evaluation.latency.value()) +
                        " s) = nan; expected a number");
  }
  const auto same = [&](const entry& b) {
    if (b.score != score) return false;
    plan other = b.what.plan;
    other.planner = candidate.plan.planner;
    return other == candidate.plan;
  };
  if (std::any_of(best_.begin(), best_.end(), same)) return;
  const auto key = [](double s, const ranked_plan& x) { return std::pair(s, x.plan.stages.size()); };
  const auto at = std::find_if(best_.begin(), best_.end(), [&](const entry& b) { return key(score, candidate) < key(b.score, b.what); });
  best_.insert(at, {score, std::move(candidate), estimated});
  in_full_ += estimated ? 0 : 1;
  while (in_full_ - (best_.back().estimated ? 0 : 1) >= keep_) {
    in_full_ -= best_.back().estimated ? 0 : 1;
    best_.pop_back();
  }
}

}  // namespace hetplan
