// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>
#include <tuple>

#include <unistd.h>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/plan/describe.hpp>

#include "commands.hpp"
#include "outputs.hpp"
#include "profile_kernels.hpp"
#include "profile_link.hpp"

namespace cli {

using namespace hetplan;

namespace {

double physical_memory() { return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)); }

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "this";
  return name.data();
}

/// Rounds what was measured: more digits say nothing.
double rounded(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", v);
  return std::strtod(text, nullptr);
}

device measured_device(const profile_command_options& o, kernel_team& team) {
  device d{.name = o.device, .kind = o.kind};
  d.memory = bytes(physical_memory());
  d.compute = flops_per_second(rounded(team.flops_per_second()));
  d.memory_bandwidth = bytes_per_second(rounded(team.bytes_per_second()));
  return d;
}

/// Throws if the measurement would need too much memory or, by the device's own speed, too much time.
void require_room(const planning_graph& model, const std::vector<int>& batches, const device& d, double limit_s) {
  std::map<std::tuple<product_size, product_size, double>, double> work;
  for (const layer& l : model.layers()) {
    for (const int b : batches) {
      const layer_kernels k = kernels_of(model, l, b);
      const double held = std::max({k.forward.bytes(), k.attention.bytes(), k.moved});
      if (held > d.memory.value() / 2) {
        throw invalid_input("layer " + io::in_quotes(l.name) + " at batch " + std::to_string(b) +
                            ": expected at most half of the memory of " + readable(d.memory) + ", got " + readable(bytes(held)));
      }
      constexpr double runs = 4, passes = 3;
      const double once = passes * (k.forward.flops() + k.attention.flops()) / d.compute.value() + held / d.memory_bandwidth.value();
      work[{k.forward, k.attention, k.moved}] = std::max(0.2, runs * once);
    }
  }
  double sum = 0;
  for (const auto& [size, s] : work) sum += s;
  if (sum > limit_s) {
    throw invalid_input("expected to measure in at most " + readable(seconds(limit_s)) + " (--limit), and it would take about " +
                        readable(seconds(sum)) + "; ask for fewer or smaller --batches");
  }
}

/// Returns the model with times of its layers on this machine, besides those of other kinds.
planning_graph with_times(const planning_graph& model, const std::vector<int>& batches, const std::string& kind, kernel_team& team,
                          bool shows) {
  planning_graph_builder b(model.name(), model.facts());
  for (const layer& l : model.layers()) {
    if (shows) std::fprintf(stderr, "\r\x1b[Kprofile: %s", escaped(l.name).c_str());
    layer_spec s = spec_of(model, l);
    std::erase_if(s.profiles, [&](const layer_profile& p) { return p.device_kind == kind; });
    layer_profile p{.device_kind = kind, .batch = {}, .forward_s = {}, .backward_s = {}};
    for (const int batch : batches) {
      const layer_kernels k = kernels_of(model, l, batch);
      const double moved = team.move_s(k.moved), attention = team.product_s(k.attention);
      const product_size input{k.forward.rows, k.forward.columns, k.forward.inner},
          weight{k.forward.inner, k.forward.rows, k.forward.columns};
      p.batch.push_back(batch);
      p.forward_s.push_back(rounded(team.product_s(k.forward) + attention + moved));
      double back = k.attention_share * attention + (l.backward_traffic.value() > 0 ? moved : 0);
      if (k.forward.rows > 0 && k.input_share > 0) back += k.input_share * team.product_s(input);
      if (k.forward.rows > 0 && k.weight_share > 0) back += k.weight_share * team.product_s(weight);
      p.backward_s.push_back(rounded(back));
    }
    // What disturbs a measurement makes it longer, and fewer samples take no longer than more.
    for (std::vector<double>* times : {&p.forward_s, &p.backward_s}) {
      for (std::size_t i = times->size(); i-- > 1;) (*times)[i - 1] = std::min((*times)[i - 1], (*times)[i]);
    }
    s.profiles.push_back(std::move(p));
    b.add_layer(std::move(s));
  }
  if (shows) std::fprintf(stderr, "\r\x1b[K");
  for (const layer_edge& e : model.edges()) b.add_edge(e.from, e.to, e.forward, e.gradient);
  return std::move(b).build();
}

/// The other machine's device, from its cluster file.
device device_of(const std::string& text, const std::string& own) {
  const cluster c = io::read_cluster(io::json_document::parse(text, "the other end"));
  if (c.size() != 1) throw invalid_input("the other end: expected one device, got " + std::to_string(c.size()));
  device d = c[device_id(0)];
  if (d.name == own) throw invalid_input("--device: expected another name than the other end's, got " + io::in_quotes(own) + " at both");
  return d;
}

