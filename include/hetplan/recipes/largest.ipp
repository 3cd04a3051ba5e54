// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/largest.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/cost/workspace_table.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/few_blocks.hpp>
#include <hetplan/search/fit_offload.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::recipes {

namespace detail {

/// Bytes of runs of consecutive layers, in the model's order, on one device.
class packed_bytes {
 public:
  packed_bytes(const planning_problem& problem, int microbatch_size)
      : workspace_(problem.model, sequence_of(problem.model), problem.job.workload), samples_(microbatch_size) {
    const workload& w = problem.job.workload;
    const any_memory_model& memory = problem.models.memory;
    const planning_graph& model = problem.model;
    const std::vector<token_pass> shapes = shapes_of(token_passes(w, model));
    held_.push_back(0);
    movable_.push_back(0);
    activations_.assign(shapes.size(), {0});
    std::map<std::int32_t, std::size_t> last_of_group;
    for (std::size_t i = 0; i < model.size(); ++i) {
      const layer& l = model[layer_id(i)];
      const double state = checked_state(memory, l, w, 1);
      const double cache = w.mode == mode::generation ? checked_bytes(memory.cache(l, w), "cache", l) : 0;
      held_.push_back(held_.back() + state + cache * problem.job.batch);
      const bool tied = l.weight_group >= 0;  // counted once, and where the others are: left in memory here
      movable_.push_back(movable_.back() + (tied || (w.mode == mode::training && l.trainable) ? 0 : std::min(state, l.weight.value())));
      if (tied) {
        const auto [before, is_first] = last_of_group.insert({l.weight_group, i});
        if (!is_first) repeats_.push_back({before->second, i, state});
        before->second = i;
      }
      const double kept = checked_bytes(memory.activations(l, w), "activations", l) * microbatch_size;
      for (std::size_t k = 0; k < shapes.size(); ++k)
        activations_[k].push_back(activations_[k].back() + kept * (shapes[k].cached ? shapes[k].share_of(l) : 1));
    }
  }
  /// @param room  bytes of tiers, which may hold what is not trained.
  [[nodiscard]] double operator()(std::size_t first, std::size_t last, double room) const {
    double bytes = held_[last] - held_[first] - std::min(room, movable_[last] - movable_[first]), most = 0;
    for (const repeat& r : repeats_) bytes -= r.before >= first && r.layer < last ? r.state : 0;
    for (const auto& each : activations_) most = std::max(most, each[last] - each[first]);
    return bytes + most + workspace_.bytes(first, last, samples_);
  }
  [[nodiscard]] std::size_t layers() const { return held_.size() - 1; }

