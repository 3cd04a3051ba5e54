// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/results_json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io {

HETPLAN_INLINE serving_sweep read_serving_sweep(const json_document& d, std::span<const std::string> systems) {
  const json_object o = open_document(d, serving_sweep_format, keys::serving_sweep);
  serving_sweep s;
  s.clouds = detail::read_names(o.at("clouds", "an array of clouds"), "a cloud file");
  s.services = detail::read_names(o.at("services", "an array of lists of services"), "a services file");
  s.requests = detail::read_names(o.at("requests", "an array of lists of requests"), "a requests file");
  if (const auto faults = o.find("faults")) s.faults = faults->name("a faults file");
  if (const auto list = o.find("cycles")) {
    for (const json_node n : list->elements("an array with at least one time", 1)) {
      const auto cycle = n.amount<seconds>(range::at_least_zero);
      if (std::ranges::find(s.cycles, cycle) != s.cycles.end()) n.fail("every cycle once");
      s.cycles.push_back(cycle);
    }
  }
  if (const auto list = o.find("systems")) {
    s.systems = detail::read_names(*list, "the name of a serving system");
    for (const json_node n : list->elements("")) {
      if (std::ranges::find(systems, n.text()) == systems.end()) n.fail("the name of a serving system", suggestion(n.text(), systems));
    }
  }
  if (const auto name = o.find("trace_service")) s.trace_service = name->name("the name of a service");
  if (const auto scale = o.find("time_scale")) s.time_scale = scale->number(range::above_zero);
  return s;
}

namespace detail {

HETPLAN_INLINE std::vector<std::string> read_names(const json_node& list, std::string_view expected) {
  std::vector<std::string> all;
  for (const json_node n : list.elements("an array with " + std::string(expected), 1)) {
    std::string name(n.name(expected));
    if (std::find(all.begin(), all.end(), name) != all.end()) n.fail_with("expected every name once, got " + in_quotes(name) + " again");
    all.push_back(std::move(name));
  }
  return all;
}

HETPLAN_INLINE sweep_job read_sweep_job(const json_node& n) {
  constexpr std::string_view expected = "the name of a job file, or a job with a name";
  if (n.is_text()) return {std::string(n.name(expected))};
  // "name" takes the place of a job file's "format".
  const key_list keys = keys_of<job>();
  std::vector<std::string_view> named(keys.begin(), keys.end());
  named.front() = "name";
  const json_object o(n, named, expected);
  return {std::string(o.at("name", "a name").name()), job_of(o)};
}

}  // namespace detail

HETPLAN_INLINE sweep read_sweep(const json_document& d, std::span<const std::string> planners) {
  const json_object o = open_document(d, sweep_format, keys::sweep);
  sweep s;
  s.models = detail::read_names(o.at("models", "an array of models"), "a model file or a built-in name");
  s.clusters = detail::read_names(o.at("clusters", "an array of clusters"), "a cluster file or a built-in name");
  for (const json_node n : o.at("jobs", "an array of jobs").elements("an array with at least one job", 1)) {
    sweep_job j = detail::read_sweep_job(n);
    const auto same = [&](const sweep_job& other) { return other.name == j.name; };
    if (std::any_of(s.jobs.begin(), s.jobs.end(), same)) n.fail_with("expected every name once, got " + in_quotes(j.name) + " again");
    s.jobs.push_back(std::move(j));
  }
  if (const auto list = o.find("latencies")) {
    for (const json_node n : list->elements("an array with at least one latency", 1)) {
      const auto latency = n.amount<seconds>(range::above_zero);
      if (std::find(s.latencies.begin(), s.latencies.end(), latency) != s.latencies.end()) n.fail("every latency once");
      s.latencies.push_back(latency);
    }
  }
  if (const auto list = o.find("planners")) {
    s.planners = detail::read_names(*list, "the name of a planner");
    for (const json_node n : list->elements("")) {
      if (std::find(planners.begin(), planners.end(), n.text()) == planners.end())
        n.fail("the name of a planner", suggestion(n.text(), planners));
    }
  }
  if (const auto tokens = o.find("tokens")) s.tokens = tokens->integer(1);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> dtypes{{{"fp32", "fp32"}, {"bf16", "bf16"}}};
  if (o.has("dtype")) s.dtype = o.one_of("dtype", dtypes);
  if (const auto weights = o.find("weights")) s.weights = weights->name("the name of a weight format");
  return s;
}

HETPLAN_INLINE std::string write_groups(const coarsen::device_groups& g, const cluster& c) {
  const auto names = [&](const std::vector<device_id>& devices) {
    json list = json::array();
    for (const device_id d : devices) list.push_back(c[d].name);
    return list;
  };
  json o;
  o["regions"] = json::array();
  for (const coarsen::device_region& r : g.regions) {
    json x;
    x["devices"] = names(r.devices);
    put(x, "distance", r.inner_s);
    x["classes"] = json::array();
    for (const auto& devices : r.classes) x["classes"].push_back(names(devices));
    o["regions"].push_back(std::move(x));
  }
  o["devices"] = json::array();
  for (const device& d : c.devices()) o["devices"].push_back(d.name);
  o["scores"] = json::array();
  for (const double score : g.scores) o["scores"].push_back(json_number(score));
  o["merges"] = json::array();
  for (std::size_t m = 0; m < g.merges.size(); ++m) {
    json x;
    x["nodes"] = {g.merges[m].left, g.merges[m].right};
    put(x, "distance", g.merges[m].height);
    x["inside"] = m < g.merges_inside();
    o["merges"].push_back(std::move(x));
  }
  o["distances"] = json::array();
  for (std::size_t a = 0; a < c.size(); ++a) {
    json row = json::array();
    for (std::size_t b = 0; b < c.size(); ++b) {
      const double d = g.distances(a, b);
      row.push_back(std::isfinite(d) ? json_number(d) : json());
    }
    o["distances"].push_back(std::move(row));
  }
  return json_text(o);
}

