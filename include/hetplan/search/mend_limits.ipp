// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/search/mend_limits.hpp>

#include <compare>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::partition::detail {

HETPLAN_INLINE std::optional<movable_plan> movable_plan::of(plan p, const layer_sequence& s) {
  movable_plan m(std::move(p), s);
  std::size_t at = 0;
  for (const stage& st : m.plan_.stages) {
    std::size_t end = at, reached = 0;
    while (end < s.size() && reached < st.layers.size()) reached += s.blocks[end++].size();
    if (!s.is_stage(at, end)) return std::nullopt;
    std::vector<layer_id> run = s.layers_of(at, end), layers = st.layers;
    m.by_id_ = m.by_id_ && std::is_sorted(layers.begin(), layers.end());
    sort_stably(run);
    sort_stably(layers);
    if (run != layers) return std::nullopt;
    m.first_.push_back(at);
    at = end;
  }
  m.first_.push_back(at);
  if (at != s.size()) return std::nullopt;
  return m;
}

HETPLAN_INLINE std::optional<movable_plan> movable_plan::moved(std::size_t i, std::size_t to) const {
  if (!sequence_->is_stage(first_[i - 1], to) || !sequence_->is_stage(to, first_[i + 1])) return std::nullopt;
  movable_plan other = *this;
  other.first_[i] = to;
  for (const std::size_t s : {i - 1, i}) {
    auto& layers = other.plan_.stages[s].layers;
    layers = sequence_->layers_of(other.first_[s], other.first_[s + 1]);
    if (by_id_) std::sort(layers.begin(), layers.end());
  }
  return other;
}

HETPLAN_INLINE movable_plan movable_plan::swapped(std::size_t i, std::size_t j) const {
  movable_plan other = *this;
  std::swap(other.plan_.stages[i].devices, other.plan_.stages[j].devices);
  return other;
}

}  // namespace hetplan::partition::detail

namespace hetplan {

HETPLAN_INLINE void fit_degrees(plan& p, const planning_graph& model, const cluster& c) {
  for (stage& s : p.stages) {
    for (assignment& a : s.devices) {
      if (a.tensor_parallel == 1) continue;
      const std::vector<int> usable = usable_degrees(model, s.layers, c[a.device]);  // ascending, from 1
      a.tensor_parallel = *(std::upper_bound(usable.begin(), usable.end(), a.tensor_parallel) - 1);
    }
  }
}

HETPLAN_INLINE std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                        const std::vector<layer_sequence>& rows, const polish_options& options, step_budget& budget) {
  const auto same_part = [&](const assignment& x, const assignment& y) {
    return x.samples == y.samples && problem.cluster[x.device].kind == problem.cluster[y.device].kind;
  };
  const auto same_group = [&](const stage& x, const stage& y) {
    return x.recompute == y.recompute && std::equal(x.devices.begin(), x.devices.end(), y.devices.begin(), y.devices.end(), same_part);
  };
  const auto alike = [&](const plan& a, const plan& b) {
    return a.microbatch_size == b.microbatch_size &&
           std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), same_group);
  };
  std::vector<plan> chosen;
  for (const plan& p : ranked) {
    if (chosen.size() == static_cast<std::size_t>(options.plans)) break;
    if (p.schedule.kind == schedule_kind::explicit_orders || !p.schedule.transfers.empty()) continue;  // specific to its stages
    if (std::none_of(chosen.begin(), chosen.end(), [&](const plan& c) { return alike(c, p); })) chosen.push_back(p);
  }
  const bool tiers = problem.cluster.has_tiers();
  const auto judged = [&](const plan& p) {
    if (!tiers) return judge_quickly(problem, p);
    plan with_offload = p;
    return judge_offloaded(problem, with_offload);
  };
  const auto simulated = [&](const plan& p) {
    if (budget.spent() || broken_pin(p, problem)) return std::numeric_limits<double>::infinity();
    try {
      const auto [e, steps] = judged(p);
      budget.spend(steps);
      return find_broken_limit(e, problem.cluster) ? std::numeric_limits<double>::infinity() : score(objective, e);
    } catch (const missing_route&) {  // neighbours of a plan may need one
      return std::numeric_limits<double>::infinity();
    }
  };
  // Key of a moved plan: only layers (runs of ids), devices and samples differ from the chosen plan. Both rounds and similar sequences
  // revisit plans.
  const auto name_of = [](const plan& p) {
    key_parts name;
    for (const stage& s : p.stages) {
      for (std::size_t i = 0, end; i < s.layers.size(); i = end) {
        for (end = i + 1; end < s.layers.size() && s.layers[end].value == s.layers[end - 1].value + 1;) ++end;
        name.insert(name.end(), {s.layers[i], end - i});
      }
      for (const assignment& a : s.devices) name.insert(name.end(), {-1 - std::int64_t{a.device.value}, a.samples, a.tensor_parallel});
    }
    return name;
  };
  std::vector<keyed<double>> known(chosen.size());
  for (const layer_sequence& row : rows) {
    if (chosen.empty()) break;
    const layer_sequence moved = options.boundaries == polish_boundaries::of_layers ? each_layer_of(row) : row;
    const std::vector<std::size_t> light = light_boundaries(problem.model, moved);
    std::vector<std::size_t> all(moved.size() - 1);
    std::iota(all.begin(), all.end(), std::size_t{1});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto score_of = [&](plan& p) {
        fit_degrees(p, problem.model, problem.cluster);
        fit_warmup(p, problem.model, problem.cluster, problem.models.memory);
        drop_usual_warmup(p, problem.model);
        const key_parts name = name_of(p);
        const double* score = known[i].find(name);
        return score != nullptr ? *score : known[i][name] = simulated(p);
      };
      plan& p = chosen[i];
      p = partition::move_boundaries(std::move(p), moved, light, score_of, options.judged);
      p = partition::move_boundaries(std::move(p), moved, all, score_of, options.judged);
    }
  }
  return chosen;
}

