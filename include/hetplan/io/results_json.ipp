// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/results_json.hpp>

#include <hetplan/io/plan_json.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io {

namespace detail {

HETPLAN_INLINE json write_broken_limits(const std::vector<broken_limit>& limits, const cluster& c) {
  json list = json::array();
  for (const broken_limit& b : limits) {
    json x;
    x["device"] = c[b.device].name;
    x["kind"] = b.kind == limit_kind::memory ? "memory" : b.kind == limit_kind::energy ? "energy" : "busy_share";
    put(x, "needs", b.used);
    put(x, "may_use", b.allowed);
    list.push_back(std::move(x));
  }
  return list;
}

}  // namespace detail

HETPLAN_INLINE std::string write_evaluation(const evaluation& e, const cluster& c) {
  json o;
  put(o, "latency", e.latency);
  o["energy"] = detail::write_energy(e, c);
  o["peak_memory"] = detail::write_peak_memory(e, c);
  o["busy"] = detail::write_evaluation_by_device(e, c, [](const device_evaluation& d) { return d.busy.value(); });
  o["span"] = detail::write_evaluation_by_device(e, c, [](const device_evaluation& d) { return d.span.value(); });
  put(o, "period", e.period());
  o["bytes"] = json::object();
  const auto resources = c.network().resources();
  for (std::size_t r = 0; r < resources.size(); ++r) {
    put(o["bytes"], resources[r].name, r < e.resource_bytes.size() ? e.resource_bytes[r].value() : 0);
  }
  detail::put_bounds(o, e);
  if (const auto broken = broken_limits(e, c); !broken.empty()) o["broken_limits"] = detail::write_broken_limits(broken, c);
  return json_text(o);
}

HETPLAN_INLINE std::string write_plan_result(const plan_result& r, const planning_graph& model, const cluster& c) {
  json o;
  o["status"] = to_string(r.status.result);
  o["reason"] = r.status.reason;
  put_proof(o, r.status);
  o["plans"] = json::array();
  for (const plan& p : r.plans) o["plans"].push_back(detail::plan_json(p, model, c));
  o["candidates"] = r.candidates;
  put(o, "elapsed", r.elapsed);
  return json_text(o);
}

HETPLAN_INLINE std::string write_comparison(std::span<const comparison_row> rows, const planning_graph& model, const cluster& c) {
  json o;
  o["rows"] = json::array();
  for (const comparison_row& r : rows) {
    json x;
    x["planner"] = r.planner;
    const bool memory = !r.best && r.status.result != outcome::stopped && r.broken == limit_kind::memory;
    x["status"] = memory ? "out_of_memory" : to_string(r.status.result);
    x["reason"] = r.status.reason;
    put_proof(x, r.status);
    if (r.best && r.best->predicted) {
      const evaluation& e = *r.best->predicted;
      put(x, "latency", e.latency);
      put(x, "energy", e.energy());
      put(x, "peak_memory", e.peak_memory());
      put(x, "bound", e.bound);
      put(x, "gap", e.gap);
    }
    put(x, "elapsed", r.elapsed);
    if (r.best) x["plan"] = detail::plan_json(*r.best, model, c);
    o["rows"].push_back(std::move(x));
  }
  return json_text(o);
}

}  // namespace hetplan::io
