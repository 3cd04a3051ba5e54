// SPDX-License-Identifier: BSL-1.0
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>

#include "support/message_of.hpp"

namespace test_devices {

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

device phone() { return {.name = "phone", .memory = 8_GB, .compute = 1_TFLOP_per_s}; }

std::string refusal(const device& d) {
  return test::message_of([&] { check_device(d); });
}
std::string refusal(const std::function<void(device&)>& change) {
  device d = phone();
  change(d);
  return refusal(d);
}

/// A network with one resource and one route, which tests make invalid.
struct odd_network {
  std::vector<resource> listed{{"wire", 1_MB_per_s}};
  route path{1_ms, {{resource_id(0), 1}}};
  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return listed; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return path; }
};

std::string refusal(const odd_network& n) {
  return test::message_of<invalid_model>([&] { cluster("pair", {{.name = "a", .memory = 1_GB}, {.name = "b", .memory = 1_GB}}, n); });
}

}  // namespace

TEST_CASE("a device needs a name and memory; everything else has a default") {
  CHECK(refusal(phone()) == "no error");
  CHECK(refusal(device{.name = "d", .memory = 1_B}) == "no error");
  CHECK(refusal(device{.name = "", .memory = 1_B}) == "a device has an empty name");
  CHECK(refusal(device{.name = "d"}) == R"(device "d": memory = 0; expected bytes > 0)");
  CHECK(phone().usable_memory() == 8_GB);
}

TEST_CASE("a device's numbers are checked one by one, and the message names field and value") {
  using change = std::function<void(device&)>;
  const auto refused = [](const std::string& message, const change& c) { CHECK(refusal(c) == "device \"phone\": " + message); };
  refused("memory = inf; expected bytes > 0", [](device& d) { d.memory = bytes(inf); });
  refused("memory = nan; expected bytes > 0", [](device& d) { d.memory = bytes(not_a_number); });
  refused("memory = -1; expected bytes > 0", [](device& d) { d.memory = bytes(-1); });
  refused("memory_budget = 0; expected bytes > 0 and at most the memory", [](device& d) { d.memory_budget = 0_B; });
  refused("memory_budget = 9e+09; expected bytes > 0 and at most the memory", [](device& d) { d.memory_budget = 9_GB; });
  refused("memory_budget = nan; expected bytes > 0 and at most the memory", [](device& d) { d.memory_budget = bytes(not_a_number); });
  refused("compute = -1; expected a finite number >= 0", [](device& d) { d.compute = flops_per_second(-1); });
  refused("compute = inf; expected a finite number >= 0", [](device& d) { d.compute = flops_per_second(inf); });
  refused("memory_bandwidth = 0; expected a rate > 0", [](device& d) { d.memory_bandwidth = {}; });
  refused("memory_bandwidth = nan; expected a rate > 0", [](device& d) { d.memory_bandwidth = bytes_per_second(not_a_number); });
  refused("half_batch = -1; expected a finite number >= 0", [](device& d) { d.half_batch = -1; });
  refused("half_batch = inf; expected a finite number >= 0", [](device& d) { d.half_batch = inf; });
  refused("launch = nan; expected a finite number >= 0", [](device& d) { d.launch = seconds(not_a_number); });
  refused("accelerators = 0; expected an integer >= 1", [](device& d) { d.accelerators = 0; });
  refused("interconnect = 0; expected a rate > 0", [](device& d) { d.interconnect = 0_GB_per_s; });
  refused("interconnect = inf; expected a rate > 0", [](device& d) { d.interconnect = bytes_per_second(inf); });
  refused("power.idle = -1; expected a finite number >= 0", [](device& d) { d.power.idle = watts(-1); });
  refused("power.active = 1; expected watts >= idle", [](device& d) { d.power = {2_W, 1_W}; });
  refused("power.active = inf; expected watts >= idle", [](device& d) { d.power.active = watts(inf); });
  refused("power.memory = 1; expected watts >= idle", [](device& d) { d.power = {.idle = 2_W, .active = 3_W, .memory = 1_W}; });
  refused("power.memory = inf; expected watts >= idle", [](device& d) { d.power.memory = watts(inf); });
  refused("power.send = nan; expected a finite number >= 0", [](device& d) { d.power.send = joules_per_byte(not_a_number); });
  refused("power.receive = -1; expected a finite number >= 0", [](device& d) { d.power.receive = joules_per_byte(-1); });
  refused("energy_budget = -1; expected a finite number >= 0", [](device& d) { d.energy_budget = joules(-1); });
  refused("max_busy = 0; expected a share in (0, 1]", [](device& d) { d.max_busy = 0; });
  refused("max_busy = 1.5; expected a share in (0, 1]", [](device& d) { d.max_busy = 1.5; });
  refused("max_busy = nan; expected a share in (0, 1]", [](device& d) { d.max_busy = not_a_number; });

  CHECK(refusal([](device& d) { d.memory_bandwidth = bytes_per_second(inf); }) == "no error");
  CHECK(refusal([](device& d) { d.memory_budget = 8_GB; }) == "no error");
  CHECK(refusal([](device& d) { d.compute = {}; }) == "no error");  // a profile may stand in
  CHECK(refusal([](device& d) { d.power = {2_W, 2_W}; }) == "no error");
}

