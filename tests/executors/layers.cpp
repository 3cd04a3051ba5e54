// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include "executors/support.hpp"

using namespace executors;
using namespace executors::test;

namespace {

/// Returns the largest error of a slope against (loss(p + h) - loss(p - h)) / 2h, relative to the largest slope of its tensor.
double largest_error(const neural_network& net) {
  tensors parameters = first_tensors(net, 7);
  tensors slopes;
  CHECK(loss_of(net, parameters, 3, 7, &slopes) > 0);
  constexpr double h = 1e-5;
  double most = 0;
  for (std::size_t t = 0; t < slopes.size(); ++t) {
    if (slopes[t].size() == 0) continue;
    const double size = slopes[t].cwiseAbs().maxCoeff();
    CHECK(size > 1e-6);
    for (long i = 0; i < slopes[t].size(); i += 1 + slopes[t].size() / 40) {
      double& p = parameters[t][i];
      const double at = p;
      p = at + h;
      const double above = loss_of(net, parameters, 3, 7);
      p = at - h;
      const double below = loss_of(net, parameters, 3, 7);
      p = at;
      most = std::max(most, std::abs((above - below) / (2 * h) - slopes[t][i]) / size);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("Slopes of the dense network are those of its loss") { CHECK(largest_error(small_mlp()) < 1e-6); }
TEST_CASE("Slopes of the transformer are those of its loss") { CHECK(largest_error(small_transformer()) < 1e-6); }
TEST_CASE("Slopes of the joined towers are those of their loss") { CHECK(largest_error(small_towers()) < 1e-6); }

TEST_CASE("A forward on a range of samples gives the rows of the whole batch") {
  const neural_network net = small_transformer();
  const tensors p = [&] {
    tensors all(net.layers.size());
    for (std::size_t l = 0; l < net.layers.size(); ++l) all[l] = net.first_parameters(net.tensor_of(l), 7);
    return all;
  }();
  const auto run = [&](long first, long last) {
    std::vector<matrix> out;
    for (std::size_t l = 0; l < net.layers.size(); ++l) {
      out.emplace_back(last - first, net.layers[l].width());
      std::vector<view> inputs;
      for (const std::size_t from : net.layers[l].inputs) inputs.push_back(rows_of(std::as_const(out[from]), 0, last - first));
      tape kept;
      const mutable_view rows = rows_of(out[l], 0, last - first);
      std::visit([&](const auto& w) { w.forward(p[l].data(), inputs, {first, last, 7}, rows, kept); }, net.layers[l].work);
    }
    return out.back();
  };
  const matrix all = run(0, 6), some = run(2, 5);
  CHECK((all.middleRows(2, 3) - some).cwiseAbs().maxCoeff() < 1e-12);
  CHECK((all.row(0) - all.row(1)).cwiseAbs().maxCoeff() > 1e-6);
}

TEST_CASE("The planning graph of a network says what its layers hold and send") {
  const neural_network net = small_transformer();  // 5 tokens of 8 numbers, 11 words
  const hetplan::planning_graph g = describe(net);
  REQUIRE(g.size() == 6);
  CHECK(g[hetplan::layer_id(0)].weight == hetplan::bytes(8 * 11 * 8));
  CHECK(g[hetplan::layer_id(0)].weight_group == g[hetplan::layer_id(5)].weight_group);
  CHECK(g[hetplan::layer_id(1)].weight == hetplan::bytes(8 * 4 * 64));
  for (const hetplan::layer_edge& e : g.edges()) CHECK(e.forward == hetplan::bytes(8 * 5 * 8));
  CHECK(g[hetplan::layer_id(1)].forward_flops == hetplan::flops(8 * 5 * 64 + 4 * 25 * 8));
}
