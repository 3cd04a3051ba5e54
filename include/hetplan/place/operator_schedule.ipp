// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/operator_schedule.hpp>

#include <cmath>
#include <tuple>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::place {

HETPLAN_INLINE channels::channels(const placement_table& t, contention c) : devices_(t.devices()), first_{0} {
  size_ = c == contention::none ? 0 : c == contention::one_port ? 2 * devices_ : t.resources();
  for (std::size_t from = 0; from < devices_; ++from) {
    for (std::size_t to = 0; to < devices_; ++to) {
      if (from != to && c == contention::one_port) {
        all_.insert(all_.end(), {from, devices_ + to});
      } else if (from != to && c != contention::none) {
        const auto& resources = t.pair(from, to).resources;
        all_.insert(all_.end(), resources.begin(), resources.end());
      }
      first_.push_back(all_.size());
    }
  }
}

namespace detail {

/// Check of a schedule's rules. Slack covers rounding, since times are sums of the same numbers in different orders.
class schedule_check {
 public:
  schedule_check(const placement_table& t, const placement_rules& r, const operator_schedule& s)
      : table_(t), rules_(r), schedule_(s), slack_s_(1e-9 * (std::isfinite(s.makespan_s) ? s.makespan_s : 0)) {}

  [[nodiscard]] std::optional<std::string> run() {
    const std::size_t n = table_.size();
    if (schedule_.device.size() != n || schedule_.start_s.size() != n)
      return "expected a device and a start for each of " + std::to_string(n) + " operators";
    double last_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (schedule_.device[i] >= table_.devices()) return named(i) + " is on no device";
      if (!std::isfinite(time_s(i))) return named(i) + " cannot run on device " + std::to_string(schedule_.device[i]);
      if (!(schedule_.start_s[i] >= 0)) return named(i) + " starts at " + to_text(schedule_.start_s[i]) + " s";
      last_s = std::max(last_s, end_s(i));
    }
    if (largest_overflow_bytes(table_, schedule_.device) > 0) return "a device holds more than it has memory";
    if (!(std::abs(last_s - schedule_.makespan_s) <= slack_s_)) return "the makespan is not the last end";
    if (auto fault = find_overlap()) return fault;
    if (auto fault = find_fault_of_transfers()) return fault;
    return find_late_data();
  }

 private:
  using interval = std::pair<double, double>;

  [[nodiscard]] std::string named(std::size_t op) const { return "operator \"" + escaped(table_.data().operators[op]) + "\""; }
  [[nodiscard]] double time_s(std::size_t op) const { return table_.time_s(op, schedule_.device[op]); }
  [[nodiscard]] double end_s(std::size_t op) const { return schedule_.start_s[op] + time_s(op); }

  [[nodiscard]] bool overlap(std::vector<interval>& all) const {
    sort_stably(all);
    return std::adjacent_find(all.begin(), all.end(),
                              [&](const interval& a, const interval& b) { return b.first < a.second - slack_s_; }) != all.end();
  }

