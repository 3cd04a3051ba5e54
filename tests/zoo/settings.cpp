// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/zoo/settings.hpp>

using namespace hetplan;

namespace {

std::vector<std::string> names(const cluster& c) {
  std::vector<std::string> all;
  for (const device& d : c.devices()) all.push_back(d.name);
  return all;
}
std::vector<std::string> kinds(const cluster& c) {
  std::vector<std::string> all;
  for (const device& d : c.devices()) all.push_back(d.kind);
  return all;
}
using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("every device kind passes its own check and says what is estimated") {
  REQUIRE(zoo::device_kinds().size() == 10);
  for (const std::string_view kind : zoo::device_kinds()) {
    INFO(kind);
    const zoo::device_entry e = zoo::find_device(kind);
    CHECK_NOTHROW(check_device(e.device));
    CHECK(e.device.kind == kind);
    CHECK(e.device.name == kind);
    CHECK(e.estimated.find("half_batch") != std::string_view::npos);
    const device d = zoo::device(kind, "mine");
    CHECK(d.name == "mine");
    CHECK(d.kind == kind);
  }
  CHECK(zoo::find_device("genio-520").estimated.find("compute") != std::string_view::npos);
  CHECK(zoo::find_device("rtx4050").estimated.find("compute") == std::string_view::npos);
}

TEST_CASE("devices have the agreed numbers") {
  const device desktop = zoo::device("rtx4060ti", "a");
  CHECK(desktop.compute == 22_TFLOP_per_s);
  CHECK(desktop.memory == 8_GB);
  CHECK(desktop.memory_budget == std::nullopt);
  CHECK(desktop.memory_bandwidth == 288_GB_per_s);
  CHECK(desktop.half_batch == 4);
  CHECK(desktop.launch.value() == Approx(10e-6));
  CHECK(desktop.power == power_profile{20_W, 160_W, 4e-8_J_per_B, 3e-8_J_per_B});

  const device phone = zoo::device("snapdragon-8-elite", "b");
  CHECK(phone.compute.value() == Approx(1.6e12));
  CHECK(phone.memory == 12_GB);
  CHECK(phone.usable_memory() == 8_GB);
  CHECK(phone.launch.value() == Approx(40e-6));

  const device server = zoo::device("a40", "c", zoo::link::wire);
  CHECK(server.memory == 48_GB);
  CHECK(server.usable_memory() == 16_GB);
  CHECK(server.power == power_profile{30_W, 300_W, 5e-9_J_per_B, 5e-9_J_per_B});

  const device nano = zoo::device("jetson-nano", "d");
  CHECK(nano.compute.value() == Approx(0.2358e12));
  CHECK(nano.usable_memory() == 3_GB);
  CHECK(nano.power.idle == 1.5_W);
}

TEST_CASE("the four clusters have the agreed devices and networks") {
  CHECK(zoo::cluster_names().size() == 4);
  const cluster home1 = zoo::cluster("smart-home-1");
  CHECK(home1.name() == "smart-home-1");
  CHECK(names(home1) == texts{"desktop0", "desktop1", "laptop0", "laptop1", "laptop2"});
  CHECK(kinds(home1) == texts{"rtx4060ti", "rtx4060ti", "rtx4050", "rtx4050", "rtx4050"});
  REQUIRE(home1.network().resources().size() == 1);
  CHECK(home1.network().resources()[0] == resource{"shared", 900_Mbit_per_s});
  CHECK(home1.network().find(device_id(0), device_id(4))->latency == 2_ms);
  CHECK(home1.network().find(device_id(0), device_id(4))->via.at(0).weight == 1);

  const cluster home2 = zoo::cluster("smart-home-2");
  CHECK(names(home2) == texts{"laptop0", "laptop1", "xiaomi0", "xiaomi1", "galaxy0"});
  CHECK(kinds(home2)[4] == "snapdragon-8-elite");
  CHECK(home2.network().peak_bandwidth(device_id(0), device_id(2)) == 600_Mbit_per_s);
  CHECK(home2[device_id(2)].power.send == 4e-8_J_per_B);

  const cluster traffic = zoo::cluster("traffic-monitor");
  CHECK(kinds(traffic) == texts{"genio-720", "genio-720", "genio-520", "genio-520"});
  CHECK(names(traffic) == texts{"camera0", "camera1", "camera2", "camera3"});
  CHECK(traffic.network().resources().size() == 8);  // four wires, both directions
  CHECK(traffic.network().peak_bandwidth(device_id(0), device_id(2)) == 200_Mbit_per_s);
  CHECK(traffic.network().find(device_id(0), device_id(2))->latency == 1_ms);  // two hops
  CHECK(traffic[device_id(0)].power.receive == 5e-9_J_per_B);

  const cluster servers = zoo::cluster("edge-cluster");
  CHECK(names(servers) == texts{"server0", "server1", "server2", "server3"});
  CHECK(kinds(servers) == texts{"a40", "a40", "v100", "v100"});
  CHECK(servers.network().peak_bandwidth(device_id(3), device_id(0)) == 4_Gbit_per_s);
  CHECK(servers.network().find(device_id(3), device_id(0))->latency.value() == Approx(1e-4));
}

TEST_CASE("an unknown device kind or cluster lists the known ones") {
  CHECK_THROWS_AS(zoo::device("h100", "x"), invalid_input);
  CHECK_THROWS_WITH(zoo::device("h100", "x"), Catch::Contains("unknown device kind \"h100\"") && Catch::Contains("jetson-nx"));
  CHECK_THROWS_AS(zoo::cluster(""), invalid_input);
  CHECK_THROWS_WITH(zoo::cluster("home"), Catch::Contains("smart-home-1, smart-home-2, traffic-monitor, edge-cluster"));
}
