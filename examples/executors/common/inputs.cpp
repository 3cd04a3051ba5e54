// SPDX-License-Identifier: BSL-1.0
#include "inputs.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>
#include <utility>

#include <sched.h>

#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace executors {

std::optional<double> slowness_of(std::string_view kind) {
  if (kind == "core") return 1;
  if (!kind.starts_with("core/")) return std::nullopt;
  double s = 0;
  const auto [end, error] = std::from_chars(kind.data() + 5, kind.data() + kind.size(), s);
  return error == std::errc() && end == kind.data() + kind.size() && s >= 1 && s < 1e6 ? std::optional(s) : std::nullopt;
}

void require_known_kinds(const hetplan::cluster& c, const std::string& file) {
  for (const hetplan::device& d : c.devices()) {
    if (slowness_of(d.kind)) continue;
    throw hetplan::invalid_input(file + ": /devices/" + std::to_string(d.id.value) + "/kind: got \"" + d.kind +
                                 "\"; expected core or core/NUMBER >= 1");
  }
}

std::string_view to_string(slowing s) { return s == slowing::repeat ? "repeat" : "wait"; }

slowing choose_slowing(const std::string& asked, const hetplan::cluster& c, const std::string& file, unsigned cores) {
  if (asked == "wait") return slowing::wait;
  const auto is_whole = [](const hetplan::device& d) {
    const double n = slowness_of(d.kind).value_or(1);
    return n == std::floor(n);
  };
  const auto odd = std::find_if_not(c.devices().begin(), c.devices().end(), is_whole);
  if (odd == c.devices().end()) return asked == "repeat" || c.size() <= cores ? slowing::repeat : slowing::wait;
  if (asked.empty()) return slowing::wait;
  throw hetplan::invalid_input(file + ": /devices/" + std::to_string(odd->id.value) + "/kind: got \"" + odd->kind +
                               "\"; expected a whole number of times with --slow repeat");
}

std::vector<pace> paces_of(const hetplan::cluster& c, slowing how) {
  std::vector<pace> paces;
  for (const hetplan::device& d : c.devices()) {
    const double n = slowness_of(d.kind).value_or(1);
    paces.push_back(how == slowing::repeat ? pace{.times = static_cast<int>(n)} : pace{.wait = n});
  }
  return paces;
}

unsigned own_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return std::thread::hardware_concurrency();
  return static_cast<unsigned>(CPU_COUNT(&mine));
}

void require_cores(const hetplan::cluster& c, const hetplan::plan& p, const std::string& file, slowing how, unsigned cores) {
  double busy = 0;
  std::vector<char> seen(c.size(), 0);
  for (const hetplan::stage& s : p.stages) {
    for (const hetplan::assignment& a : s.devices) {
      if (std::exchange(seen[a.device.index()], 1) != 0) continue;
      busy += how == slowing::repeat ? 1 : 1 / slowness_of(c[a.device].kind).value_or(1);
    }
  }
  if (busy <= cores * (1 + 1e-9)) return;
  throw hetplan::invalid_input(file + ": /devices: the plan's devices keep " + hetplan::to_text(busy) + " cores busy; expected at most " +
                               std::to_string(cores) + ", those of this machine (slow them: \"kind\": \"core/4\", --slow wait)");
}

