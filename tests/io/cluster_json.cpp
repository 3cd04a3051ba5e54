// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/zoo/devices.hpp>

#include "io/reading.hpp"

namespace test_cluster_json {

using namespace hetplan;
using test::check_refusals;
using test::document;
using test::message_of;
using test::with;

namespace {

const std::string good = R"({"format": "hetplan/cluster/1", "name": "home",
  "devices": [{"name": "a", "memory": "6 GB", "compute": "9.1 TFLOP/s", "power": {"idle": 2, "active": "35 W", "send": "40 nJ/B"}},
              {"name": "b", "kind": "phone", "memory": 8e9, "memory_budget": "4 GB", "memory_bandwidth": "50 GB/s", "max_busy": 0.5},
              {"name": "c", "memory": 1, "compute": 1}],
  "topology": {"kind": "shared", "capacity": "600 Mbit/s", "latency": "2 ms"}})";
const std::string listed = R"({"format": "hetplan/cluster/1", "name": "home",
  "devices": [{"name": "a", "memory": 1}, {"name": "b", "memory": 1}, {"name": "c", "memory": 1}],
  "resources": [{"name": "air", "capacity": 100}, {"name": "wire", "capacity": 1000}],
  "routes": [{"from": "*", "to": "*", "via": [{"resource": "air", "weight": 2}], "latency": 1},
             {"from": "a", "to": "*", "via": [{"resource": "wire"}, {"resource": "air"}, {"resource": "wire", "weight": 0.5}]},
             {"from": "*", "to": "b", "via": [{"resource": "wire"}]},
             {"from": "c", "to": "b", "via": []}]})";

cluster read(const std::string& text) { return io::read_cluster(document(text, "c.json")); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}
std::string with_topology(const std::string& topology) {
  return with(good, R"({"kind": "shared", "capacity": "600 Mbit/s", "latency": "2 ms"})", topology);
}

}  // namespace

TEST_CASE("a cluster file means what it says, and the rest is default") {
  const cluster c = read(good);
  CHECK(c.name() == "home");
  REQUIRE(c.size() == 3);
  const device& a = c[device_id(0)];
  CHECK(a.kind == "a");
  CHECK(a.memory == 6_GB);
  CHECK(a.usable_memory() == 6_GB);
  CHECK(a.compute == 9.1_TFLOP_per_s);
  CHECK(std::isinf(a.memory_bandwidth.value()));
  CHECK(a.power == power_profile{2_W, 35_W, joules_per_byte(40e-9), {}});
  CHECK(a.accelerators == 1);
  CHECK(a.max_busy == 1);
  CHECK_FALSE(a.energy_budget);
  CHECK_FALSE(a.interconnect);
  const device& b = c[device_id(1)];
  CHECK(b.kind == "phone");
  CHECK(b.usable_memory() == 4_GB);
  CHECK(b.compute == flops_per_second{});
  CHECK(b.memory_bandwidth == 50_GB_per_s);
  CHECK(b.max_busy == 0.5);
  CHECK(c.network().resources()[0] == resource{"shared", 600_Mbit_per_s});
  CHECK(c.network().find(device_id(0), device_id(2))->latency == seconds(0.002));
}

TEST_CASE("a device like a built-in one has its fields where the file gives none") {
  const auto one = [](const std::string& fields) {
    return read(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a")" + fields + "}]}")[device_id(0)];
  };
  for (const std::string_view kind : zoo::device_kinds()) {
    device built_in = zoo::device(kind, "a");
    built_in.id = device_id(0);
    CHECK(one(R"(, "like": ")" + std::string(kind) + "\"") == built_in);
  }
  const device plain = zoo::device("rtx3090", "a");
  device d = one(R"(, "like": "rtx3090", "kind": "card", "memory": "12 GB", "compute": "10 TFLOP/s", "half_batch": 3,
                    "power": {"idle": 1}, "tiers": [{"name": "ram", "memory": "64 GB", "bandwidth": "40 GB/s"}])");
  CHECK(d.kind == "card");
  CHECK(d.memory == 12_GB);
  CHECK_FALSE(d.memory_budget);
  CHECK(d.compute == 10_TFLOP_per_s);
  CHECK(d.compute_by_precision.empty());
  CHECK(d.half_rows == 0);
  CHECK(d.half_batch == 3);
  CHECK(d.power.idle == 1_W);
  CHECK(d.power.active == plain.power.active);
  CHECK(d.memory_bandwidth == plain.memory_bandwidth);
  CHECK(d.efficiency == plain.efficiency);
  CHECK(d.tiers == std::vector{memory_tier{"ram", 64_GB, 40_GB_per_s}});
  CHECK(one(R"(, "like": "rtx3090", "compute": {"bf16": "1 TFLOP/s"})").compute_by_precision.size() == 1);
  const std::string unknown = error(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a", "like": "rtx309"}]})");
  INFO(unknown);
  CHECK(unknown.starts_with("c.json: /devices/0/like: "));
  CHECK(unknown.find("rtx3090") != std::string::npos);
  CHECK(unknown.find("rtx309\"") != std::string::npos);
  CHECK(error(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [{"like": "rtx3090"}]})") ==
        "c.json: /devices/0/name: expected a name, got nothing");
}

