// SPDX-License-Identifier: BSL-1.0
#include "profile.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include <range/v3/view/cartesian_product.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/cluster/topology.hpp>

#include "alone.hpp"
#include "inputs.hpp"

namespace executors {

double median(std::vector<double> all) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}

std::vector<layer_times> measure_layers(const neural_network& net, const std::vector<int>& batches, int runs) {
  const std::size_t n = net.layers.size();
  std::vector<layer_times> all(n);
  const tensors parameters = first_tensors(net, 1);
  for (const int batch : batches) {
    std::vector<std::vector<double>> forward(n), backward(n);
    for (int run = 0; run <= runs; ++run) {
      tensors slopes;
      static_cast<void>(loss_of(net, parameters, batch, 1, &slopes, [&](std::size_t l, hetplan::phase what, double s) {
        if (run > 0) (what == hetplan::phase::forward ? forward : backward)[l].push_back(s);
      }));
    }
    for (auto&& [times, there, back] : ranges::views::zip(all, forward, backward)) {
      times.forward_s.push_back(median(there));
      times.backward_s.push_back(median(back));
    }
  }
  return all;
}

hetplan::planning_graph describe_measured(const neural_network& net, const std::vector<layer_times>& times, const std::vector<int>& batches,
                                          const hetplan::cluster& c) {
  std::set<std::string> kinds;
  for (const hetplan::device& d : c.devices()) kinds.insert(d.kind);
  std::vector<std::vector<hetplan::layer_profile>> profiles(net.layers.size());
  for (auto&& [of_layer, measured] : ranges::views::zip(profiles, times)) {
    for (const std::string& kind : kinds) {
      const auto slowed = [&](std::vector<double> s) {
        for (double& x : s) x *= slowness_of(kind).value_or(1);
        return s;
      };
      of_layer.push_back({kind, {batches.begin(), batches.end()}, slowed(measured.forward_s), slowed(measured.backward_s)});
    }
  }
  return describe(net, profiles);
}

hetplan::transfer_cost fit_link(const std::vector<link_sample>& samples) {
  const double n = static_cast<double>(samples.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const link_sample& s : samples) {
    x += s.bytes / n;
    y += s.seconds / n;
  }
  for (const link_sample& s : samples) {
    xx += (s.bytes - x) * (s.bytes - x);
    xy += (s.bytes - x) * (s.seconds - y);
  }
  const double slope = std::max(xy / xx, std::numeric_limits<double>::min());
  return {std::max(0.0, y - slope * x), slope};
}

pair_flows flows_between_all(const hetplan::cluster& c) {
  pair_flows all{idle_program(c), {}};
  for (std::vector<task>& tasks : all.work.tasks) tasks.resize(1);  // takes part
  for (const auto& [a, b] : ranges::views::cartesian_product(c.devices(), c.devices())) {
    if (a.id != b.id && c.network().find(a.id, b.id) != nullptr) all.flow_of[{a.id, b.id}] = all.work.add_flow(c, a.id, b.id, 0);
  }
  return all;
}

hetplan::cluster measure_cluster(const hetplan::cluster& nominal, int runs,
                                 const std::function<double(hetplan::device_id, hetplan::device_id, double)>& send) {
  const hetplan::network& net = nominal.network();
  hetplan::route_table measured{{net.resources().begin(), net.resources().end()}, {}};
  std::map<std::size_t, std::vector<double>> capacities;
  for (const auto& [a, b] : ranges::views::cartesian_product(nominal.devices(), nominal.devices())) {
    const hetplan::route* way = a.id == b.id ? nullptr : net.find(a.id, b.id);
    if (way == nullptr) continue;
    hetplan::route found = *way;
    if (!way->via.empty()) {
      const double peak = net.peak_bandwidth(a.id, b.id).value();
      std::vector<link_sample> samples;
      for (const double s : {0.004, 0.012, 0.036}) {
        std::vector<double> times;
        for (int run = 0; run < runs; ++run) times.push_back(send(a.id, b.id, s * peak));
        samples.push_back({s * peak, median(times)});
      }
      const hetplan::transfer_cost line = fit_link(samples);
      found.latency = hetplan::seconds(line.latency_s);
      for (const hetplan::resource_use& u : way->via) {
        if (net[u.resource].capacity.value() / u.weight <= peak * (1 + 1e-9))
          capacities[u.resource.index()].push_back(u.weight / line.s_per_byte);
      }
    }
    measured.rules.push_back({a.name, b.name, std::move(found)});
  }
  for (auto& [resource, found] : capacities) measured.listed[resource].capacity = hetplan::bytes_per_second(median(std::move(found)));
  return {nominal.name(), std::vector(nominal.devices().begin(), nominal.devices().end()), measured};
}

}  // namespace executors