  [[nodiscard]] std::optional<std::string> find_overlap() const {
    std::vector<std::vector<interval>> busy(table_.devices());
    for (std::size_t i = 0; i < table_.size(); ++i) busy[schedule_.device[i]].emplace_back(schedule_.start_s[i], end_s(i));
    for (std::size_t k = 0; k < busy.size(); ++k) {
      if (overlap(busy[k])) return "two operators of device " + std::to_string(k) + " overlap";
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> find_fault_of_transfers() {
    const channels holds(table_, rules_.contention);
    std::vector<std::vector<interval>> busy(holds.size());
    for (const scheduled_transfer& x : schedule_.transfers) {
      if (x.edge >= table_.edges().size()) return "a transfer carries no edge";
      const std::size_t producer = table_.edges()[x.edge].from;
      const std::string name = "the transfer of " + named(producer);
      if (x.from != schedule_.device[producer] || x.to >= table_.devices() || x.to == x.from) return name + " leaves another device";
      if (x.start_s < end_s(producer) - slack_s_) return name + " starts before its producer ends";
      const double takes_s = carried_s(table_, rules_.copies, x.edge, x.from, x.to);
      if (!(std::abs(x.end_s - x.start_s - takes_s) <= slack_s_)) return name + " takes another time";
      const std::size_t key = rules_.copies == transfer_copies::per_edge ? x.edge : producer;
      if (!arrival_s_.insert({key, x.to}, x.end_s)) return name + " runs twice";
      const double held = held_s(table_, rules_, x.edge, x.from, x.to);
      if (rules_.contention == contention::shared && held <= 0) continue;
      for (const std::size_t c : holds.of(x.from, x.to)) busy[c].emplace_back(x.end_s - held, x.end_s);
    }
    for (std::size_t c = 0; c < busy.size(); ++c) {
      if (overlap(busy[c])) return "two transfers overlap on channel " + std::to_string(c);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> find_late_data() const {
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [from, to, size] = table_.edges()[e];
      double there_s = end_s(from);
      if (schedule_.device[from] != schedule_.device[to]) {
        const std::size_t key = rules_.copies == transfer_copies::per_edge ? e : from;
        const double* arrival_s = arrival_s_.find({key, schedule_.device[to]});
        if (arrival_s == nullptr) return "no transfer carries the data of " + named(from) + " to " + named(to);
        there_s = *arrival_s;
      }
      if (schedule_.start_s[to] < there_s - slack_s_) return named(to) + " starts before the data of " + named(from) + " are there";
    }
    return std::nullopt;
  }

  const placement_table& table_;
  const placement_rules& rules_;
  const operator_schedule& schedule_;
  double slack_s_;
  keyed<double> arrival_s_;  ///< by (edge or producer, device)
};

}  // namespace detail

HETPLAN_INLINE std::optional<std::string> find_broken_rule(const placement_table& t, const placement_rules& r, const operator_schedule& s) {
  return detail::schedule_check(t, r, s).run();
}

HETPLAN_INLINE std::vector<std::size_t> sequence_of(const placement_table& t, const operator_schedule& s) {
  std::vector<std::size_t> sequence(t.order().begin(), t.order().end());
  sort_by(sequence, [&](std::size_t v) { return std::pair(s.start_s[v], s.start_s[v] + t.time_s(v, s.device[v])); });
  return sequence;
}

HETPLAN_INLINE void sort_transfers(std::vector<scheduled_transfer>& transfers) {
  sort_by(transfers, [](const scheduled_transfer& x) { return std::tuple(x.start_s, x.end_s, x.edge, x.to); });
}

HETPLAN_INLINE std::vector<double> excess_bytes(const placement_table& t, const std::vector<std::size_t>& device) {
  device_memory memory(t);
  for (const std::size_t i : t.order()) {
    if (device[i] < t.devices()) memory.add(i, device[i]);
  }
  std::vector<double> excess;
  for (std::size_t k = 0; k < t.devices(); ++k) excess.push_back(-memory.free_bytes(k));
  return excess;
}

HETPLAN_INLINE double largest_overflow_bytes(const placement_table& t, const std::vector<std::size_t>& device) {
  const std::vector<double> excess = excess_bytes(t, device);
  return *std::max_element(excess.begin(), excess.end());
}

namespace detail {

/// Returns a block as a stage of its own, without devices.
[[nodiscard]] HETPLAN_INLINE stage stage_of_block(const planning_graph& model, std::span<const layer_id> layers) {
  stage s{.name = model[layers.front()].name, .layers = {layers.begin(), layers.end()}};
  if (layers.size() > 1) s.name += "+" + std::to_string(layers.size() - 1);
  return s;
}

struct stage_on_device {
  double time_s = std::numeric_limits<double>::infinity();
  int degree = 1;
};

/// Returns the stage on the fastest number of the device's accelerators; the time is infinite if the models give none.
[[nodiscard]] HETPLAN_INLINE stage_on_device fastest_on(const planning_problem& problem, const stage& s, const device& d) {
  const bool profiled =
      std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return problem.model[l].profile_for(d.kind) != nullptr; });
  const bool known = profiled || d.compute.value() > 0;
  const token_passes passes(problem.job.workload, problem.model);
  stage_on_device best;
  if (!known) return best;
  for (const int degree : usable_degrees(problem.model, s.layers, d)) {
    try {
      const double time_s = stage_time_s(problem.cost, problem.model, s, {d.id, problem.job.batch, degree}, d, phase::forward, passes);
      if (time_s < best.time_s) best = {time_s, degree};
    } catch (const unknown_time&) {
      continue;
    }
  }
  return best;
}

HETPLAN_INLINE void put_pairs(const cluster& c, placement_data& t) {
  t.resources = c.network().resources().size();
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      device_pair& p = t.pairs.emplace_back();
      if (a.id == b.id) continue;
      const route* r = c.network().find(a.id, b.id);
      if (r == nullptr) {
        p.s_per_byte = std::numeric_limits<double>::infinity();
        continue;
      }
      p.latency_s = r->latency.value();
      if (!r->via.empty()) p.s_per_byte = 1 / c.network().peak_bandwidth(a.id, b.id).value();
      std::vector<std::pair<std::size_t, double>> uses;
      for (const resource_use& u : r->via) uses.emplace_back(u.resource.index(), u.weight / c.network()[u.resource].capacity.value());
      sort_stably(uses);
      for (const auto& [resource, s_per_byte] : uses) {
        p.resources.push_back(resource);
        p.busy_s_per_byte.push_back(s_per_byte);
      }
    }
  }
}

