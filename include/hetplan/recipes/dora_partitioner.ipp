// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_partitioner.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/search/mend_limits.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

struct members_of_blocks {
  const planning_graph* model;
  std::shared_ptr<const coarsen::blocks> blocks;

  [[nodiscard]] const std::vector<layer_id>& of(const layer& block) const { return blocks->layers[block.id.index()]; }
  template <class F>
  [[nodiscard]] bytes sum(const layer& block, const F& bytes_of) const {
    bytes all;
    for (const layer_id l : of(block)) all += bytes_of((*model)[l]);
    return all;
  }
};

/// Cache of block times by the device's properties without its name, as planners with other views query the same devices.
class block_times {
 public:
  /// Returns the seconds by block.
  [[nodiscard]] const std::vector<double>& of(const any_cost_model& asked, const members_of_blocks& members, const work_kind& k,
                                              const device& d) {
    auto& known = of_device(d);
    const auto it = std::find_if(known.begin(), known.end(), [&](const auto& row) { return row.first == k; });
    if (it != known.end()) return it->second;
    std::vector<double> row;
    for (const std::vector<layer_id>& block : members.blocks->layers) row.push_back(asked.total_s(*members.model, block, k, d));
    return known.emplace_back(k, std::move(row)).second;
  }

 private:
  using rows = std::deque<std::pair<work_kind, std::vector<double>>>;
  [[nodiscard]] rows& of_device(device d) {
    d = {.name = "",
         .kind = std::move(d.kind),
         .compute = d.compute,
         .memory_bandwidth = d.memory_bandwidth,
         .half_batch = d.half_batch,
         .launch = d.launch,
         .accelerators = d.accelerators,
         .interconnect = d.interconnect};
    const auto it = std::find_if(devices_.begin(), devices_.end(), [&](const auto& known) { return known.first == d; });
    return it != devices_.end() ? it->second : devices_.emplace_back(std::move(d), rows{}).second;
  }
  std::deque<std::pair<device, rows>> devices_;
};

struct cost_of_blocks {
  any_cost_model asked;
  members_of_blocks members;
  std::shared_ptr<block_times> times = std::make_shared<block_times>();  // remembered_cost makes one query at a time

  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const work_kind k{.phase = w.phase, .batch = w.batch, .tensor_parallel = w.tensor_parallel, .context = w.context};
    return seconds(times->of(asked, members, k, d)[w.layer.id.index()]);
  }
  void times_s(const planning_graph&, const work_kind& k, const device& d, double* by_layer) const {
    const std::vector<double>& row = times->of(asked, members, k, d);
    std::copy(row.begin(), row.end(), by_layer);
  }
  [[nodiscard]] bool times_optimizer() const { return asked.times_optimizer(); }
  [[nodiscard]] seconds optimizer_step(const layer& block, const device& d) const {
    seconds all;
    for (const layer_id l : members.of(block)) {
      if ((*members.model)[l].trainable_weight() > bytes{}) all += asked.optimizer_step((*members.model)[l], d);
    }
    return all;
  }
  [[nodiscard]] bool times_boundaries() const { return asked.times_boundaries(); }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return asked.boundary((*members.model)[members.of(before).back()], (*members.model)[members.of(after).front()], k, d);
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const {
    double least = std::numeric_limits<double>::infinity();
    for (const layer_id l : members.of(w.layer)) {
      least = std::min(least, asked.largest_batch({(*members.model)[l], w.phase, w.batch, w.tensor_parallel, w.context}, d));
    }
    return least;
  }
};

struct memory_of_blocks {
  any_memory_model asked;
  members_of_blocks members;

  [[nodiscard]] bytes state(const layer& block, const workload& w) const {
    std::set<std::int32_t> held;
    return members.sum(
        block, [&](const layer& l) { return l.weight_group < 0 || held.insert(l.weight_group).second ? asked.state(l, w) : bytes{}; });
  }
  [[nodiscard]] bytes activations(const layer& block, const workload& w) const {
    return members.sum(block, [&](const layer& l) { return asked.activations(l, w); });
  }
  [[nodiscard]] bytes cache(const layer& block, const workload& w) const {
    return members.sum(block, [&](const layer& l) { return asked.cache(l, w); });
  }
};

