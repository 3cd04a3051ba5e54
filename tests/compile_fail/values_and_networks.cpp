// SPDX-License-Identifier: BSL-1.0
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/simulate/simulation.hpp>

using namespace hetplan;

const device with_unit{.name = "phone", .memory = 8_GB};

// expect: conver
// expect: double
const device without_unit{.name = "phone", .memory = 8e9};

// expect: operator[]
const device& of_a_layer(const cluster& c) { return c[layer_id(0)]; }

// expect: operator""_mbit_per_s
const bytes_per_second thousandths_of_a_bit = 600_mbit_per_s;

// expect: conversion from
const device_id mixed = layer_id(0);

// expect: operand
const auto sum = 5_ms + 3_GiB;

// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
struct event {};
struct observer_answers_bool {
  bool operator()(const event&);
};
static_assert(check_observer<observer_answers_bool, event>());

// expect-ok
const device_id right_id = device_id(0);
const device& of_a_device(const cluster& c) { return c[right_id]; }
const auto right_sum = 5_ms + 3_s;

// expect: network_model needs: std::vector<resource> resources(std::span<const device>) const
struct resources_not_const {
  std::vector<resource> resources(std::span<const device>);
  std::optional<route> find_route(std::span<const device>, device_id, device_id) const;
};
static_assert(check_network_model<resources_not_const>());

// expect-ok
struct with_resources {
  std::vector<resource> resources(std::span<const device>) const;
};
struct with_routes : with_resources {
  std::optional<route> find_route(std::span<const device>, device_id, device_id) const;
};
struct with_helpers : with_routes {
  void find_routes() const;
  void prepare_routes() const;
};
static_assert(check_network_model<with_routes>() && check_network_model<with_helpers>());
const std::vector<device> two{device{.name = "laptop"}, device{.name = "phone"}};

// expect: network_model needs: std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const
struct route_not_optional : with_resources {
  route find_route(std::span<const device>, device_id, device_id) const;
};
static_assert(check_network_model<route_not_optional>());

struct unchecked_network : with_resources {
  route find_route(std::span<const device>, device_id, device_id) const;
};
const cluster home("home", two, unchecked_network{});

// expect: a network_model's route finder is: auto route_finder(std::span<const device>) const
struct finder_of_one_route : with_routes {
  auto route_finder(std::span<const device>) const {
    return [](device_id, device_id) { return route{}; };
  }
};
const cluster found("two", two, finder_of_one_route{});

struct finder_of_wrong_overloads : with_routes {
  std::optional<route> route_finder(std::span<const device>, device_id, device_id) const;
  std::optional<route> route_finder(device_id, device_id) const;
};
const cluster overloaded("two", two, finder_of_wrong_overloads{});

// expect: network_policy needs: hetplan::route_access access() const
struct policy_lacks_access {
  int tier(const tasks::transfer&) const;
};
static_assert(check_network_policy<policy_lacks_access>());

// expect: network_policy needs: int tier(const hetplan::tasks::transfer&) const
struct tier_is_a_double {
  double tier(const tasks::transfer&) const;
  route_access access() const;
};
static_assert(check_network_policy<tier_is_a_double>());

// expect-ok
struct right_policy {
  int tier(const tasks::transfer&) const;
  route_access access() const;
};
static_assert(check_network_policy<right_policy>());
struct almost_sharing {
  void start(double, std::uint32_t, const tasks::transfer&, std::span<const resource_use>);
  void update(double, const rate_changed&);
  void finish_until(double, const transfer_finished&);
};

struct right_sharing : almost_sharing {
  double next_end();
};
struct sharing_with_capacities : right_sharing {
  void set_capacity(std::size_t, double);
  route_access access() const;
};
struct sharing_with_helpers : right_sharing {
  int accesses() const;
  void change_capacity(int);
};
static_assert(check_network_sharing<right_sharing>() && !follows_capacities<right_sharing>);
static_assert(check_network_sharing<sharing_with_capacities>() && follows_capacities<sharing_with_capacities>);
static_assert(check_network_sharing<sharing_with_helpers>());

// expect: network_sharing needs: double next_end()
struct next_end_in_seconds : almost_sharing {
  seconds next_end();
};
static_assert(check_network_sharing<next_end_in_seconds>());

// expect: network_sharing's optional capacities are: void set_capacity(std::size_t resource, double capacity)
struct capacity_of_no_resource : almost_sharing {
  double next_end();
  void set_capacity(double);
};
static_assert(check_network_sharing<capacity_of_no_resource>());