TEST_CASE("a cluster numbers its devices, fills in their kind and finds them by name") {
  const cluster c("home", {phone(), {.name = "laptop", .kind = "rtx4050", .memory = 16_GB}}, shared_medium{1_MB_per_s});
  CHECK(c.name() == "home");
  REQUIRE(c.size() == 2);
  CHECK(c[device_id(0)].id == device_id(0));
  CHECK(c[device_id(1)].id == device_id(1));
  CHECK(c[device_id(0)].kind == "phone");
  CHECK(c[device_id(1)].kind == "rtx4050");
  CHECK(c.find("laptop") == device_id(1));
  CHECK_THROWS_MATCHES(c.find("tablet"), invalid_input, Catch::Message(R"(cluster "home" has no device "tablet")"));
}

TEST_CASE("a cluster has at least one device, no name twice, and no device that breaks a rule") {
  const shared_medium wifi{1_MB_per_s};
  CHECK_THROWS_MATCHES(cluster("home", {}, wifi), invalid_input, Catch::Message(R"(cluster "home": expected at least one device)"));
  CHECK_THROWS_MATCHES(cluster("home", {phone(), phone()}, wifi), invalid_input,
                       Catch::Message(R"(cluster "home": device "phone" appears twice)"));
  CHECK_THROWS_MATCHES(cluster("home", {phone(), {.name = "x"}}, wifi), invalid_input,
                       Catch::Message(R"(device "x": memory = 0; expected bytes > 0)"));
  CHECK_THROWS_MATCHES(cluster("home", device{.name = "x"}), invalid_input,
                       Catch::Message(R"(device "x": memory = 0; expected bytes > 0)"));
}

TEST_CASE("a single device needs no network and has no route to itself") {
  const cluster alone("alone", phone());
  CHECK(alone.size() == 1);
  CHECK(alone.network().resources().empty());
  CHECK(alone.network().find(device_id(0), device_id(0)) == nullptr);
  CHECK(alone.network().peak_bandwidth(device_id(0), device_id(0)) == bytes_per_second{});
  const cluster two("two", {phone(), {.name = "b", .memory = 1_GB}}, shared_medium{1_MB_per_s});
  CHECK(two.network().find(device_id(1), device_id(1)) == nullptr);
}

TEST_CASE("clusters are equal where devices and network are") {
  const auto make = [](bytes_per_second capacity) {
    return cluster("c", {phone(), {.name = "b", .memory = 1_GB}}, shared_medium{capacity, 1_ms});
  };
  CHECK(make(1_MB_per_s) == make(1_MB_per_s));
  CHECK_FALSE(make(1_MB_per_s) == make(2_MB_per_s));
}

TEST_CASE("a network model that breaks its rules is refused by resource or route") {
  CHECK(refusal(odd_network{}) == "no error");
  const bytes_per_second capacities[] = {{}, bytes_per_second(-1), bytes_per_second(inf), bytes_per_second(not_a_number)};
  for (const bytes_per_second capacity : capacities) {
    CHECK(refusal(odd_network{.listed = {{"wire", capacity}}}) ==
          R"(network: resource "wire" has capacity )" + to_text(capacity.value()) + " B/s; expected finite > 0");
  }
  CHECK(refusal(odd_network{.listed = {{"wire", 1_MB_per_s}, {"wire", 2_MB_per_s}}}) == R"(network: resource "wire" appears twice)");
  const std::string ab = R"(network: route "a" -> "b" )";
  CHECK(refusal(odd_network{.path = {seconds(-1), {}}}) == ab + "has latency -1 s; expected finite >= 0");
  CHECK(refusal(odd_network{.path = {seconds(not_a_number), {}}}) == ab + "has latency nan s; expected finite >= 0");
  CHECK(refusal(odd_network{.path = {1_ms, {{resource_id(1), 1}}}}) == ab + "uses an unknown resource");
  CHECK(refusal(odd_network{.path = {1_ms, {{resource_id{}, 1}}}}) == ab + "uses an unknown resource");
  CHECK(refusal(odd_network{.path = {1_ms, {{resource_id(0), 0}}}}) == ab + "has weight 0; expected finite > 0");
  CHECK(refusal(odd_network{.path = {1_ms, {{resource_id(0), inf}}}}) == ab + "has weight inf; expected finite > 0");
}

}  // namespace test_devices
