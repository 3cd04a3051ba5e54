// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/draw/groups_chart.hpp>

#include "draw/markup.hpp"

namespace test_groups {

using namespace hetplan;
using test::count;
using test::has;

/// Returns LANs of these sizes, joined by a slower network.
cluster lans(const std::vector<int>& sizes, const std::string& name = "d") {
  hierarchical net{10_Mbit_per_s, 5_ms, duplex::full, {}};
  std::vector<device> devices;
  for (const int n : sizes) {
    net.groups.push_back({"lan" + std::to_string(net.groups.size()), {}, 1_Gbit_per_s});
    for (int i = 0; i < n; ++i) {
      devices.push_back({.name = name + std::to_string(devices.size()), .memory = 1_GB, .compute = (i % 2 + 1.0) * 1_TFLOP_per_s});
      net.groups.back().devices.push_back(devices.back().name);
    }
  }
  return {"lans of " + name, devices, net};
}

std::string page_of(const cluster& c) {
  const auto g = coarsen::group_devices(c, 1_MB, coarsen::compute_scores(c.devices()));
  const std::string page = draw::groups_report_html(g, c, {.message = 1_MB});
  CHECK(page == draw::groups_report_html(g, c, {.message = 1_MB}));
  const std::string text = test::markup_of(page);
  CHECK(test::markup_fault(text) == "");
  return text;
}

TEST_CASE("the page of groups has a row for each device, a merge for each step and an outline for each region") {
  const std::string page = page_of(lans({4, 3, 1}));
  CHECK(has(page, "8 devices · 3 regions · 5 classes"));
  CHECK(count(page, "class=\"merge inside\"") == 5);
  CHECK(count(page, "class=\"merge\"") == 2);
  CHECK(count(page, "class=\"around\"") == 3);
  CHECK(has(page, ">region 3</text>"));
  CHECK(has(page, ">2b</text>"));
  CHECK(count(page, ">d5</text>") == 2);
  CHECK(has(page, "data-rows=\"[&quot;d0&quot;,&quot;d1&quot;,"));
  CHECK(has(page, "data-values=\"0,8,8,8,"));  // in ms
  CHECK(has(page, "inside region 1&#10;8 ms apart"));
  CHECK(count(page, "<tr>") == 1 + 5);
  CHECK(has(page, "<td>d0, d2</td>"));
}

TEST_CASE("with many devices a row is a region") {
  const std::string page = page_of(lans({30, 20, 14, 1}));
  CHECK(has(page, "65 devices · 4 regions"));
  CHECK(count(page, "class=\"merge inside\"") == 0);
  CHECK(count(page, "class=\"merge\"") == 3);
  CHECK(count(page, ">region 2</text>") == 2);
  CHECK_FALSE(has(page, " more</td>"));  // no class has more than 24 devices
  CHECK(has(page_of(lans({100})), " and 26 more</td>"));
}

TEST_CASE("a single device, a place without distances and odd names are drawn") {
  page_of(cluster("one", device{.name = "x", .memory = 1_GB, .compute = 1_TFLOP_per_s}));
  const std::string odd = page_of(lans({2, 2}, "<&\"\n\x1b"));
  CHECK(has(odd, "&lt;&amp;&quot;"));
  const cluster c = lans({3});
  const coarsen::distance_matrix nothing(3);
  const auto g = coarsen::group_devices(nothing, std::vector<double>{1, 1, 1});
  CHECK(test::markup_fault(draw::detail::groups_chart(g, c)) == "");
  CHECK(draw::detail::groups_legend(g, c).empty());
}

TEST_CASE("what nothing joins is blank, and its distance infinite") {
  const route_table row{{{"wire", 1_Gbit_per_s}},
                        {{"d0", "d1", {{}, {{resource_id(0)}}}},
                         {"d1", "d0", {{}, {{resource_id(0)}}}},
                         {"d1", "d2", {20_ms, {{resource_id(0)}}}},
                         {"d2", "d1", {20_ms, {{resource_id(0)}}}}}};
  const cluster like = lans({3});
  const cluster c("row", {like.devices().begin(), like.devices().end()}, row);
  const std::string page = page_of(c);
  CHECK(has(page, "data-values=\"0,8,∞;8,0,28;∞,28,0\""));
  CHECK(count(page, ">∞</text>") == 2);
}

}  // namespace test_groups
