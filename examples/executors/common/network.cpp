// SPDX-License-Identifier: BSL-1.0
#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <hetplan/graph/planning_graph.hpp>

namespace executors {

long network_layer::width() const {
  return std::visit([](const auto& w) { return w.width(); }, work);
}

long network_layer::parameters() const {
  return std::visit([](const auto& w) { return w.parameters(); }, work);
}

std::size_t neural_network::tensor_of(std::size_t layer) const {
  if (layers[layer].group.empty()) return layer;
  const auto same = [&](const network_layer& l) { return l.group == layers[layer].group; };
  return static_cast<std::size_t>(std::find_if(layers.begin(), layers.end(), same) - layers.begin());
}

Eigen::VectorXd neural_network::first_parameters(std::size_t tensor, std::uint64_t seed) const {
  const network_layer& l = layers[tensor];
  const double range = std::sqrt(3.0 / static_cast<double>(std::visit([](const auto& w) { return w.fan_in(); }, l.work)));
  Eigen::VectorXd p(l.parameters());
  for (long i = 0; i < p.size(); ++i) p[i] = range * random_value(seed, 2000 + tensor, static_cast<std::uint64_t>(i));
  return p;
}

neural_network mlp(long width, int depth) {
  neural_network n{"mlp", {}};
  n.layers.push_back({.name = "first", .work = dense{.in = width, .out = width, .data = 1}});
  for (int i = 0; i < depth; ++i) {
    n.layers.push_back({.name = "hidden" + std::to_string(i), .work = dense{width, width}, .inputs = {n.layers.size() - 1}});
  }
  n.layers.push_back({.name = "last", .work = dense{width, 64}, .inputs = {n.layers.size() - 1}});
  n.layers.push_back({.name = "loss", .work = square_loss{64}, .inputs = {n.layers.size() - 1}});
  return n;
}

neural_network transformer(long tokens, long model, long vocabulary, int blocks) {
  neural_network n{"transformer", {}};
  n.layers.push_back({.name = "embed", .work = embed{tokens, model, vocabulary}, .group = "table"});
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    n.layers.push_back({.name = name + ".attention", .work = attention{tokens, model}, .inputs = {n.layers.size() - 1}});
    n.layers.push_back({.name = name + ".feed_forward", .work = feed_forward{tokens, model, 4 * model}, .inputs = {n.layers.size() - 1}});
  }
  n.layers.push_back(
      {.name = "loss", .work = next_token_loss{tokens, model, vocabulary}, .inputs = {n.layers.size() - 1}, .group = "table"});
  return n;
}

neural_network towers(long width, int depth) {
  neural_network n{"towers", {}};
  const auto tower = [&](const std::string& name, long w, int layers, std::uint64_t data) {
    n.layers.push_back({.name = name + "0", .work = dense{.in = w, .out = w, .data = data}});
    for (int i = 1; i < layers; ++i) {
      n.layers.push_back({.name = name + std::to_string(i), .work = dense{w, w}, .inputs = {n.layers.size() - 1}});
    }
    return n.layers.size() - 1;
  };
  const std::size_t wide = tower("wide", width, depth, 1), narrow = tower("narrow", width / 2, (depth + 1) / 2, 2);
  n.layers.push_back({.name = "join", .work = dense{width + width / 2, width}, .inputs = {wide, narrow}});
  n.layers.push_back({.name = "last", .work = dense{width, 64}, .inputs = {n.layers.size() - 1}});
  n.layers.push_back({.name = "loss", .work = square_loss{64}, .inputs = {n.layers.size() - 1}});
  return n;
}

neural_network find_network(std::string_view name) {
  if (name == "mlp") return mlp(384, 8);
  if (name == "transformer") return transformer(32, 64, 128, 4);
  if (name == "towers") return towers(384, 4);
  throw hetplan::invalid_input("network \"" + std::string(name) + "\"; expected one of mlp, transformer, towers");
}

hetplan::planning_graph describe(const neural_network& n, const std::vector<std::vector<hetplan::layer_profile>>& profiles,
                                 const std::vector<double>& weight_parts) {
  constexpr double number = sizeof(double);
  hetplan::planning_graph_builder b(n.name, number);
  for (std::size_t i = 0; i < n.layers.size(); ++i) {
    const network_layer& l = n.layers[i];
    const double kept = static_cast<double>(l.width() + std::visit([](const auto& w) { return w.kept(); }, l.work));
    const double work = std::visit([](const auto& w) { return w.flops(); }, l.work);
    const bool learns = l.parameters() > 0;
    const double part = !learns ? 0 : weight_parts.empty() ? 0.5 : weight_parts[i], back = learns ? 2 * work : work;
    b.add_layer({.name = l.name,
                 .forward_flops = hetplan::flops(work),
                 .backward_input_flops = hetplan::flops(back * (1 - part)),
                 .backward_weight_flops = hetplan::flops(back * part),
                 .weight = hetplan::bytes(number * static_cast<double>(l.parameters())),
                 .weight_group = l.group,
                 .activation = hetplan::bytes(number * kept),
                 .profiles = profiles.empty() ? std::vector<hetplan::layer_profile>{} : profiles[i]});
    for (const std::size_t from : l.inputs) {
      b.add_edge(hetplan::layer_id(from), hetplan::layer_id(i), hetplan::bytes(number * static_cast<double>(n.layers[from].width())));
    }
  }
  return std::move(b).build();
}

}  // namespace executors
