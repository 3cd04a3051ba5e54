// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/cluster_json.hpp>

#include <hetplan/cluster/widest_routes.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/zoo/devices.hpp>

namespace hetplan::io {

namespace detail {

enum class topology_kind { shared, ring, star, mesh, hierarchical };

inline constexpr std::array<std::pair<std::string_view, topology_kind>, 5> topology_kinds{{{"shared", topology_kind::shared},
                                                                                           {"ring", topology_kind::ring},
                                                                                           {"star", topology_kind::star},
                                                                                           {"mesh", topology_kind::mesh},
                                                                                           {"hierarchical", topology_kind::hierarchical}}};

inline constexpr std::array<std::pair<std::string_view, duplex>, 2> duplexes{{{"full", duplex::full}, {"half", duplex::half}}};

enum class indirection { none, widest };

inline constexpr std::array<std::pair<std::string_view, indirection>, 2> indirections{
    {{"none", indirection::none}, {"widest", indirection::widest}}};

/// Returns the built-in device that a device of a file is like, without what the file's fields stand for.
[[nodiscard]] HETPLAN_INLINE device built_in_device(const json_object& o, const json_node& like) {
  const std::string kind(like.name("the name of a built-in device"));
  device d = at_node(like, [&] { return zoo::device(kind, kind); });
  if (o.find("memory")) d.memory_budget.reset();
  if (o.find("half_batch")) d.half_rows = 0;
  if (o.find("half_rows")) d.half_batch = 0;
  return d;
}

HETPLAN_INLINE void read_compute(const json_node& n, device& d) {
  d.compute_by_precision.clear();
  if (!n.is_object()) {
    d.compute = n.amount<flops_per_second>(range::above_zero);
    return;
  }
  for (const auto& [name, value] : n.members()) {
    const auto known = std::find_if(precisions.begin(), precisions.end(), [&](const auto& p) { return p.first == name; });
    if (known == precisions.end())
      value.fail_with("expected a precision as key: " + json_node::name_list(precisions) + ", got " + in_quotes(name));
    d.compute_by_precision.emplace_back(known->second, value.template amount<flops_per_second>(range::above_zero));
  }
  if (d.compute_by_precision.empty()) n.fail("FLOP/s for at least one precision");
  // The one number that orders devices: the rate at which most models run.
  d.compute = d.computes_in(precision::bf16) ? d.compute_in(precision::bf16) : d.compute_by_precision.front().second;
}

HETPLAN_INLINE void put_compute(json& o, const device& d) {
  if (d.compute_by_precision.empty()) return put_unless(o, "compute", d.compute, flops_per_second{});
  for (const auto& [p, rate] : d.compute_by_precision) put(o["compute"], std::string(to_string(p)), rate);
}

HETPLAN_INLINE attained_share share_in(const json_node& n) {
  const auto share = [](const json_node& value) {
    const double s = value.number(range::above_zero);
    if (s > 1) value.fail("a share > 0 and <= 1");
    return s;
  };
  if (!n.is_object()) return share(n);
  std::vector<std::pair<std::string, double>> by_format;
  for (const auto& [format, value] : n.members()) by_format.emplace_back(std::string(format), share(value));
  if (by_format.empty()) n.fail("a share for at least one weight format");
  return attained_share(std::move(by_format));
}

HETPLAN_INLINE void put_share(json& o, const char* key, const attained_share& s) {
  if (s.by_format.empty()) return put_unless(o, key, s.of_all, 1.0);
  for (const auto& [format, share] : s.by_format) put(o[key], format, share);
}

HETPLAN_INLINE std::vector<memory_tier> tiers_in(const json_node& n) {
  std::vector<memory_tier> tiers;
  for (const json_node each : n.elements("an array of tiers")) {
    const json_object o(each, keys_of<memory_tier>(), "a tier");
    memory_tier t;
    read_fields(o, t);
    const auto same = [&](const memory_tier& x) { return x.name == t.name; };
    if (std::any_of(tiers.begin(), tiers.end(), same)) o.find("name")->fail("a name that no other tier of the device has");
    tiers.push_back(std::move(t));
  }
  return tiers;
}

HETPLAN_INLINE void put_tiers(json& o, const device& d) {
  for (const memory_tier& t : d.tiers) o["tiers"].push_back(write_fields<json>(t));
}

HETPLAN_INLINE std::optional<route> spelled_network::find_route(std::span<const device>, device_id from, device_id to) const {
  return routes[from.index() * devices + to.index()];
}

HETPLAN_INLINE std::optional<route> listed_network::find_route(std::span<const device>, device_id from, device_id to) const {
  const route* r = chosen[from.index() * devices + to.index()];
  return r == nullptr ? std::nullopt : std::optional(*r);
}

HETPLAN_INLINE void route_choice::add(std::optional<device_id> from, std::optional<device_id> to) {
  const std::size_t rule = rules_++;
  const int weight = (from ? 1 : 0) + (to ? 1 : 0);
  if (weight == 0 && std::exchange(everywhere_, true)) return;  // further rules for any pair never win, and there may be many
  for (std::size_t a = from ? from->index() : 0; a < (from ? from->index() + 1 : devices_); ++a) {
    for (std::size_t b = to ? to->index() : 0; b < (to ? to->index() + 1 : devices_); ++b) {
      if (named_[a * devices_ + b] >= weight) continue;
      named_[a * devices_ + b] = weight;
      chosen_[a * devices_ + b] = rule;
    }
  }
}

HETPLAN_INLINE std::optional<std::size_t> route_choice::rule_of(std::size_t from, std::size_t to) const {
  const std::size_t pair = from * devices_ + to;
  return from == to || named_[pair] < 0 ? std::nullopt : std::optional(chosen_[pair]);
}

HETPLAN_INLINE cluster cluster_reader::read() {
  cluster c = read_all();
  if (tier_resources_.empty()) return c;
  std::vector<device> devices(c.devices().begin(), c.devices().end());
  std::vector<std::string_view> known;
  for (const resource& r : c.network().resources()) known.push_back(r.name);
  for (const tier_resource& t : tier_resources_) {
    const std::string_view name = t.name.text();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::sort(known.begin(), known.end());
      t.name.fail("the name of a resource of the network", suggestion(name, known));
    }
    devices[t.device].tiers[t.tier].resource = name;
  }
  return c.with_devices(std::move(devices));
}

HETPLAN_INLINE cluster cluster_reader::read_all() {
  name_ = top_.at("name", "text").text();
  const json_node devices = top_.at("devices", "an array of devices");
  for (const json_node n : devices.elements("at least one device", 1)) read_device(n);
  const auto topology = top_.find("topology"), resources = top_.find("resources"), routes = top_.find("routes");
  if (topology && resources) resources->fail_with("expected either topology or resources and routes, got both");
  if (topology && routes) routes->fail_with("expected either topology or resources and routes, got both");
  if (const auto indirect = top_.find("indirect"); indirect && !resources && !routes)
    indirect->fail_with("expected indirect beside resources and routes only");
  if (topology) return read_topology(*topology);
  if (!resources && !routes) {
    if (devices_.size() > 1) top_.node().fail_missing("topology", "a topology, or resources and routes, for more than one device");
    return lonely();
  }
  return read_network(top_.at("resources", "an array of resources"), top_.at("routes", "an array of routes"));
}

HETPLAN_INLINE cluster cluster_reader::lonely() {
  return at_node(top_.node(), [&] { return cluster(name_, std::move(devices_.front())); });
}

HETPLAN_INLINE void cluster_reader::read_device(const json_node& n) {
  if (devices_.size() == max_devices) n.fail_with("expected at most " + std::to_string(max_devices) + " devices, got more");
  const json_object o(n, keys_of<device>(), "a device");
  const json_node name = o.at("name", "a name");
  device d;
  const auto like = o.find("like");
  if (like) d = detail::built_in_device(o, *like);
  read_fields(o, d, like.has_value());
  at_node(n, [&] { check_device(d); });
  if (!ids_.emplace(name.text(), device_id(devices_.size())).second) name.fail("a name that no other device has");
  if (const auto tiers = o.find("tiers")) {
    std::size_t i = 0;
    for (const json_node each : tiers->elements("an array of tiers")) {
      if (const auto resource = json_object(each, keys_of<memory_tier>()).find("resource")) {
        d.tiers[i].resource.clear();  // until the network is known
        tier_resources_.push_back({*resource, devices_.size(), i});
      }
      ++i;
    }
  }
  devices_.push_back(std::move(d));
}

HETPLAN_INLINE device_id cluster_reader::find_device(const json_node& n, std::string_view expected) const {
  const auto it = ids_.find(n.text(expected));
  if (it != ids_.end()) return it->second;
  std::vector<std::string_view> known;
  for (const device& d : devices_) known.push_back(d.name);
  n.fail(expected, suggestion(n.text(), known));
}

HETPLAN_INLINE cluster cluster_reader::read_topology(const json_node& n) {
  const json_object o(n, keys::topology, "a topology");
  const topology_kind kind = o.one_of("kind", topology_kinds);
  const auto capacity = o.required_amount<bytes_per_second>("capacity", range::above_zero);
  const auto latency = o.amount<seconds>("latency", range::at_least_zero).value_or(seconds{});
  const duplex wires = o.one_of("duplex", duplexes, std::optional(duplex::full));
  const auto groups = o.find("groups");
  if (groups && kind != topology_kind::hierarchical) groups->fail_with("expected groups in a hierarchical topology only");
  switch (kind) {
    case topology_kind::shared: return joined(n, shared_medium{capacity, latency});
    case topology_kind::mesh: return named(n, mesh{capacity, latency, wires});
    case topology_kind::star: return named(n, star{capacity, latency, wires});
    case topology_kind::hierarchical: break;
    case topology_kind::ring:
      // The average route takes a quarter of the links.
      if (devices_.size() * devices_.size() * devices_.size() / 4 > max_route_steps)
        n.fail_with("expected a ring of at most 430 devices, got " + std::to_string(devices_.size()));
      return named(n, ring{capacity, latency, wires});
  }
  hierarchical h{capacity, latency, wires, {}};
  read_groups(o.at("groups", "an array of groups"), h);
  return named(n, h);
}

HETPLAN_INLINE void cluster_reader::read_groups(const json_node& list, hierarchical& h) const {
  std::vector<bool> placed(devices_.size(), false);
  std::unordered_map<std::string_view, std::size_t> names;
  for (const json_node n : list.elements("at least one group", 1)) {
    const json_object o(n, keys::group, "a group");
    const json_node name = o.at("name", "a name");
    hierarchical::group g{std::string(name.name()), {}, {}, {}};
    if (!names.emplace(name.text(), names.size()).second) name.fail("a name that no other group has");
    for (const json_node m : o.at("devices", "an array of device names").elements("an array of device names")) {
      const std::size_t d = find_device(m).index();
      if (placed[d]) m.fail("a device that is in no other group");
      placed[d] = true;
      g.devices.emplace_back(m.text());
    }
    g.capacity = o.required_amount<bytes_per_second>("capacity", range::above_zero);
    g.latency = o.amount<seconds>("latency", range::at_least_zero).value_or(seconds{});
    h.groups.push_back(std::move(g));
  }
  for (std::size_t d = 0; d < placed.size(); ++d) {
    if (!placed[d]) list.fail_with("expected every device in a group, got none with device " + in_quotes(devices_[d].name));
  }
}

HETPLAN_INLINE cluster cluster_reader::read_network(const json_node& resources, const json_node& routes) {
  listed_network net{.devices = devices_.size()};
  std::unordered_map<std::string_view, resource_id> known;
  for (const json_node n : resources.elements("an array of resources")) {
    const json_object o(n, keys::resource, "a resource");
    const json_node name = o.at("name", "a name");
    if (!known.emplace(name.name(), resource_id(known.size())).second) name.fail("a name that no other resource has");
    net.listed.push_back({std::string(name.text()), o.required_amount<bytes_per_second>("capacity", range::above_zero)});
  }
  std::vector<route> paths;
  route_choice choice(devices_.size());
  for (const json_node n : routes.elements("an array of routes")) {
    const json_object o(n, keys::route, "a route");
    const auto from = find_end(o.at("from", route_end)), to = find_end(o.at("to", route_end));
    paths.push_back({o.amount<seconds>("latency", range::at_least_zero).value_or(seconds{}), read_via(o, known)});
    choice.add(from, to);
  }
  std::size_t steps = 0;
  net.chosen.resize(net.devices * net.devices, nullptr);
  for (std::size_t i = 0; i < net.chosen.size(); ++i) {
    const auto rule = choice.rule_of(i / net.devices, i % net.devices);
    if (!rule) continue;
    net.chosen[i] = &paths[*rule];
    steps += paths[*rule].via.size();
  }
  if (steps > max_route_steps)
    routes.fail_with("expected routes that take at most " + std::to_string(max_route_steps) + " resources together, got more");
  const indirection indirect = top_.one_of("indirect", indirections, std::optional(indirection::none));
  if (devices_.size() == 1 && net.listed.empty()) return lonely();
  if (indirect == indirection::none) return joined(routes, net);
  return joined(routes, widened(routes, std::move(net)));
}

HETPLAN_INLINE spelled_network cluster_reader::widened(const json_node& routes, listed_network net) const {
  std::vector<device> numbered = devices_;
  for (std::size_t i = 0; i < numbered.size(); ++i) numbered[i].id = device_id(i);
  spelled_network all{.devices = numbered.size(), .routes = std::vector<std::optional<route>>(net.chosen.size())};
  const widest_routes widest{std::move(net)};
  const auto find = at_node(routes, [&] { return widest.route_finder(numbered); });
  std::size_t steps = 0;
  for (const device& a : numbered) {
    for (const device& b : numbered) {
      if (a.id == b.id) continue;
      auto& found = all.routes[a.id.index() * all.devices + b.id.index()] = find(a.id, b.id);
      if (found) steps += found->via.size();
      if (steps > max_route_steps)
        routes.fail_with("expected routes that take at most " + std::to_string(max_route_steps) + " resources together, got more");
    }
  }
  all.listed = widest.inner.listed;
  return all;
}

HETPLAN_INLINE std::optional<device_id> cluster_reader::find_end(const json_node& n) const {
  if (n.text(route_end) == "*") return std::nullopt;
  return find_device(n, route_end);
}

HETPLAN_INLINE std::vector<resource_use> cluster_reader::read_via(const json_object& rule,
                                                                  const std::unordered_map<std::string_view, resource_id>& known) {
  std::vector<resource_use> via;
  std::unordered_map<std::int32_t, std::size_t> listed;
  for (const json_node n : rule.at("via", "an array of resource uses").elements("an array of resource uses")) {
    const json_object o(n, keys::via, "an object with resource and weight");
    const json_node name = o.at("resource", "the name of a resource");
    const auto it = known.find(name.text("the name of a resource"));
    if (it == known.end()) {
      std::vector<std::string_view> names;
      for (const auto& [each, id] : known) names.push_back(each);
      std::sort(names.begin(), names.end());
      name.fail("the name of a resource", suggestion(name.text(), names));
    }
    const double weight = o.number("weight", range::above_zero).value_or(1);
    const auto [place, fresh] = listed.emplace(it->second.value, via.size());
    if (fresh) {
      if (via.size() == max_steps_of_route)
        n.fail_with("expected at most " + std::to_string(max_steps_of_route) + " resources in a route, got more");
      via.push_back({it->second, weight});
    } else if (!std::isfinite(via[place->second].weight += weight)) {
      o.find("weight")->fail("weights with a finite sum");
    }
  }
  return via;
}

}  // namespace detail

