// SPDX-License-Identifier: BSL-1.0
// The picture of a search's table: well formed, one element per cell, one arrow per stage of the best plan.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <hetplan/io/search_table_svg.hpp>

#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace {

/// "" if every tag is closed in turn; else what is wrong.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t i = text.find('<'); i != std::string::npos; i = text.find('<', i + 1)) {
    const std::size_t end = text.find('>', i);
    if (end == std::string::npos) return "tag without end";
    const std::string tag = text.substr(i + 1, end - i - 1), name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.find('<') != std::string::npos) return "< inside " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes in " + tag;
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "closes " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + what.size())) ++n;
  return n;
}

}  // namespace

TEST_CASE("the picture of a search's table has every filled cell and an arrow per stage of the best plan") {
  std::size_t pictures = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 6, .most_devices = 3, .tight = false});
    INFO(i.what);
    const search_tables tables(i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload, i.blank.microbatch_size);
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < tables.classes.size(); ++c) order.push_back(c);
    const device_space space = seed % 2 == 0 ? test::any_order(tables, i.blank) : in_class_order(tables.classes, order, i.blank.microbatch_size);
    const search_options how{.plans = 4};
    std::vector<io::table_cell> cells;
    const auto watch = [&](const cell_filled& c) {
      cells.push_back({c.first_block, c.state, c.stages, c.kept.size(), c.kept.front()->rank});
      return flow::go;
    };
    const search_result r = two_substate_dp(tables, space, i.blank, minimize_latency{}, top_k{3}, how, watch);
    const std::string picture = io::search_table_svg(tables, space, cells, r, how);
    REQUIRE(xml_fault(picture) == "");
    REQUIRE(picture == io::search_table_svg(tables, space, cells, r, how));
    if (r.plans.empty()) continue;
    ++pictures;
    // Whole plans share the cells of the head: at least one, at most as many as plans.
    REQUIRE(count(picture, "class=\"cell\"") > cells.size());
    REQUIRE(count(picture, "class=\"cell\"") <= cells.size() + r.plans.size());
    REQUIRE(count(picture, "class=\"stage\"") == r.plans.front().plan.stages.size());
    REQUIRE(count(picture, "nan") + count(picture, "inf") == 0);
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
  const std::string picture = io::search_table_svg(tables, space, {}, r);
  REQUIRE(xml_fault(picture) == "");
  REQUIRE(count(picture, "&lt;in&gt;") > 0);
  REQUIRE(count(picture, "class=\"stage\"") == 1);
}
