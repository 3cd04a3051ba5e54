// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/deployment_json.hpp>

#include <optional>
#include <string>
#include <utility>

#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/services_json.hpp>

namespace hetplan::io {

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
  /// Refuses what this kind has no use for.
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