HETPLAN_INLINE std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                        const std::vector<layer_sequence>& rows, const polish_options& options) {
  step_budget budget(problem.steps);
  return polish(problem, objective, ranked, rows, options, budget);
}

namespace detail {

/// The variables of a plan of one pipeline: layers in their numbering, cut into pieces, and the shares of each piece.
struct piped_shares {
  struct share {
    device_id device;
    int samples;
  };
  struct piece {
    std::size_t end = 0;
    std::vector<share> devices = {};
  };
  int size = 1;  ///< microbatch size
  std::vector<piece> pieces = {};

  [[nodiscard]] key_parts key() const {
    key_parts key{size};
    for (const piece& p : pieces) {
      key.insert(key.end(), {p.end, p.devices.size()});
      for (const share& s : p.devices) key.insert(key.end(), {s.device, s.samples});
    }
    return key;
  }
  [[nodiscard]] std::size_t begin(std::size_t i) const { return i == 0 ? 0 : pieces[i - 1].end; }
};

/// Returns nothing for several pipelines, explicit orders, own microbatch sizes of stages, or stages that are no runs of the numbering.
[[nodiscard]] HETPLAN_INLINE std::optional<piped_shares> shares_of(const plan& p) {
  if (p.pipeline_count() != 1 || p.schedule.kind == schedule_kind::explicit_orders) return {};
  piped_shares x{.size = p.microbatch_size};
  std::size_t next = 0;
  for (const stage& s : p.stages) {
    const auto [least, most] = std::minmax_element(s.layers.begin(), s.layers.end());
    if (p.size_of(s) != p.microbatch_size || least->index() != next || most->index() + 1 != next + s.layers.size()) return {};
    next += s.layers.size();
    piped_shares::piece piece{.end = next};
    for (const assignment& a : s.devices) piece.devices.push_back({a.device, a.samples});
    x.pieces.push_back(std::move(piece));
  }
  return x;
}

/// Neighbours in one move of samples, boundaries or devices. Those that change the load of `worst` come first.
class share_moves {
 public:
  share_moves(const piped_shares& from, std::size_t devices, std::optional<device_id> worst)
      : from_(from), idle_(devices, 1), worst_(worst) {
    for (const auto& piece : from.pieces) {
      for (const auto& s : piece.devices) idle_[s.device.index()] = 0;
    }
    for (std::size_t i = 0; i < from.pieces.size(); ++i) {
      move_samples(i);
      if (i > 0) move_boundary(i);
      for (std::size_t j = i + 1; j < from.pieces.size(); ++j) trade(i, j);
      if (i > 0) join(i);
      part(i);
    }
  }
  [[nodiscard]] std::vector<piped_shares> take() && {
    first_.insert(first_.end(), std::make_move_iterator(rest_.begin()), std::make_move_iterator(rest_.end()));
    return std::move(first_);
  }

