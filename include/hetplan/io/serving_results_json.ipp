// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/serving_results_json.hpp>

#include <utility>

#include <hetplan/core/status.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

namespace detail {

template <class Counts>
json outcome_counts(const Counts& count) {
  json o = json::object();
  for (std::size_t k = 0; k < serve::request_outcomes; ++k) {
    const auto outcome = static_cast<serve::request_outcome>(k);
    o[std::string(to_string(outcome))] = count(outcome);
  }
  return o;
}

HETPLAN_INLINE json service_json(const serve::service_totals& t, const std::string& name) {
  json o;
  o["name"] = name;
  o["requests"] = t.requests();
  o["outcomes"] = outcome_counts([&](serve::request_outcome x) { return t[x]; });
  put(o, "asked", t.asked);
  put(o, "credit", t.credit);
  put(o, "attainment", t.attainment());
  if (t.latency.count() > 0) {
    json latency;
    put(latency, "mean", t.latency.mean());
    for (const auto& [key, q] : {std::pair("p50", 0.5), {"p90", 0.9}, {"p99", 0.99}}) put(latency, key, t.latency.quantile(q));
    put(latency, "largest", t.latency.largest());
    o["latency"] = std::move(latency);
  }
  return o;
}

}  // namespace detail

HETPLAN_INLINE std::string write_history(const serve::service_history& h, const serve::edge_cloud& cloud,
                                         const std::vector<serve::service>& services) {
  json o;
  o["status"] = std::string(h.result.result == outcome::feasible ? "finished" : to_string(h.result.result));
  if (!h.result.reason.empty()) o["reason"] = h.result.reason;
  o["requests"] = h.requests();
  o["outcomes"] = detail::outcome_counts([&](serve::request_outcome x) { return h.count(x); });
  put(o, "credit", h.credit());
  put(o, "attainment", h.attainment());
  put(o, "duration", h.duration);
  put(o, "goodput", h.goodput_per_s());
  put(o, "mean_offloads", h.mean_offloads());
  o["offloads"] = h.offloads;
  o["publications"] = h.publications;
  o["changes"] = h.changes;
  for (std::size_t l = 0; l < services.size(); ++l) o["services"].push_back(detail::service_json(h.services[l], services[l].name));
  for (std::size_t s = 0; s < cloud.size(); ++s) {
    const auto& t = h.servers[s];
    json server;
    server["name"] = cloud.servers[s].name;
    server["entered"] = t.entered;
    server["passed_on"] = t.passed_on;
    server["ended"] = t.ended;
    put(server, "credit", t.credit);
    o["servers"].push_back(std::move(server));
  }
  return json_text(o);
}

HETPLAN_INLINE std::string write_sizing(const serve::sizing& s, double target) {
  const auto step = [](const serve::sizing_step& x) {
    json o;
    o["gpus_per_server"] = x.gpus_per_server;
    o["gpus"] = x.gpus;
    put(o, "attainment", x.attainment);
    return o;
  };
  json o;
  put(o, "target", target);
  o["status"] = std::string(to_string(s.result.result));
  if (!s.result.reason.empty()) o["reason"] = s.result.reason;
  o["best"] = step(s.best);
  o["tried"] = json::array();
  for (const auto& t : s.tried) o["tried"].push_back(step(t));
  return json_text(o);
}

}  // namespace hetplan::io