void require_layers(const hetplan::planning_graph& model, const neural_network& net, const std::string& file) {
  const hetplan::planning_graph expected = describe(net);
  const auto fail = [&](std::size_t layer, const std::string& got, const std::string& wanted) {
    throw hetplan::invalid_input(file + ": /layers/" + std::to_string(layer) + ": got " + got + "; expected " + wanted +
                                 " of the built-in network \"" + net.name + "\"");
  };
  const auto name = [](const hetplan::layer& l) { return "layer \"" + l.name + "\""; };
  for (std::size_t i = 0; i < std::max(model.size(), expected.size()); ++i) {
    const hetplan::layer_id l(i);
    if (i >= model.size()) fail(i, "nothing", name(expected[l]));
    if (i >= expected.size()) fail(i, name(model[l]), "no more than the " + std::to_string(expected.size()) + " layers");
    if (model[l].name != expected[l].name) fail(i, name(model[l]), name(expected[l]));
    const auto weight = [&](const hetplan::layer& x) {
      return name(x) + " with a weight of " + hetplan::to_text(x.weight.value()) + " bytes";
    };
    if (model[l].weight != expected[l].weight) fail(i, weight(model[l]), weight(expected[l]));
    const auto group = [](const hetplan::planning_graph& g, const hetplan::layer& x) {
      if (x.weight_group < 0) return std::string("no weight_group");
      return "weight_group \"" + g.weight_groups()[static_cast<std::size_t>(x.weight_group)] + "\"";
    };
    const std::string got = group(model, model[l]), wanted = group(expected, expected[l]);
    if (got != wanted) fail(i, name(model[l]) + " with " + got, wanted);
    const auto out = [](const hetplan::planning_graph& g, hetplan::layer_id x) {
      return std::vector(g.out_edges(x).begin(), g.out_edges(x).end());
    };
    if (out(model, l) != out(expected, l)) fail(i, name(model[l]) + " with other edges", "the edges");
  }
}

profile_inputs read_profile(const std::string& network, const std::string& cluster_file) {
  profile_inputs in{find_network(network), hetplan::io::read_cluster(hetplan::io::json_document::load(cluster_file))};
  require_known_kinds(in.nominal, cluster_file);
  return in;
}

run_inputs read_run(const std::string& model_file, const std::string& cluster_file, const std::string& plan_file,
                    const std::string& nominal_file) {
  using hetplan::io::json_document;
  hetplan::planning_graph model = hetplan::io::read_model(json_document::load(model_file));
  neural_network net = [&] {
    try {
      return find_network(model.name());
    } catch (const hetplan::invalid_input& e) {
      throw hetplan::invalid_input(model_file + ": /name: " + e.what());
    }
  }();
  require_layers(model, net, model_file);
  hetplan::cluster c = hetplan::io::read_cluster(json_document::load(cluster_file));
  hetplan::io::check_together(model, c, cluster_file, hetplan::workload{});
  hetplan::cluster nominal = nominal_file.empty() ? c : hetplan::io::read_cluster(json_document::load(nominal_file));
  if (c.size() != nominal.size()) {
    throw hetplan::invalid_input(nominal_file + ": /devices: got " + std::to_string(nominal.size()) + "; expected the " +
                                 std::to_string(c.size()) + " of " + cluster_file);
  }
  for (const hetplan::device& d : c.devices()) {
    if (nominal[d.id].name == d.name) continue;
    throw hetplan::invalid_input(nominal_file + ": /devices/" + std::to_string(d.id.value) + "/name: got \"" + nominal[d.id].name +
                                 "\"; expected \"" + d.name + "\" as in " + cluster_file);
  }
  hetplan::plan p = hetplan::io::read_plan(json_document::load(plan_file), model, c).plan;
  if (p.model != model.name()) {
    throw hetplan::invalid_input(plan_file + ": /model: got \"" + p.model + "\"; expected \"" + model.name() + "\", the network of " +
                                 model_file);
  }
  try {
    require_executable(p, c);
  } catch (const hetplan::invalid_input& e) {
    throw hetplan::invalid_input(plan_file + ": " + e.what());
  }
  return {std::move(net), std::move(model), std::move(c), std::move(nominal), std::move(p)};
}

prepared_run prepare(const run_inputs& in) {
  const hetplan::judgement j = hetplan::judge(in.plan, in.model, in.cluster, hetplan::profiled_or_roofline{});
  return {make_program(in.plan, in.net, in.model, in.cluster, in.nominal, j.graph), j.evaluation.latency.value()};
}

}  // namespace executors