 private:
  static constexpr std::size_t most = 4000;

  void offer(piped_shares to, bool touches) {
    if (first_.size() + rest_.size() < most) (touches ? first_ : rest_).push_back(std::move(to));
  }
  [[nodiscard]] bool is_worst(device_id d) const { return worst_ == d; }
  [[nodiscard]] bool has_worst(std::size_t i) const {
    const auto& devices = from_.pieces[i].devices;
    return std::any_of(devices.begin(), devices.end(), [&](const auto& s) { return is_worst(s.device); });
  }

  void move_samples(std::size_t i) {
    const auto& devices = from_.pieces[i].devices;
    for (std::size_t a = 0; a < devices.size(); ++a) {
      const int all = devices[a].samples;
      for (int before = 0; const int k : {1, all / 2, all}) {
        if (k <= before) continue;
        before = k;
        for (std::size_t b = 0; b < devices.size(); ++b) {
          if (a == b) continue;
          piped_shares to = from_;
          auto& there = to.pieces[i].devices;
          there[b].samples += k;
          there[a].samples -= k;
          if (k == all) there.erase(there.begin() + static_cast<std::ptrdiff_t>(a));
          offer(std::move(to), has_worst(i));
        }
        for (std::size_t d = 0; d < idle_.size(); ++d) {
          if (idle_[d] == 0) continue;
          piped_shares to = from_;
          auto& there = to.pieces[i].devices;
          there[a].samples -= k;
          if (k == all) there[a] = {device_id(d), k};
          else there.push_back({device_id(d), k});
          offer(std::move(to), has_worst(i));
        }
      }
    }
  }
  /// Moves the boundary before piece i by one layer and by half of the shrinking piece.
  void move_boundary(std::size_t i) {
    const std::size_t begin = from_.begin(i - 1), at = from_.begin(i), end = from_.pieces[i].end;
    for (const std::size_t to : {at - 1, at + 1, begin + (at - begin) / 2, at + (end - at) / 2}) {
      if (to <= begin || to >= end || to == at) continue;
      piped_shares moved = from_;
      moved.pieces[i - 1].end = to;
      offer(std::move(moved), has_worst(i - 1) || has_worst(i));
    }
  }
  void trade(std::size_t i, std::size_t j) {
    piped_shares to = from_;
    std::swap(to.pieces[i].devices, to.pieces[j].devices);
    offer(std::move(to), has_worst(i) || has_worst(j));
    for (std::size_t a = 0; a < from_.pieces[i].devices.size(); ++a) {
      for (std::size_t b = 0; b < from_.pieces[j].devices.size(); ++b) {
        to = from_;
        std::swap(to.pieces[i].devices[a].device, to.pieces[j].devices[b].device);
        offer(std::move(to), is_worst(from_.pieces[i].devices[a].device) || is_worst(from_.pieces[j].devices[b].device));
      }
    }
  }
  /// Merges piece i with the one before it, on the devices of either.
  void join(std::size_t i) {
    for (const std::size_t who : {i - 1, i}) {
      piped_shares to = from_;
      to.pieces[i].devices = from_.pieces[who].devices;
      to.pieces.erase(to.pieces.begin() + static_cast<std::ptrdiff_t>(i - 1));
      offer(std::move(to), has_worst(i - 1) || has_worst(i));
    }
  }
  /// Splits piece i in the middle, with one half on an idle device or on one of several devices of its own.
  void part(std::size_t i) {
    const std::size_t begin = from_.begin(i), end = from_.pieces[i].end;
    if (end - begin < 2) return;
    const auto halves = [&](std::vector<piped_shares::share> one, std::vector<piped_shares::share> two) {
      piped_shares to = from_;
      to.pieces[i].devices = std::move(two);
      to.pieces.insert(to.pieces.begin() + static_cast<std::ptrdiff_t>(i), {begin + (end - begin) / 2, std::move(one)});
      offer(std::move(to), has_worst(i));
    };
    const auto& devices = from_.pieces[i].devices;
    for (std::size_t d = 0; d < idle_.size(); ++d) {
      if (idle_[d] == 0) continue;
      halves({{device_id(d), from_.size}}, devices);
      halves(devices, {{device_id(d), from_.size}});
    }
    for (std::size_t a = 0; a < devices.size() && devices.size() > 1; ++a) {
      auto others = devices;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(a));
      others.front().samples += devices[a].samples;
      halves({{devices[a].device, from_.size}}, others);
      halves(others, {{devices[a].device, from_.size}});
    }
  }

