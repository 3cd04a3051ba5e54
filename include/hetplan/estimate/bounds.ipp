// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/estimate/bounds.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan {

namespace detail {

/// Returns true if a row exceeds its limit by more than rounding (sums differ by their order) and the tolerance of limits.
[[nodiscard]] inline bool excludes(const infeasibility_proof::row& r) { return r.needed > r.available * (1 + 10 * limit_tolerance); }

/// Returns the bytes of all tiers of a device.
[[nodiscard]] HETPLAN_INLINE double tiers_of(const device& d) {
  double total = 0;
  for (const memory_tier& t : d.tiers) total += t.memory.value();
  return total;
}

/// May a layer's weights lie below the devices' memory?
[[nodiscard]] HETPLAN_INLINE bool may_lie_below(const layer& l, const workload& w) {
  return w.mode != mode::training || !l.trainable || l.weight.value() == 0;
}

/// Least memory that devices need for a layer, in bytes.
struct least_holding {
  layer_id layer;
  double state = 0;            ///< all devices that run it together, with any sharding of the optimizer state
  bool may_lie_below = false;  ///< true: the state may lie in a tier, where it is the bare weights
  double alone = 0;            ///< one of these devices, with the activations and the cache of one sample
  double activations = 0, cache = 0;
};

[[nodiscard]] HETPLAN_INLINE std::vector<least_holding> least_holdings(const planning_problem& problem) {
  const workload& w = problem.job.workload;
  const any_memory_model& memory = problem.models.memory;
  std::vector<least_holding> all;
  const int shards = w.mode == mode::training && memory.has_optimizer_state() ? static_cast<int>(problem.cluster.size()) : 1;
  const std::vector<token_pass> shapes = shapes_of(token_passes(w, problem.model));
  const auto devices = problem.cluster.devices();
  const bool tiers = std::any_of(devices.begin(), devices.end(), [](const device& d) { return !d.tiers.empty(); });
  for (const layer& l : problem.model.layers()) {
    least_holding x{.layer = l.id, .state = checked_state(memory, l, w, 1), .may_lie_below = tiers && may_lie_below(l, w)};
    if (x.may_lie_below) x.state = std::min(x.state, l.weight.value());
    double share = 0;
    for (const token_pass& shape : shapes) share = std::max(share, shape.cached ? shape.share_of(l) : 1.0);
    x.activations = share * checked_bytes(memory.activations(l, w), "activations", l);
    if (w.mode == mode::generation) x.cache = checked_bytes(memory.cache(l, w), "cache", l);
    x.alone = (shards > 1 && !x.may_lie_below ? checked_state(memory, l, w, shards) : x.state) + x.activations + x.cache;
    all.push_back(x);
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE std::string count_of(std::size_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

/// Returns the memory row of a layer that fits on no device, else of all layers on all devices if they exceed them, else of the k
/// largest devices with the worst ratio: layers that fit only on the k largest devices lie on those.
[[nodiscard]] HETPLAN_INLINE infeasibility_proof::row memory_row(const planning_problem& problem, std::vector<least_holding> layers) {
  constexpr double most = std::numeric_limits<double>::max();
  std::vector<device_id> devices;
  for (const device& d : problem.cluster.devices()) devices.push_back(d.id);
  const auto usable = [&](device_id d) { return problem.cluster[d].memory_for_layers().value() + tiers_of(problem.cluster[d]); };
  sort_stably(devices, [&](device_id a, device_id b) { return usable(a) > usable(b); });
  sort_stably(layers, [](const least_holding& a, const least_holding& b) { return a.alone > b.alone; });
  const least_holding& largest = layers.front();
  infeasibility_proof::row worst{"bytes of layer \"" + problem.model[largest.layer].name + "\" with one sample, on " +
                                     problem.cluster[devices.front()].name + ", which has most memory",
                                 std::min(most, largest.alone), usable(devices.front())};
  if (excludes(worst)) return worst;
  if (std::any_of(layers.begin(), layers.end(), [](const least_holding& l) { return l.may_lie_below; })) {
    infeasibility_proof::row kept{"bytes that no tier may hold: caches, activations and what is trained, on all devices together"};
    key_index trained;
    double activations = 0;
    for (const least_holding& l : layers) {
      const std::int32_t group = problem.model[l.layer].weight_group;
      if (!l.may_lie_below && (group < 0 || trained.insert({group}))) kept.needed += l.state;
      kept.needed += l.cache * problem.job.batch;
      activations = std::max(activations, l.activations);
    }
    kept.needed = std::min(most, kept.needed + activations);
    for (const device_id d : devices) kept.available += problem.cluster[d].memory_for_layers().value();
    if (excludes(kept)) return kept;
  }
  for (const device_id d : devices) {
    infeasibility_proof::row mine{"bytes of the layers that are pinned to " + problem.cluster[d].name, 0, usable(d)};
    key_index held;
    double activations = 0;
    for (const least_holding& l : layers) {
      if (problem.pinned.empty() || problem.pinned[l.layer.index()] != d) continue;
      const std::int32_t group = problem.model[l.layer].weight_group;
      if (group < 0 || held.insert({group})) mine.needed += l.state;
      mine.needed += l.cache * problem.job.batch;
      activations = std::max(activations, l.activations);
    }
    mine.needed = std::min(most, mine.needed + activations);
    if (excludes(mine)) return mine;
  }
  const auto pressure = [](double needed, double available) { return available > 0 ? needed / available : needed > 0 ? most : 0; };
  double needed = 0, activations = 0, available = 0;
  key_index groups;
  std::size_t next = 0;
  for (std::size_t k = 1; k <= devices.size(); ++k) {
    available += usable(devices[k - 1]);
    const bool all = k == devices.size();
    const double elsewhere = all ? 0 : usable(devices[k]) * (1 + 10 * limit_tolerance);
    for (; next < layers.size() && (all || layers[next].alone > elsewhere); ++next) {
      const least_holding& l = layers[next];
      const std::int32_t group = problem.model[l.layer].weight_group;
      if (group < 0 || groups.insert({group})) needed += l.state;
      needed += l.cache * problem.job.batch;
      activations = std::max(activations, l.activations);
    }
    const bool told = all && excludes({"", needed + activations, available});
    if (!told && (next == 0 || !(pressure(needed + activations, available) > pressure(worst.needed, worst.available)))) continue;
    const std::string which = all ? "all layers" : count_of(next, "layer") + " that only " + (k == 1 ? "it" : "they") + " might hold";
    const std::string where = all ? "all devices together" : "the " + count_of(k, "device") + " with most memory";
    worst = {"bytes of " + which + ", each tensor once" +
                 (problem.job.workload.mode == mode::generation ? ", with the caches of the batch" : "") + ", on " + where,
             std::min(most, needed + activations), std::min(most, available)};
  }
  return worst;
}

/// Returns the most seconds that a device may work within its energy budget in a run of at least `least_s`; infinite without a budget.
[[nodiscard]] HETPLAN_INLINE double most_work_s(const planning_problem& problem, const device& d, double least_s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (!d.energy_budget) return inf;
  const auto allowed = [&](double busy_s) {
    device_usage least{.total = seconds(std::max(least_s, busy_s / d.max_busy)), .busy = seconds(busy_s)};
    const auto fits = [&] { return problem.models.energy.energy(least, d).value() <= d.energy_budget->value() * (1 + limit_tolerance); };
    if (fits() || !d.power.tells_memory()) return fits();
    least.memory_bound = least.busy;  // how much of the work is, no plan says yet
    return fits();
  };
  if (!(least_s > 0) || !allowed(0)) return least_s > 0 ? 0 : inf;
  double low = 0, high = least_s;  // `low` is allowed, `high` is not
  for (; allowed(high); high *= 2) {
    if (high > 1e15) return inf;
    low = high;
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = low + (high - low) / 2;
    (allowed(middle) ? low : high) = middle;
  }
  return high;
}

/// Layers with equal times on all devices, merged into one.
struct work_class {
  layer_id example;
  double count = 0;
  std::vector<double> time_s;  ///< by device, whole batch; infinite where one sample exceeds memory or energy budget
};

/// Returns weights on the devices that maximise the relative excess of work: a solver's duals, or 1 / `most_s` without them.
[[nodiscard]] HETPLAN_INLINE std::vector<double> work_weights(const std::vector<work_class>& classes, const std::vector<double>& most_s,
                                                              const any_lp_solver& solver) {
  constexpr double most_terms = 20'000;
  std::vector<double> equal;
  for (const double s : most_s) equal.push_back(s > 0 ? 1 / s : 0);
  if (static_cast<double>(classes.size() * most_s.size()) > most_terms) return equal;
  lp_problem p;
  const int fullest = p.add_column(1);
  std::vector<lp_problem::row> load(most_s.size());
  for (lp_problem::row& row : load) {
    row.upper = 0;
    row.terms.emplace_back(fullest, -1);
  }
  for (const work_class& k : classes) {
    lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
    for (std::size_t d = 0; d < most_s.size(); ++d) {
      if (!std::isfinite(k.time_s[d])) continue;
      const int x = p.add_column(0);
      whole.terms.emplace_back(x, 1);
      load[d].terms.emplace_back(x, k.count * k.time_s[d] / most_s[d]);
    }
    p.rows.push_back(std::move(whole));
  }
  for (lp_problem::row& row : load) p.rows.push_back(std::move(row));
  const lp_solution s = solver.solve(p);
  if (s.row_duals.size() != p.rows.size()) return equal;
  std::vector<double> weights;
  for (std::size_t d = 0; d < most_s.size(); ++d) {
    const double share = -s.row_duals[classes.size() + d];
    weights.push_back(most_s[d] > 0 && share > 0 && std::isfinite(share) ? share / most_s[d] : 0);
  }
  return weights;
}

/// Returns the row of the weights: every layer at its least weighted time, against the weighted `most_s`.
[[nodiscard]] HETPLAN_INLINE infeasibility_proof::row work_row(const planning_problem& problem, const std::vector<work_class>& classes,
                                                               const std::vector<double>& most_s, std::vector<double> weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (!(largest > 0)) return {};
  for (double& x : weights) x /= largest;
  infeasibility_proof::row r{"seconds of all work within the energy budgets, each layer where it counts least:"};
  for (std::size_t d = 0; d < most_s.size(); ++d) {
    if (!(weights[d] > 0)) continue;
    r.available += weights[d] * most_s[d];
    if (most_s.size() <= 8) {
      r.what += (r.available > weights[d] * most_s[d] ? ", " : " ") + format_line("%.6g x those of ", weights[d]) +
                problem.cluster[device_id(d)].name + format_line(", at most %.6g", most_s[d]);
    }
  }
  for (const work_class& k : classes) {
    double least = std::numeric_limits<double>::max();
    for (std::size_t d = 0; d < most_s.size(); ++d) {
      if (std::isfinite(k.time_s[d])) least = std::min(least, weights[d] * k.time_s[d]);
    }
    r.needed = std::min(std::numeric_limits<double>::max(), r.needed + k.count * least);
  }
  return r;
}

[[nodiscard]] HETPLAN_INLINE std::optional<infeasibility_proof::row> energy_row(const planning_problem& problem,
                                                                                const std::vector<least_holding>& layers) {
  const auto devices = problem.cluster.devices();
  if (std::none_of(devices.begin(), devices.end(), [](const device& d) { return d.energy_budget.has_value(); })) return {};
  const auto has_room = [&](const least_holding& l, const device& d) {
    const double room = d.memory_for_layers().value() * (1 + 10 * limit_tolerance);
    return l.alone <= room || (l.may_lie_below && !d.tiers.empty() && l.activations + l.cache <= room);
  };
  for (const device& d : devices) {
    if (!d.energy_budget && std::all_of(layers.begin(), layers.end(), [&](const least_holding& l) { return has_room(l, d); })) return {};
  }
  const workload& w = problem.job.workload;
  const layer_minima least = minimal_times(problem.model, problem.cluster, problem.cost, w, problem.job.batch);
  const double run_s = path_bound(problem.model, least, w.mode).value();
  std::vector<double> most_s;
  for (const device& d : devices) most_s.push_back(most_work_s(problem, d, run_s));
  keyed<work_class> merged;  // by time_s
  for (const least_holding& l : layers) {
    std::vector<double> time_s;
    bool anywhere = false;
    infeasibility_proof::row one;
    for (const device& d : devices) {
      const std::vector<double>& busy_s = least.busy_per_sample_s.empty() ? least.per_sample_s : least.busy_per_sample_s;
      const double sample_s = busy_s[l.layer.index() * devices.size() + d.id.index()];
      const double allowed = most_s[d.id.index()];
      const bool may = has_room(l, d) && sample_s <= allowed * (1 + 10 * limit_tolerance);
      if (may && std::isinf(allowed)) anywhere = true, time_s.push_back(0);  // free, whatever the weights
      else if (may && allowed > 0) anywhere = true, time_s.push_back(sample_s * problem.job.batch);
      else if (may) return {};  // zero time within a zero limit: no weight helps
      else time_s.push_back(std::numeric_limits<double>::infinity());
      if (!may && has_room(l, d) && (one.what.empty() || sample_s * one.available < one.needed * allowed)) {
        one = {"seconds of one sample of layer \"" + problem.model[l.layer].name + "\" on " + d.name + " within its energy budget",
               sample_s, allowed};
      }
    }
    if (!anywhere) return one.what.empty() ? std::optional<infeasibility_proof::row>() : one;
    work_class& k = merged[parts_of(time_s)];
    if (k.count == 0) k.example = l.layer, k.time_s = std::move(time_s);
    k.count += 1;
  }
  std::vector<work_class> classes;
  for (const std::size_t i : merged.keys().in_order()) {
    work_class& k = merged.values()[i];
    const bool free = std::any_of(k.time_s.begin(), k.time_s.end(), [](double t) { return t == 0; });
    if (!free) classes.push_back(std::move(k));
  }
  for (double& s : most_s) s = std::isinf(s) ? 0 : s;  // no remaining layer may run on these devices
  if (classes.empty()) return {};
  return work_row(problem, classes, most_s, work_weights(classes, most_s, problem.lp));
}

}  // namespace detail

namespace detail {

/// Returns a row if the cluster's only device, which never waits, has a busy-share limit.
[[nodiscard]] HETPLAN_INLINE std::optional<infeasibility_proof::row> busy_row(const planning_problem& problem) {
  const device& only = problem.cluster.devices().front();
  if (problem.cluster.size() > 1 || only.max_busy >= 1) return {};
  const workload& w = problem.job.workload;
  const layer_minima least = minimal_times(problem.model, problem.cluster, problem.cost, w, problem.job.batch);
  if (!(path_bound(problem.model, least, w.mode).value() > 0)) return {};
  return infeasibility_proof::row{"busy share of " + only.name + ", which has nobody to wait for", 1, only.max_busy};
}

}  // namespace detail

HETPLAN_INLINE std::optional<infeasibility_proof::row> exceeds_memory(const planning_problem& problem) {
  std::vector<detail::least_holding> layers = detail::least_holdings(problem);
  if (problem.job.split_tensors) {  // no device need hold a whole layer
    for (detail::least_holding& l : layers) l.alone = l.activations = 0;
  }
  infeasibility_proof::row row = detail::memory_row(problem, std::move(layers));
  if (!detail::excludes(row)) return std::nullopt;
  return row;
}

HETPLAN_INLINE std::optional<infeasibility_proof> prove_infeasible(const planning_problem& problem) {
  const std::vector<detail::least_holding> layers = detail::least_holdings(problem);
  infeasibility_proof proof{
      .of =
          "plans of any cut, orders, shares and degrees, with or without recomputation and shared-out optimizer state, in "
          "which each device holds the whole weights of its layers"};
  if (const auto row = detail::memory_row(problem, layers); detail::excludes(row)) {
    proof.rows.push_back(row);
  } else if (const auto busy = detail::busy_row(problem); busy && detail::excludes(*busy)) {
    proof.rows.push_back(*busy);
  } else if (const auto work = detail::energy_row(problem, layers); work && detail::excludes(*work)) {
    proof.rows.push_back(*work);
  }
  return proof.rows.empty() ? std::nullopt : std::optional(std::move(proof));
}

namespace detail {

/// Layers with equal times and memory, merged into one with a multiplicity, which leaves the LP's value unchanged.
struct layer_class {
  double count = 0;
  std::vector<double> time_s;        ///< by device, whole batch
  double bytes = 0;                  ///< on a device that runs the whole layer
  std::vector<double> below_s = {};  ///< with weights in tiers: infinite where none may; empty if no device has tiers
  double kept = 0, below = 0;        ///< bytes then: in the device's memory, and in its tiers
};

/// Prices of a Lagrangian relaxation by device: of seconds, of bytes, and of bytes in tiers.
struct multipliers {
  std::vector<double> seconds, bytes, below;
};

[[nodiscard]] HETPLAN_INLINE std::vector<layer_class> layer_classes(const planning_graph& model, const layer_minima& m,
                                                                    const any_memory_model& memory, const workload& w, double batch,
                                                                    int shards) {
  std::vector<double> group_size(model.weight_groups().size(), 0);
  for (const layer& l : model.layers()) {
    if (l.weight_group >= 0) group_size[static_cast<std::size_t>(l.weight_group)] += 1;
  }
  keyed<layer_class> merged;  // by bytes and time_s
  for (const layer& l : model.layers()) {
    const auto row = std::span(m.per_sample_s).subspan(l.id.index() * m.devices, m.devices);
    // A shared tensor counts at least at the average of its layers' fractions. A shard of the optimizer state is held whole, however
    // small the fraction, so it counts at its least size over all numbers of devices.
    double held = checked_state(memory, l, w, shards) / (l.weight_group >= 0 ? group_size[static_cast<std::size_t>(l.weight_group)] : 1);
    const double cache = w.mode == mode::generation ? memory.cache(l, w).value() * batch : 0;
    held += cache;
    key_parts key{held};
    key.insert(key.end(), row.begin(), row.end());
    layer_class mine{0, {row.begin(), row.end()}, held};
    if (!m.below_per_sample_s.empty()) {
      const auto below = std::span(m.below_per_sample_s).subspan(l.id.index() * m.devices, m.devices);
      mine.below_s.assign(below.begin(), below.end());
      mine.kept = cache;
      mine.below = l.weight.value() / (l.weight_group >= 0 ? group_size[static_cast<std::size_t>(l.weight_group)] : 1);
      key.insert(key.end(), below.begin(), below.end());
      key.insert(key.end(), {mine.kept, mine.below});
    }
    layer_class& k = merged[key];
    if (k.count == 0) k = std::move(mine);
    k.count += 1;
  }
  std::vector<layer_class> classes;
  for (const std::size_t i : merged.keys().in_order()) {
    layer_class& k = merged.values()[i];
    for (double& t : k.time_s) t *= batch;
    for (double& t : k.below_s) t *= batch;
    classes.push_back(std::move(k));
  }
  return classes;
}

/// Returns a lower bound on T by weak duality, for any shares u >= 0 of seconds with sum 1 and prices v >= 0 of bytes:
/// T >= sum over layers of min over devices (u_d time + v_d bytes) - sum over devices of v_d capacity; a tier is one more choice.
[[nodiscard]] double lagrangian_bound(const std::vector<layer_class>& classes, const multipliers& of, const std::vector<double>& capacity,
                                      const std::vector<double>& below);

}  // namespace detail

HETPLAN_INLINE seconds path_bound(const planning_graph& model, const layer_minima& m, mode how) {
  const bool training = how == mode::training;
  std::vector<double> forward_s(model.size(), 0), round_trip_s(model.size(), 0);
  double longest = 0;
  for (const layer& l : model.layers()) {
    double before = 0, turning = 0;
    for (const std::uint32_t e : model.in_edges(l.id)) {
      const layer_edge& edge = model.edges()[e];
      before = std::max(before, forward_s[edge.from.index()]);
      if (edge.gradient.value() > 0) turning = std::max(turning, round_trip_s[edge.from.index()]);
    }
    const std::size_t i = l.id.index();
    forward_s[i] = before + m.forward_s[i];
    round_trip_s[i] = std::max(before, turning) + m.forward_backward_s[i];
    longest = std::max(longest, training ? std::max(forward_s[i], round_trip_s[i]) : forward_s[i]);
  }
  return seconds(longest);
}

namespace detail {

HETPLAN_INLINE double lagrangian_bound(const std::vector<layer_class>& classes, const multipliers& of, const std::vector<double>& capacity,
                                       const std::vector<double>& below) {
  const auto& [u, v, z] = of;
  double bound = 0;
  for (const layer_class& k : classes) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < u.size(); ++d) {
      least = std::min(least, u[d] * k.time_s[d] + v[d] * k.bytes);
      if (!k.below_s.empty() && std::isfinite(k.below_s[d])) least = std::min(least, u[d] * k.below_s[d] + v[d] * k.kept + z[d] * k.below);
    }
    bound += k.count * least;
  }
  for (std::size_t d = 0; d < v.size(); ++d) bound -= v[d] * capacity[d];
  for (std::size_t d = 0; d < below.size(); ++d) bound -= z[d] * below[d];
  return bound;
}

}  // namespace detail

namespace detail {

/// Is a distinct pass one that a layer goes through on a path of the whole run? The steps are; of a prompt, whose chunks may be in flight
/// together, one chunk is: the first for a layer per request, the last for one of the last token, and for others the last but one if that
/// is longer. On the way from one to the next the number of the chunk only grows, so the path is one of dependencies.
HETPLAN_INLINE bool is_on_path(const token_passes& passes, std::size_t k, const layer& l) {
  const auto chunks = static_cast<std::size_t>(passes.chunks());
  if (k >= chunks) return true;
  if (l.runs_per_request()) return k == 0;
  const bool shorter = chunks > 1 && passes.distinct()[chunks - 1].tokens < passes.distinct()[chunks - 2].tokens;
  return k + 1 == (shorter && !l.sequence.last_token ? chunks - 1 : chunks);
}

}  // namespace detail

HETPLAN_INLINE layer_minima minimal_times(const planning_graph& model, const cluster& c, const any_cost_model& cost, const workload& w,
                                          long long max_batch) {
  check_mode(model, w);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const bool training = w.mode == mode::training;
  layer_minima m{c.size(),
                 std::vector<double>(model.size() * c.size(), inf),
                 {},
                 {},
                 std::vector<double>(model.size(), inf),
                 std::vector<double>(model.size(), inf)};
  const auto tiered = [](const device& d) { return !d.tiers.empty(); };
  if (std::any_of(c.devices().begin(), c.devices().end(), tiered)) m.below_per_sample_s = m.busy_per_sample_s = m.per_sample_s;
  const token_passes passes(w, model);
  const auto degrees = [&](const layer& l, const device& d) { return usable_degrees(model, std::span(&l.id, 1), d); };
  const auto most_degrees = [](const layer& l, const device& d) {
    return !d.interconnect || l.profile_for(d.kind) != nullptr ? 1.0
           : l.degrees.empty()                                 ? d.accelerators
                                                               : 1.0 + static_cast<double>(l.degrees.size());
  };
  double questions = 0;
  for (const layer& l : model.layers()) {
    for (const device& d : c.devices())
      questions += 3.0 * static_cast<double>(max_batch) * most_degrees(l, d) * static_cast<double>(passes.distinct().size()) *
                   (d.tiers.empty() ? 1 : 3);
  }
  if (questions > max_bound_questions) {
    m.per_sample_s.assign(m.per_sample_s.size(), 0);
    m.below_per_sample_s.assign(m.below_per_sample_s.size(), 0);
    m.busy_per_sample_s.assign(m.busy_per_sample_s.size(), 0);
    m.forward_s.assign(model.size(), 0);
    m.forward_backward_s.assign(model.size(), 0);
    return m;
  }
  /// Where a layer's weights lie: rates at which a call reads them, and at which it waits for them before; 0: neither.
  struct place {
    double read_Bps = 0, wait_Bps = 0;
  };
  const auto places_of = [&](const layer& l, const device& d) {
    std::vector<place> places{{}};
    double own = 0, shared = 0;
    for (const memory_tier& t : d.tiers) {
      if (t.shared.valid()) shared += std::min(t.bandwidth, c.network()[t.shared].capacity).value();
      else own = std::max(own, t.bandwidth.value());
    }
    if (!detail::may_lie_below(l, w)) return places;
    if (own > 0) places.push_back({own, 0});
    if (shared > 0) places.push_back({inf, shared});
    return places;
  };
  const auto ask_at = [&](const layer& l, const device& d, int g, long long b, const place& at) {
    double waited_s = 0;
    const auto seconds_of = [&](const token_pass& pass, phase what) {
      work_kind k = pass.asks(what, static_cast<double>(b), g);
      k.tier_bandwidth = bytes_per_second(at.read_Bps);
      const double s = checked_time_s(cost, k.of(l), d);
      const double wait_s = at.wait_Bps > 0 && reads_weights(k.of(l), d) ? k.of(l).weight_traffic().value() / at.wait_Bps : 0;
      waited_s += wait_s * (pass.cached ? passes.count_of(static_cast<std::size_t>(&pass - passes.distinct().data())) : 1);
      return s + wait_s;
    };
    double f = 0, one_by_one = 0;  // all passes, and those of which none starts before the one before it has ended
    for (std::size_t k = 0; k < passes.distinct().size(); ++k) {
      const token_pass& pass = passes.distinct()[k];
      if (!pass.runs(l)) continue;
      const double each = seconds_of(pass, phase::forward);
      f += passes.count_of(k) * each;
      if (detail::is_on_path(passes, k, l)) one_by_one += passes.count_of(k) * each;
    }
    const double input = training ? seconds_of({}, phase::backward_input) : 0,
                 weight = training ? seconds_of({}, phase::backward_weight) : 0;
    const std::size_t here = l.id.index() * c.size() + d.id.index();
    const double sample_s = (f + input + weight) / static_cast<double>(b);
    double& per_sample = (at.read_Bps > 0 ? m.below_per_sample_s : m.per_sample_s)[here];
    per_sample = std::min(per_sample, sample_s);
    if (!m.busy_per_sample_s.empty())
      m.busy_per_sample_s[here] = std::min(m.busy_per_sample_s[here], sample_s - waited_s / static_cast<double>(b));
    m.forward_s[l.id.index()] = std::min(m.forward_s[l.id.index()], one_by_one);
    m.forward_backward_s[l.id.index()] = std::min(m.forward_backward_s[l.id.index()], one_by_one + input);
  };
  const auto ask = [&](const layer& l, const device& d, int g, long long b) {
    for (const place& at : places_of(l, d)) ask_at(l, d, g, b, at);
  };
  const auto known_batches = [&](const layer& l, const device& d, int g) {
    double least = static_cast<double>(max_batch);
    for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
      if (what != phase::forward && !training) continue;
      for (const token_pass& pass : passes.distinct()) {
        if (pass.runs(l)) least = std::min(least, checked_largest_batch(cost, pass.asks(what, 1, g).of(l), d));
      }
    }
    return std::max(1LL, static_cast<long long>(least));  // at least 1: a model that knows no batch size throws its own error
  };
  for (const layer& l : model.layers()) {
    for (const device& d : c.devices()) {
      for (const int g : degrees(l, d)) {
        bool known = false;
        const long long last = known_batches(l, d, g);
        for (long long b = 1; b <= last; ++b) {
          try {
            ask(l, d, g, b);
            known = true;
          } catch (const unknown_time&) {
            if (b == last && !known) throw;  // no batch size has a known time
          }
        }
      }
    }
  }
  return m;
}

