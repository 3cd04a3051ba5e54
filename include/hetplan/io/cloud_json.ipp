// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/cloud_json.hpp>

#include <string>
#include <unordered_set>

#include <hetplan/io/json_object.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

namespace detail {

HETPLAN_INLINE void read_gpus(const json_object& o, serve::edge_server& s) {
  const auto list = o.find("gpus");
  if (!list) return;
  for (const json_node n : list->elements("an array of GPUs")) {
    const json_object g(n, keys::gpu, "a GPU");
    const serve::gpu one{std::string(g.at("kind", "a kind of GPU").name("a kind of GPU")),
                         g.required_amount<bytes>("memory", range::above_zero)};
    const auto count = g.find("count");
    const int many = count ? count->integer<int>(1, max_gpus_per_server) : 1;
    if (s.gpus.size() + static_cast<std::size_t>(many) > max_gpus_per_server)
      n.fail_with("expected at most " + std::to_string(max_gpus_per_server) + " GPUs of a server");
    s.gpus.insert(s.gpus.end(), static_cast<std::size_t>(many), one);
  }
}

HETPLAN_INLINE void read_devices(const json_object& o, serve::edge_server& s) {
  const auto list = o.find("devices");
  if (!list) return;
  std::unordered_set<std::string> names;
  for (const json_node n : list->elements("an array of registered devices")) {
    const json_object d(n, keys::registered_device, "a registered device");
    const auto name = d.at("name", "a name");
    if (!names.insert(std::string(name.name())).second) name.fail("a name that no other device of the server has");
    s.devices.push_back(
        {std::string(name.name()),
         {std::string(d.at("kind", "a kind of GPU").name("a kind of GPU")), d.required_amount<bytes>("memory", range::above_zero)},
         d.required_amount<bytes_per_second>("bandwidth", range::above_zero),
         d.amount<seconds>("latency", range::at_least_zero).value_or(seconds())});
  }
}

}  // namespace detail

HETPLAN_INLINE serve::edge_cloud read_cloud(const json_document& d) {
  const json_object top = open_document(d, cloud_format, keys::cloud);
  serve::edge_cloud c;
  c.name = top.at("name", "a name").name();
  const json_object ring(top.at("ring", "an object with period, group, max_age"), keys::ring, "an object with period, group, max_age");
  c.ring.period = ring.required_amount<seconds>("period", range::above_zero);
  c.ring.group = ring.integer_or("group", 1, c.ring.group);
  c.ring.max_age = ring.integer_or("max_age", 1, 0);
  const auto load = top.amount<bytes_per_second>("load_bandwidth", range::above_zero);
  std::unordered_set<std::string> names;
  for (const json_node n : top.at("servers", "an array of servers").elements("an array of servers", 1)) {
    const json_object o(n, keys::server, "a server");
    serve::edge_server s;
    const auto name = o.at("name", "a name");
    s.name = name.name();
    detail::read_gpus(o, s);
    detail::read_devices(o, s);
    s.uplink = o.required_amount<bytes_per_second>("uplink", range::above_zero);
    s.downlink = o.amount<bytes_per_second>("downlink", range::above_zero).value_or(s.uplink);
    s.latency = o.amount<seconds>("latency", range::at_least_zero).value_or(seconds());
    s.load_bandwidth = o.amount<bytes_per_second>("load_bandwidth", range::above_zero);
    if (!s.load_bandwidth) s.load_bandwidth = load;
    const auto count = o.find("count");
    const int many = count ? count->integer<int>(1, max_servers) : 1;
    if (c.servers.size() + static_cast<std::size_t>(many) > static_cast<std::size_t>(max_servers))
      n.fail_with("expected at most " + std::to_string(max_servers) + " servers");
    for (int i = 0; i < many; ++i) {
      auto one = s;
      if (count) one.name += std::to_string(i);
      if (!names.insert(one.name).second) name.fail("a name that no other server has", "; " + in_quotes(one.name) + " is taken");
      c.servers.push_back(std::move(one));
    }
  }
  return c;
}

HETPLAN_INLINE std::string write_cloud(const serve::edge_cloud& c) {
  json o;
  o["format"] = cloud_format;
  o["name"] = c.name;
  put(o["ring"], "period", c.ring.period);
  o["ring"]["group"] = c.ring.group;
  if (c.ring.max_age > 0) o["ring"]["max_age"] = c.ring.max_age;
  for (const auto& s : c.servers) {
    json server;
    server["name"] = s.name;
    for (std::size_t first = 0, g = 0; g < s.gpus.size(); ++g) {
      if (g + 1 < s.gpus.size() && s.gpus[g + 1] == s.gpus[first]) continue;
      json gpu;
      gpu["kind"] = s.gpus[first].kind;
      put(gpu, "memory", s.gpus[first].memory);
      gpu["count"] = g + 1 - first;
      server["gpus"].push_back(std::move(gpu));
      first = g + 1;
    }
    put(server, "uplink", s.uplink);
    put(server, "downlink", s.downlink);
    put(server, "latency", s.latency);
    if (s.load_bandwidth) put(server, "load_bandwidth", *s.load_bandwidth);
    for (const auto& d : s.devices) {
      json device;
      device["name"] = d.name;
      device["kind"] = d.unit.kind;
      put(device, "memory", d.unit.memory);
      put(device, "bandwidth", d.bandwidth);
      put(device, "latency", d.latency);
      server["devices"].push_back(std::move(device));
    }
    o["servers"].push_back(std::move(server));
  }
  return json_text(o);
}

}  // namespace hetplan::io
