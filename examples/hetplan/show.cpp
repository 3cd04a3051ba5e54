// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <hetplan/draw/dot.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/recipes/serving_systems.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "commands.hpp"
#include "named_models.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

bool names_a_cluster(const std::string& what) {
  if (std::filesystem::exists(what)) {
    require_no_onnx(what);
    return io::document_format(io::json_document::load(what)) == io::cluster_format;
  }
  const auto names = zoo::clusters_and_devices();
  return std::find(names.begin(), names.end(), what) != names.end();
}

void print(const planning_graph& model) {
  std::printf("%s: %zu layers, %zu edges, %.4g M parameters, %.4g GFLOP forward per sample", escaped(model.name()).c_str(), model.size(),
              model.edges().size(), model.parameters() / 1e6, model.forward_flops().value() / 1e9);
  if (model.tokens_per_sample() > 1) std::printf(" of %d tokens", model.tokens_per_sample());
  std::printf("\n%5s  %-28s %-14s %12s %10s %10s\n", "", "layer", "kind", "GFLOP", "weight", "kept");
  for (const layer& l : model.layers()) {
    std::printf("%5d  %-28s %-14s %12.4g %10s %10s%s\n", l.id.value, escaped(l.name).c_str(), escaped(l.kind).c_str(),
                l.forward_flops.value() / 1e9, readable(l.weight).c_str(), readable(l.activation).c_str(),
                l.trainable || l.weight.value() == 0 ? "" : "  frozen");
  }
}

void print(const cluster& c) {
  std::printf("%s: %zu devices, %zu network resources\n", escaped(c.name()).c_str(), c.size(), c.network().resources().size());
  std::printf("  %-12s %-20s %14s %12s %14s %14s\n", "device", "kind", "compute", "memory", "bandwidth", "power");
  for (const device& d : c.devices()) {
    std::printf("  %-12s %-20s %8.4g TFLOP/s %12s %9.4g GB/s %6.3g..%.3g W\n", escaped(d.name).c_str(), escaped(d.kind).c_str(),
                d.compute.value() / 1e12, readable(d.usable_memory()).c_str(), d.memory_bandwidth.value() / 1e9, d.power.idle.value(),
                d.power.active.value());
  }
  for (const resource& r : c.network().resources())
    std::printf("  %-33s %8.4g Mbit/s\n", escaped(r.name).c_str(), r.capacity.value() * 8 / 1e6);
}

}  // namespace

int show(const common_options& options, const show_options& o) {
  outputs files({{"--dot", o.dot}}, {o.what});
  const auto present = [&](const auto& noun, const auto& document_of) {
    if (!o.dot.empty()) files.put(o.dot, draw::dot(noun));
    if (options.json) {
      std::cout << document_of(noun);
    } else {
      print(noun);
    }
  };
  if (names_a_cluster(o.what)) {
    require_no_model_options(options, "a cluster");
    const cluster c = load_cluster(o.what);
    present(c, io::write_cluster);
  } else {
    common_options whole = options;
    whole.fuse.clear();
    planning_graph model = load_model(whole, o.what);
    if (!options.fuse.empty()) {
      const std::size_t before = model.size();
      model = fused_as_asked(options, std::move(model));
      if (!options.json) std::printf("fused by %s: %zu layers before, %zu after\n", options.fuse.c_str(), before, model.size());
    }
    present(model, [](const planning_graph& m) { return io::describe_model(m); });
  }
  files.commit();
  return 0;
}

int list(const common_options& options, const std::string& what) {
  require_no_model_options(options, "hetplan list");
  io::json document;
  for (const std::string kind : listed_kinds) {
    if (!what.empty() && what != kind) continue;
    if (!options.json) std::printf("%s\n", kind.c_str());
    document[kind] = io::json::array();
    const auto add = [&](const std::string& name, const std::string& about) {
      document[kind].push_back(name);
      if (!options.json) std::printf("  %-22s %s\n", name.c_str(), about.c_str());
    };
    const auto add_all = [&](const auto& known) {
      for (const auto& m : known) add(m.name, m.about);
    };
    if (kind == "models") {
      for (const auto& name : zoo::model_names()) {
        const planning_graph m = zoo::model(name, {});
        char about[80];
        std::snprintf(about, sizeof about, "%5zu layers  %8.4g M parameters  %8.4g GFLOP", m.size(), m.parameters() / 1e6,
                      m.forward_flops().value() / 1e9);
        add(std::string(name), about);
      }
    } else if (kind == "clusters") {
      for (const auto& name : zoo::cluster_names()) {
        std::string about;
        const cluster c = zoo::cluster(name);
        for (const device& d : c.devices()) about += (about.empty() ? "" : ", ") + d.name;
        add(std::string(name), about);
      }
    } else if (kind == "devices") {
      for (const auto& name : zoo::device_kinds()) {
        const device d = zoo::find_device(name).device;
        const auto& rates = d.compute_by_precision;
        const bool has_bf16 = rates.empty() || std::ranges::count(rates, precision::bf16, [](const auto& r) { return r.first; }) > 0;
        char about[80];
        std::snprintf(about, sizeof about, "%8.4g TFLOP/s in %s  %6.4g GB  %6.4g GB/s  %5.4g W",
                      d.compute_in(precision::bf16).value() / 1e12, has_bf16 ? "bf16" : "fp16", d.usable_memory().value() / 1e9,
                      d.memory_bandwidth.value() / 1e9, d.power.active.value());
        add(std::string(name), about);
      }
    } else if (kind == "rows") {
      add_all(known_rows());
    } else if (kind == "laws") {
      add_all(known_laws());
    } else if (kind == "orders") {
      add_all(known_orders());
    } else if (kind == "transfers") {
      add_all(known_transfers());
    } else if (kind == "systems") {
      for (const auto& system : recipes::serving_systems) add(std::string(system.name), std::string(system.about));
    } else if (kind == "fusions") {
      add_all(known_fusions());
    } else {
      for (const auto& name : kind == "planners" ? planner_names() : policy_names()) add(name, "");
    }
  }
  if (options.json) std::cout << io::json_text(document);
  return 0;
}

}  // namespace cli
