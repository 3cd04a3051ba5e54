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

TEST_CASE("the kind of a device is the name of a cluster of that device alone") {
  for (const std::string_view kind : zoo::device_kinds()) {
    const cluster c = zoo::cluster(kind);
    CHECK(names(c) == texts{std::string(kind)});
    device alone = zoo::find_device(kind).device;
    alone.id = device_id(0);
    alone.interconnect.reset();
    CHECK(c[device_id(0)] == alone);
  }
  CHECK(zoo::device("h100", "server").interconnect);
  CHECK(zoo::clusters_and_devices().size() == zoo::cluster_names().size() + zoo::device_kinds().size());
}

TEST_CASE("an unknown cluster lists the known ones") {
  CHECK_THROWS_AS(zoo::cluster(""), invalid_input);
  CHECK_THROWS_WITH(zoo::cluster("home"),
                    Catch::Contains("smart-home-1, smart-home-2, traffic-monitor, edge-cluster") && Catch::Contains("rtx4090"));
}
