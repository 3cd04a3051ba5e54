// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/adapt_results_json.hpp>

#include <algorithm>
#include <vector>

#include <hetplan/io/plan_json.hpp>

namespace hetplan::io {

namespace detail {

/// Stretches that follow one another and differ in time, iterations and energy only, as one.
[[nodiscard]] HETPLAN_INLINE std::vector<adapt::stretch> merged_stretches(const std::vector<adapt::stretch>& all) {
  std::vector<adapt::stretch> few;
  for (const adapt::stretch& s : all) {
    const bool alike = !few.empty() && few.back().what == s.what && few.back().plan == s.plan && few.back().response_s == s.response_s &&
                       few.back().violates == s.violates && few.back().end_s == s.start_s;
    if (!alike) {
      few.push_back(s);
      continue;
    }
    few.back().end_s = s.end_s;
    few.back().iterations += s.iterations;
    few.back().energy_J += s.energy_J;
  }
  return few;
}

HETPLAN_INLINE json adoption_json(const adapt::adoption& a) {
  json o;
  put(o, "caused", a.caused_s);
  put(o, "decided", a.decided_s);
  put(o, "done", a.done_s);
  o["step"] = to_string(a.reached);
  o["reason"] = a.reason;
  put(o, "stall", a.stall_s);
  put(o, "bytes", a.moved_bytes);
  put(o, "energy", a.moved_J);
  o["from"] = a.from;
  o["plan"] = a.to;
  return o;
}

HETPLAN_INLINE json policy_json(const policy_history& row, const planning_graph& model, const cluster& c,
                                const adapt_results_options& options) {
  const adapt::history& h = row.history;
  json o;
  o["policy"] = row.policy;
  o["status"] = to_string(h.status.result);
  o["reason"] = h.status.reason;
  put_proof(o, h.status);
  o["iterations"] = h.iterations;
  o["violations"] = h.violations;
  put(o, "stall", h.stall_s);
  put(o, "energy", h.energy_J);
  o["switches"] = h.switches;
  put(o, "bytes_moved", h.moved_bytes);
  put(o, "reaction", h.reaction_s);
  if (h.finished_s) put(o, "finished", *h.finished_s);
  o["missed_deadline"] = h.missed_deadline;
  o["lost"] = h.lost;
  o["cut_off"] = h.cut_off;
  o["device_energy"] = json::object();
  for (std::size_t d = 0; d < std::min(h.device_energy_J.size(), c.size()); ++d)
    put(o["device_energy"], c.devices()[d].name, h.device_energy_J[d]);
  o["plans"] = json::array();
  for (const plan& p : h.plans) o["plans"].push_back(plan_json(p, model, c));
  o["adoptions"] = json::array();
  for (const adapt::adoption& a : h.adoptions) o["adoptions"].push_back(adoption_json(a));
  o["stretches"] = json::array();
  const std::vector<adapt::stretch> stretches = merged_stretches(h.stretches);
  if (stretches.size() > options.max_stretches) {
    o["stretches_left_out"] = stretches.size();
    return o;
  }
  for (const adapt::stretch& s : stretches) {
    o["stretches"].push_back(json::array({to_string(s.what), json_number(s.start_s), json_number(s.end_s), s.plan, s.iterations,
                                          json_number(s.response_s), json_number(s.energy_J), s.violates}));
  }
  return o;
}

}  // namespace detail

HETPLAN_INLINE std::string write_histories(std::span<const policy_history> rows, const planning_graph& model, const cluster& c,
                                           const adapt_results_options& options) {
  json o;
  o["policies"] = json::array();
  for (const policy_history& r : rows) o["policies"].push_back(detail::policy_json(r, model, c, options));
  return json_text(o);
}

}  // namespace hetplan::io
