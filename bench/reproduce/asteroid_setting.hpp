// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What Asteroid's evaluation ran on, as far as its text tells: environments, models, mini-batches, device speeds, planners.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/recipes/plan_on_view.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

namespace bench {

/// Devices by kind. The paper says A; the others are ours.
struct environment {
  std::string name;
  std::vector<std::string> kinds;
};
inline const std::array<environment, 4> environments{{
    {"A", {"jetson-nano", "jetson-nano", "jetson-nano", "jetson-nano", "jetson-nano"}},
    {"B", {"jetson-nx", "jetson-nx", "jetson-tx2", "jetson-tx2", "jetson-nano"}},
    {"C", {"jetson-nx", "jetson-tx2", "jetson-tx2", "jetson-nano", "jetson-nano", "jetson-nano"}},
    {"D", {"jetson-nx", "jetson-tx2", "jetson-nano", "jetson-nano"}},
}};
inline environment nanos(int n) { return {"nanos", std::vector<std::string>(static_cast<std::size_t>(n), "jetson-nano")}; }

/// A switch with a full-duplex wire of this rate to every device. N1, N2, ... are the Nanos, T1, ... the TX2s, X1, ... the NXs.
inline hetplan::cluster on_a_switch(const environment& e, double mbit_per_s) {
  std::vector<hetplan::device> devices;
  for (const std::string& kind : e.kinds) {
    const auto before = std::count_if(devices.begin(), devices.end(), [&](const hetplan::device& d) { return d.kind == kind; });
    const std::string letter = kind == "jetson-nano" ? "N" : kind == "jetson-tx2" ? "T" : "X";
    devices.push_back(hetplan::zoo::device(kind, letter + std::to_string(before + 1), hetplan::zoo::link::wire));
  }
  return {e.name, std::move(devices), hetplan::star{hetplan::bytes_per_second(mbit_per_s * 1e6 / 8), hetplan::seconds(0.5e-3)}};
}

/// A model as the paper trains it; speeds of one device in samples per second from the epochs of its Table 1, 0: not in it.
struct trained_model {
  std::string name, title;
  hetplan::planning_graph graph;
  int batch;
  std::vector<int> microbatch_sizes;
  double nano_rate, tx2_rate;