namespace detail {

/// Merges consecutive stretches that differ only in time, iterations and energy.
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
  for (std::size_t i = 0; i < h.plans.size(); ++i) o["plans"].push_back(plan_json(h.plans[i], model, c, h.prediction(i)));
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
  const auto times = [&](const char* what, const serve::latency_histogram& h) {
    if (h.count() == 0) return;
    json all;
    put(all, "mean", h.mean());
    for (const auto& [key, q] : {std::pair("p50", 0.5), {"p90", 0.9}, {"p99", 0.99}}) put(all, key, h.quantile(q));
    put(all, "largest", h.largest());
    o[what] = std::move(all);
  };
  times("latency", t.latency);
  times("ttft", t.ttft);
  times("time_between_tokens", t.time_between_tokens);
  if (t.ttft.count() > 0)
    o["broke"] = {{"latency", t.broke.latency}, {"ttft", t.broke.ttft}, {"time_between_tokens", t.broke.time_between_tokens}};
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

HETPLAN_INLINE void put_speeds(json& o, const evaluation& e) {
  if (e.tokens_per_second > 0) put(o, "tokens_per_second", e.tokens_per_second);
  if (e.prompt_tokens_per_second > 0) put(o, "prompt_tokens_per_second", e.prompt_tokens_per_second);
}

/// Adds by used device how memory divides and what limits it, in shares of each stretch of the run.
HETPLAN_INLINE void put_explained(json& o, const evaluation& e, const run_explanation& x, const cluster& c) {
  const auto by_used_device = [&](const auto& object_of) {
    json all = json::object();
    for (const device& d : c.devices()) {
      if (e.devices[d.id.index()].used) all[d.name] = object_of(d);
    }
    return all;
  };
  o["memory"] = by_used_device([&](const device& d) {
    json parts;
    for (const memory_part& m : parts_of(x.memory[d.id.index()])) put(parts, std::string(m.name), m.bytes);
    return parts;
  });
  o["limits"] = json::object();
  for (const run_stretch& r : x.stretches) {
    json& stretch = o["limits"][std::string(r.name)];
    put(stretch, "seconds", r.length_s());
    stretch["devices"] = by_used_device([&](const device& d) {
      json shares;
      for (const time_use u : time_uses) put(shares, std::string(to_string(u)), r.share(d.id, u));
      for (std::size_t t = 0; t < d.tiers.size(); ++t) {
        const double s = r.devices[d.id.index()].of_tier(t);
        if (s > 0) put(shares["by_tier"], d.tiers[t].name, s / r.length_s());
      }
      return shares;
    });
  }
}

}  // namespace detail

HETPLAN_INLINE std::string write_evaluation(const evaluation& e, const cluster& c, const run_explanation* explained) {
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
  detail::put_speeds(o, e);
  if (explained != nullptr) detail::put_explained(o, e, *explained, c);
  if (const auto broken = broken_limits(e, c); !broken.empty()) o["broken_limits"] = detail::write_broken_limits(broken, c);
  return json_text(o);
}

HETPLAN_INLINE std::string write_plan_result(const plan_result& r, const planning_graph& model, const cluster& c,
                                             const run_explanation* explained, const recipes::largest_found* largest) {
  json o;
  o["status"] = to_string(r.status.result);
  o["reason"] = r.status.reason;
  put_proof(o, r.status);
  o["plans"] = json::array();
  for (const ranked_plan& p : r.plans) o["plans"].push_back(detail::plan_json(p, model, c));
  o["candidates"] = r.candidates;
  put(o, "elapsed", r.elapsed);
  if (largest != nullptr) {
    json& found = o["largest"];
    found["of"] = to_string(largest->what);
    if (largest->value) found["value"] = *largest->value;
    found["bound"] = largest->bound;
    found["all_tried"] = largest->all_tried;
    if (const std::string limit = largest->limit(); !limit.empty()) found["limit"] = limit;
    found["tried"] = json::array();
    for (const recipes::tried_value& t : largest->tried) {
      json x;
      x["value"] = t.value;
      x["fits"] = t.fits;
      if (!t.fits) {
        x["proven"] = t.proven;
        x["reason"] = t.reason;
      }
      found["tried"].push_back(std::move(x));
    }
  }
  if (explained != nullptr && !r.plans.empty()) {
    const evaluation& e = r.plans.front().evaluation;
    json& run = o["run"];
    put(run, "latency", e.latency);
    if (e.ttft) put(run, "ttft", *e.ttft);
    if (e.time_between_tokens) put(run, "time_between_tokens", *e.time_between_tokens);
    detail::put_speeds(run, e);
    detail::put_explained(run, e, *explained, c);
  }
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
    if (r.best) {
      const evaluation& e = r.best->evaluation;
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