TEST_CASE("power is idle where active is not given") {
  CHECK(read(with(good, ", \"active\": \"35 W\"", ""))[device_id(0)].power.active == 2_W);
}

TEST_CASE("the power of memory-bound work is the active one unless it is given, and may be less or more") {
  CHECK_FALSE(read(good)[device_id(0)].power.memory);
  CHECK_FALSE(read(good)[device_id(0)].power.tells_memory());
  for (const double given : {20, 35, 50}) {
    const cluster c = read(with(good, R"("35 W")", R"("35 W", "memory": )" + std::to_string(given)));
    CHECK(c[device_id(0)].power.memory == watts(given));
    CHECK(c[device_id(0)].power.tells_memory() == (given != 35));
  }
}

TEST_CASE("a bad cluster file ends in one message with file, pointer, expectation and finding") {
  check_refusals(good, read, "c.json: ", R"(
    cluster/1 => model/1 => /format: expected "hetplan/cluster/1", got "hetplan/model/1"
    "name": "c", "memory": 1 => "name": "c", "memory": "six" => /devices/2/memory: expected bytes > 0, got "six"
    "name": "c", "memory": 1 => "name": "c" => /devices/2/memory: expected bytes > 0, got nothing
    "name": "c", "memory": 1 => "name": "c", "memory": 0 => /devices/2/memory: expected bytes > 0, got 0
    "35 W" => 1 => /devices/0/power/active: expected at least the idle power, 2 W, got 1
    "35 W" => "35 W", "memory": 1 => /devices/0/power/memory: expected at least the idle power, 2 W, got 1
    "35 W" => "35 W", "memory": "1 J" => /devices/0/power/memory: expected watts (J/s) >= 0, got "1 J"; did you mean "1 J/s"?
    "4 GB" => 9e9 => /devices/1/memory_budget: expected at most the memory, 8e+09 bytes, got 9e+09
    "compute": 1} => "compute": 0} => /devices/2/compute: expected FLOP/s > 0, got 0
    "compute": 1} => "half_batch": "1 s"} => /devices/2/half_batch: expected a number >= 0, got "1 s"
    "compute": 1} => "accelerators": 0} => /devices/2/accelerators: expected an integer >= 1, got 0
    "compute": 1} => "accelerators": 1.5} => /devices/2/accelerators: expected an integer >= 1, got 1.5
    "max_busy": 0.5 => "max_busy": 1.5 => /devices/1/max_busy: expected a share > 0 and <= 1, got 1.5
    "max_busy": 0.5 => "max_busy": 0 => /devices/1/max_busy: expected a number > 0, got 0
    "max_busy" => "maxbusy" => /devices/1/maxbusy: expected a known key, got "maxbusy"; did you mean "max_busy"?
    "idle": 2 => "idel": 2 => /devices/0/power/idel: expected a known key, got "idel"; did you mean "idle"?
    "name": "c" => "name": "a" => /devices/2/name: expected a name that no other device has, got "a"
    "name": "c" => "name": "*" => /devices/2/name: expected a name other than the * of routes, got "*"
    "kind": "phone" => "kind": "" => /devices/1/kind: expected the name of a kind, got ""
    600 Mbit/s => 600 Mb/s => /topology/capacity: expected bytes/s > 0, got "600 Mb/s"; did you mean "600 Mbit/s"?
    "shared" => "wifi" => /topology/kind: expected "shared", "ring", "star", "mesh" or "hierarchical", got "wifi"
    "2 ms" => "2 ms", "duplex": "both" => /topology/duplex: expected "full" or "half", got "both"
    "kind": "shared",  => => /topology/kind: expected "shared", "ring", "star", "mesh" or "hierarchical", got nothing
    "2 ms"} => "2 ms"}, "resources": [] => /resources: expected either topology or resources and routes, got both
    "topology":  => "network":  => /network: expected a known key, got "network"...
    {"format": "hetplan/cluster/1", "name": "x", "devices": []} => /devices: expected at least one device, got an empty array
    {"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a", "memory": 1}, {"name": "b", "memory": 1}]}
      => /topology: expected a topology, or resources and routes, for more than one device, got nothing
    "shared" => "hierarchical" => /topology/groups: expected an array of groups, got nothing
    "shared", => "ring", "groups": [], => /topology/groups: expected groups in a hierarchical topology only
  )");
}