/// Makes blocks of a layer whose tensor other blocks hold, too, separate blocks, unless they outnumber `most`.
[[nodiscard]] HETPLAN_INLINE coarsen::blocks blocks_in_a_row(const planning_graph& model, std::size_t most) {
  std::vector<std::vector<layer_id>> row = light_blocks(model, most).blocks;
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> first_block(model.weight_groups().size(), nowhere);
  std::vector<char> spread(model.weight_groups().size(), 0);
  std::size_t tied = 0;
  const auto group_of = [&](layer_id l) { return static_cast<std::size_t>(model[l].weight_group); };
  for (std::size_t i = 0; i < row.size(); ++i) {
    for (const layer_id l : row[i]) {
      if (model[l].weight_group < 0) continue;
      std::size_t& first = first_block[group_of(l)];
      if (first == nowhere) first = i;
      spread[group_of(l)] |= first != i ? 1 : 0;
    }
  }
  const auto stands_alone = [&](layer_id l) { return model[l].weight_group >= 0 && spread[group_of(l)] != 0; };
  for (const layer& l : model.layers()) tied += stands_alone(l.id) ? 1 : 0;
  coarsen::blocks b{{}, std::vector<std::size_t>(model.size())};
  for (std::vector<layer_id>& whole : row) {
    b.layers.emplace_back();
    for (const layer_id l : whole) {
      const bool alone = tied <= most && stands_alone(l);
      if (alone && !b.layers.back().empty()) b.layers.emplace_back();
      b.layers.back().push_back(l);
      if (alone && l != whole.back()) b.layers.emplace_back();
    }
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    std::sort(b.layers[i].begin(), b.layers[i].end());
    for (const layer_id l : b.layers[i]) b.block_of[l.index()] = i;
  }
  return b;
}

/// Returns the blocks as layers with the weights to reduce and the edges to send. Times and memory come from the models above.
[[nodiscard]] HETPLAN_INLINE planning_graph model_of_blocks(const planning_graph& model, const coarsen::blocks& b) {
  planning_graph_builder g(model.name(), model.bytes_per_parameter(), model.tokens_per_sample());
  for (std::size_t i = 0; i < b.size(); ++i) {
    layer_spec block{.name = "block " + std::to_string(i), .forward_flops = flops{}};
    bytes frozen;
    std::set<std::int32_t> held;
    for (const layer_id id : b.layers[i]) {
      const layer& l = model[id];
      *block.forward_flops += l.forward_flops;
      if (l.weight_group < 0 || held.insert(l.weight_group).second) (l.trainable ? block.weight : frozen) += l.weight;
      for (const layer_profile& p : l.profiles) {  // a profiled kind has no tensor parallelism
        const auto same = [&](const layer_profile& known) { return known.device_kind == p.device_kind; };
        if (std::none_of(block.profiles.begin(), block.profiles.end(), same)) block.profiles.push_back({p.device_kind, {1}, {1}, {1}});
      }
    }
    if (block.weight == bytes{} && frozen > bytes{}) {
      block.weight = frozen;
      block.trainable = false;
    }
    if (const layer& only = model[b.layers[i].front()]; b.layers[i].size() == 1 && only.weight_group >= 0)
      block.weight_group = model.weight_groups()[static_cast<std::size_t>(only.weight_group)];
    g.add_layer(std::move(block));
  }
  struct sent {
    bytes forward, gradient;
  };
  std::map<std::pair<layer_id, std::size_t>, sent> tensors;  // by producing layer and reading block
  for (const layer_edge& e : model.edges()) {
    if (b.block_of[e.from.index()] == b.block_of[e.to.index()]) continue;
    sent& t = tensors[{e.from, b.block_of[e.to.index()]}];
    t = {std::max(t.forward, e.forward), std::max(t.gradient, e.gradient)};
  }
  std::map<std::pair<std::size_t, std::size_t>, sent> edges;
  for (const auto& [ends, t] : tensors) {
    sent& all = edges[{b.block_of[ends.first.index()], ends.second}];
    all = {all.forward + t.forward, all.gradient + t.gradient};
  }
  for (const auto& [ends, t] : edges) g.add_edge(layer_id(ends.first), layer_id(ends.second), t.forward, t.gradient);
  return std::move(g).build();
}

}  // namespace detail

