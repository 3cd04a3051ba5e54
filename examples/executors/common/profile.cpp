// SPDX-License-Identifier: BSL-1.0
#include "profile.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include <range/v3/view/cartesian_product.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/cluster/topology.hpp>

#include "worker.hpp"

namespace executors {

double median(std::vector<double> all) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}

namespace {

/// A transport of a single device.
struct no_links {
  void send(const std::vector<parcel>&) {}
  parcel receive(std::size_t, int) { return {}; }
  [[nodiscard]] double now_s() const { return steady_s(); }
  void wait_until(double) {}
  meeting meet(double) { return {}; }
};

/// Returns the program of seven microbatches of `samples` samples in all layers on one device.
program alone(const neural_network& net, int samples) {
  constexpr int microbatches = 7;
  program p;
  p.batch = long{samples} * microbatches;
  p.stage_of.assign(net.layers.size(), 0);
  p.stages = {{.layers = {}, .outside = {}, .devices = {hetplan::device_id(0)}}};
  for (std::size_t l = 0; l < net.layers.size(); ++l) p.stages[0].layers.push_back(l);
  p.tasks.resize(1);
  for (long first = 0; first < p.batch; first += samples) {
    for (const hetplan::phase what : {hetplan::phase::forward, hetplan::phase::backward_input, hetplan::phase::backward_weight})
      p.tasks[0].push_back(
          {.what = what, .stage = hetplan::stage_id(0), .first = first, .last = first + samples, .receives = {}, .sends = {}});
  }
  return p;
}

/// Adds the seconds of each layer at a batch size, on a device of this pace.
void measure(const neural_network& net, int samples, const pace& how, const profile_options& o, std::vector<layer_times>& to) {
  const program p = alone(net, samples);
  for (layer_times& times : to) {
    for (auto* list : {&times.forward_s, &times.backward_s, &times.weights_s}) list->push_back(0);
  }
  bool counts = false;
  const double each = 1.0 / (o.runs * static_cast<double>(p.batch / samples));
  const layer_timer timer = [&](std::size_t l, hetplan::phase what, double s) {
    if (!counts) return;
    (what == hetplan::phase::forward ? to[l].forward_s : to[l].backward_s).back() += s * each;
    if (what == hetplan::phase::backward_weight) to[l].weights_s.back() += s * each;
  };
  const auto train = [&](const layer_timer& told, const auto& goes_on) {
    no_links link;
    worker w(net, p, hetplan::device_id(0), {.paces = {how}, .timer = told}, link);
    for (int run = 0; goes_on(run); ++run) w.run_iteration(0);
  };
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < o.busy; ++i) {
    others.emplace_back([&](const std::stop_token& stop) { train([](auto...) {}, [&](int) { return !stop.stop_requested(); }); });
  }
  train(timer, [&](int run) {
    counts = run > 0;
    return run <= o.runs;
  });
}

}  // namespace

kind_times measure_layers(const neural_network& net, const hetplan::cluster& c, const profile_options& o) {
  std::map<int, std::vector<layer_times>> measured;  // [times]
  kind_times all;
  const std::vector<pace> paces = paces_of(c, o.slow);
  for (const hetplan::device& d : c.devices()) {
    const pace& how = paces[d.id.index()];
    const auto [of_times, is_new] = measured.try_emplace(how.times, net.layers.size());
    if (is_new) {
      for (const int batch : o.batches) measure(net, batch, {.times = how.times}, o, of_times->second);
    }
    all[d.kind] = of_times->second;
    for (layer_times& times : all[d.kind]) {
      for (auto* list : {&times.forward_s, &times.backward_s, &times.weights_s}) {
        for (double& s : *list) s *= how.wait;
      }
    }
  }
  return all;
}

hetplan::planning_graph describe_measured(const neural_network& net, const kind_times& times, const std::vector<int>& batches) {
  std::vector<std::vector<hetplan::layer_profile>> profiles(net.layers.size());
  std::vector<double> backward_s(net.layers.size(), 0), parts(net.layers.size(), 0);
  const auto sum = [](const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); };
  for (const auto& [kind, layers] : times) {
    for (auto&& [of_layer, measured, whole, part] : ranges::views::zip(profiles, layers, backward_s, parts)) {
      of_layer.push_back({kind, {batches.begin(), batches.end()}, measured.forward_s, measured.backward_s});
      whole += sum(measured.backward_s);
      part += sum(measured.weights_s);
    }
  }
  for (auto&& [whole, part] : ranges::views::zip(backward_s, parts)) part /= std::max(whole, std::numeric_limits<double>::min());
  return describe(net, profiles, parts);
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
  for (std::vector<task>& tasks : all.work.tasks) tasks.resize(1);  // makes the device take part
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