TEST_CASE("one device needs no network") {
  const std::string alone = R"({"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a", "memory": 1}]})";
  CHECK(read(alone).network().resources().empty());
  check_refusals(alone, read, "c.json: ", R"(}] => }], "resources": [] => /routes: expected an array of routes, got nothing)");
  CHECK(read(with(alone, "}]", "}], \"resources\": [], \"routes\": []")) == read(alone));
}

TEST_CASE("the built-in topologies are the library's") {
  const auto same = [](const std::string& topology, const auto& model) {
    const cluster c = read(with_topology(topology));
    const std::vector<device> devices(c.devices().begin(), c.devices().end());
    return c == cluster("home", devices, model);
  };
  const bytes_per_second capacity(100);
  CHECK(same(R"({"kind": "shared", "capacity": 100, "duplex": "half"})", shared_medium{capacity}));
  CHECK(same(R"({"kind": "ring", "capacity": 100, "latency": 3})", ring{capacity, seconds(3)}));
  CHECK(same(R"({"kind": "ring", "capacity": 100, "duplex": "half"})", ring{capacity, {}, duplex::half}));
  CHECK(same(R"({"kind": "mesh", "capacity": 100, "duplex": "full"})", mesh{capacity}));
  CHECK(same(R"({"kind": "star", "capacity": 100, "duplex": "half"})", star{capacity, {}, duplex::half}));
  CHECK(same(
      R"({"kind": "hierarchical", "capacity": 100, "latency": 1,
          "groups": [{"name": "g", "devices": ["c", "a"], "capacity": 7, "latency": 2},
                     {"name": "h", "devices": ["b"], "capacity": 8}]})",
      hierarchical{capacity,
                   seconds(1),
                   duplex::full,
                   {{"g", {"c", "a"}, bytes_per_second(7), seconds(2)}, {"h", {"b"}, bytes_per_second(8), {}}}}));
}

TEST_CASE("bad groups are found") {
  const std::string groups =
      with_topology(R"({"kind": "hierarchical", "capacity": 1, "groups": [{"name": "g", "devices": ["c", "a"], "capacity": 7},
                                                                                                 {"name": "h", "devices": ["b"], "capacity": 8}]})");
  CHECK(error(groups) == "no error");
  check_refusals(groups, read, "c.json: ", R"(
    ["b"] => ["a"] => /topology/groups/1/devices/0: expected a device that is in no other group, got "a"
    ["b"] => [] => /topology/groups: expected every device in a group, got none with device "b"
    ["b"] => ["d"] => /topology/groups/1/devices/0: expected the name of a device, got "d"; did you mean "a"?
    "name": "h" => "name": "g" => /topology/groups/1/name: expected a name that no other group has, got "g"
    "name": "h" => "name": "g.up" => /topology: expected names that give every resource a name of its own, got "g.up" twice
  )");
}

TEST_CASE("the most specific route wins, the first on a tie, and weights add up") {
  const cluster c = read(listed);
  const auto route_of = [&](int from, int to) { return *c.network().find(device_id(from), device_id(to)); };
  CHECK(route_of(1, 2) == route{seconds(1), {{resource_id(0), 2}}});
  CHECK(route_of(0, 2) == route{{}, {{resource_id(1), 1.5}, {resource_id(0), 1}}});
  CHECK(route_of(0, 1) == route_of(0, 2));  // one end named, as in the rule for b, but listed first
  CHECK(route_of(2, 1) == route{});
  const cluster partial =
      read(with(listed, "{\"from\": \"*\", \"to\": \"*\", \"via\": [{\"resource\": \"air\", \"weight\": 2}], \"latency\": 1},", ""));
  CHECK(partial.network().find(device_id(1), device_id(0)) == nullptr);
}

