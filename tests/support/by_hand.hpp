// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small problems for tests by hand: 1 FLOP/s devices and 1 B/s wires, so FLOP and bytes are seconds.

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>

namespace hetplan::test {

/// Returns a tolerance for hand-made numbers, which are exact to the last digits.
inline Approx near(double expected) { return Approx(expected).epsilon(1e-12).margin(1e-13); }

inline device worker(std::string name, double speed = 1) {
  device d;
  d.name = std::move(name);
  d.memory = 1_GB;
  d.compute = flops_per_second(speed);
  return d;
}

inline std::vector<device> workers(int n) {
  std::vector<device> all;
  for (int i = 0; i < n; ++i) all.push_back(worker("d" + std::to_string(i)));
  return all;
}

inline cluster wired(int devices, double latency_s = 0, double capacity = 1) {
  return {"wired", workers(devices), mesh{bytes_per_second(capacity), seconds(latency_s)}};
}
inline cluster wireless(int devices, double latency_s = 0, double capacity = 1) {
  return {"wireless", workers(devices), shared_medium{bytes_per_second(capacity), seconds(latency_s)}};
}

/// Returns a layer of nothing but these FLOP per sample of its three phases.
inline layer_spec work_of(std::string name, double forward, double input = 0, double weight_part = 0) {
  return {.name = std::move(name),
          .forward_flops = flops(forward),
          .backward_input_flops = flops(input),
          .backward_weight_flops = flops(weight_part)};
}

struct tensor {
  int from, to;
  double forward;
  double gradient = 0;
};

inline planning_graph model_of(std::vector<layer_spec> layers, const std::vector<tensor>& edges) {
  planning_graph_builder b("by hand");
  for (layer_spec& l : layers) b.add_layer(std::move(l));
  for (const tensor& e : edges) b.add_edge(layer_id(e.from), layer_id(e.to), bytes(e.forward), bytes(e.gradient));
  return std::move(b).build();
}

/// Returns a stage of layers by number and of devices as (number, samples).
inline stage stage_of(const std::vector<int>& layers, const std::vector<std::pair<int, int>>& devices, int microbatch_size = 0,
                      int pipeline = 0) {
  stage s;
  for (const int l : layers) s.layers.push_back(layer_id(l));
  for (const auto& [d, samples] : devices) s.devices.push_back({.device = device_id(d), .samples = samples});
  s.microbatch_size = microbatch_size;
  s.pipeline = pipeline;
  return s;
}

inline plan plan_of(mode how, int microbatch_size, int microbatches, std::vector<stage> stages, schedule_kind kind = schedule_kind::gpipe) {
  plan p;
  p.workload.mode = how;
  p.microbatch_size = microbatch_size;
  p.microbatches = microbatches;
  p.stages = std::move(stages);
  p.schedule.kind = kind;
  return p;
}

/// Returns the order of a text such as "F0.1 B0.1 W0.1": phase, stage, microbatch.
inline std::vector<order_entry> order_of(const std::string& text) {
  std::vector<order_entry> order;
  for (std::size_t i = 0; i < text.size();) {
    const phase what = text[i] == 'F' ? phase::forward : text[i] == 'B' ? phase::backward_input : phase::backward_weight;
    std::size_t used = 0;
    const int s = std::stoi(text.substr(i + 1), &used);
    i += 2 + used;
    const int m = std::stoi(text.substr(i), &used);
    i += used + 1;
    order.push_back({what, stage_id(s), m});
  }
  return order;
}

inline judgement judged(const plan& p, const planning_graph& m, const cluster& c, const simulator_options& o = {}) {
  return judge(p, m, c, roofline{}, {}, o);
}

/// Returns the interval of a task; the device matters only if the stage has several.
inline interval when(const judgement& j, phase what, int s, int microbatch, int device = -1, int token = 0) {
  for (std::size_t i = 0; i < j.graph.computes.size(); ++i) {
    const tasks::compute_task& t = j.graph.computes[i];
    if (t.what == what && t.stage.value == s && t.microbatch == microbatch && t.pass == token && (device < 0 || t.device.value == device)) {
      return j.trace.computes[i];
    }
  }
  FAIL("no such task");
  return {};
}

/// Returns the interval of a transfer, by its devices and the producer's microbatch.
inline interval sent(const judgement& j, transfer_kind kind, int from, int to, int microbatch = 0, int chunk = 0, int token = 0) {
  for (std::size_t i = 0; i < j.graph.transfers.size(); ++i) {
    const tasks::transfer& t = j.graph.transfers[i];
    if (t.kind == kind && t.from.value == from && t.to.value == to && t.chunk == chunk && t.pass == token &&
        (kind == transfer_kind::sync || t.microbatch == microbatch)) {
      return j.trace.transfers[i];
    }
  }
  FAIL("no such transfer");
  return {};
}

inline void check_interval(const interval& found, double start, double end) {
  CHECK(found.start_s == near(start));
  CHECK(found.end_s == near(end));
}

/// Transfers without a plan, between devices d0, d1, ... over resources of the given capacities.
struct transfers_alone {
  cluster joined;
  tasks::task_graph_builder builder;

  transfers_alone(int devices, const std::vector<double>& capacities)
      : joined("alone", workers(devices), route_table{resources_of(capacities), {}}), builder(static_cast<std::size_t>(devices)) {}

  /// @param via  (resource, weight)
  tasks::task_graph_builder::handle add(int from, int to, double volume, double release_s, const std::vector<std::pair<int, double>>& via,
                                        int priority = 0, double latency_s = 0) {
    route r{seconds(latency_s), {}};
    for (const auto& [resource, weight] : via) r.via.push_back({resource_id(resource), weight});
    tasks::transfer t;
    t.from = device_id(from);
    t.to = device_id(to);
    t.microbatch = count_++;
    t.volume_bytes = volume;
    t.release_s = release_s;
    t.latency_s = latency_s;
    t.priority = priority;
    t.route = builder.add_route(r);
    return builder.add(t);
  }

  template <class Policy = fair_share>
  trace run(const Policy& policy = {}, const simulator_options& o = {}) && {
    const tasks::task_graph g = std::move(builder).build();
    return simulate(g, joined.network(), policy, o);
  }

 private:
  static std::vector<resource> resources_of(const std::vector<double>& capacities) {
    std::vector<resource> all;
    for (const double c : capacities) all.push_back({"r" + std::to_string(all.size()), bytes_per_second(c)});
    return all;
  }
  int count_ = 0;
};

}  // namespace hetplan::test
