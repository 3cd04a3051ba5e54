// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One case of the oracle's files, {"model", "cluster", "plan", "expected"}: read with hetplan::io, judged and compared.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::test {

/// The largest relative deviation from what is expected, and where it is.
struct deviation {
  double largest = 0;
  std::string where = "nowhere";

  void compare(const std::string& name, double found, double expected) {
    const double off = found == expected ? 0 : std::abs(found - expected) / std::max({std::abs(found), std::abs(expected), 1e-300});
    if (off <= largest) return;
    largest = off;
    where = name + " = " + to_text(found) + ", expected " + to_text(expected);
  }
  void fail(const std::string& what) {
    largest = 1e300;
    where = what;
  }
};

template <lp_solver Lp>
deviation check_case(const nlohmann::json& from_oracle, const Lp& lp) {
  const nlohmann::json& given = from_oracle;
  const auto document = [&](const char* part) { return io::json_document::parse(given.at(part).dump(), part); };
  const planning_graph model = io::read_model(document("model"));
  const cluster c = io::read_cluster(document("cluster"));
  const plan p = io::read_plan(document("plan"), model, c).plan;
  const evaluation e = evaluate(p, model, c, profiled_or_roofline{}, judge_models{}, lp).evaluation;
  const nlohmann::json& x = given.at("expected");

  deviation d;
  d.compare("latency", e.latency.value(), x.at("latency").get<double>());
  const auto by_device = [&](const char* what, auto value) {
    if (!x.contains(what)) return;
    std::size_t used = 0;
    for (const device& dev : c.devices()) {
      const device_evaluation& mine = e.devices[dev.id.index()];
      const bool listed = x.at(what).contains(dev.name);
      if (mine.used != listed) d.fail(std::string(what) + " of " + dev.name + (listed ? " is missing" : " is not expected"));
      if (listed) d.compare(std::string(what) + " of " + dev.name, value(mine), x.at(what).at(dev.name).template get<double>());
      used += listed;
    }
    if (used != x.at(what).size()) d.fail(std::string(what) + " names an unknown device");
  };
  by_device("energy", [](const device_evaluation& v) { return v.energy.value(); });
  by_device("peak_memory", [](const device_evaluation& v) { return v.peak_memory.value(); });
  by_device("busy", [](const device_evaluation& v) { return v.busy.value(); });
  if (x.contains("bytes")) {
    for (std::size_t r = 0; r < e.resource_bytes.size(); ++r) {
      const std::string& name = c.network().resources()[r].name;
      d.compare("bytes of " + name, e.resource_bytes[r].value(), x.at("bytes").value(name, 0.0));
    }
  }
  if (e.time_between_tokens.has_value() != x.contains("time_between_tokens")) {
    d.fail("time between tokens is there in one of the two only");
  } else if (e.time_between_tokens) {
    d.compare("time between tokens", e.time_between_tokens->value(), x.at("time_between_tokens").get<double>());
  }
  if (e.gap < -1e-9) d.fail("beats the bound: gap " + to_text(e.gap));
  if (e.schedule_gap < -1e-9) d.fail("beats the bound of its schedule: gap " + to_text(e.schedule_gap));
  return d;
}

}  // namespace hetplan::test