TEST_CASE("bad resources and routes are found") {
  check_refusals(listed, read, "c.json: ", R"(
    "capacity": 100} => "capacity": 0} => /resources/0/capacity: expected bytes/s > 0, got 0
    "name": "wire" => "name": "air" => /resources/1/name: expected a name that no other resource has, got "air"
    "from": "a" => "from": "x" => /routes/1/from: expected the name of a device or "*", got "x"; did you mean "a"?
    wire"}]} => wires"}]} => /routes/2/via/0/resource: expected the name of a resource, got "wires"; did you mean "wire"?
    "weight": 2 => "weight": -2 => /routes/0/via/0/weight: expected a number > 0, got -2
    "latency": 1 => "latency": -1 => /routes/0/latency: expected seconds >= 0, got -1
    "via": [] => "latency": 0 => /routes/3/via: expected an array of resource uses, got nothing
    0.5 => 1e308}, {"resource": "wire", "weight": 1e308 => /routes/1/via/3/weight: expected weights with a finite sum, got 1e+308
  )");
}

TEST_CASE("a pair without a route gets the widest path where the file says so") {
  const std::string partial = R"({"format": "hetplan/cluster/1", "name": "x",
    "devices": [{"name": "a", "memory": 1}, {"name": "b", "memory": 1}, {"name": "c", "memory": 1}],
    "resources": [{"name": "ab", "capacity": 10}, {"name": "bc", "capacity": 5}],
    "routes": [{"from": "a", "to": "b", "via": [{"resource": "ab"}], "latency": 1},
               {"from": "b", "to": "c", "via": [{"resource": "bc"}], "latency": 2}]})";
  const std::string widest = with(partial, "\"name\": \"x\",", "\"name\": \"x\", \"indirect\": \"widest\",");
  const auto route_of = [](const cluster& c, int from, int to) { return c.network().find(device_id(from), device_id(to)); };
  CHECK(route_of(read(partial), 0, 2) == nullptr);
  CHECK(read(with(widest, "\"widest\"", "\"none\"")) == read(partial));
  const cluster c = read(widest);
  REQUIRE(route_of(c, 0, 2) != nullptr);
  CHECK(*route_of(c, 0, 2) == route{seconds(3), {{resource_id(0), 1}, {resource_id(1), 1}}});
  CHECK(*route_of(c, 0, 1) == *route_of(read(partial), 0, 1));
  CHECK(route_of(c, 2, 0) == nullptr);
  CHECK(read(io::write_cluster(c)) == c);
  check_refusals(widest, read, "c.json: ", R"(
    "widest" => "wide" => /indirect: expected ...
    {"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a", "memory": 1}], "indirect": "widest"}
      => /indirect: expected indirect beside resources and routes only
  )");
}

TEST_CASE("a cluster whose widest paths would cost gigabytes is refused") {
  std::string devices, resources, routes;
  for (int i = 0; i < 500; ++i) {
    const std::string number = std::to_string(i), comma = i == 0 ? "" : ",";
    devices += comma + "{\"name\":\"" + number + "\",\"memory\":1}";
    resources += comma + "{\"name\":\"r" + number + "\",\"capacity\":1}";
    routes += comma + "{\"from\":\"" + number + "\",\"to\":\"" + std::to_string((i + 1) % 500) + "\",\"via\":[{\"resource\":\"r" + number +
              "\"}]}";
  }
  CHECK(error(R"({"format": "hetplan/cluster/1", "name": "x", "indirect": "widest", "devices": [)" + devices + R"(], "resources": [)" +
              resources + R"(], "routes": [)" + routes + "]}") ==
        "c.json: /routes: expected routes that take at most 20000000 resources together, got more");
}

TEST_CASE("a cluster that would cost gigabytes is refused") {
  std::string devices;
  for (int i = 0; i < 1001; ++i) devices += std::string(i == 0 ? "" : ",") + "{\"name\":\"d" + std::to_string(i) + "\",\"memory\":1}";
  CHECK(error(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [)" + devices + "]}") ==
        "c.json: /devices/1000: expected at most 1000 devices, got more");
  std::string half = devices.substr(0, devices.find(",{\"name\":\"d500\""));
  CHECK(
      error(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [)" + half + R"(], "topology": {"kind": "ring", "capacity": 1}})") ==
      "c.json: /topology: expected a ring of at most 430 devices, got 500");
  std::string resources, via;
  for (int i = 0; i < 1001; ++i) {
    const std::string name = "\"r" + std::to_string(i) + "\"";
    resources += std::string(i == 0 ? "" : ",") + "{\"name\":" + name + ",\"capacity\":1}";
    via += std::string(i == 0 ? "" : ",") + "{\"resource\":" + name + "}";
  }
  CHECK(error(R"({"format": "hetplan/cluster/1", "name": "x", "devices": [{"name": "a", "memory": 1}], "resources": [)" + resources +
              R"(], "routes": [{"from": "*", "to": "*", "via": [)" + via + "]}]}") ==
        "c.json: /routes/0/via/1000: expected at most 1000 resources in a route, got more");
}

}  // namespace test_cluster_json