HETPLAN_INLINE few_blocks::few_blocks(const planning_problem& whole, std::size_t most)
    : blocks_(std::make_shared<const coarsen::blocks>(detail::blocks_in_a_row(whole.model, most))),
      model_(detail::model_of_blocks(whole.model, *blocks_)),
      problem_(model_, whole.cluster, detail::cost_of_blocks{whole.cost, {&whole.model, blocks_}}, whole.job, whole.models, whole.lp,
               whole.steps) {
  problem_.models.memory = detail::memory_of_blocks{whole.models.memory, {&whole.model, blocks_}};
  problem_.with_bounds = false;
}

HETPLAN_INLINE plan few_blocks::expand(plan of_blocks) const { return expand_blocks(std::move(of_blocks), *blocks_); }

}  // namespace hetplan::recipes

namespace hetplan::partition {

HETPLAN_INLINE control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants,
                                           const any_objective& objective, const top_k& policy, const search_options& options, int threads,
                                           const search_taker& taker) {
  struct answer {
    search_result found;
    long long most = 0;
  };
  const auto search = [&](const search_variant& v, long long most) {
    search_options mine = options;
    mine.warmup = v.warmup;
    mine.most_extensions = most;
    return answer{two_substate_dp(tables, *v.space, v.blank, objective, policy, mine), most};
  };
  auto allowed = variants.empty() ? std::nullopt : taker.allowance();
  if (!allowed) return control::go;
  std::atomic<long long> most = *allowed;
  numbered_work side_by_side(variants.size(), threads, [&](std::size_t i) { return search(variants[i], most); });
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i > 0) allowed = taker.allowance();
    if (!allowed) break;
    most = *allowed;
    answer a = side_by_side.take(i);
    if (a.most != *allowed && a.found.counts.extended >= std::min(a.most, *allowed)) a = search(variants[i], *allowed);
    if (taker.take(a.found) == control::stop) return control::stop;
  }
  return control::go;
}

}  // namespace hetplan::partition