 private:
  /// A layer whose tensor an earlier one of its group holds, too, the latest: stages hold it once.
  struct repeat {
    std::size_t before, layer;
    double state;
  };
  std::vector<double> held_, movable_;
  std::vector<std::vector<double>> activations_;  ///< by shape of pass
  workspace_table workspace_;
  double samples_;
  std::vector<repeat> repeats_;
};

HETPLAN_INLINE std::optional<plan> packed_plan(const planning_problem& problem) {
  constexpr std::size_t most_states = std::size_t{1} << 16;
  const int size = problem.job.candidate_microbatch_sizes().front();
  const packed_bytes bytes(problem, size);
  std::vector<device_id> by_memory;
  for (const device& d : problem.cluster.devices()) by_memory.push_back(d.id);
  const auto room = [&](device_id d) {
    double below = 0;
    for (const memory_tier& t : problem.cluster[d].tiers) below += t.memory.value();
    return std::pair(memory_limit_bytes(problem.cluster[d]), below);
  };
  sort_stably(by_memory, [&](device_id a, device_id b) { return room(a) > room(b); });
  /// Returns the end of the longest run from `first` that fits.
  const auto reach = [&](std::size_t first, device_id d) {
    std::size_t low = first, high = bytes.layers();
    while (low < high) {
      const std::size_t middle = low + (high - low + 1) / 2;
      if (bytes(first, middle, room(d).second) <= room(d).first) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  // A state counts the devices taken of each class of equal memory. The more layers a set of devices holds, the more follow: a run that
  // begins later and ends at the same place holds less. So the farthest end is all that counts.
  std::vector<std::vector<device_id>> classes;
  std::vector<std::size_t> weight;
  std::size_t states = 1;
  for (const device_id d : by_memory) {
    if (classes.empty() || room(classes.back().front()) != room(d)) classes.emplace_back();
    classes.back().push_back(d);
  }
  for (const auto& c : classes) {
    weight.push_back(states);
    states *= c.size() + 1;
    if (states > most_states) break;
  }
  std::vector<std::pair<device_id, std::size_t>> stages;  // device and end
  if (states > most_states) {
    std::size_t at = 0;
    for (const device_id d : by_memory) {
      if (at == bytes.layers()) break;
      const std::size_t end = reach(at, d);
      if (end == at) continue;
      stages.emplace_back(d, at = end);
    }
    if (at < bytes.layers()) return std::nullopt;
  } else {
    struct farthest {
      std::size_t end = 0, of_class = 0;
      int devices = 0;
    };
    std::vector<farthest> best(states);
    std::optional<std::size_t> whole;
    for (std::size_t s = 1; s < states; ++s) {
      bool first = true;
      for (std::size_t k = 0; k < classes.size(); ++k) {
        const std::size_t taken = s / weight[k] % (classes[k].size() + 1);
        if (taken == 0) continue;
        const farthest& before = best[s - weight[k]];
        const std::size_t end = reach(before.end, classes[k][taken - 1]);
        if (first || end > best[s].end) best[s] = {end, k, before.devices + 1};
        first = false;
      }
      if (best[s].end == bytes.layers() && (!whole || best[s].devices < best[*whole].devices)) whole = s;
    }
    if (!whole) return std::nullopt;
    for (std::size_t s = *whole; s > 0; s -= weight[best[s].of_class]) {
      const std::size_t k = best[s].of_class, taken = s / weight[k] % (classes[k].size() + 1);
      const std::size_t begin = best[s - weight[k]].end;
      if (best[s].end > begin) stages.emplace_back(classes[k][taken - 1], best[s].end);
    }
    std::reverse(stages.begin(), stages.end());
  }
  plan p = blank_plan(problem, "packed", size);
  std::size_t at = 0;
  for (const auto& [d, end] : stages) {
    stage s{.name = "s" + std::to_string(p.stages.size())};
    for (; at < end; ++at) s.layers.push_back(layer_id(at));
    s.devices.push_back({.device = d, .samples = size});
    p.stages.push_back(std::move(s));
  }
  return p;
}

/// Returns the first limit on a time that a plan breaks; "" if it keeps all.
[[nodiscard]] HETPLAN_INLINE std::string broken_time(const qoe_target& q, const run_times& t) {
  const auto check = [](const char* name, const std::optional<seconds>& wanted, seconds taken) {
    if (!wanted || at_most(taken, *wanted)) return std::string();
    return std::string(name) + ": the best plan takes " + readable(taken) + ", which may be " + readable(*wanted);
  };
  for (std::string broken : {check("qoe.makespan", q.makespan, t.makespan), check("qoe.ttft", q.ttft, t.ttft),
                             check("qoe.time_between_tokens", q.time_between_tokens, t.between_tokens)}) {
    if (!broken.empty()) return broken;
  }
  return {};
}

/// Times of a run from those of one that makes fewer tokens, sampled from the same contexts (workload::sampled_from). The last group to
/// begin is in step; the slowest one waits once, for the prompts of the others, whatever the number of tokens.
struct whole_run {
  int tokens = 1, sampled = 1;

  [[nodiscard]] run_times operator()(const run_times& t) const {
    if (sampled >= tokens || sampled < 2) return t;
    const double steps = sampled - 1, span_s = std::max(0.0, (t.makespan - t.ttft).value()), each_s = span_s / steps;
    const double wait_s = std::max(0.0, t.between_tokens.value() * steps - span_s);
    return {t.ttft + seconds(each_s * (tokens - 1)), t.ttft, seconds(each_s + wait_s / (tokens - 1))};
  }
};

/// The objective of a job, of the whole run.
struct whole_run_objective {
  objective_of_job objective;
  whole_run whole;

  [[nodiscard]] double score(const run_times& t, joules energy) const {
    const run_times w = whole(t);
    return objective.score(w, t.makespan.value() > 0 ? energy * (w.makespan / t.makespan) : energy);
  }
};

/// The search of find_largest.
class largest_search {
 public:
  largest_search(const planning_problem& problem, growing what, const asked_planner& planner, const largest_options& options,
                 const candidate_observer& observer)
      : problem_(problem), what_(what), planner_(planner), options_(options), observer_(observer) {
    problem_.job = with_hard_limits(problem.job);
    const workload& w = problem_.job.workload;
    if (what == growing::batch) {
      // Only multiples of a given microbatch size are batches.
      const std::vector<int>& sizes = problem.job.microbatch_sizes;
      for (const int size : sizes) step_ = std::gcd(size, &size == sizes.data() ? size : step_);
      least_ = sizes.empty() ? 1 : *std::min_element(sizes.begin(), sizes.end());
    }
    const double context = most_tokens - w.prompt_tokens(problem.model.tokens_per_sample()) - w.tokens;
    most_ = std::max(least_, options.most.value_or(what == growing::batch ? 65'536 : static_cast<int>(context)));
    const qoe_target& q = problem_.job.qoe;
    steps_matter_ = q.makespan || q.time_between_tokens;
    judged_ = steps_matter_ || q.ttft || w.mode == mode::training;
    for (const device& d : problem.cluster.devices()) {
      judged_ = judged_ || d.energy_budget || d.max_busy < 1;
      sampled_ = sampled_ && !d.energy_budget;
    }
    sampled_ = sampled_ && w.mode == mode::generation && w.sampled_from == 0;
    large_ = problem.model.size() > layers_planned_whole;
  }

  [[nodiscard]] largest_found run() {
    largest_found out{.what = what_};
    if (!fits(least_)) {
      out.bound = least_;
      out.planned = final_plan(least_);
      out.planned.plans.clear();
      finish(out);
      return out;
    }
    out.bound = bound();
    if (out.bound < most_) static_cast<void>(fits(out.bound + step_));  // tells why
    int low = least_, above = least_;                                   // low fits; so may above, until a step beyond it does not
    for (long long more = step_; above < out.bound; more *= 2) {
      above = static_cast<int>(std::min<long long>(out.bound, low + more));
      if (!fits(above)) break;
      low = above;
    }
    while (above - low > step_) {
      const int middle = low + (above - low) / step_ / 2 * step_;
      (fits(middle) ? low : above) = middle;
    }
    long long left = large_ ? 0 : options_.most_tried_above;
    out.all_tried = true;
    for (int v = low + step_; v <= out.bound; v += step_) {
      if (tried_.contains(v) && !tried_.at(v).fits) continue;
      if (--left < 0 || steps_above_ <= 0) {
        out.all_tried = false;
        break;
      }
      const long long before = steps_;
      if (fits(v)) low = v;
      steps_above_ -= steps_ - before;
    }
    while (true) {
      out.planned = final_plan(low);
      if (!out.planned.plans.empty() || low == least_) break;
      tried_.at(low) = {low, false, false, "no plan keeps the limits when it is judged in full"};  // it was judged by shorter runs
      do low -= step_;
      while (low > least_ && !fits(low));
    }
    out.value = low;
    finish(out);
    return out;
  }

 private:
  [[nodiscard]] planning_problem at(int value) const {
    planning_problem p = problem_;
    if (what_ == growing::batch) p.job.batch = value;
    else p.job.workload.context = value;
    p.with_bounds = false;
    return p;
  }
  /// Returns the largest value that the memory of all devices together does not exclude.
  [[nodiscard]] int bound() const {
    int low = least_, high = least_ + (most_ - least_) / step_ * step_;
    if (!exceeds_memory(at(high))) return high;
    while (high - low > step_) {
      const int middle = low + (high - low) / step_ / 2 * step_;
      (exceeds_memory(at(middle)) ? high : low) = middle;
    }
    return low;
  }

  void finish(largest_found& out) const {
    for (const auto& [value, t] : tried_) out.tried.push_back(t);
  }

  [[nodiscard]] bool keeps(const evaluation& e) const {
    return !find_broken_limit(e, problem_.cluster) && broken_time(problem_.job.qoe, e.times()).empty();
  }

  /// Returns whether the devices hold a plan, with weights in their tiers where they must: outside training each holds the activations of
  /// one task at a time.
  [[nodiscard]] static bool has_room(const planning_problem& p, plan& x) {
    for (stage& s : x.stages) s.offload.clear();
    const std::vector<double> held = static_bytes(x, p.model, p.models.memory, p.cluster);
    evaluation e;
    e.devices.resize(p.cluster.size());
    bool fits = true;
    for (const stage& s : x.stages) {
      for (std::size_t i = 0; i < s.devices.size(); ++i) {
        const assignment& a = s.devices[i];
        const double kept = stage_share_memory(p.models.memory, p.model, s, a, x.workload, 0, s.column_of(i)).forward;
        device_evaluation& mine = e.devices[a.device.index()];
        mine.used = true;
        mine.peak_memory = std::max(mine.peak_memory, bytes(held[a.device.index()] + kept));
        fits = fits && at_most(mine.peak_memory.value(), p.cluster[a.device].usable_memory().value());
      }
    }
    if (fits || !p.cluster.has_tiers()) return fits;
    auto fitted = fit_offload(p, x, e);
    if (fitted) x = *std::move(fitted);
    return fitted.has_value();
  }

  /// Returns whether a plan breaks a limit on times in a short run from which the times of a long one follow.
  [[nodiscard]] bool seems_slow(const planning_problem& p, plan x) {
    planning_problem brief = p;
    const whole_run whole = sample(brief.job, most_tasks);
    if (!x.schedule.transfers.empty() || whole.sampled == whole.tokens) return false;
    x.workload = brief.job.workload;
    const quick_judgement q = judge_offloaded(brief, x);
    steps_ += q.steps;
    return !broken_time(problem_.job.qoe, whole(q.evaluation.times())).empty();
  }

  /// Judges a plan for a value; by memory alone where nothing else is limited.
  [[nodiscard]] bool keeps(const planning_problem& p, plan x) {
    if (x.workload != p.job.workload || x.batch() != p.job.batch) x.schedule.transfers.clear();  // they name microbatches
    x.workload = p.job.workload;
    x.microbatches = p.job.batch / x.microbatch_size;
    for (stage& s : x.stages) s.offload.clear();  // chosen anew for this value
    if (x.batch() != p.job.batch || validate(x, p)) return false;
    const bool uniform =
        x.pipelines.empty() && std::ranges::all_of(x.stages, [](const stage& s) { return s.microbatch_size == 0 && s.cuts.empty(); });
    try {
      if (!judged_ && uniform) {
        if (!has_room(p, x)) return false;
        plan brief = x;  // has as many routes as the whole run
        brief.schedule.transfers.clear();
        brief.microbatches = 1;
        for (std::vector<order_entry>& order : brief.schedule.orders)
          std::erase_if(order, [](const order_entry& e) { return e.microbatch > 0; });
        brief.workload.tokens = std::min(brief.workload.tokens, 2);
        static_cast<void>(judge(brief, p.model, p.cluster, p.cost, p.models));
      } else {
        if (seems_slow(p, x)) return false;
        const quick_judgement q = judge_offloaded(p, x);
        steps_ += q.steps;
        if (!keeps(q.evaluation)) return false;
      }
    } catch (const invalid_input&) {  // no route, or too many tasks
      return false;
    }
    known_.push_back(std::move(x));
    if (known_.size() > most_known) known_.erase(known_.begin());
    return true;
  }

  /// Returns the plan with as many microbatches of another size; nothing if that splits samples, or if the job names other sizes.
  [[nodiscard]] std::optional<plan> with_microbatch_size(plan x, int size) const {
    const std::vector<int>& named = problem_.job.microbatch_sizes;
    if (!named.empty() && std::ranges::find(named, size) == named.end()) return std::nullopt;
    for (stage& s : x.stages) {
      if (s.microbatch_size != 0) return std::nullopt;
      for (assignment& a : s.devices) {
        const long long samples = static_cast<long long>(a.samples) * size;
        if (samples % x.microbatch_size != 0) return std::nullopt;
        a.samples = static_cast<int>(samples / x.microbatch_size);
      }
    }
    x.microbatch_size = size;
    return x;
  }

  bool fits(int value) {
    const auto known = tried_.find(value);
    if (known != tried_.end()) return known->second.fits;
    tried_value t = attempt(value);
    return tried_.emplace(value, std::move(t)).first->second.fits;
  }

  [[nodiscard]] tried_value attempt(int value) {
    planning_problem p = at(value);
    try {
      static_cast<void>(p.job.candidate_microbatch_sizes());
    } catch (const invalid_input& e) {
      return {value, false, true, e.what()};
    }
    if (const auto row = exceeds_memory(p))
      return {value, false, true,
              "memory: " + row->what + ": " + readable(bytes(row->needed)) + " needed, " + readable(bytes(row->available)) + " available"};
    const auto packed_fits = [&] {
      if (p.job.workload.mode == mode::training) return false;
      auto packed = packed_plan(p);
      return packed && keeps(p, *std::move(packed));
    };
    const auto known_fits = [&] {
      const std::vector<plan> others = known_;  // grows meanwhile
      return std::any_of(others.rbegin(), others.rend(), [&](const plan& x) {
        if (p.job.batch % x.microbatch_size == 0 && keeps(p, x)) return true;
        if (p.job.batch == x.batch() || p.job.batch % x.microbatches != 0) return false;
        auto wider = with_microbatch_size(x, p.job.batch / x.microbatches);
        return wider && keeps(p, *std::move(wider));
      });
    };
    // A packing says at once whether memory suffices; it is slow, so where times matter, better plans come first.
    if (judged_ ? known_fits() || packed_fits() : packed_fits() || known_fits()) return {value, true};
    // Layers of a large model are packed one by one, a search has but its blocks.
    if (!judged_ && large_ && p.pinned.empty() && !p.cluster.has_tiers() && !p.job.split_tensors)
      return {value, false, false, "memory: no stages of consecutive layers, one a device, have room"};
    return search(std::move(p), value);
  }

  /// Samples the tokens of a job's run if it would make more than about `most` tasks. The first token is not changed by that.
  [[nodiscard]] whole_run sample(job& j, double most) const {
    workload& w = j.workload;
    const double wanted = most / (static_cast<double>(j.batch) * static_cast<double>(problem_.cluster.size()));
    const int least = steps_matter_ ? 5 : 2, tokens = w.tokens;
    if (sampled_ && wanted < tokens && least < tokens) {
      w.sampled_from = tokens;
      w.tokens = std::max(least, static_cast<int>(wanted));
    }
    return {tokens, w.tokens};
  }

  /// Returns a problem of the model's blocks; it lasts until the next call.
  [[nodiscard]] const planning_problem& in_blocks(const planning_problem& p) {
    if (!blocks_) blocks_.emplace(p, blocks_of_large_models);
    planning_problem& mine = blocks_->problem();
    std::vector<pin> pins = std::move(mine.job.pins);  // of blocks
    mine.job = p.job;
    mine.job.pins = std::move(pins);
    mine.steps = p.steps;
    return mine;
  }

  /// Returns the microbatch sizes to search with: tokens come fastest from a full pipeline of the fewest groups of sequences, about as many
  /// as the latest plan that keeps the limits has stages. The job's own if it names them; none, for all, if no size is so.
  [[nodiscard]] std::vector<int> promising_sizes(const job& j) const {
    std::vector<int> sizes = j.microbatch_sizes;
    if (!sizes.empty() || known_.empty() || !steps_matter_ || j.workload.mode != mode::generation) return sizes;
    const double even = static_cast<double>(j.batch) / static_cast<double>(known_.back().stages.size());
    for (int size = std::max(1, static_cast<int>(even / 3)); size <= std::min<double>(j.batch, 2 * even); ++size) {
      if (j.batch % size == 0) sizes.push_back(size);
    }
    return sizes;
  }

  /// Asks the planner until it has a plan that keeps the limits.
  [[nodiscard]] tried_value search(planning_problem p, int value) {
    const planning_problem given = p;
    p.steps = std::max(1LL, problem_.steps / part_of_steps);
    p.job.objective = objective_kind::latency;
    const whole_run whole = sample(p.job, large_ ? 0 : most_tasks);
    if (large_) p.job.microbatch_sizes = promising_sizes(p.job);
    // What the planner judges is short, sampled and perhaps in blocks: of plans that seem to keep the limits, each clearly better than the
    // last one, and of the best one, those are taken that keep them in full.
    bool found = false;
    double refused_s = std::numeric_limits<double>::infinity();
    const auto takes = [&](const ranked_plan& each, double share) {
      const run_times t = whole(each.evaluation.times());
      if (find_broken_limit(each.evaluation, problem_.cluster) || !broken_time(problem_.job.qoe, t).empty()) return false;
      if (t.makespan.value() >= share * refused_s) return false;
      found = keeps(given, large_ ? blocks_->expand(each.plan) : each.plan);
      if (!found) refused_s = t.makespan.value();
      return found;
    };
    const auto until = [&](const candidate_judged& c) {
      constexpr double clearly = 0.98;
      return c.best != nullptr && takes(*c.best, clearly) ? control::stop : control::go;
    };
    plan_result r = planner_(large_ ? in_blocks(p) : p, whole_run_objective{objective_of_job(p.job), whole}, 1, candidate_observer(until));
    steps_ += r.steps;
    if (found || (!r.plans.empty() && takes(r.plans.front(), 1))) return {value, true};
    std::string reason = r.status.reason;
    if (!r.plans.empty()) reason = broken_time(problem_.job.qoe, whole(r.plans.front().evaluation.times()));
    else if (!p.pinned.empty()) reason = "no plan was found that keeps the pins and the limits";  // the nearest has all on one device
    else if (r.binding) reason = to_string(*r.binding, p.cluster);
    if (reason.empty() && refused_s < std::numeric_limits<double>::infinity())
      reason = "the best plan breaks a limit when all of it is judged";
    return {value, false, r.status.result == outcome::infeasible, reason.empty() ? "no plan was found" : std::move(reason)};
  }

  /// Plans a value by the job's objective. The latest plan that the search has found competes. Plans that break a limit are left out.
  [[nodiscard]] plan_result final_plan(int value) {
    planning_problem p = at(value);
    const double questions = static_cast<double>(p.model.size() * p.cluster.size()) * p.job.batch;
    p.with_bounds = problem_.with_bounds && questions <= most_questions;
    planning_problem asked = p;
    asked.steps = std::max(1LL, problem_.steps / part_for_answer);
    asked.with_bounds = false;
    const objective_of_job objective(p.job);
    const whole_run whole = sample(asked.job, most_tasks);
    const auto counted = [this](const candidate_judged& c) { return observer_({c.judged, c.total}); };  // its plans have blocks
    const candidate_observer shown = large_ && observer_ ? candidate_observer(counted) : observer_;
    plan_result r = planner_(large_ ? in_blocks(asked) : asked, whole_run_objective{objective, whole}, options_.keep, shown);
    ranking all(p, objective, options_.keep);
    for (ranked_plan& x : r.plans) {
      if (large_) x.plan = blocks_->expand(std::move(x.plan));
      else if (x.plan.workload == p.job.workload) {
        all.know(std::move(x));
        continue;
      }
      x.plan.workload = p.job.workload;
      static_cast<void>(all.consider(std::move(x.plan), options_.keep));
    }
    if (tried_.at(value).fits && !known_.empty() && p.job.batch % known_.back().microbatch_size == 0 && keeps(p, known_.back())) {
      plan mine = known_.back();
      static_cast<void>(all.consider(std::move(mine), options_.keep));
    }
    const bool none = !all.any_fitted();
    const double before_s = r.elapsed.value();
    const long long candidates = r.candidates;
    if (!none || r.status.ok()) {
      const status how = r.status;
      r = std::move(all).result(options_.keep);
      if (!r.plans.empty()) r.status = how.result == outcome::stopped ? how : status{};
      r.candidates += candidates;
      r.elapsed += seconds(before_s);
    }
    std::erase_if(r.plans, [&](const ranked_plan& x) { return !keeps(x.evaluation); });
    return r;
  }

  static constexpr std::size_t most_known = 3;
  static constexpr int part_of_steps = 128;            ///< of the problem's, for each value that the planner is asked for
  static constexpr int part_for_answer = 32;           ///< for the answer's plan
  static constexpr double most_tasks = 20'000;         ///< of a run that is judged in full while the planner searches
  static constexpr double most_questions = 1'000'000;  ///< of bounds, for the answer to have them
  static constexpr std::size_t blocks_of_large_models = 48;

  planning_problem problem_;
  growing what_;
  const asked_planner& planner_;
  const largest_options& options_;
  const candidate_observer& observer_;
  int least_ = 0, most_ = 0, step_ = 1;
  bool judged_ = false;        ///< false: memory alone limits
  bool steps_matter_ = false;  ///< a limit on times behind the first token
  bool sampled_ = true;        ///< tokens may be sampled
  bool large_ = false;         ///< is planned in blocks
  std::optional<few_blocks> blocks_;
  std::map<int, tried_value> tried_;
  std::vector<plan> known_;  ///< plans that keep the limits of some value, the latest last
  long long steps_ = 0, steps_above_ = std::max(1LL, problem_.steps / 16);
};

}  // namespace detail

HETPLAN_INLINE std::string largest_found::limit() const {
  for (const tried_value& t : tried) {
    if ((!value || t.value > *value) && !t.fits) return t.reason;
  }
  return {};
}

HETPLAN_INLINE std::string largest_found::describe() const {
  const std::string name(to_string(what));
  const auto first = [&] { return tried.empty() ? 0 : tried.front().value; };
  if (!value) {
    const std::string least = what == growing::context ? "without a context" : "with a batch of " + std::to_string(first());
    return "none found: it does not even fit " + least + ": " + escaped(limit()) + "\n";
  }
  std::string text = "largest " + name + ": " + std::to_string(*value) + "\n";
  const auto next = std::find_if(tried.begin(), tried.end(), [&](const tried_value& t) { return t.value > *value; });
  if (next == tried.end()) return text + "  nothing limits it up to there\n";
  text += "  " + std::to_string(next->value) + " does not fit: " + escaped(next->reason) + "\n";
  if (next->value > bound) return text + "  proven: all that is larger needs more\n";
  const std::string up_to = std::to_string(next->value) + " to " + std::to_string(bound);
  if (!all_tried) return text + "  of " + up_to + " not all were tried; more than that cannot fit\n";
  return text + "  no plan was found for " + (bound > next->value ? "any of " + up_to : std::to_string(bound)) +
         "; more than that cannot fit\n";
}

HETPLAN_INLINE job with_hard_limits(job j) {
  j.objective = j.effective_objective() == objective_kind::qoe ? objective_kind::energy : j.effective_objective();
  if (j.qoe.latency) {
    const bool tokens = j.workload.mode == mode::generation && j.workload.tokens > 1;
    std::optional<seconds>& limit = tokens ? j.qoe.time_between_tokens : j.qoe.makespan;
    limit = limit ? std::min(*limit, *j.qoe.latency) : *j.qoe.latency;
    j.qoe.latency.reset();
  }
  return j;
}

HETPLAN_INLINE largest_found find_largest(const planning_problem& problem, growing what, const asked_planner& planner,
                                          const largest_options& options, const candidate_observer& observer) {
  if (what == growing::context && problem.job.workload.mode != mode::generation)
    throw invalid_input("find_largest: a context in mode " + std::string(to_string(problem.job.workload.mode)) +
                        "; expected mode generation, which has a cache");
  require_function(planner, "find_largest: planner", "a planner, such as recipes::dora");
  return detail::largest_search(problem, what, planner, options, observer).run();
}

}  // namespace hetplan::recipes