HETPLAN_INLINE seconds compute_bound(const planning_graph& model, const layer_minima& m, const any_memory_model& memory, const workload& w,
                                     double batch, const std::vector<double>& capacity, const any_lp_solver& lp, int shards,
                                     const std::vector<double>& below) {
  const auto classes = detail::layer_classes(model, m, memory, w, batch, shards);
  detail::multipliers of{std::vector<double>(m.devices, 0), std::vector<double>(m.devices, 0), std::vector<double>(m.devices, 0)};
  double sum = 0;
  for (std::size_t d = 0; d < m.devices; ++d) {
    double alone = 0;
    for (const auto& k : classes) alone += k.count * k.time_s[d];
    if (alone <= 0) return {};
    sum += of.seconds[d] = 1 / alone;
  }
  for (double& share : of.seconds) share /= sum;
  std::vector<double> finite = capacity;
  for (double& limit : finite) limit = std::isfinite(limit) ? limit : 0;
  const double closed = detail::lagrangian_bound(classes, of, finite, below);
  const bool tiers = std::any_of(below.begin(), below.end(), [](double b) { return b > 0; });
  if ((m.devices == 1 && !tiers) || closed <= 0) return seconds(std::max(0.0, closed));

  lp_problem p;
  const int makespan = p.add_column(1);
  std::vector<lp_problem::row> load(m.devices), memory_rows(m.devices), tier_rows(tiers ? m.devices : 0);
  for (std::size_t d = 0; d < m.devices; ++d) {
    load[d].terms.emplace_back(makespan, -1);
    load[d].upper = 0;
    memory_rows[d].upper = 1;
    if (tiers) tier_rows[d].upper = 1;
  }
  for (const auto& k : classes) {
    lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
    for (std::size_t d = 0; d < m.devices; ++d) {
      const auto add = [&](double time_s, double held) {
        const int x = p.add_column(0);
        whole.terms.emplace_back(x, 1);
        load[d].terms.emplace_back(x, k.count * time_s / closed);
        if (std::isfinite(capacity[d]) && held > 0) memory_rows[d].terms.emplace_back(x, k.count * held / capacity[d]);
        return x;
      };
      add(k.time_s[d], k.bytes);
      if (!tiers || !(below[d] > 0) || !std::isfinite(k.below_s[d])) continue;
      const int y = add(k.below_s[d], k.kept);
      if (k.below > 0) tier_rows[d].terms.emplace_back(y, k.count * k.below / below[d]);
    }
    p.rows.push_back(std::move(whole));
  }
  const std::size_t first_load = p.rows.size();
  for (auto* rows : {&load, &memory_rows, &tier_rows}) {
    for (auto& row : *rows) p.rows.push_back(std::move(row));
  }
  const lp_solution s = lp.solve(p);
  if (s.row_duals.size() != p.rows.size()) return seconds(closed);
  sum = 0;
  for (std::size_t d = 0; d < m.devices; ++d) {
    const auto price = [&](std::size_t rows) { return std::max(0.0, -s.row_duals[first_load + rows * m.devices + d]); };
    sum += of.seconds[d] = price(0);
    of.bytes[d] = std::isfinite(capacity[d]) ? price(1) * closed / capacity[d] : 0;
    of.below[d] = tiers && below[d] > 0 ? price(2) * closed / below[d] : 0;
  }
  if (!(sum > 0) || !std::isfinite(sum)) return seconds(closed);
  for (std::vector<double>* prices : {&of.seconds, &of.bytes, &of.below}) {
    for (double& each : *prices) each /= sum;
  }
  return seconds(std::max(closed, detail::lagrangian_bound(classes, of, finite, below)));
}

HETPLAN_INLINE seconds plan_bound(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                  const any_memory_model& memory, const any_lp_solver& lp, bool within_memory) {
  const layer_minima m = minimal_times(model, c, cost, p.workload, p.batch());
  // A grid runs a layer faster than any device alone, so the path bound fails. Sharded weights need less memory, so the memory rows fail.
  const bool grids = std::ranges::any_of(p.stages, [](const stage& s) { return s.column_count() > 1; });
  const auto moves = [](const stage& s) { return s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp); };
  if (std::ranges::any_of(p.stages, moves)) within_memory = false;
  std::vector<double> capacity, below;
  for (const device& d : c.devices()) {
    below.push_back(detail::tiers_of(d));
    capacity.push_back(within_memory ? d.memory_for_layers().value() : std::numeric_limits<double>::infinity());
  }
  const seconds compute =
      compute_bound(model, m, memory, p.workload, static_cast<double>(p.batch()), capacity, lp,
                    p.workload.mode == mode::training && memory.has_optimizer_state() ? static_cast<int>(c.size()) : 1, below);
  return std::max(compute, grids ? seconds{} : path_bound(model, m, p.workload.mode));
}

}  // namespace hetplan
