// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/bounds.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include <hetplan/cost/check_mode.hpp>

namespace hetplan {

namespace detail {

/// Layers with the same times and memory count as one with multiplicity: the LP's value stays the same.
struct layer_class {
  double count = 0;
  std::vector<double> time_s;  ///< by device, whole batch
  double bytes = 0;            ///< held by whoever runs it all
};

[[nodiscard]] HETPLAN_INLINE std::vector<layer_class> layer_classes(const planning_graph& model, const layer_minima& m,
                                                                    const any_memory_model& memory, const workload& w, double batch,
                                                                    int shards) {
  std::vector<double> group_size(model.weight_groups().size(), 0);
  for (const layer& l : model.layers()) {
    if (l.weight_group >= 0) group_size[static_cast<std::size_t>(l.weight_group)] += 1;
  }
  std::map<std::pair<double, std::vector<double>>, double> counts;
  for (const layer& l : model.layers()) {
    const auto row = std::span(m.per_sample_s).subspan(l.id.index() * m.devices, m.devices);
    // A tensor that layers share is held at least for the average of their fractions; a share of the optimizer's state is held
    // whole, however small the fraction, so it counts at the least that any number of devices leaves to one.
    double held = checked_state(memory, l, w, shards) / (l.weight_group >= 0 ? group_size[static_cast<std::size_t>(l.weight_group)] : 1);
    if (w.mode == mode::generation) held += memory.cache(l, w).value() * batch;
    counts[{held, std::vector<double>(row.begin(), row.end())}] += 1;
  }
  std::vector<layer_class> classes;
  for (const auto& [key, count] : counts) {
    layer_class k{count, key.second, key.first};
    for (double& t : k.time_s) t *= batch;
    classes.push_back(std::move(k));
  }
  return classes;
}

/// Weak duality: for any shares u >= 0 with sum 1 and prices v >= 0,
/// T >= sum over layers of min over devices (u_d time + v_d bytes) - sum over devices of v_d capacity.
[[nodiscard]] double lagrangian_bound(const std::vector<layer_class>& classes, const std::vector<double>& u, const std::vector<double>& v,
                                      const std::vector<double>& capacity);

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

HETPLAN_INLINE double lagrangian_bound(const std::vector<layer_class>& classes, const std::vector<double>& u, const std::vector<double>& v,
                                       const std::vector<double>& capacity) {
  double bound = 0;
  for (const layer_class& k : classes) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < u.size(); ++d) least = std::min(least, u[d] * k.time_s[d] + v[d] * k.bytes);
    bound += k.count * least;
  }
  for (std::size_t d = 0; d < v.size(); ++d) bound -= v[d] * capacity[d];
  return bound;
}

}  // namespace detail

HETPLAN_INLINE layer_minima minimal_times(const planning_graph& model, const cluster& c, const any_cost_model& cost, const workload& w,
                                          long long max_batch) {
  check_mode(model, w.mode);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const bool training = w.mode == mode::training;
  layer_minima m{c.size(), std::vector<double>(model.size() * c.size(), inf), std::vector<double>(model.size(), inf),
                 std::vector<double>(model.size(), inf)};
  const auto degrees = [](const layer& l, const device& d) {
    return d.interconnect && l.profile_for(d.kind) == nullptr ? d.accelerators : 1;
  };
  double questions = 0;
  for (const layer& l : model.layers()) {
    for (const device& d : c.devices()) questions += 3.0 * static_cast<double>(max_batch) * degrees(l, d);
  }
  if (questions > max_bound_questions) {
    m.per_sample_s.assign(m.per_sample_s.size(), 0);
    m.forward_s.assign(model.size(), 0);
    m.forward_backward_s.assign(model.size(), 0);
    return m;
  }
  const auto ask = [&](const layer& l, const device& d, int g, long long b) {
    work q{.layer = l, .phase = phase::forward, .batch = static_cast<double>(b), .tensor_parallel = g, .context = w.context};
    const double f = checked_time_s(cost, q, d);
    double input = 0, weight = 0;
    if (training) {
      q.phase = phase::backward_input;
      input = checked_time_s(cost, q, d);
      q.phase = phase::backward_weight;
      weight = checked_time_s(cost, q, d);
    }
    double& per_sample = m.per_sample_s[l.id.index() * c.size() + d.id.index()];
    per_sample = std::min(per_sample, (f + input + weight) / static_cast<double>(b));
    m.forward_s[l.id.index()] = std::min(m.forward_s[l.id.index()], f);
    m.forward_backward_s[l.id.index()] = std::min(m.forward_backward_s[l.id.index()], f + input);
  };
  const auto known_batches = [&](const layer& l, const device& d, int g) {
    double least = static_cast<double>(max_batch);
    for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
      if (what != phase::forward && !training) continue;
      least = std::min(least, checked_largest_batch(cost, {.layer = l, .phase = what, .tensor_parallel = g, .context = w.context}, d));
    }
    return std::max(1LL, static_cast<long long>(least));  // where none is known, the model says why
  };
  for (const layer& l : model.layers()) {
    for (const device& d : c.devices()) {
      for (int g = 1; g <= degrees(l, d); ++g) {
        bool known = false;
        const long long last = known_batches(l, d, g);
        for (long long b = 1; b <= last; ++b) {
          try {
            ask(l, d, g, b);
            known = true;
          } catch (const unknown_time&) {
            if (b == last && !known) throw;  // a model that sets no limit
          }
        }
      }
    }
  }
  return m;
}

