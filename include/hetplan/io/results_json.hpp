// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `simulate`, `plan` and `compare` print with --json.

#include <optional>
#include <span>
#include <string>

#include <hetplan/io/plan_json.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::io {

/// `simulate --json`: devices that the plan leaves alone are left out, resources are all listed.
[[nodiscard]] inline json write_evaluation(const evaluation& e, const cluster& c) {
  json o;
  put(o, "latency", e.latency);
  o["energy"] = detail::write_energy(e, c);
  o["peak_memory"] = detail::write_peak_memory(e, c);
  o["busy"] = detail::write_evaluation_by_device(e, c, [](const device_evaluation& d) { return d.busy.value(); });
  o["bytes"] = json::object();
  const auto resources = c.network().resources();
  for (std::size_t r = 0; r < resources.size(); ++r) {
    put(o["bytes"], resources[r].name, r < e.resource_bytes.size() ? e.resource_bytes[r].value() : 0);
  }
  detail::put_bounds(o, e);
  return o;
}

/// `plan --json`.
[[nodiscard]] inline json write_plan_result(const plan_result& r, const planning_graph& model, const cluster& c) {
  json o;
  o["status"] = to_string(r.status.result);
  o["reason"] = r.status.reason;
  o["plans"] = json::array();
  for (const plan& p : r.plans) o["plans"].push_back(write_plan(p, model, c));
  o["candidates"] = r.candidates;
  put(o, "elapsed", r.elapsed);
  return o;
}

/// One planner's row of `compare`.
struct comparison_row {
  std::string planner;
  std::string status = "feasible";            ///< feasible, infeasible or out_of_memory
  std::string reason = "";
  std::optional<hetplan::evaluation> evaluation = {};  ///< of the best plan, or of the one that runs out of memory
  seconds elapsed = {};
  std::optional<hetplan::plan> plan = {};
};

/// `compare --json`; what a row does not have is left out.
[[nodiscard]] inline json write_comparison(std::span<const comparison_row> rows, const planning_graph& model, const cluster& c) {
  json o;
  o["rows"] = json::array();
  for (const comparison_row& r : rows) {
    json x;
    x["planner"] = r.planner;
    x["status"] = r.status;
    x["reason"] = r.reason;
    if (r.evaluation) {
      put(x, "latency", r.evaluation->latency);
      put(x, "energy", r.evaluation->energy());
      put(x, "peak_memory", r.evaluation->peak_memory());
      put(x, "bound", r.evaluation->bound);
      put(x, "gap", r.evaluation->gap);
    }
    put(x, "elapsed", r.elapsed);
    if (r.plan) x["plan"] = write_plan(*r.plan, model, c);
    o["rows"].push_back(std::move(x));
  }
  return o;
}

}  // namespace hetplan::io