  const piped_shares& from_;
  std::vector<char> idle_;
  std::optional<device_id> worst_;
  std::vector<piped_shares> first_ = {}, rest_ = {};
};

/// Judge of plans with a cache, and the best plans within the limits.
class mending {
 public:
  mending(const planning_problem& problem, const any_objective& objective, const char* planner, step_budget& budget, const mend_options& o)
      : problem_(problem), objective_(objective), planner_(planner), budget_(budget), options_(o) {}

  struct verdict {
    double too_much = std::numeric_limits<double>::infinity();  ///< total excess over all limits
    double score = std::numeric_limits<double>::infinity();
    std::optional<device_id> worst = {};

    [[nodiscard]] bool better(const verdict& than) const { return std::pair(too_much, score) < std::pair(than.too_much, than.score); }
  };

  [[nodiscard]] bool spent() const { return budget_.spent() || used_ >= options_.steps; }
  [[nodiscard]] bool half_spent() const { return budget_.spent() || used_ >= options_.steps / 2; }
  [[nodiscard]] bool any() const { return !found_.empty(); }

  verdict judge(plan p) {
    verdict v;
    if (too_large_an_expansion(p, problem_.model)) return v;
    fit_warmup(p, problem_.model, problem_.cluster, problem_.models.memory);
    drop_usual_warmup(p, problem_.model);
    return judge_as_is(std::move(p));
  }
  verdict judge_as_is(plan p) {
    verdict v;
    if (broken_pin(p, problem_)) return v;
    try {
      const auto [e, steps] = judge_offloaded(problem_, p);
      used_ += steps;
      budget_.spend(steps);
      v.too_much = total_overflow(e, problem_.cluster);
      v.score = hetplan::score(objective_, e);
      if (const auto limit = find_broken_limit(e, problem_.cluster)) v.worst = limit->device;
      else keep(std::move(p), v.score);
    } catch (const missing_route&) {
    }
    return v;
  }
  [[nodiscard]] plan plan_of(const piped_shares& x) const {
    plan p = blank_plan(problem_, planner_, x.size);
    for (std::size_t i = 0; i < x.pieces.size(); ++i) {
      stage s{.name = "s" + std::to_string(i)};
      for (std::size_t l = x.begin(i); l < x.pieces[i].end; ++l) s.layers.emplace_back(l);
      for (const auto& [d, samples] : x.pieces[i].devices) s.devices.push_back({d, samples, problem_.cluster[d].accelerators});
      p.stages.push_back(std::move(s));
    }
    fit_degrees(p, problem_.model, problem_.cluster);
    return p;
  }
  void climb(piped_shares at) {
    if (!seen_.insert(at.key())) return;
    verdict here = judge(plan_of(at));
    for (int judged = 1; judged < options_.judged && !half_spent();) {
      bool moved = false;
      for (piped_shares& next : share_moves(at, problem_.cluster.size(), here.worst).take()) {
        if (judged >= options_.judged || half_spent()) break;
        if (!seen_.insert(next.key())) continue;
        ++judged;
        const verdict there = judge(plan_of(next));
        if (!there.better(here)) continue;
        here = there;
        at = std::move(next);
        moved = true;
        break;
      }
      if (!moved) break;
    }
    if (!nearest_ || here.better(nearest_->first)) nearest_.emplace(here, std::move(at));
  }
  /// Climbs again from plans a few moves away from the nearest one, until a plan keeps the limits.
  void climb_again() {
    std::uint64_t state = 0;
    for (int round = 0; nearest_ && found_.empty() && !half_spent() && round < 1000; ++round) {
      piped_shares from = nearest_->second;
      for (int i = 0; i < 2 + round % 4; ++i) {
        auto moves = share_moves(from, problem_.cluster.size(), {}).take();
        if (moves.empty()) return;
        state = state * 6364136223846793005U + 1442695040888963407U;  // linear congruential generator
        from = std::move(moves[(state >> 33) % moves.size()]);
      }
      climb(std::move(from));
    }
  }
  [[nodiscard]] std::vector<plan> take() && {
    std::vector<plan> plans;
    for (auto& [score, p] : found_) plans.push_back(std::move(p));
    return plans;
  }

