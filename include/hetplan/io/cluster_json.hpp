// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cluster files: hetplan/cluster/1.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/io/fields.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

inline constexpr std::string_view cluster_format = "hetplan/cluster/1";

/// Most devices of a cluster file. A cluster stores the route of every ordered pair, so larger ones would take gigabytes.
inline constexpr std::size_t max_devices = 1000;
/// Most resources of one route, and of all routes together, for the same reason.
inline constexpr std::size_t max_steps_of_route = 1000;
inline constexpr std::size_t max_route_steps = 20'000'000;

namespace keys {
inline constexpr std::array<std::string_view, 7> cluster{"format", "name", "devices", "topology", "resources", "routes", "indirect"};
inline constexpr std::array<std::string_view, 2> resource{"name", "capacity"};
inline constexpr std::array<std::string_view, 4> route{"from", "to", "via", "latency"};
inline constexpr std::array<std::string_view, 2> via{"resource", "weight"};
inline constexpr std::array<std::string_view, 5> topology{"kind", "capacity", "latency", "duplex", "groups"};
inline constexpr std::array<std::string_view, 4> group{"name", "devices", "capacity", "latency"};
}  // namespace keys

namespace detail {

void read_compute(const json_node& n, device& d);
void put_compute(json& o, const device& d);
[[nodiscard]] attained_share share_in(const json_node& n);
void put_share(json& o, const char* key, const attained_share& s);
[[nodiscard]] std::vector<memory_tier> tiers_in(const json_node& n);
void put_tiers(json& o, const device& d);

template <noun<memory_tier> Tier, class Fields>
void fields_of(Tier& t, Fields& f) {
  f("name", t.name, required, names{}, "Unique in the device.");
  f("memory", t.memory, required, range::above_zero);
  f("bandwidth", t.bandwidth, required, range::above_zero, "At which the device reads.");
  f("resource", t.resource, std::string(), names{"the name of a resource"},
    "Of the network: reads share it with those of other devices and with transfers. Default: none.");
}

template <noun<power_profile> Power, class Fields>
void fields_of(Power& p, Fields& f) {
  f("idle", p.idle, watts{}, range::at_least_zero);
  f("active", p.active, same_as{"idle", p.idle}, range::at_least_zero, "At least `idle`.");
  f.check([&](const auto& n) {
    if (p.active < p.idle) n.fail("at least the idle power, " + to_text(p.idle.value()) + " W");
  });
  f("memory", p.memory, absent, range::at_least_zero, "While memory is the limit of the work. At least `idle`. Default: `active`.");
  f.check([&](const auto& n) {
    if (p.memory < p.idle) n.fail("at least the idle power, " + to_text(p.idle.value()) + " W");
  });
  f("send", p.send, joules_per_byte{}, range::at_least_zero);
  f("receive", p.receive, joules_per_byte{}, range::at_least_zero);
}

template <noun<device> Device, class Fields>
void fields_of(Device& d, Fields& f) {
  const device standard;
  f("name", d.name, required, names{}, "Unique in the cluster.");
  f.check([&](const auto& n) {
    if (d.name == "*") n.fail("a name other than the * of routes");
  });
  // A built-in device whose fields it has where the file gives none: read first.
  f.by_hand(
      "like", [](const auto&) {}, [](auto&) {});
  f("kind", d.kind, same_as{"name", d.name}, names{"the name of a kind"}, "Profiles are looked up by it.");
  f("memory", d.memory, required, range::above_zero);
  f("memory_budget", d.memory_budget, absent, range::above_zero, "What a plan may use. Default: `memory`.");
  f.check([&](const auto& n) {
    if (d.memory_budget > d.memory) n.fail("at most the memory, " + to_text(d.memory.value()) + " bytes");
  });
  // Per accelerator; needed unless every layer has a profile for the kind. A number, or an object by precision.
  f.by_hand(
      "compute", [&](const auto& n) { read_compute(n, d); }, [&](auto& o) { put_compute(o, d); });
  f("memory_bandwidth", d.memory_bandwidth, standard.memory_bandwidth, range::above_zero, "Per accelerator.");
  f.by_hand(
      "efficiency", [&](const auto& n) { d.efficiency = share_in(n); }, [&](auto& o) { put_share(o, "efficiency", d.efficiency); });
  f.by_hand(
      "memory_efficiency", [&](const auto& n) { d.memory_efficiency = share_in(n); },
      [&](auto& o) { put_share(o, "memory_efficiency", d.memory_efficiency); });
  f("cache_efficiency", d.cache_efficiency, standard.cache_efficiency, at_most{range::above_zero, 1, "a share > 0 and <= 1"},
    "Share of the attained bandwidth at which a key/value cache is read and written.");
  f("half_batch", d.half_batch, standard.half_batch, range::at_least_zero, "Batch (samples) at which half of the peak rate is reached.");
  f("half_rows", d.half_rows, standard.half_rows, range::at_least_zero,
    "The same in rows of products (tokens of all samples, unless layers tell `rows`). A device has one of the two.");
  f.check([&](const auto& n) {
    if (d.half_rows > 0 && d.half_batch > 0) n.fail_with("expected half_rows or half_batch, got both");
  });
  f("launch", d.launch, standard.launch, range::at_least_zero, "Fixed time of a kernel, of which a layer has `calls`.");
  f("overhead", d.overhead, standard.overhead, range::at_least_zero, "Fixed time of each task: a pass of a stage, forward or backward.");
  f("send_overhead", d.send_overhead, standard.send_overhead, range::at_least_zero,
    "Fixed time that the sender's task takes longer for each transfer to another device.");
  f("memory_overhead", d.memory_overhead, standard.memory_overhead, range::at_least_zero,
    "Held by the runtime itself, e.g. a CUDA context.");
  f("accelerators", d.accelerators, standard.accelerators, integers{1});
  f("interconnect", d.interconnect, absent, range::above_zero, "Between accelerators; tensor parallelism needs it.");
  f.object("power", d.power, "an object with idle, active, memory, send, receive");
  f("energy_budget", d.energy_budget, absent, range::at_least_zero, "Of an iteration. Default: none.");
  f("max_busy", d.max_busy, standard.max_busy, at_most{range::above_zero, 1, "a share > 0 and <= 1"}, "Share of the time.");
  // Below the memory, such as RAM or a disk, where plans may put weights (offload).
  f.by_hand(
      "tiers", [&](const auto& n) { d.tiers = tiers_in(n); }, [&](auto& o) { put_tiers(o, d); });
}

/// A network of listed resources, in which a route may serve several ordered pairs.
struct listed_network {
  std::vector<resource> listed = {};
  std::size_t devices = 0;
  std::vector<const route*> chosen = {};  ///< by from x to; null: no route

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return listed; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};
/// A network of listed resources with a separate route for each ordered pair.
struct spelled_network {
  std::vector<resource> listed = {};
  std::size_t devices = 0;
  std::vector<std::optional<route>> routes = {};  ///< by from x to

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return listed; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};
static_assert(check_network_model<listed_network>() && check_network_model<spelled_network>());

/// Selects the route rule of each ordered pair: rules with both ends named win over one end, over none; ties go to the first rule.
class route_choice {
 public:
  explicit route_choice(std::size_t devices) : devices_(devices), named_(devices * devices, -1), chosen_(devices * devices, 0) {}

