// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/settings.hpp>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>

namespace hetplan::zoo {

namespace detail {

/// Builder of a graph. An operator's output has the same size for all readers.
class wide_graph {
 public:
  wide_graph(std::string name, precision dtype, int tokens)
      : builder_(std::move(name), bytes_per_element(dtype), 1), element_(bytes_per_element(dtype)), tokens_(tokens) {}

  struct output {
    layer_id id;
    double elements;
  };

  void scope(std::string prefix) { scope_ = std::move(prefix); }

  output add(const char* name, const char* kind, const std::vector<output>& inputs, double flop, double parameters, double elements) {
    const layer_id id = builder_.add_layer(
        {.name = scope_ + name, .kind = kind, .forward_flops = flops(flop), .weight = bytes(parameters * element_), .trainable = false});
    for (const output& i : inputs) builder_.add_edge(i.id, id, bytes(i.elements * element_), bytes{});
    return {id, elements};
  }
  output matmul(const char* name, const output& x, double in, double out) {
    return add(name, "MatMul", {x}, 2.0 * tokens_ * in * out, in * out, tokens_ * out);
  }
  output elementwise(const char* name, const char* kind, const std::vector<output>& inputs, double parameters = 0) {
    return add(name, kind, inputs, inputs.front().elements, parameters, inputs.front().elements);
  }
  [[nodiscard]] planning_graph build() && { return std::move(builder_).build(); }

 private:
  planning_graph_builder builder_;
  double element_;
  int tokens_;
  std::string scope_;
};

}  // namespace detail

HETPLAN_INLINE planning_graph moirai_graph(const moirai_model& m) {
  using output = detail::wide_graph::output;
  detail::wide_graph g("synthetic " + std::string(m.name), m.dtype, m.tokens);
  const double width = std::sqrt(m.parameters / 12 / m.layers), head = width / m.heads;
  const double rows = m.tokens, scores = rows * m.attended;
  std::vector<output> before;
  for (int l = 0; l < m.layers; ++l) {
    const std::string layer = "l" + std::to_string(l) + ".";
    g.scope(layer);
    const output normed = before.empty() ? g.add("norm1", "LayerNormalization", {}, rows * width, 2 * width, rows * width)
                                         : g.elementwise("norm1", "LayerNormalization", before, 2 * width);
    std::vector<output> heads;
    for (int h = 0; h < m.heads; ++h) {
      g.scope(layer + "h" + std::to_string(h) + ".");
      const output q = g.elementwise("q.bias", "Add", {g.matmul("q", normed, width, head)}, head);
      const output k = g.elementwise("k.bias", "Add", {g.matmul("k", normed, width, head)}, head);
      const output v = g.elementwise("v.bias", "Add", {g.matmul("v", normed, width, head)}, head);
      const output turned = g.elementwise("k.turned", "Transpose", {k});
      output s = g.add("scores", "MatMul", {q, turned}, 2 * scores * head, 0, scores);
      s = g.elementwise("mask", "Add", {g.elementwise("scale", "Mul", {s})});
      s = g.elementwise("softmax", "Softmax", {s});
      heads.push_back(g.add("context", "MatMul", {s, v}, 2 * scores * head, 0, rows * head));
    }
    g.scope(layer);
    const output all = g.add("concat", "Concat", heads, 0, 0, rows * width);
    output x = g.elementwise("out.bias", "Add", {g.matmul("out", all, width, width)}, width);
    const output middle = before.empty() ? g.elementwise("add1", "Add", {x, normed}) : g.elementwise("add1", "Add", {x, before.front()});
    x = g.elementwise("norm2", "LayerNormalization", {middle}, 2 * width);
    x = g.elementwise("up.bias", "Add", {g.matmul("up", x, width, 4 * width)}, 4 * width);
    x = g.matmul("down", g.elementwise("gelu", "Gelu", {x}), 4 * width, width);
    before = {g.elementwise("add2", "Add", {x, middle})};
  }
  return std::move(g).build();
}

HETPLAN_INLINE hetplan::cluster moirai_cluster(std::string_view name) {
  struct row {
    const char* name;
    const char* kind;
    double memory_gb, tflops, gb_per_s;
  };
  using gbit_per_s = std::array<std::array<double, 4>, 4>;
  const auto make = [&](const std::array<row, 4>& rows, const gbit_per_s& bandwidth) {
    std::vector<hetplan::device> devices;
    route_table net;
    for (const row& r : rows) {
      devices.push_back({.name = r.name,
                         .kind = r.kind,
                         .memory = bytes(r.memory_gb * 1e9),
                         .compute = flops_per_second(r.tflops * 1e12),
                         .memory_bandwidth = bytes_per_second(r.gb_per_s * 1e9),
                         .launch = seconds(10e-6)});
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < rows.size(); ++j) {
        if (i == j) continue;
        const std::string from = rows[i].name, to = rows[j].name;
        net.rules.push_back({from, to, {.latency = {}, .via = {{resource_id(net.listed.size()), 1}}}});
        net.listed.push_back({from + "->" + to, bytes_per_second(bandwidth[j][i] * 1e9 / 8)});
      }
    }
    return hetplan::cluster("moirai-" + std::string(name), std::move(devices), net);
  };
  if (name == moirai_cluster_names[0]) {
    return make(
        {{{"A", "rtx2080ti", 11, 13.45, 616}, {"B", "t4", 16, 8.141, 320}, {"C", "p4", 8, 5.5, 192}, {"D", "rtx3060ti", 8, 16.2, 448}}},
        {{{0, 42.39, 33.2, 42.08}, {44.26, 0, 35.31, 43.22}, {32.92, 35.32, 0, 33.28}, {44.28, 44.51, 32.95, 0}}});
  }
  if (name == moirai_cluster_names[1]) {
    return make({{{"A", "v100-32gb", 32, 14.13, 897},
                  {"B", "v100-32gb", 32, 14.13, 897},
                  {"C", "p100", 16, 9.3, 732},
                  {"D", "p100", 16, 9.3, 732}}},
                {{{0, 1148.16, 630.43, 622.67}, {1170.04, 0, 609.82, 575.08}, {626.1, 618.98, 0, 581.35}, {610.56, 581.09, 571.96, 0}}});
  }
  throw_unknown("zoo::moirai_cluster", "cluster", name, moirai_cluster_names);
}

