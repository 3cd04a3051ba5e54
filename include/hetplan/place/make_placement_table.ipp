// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/make_placement_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::place {

namespace detail {

/// A block as a stage of its own, on no device yet.
[[nodiscard]] HETPLAN_INLINE stage stage_of_block(const planning_graph& model, std::span<const layer_id> layers) {
  stage s{.name = model[layers.front()].name, .layers = {layers.begin(), layers.end()}};
  if (layers.size() > 1) s.name += "+" + std::to_string(layers.size() - 1);
  return s;
}

struct stage_on_device {
  double time_s = std::numeric_limits<double>::infinity();
  int degree = 1;
};

/// On as many accelerators as is fastest; infinite where the models cannot tell.
[[nodiscard]] HETPLAN_INLINE stage_on_device fastest_on(const planning_problem& problem, const stage& s, const device& d) {
  const bool profiled =
      std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return problem.model[l].profile_for(d.kind) != nullptr; });
  const bool known = profiled || d.compute.value() > 0;
  stage_on_device best;
  if (!known) return best;
  const int most = d.interconnect && !profiled ? d.accelerators : 1;
  for (int degree = 1; degree <= most; ++degree) {
    try {
      const double time_s =
          stage_time_s(problem.cost, problem.model, s, {d.id, problem.job.batch, degree}, d, phase::forward, problem.job.workload.context);
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
      std::sort(uses.begin(), uses.end());
      for (const auto& [resource, s_per_byte] : uses) {
        p.resources.push_back(resource);
        p.busy_s_per_byte.push_back(s_per_byte);
      }
    }
  }
}

/// Blocks that hold a tensor of one weight group. A device holds it once, as large as the largest of its blocks does: each step in size
/// is a tied tensor of the blocks that reach it.
HETPLAN_INLINE void put_tied(placement_data& t, std::vector<std::pair<double, std::size_t>>& holders) {
  std::sort(holders.begin(), holders.end());
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
  std::map<std::int32_t, std::vector<std::pair<double, std::size_t>>> holders;  // by weight group: bytes, and which block
  plan apart = blank_plan(problem, "", problem.job.batch);
  for (const auto& layers : blocks.layers) {
    const stage& s = apart.stages.emplace_back(detail::stage_of_block(model, layers));
    t.operators.push_back(s.name);
    for (const device& d : problem.cluster.devices()) t.time_s.push_back(detail::fastest_on(problem, s, d).time_s);
    double held = 0;
    for_each_tensor(model, s, [&](const layer& l) {
      const double bytes = checked_bytes(problem.models.memory.state(l, w), "state", l);
      if (const auto [shared, group] = tensor_of(l); shared) holders[group].emplace_back(bytes, t.held_bytes.size());
      else held += bytes;
    });
    t.held_bytes.push_back(held);
    t.working_bytes.push_back(
        stage_share_memory(problem.models.memory, model, s, {device_id(std::size_t{0}), problem.job.batch}, w, 0).forward);
  }
  for (auto& [group, all] : holders) detail::put_tied(t, all);
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
    // Copies per device: the first of the stages that read there names the transfer.
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
