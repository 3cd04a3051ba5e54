// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/services_json.hpp>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include <hetplan/io/file.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

HETPLAN_INLINE serving_names::serving_names(const serve::edge_cloud& cloud, const std::vector<serve::service>& services) : cloud_(&cloud) {
  servers_.reserve(cloud.size());
  for (std::size_t s = 0; s < cloud.size(); ++s) servers_.emplace(cloud.servers[s].name, serve::server_id(s));
  for (std::size_t l = 0; l < services.size(); ++l) services_.emplace(services[l].name, serve::service_id(l));
}

HETPLAN_INLINE serve::server_id serving_names::find_server(std::string_view name) const {
  const auto it = servers_.find(name);
  return it == servers_.end() ? serve::server_id() : it->second;
}

HETPLAN_INLINE serve::service_id serving_names::find_service(std::string_view name) const {
  const auto it = services_.find(name);
  return it == services_.end() ? serve::service_id() : it->second;
}

HETPLAN_INLINE serve::server_id serving_names::server(const json_node& n) const {
  const auto name = n.text("the name of a server");
  if (const auto s = find_server(name); s.valid()) return s;
  std::vector<std::string_view> all;
  for (const auto& s : cloud_->servers) all.push_back(s.name);
  n.fail("the name of a server of cloud " + in_quotes(cloud_->name), suggestion(name, all));
}

HETPLAN_INLINE serve::service_id serving_names::service(const json_node& n) const {
  const auto name = n.text("the name of a service");
  if (const auto l = find_service(name); l.valid()) return l;
  std::vector<std::string_view> all;
  for (const auto& [known, l] : services_) all.push_back(known);
  n.fail("the name of a service", suggestion(name, all));
}

HETPLAN_INLINE int serving_names::device(serve::server_id owner, const json_node& n) const {
  const auto name = n.text("the name of a device");
  const auto& devices = (*cloud_)[owner].devices;
  std::vector<std::string_view> all;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].name == name) return static_cast<int>(d);
    all.push_back(devices[d].name);
  }
  n.fail("the name of a device of server " + in_quotes((*cloud_)[owner].name), suggestion(name, all));
}

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
    const json_object d(n, keys_of<serve::registered_device>(), "a registered device");
    const auto name = d.at("name", "a name");
    if (!names.insert(std::string(name.name())).second) name.fail("a name that no other device of the server has");
    read_fields(d, s.devices.emplace_back());
  }
}

}  // namespace detail

HETPLAN_INLINE serve::edge_cloud read_cloud(const json_document& d) {
  const json_object top = open_document(d, cloud_format, keys::cloud);
  serve::edge_cloud c;
  c.name = top.at("name", "a name").name();
  const char* const of_ring = "an object with period, group, max_age";
  detail::read_fields(json_object(top.at("ring", of_ring), keys_of<serve::ring_options>(), of_ring), c.ring);
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
  o["ring"] = detail::write_fields<json>(c.ring);
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
    for (const auto& d : s.devices) server["devices"].push_back(detail::write_fields<json>(d));
    o["servers"].push_back(std::move(server));
  }
  return json_text(o);
}

namespace detail {

inline constexpr std::array<std::pair<std::string_view, serve::batching>, 2> batching_names{
    {{"fixed", serve::batching::fixed}, {"continuous", serve::batching::continuous}}};

HETPLAN_INLINE serve::batch_curve read_curve(const json_object& o) {
  serve::batch_curve c;
  for (const json_node n : o.at("batch", "sizes of batch, ascending from 1").elements("an array of sizes of batch", 1)) {
    const int b = n.integer<int>(1, 1 << 20);
    if (c.batch.empty() ? b != 1 : b <= c.batch.back())
      n.fail(c.batch.empty() ? "1, the smallest batch" : "more than " + std::to_string(c.batch.back()) + ", the size before");
    c.batch.push_back(b);
  }
  const json_node times = o.at("seconds", "a time for each size of batch");
  for (const json_node n : times.elements("an array of seconds", 1)) {
    const auto t = n.amount<seconds>(range::above_zero);
    if (!c.seconds_at.empty() && t.value() < c.seconds_at.back())
      n.fail("at least " + to_text(c.seconds_at.back()) + ", the time of the smaller batch");
    c.seconds_at.push_back(t.value());
  }
  if (c.seconds_at.size() != c.batch.size())
    times.fail_with("expected " + std::to_string(c.batch.size()) + " times, one for each size of batch; got " +
                    std::to_string(c.seconds_at.size()));
  return c;
}

HETPLAN_INLINE std::pair<serve::service_variant, serve::variant_times> read_variant(const json_node& n, bool generates) {
  const json_object o(n, keys_of<serve::service_variant>(), "a variant");
  serve::service_variant v;
  read_fields(o, v);
  serve::variant_times t;
  const json_object pass(o.at("pass", "an object with batch, seconds, per_token"), keys::pass, "an object with batch, seconds, per_token");
  t.pass = read_curve(pass);
  t.per_token_s = pass.amount<seconds>("per_token", range::at_least_zero).value_or(seconds()).value();
  const auto step = o.find("step");
  if (step) t.step = read_curve(json_object(*step, keys::step, "an object with batch, seconds"));
  if (generates && !step) n.fail_missing("step", "an object with batch, seconds: the service generates tokens");
  if (!generates && step) step->fail_with("only services with tokens take steps");
  if (!generates && t.per_token_s > 0) pass.find("per_token")->fail_with("only services with tokens have times for them");
  return {std::move(v), std::move(t)};
}

}  // namespace detail