HETPLAN_INLINE hetplan::cluster cluster(std::string_view name) {
  std::string n(name);
  if (n == "smart-home-1") {
    return {std::move(n),
            std::vector{device("rtx4060ti", "desktop0"), device("rtx4060ti", "desktop1"), device("rtx4050", "laptop0"),
                        device("rtx4050", "laptop1"), device("rtx4050", "laptop2")},
            shared_medium{900_Mbit_per_s, 2_ms}};
  }
  if (n == "smart-home-2") {
    return {std::move(n),
            std::vector{device("rtx4050", "laptop0"), device("rtx4050", "laptop1"), device("snapdragon-8-elite", "xiaomi0"),
                        device("snapdragon-8-elite", "xiaomi1"), device("snapdragon-8-elite", "galaxy0")},
            shared_medium{600_Mbit_per_s, 2_ms}};
  }
  if (n == "traffic-monitor") {
    return {std::move(n),
            std::vector{device("genio-720", "camera0", link::wire), device("genio-720", "camera1", link::wire),
                        device("genio-520", "camera2", link::wire), device("genio-520", "camera3", link::wire)},
            ring{200_Mbit_per_s, 0.5_ms, duplex::full}};
  }
  if (n == "edge-cluster") {
    return {std::move(n),
            std::vector{device("a40", "server0", link::wire), device("a40", "server1", link::wire), device("v100", "server2", link::wire),
                        device("v100", "server3", link::wire)},
            ring{4_Gbit_per_s, 0.1_ms, duplex::full}};
  }
  if (is_device_kind(name)) {
    hetplan::device alone = device(name, n);
    alone.interconnect.reset();  // it has one accelerator
    return {std::move(n), std::move(alone)};
  }
  throw_unknown("zoo::cluster", "cluster", name, clusters_and_devices());
}

}  // namespace hetplan::zoo