/// Adds the tied tensors of the blocks that hold a tensor of one weight group. A device holds the tensor once, at the largest size among
/// its blocks. Hence each step in size is a tied tensor of the blocks that reach it.
HETPLAN_INLINE void put_tied(placement_data& t, std::vector<std::pair<double, std::size_t>>& holders) {
  sort_stably(holders);
  double below = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const double step = holders[i].first - below;
    below = holders[i].first;
    if (step <= 0) continue;
    if (i + 1 == holders.size()) {
      t.held_bytes[holders[i].second] += step;
      continue;
    }
    tied_tensor x{.bytes = step};
    for (std::size_t j = i; j < holders.size(); ++j) x.operators.push_back(holders[j].second);
    std::sort(x.operators.begin(), x.operators.end());
    t.tied.push_back(std::move(x));
  }
}

}  // namespace detail

HETPLAN_INLINE placement_table make_placement_table(const planning_problem& problem) {
  return make_placement_table(problem, coarsen::each_layer(problem.model));
}

HETPLAN_INLINE placement_table make_placement_table(const planning_problem& problem, const coarsen::blocks& blocks) {
  const workload& w = problem.job.workload;
  if (w.mode != mode::inference)
    throw invalid_input("make_placement_table: expected a job of mode inference, got " + std::string(to_string(w.mode)));
  const planning_graph& model = problem.model;
  const double batch = problem.job.batch;
  placement_data t;
  keyed<std::vector<std::pair<double, std::size_t>>> holders;  // by weight group: (bytes, block)
  plan apart = blank_plan(problem, "", problem.job.batch);
  for (const auto& layers : blocks.layers) {
    const stage& s = apart.stages.emplace_back(detail::stage_of_block(model, layers));
    t.operators.push_back(s.name);
    for (const device& d : problem.cluster.devices()) t.time_s.push_back(detail::fastest_on(problem, s, d).time_s);
    double held = 0;
    for_each_tensor(model, s, [&](const layer& l) {
      const double bytes = checked_bytes(problem.models.memory.state(l, w), "state", l);
      if (const auto [shared, group] = tensor_of(l); shared) holders[{group}].emplace_back(bytes, t.held_bytes.size());
      else held += bytes;
    });
    t.held_bytes.push_back(held);
    t.working_bytes.push_back(
        stage_share_memory(problem.models.memory, model, s, {device_id(std::size_t{0}), problem.job.batch}, w, 0).forward);
  }
  for (const std::size_t i : holders.keys().in_order()) detail::put_tied(t, holders.values()[i]);
  for (const stage_edge& e : make_stage_graph(apart, model).edges)
    t.edges.push_back({e.from.index(), e.to.index(), e.forward_cut.value() * batch});
  for (const device& d : problem.cluster.devices()) {
    t.devices.push_back(d.name);
    t.capacity_bytes.push_back(memory_limit_bytes(d));
  }
  detail::put_pairs(problem.cluster, t);
  return placement_table(std::move(t));
}

HETPLAN_INLINE plan plan_of(const planning_problem& problem, const coarsen::blocks& blocks, const placement_table& t,
                            const placement_rules& r, const operator_schedule& s, std::string planner) {
  plan p = blank_plan(problem, std::move(planner), problem.job.batch);
  p.sharing_policy = policy_of(r.contention);
  p.copies = r.copies;
  p.schedule.kind = schedule_kind::explicit_orders;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const device& d = problem.cluster.devices()[s.device[i]];
    stage& st = p.stages.emplace_back(detail::stage_of_block(problem.model, blocks.layers[i]));
    st.devices = {{d.id, problem.job.batch, detail::fastest_on(problem, st, d).degree}};
  }
  p.schedule.orders.resize(problem.cluster.size());
  for (const std::size_t i : sequence_of(t, s)) p.schedule.orders[s.device[i]].push_back({phase::forward, stage_id(i), 0});
  if (r.contention == contention::none) return p;
  const stage_graph g = make_stage_graph(p, problem.model);
  for (std::size_t x = 0; x < s.transfers.size(); ++x) {
    const scheduled_transfer& sent = s.transfers[x];
    // With copies per device, the first stage on the receiver that reads the output names the transfer.
    const auto& out = g[g.edges[sent.edge].from].out;
    const std::size_t named = r.copies == transfer_copies::per_edge ? sent.edge : *std::find_if(out.begin(), out.end(), [&](std::size_t e) {
      return s.device[g.edges[e].to.index()] == sent.to;
    });
    const stage_edge& e = g.edges[named];
    p.schedule.transfers.push_back({.from = device_id(sent.from),
                                    .to = device_id(sent.to),
                                    .from_stage = e.from,
                                    .to_stage = e.to,
                                    .release = seconds(sent.start_s),
                                    .priority = p.sharing_policy == sharing::fair_share ? 0 : static_cast<int>(x)});
  }
  return p;
}

}  // namespace hetplan::place