 private:
  void keep(plan p, double score) {
    const auto at = std::find_if(found_.begin(), found_.end(), [&](const auto& f) { return score < f.first; });
    if (at == found_.end() && found_.size() == static_cast<std::size_t>(options_.plans)) return;
    found_.emplace(at, score, std::move(p));
    if (found_.size() > static_cast<std::size_t>(options_.plans)) found_.pop_back();
  }

  const planning_problem& problem_;
  const any_objective& objective_;
  const char* planner_;
  step_budget& budget_;
  const mend_options& options_;
  long long used_ = 0;
  key_index seen_ = {};
  std::optional<std::pair<verdict, piped_shares>> nearest_ = {};  ///< best end of a climb
  std::vector<std::pair<double, plan>> found_ = {};
};

/// Returns the whole model on each device alone and on all devices, for every microbatch size.
[[nodiscard]] HETPLAN_INLINE std::vector<piped_shares> simple_shares(const planning_problem& problem) {
  std::vector<piped_shares> all;
  const std::size_t layers = problem.model.size();
  const int devices = static_cast<int>(problem.cluster.size());
  for (const int size : problem.job.candidate_microbatch_sizes()) {
    piped_shares even{.size = size, .pieces = {{.end = layers}}};
    for (const device& d : problem.cluster.devices()) {
      all.push_back({.size = size, .pieces = {{.end = layers, .devices = {{d.id, size}}}}});
      const int share = size / devices + (static_cast<int>(d.id.index()) < size % devices ? 1 : 0);
      if (share > 0) even.pieces.front().devices.push_back({d.id, share});
    }
    if (even.pieces.front().devices.size() > 1) all.push_back(std::move(even));
  }
  return all;
}

}  // namespace detail

HETPLAN_INLINE std::vector<plan> mend_limits(const planning_problem& problem, const any_objective& objective, const char* planner,
                                             const std::vector<plan>& starts, step_budget& budget, const mend_options& options) {
  detail::mending m(problem, objective, planner, budget, options);
  std::vector<detail::piped_shares> from;
  for (const plan& p : starts) {
    if (auto shares = detail::shares_of(p)) from.push_back(*std::move(shares));
  }
  for (auto& simple : detail::simple_shares(problem)) from.push_back(std::move(simple));
  for (auto& start : from) {
    if (m.half_spent()) break;
    m.climb(std::move(start));
  }
  m.climb_again();
  const bool small = problem.cluster.size() <= partition::max_space_devices && problem.model.size() <= partition::max_space_blocks;
  if (m.any() || !options.small_space || !small) return std::move(m).take();
  const layer_sequence row = sequence_of(problem.model);
  // Most plans that are tried do not fit, or break a pin, and are not judged. With pins more than a few find nothing: devices that return
  // are not among them.
  const long long most_tried = options.steps / 20 / (problem.pinned.empty() ? 1 : static_cast<long long>(row.size()));
  for (const warmup_rule rule : warmup_rules) {
    for (const int size : problem.job.candidate_microbatch_sizes()) {
      if (m.spent()) break;
      partition::for_each_plan(row, problem.model, problem.cluster, problem.cost, problem.models.memory, blank_plan(problem, planner, size),
                               {.warmup = rule, .all_shares = true, .largest_share = problem.job.largest_share(), .most_tried = most_tried},
                               [&](const plan& p) {
                                 static_cast<void>(m.judge_as_is(p));
                                 return m.spent() ? control::stop : control::go;
                               });
    }
    if (problem.job.workload.mode != mode::training || problem.job.schedule != schedule_kind::one_f_one_b) break;
  }
  return std::move(m).take();
}

}  // namespace hetplan