HETPLAN_INLINE seconds compute_bound(const planning_graph& model, const layer_minima& m, const any_memory_model& memory, const workload& w,
                                     double batch, const std::vector<double>& capacity, const any_lp_solver& lp, int shards) {
  const auto classes = detail::layer_classes(model, m, memory, w, batch, shards);
  std::vector<double> u(m.devices, 0), v(m.devices, 0);
  double sum = 0;
  for (std::size_t d = 0; d < m.devices; ++d) {
    double alone = 0;
    for (const auto& k : classes) alone += k.count * k.time_s[d];
    if (alone <= 0) return {};
    sum += u[d] = 1 / alone;
  }
  for (double& share : u) share /= sum;
  std::vector<double> finite = capacity;
  for (double& limit : finite) limit = std::isfinite(limit) ? limit : 0;
  const double closed = detail::lagrangian_bound(classes, u, v, finite);
  if (m.devices == 1 || closed <= 0) return seconds(std::max(0.0, closed));

  lp_problem p;
  const int makespan = p.add_column(1);
  std::vector<lp_problem::row> load(m.devices), memory_rows(m.devices);
  for (std::size_t d = 0; d < m.devices; ++d) {
    load[d].terms.emplace_back(makespan, -1);
    load[d].upper = 0;
    memory_rows[d].upper = 1;
  }
  for (const auto& k : classes) {
    lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
    for (std::size_t d = 0; d < m.devices; ++d) {
      const int x = p.add_column(0);
      whole.terms.emplace_back(x, 1);
      load[d].terms.emplace_back(x, k.count * k.time_s[d] / closed);
      if (std::isfinite(capacity[d]) && k.bytes > 0) memory_rows[d].terms.emplace_back(x, k.count * k.bytes / capacity[d]);
    }
    p.rows.push_back(std::move(whole));
  }
  const std::size_t first_load = p.rows.size();
  for (auto& row : load) p.rows.push_back(std::move(row));
  for (auto& row : memory_rows) p.rows.push_back(std::move(row));
  const lp_solution s = lp.solve(p);
  if (s.row_duals.size() != p.rows.size()) return seconds(closed);
  sum = 0;
  for (std::size_t d = 0; d < m.devices; ++d) {
    u[d] = std::max(0.0, -s.row_duals[first_load + d]);
    v[d] = std::isfinite(capacity[d]) ? std::max(0.0, -s.row_duals[first_load + m.devices + d]) * closed / capacity[d] : 0;
    sum += u[d];
  }
  if (!(sum > 0) || !std::isfinite(sum)) return seconds(closed);
  for (std::size_t d = 0; d < m.devices; ++d) {
    u[d] /= sum;
    v[d] /= sum;
  }
  return seconds(std::max(closed, detail::lagrangian_bound(classes, u, v, finite)));
}

HETPLAN_INLINE seconds plan_bound(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                  const any_memory_model& memory, const any_lp_solver& lp, bool within_memory) {
  const layer_minima m = minimal_times(model, c, cost, p.workload, p.batch());
  // Who shares a layer's tensors is through it sooner than any device alone, and who shares weights holds less of them than any.
  const bool grids = std::ranges::any_of(p.stages, [](const stage& s) { return s.column_count() > 1; });
  const auto moves = [](const stage& s) { return s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp); };
  if (std::ranges::any_of(p.stages, moves)) within_memory = false;
  std::vector<double> capacity;
  for (const device& d : c.devices()) {
    capacity.push_back(within_memory ? d.usable_memory().value() : std::numeric_limits<double>::infinity());
  }
  const seconds compute = compute_bound(model, m, memory, p.workload, static_cast<double>(p.batch()), capacity, lp,
                                        p.workload.mode == mode::training && memory.has_optimizer_state() ? static_cast<int>(c.size()) : 1);
  return p.workload.steps() * std::max(compute, grids ? seconds{} : path_bound(model, m, p.workload.mode));
}

}  // namespace hetplan
