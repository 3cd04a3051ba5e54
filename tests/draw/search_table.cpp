// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <hetplan/draw/search_table_svg.hpp>

#include "draw/markup.hpp"
#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

TEST_CASE("the picture of a search's table has every filled cell and an arrow per stage of the best plan") {
  std::size_t pictures = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 6, .most_devices = 3, .tight = false});
    INFO(i.what);
    const search_tables tables(i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload,
                               i.blank.microbatch_size);
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < tables.classes.size(); ++c) order.push_back(c);
    const device_space space =
        seed % 2 == 0 ? test::any_order(tables, i.blank) : in_class_order(tables.classes, order, i.blank.microbatch_size);
    const search_options how{.plans = 4};
    std::vector<draw::table_cell> cells;
    const auto watch = [&](const cell_filled& c) {
      cells.push_back({c.first_block, c.state, c.stages, c.kept.size(), c.kept.front()->rank});
      return control::go;
    };
    const search_result r = two_substate_dp(tables, space, i.blank, minimize_latency{}, top_k{3}, how, watch);
    const std::string picture = draw::search_table_svg(tables, space, cells, r, how);
    REQUIRE(test::markup_fault(picture) == "");
    REQUIRE(picture == draw::search_table_svg(tables, space, cells, r, how));
    if (r.plans.empty()) continue;
    ++pictures;
    // Whole plans share the cells of the head: at least one, at most one per plan.
    REQUIRE(test::count(picture, "class=\"cell\"") > cells.size());
    REQUIRE(test::count(picture, "class=\"cell\"") <= cells.size() + r.plans.size());
    REQUIRE(test::count(picture, "class=\"stage\"") == r.plans.front().plan.stages.size());
    REQUIRE(test::count(picture, "nan") + test::count(picture, "inf") == 0);
  }
  REQUIRE(pictures > 30);
}

TEST_CASE("names in the picture of a search's table are escaped") {
  planning_graph_builder layers("a<b>&\"c\"");
  layers.add_layer({.name = "<in>", .forward_flops = 1_GFLOP, .weight = 1_MB, .activation = 1_MB});
  const planning_graph model = std::move(layers).build();
  const cluster one("\"&\"", {{.name = "<d>", .memory = 1_GB, .compute = 1_TFLOP_per_s}}, shared_medium{100_Mbit_per_s});
  const layer_sequence row = decompose::serial(model);
  plan blank;
  const search_tables tables(model, row, one, roofline{}, plain_memory{}, linear_power{}, blank.workload, 1);
  const device_space space = every_order(tables.classes, 1);
  const search_result r = two_substate_dp(tables, space, blank, minimize_latency{});
  const std::string picture = draw::search_table_svg(tables, space, {}, r);
  REQUIRE(test::markup_fault(picture) == "");
  REQUIRE(test::count(picture, "&lt;in&gt;") > 0);
  REQUIRE(test::count(picture, "class=\"stage\"") == 1);
}
