// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/pipeline.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

HETPLAN_INLINE plan even_replicas(const planning_problem& problem, const char* planner, int size, sharding shard) {
  const int n = static_cast<int>(problem.cluster.size());
  plan p = blank_plan(problem, planner, size);
  stage s{.name = "s0", .layers = all_layers(problem.model), .shard = n > 1 ? shard : sharding::none};
  for (const device& d : problem.cluster.devices()) s.devices.push_back({d.id, size / n + (d.id.value < size % n ? 1 : 0)});
  p.stages = {std::move(s)};
  return p;
}

/// @param shard  sharding of the one stage; other than `none` only in training.
HETPLAN_INLINE plan_result replicas(const planning_problem& problem, const any_objective& objective, int keep, const char* planner,
                                    sharding shard, const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const int n = static_cast<int>(problem.cluster.size());
  const bool possible = shard == sharding::none || problem.job.workload.mode == mode::training;
  for (const int size : sizes) {
    if (!possible || size < n) continue;
    if (best.consider(even_replicas(problem, planner, size, shard), static_cast<long long>(sizes.size()), observer) == control::stop) break;
  }
  plan_result found = std::move(best).result();
  if (n > 1 && (shard == sharding::zero2 || shard == sharding::fsdp)) without_proof(found);
  if (found.candidates > 0) return found;
  const std::string why = possible
                              ? "a batch of " + std::to_string(problem.job.batch) +
                                    " samples has no microbatch of the job's sizes with one for each of " + std::to_string(n) + " devices"
                              : std::string(planner) + " shares out gradients, which only training has";
  if (found.status.result == outcome::none_found) found.status.reason = why;
  return found;
}

}  // namespace detail

HETPLAN_INLINE plan_result ddp(const planning_problem& problem, const any_objective& objective, int keep,
                               const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "ddp", sharding::none, observer);
}
HETPLAN_INLINE plan_result zero2(const planning_problem& problem, const any_objective& objective, int keep,
                                 const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "zero2", sharding::zero2, observer);
}
HETPLAN_INLINE plan_result fsdp(const planning_problem& problem, const any_objective& objective, int keep,
                                const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "fsdp", sharding::fsdp, observer);
}

HETPLAN_INLINE plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep,
                                         const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const workload& w = problem.job.workload;
  const token_passes passes(w, problem.model);
  const auto& devices = problem.cluster.devices();
  for (const int size : sizes) {
    plan p = blank_plan(problem, "data-parallel", size);
    stage s{.name = "s0", .layers = all_layers(problem.model)};
    const int in_flight = microbatches_in_flight(p, 1);  // stage of depth 1
    const int largest = std::min(size, problem.job.largest_share());
    std::vector<int> caps;
    for (const device& d : devices) {
      const double each = in_flight * stage_share_memory(problem.models.memory, problem.model, s, {d.id, 1}, w, 0).forward;
      const auto fits = [&](int samples) {
        const assignment a{d.id, samples};
        const double held = stage_static_bytes(problem.models.memory, problem.model, s, a, w, p.microbatches);
        return held + samples * each <= memory_limit_bytes(d);
      };
      int cap = 0;
      for (int more = largest; cap < more;) {
        const int half = cap + (more - cap + 1) / 2;
        if (fits(half)) cap = half;
        else more = half - 1;
      }
      caps.push_back(cap);
    }
    const auto time_s = [&](std::size_t d, int share) {
      double total = 0;
      for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
        if (what != phase::forward && w.mode != mode::training) break;
        total += stage_time_s(problem.cost, problem.model, s, {devices[d].id, share}, devices[d], what, passes);
      }
      return total;
    };
    auto shares = partition::allocate(size, caps, time_s);
    if (!shares) shares = partition::allocate(size, std::vector<int>(devices.size(), size), time_s);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if ((*shares)[d] > 0) s.devices.push_back({devices[d].id, (*shares)[d]});
    }
    p.stages = {std::move(s)};
    if (best.consider(std::move(p), static_cast<long long>(sizes.size()), observer) == control::stop) break;
  }
  return std::move(best).result();
}

HETPLAN_INLINE plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep,
                                     const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto total = static_cast<long long>(sizes.size() * problem.cluster.size());
  for (const device& d : problem.cluster.devices()) {
    for (const int size : sizes) {
      plan p = blank_plan(problem, "on-device", size);
      p.stages = {{.name = "s0", .layers = all_layers(problem.model), .devices = {{d.id, size}}}};
      if (best.consider(std::move(p), total, observer) == control::stop) return std::move(best).result();
    }
  }
  return std::move(best).result();
}