HETPLAN_INLINE std::string write_cluster(const cluster& c) {
  object_text out;
  out.add("format", cluster_format);
  out.add("name", c.name());
  out.add_list("devices", c.size(), [&](std::size_t d) { return std::optional(detail::write_fields<json>(c[device_id(d)])); });
  const network& net = c.network();
  if (c.size() == 1 && net.resources().empty()) return std::move(out).text();
  out.add_list("resources", net.resources().size(), [&](std::size_t r) {
    json x;
    x["name"] = net.resources()[r].name;
    put(x, "capacity", net.resources()[r].capacity);
    return std::optional(std::move(x));
  });
  out.add_list("routes", c.size() * c.size(), [&](std::size_t pair) -> std::optional<json> {
    const device &a = c[device_id(pair / c.size())], &b = c[device_id(pair % c.size())];
    const route* r = a.id == b.id ? nullptr : net.find(a.id, b.id);
    if (r == nullptr) return std::nullopt;
    json x, via = json::array();
    x["from"] = a.name;
    x["to"] = b.name;
    for (const resource_use& u : r->via) {
      json use;
      use["resource"] = net[u.resource].name;
      put_unless(use, "weight", u.weight, 1.0);
      via.push_back(std::move(use));
    }
    x["via"] = std::move(via);
    put_unless(x, "latency", r->latency, seconds{});
    return x;
  });
  return std::move(out).text();
}

}  // namespace hetplan::io
