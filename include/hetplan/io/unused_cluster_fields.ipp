// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_cluster_fields.hpp>

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <hetplan/io/cluster_json.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::set<std::string_view> resources_on_routes(const cluster& c) {
  std::set<std::string_view> names;
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      const route* r = a.id == b.id ? nullptr : c.network().find(a.id, b.id);
      if (r == nullptr) continue;
      for (const resource_use& u : r->via) names.insert(c.network()[u.resource].name);
    }
  }
  return names;
}

HETPLAN_INLINE std::vector<std::string> unused_cluster_fields(const json_node& n, const cluster& c) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const json_object top(n, keys::cluster);
  for (const json_node device : top.at("devices", "").elements("")) {
    const json_object o(device, keys::device);
    const auto accelerators = o.find("accelerators"), interconnect = o.find("interconnect");
    const bool several = accelerators && accelerators->integer(1) > 1;
    if (several && !interconnect) unused(*accelerators, "without an interconnect a plan uses one of them");
    if (interconnect && !several) unused(*interconnect, "it joins accelerators, and the device has one");
  }
  if (const auto topology = top.find("topology")) {
    const json_object o(*topology, keys::topology);
    const auto duplex = o.find("duplex"), groups = o.find("groups");
    std::size_t inhabited = 0;
    std::vector<json_node> empty;
    if (groups) {
      for (const json_node g : groups->elements("")) {
        if (json_object(g, keys::group).at("devices", "").size() > 0) ++inhabited;
        else empty.push_back(g);
      }
    }
    if (c.size() == 1) unused(*topology, "there is one device");
    else if (duplex && o.at("kind", "").text() == "shared") unused(*duplex, "a shared medium has no directions");
    else if (inhabited == 1) unused(o.at("capacity", ""), "nothing goes between groups, as all devices are in one");
    for (const json_node& g : empty) unused(g, "no device is in it");
  }
  if (const auto resources = top.find("resources")) {
    const auto taken = resources_on_routes(c);
    for (const json_node r : resources->elements("")) {
      const auto name = json_object(r, keys::resource).at("name", "").text();
      if (!taken.contains(name)) unused(r, "no route takes resource " + in_quotes(name));
    }
  }
  if (const auto routes = top.find("routes")) {
    std::unordered_map<std::string_view, device_id> ids;
    for (const device& d : c.devices()) ids.emplace(d.name, d.id);
    const auto end = [&](std::string_view name) { return name == "*" ? std::nullopt : std::optional(ids.at(name)); };
    detail::route_choice choice(c.size());
    for (const json_node r : routes->elements("")) {
      const json_object o(r, keys::route);
      choice.add(end(o.at("from", "").text()), end(o.at("to", "").text()));
    }
    std::vector<bool> wins(routes->size());
    bool added = false;  // a route that no rule has made
    for (const device& from : c.devices()) {
      for (const device& to : c.devices()) {
        const auto rule = choice.rule_of(from.id.index(), to.id.index());
        if (rule) wins[*rule] = true;
        else added = added || (from.id != to.id && c.network().find(from.id, to.id) != nullptr);
      }
    }
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> first;
    std::size_t number = 0;
    for (const json_node r : routes->elements("")) {
      const json_object o(r, keys::route);
      const auto from = o.at("from", "").text(), to = o.at("to", "").text();
      const bool used = wins[number];
      const auto [it, fresh] = first.emplace(std::pair(from, to), number++);
      if (used) continue;
      if (c.size() == 1 || (from == to && from != "*")) unused(r, "a device needs no route to itself");
      else if (!fresh) unused(r, "route " + std::to_string(it->second) + " is between the same ends and comes before it");
      else unused(r, "every pair of devices that it could be for takes another route");
    }
    const auto indirect = top.find("indirect");
    if (indirect && indirect->text() == "widest" && !added) unused(*indirect, "no pair of devices gets a route by it");
  }
  return lines;
}

}  // namespace hetplan::io