namespace detail {

/// All devices as the cluster lists them.
HETPLAN_INLINE std::vector<device_id> as_listed(const cluster& c) {
  std::vector<device_id> all;
  for (const device& d : c.devices()) all.push_back(d.id);
  return all;
}

/// All devices by the time of the forward pass of the smallest microbatch through the whole model, shortest first; ties as listed.
HETPLAN_INLINE std::vector<device_id> by_forward_time(const planning_problem& problem) {
  const stage whole{.name = "s0", .layers = all_layers(problem.model)};
  const int size = problem.job.candidate_microbatch_sizes().front();
  const token_passes passes(problem.job.workload, problem.model);
  std::vector<double> time_s;
  for (const device& d : problem.cluster.devices()) {
    time_s.push_back(stage_time_s(problem.cost, problem.model, whole, {d.id, size}, d, phase::forward, passes));
  }
  std::vector<device_id> order = as_listed(problem.cluster);
  sort_by(order, [&](device_id d) { return time_s[d.index()]; });
  return order;
}

/// For every microbatch size, order of the devices and number of stages from `fewest` on: the cut into consecutive layers whose
/// largest cost is smallest, devices in that order, within memory; 1F1B with warm-up 2 depth - 1, and where memory needs it depth,
/// then 1. Every cut is judged by the simulator, once where several orders or warm-ups give the same plan.
///
/// @param orders      of devices, of which a cut may leave some out; no order twice.
/// @param stage_cost  (table, first layer, last layer, device, microbatch size, seconds that weights in tiers add) -> cost of a stage.
/// @param cut_cost    (forward and gradient bytes per sample, device before, device behind, microbatch size) -> of a boundary.
/// Complexity         O(B O Q N^2 L^2) for B sizes, O orders, Q <= max_stages, N devices, L cut positions.
template <class StageCost, class CutCost>
[[nodiscard]] plan_result cut_chain(const planning_problem& problem, const any_objective& objective, int keep, const char* planner,
                                    const std::vector<std::vector<device_id>>& orders, int fewest, const StageCost& stage_cost,
                                    const CutCost& cut_cost, const candidate_observer& observer) {
  const int max_stages = std::max(16, fewest);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const planning_graph& model = problem.model;
  const cluster& devices = problem.cluster;
  const hetplan::job& job = problem.job;
  ranking best(problem, objective, keep);
  const auto sizes = job.candidate_microbatch_sizes();
  const int stages = std::min(max_stages, static_cast<int>(std::min(devices.size(), model.size())));
  const auto total = static_cast<long long>(sizes.size() * orders.size()) * stages;
  const bool training = job.workload.mode == mode::training, warms_up = training && job.schedule == schedule_kind::one_f_one_b;

  const layer_sequence sequence = sequence_of(model);
  const prefix_table table(model, sequence, devices, problem.cost, problem.models.memory, job.workload, sizes.back());
  const sequence_cuts cuts(model, sequence, mean_edge_shares(model, token_passes(problem.job.workload, model)));
  std::vector<double> cut_bytes;  // forward and gradient
  for (std::size_t l = 0; l < model.size(); ++l) {
    const auto [forward_bytes, gradient_bytes] = cuts.bytes_in(l, model.size());
    cut_bytes.push_back(forward_bytes + (training ? gradient_bytes : 0));
  }
  const auto positions = partition::cut_positions(cut_bytes);
  const partition::block_pins pins(sequence, problem.pinned);
  const partition::offload_table offload(model, sequence, devices, problem.cost, problem.models.memory, job.workload, table);
  std::vector<double> usable;  // memory in bytes, by device
  for (const device& d : devices.devices()) usable.push_back(d.memory_for_layers().value());
  for (const int size : sizes) {
    const plan blank = blank_plan(problem, planner, size);
    /// Returns what a stage needs of a device's memory, with so many microbatches in flight.
    const auto memory_share = [&](std::size_t first, std::size_t last, device_id d, int kept) {
      const double needed = table.state_bytes(first, last) +
                            size * (kept * table.activation_bytes(first, last) + blank.microbatches * table.cache_bytes(first, last)) +
                            table.workspace().bytes(first, last, size);
      return needed / usable[d.index()];
    };
    /// Returns the microbatches in flight by the number of stages behind.
    const auto in_flight = [&](warmup_rule rule) {
      std::vector<int> kept;
      for (int following = 0; following < stages; ++following)
        kept.push_back(microbatches_in_flight(blank, warmup_of(rule, following + 1)));
      return kept;
    };
    std::vector<std::pair<plan, bool>> judged;  // and did it fit?
    /// Judges a cut, unless it is known. Does it fit? Nothing if an observer says stop.
    const auto judge_cut = [&](const partition::chain_cut& cut, const std::vector<device_id>& order,
                               warmup_rule rule) -> std::optional<bool> {
      plan p = blank;
      for (std::size_t i = 0; i < cut.first.size(); ++i) {
        const std::size_t last = i + 1 < cut.first.size() ? cut.first[i + 1] : model.size();
        p.stages.push_back(
            {.name = "s" + std::to_string(i), .layers = sequence.layers_of(cut.first[i], last), .devices = {{order[cut.device[i]], size}}});
      }
      set_warmup(p, model, rule);
      const auto known = std::find_if(judged.begin(), judged.end(), [&](const auto& j) { return j.first == p; });
      if (known != judged.end()) return known->second;
      judged.emplace_back(p, false);
      if (best.consider(std::move(p), total, observer) == control::stop) return std::nullopt;
      return judged.back().second = best.last_fitted();
    };

    for (const std::vector<device_id>& order : orders) {
      std::vector<char> fitted(static_cast<std::size_t>(stages), 0);
      for (const warmup_rule rule : warmup_rules) {
        const std::vector<int> kept = in_flight(rule);
        const auto chains = partition::bottleneck_chain(
            positions, model.size(), order.size(), stages,
            [&](std::size_t first, std::size_t last, std::size_t d, int following) {
              const double share = memory_share(first, last, order[d], kept[static_cast<std::size_t>(following)]);
              double more_s = 0;
              if (!pins.allow(first, last, order[d])) return inf;
              if (share > 1) {
                const int degree = offload.has_tiers(order[d]) ? table.time(first, last, order[d], size).degree : 1;
                const auto more = offload.cheapest(first, last, order[d], size, degree, (share - 1) * usable[order[d].index()]);
                if (!more) return inf;
                more_s = more->total_s;
              }
              return stage_cost(table, first, last, order[d], size, more_s);
            },
            [&](std::size_t position, std::size_t from, std::size_t to) {
              return cut_cost(cut_bytes[position], order[from], order[to], size);
            });
        for (std::size_t q = static_cast<std::size_t>(fewest - 1); q < chains.size(); ++q) {
          if (fitted[q] || !chains[q].exists()) continue;
          const std::optional<bool> fits = judge_cut(chains[q], order, rule);
          if (!fits) return std::move(best).result();
          fitted[q] = *fits;
        }
        if (!warms_up) break;
      }
    }
    if (best.any_fitted()) continue;
    // Nothing fits: judge the cuts that come nearest, so that the answer says what overflows and by how much.
    const std::vector<int> kept = in_flight(warmup_rule::one);
    for (const std::vector<device_id>& order : orders) {
      const auto nearest = partition::bottleneck_chain(
          positions, model.size(), order.size(), stages,
          [&](std::size_t first, std::size_t last, std::size_t d, int following) {
            return pins.allow(first, last, order[d]) ? memory_share(first, last, order[d], kept[static_cast<std::size_t>(following)]) : inf;
          },
          [](std::size_t, std::size_t, std::size_t) { return 0.0; });
      for (std::size_t q = static_cast<std::size_t>(fewest - 1); q < nearest.size(); ++q) {
        if (nearest[q].exists() && !judge_cut(nearest[q], order, warmup_rule::one)) return std::move(best).result();
      }
    }
  }
  return std::move(best).result();
}

HETPLAN_INLINE plan_result pipeline_in(const planning_problem& problem, const any_objective& objective, int keep,
                                       const std::vector<std::vector<device_id>>& orders, const candidate_observer& observer, int fewest) {
  const std::size_t n = problem.cluster.size();
  std::vector<double> rates(n * n, 0);  // bytes per second, by sender, then receiver
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (a != b) rates[a * n + b] = problem.cluster.network().peak_bandwidth(device_id(a), device_id(b)).value();
    }
  }
  return cut_chain(
      problem, objective, keep, "pipeline", orders, fewest,
      [](const auto& table, std::size_t first, std::size_t last, device_id d, int size, double more_s) {
        return table.total_s(first, last, d, size) + more_s;
      },
      [&](double bytes_per_sample, device_id from, device_id to, int size) {
        const double rate = rates[from.index() * n + to.index()];
        return rate > 0 ? size * bytes_per_sample / rate : std::numeric_limits<double>::infinity();
      },
      observer);
}

}  // namespace detail

HETPLAN_INLINE plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep,
                                    const candidate_observer& observer) {
  std::vector<std::vector<device_id>> orders{detail::as_listed(problem.cluster)};
  if (auto by_speed = detail::by_forward_time(problem); by_speed != orders.front()) orders.push_back(std::move(by_speed));
  return detail::pipeline_in(problem, objective, keep, orders, observer);
}

HETPLAN_INLINE plan_result even_split(const planning_problem& problem, const any_objective& objective, int keep,
                                      const candidate_observer& observer) {
  std::vector<double> before{0};  // FLOP of the layers before each one
  for (const layer& l : problem.model.layers()) before.push_back(before.back() + l.forward_flops.value());
  return detail::cut_chain(
      problem, objective, keep, "even-split", {detail::as_listed(problem.cluster)}, static_cast<int>(problem.cluster.size()),
      [&](const auto&, std::size_t first, std::size_t last, device_id, int, double) { return before[last] - before[first]; },
      [](double, device_id, device_id, int) { return 0.0; }, observer);
}

}  // namespace hetplan::recipes
