// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/serving_json.hpp>

#include <functional>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

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

HETPLAN_INLINE serve::variant_times read_times(const json_object& o, const json_node& n, bool generates) {
  serve::variant_times t;
  const json_object pass(o.at("pass", "an object with batch, seconds, per_token"), keys::pass, "an object with batch, seconds, per_token");
  t.pass = read_curve(pass);
  t.per_token_s = pass.amount<seconds>("per_token", range::at_least_zero).value_or(seconds()).value();
  const char* const of_step = "an object with batch, seconds, per_cached_token";
  const auto step = o.find("step");
  if (step) {
    const json_object steps(*step, keys::step, of_step);
    t.step = read_curve(steps);
    t.per_cached_token_s = steps.amount<seconds>("per_cached_token", range::at_least_zero).value_or(seconds()).value();
  }
  if (generates && !step) n.fail_missing("step", std::string(of_step) + ": the service generates tokens");
  if (!generates && step) step->fail_with("only services with tokens take steps");
  if (!generates && t.per_token_s > 0) pass.find("per_token")->fail_with("only services with tokens have times for them");
  return t;
}

HETPLAN_INLINE judged_source read_judged(const json_node& n) {
  const char* const expected = "an object with model, device or cluster, weights, largest";
  const json_object o(n, keys::judged, expected);
  judged_source s;
  s.model = o.at("model", "the name or file of a model").name("the name or file of a model");
  const auto device = o.find("device"), cluster = o.find("cluster");
  if (device.has_value() == cluster.has_value())
    n.fail_with("expected one of device and cluster, got " + std::string(device ? "both" : "none"));
  s.cluster = (device ? *device : *cluster).name("a name or a file");
  if (const auto weights = o.find("weights")) s.weights = weights->name("a weight format");
  if (const auto largest = o.find("largest")) s.largest = largest->integer<int>(1, 1024);
  return s;
}

HETPLAN_INLINE std::pair<serve::service_variant, serve::variant_times> read_variant(const json_node& n, const serve::service& s,
                                                                                    const variant_judge& judge) {
  const json_object o(n, keys_of<serve::service_variant>(), "a variant");
  serve::service_variant v;
  read_fields(o, v);
  if (v.cache_tokens > 0 && s.batches != serve::batching::continuous)
    o.find("cache_tokens")->fail_with("only continuous batches share a cache");
  const auto judged = o.find("judged");
  if (!judged) return {v, read_times(o, n, s.generates)};
  for (const char* times : {"pass", "step"}) {
    if (const auto given = o.find(times)) given->fail_with("a variant whose times are judged has no " + in_quotes(times));
  }
  if (!judge) judged->fail_with("expected pass and step: nobody plans and simulates here");
  if (!s.generates) judged->fail_with("only services with tokens have times that are judged");
  const auto source = read_judged(*judged);
  serve::variant_times t;
  at_node(*judged, [&] { t = judge(s, v, source); });
  return {std::move(v), std::move(t)};
}

/// Reads the limits on tokens of a service whose tokens are known, and on its answer.
HETPLAN_INLINE void read_limits(const json_object& o, serve::service& s) {
  s.ttft = o.amount<seconds>("ttft", range::above_zero).value_or(seconds());
  s.time_between_tokens = o.amount<seconds>("time_between_tokens", range::above_zero).value_or(seconds());
  for (const char* limit : {"ttft", "time_between_tokens"}) {
    const auto given = o.find(limit);
    if (given && (!s.generates || s.is_stream())) given->fail_with("only services that have tokens and no rate limit the times of them");
  }
  s.limits_answer = o.has("latency") || s.ttft.value() == 0 || s.time_between_tokens.value() == 0;
  s.latency =
      s.limits_answer ? o.required_amount<seconds>("latency", range::above_zero) : s.ttft + s.time_between_tokens * (s.tokens.out - 1);
}

}  // namespace detail

HETPLAN_INLINE services_file read_services(const json_document& d, const variant_judge& judge) {
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
    detail::read_limits(o, s);
    if (const auto frames = o.find("frames")) {
      s.frames = frames->integer<int>(1);
      if (s.frames > 1 && !s.is_stream()) frames->fail_with("frames are for streams, which have a rate");
    }
    s.batches = o.one_of("batching", detail::batching_names, std::optional(serve::batching::fixed));
    if (s.batches == serve::batching::continuous && (!s.generates || s.is_stream()))
      o.find("batching")->fail_with("continuous batches are for services that have tokens and no rate");
    if (const auto chunk = o.find("prefill_chunk")) {
      s.prefill_chunk = chunk->integer<int>(1);
      if (s.batches != serve::batching::continuous) chunk->fail_with("only continuous batches read prompts in chunks");
    }
    times.emplace_back();
    std::set<std::string, std::less<>> variants;
    for (const json_node v : o.at("variants", "an array of variants").elements("an array of variants", 1)) {
      auto [variant, table] = detail::read_variant(v, s, judge);
      if (!variants.insert(variant.name).second) v.fail_with("expected a name that no other variant has, got " + in_quotes(variant.name));
      s.variants.push_back(std::move(variant));
      times.back().push_back(std::move(table));
    }
    services.push_back(std::move(s));
  }
  return {std::move(services), serve::service_time_table(std::move(times))};
}

