// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_cluster_fields.hpp>

#include <map>
#include <utility>

#include <hetplan/io/cluster_json.hpp>

namespace HETPLAN_NAMESPACE::io {

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
    const auto duplex = o.find("duplex");
    if (duplex && o.at("kind", "").text() == "shared") unused(*duplex, "a shared medium has no directions");
  }
  if (const auto resources = top.find("resources")) {
    const auto taken = resources_on_routes(c);
    for (const json_node r : resources->elements("")) {
      const auto name = json_object(r, keys::resource).at("name", "").text();
      if (!taken.contains(name)) unused(r, "no route takes resource " + in_quotes(name));
    }
  }
  if (const auto routes = top.find("routes")) {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> first;
    std::size_t number = 0;
    for (const json_node r : routes->elements("")) {
      const json_object o(r, keys::route);
      const auto from = o.at("from", "").text(), to = o.at("to", "").text();
      const auto [it, fresh] = first.emplace(std::pair(from, to), number++);
      if (from == to && from != "*") unused(r, "a device needs no route to itself");
      else if (!fresh) unused(r, "route " + std::to_string(it->second) + " is between the same ends and comes before it");
    }
  }
  return lines;
}

}  // namespace HETPLAN_NAMESPACE::io