HETPLAN_INLINE services_file read_services(const json_document& d) {
  const json_object top = open_document(d, services_format, keys::services);
  std::vector<serve::service> services;
  std::vector<std::vector<serve::variant_times>> times;
  std::set<std::string, std::less<>> names;
  for (const json_node n : top.at("services", "an array of services").elements("an array of services", 1)) {
    const json_object o(n, keys::service, "a service");
    serve::service s;
    const auto name = o.at("name", "a name");
    s.name = name.name();
    if (!names.insert(s.name).second) name.fail("a name that no other service has");
    s.latency = o.required_amount<seconds>("latency", range::above_zero);
    s.rate = o.number("rate", range::above_zero).value_or(0);
    if (const auto within = o.find("frame_latency")) {
      s.frame_latency = within->amount<seconds>(range::above_zero);
      if (!s.is_stream()) within->fail_with("frame_latency is for streams, which have a rate");
    }
    s.request_size = o.amount<bytes>("request_bytes", range::at_least_zero).value_or(bytes());
    s.response_size = o.amount<bytes>("response_bytes", range::at_least_zero).value_or(bytes());
    s.bytes_per_token = o.amount<bytes>("bytes_per_token", range::at_least_zero).value_or(bytes());
    if (s.bytes_per_token.value() > 0 && !o.has("tokens"))
      o.find("bytes_per_token")->fail_with("only services with tokens have bytes for them");
    s.weights = o.amount<bytes>("weights", range::at_least_zero).value_or(bytes());
    if (const auto t = o.find("tokens")) {
      const json_object counts(*t, keys::token_counts, "an object with in, out");
      s.generates = true;
      const auto count = [&](std::string_view key, double least) {
        const std::string expected = "a number from " + to_text(least) + " to " + to_text(serve::most_typical);
        const auto node = counts.at(key, expected);
        const double v = node.number(range::at_least_zero);
        if (v < least || v > serve::most_typical) node.fail(expected);
        return v;
      };
      s.tokens.in = count("in", 0);
      s.tokens.out = count("out", 1);
    }
    if (const auto frames = o.find("frames")) {
      s.frames = frames->integer<int>(1);
      if (s.frames > 1 && !s.is_stream()) frames->fail_with("frames are for streams, which have a rate");
    }
    s.batches = o.one_of("batching", detail::batching_names, std::optional(serve::batching::fixed));
    if (s.batches == serve::batching::continuous && (!s.generates || s.is_stream()))
      o.find("batching")->fail_with("continuous batches are for services that have tokens and no rate");
    times.emplace_back();
    std::set<std::string, std::less<>> variants;
    for (const json_node v : o.at("variants", "an array of variants").elements("an array of variants", 1)) {
      auto [variant, table] = detail::read_variant(v, s.generates);
      if (!variants.insert(variant.name).second) v.fail_with("expected a name that no other variant has, got " + in_quotes(variant.name));
      s.variants.push_back(std::move(variant));
      times.back().push_back(std::move(table));
    }
    services.push_back(std::move(s));
  }
  return {std::move(services), serve::service_time_table(std::move(times))};
}

}  // namespace hetplan::io