namespace detail {

enum class fault_kind {
  server_fails,
  gpu_fails,
  device_leaves,
  device_registers,
  ring_cut,
  slow_link,
  wrong_state,
  server_joins,
  server_leaves
};
inline constexpr std::array<std::pair<std::string_view, fault_kind>, 9> fault_kinds{{{"server_fails", fault_kind::server_fails},
                                                                                     {"gpu_fails", fault_kind::gpu_fails},
                                                                                     {"device_leaves", fault_kind::device_leaves},
                                                                                     {"device_registers", fault_kind::device_registers},
                                                                                     {"ring_cut", fault_kind::ring_cut},
                                                                                     {"slow_link", fault_kind::slow_link},
                                                                                     {"wrong_state", fault_kind::wrong_state},
                                                                                     {"server_joins", fault_kind::server_joins},
                                                                                     {"server_leaves", fault_kind::server_leaves}}};

class fault_reader {
 public:
  explicit fault_reader(const serve::edge_cloud& cloud) : names_(cloud, {}) {}

  [[nodiscard]] serve::serving_fault read(const json_node& n) const {
    const json_object o(n, keys::fault, "a fault");
    serve::serving_fault f{
        o.required_amount<seconds>("at", range::at_least_zero), names_.server(o.at("server", "the name of a server")), {}};
    const auto kind = o.one_of("kind", fault_kinds);
    only(o, kind);
    const auto until = [&] { return o.required_amount<seconds>("until", range::above_zero); };
    const auto device = [&] { return names_.device(f.server, o.at("device", "the name of a device")); };
    switch (kind) {
      case fault_kind::server_fails: f.what = serve::server_fails{}; break;
      case fault_kind::gpu_fails: f.what = serve::gpu_fails{o.required_integer("gpu", 0)}; break;
      case fault_kind::device_leaves: f.what = serve::device_leaves{device()}; break;
      case fault_kind::device_registers: f.what = serve::device_registers{device()}; break;
      case fault_kind::ring_cut: f.what = serve::ring_cut{until()}; break;
      case fault_kind::slow_link: f.what = serve::slow_link{until(), o.at("factor", "a number > 0").number(range::above_zero)}; break;
      case fault_kind::wrong_state: f.what = serve::wrong_state{until()}; break;
      case fault_kind::server_joins: f.what = serve::server_joins{}; break;
      case fault_kind::server_leaves: f.what = serve::server_leaves{}; break;
    }
    return f;
  }

 private:
  /// Refuses keys that faults of this kind do not have.
  static void only(const json_object& o, fault_kind k) {
    const auto refuse_unless = [&](const char* key, bool wanted) {
      const auto found = o.find(key);
      if (found && !wanted) found->fail_with("a fault of this kind has no \"" + std::string(key) + "\"");
    };
    refuse_unless("until", k == fault_kind::ring_cut || k == fault_kind::slow_link || k == fault_kind::wrong_state);
    refuse_unless("gpu", k == fault_kind::gpu_fails);
    refuse_unless("device", k == fault_kind::device_leaves || k == fault_kind::device_registers);
    refuse_unless("factor", k == fault_kind::slow_link);
  }
  serving_names names_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<serve::serving_fault> read_faults(const json_document& d, const serve::edge_cloud& cloud) {
  const json_object top = open_document(d, faults_format, keys::faults);
  const json_node list = top.at("events", "an array of faults");
  const detail::fault_reader reader(cloud);
  std::vector<serve::serving_fault> all;
  for (const json_node n : list.elements("an array of faults")) all.push_back(reader.read(n));
  at_node(
      list, [&] { serve::validate(all, cloud); }, "serving_faults: ");
  return all;
}

namespace detail {

class deployment_reader {
 public:
  deployment_reader(const serve::edge_cloud& cloud, const std::vector<serve::service>& services, const serve::any_service_time& times)
      : cloud_(cloud), services_(services), times_(times), names_(cloud, services) {}

