// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/explain.hpp>

#include <algorithm>
#include <numeric>
#include <span>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/simulate/wait_states.hpp>

namespace hetplan {

HETPLAN_INLINE double use_seconds::all() const { return std::accumulate(s_.begin(), s_.end(), 0.0); }

HETPLAN_INLINE time_use use_seconds::largest() const { return static_cast<time_use>(std::max_element(s_.begin(), s_.end()) - s_.begin()); }

HETPLAN_INLINE void use_seconds::add_tier(std::size_t tier, double s) {
  if (s == 0) return;
  (*this)[time_use::tiers] += s;
  if (of_tier_.size() <= tier) of_tier_.resize(tier + 1, 0);
  of_tier_[tier] += s;
}

HETPLAN_INLINE void use_seconds::add(const use_seconds& other, double factor) {
  for (const time_use u : time_uses) {
    if (u != time_use::tiers) (*this)[u] += factor * other[u];
  }
  for (std::size_t t = 0; t < other.of_tier_.size(); ++t) add_tier(t, factor * other.of_tier_[t]);
}

HETPLAN_INLINE std::vector<named_share> shares_of(const run_stretch& r, const device& d) {
  std::vector<named_share> all;
  for (const time_use u : time_uses) {
    if (u != time_use::tiers) {
      all.push_back({u, std::string(to_string(u)), r.share(d.id, u)});
      continue;
    }
    for (std::size_t t = 0; t < d.tiers.size(); ++t) {
      const double s = r.devices[d.id.index()].of_tier(t);
      if (s > 0) all.push_back({u, "tier " + d.tiers[t].name, s / r.length_s()});
    }
  }
  return all;
}

HETPLAN_INLINE std::array<memory_part, 5> parts_of(const device_memory& m) {
  return {{{"weights", m.held.state},
           {"cache", m.held.cache},
           {"activations", m.activations},
           {"workspace", m.held.workspace},
           {"overhead", m.held.overhead}}};
}

namespace detail {

/// Finds the parts of tasks. Tasks of one kind (stage, device, phase, unit, pass, samples) share their answer.
class task_explainer {
 public:
  task_explainer(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost, const judgement& j)
      : plan_(p), model_(model), cluster_(c), cost_(cost), passes_(p.workload, model) {
    for (const tasks::compute_task& t : j.graph.computes) {
      if (t.what == phase::backward_weight) split_.insert({t.stage});
    }
  }

  /// Returns the seconds of a task by use, as if nothing slowed it down.
  [[nodiscard]] use_seconds operator()(const tasks::compute_task& t) {
    use_seconds s;
    if (t.what == phase::optimizer_step) {
      s[time_use::compute] = t.duration_s;
      return s;
    }
    const std::size_t pass = passes_.which(t.pass);
    const use_seconds* known = known_.find({t.stage, t.device, t.what, t.unit, pass, t.last_sample - t.first_sample});
    if (known == nullptr) known = &(known_[{t.stage, t.device, t.what, t.unit, pass, t.last_sample - t.first_sample}] = parts_of(t));
    s = *known;
    s[time_use::network] += std::max(0.0, t.duration_s - s.all());
    return s;
  }

 private:
  [[nodiscard]] use_seconds parts_of(const tasks::compute_task& t) const {
    const stage& s = plan_[t.stage];
    const token_pass& pass = passes_[t.pass];
    const device& d = cluster_[t.device];
    std::size_t position = 0;
    while (s.devices[position].device != t.device) ++position;
    use_seconds sum;
    sum[time_use::overhead] = d.overhead.value();
    const bool units = s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp);
    const std::vector<layer_id> of_task = units ? units_of(s)[static_cast<std::size_t>(t.unit)] : s.layers;
    const auto add = [&](phase what, std::span<const layer_id> layers) {
      const work_kind k = pass.asks(what, static_cast<double>(t.last_sample - t.first_sample), s.devices[position].tensor_parallel,
                                    s.fraction(s.column_of(position)));
      const layer_id* before = nullptr;
      for (const layer_id& l : layers) {
        if (!pass.runs(model_[l])) continue;
        const std::string* tier = s.tier_of(l);
        work_kind mine = k;
        if (tier != nullptr) mine.tier_bandwidth = tier_bandwidth(s, l, d);
        const time_parts p = checked_parts(cost_, mine.of(model_[l]), d);
        if (tier != nullptr) sum.add_tier(static_cast<std::size_t>(d.find_tier(*tier) - d.tiers.data()), p.tier.value());
        sum[time_use::compute] += p.compute.value();
        sum[time_use::weights] += p.weights.value();
        sum[time_use::activations] += p.activations.value();
        sum[time_use::cache] += p.cache.value();
        sum[time_use::overhead] += p.launch.value();
        sum[time_use::network] += p.exchange.value();
        if (cost_.times_boundaries() && before != nullptr)
          sum[time_use::overhead] += checked_boundary_s(cost_, model_[*before], model_[l], k, d);
        before = &l;
      }
    };
    add(t.what, of_task);
    if (t.what == phase::backward_input) {
      if (!split_.contains({t.stage})) add(phase::backward_weight, of_task);
      for (const std::span<const layer_id> again : repeated_layers(model_, s)) {
        std::vector<layer_id> mine;
        for (const layer_id l : again) {
          if (!units || std::find(of_task.begin(), of_task.end(), l) != of_task.end()) mine.push_back(l);
        }
        add(phase::forward, mine);
      }
    }
    return sum;
  }

