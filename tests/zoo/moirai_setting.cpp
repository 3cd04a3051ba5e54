// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/zoo/settings.hpp>

namespace test_moirai_setting {

using namespace hetplan;

TEST_CASE("Moirai's synthetic graphs have the operators and parameters of its Table IV, and fuse to fewer") {
  for (const zoo::moirai_model& m : zoo::moirai_models) {
    CAPTURE(m.name);
    const planning_graph g = zoo::moirai_graph(m);
    CHECK(g.size() == static_cast<std::size_t>(m.operators));
    CHECK(g.parameters() == Approx(m.parameters).epsilon(0.005));
    const std::size_t fused = coarsen::fuse_operators(g, coarsen::tensorrt_like()).size();
    CHECK(fused < g.size() * 3 / 4);
  }
}

TEST_CASE("Moirai's clusters have a wire for each ordered pair, at the bandwidth of their direction") {
  const cluster inter = zoo::moirai_cluster("inter-server");
  CHECK(inter.devices()[1].name == "B");
  // Table III, row B, column A: bandwidth from A to B.
  CHECK(inter.network().peak_bandwidth(device_id(0U), device_id(1U)).value() == Approx(44.26e9 / 8));
  CHECK(inter.network().peak_bandwidth(device_id(2U), device_id(0U)).value() == Approx(33.2e9 / 8));
  CHECK(zoo::moirai_cluster("intra-server").devices()[0].memory.value() == 32e9);
  CHECK_THROWS_WITH(zoo::moirai_cluster("x"), Catch::Matchers::Contains("expected one of inter-server, intra-server"));
}

}  // namespace test_moirai_setting