namespace hetplan::recipes {

HETPLAN_INLINE std::vector<decompose::any_decomposition> usual_rows() {
  return {decompose::joined_chains{}, decompose::serial_chains{}, decompose::light_row{}};
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const partitioner_options& options, const candidate_observer& observer) {
  using namespace partition;
  check_keep(keep, "dora_partitioner");
  auto sizes = problem.job.candidate_microbatch_sizes();
  polish_options polishing = options.polish;
  if (options.rows.empty()) polishing.boundaries = polish_boundaries::of_layers;
  std::vector<layer_sequence> rows;
  for (const decompose::any_decomposition& row_of : options.rows.empty() ? usual_rows() : options.rows) {
    layer_sequence row = row_of(problem.model);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(std::move(row));
  }
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  ranking best(problem, objective, std::max(keep, options.k));
  const long long expected = static_cast<long long>(sizes.size() * rows.size()) * options.k;  // estimate for progress bars
  // Judged plans, as searches under several warm-up rules and orders find plans again, also known ones under another name.
  struct judged_plan {
    plan decision;
    bool found;  ///< true if found by a search, or polished from such a plan
  };
  std::vector<judged_plan> judged;
  const auto find_judged = [&](const plan& decision) {
    return std::find_if(judged.begin(), judged.end(), [&](const judged_plan& j) {
      return j.decision.microbatch_size == decision.microbatch_size && j.decision.stages == decision.stages && j.decision == decision;
    });
  };
  const auto with_own_name = [](plan p) {
    p.planner = "dora";
    return p;
  };
  for (plan p : options.known) {
    if (!p.predicted) throw invalid_input("dora_partitioner: a known plan without a prediction; expected plans that a planner answered");
    drop_usual_warmup(p, problem.model);
    judged.push_back({with_own_name(p), false});
    best.know(std::move(p));
  }
  const auto judge_new = [&](plan p) {
    drop_usual_warmup(p, problem.model);
    plan decision = with_own_name(p);
    if (const auto same = find_judged(decision); same != judged.end()) {
      same->found = same->found || p.planner == "dora";
      return control::go;
    }
    judged.push_back({std::move(decision), p.planner == "dora"});
    return best.consider(std::move(p), expected, observer);
  };
  const auto result = [&] {
    plan_result r = std::move(best).result(keep);
    for (plan& p : r.plans) {
      plan own = with_own_name(p);
      const auto same = find_judged(own);
      if (same != judged.end() && same->found) p.planner = "dora";
    }
    return r;
  };
  const auto judge_all = [&](const std::vector<found_plan>& plans) {
    for (const found_plan& f : plans) {
      plan fitted = f.plan;  // a lowered warm-up is lowered for all stages; try also only as far as memory requires
      if (!fitted.schedule.warmup.empty()) fit_warmup(fitted, problem.model, problem.cluster, problem.models.memory);
      if (judge_new(std::move(fitted)) == control::stop || judge_new(f.plan) == control::stop) return control::stop;
    }
    return control::go;
  };
  const auto judge_found = [&](const search_result& found) {
    best.budget().spend_extensions(found.counts.extended);
    if (found.status.result == outcome::stopped) best.cut();
    return judge_all(found.plans);
  };
  // Searches that exhaust the budget leave a part of it for polishing.
  const long long for_polish = polishing.plans > 0 ? std::min(problem.steps / 4, 1LL << 40) : 0;
  const auto allowance = [&]() -> std::optional<long long> {
    if (!best.any_fitted()) return best.budget().extensions_left();
    const long long left = best.budget().extensions_left() - for_polish * extensions_per_step;
    if (left > 0) return left;
    best.cut();
    return {};
  };
  const search_taker taker{allowance, judge_found};
  // Warm-up exists only under 1F1B in training.
  const bool warms_up = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::one_f_one_b;

  for (const layer_sequence& row : rows) {
    search_options how{.plans = options.k, .max_stages = options.max_stages, .law = options.law};
    const search_tables tables(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                               problem.job.workload, problem.job.largest_share());
    std::vector<search_variant> variants;
    for (const int size : sizes) {
      for (device_space& space : options.orders(tables, size)) {
        const auto shared = std::make_shared<const device_space>(std::move(space));
        for (const warmup_rule warmup : warmup_rules) {
          variants.push_back({blank_plan(problem, "dora", size), shared, warmup});
          if (!warms_up) break;
        }
      }
    }
    if (search_side_by_side(tables, variants, steering, top_k{options.k}, how, options.threads, taker) == control::stop) return result();
    // Later sequences only for the microbatch sizes of the best plans.
    if (best.any_fitted()) {
      const auto promising = [kept = best.kept()](int b) {
        return std::any_of(kept.begin(), kept.end(), [&](const plan& p) { return p.microbatch_size == b; });
      };
      std::erase_if(sizes, [&](int b) { return !promising(b); });
      continue;
    }
    // Judge the nearest plan, so that the answer says what is missing.
    const auto space = std::make_shared<const device_space>(std::move(options.orders(tables, sizes.front()).front()));
    const search_variant whatever_it_takes{blank_plan(problem, "dora", sizes.front()), space, warmup_rule::one};
    how.keep_budgets = false;
    if (search_side_by_side(tables, {whatever_it_takes}, steering, top_k{options.k}, how, 1, taker) == control::stop) return result();
    if (auto nearest = least_overflow(tables, *space, whatever_it_takes.blank)) static_cast<void>(judge_new(*std::move(nearest)));
  }
  const auto limited = [](const device& d) { return d.energy_budget || d.max_busy < 1; };
  const bool shares_matter = std::ranges::any_of(problem.cluster.devices(), limited);
  if (best.any_fitted() ? shares_matter : !prove_infeasible(problem)) {
    const std::vector<plan> starts = best.any_fitted() ? best.kept() : best.nearest();
    mend_options how{.plans = std::max(keep, 3)};
    // Less effort if plans exist, or if memory is the only limit, which the search models exactly.
    if (best.any_fitted() || !shares_matter) how.judged = 100, how.steps = 100'000;
    for (plan& p : mend_limits(problem, objective, "dora", starts, best.budget(), how)) {
      if (judge_new(std::move(p)) == control::stop) return result();
    }
  }
  for (plan& p : polish(problem, objective, best.kept(), rows, polishing, best.budget())) {
    if (judge_new(std::move(p)) == control::stop) break;
  }
  static_cast<void>(best.out_of_steps());
  return result();
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const candidate_observer& observer) {
  return dora_partitioner(problem, objective, keep, partitioner_options{}, observer);
}

}  // namespace hetplan::recipes