  [[nodiscard]] hetplan::job job() const { return job(batch, microbatch_sizes); }
  /// Plain SGD, as the paper moves weights only.
  [[nodiscard]] static hetplan::job job(int batch, std::vector<int> sizes) {
    hetplan::job wanted{.batch = batch, .microbatch_sizes = std::move(sizes)};
    wanted.workload.optimizer_factor = 0;
    return wanted;
  }
};

/// The chain of a model's layers without the last one.
inline hetplan::planning_graph without_last_layer(const hetplan::planning_graph& model) {
  const hetplan::planning_graph chain = hetplan::chain_view(model);
  hetplan::planning_graph_builder b(model.name(), model.bytes_per_parameter(), model.tokens_per_sample());
  for (const hetplan::layer& l : chain.layers()) {
    if (l.id.index() + 1 == chain.size()) break;
    b.add_layer(hetplan::spec_of(chain, l));
  }
  const hetplan::sequence_cuts cuts(chain, sequence_of(chain));
  for (std::size_t i = 1; i + 1 < chain.size(); ++i) {
    const auto [forward, gradient] = cuts.bytes_in(i, chain.size());
    b.add_edge(hetplan::layer_id(i - 1), hetplan::layer_id(i), hetplan::bytes(forward), hetplan::bytes(gradient));
  }
  return std::move(b).build();
}

/// A vision model; `side` 64 is what an image of 32 x 32 makes of it when the first convolution does not stride.
inline hetplan::planning_graph vision(const char* name, int side) {
  return hetplan::zoo::model(name, {.input = hetplan::zoo::image_shape{3, side, side}, .dtype = hetplan::zoo::precision::fp32});
}
/// The four models. CIFAR-10 (50 000 images of 3 x 32 x 32; the first convolution does not stride), Mini-ImageNet (60 000 of
/// 3 x 224 x 224); BERT-small on 32 tokens, without the language model's head.
inline std::vector<trained_model> trained_models() {
  using namespace hetplan;
  const std::vector<int> up_to_256{16, 32, 64, 128, 256}, up_to_32{1, 2, 4, 8, 16, 32};
  std::vector<trained_model> all;
  all.push_back(
      {"efficientnet-b1", "EfficientNet-B1", vision("efficientnet-b1", 64), 2048, up_to_256, 50e3 / (26.7 * 60), 50e3 / (11.2 * 60)});
  all.push_back({"mobilenetv2", "MobileNetV2", vision("mobilenetv2", 64), 2048, up_to_256, 50e3 / (22 * 60), 50e3 / (8.5 * 60)});
  all.push_back({"resnet50", "ResNet-50", vision("resnet50", 224), 256, up_to_32, 60e3 / (3.48 * 3600), 60e3 / (1.14 * 3600)});
  all.push_back({"bert-small", "BERT-small", without_last_layer(zoo::model("bert-small", {.tokens = 32, .dtype = zoo::precision::fp32})),
                 2048, up_to_256, 0, 0});
  return all;
}
/// The same with the strides that were published for larger images; nothing for the others.
inline std::optional<trained_model> with_published_strides(const trained_model& m) {
  if (m.name != "efficientnet-b1" && m.name != "mobilenetv2") return std::nullopt;
  trained_model other = m;
  other.graph = vision(m.name.c_str(), 32);
  return other;
}

using edge_costs = hetplan::slowed<hetplan::roofline>;
using edge_problem = hetplan::planning_problem;

/// Samples per second of a result; nothing where no plan fits.
inline std::optional<double> rate_of(const hetplan::plan_result& r) {
  if (r.plans.empty()) return std::nullopt;
  return static_cast<double>(r.plans.front().plan.batch()) / r.plans.front().evaluation.latency.value();
}
/// One device of a kind on its own, by its data sheet.
inline double data_sheet_rate(const trained_model& m, const std::string& kind) {
  const hetplan::cluster alone = on_a_switch({"alone", {kind}}, 100);
  return *rate_of(hetplan::recipes::on_device(edge_problem{m.graph, alone, edge_costs{{}, {1}}, m.job()}, hetplan::minimize_latency{}, 1));
}

/// How fast devices are, as a part of what the roofline makes of their data sheets.
class speeds {
 public:
  /// As fast as their data sheets say.
  speeds() = default;
  /// As slow as the epochs of the paper's Table 1. A Jetson NX gets the part of a TX2, BERT-small those of another model.
  speeds(const trained_model& m, const trained_model& instead)
      : nano_(of(m, instead, "jetson-nano", &trained_model::nano_rate)), tx2_(of(m, instead, "jetson-tx2", &trained_model::tx2_rate)) {}

  [[nodiscard]] double part(const std::string& kind) const { return kind == "jetson-nano" ? nano_ : tx2_; }
  [[nodiscard]] edge_costs on(const hetplan::cluster& c) const {
    edge_costs all{{}, {}};
    for (const hetplan::device& d : c.devices()) all.factor.push_back(part(d.kind));
    return all;
  }