  /// Adds the next rule. An end without value is any device.
  void add(std::optional<device_id> from, std::optional<device_id> to);
  /// Returns the index of the rule of a pair, none if there is no route.
  [[nodiscard]] std::optional<std::size_t> rule_of(std::size_t from, std::size_t to) const;

 private:
  std::size_t devices_;
  std::vector<int> named_;
  std::vector<std::size_t> chosen_;
  std::size_t rules_ = 0;
  bool everywhere_ = false;
};

class cluster_reader {
 public:
  explicit cluster_reader(const json_document& d) : top_(open_document(d, cluster_format, keys::cluster)) {}

  cluster read();

 private:
  cluster read_all();
  cluster lonely();
  template <class Network>
  cluster joined(const json_node& where, const Network& network) {
    return at_node(where, [&] { return cluster(name_, std::move(devices_), network); });
  }

  void read_device(const json_node& n);

  [[nodiscard]] device_id find_device(const json_node& n, std::string_view expected = "the name of a device") const;

  cluster read_topology(const json_node& n);

  /// Returns the cluster of a topology. Throws invalid_input if device and group names give two resources the same name.
  template <class Network>
  cluster named(const json_node& n, const Network& network) {
    std::vector<device> numbered = devices_;
    for (std::size_t i = 0; i < numbered.size(); ++i) numbered[i].id = device_id(i);
    {  // a mesh has a million resources: freed before the cluster builds its own
      const std::vector<resource> all = at_node(n, [&] { return network.resources(numbered); });
      std::unordered_set<std::string_view> seen;
      seen.reserve(all.size());
      for (const resource& r : all) {
        if (!seen.insert(r.name).second)
          n.fail_with("expected names that give every resource a name of its own, got " + in_quotes(r.name) + " twice");
      }
    }
    return joined(n, network);
  }

  void read_groups(const json_node& list, hierarchical& h) const;

  cluster read_network(const json_node& resources, const json_node& routes);

  /// Returns the network with the widest path for every pair without a route.
  [[nodiscard]] spelled_network widened(const json_node& routes, listed_network net) const;

  static constexpr std::string_view route_end = "the name of a device or \"*\"";
  [[nodiscard]] std::optional<device_id> find_end(const json_node& n) const;

  [[nodiscard]] static std::vector<resource_use> read_via(const json_object& rule,
                                                          const std::unordered_map<std::string_view, resource_id>& known);

  json_object top_;
  std::string name_;
  /// A resource that a tier names, which the network, read later, must have.
  struct tier_resource {
    json_node name;
    std::size_t device, tier;
  };
  std::vector<device> devices_;
  std::vector<tier_resource> tier_resources_;
  std::unordered_map<std::string_view, device_id> ids_;
};

}  // namespace detail

/// Reads a cluster file.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input. `check_together` checks that
///         devices without compute have profiles, as this depends on the model.
[[nodiscard]] inline cluster read_cluster(const json_document& d) { return detail::cluster_reader(d).read(); }

/// Returns the cluster file with explicit resources and routes; reading it gives the identical cluster.
[[nodiscard]] std::string write_cluster(const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/cluster_json.ipp>
#endif