/// Returns the cluster with these devices and routes between them; devices and routes of others stay.
cluster joined(const std::optional<cluster>& before, const std::vector<device>& measured, const std::optional<measured_link>& link) {
  std::vector<device> devices;
  route_table net;
  const auto is_measured = [&](const std::string& name) {
    return std::any_of(measured.begin(), measured.end(), [&](const device& d) { return d.name == name; });
  };
  std::vector<std::string> own;
  if (link) own = {measured[0].name + "->" + measured[1].name, measured[1].name + "->" + measured[0].name};
  if (before) {
    for (const device& d : before->devices()) {
      if (!is_measured(d.name)) devices.push_back(d);
    }
    std::vector<std::size_t> place;  // of its resources
    for (const resource& r : before->network().resources()) {
      place.push_back(net.listed.size());
      if (std::find(own.begin(), own.end(), r.name) == own.end()) net.listed.push_back(r);
    }
    for (const device& a : before->devices()) {
      for (const device& b : before->devices()) {
        const route* way = a.id == b.id ? nullptr : before->network().find(a.id, b.id);
        if (way == nullptr || (link && is_measured(a.name) && is_measured(b.name))) continue;
        route kept = *way;
        for (resource_use& u : kept.via) u.resource = resource_id(place[u.resource.index()]);
        net.rules.push_back({a.name, b.name, std::move(kept)});
      }
    }
  }
  for (const device& d : measured) devices.push_back(d);
  if (link) {
    const std::array<double, 2> rates{link->out_bytes_per_s, link->in_bytes_per_s};
    for (std::size_t way = 0; way < 2; ++way) {
      route r;
      r.latency = seconds(rounded(link->latency_s));
      r.via = {{resource_id(net.listed.size()), 1}};
      net.listed.push_back({own[way], bytes_per_second(rounded(rates[way]))});
      net.rules.push_back({measured[way].name, measured[1 - way].name, std::move(r)});
    }
  }
  const std::string name = before ? before->name() : link ? "measured" : measured[0].name;
  return devices.size() > 1 ? cluster(name, std::move(devices), net) : cluster(name, std::move(devices.front()));
}

void print_link(const device& here, const device& there, const measured_link& l) {
  std::printf("%s -> %s: %s/s; back: %s/s; latency %s\n", escaped(here.name).c_str(), escaped(there.name).c_str(),
              readable(bytes(l.out_bytes_per_s)).c_str(), readable(bytes(l.in_bytes_per_s)).c_str(),
              readable(seconds(l.latency_s)).c_str());
}

}  // namespace

int profile_machine(const common_options& options, const profile_command_options& given) {
  profile_command_options o = given;
  if (o.model.empty()) require_no_model_options(options, "hetplan profile without a model");
  if (o.device.empty()) o.device = host_name();
  if (o.kind.empty()) o.kind = o.device;
  if (o.cores == 0) o.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (o.batches.empty()) o.batches = {1, 2, 4, 8};
  std::sort(o.batches.begin(), o.batches.end());
  o.batches.erase(std::unique(o.batches.begin(), o.batches.end()), o.batches.end());
  const bool linked = !o.listen.empty() || !o.connect.empty();
  constexpr std::size_t least_key = 8;
  if (linked && o.key.size() < least_key)
    throw invalid_input("--key: expected the same " + std::to_string(least_key) + " characters or more at both ends, got " +
                        std::to_string(o.key.size()));
  if (o.model.empty() && !o.out_model.empty()) throw invalid_input("--out-model: expected a model, got none");
  outputs files({{"--out-model", o.out_model}, {"--out-cluster", o.out_cluster}}, {o.model, o.onto});

  std::optional<cluster> before;
  if (!o.onto.empty()) before = load_cluster(o.onto);
  std::optional<planning_graph> model;
  if (!o.model.empty()) model = load_model(options, o.model);
  kernel_team team(o.cores);
  device here = measured_device(o, team);
  if (model) {
    require_room(*model, o.batches, here, o.limit_s);
    model = with_times(*model, o.batches, o.kind, team, shows_progress(options));
    here.compute = flops_per_second(rounded(team.flops_per_second()));
  }
  std::vector<device> devices{here};
  std::optional<measured_link> link;
  if (linked) {
    const std::string own = io::write_cluster(cluster(here.name, here));
    const link_options how{o.key, o.timeout_s};
    link = o.listen.empty() ? connect_link(o.connect, how, own) : listen_for_link(o.listen, how, own);
    devices.push_back(device_of(link->other, here.name));
  }
  const cluster all = joined(before, devices, link);
  if (model && !o.out_model.empty()) files.put(o.out_model, io::write_model(*model));
  if (!o.out_cluster.empty()) files.put(o.out_cluster, io::write_cluster(all));
  if (options.json) {
    io::json document = io::json::object();
    document["device"] = {{"name", here.name},
                          {"memory", here.memory.value()},
                          {"compute", here.compute.value()},
                          {"memory_bandwidth", here.memory_bandwidth.value()}};
    if (link) {
      document["link"] = {
          {"to", devices[1].name}, {"latency", link->latency_s}, {"out", link->out_bytes_per_s}, {"in", link->in_bytes_per_s}};
    }
    if (model) {
      for (const layer& l : model->layers()) {
        const layer_profile& p = *l.profile_for(o.kind);
        document["layers"].push_back({{"name", l.name}, {"batch", p.batch}, {"forward", p.forward_s}, {"backward", p.backward_s}});
      }
    }
    std::cout << io::json_text(document);
  } else {
    std::printf("%s: %s, %d %s, %.4g GFLOP/s, %s/s\n", escaped(here.name).c_str(), readable(here.memory).c_str(), o.cores,
                o.cores == 1 ? "core" : "cores", here.compute.value() / 1e9, readable(bytes(here.memory_bandwidth.value())).c_str());
    if (model) {
      for (std::size_t i = 0; i < o.batches.size(); ++i) {
        double forward = 0, backward = 0;
        for (const layer& l : model->layers()) {
          forward += l.profile_for(o.kind)->forward_s[i];
          backward += l.profile_for(o.kind)->backward_s[i];
        }
        std::printf("%s, batch %d: forward %s, backward %s\n", escaped(model->name()).c_str(), o.batches[i],
                    readable(seconds(forward)).c_str(), readable(seconds(backward)).c_str());
      }
    }
    if (link) print_link(here, devices[1], *link);
  }
  files.commit();
  return 0;
}

}  // namespace cli