 private:
  static double of(const trained_model& m, const trained_model& instead, const char* kind, double trained_model::*rate) {
    const trained_model& measured = m.*rate > 0 ? m : instead;
    return measured.*rate / data_sheet_rate(measured, kind);
  }
  double nano_ = 1, tx2_ = 1;
};

/// PP of the paper's section 5.2: GPipe's partition, which overlooks what moves, balanced over unequal devices within memory, under
/// 1F1B.
inline hetplan::plan_result balanced_pipeline(const edge_problem& p) {
  using namespace hetplan;
  const planning_graph chain = chain_view(p.model);
  const cluster view = without_network_costs(p.cluster);
  plan chosen = recipes::choose_on_view(
      p, "pp", chain, view, {.law = largest_step{}, .warmups = {warmup_rule::hide_communication, warmup_rule::depth}, .largest_group = 1});
  return recipes::judge_choice(p, minimize_latency{}, std::move(chosen));
}
/// Data parallelism whose gradients meet at a server, one of the devices.
inline hetplan::plan_result through_a_server(const edge_problem& p) {
  using namespace hetplan;
  const plan_result ring = recipes::data_parallel(p, minimize_latency{}, 1);
  if (ring.plans.empty()) return ring;
  plan served = ring.plans.front().plan;
  if (served.stages.front().devices.size() == 1) return ring;
  const stage whole = served.stages.front();
  served.stages.clear();
  for (const assignment& a : whole.devices) {
    const int i = static_cast<int>(served.pipelines.size());
    served.stages.push_back(
        {.name = "w" + std::to_string(i), .layers = whole.layers, .devices = {a}, .microbatch_size = a.samples, .pipeline = i});
    served.pipelines.push_back(static_cast<long long>(a.samples) * served.microbatches);
  }
  served.parameter_server = whole.devices.front().device;
  served.schedule.warmup.clear();
  return recipes::judge_choice(p, minimize_latency{}, std::move(served));
}

/// Asteroid on wires on which activations and gradients pass each other: more hopeful than eq. 6.
inline hetplan::plan_result asteroid_on_full_duplex(const edge_problem& p) {
  using namespace hetplan;
  return recipes::judge_choice(
      p, minimize_latency{}, recipes::choose_on_view(p, "asteroid", chain_view(p.model), uncontended(p.cluster), recipes::asteroid_search));
}

/// What is compared, in the order of tables and plots.
struct planner {
  const char* name;
  hetplan::plan_result (*ask)(const edge_problem&);
};
inline constexpr std::array<planner, 9> planners{{
    {"on-device", [](const edge_problem& p) { return hetplan::recipes::on_device(p, hetplan::minimize_latency{}, 1); }},
    {"DP (EDDL)", [](const edge_problem& p) { return hetplan::recipes::data_parallel(p, hetplan::minimize_latency{}, 1); }},
    {"PP", balanced_pipeline},
    {"GPipe", [](const edge_problem& p) { return hetplan::recipes::gpipe(p, hetplan::minimize_latency{}, 1); }},
    {"PipeDream", [](const edge_problem& p) { return hetplan::recipes::pipedream(p, hetplan::minimize_latency{}, 1); }},
    {"Dapple", [](const edge_problem& p) { return hetplan::recipes::dapple(p, hetplan::minimize_latency{}, 1); }},
    {"HetPipe", [](const edge_problem& p) { return hetplan::recipes::hetpipe(p, hetplan::minimize_latency{}, 1); }},
    {"Asteroid", [](const edge_problem& p) { return hetplan::recipes::asteroid(p, hetplan::minimize_latency{}, 1); }},
    {"Dora", [](const edge_problem& p) { return hetplan::recipes::dora(p, hetplan::minimize_latency{}, 1); }},
}};
inline constexpr std::size_t on_device_at = 0, dp_at = 1, pp_at = 2, asteroid_at = 7;

/// 68:T1+T2 39:X1 ...: layers and devices of each stage.
inline std::string stages_of(const hetplan::plan& p, const hetplan::cluster& c) {
  std::string text;
  for (const hetplan::stage& s : p.stages) {
    text += (text.empty() ? "" : " ") + std::to_string(s.layers.size()) + ":";
    for (std::size_t i = 0; i < s.devices.size(); ++i) text += (i > 0 ? "+" : "") + c[s.devices[i].device].name;
  }
  return text;
}

}  // namespace bench