  [[nodiscard]] serve::deployment read(const json_node& list) const {
    serve::deployment d;
    for (const json_node n : list.elements("an array of instances")) d.instances.push_back(read_instance(n));
    at_node(
        list, [&] { serve::validate(d, cloud_, services_, times_); }, "deployment: ");
    return d;
  }

 private:
  [[nodiscard]] serve::instance read_instance(const json_node& n) const {
    const json_object o(n, keys::instance, "an instance");
    serve::instance i;
    i.what = names_.service(o.at("service", "the name of a service"));
    const auto& variants = services_[i.what.index()].variants;
    if (const auto v = o.find("variant")) i.variant = find_variant(*v, variants);
    i.batch = o.required_integer("batch", 1);
    i.frames = o.integer_or("frames", 1, 1);
    i.groups = o.integer_or("groups", 1, 1);
    const auto gpus = o.find("gpus");
    const auto device = o.find("device");
    if (gpus.has_value() == device.has_value()) n.fail_with("expected one of gpus and device, got " + std::string(gpus ? "both" : "none"));
    if (device) {
      const auto [server, name] = pair(*device, "an array of a server and a device");
      i.device = serve::gpu_slot{server, names_.device(server, name)};
    } else {
      for (const json_node g : gpus->elements("an array of [server, number]", 1)) {
        const auto [server, number] = pair(g, "an array of a server and the number of a GPU");
        i.gpus.push_back({server, number.integer<int>(0)});
      }
    }
    return i;
  }

  [[nodiscard]] std::pair<serve::server_id, json_node> pair(const json_node& n, const char* expected) const {
    const auto both = n.elements(expected, 2);
    if (n.size() != 2) n.fail(expected);
    auto it = both.begin();
    const auto server = names_.server(*it);
    ++it;
    return {server, *it};
  }

  [[nodiscard]] static int find_variant(const json_node& n, const std::vector<serve::service_variant>& variants) {
    const auto name = n.text("the name of a variant");
    std::vector<std::string_view> all;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      if (variants[v].name == name) return static_cast<int>(v);
      all.push_back(variants[v].name);
    }
    n.fail("the name of a variant of the service", suggestion(name, all));
  }

  const serve::edge_cloud& cloud_;
  const std::vector<serve::service>& services_;
  const serve::any_service_time& times_;
  serving_names names_;
};

HETPLAN_INLINE json instance_json(const serve::instance& i, const serve::edge_cloud& cloud, const std::vector<serve::service>& services) {
  const auto& s = services[i.what.index()];
  json o;
  o["service"] = s.name;
  if (i.variant != 0) o["variant"] = s.variants[static_cast<std::size_t>(i.variant)].name;
  if (i.device) {
    const auto& owner = cloud[i.device->server];
    o["device"] = {owner.name, owner.devices[static_cast<std::size_t>(i.device->number)].name};
  } else {
    o["gpus"] = json::array();
    for (const auto& g : i.gpus) o["gpus"].push_back({cloud[g.server].name, g.number});
  }
  o["batch"] = i.batch;
  if (i.frames != 1) o["frames"] = i.frames;
  if (i.groups != 1) o["groups"] = i.groups;
  return o;
}

}  // namespace detail

HETPLAN_INLINE deployment_file read_deployment(const json_document& d, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const serve::any_service_time& times) {
  const json_object top = open_document(d, deployment_format, keys::deployment);
  const detail::deployment_reader reader(cloud, services, times);
  deployment_file f{reader.read(top.at("instances", "an array of instances"))};
  if (const auto changes = top.find("changes")) {
    for (const json_node n : changes->elements("an array of changes")) {
      const json_object o(n, keys::deployment_change, "an object with at, instances");
      const auto at = o.required_amount<seconds>("at", range::above_zero);
      if (!f.at.empty() && at <= f.at.back())
        o.find("at")->fail("seconds > " + to_text(f.at.back().value()) + ", the time of the change before");
      f.at.push_back(at);
      f.changes.push_back(reader.read(o.at("instances", "an array of instances")));
    }
  }
  return f;
}

HETPLAN_INLINE std::string write_deployment(const deployment_file& d, const serve::edge_cloud& cloud,
                                            const std::vector<serve::service>& services) {
  const auto list = [&](const serve::deployment& x) {
    json all = json::array();
    for (const auto& i : x.instances) all.push_back(detail::instance_json(i, cloud, services));
    return all;
  };
  json o;
  o["format"] = deployment_format;
  o["instances"] = list(d.first);
  for (std::size_t c = 0; c < d.at.size(); ++c) {
    json change;
    put(change, "at", d.at[c]);
    change["instances"] = list(d.changes[c]);
    o["changes"].push_back(std::move(change));
  }
  return json_text(o);
}

}  // namespace hetplan::io
