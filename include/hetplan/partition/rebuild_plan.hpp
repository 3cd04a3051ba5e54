// SPDX-License-Identifier: BSL-1.0
#pragma once
/// From the last partial plan of a search back to a plan.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/orders.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// Follows a whole plan's parts and gives its groups devices: of each class the next ones that are free.
///
/// Source  Dora, section 4.1: the plan behind the best value of eq. 5. Naming devices of a class last is ours.
template <class Store>
[[nodiscard]] found_plan rebuild_plan(const partial_node& whole, const Store& store, const std::vector<std::size_t>& boundaries,
                                      const search_tables& t, const device_space& space, const candidate_costs& costs, const plan& blank,
                                      const search_options& options, double response_s) {
  found_plan found{.plan = blank, .score = whole.rank};
  found.plan.stages.clear();
  evaluation& e = found.estimate;
  e.latency = seconds(response_s * costs.repeats());
  if (blank.workload.mode == mode::generation) e.time_between_tokens = seconds(response_s);
  e.devices.resize(t.cluster.size());
  std::vector<const partial_node*> heads;
  std::vector<std::size_t> stage_of(t.sequence.size()), ends;
  for (const partial_node* n = &whole; n->stages > 0; n = &store[n->parent]) {
    std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(boundaries[n->boundary]), stage_of.end(), heads.size());
    if (!heads.empty()) ends.push_back(boundaries[n->boundary]);
    heads.push_back(n);
  }
  ends.push_back(t.sequence.size());
  std::vector<std::size_t> used(space.classes.size(), 0);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const partial_node& n = *heads[i];
    const std::size_t first = boundaries[n.boundary], last = ends[i];
    stage s{.name = "s" + std::to_string(i), .layers = t.layers_of(first, last)};
    const stage_traffic traffic = costs.traffic(t.cuts.bytes_in(first, last), t.cuts.bytes_out(first, last, stage_of));
    for (const share_run& run : costs.shares(first, last, n.group, n.in_flight)) {
      const device_part x = costs.part(first, last, n.group, run, traffic);
      const double held = costs.held_bytes(first, last, run.samples, n.in_flight);
      for (int d = 0; d < run.devices; ++d) {
        const device_id id = space.classes[run.of_class][used[run.of_class]++];
        s.devices.push_back({id, run.samples, t.table.time(first, last, id, run.samples).degree});
        e.devices[id.index()] = {true, joules(x.energy_J + x.idle_W * response_s), bytes(held), seconds(x.busy_s)};
      }
    }
    found.plan.stages.push_back(std::move(s));
  }
  set_warmup(found.plan, t.model, options.warmup);
  return found;
}

}  // namespace HETPLAN_NAMESPACE::partition::detail