  const plan& plan_;
  const planning_graph& model_;
  const cluster& cluster_;
  const any_cost_model& cost_;
  token_passes passes_;
  key_index split_;  ///< stages whose backward is split
  keyed<use_seconds> known_;
};

/// Adds what a device does in [start_s, end_s), in proportion, to the stretches that it overlaps.
HETPLAN_INLINE void add_to(std::vector<run_stretch>& stretches, std::size_t device, double start_s, double end_s,
                           const use_seconds& shares) {
  const double whole = shares.all();
  if (!(end_s > start_s) || !(whole > 0)) return;
  for (run_stretch& r : stretches) {
    const double inside_s = std::min(end_s, r.end_s) - std::max(start_s, r.start_s);
    if (!(inside_s > 0)) continue;
    r.devices[device].add(shares, inside_s / whole);
  }
}

[[nodiscard]] HETPLAN_INLINE std::vector<run_stretch> stretches_of(const plan& p, const planning_graph& model, const judgement& j) {
  const double end_s = j.trace.latency.value();
  if (p.workload.mode != mode::generation) return {{"run", 0, end_s, {}}};
  const token_passes passes(p.workload, model);
  if (passes.chunks() == 0) return {{"tokens", 0, end_s, {}}};
  const double first_s = std::min(end_s, j.evaluation.ttft.value_or(j.trace.latency).value());
  std::vector<run_stretch> both{{"prompt", 0, first_s, {}}};
  if (first_s < end_s) both.push_back({"tokens", first_s, end_s, {}});
  return both;
}

}  // namespace detail

HETPLAN_INLINE run_explanation explain(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                       const judgement& j, const any_memory_model& memory) {
  run_explanation out{.memory = std::vector<device_memory>(c.size()), .stretches = detail::stretches_of(p, model, j)};
  for (run_stretch& r : out.stretches) r.devices.resize(c.size());
  const std::vector<held_bytes> held = held_by_devices(p, model, memory, c);
  const wait_states waited(j.graph, j.trace);
  detail::task_explainer parts(p, model, c, cost, j);
  use_seconds network, waiting;
  network[time_use::network] = 1;
  waiting[time_use::waiting] = 1;
  const double end_s = j.trace.latency.value();
  for (std::size_t d = 0; d < c.size(); ++d) {
    if (!j.graph.used[d]) continue;
    out.memory[d] = {held[d], std::max(0.0, j.trace.peak_bytes[d] - held[d].all())};
    std::vector<tasks::node_id> mine = j.graph.device_order[d];
    std::stable_sort(mine.begin(), mine.end(),
                     [&](tasks::node_id a, tasks::node_id b) { return j.trace.computes[a].start_s < j.trace.computes[b].start_s; });
    double free_s = 0;
    for (const tasks::node_id n : mine) {
      const interval when = j.trace.computes[n];
      if (!(when.end_s > when.start_s)) continue;  // takes no time, or did not run
      tasks::node_id from = waited.last_input(n);
      double idle_s = when.start_s;  // until then the device waited for neither tier
      if (from != no_node && j.graph.is_transfer(from) && j.graph.transfer_at(from).kind == transfer_kind::read) {
        idle_s = std::clamp(waited.when(from).start_s, free_s, when.start_s);
        use_seconds reading;
        reading.add_tier(static_cast<std::size_t>(j.graph.transfer_at(from).unit), 1);
        detail::add_to(out.stretches, d, idle_s, when.start_s, reading);
        from = waited.last_input(from);
      }
      const bool arrived = from != no_node && j.graph.is_transfer(from);
      while (from != no_node && j.graph.is_transfer(from)) from = waited.last_input(from);
      const double sent_s = from == no_node ? 0 : waited.when(from).end_s;
      const double network_from_s = arrived ? std::clamp(sent_s, free_s, idle_s) : idle_s;
      detail::add_to(out.stretches, d, free_s, network_from_s, waiting);
      detail::add_to(out.stretches, d, network_from_s, idle_s, network);
      detail::add_to(out.stretches, d, when.start_s, when.end_s, parts(j.graph.computes[n]));
      free_s = std::max(free_s, when.end_s);
    }
    detail::add_to(out.stretches, d, free_s, end_s, waiting);
  }
  return out;
}

HETPLAN_INLINE std::string describe(const run_explanation& e, const cluster& c) {
  std::string text;
  for (const device& d : c.devices()) {
    if (!(e.memory[d.id.index()].all() > 0) &&
        std::all_of(e.stretches.begin(), e.stretches.end(), [&](const run_stretch& r) { return r.devices[d.id.index()].all() == 0; }))
      continue;
    std::string line;
    const auto put = [&](std::string_view name, const std::string& amount) {
      line.append(line.empty() ? "" : ", ").append(name).append(" ").append(amount);
    };
    for (const memory_part& m : parts_of(e.memory[d.id.index()])) {
      if (m.bytes > 0) put(m.name, readable(bytes(m.bytes)));
    }
    text += format_line("  %-12s memory  %s\n", escaped(d.name).c_str(), line.c_str());
    for (const run_stretch& r : e.stretches) {
      line.clear();
      for (const named_share& u : shares_of(r, d)) {
        if (u.share >= 1e-3) put(escaped(u.name), format_line("%.1f %%", 100 * u.share));
      }
      text += format_line("  %-12s %-7s %s\n", "", std::string(r.name).c_str(), line.c_str());
    }
  }
  return text;
}

}  // namespace hetplan
