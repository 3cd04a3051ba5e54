// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/plan_json.hpp>

#include <hetplan/plan/validate.hpp>

namespace HETPLAN_NAMESPACE::io {

HETPLAN_INLINE plan read_plan(const json_document& d, const planning_graph& model, const cluster& c) {
  detail::plan_reader reader(d, model, c);
  plan p = reader.read();
  if (const auto v = validate(p, model, c)) {
    throw invalid_input(escaped(d.file()) + ": " + escaped(reader.pointer_of(v->where)) + ": " + escaped(v->what));
  }
  return p;
}

namespace detail {

HETPLAN_INLINE json write_evaluation_by_device(const evaluation& e, const cluster& c, double (*number)(const device_evaluation&)) {
  json o = json::object();
  for (const device& d : c.devices()) {
    if (d.id.index() < e.devices.size() && e.devices[d.id.index()].used) put(o, d.name, number(e.devices[d.id.index()]));
  }
  return o;
}

HETPLAN_INLINE json write_energy(const evaluation& e, const cluster& c) {
  return write_evaluation_by_device(e, c, [](const device_evaluation& d) { return d.energy.value(); });
}

HETPLAN_INLINE json write_peak_memory(const evaluation& e, const cluster& c) {
  return write_evaluation_by_device(e, c, [](const device_evaluation& d) { return d.peak_memory.value(); });
}

HETPLAN_INLINE void put_bounds(json& o, const evaluation& e) {
  if (e.bound.value() > 0) {
    put(o, "bound", e.bound);
    put(o, "gap", e.gap);
  }
  put(o, "schedule_bound", e.schedule_bound);
  put(o, "schedule_gap", e.schedule_gap);
  if (e.contention_bound.value() > 0) put(o, "contention_bound", e.contention_bound);
  if (e.placement_bound.value() > 0) put(o, "placement_bound", e.placement_bound);
  if (e.time_between_tokens) put(o, "time_between_tokens", *e.time_between_tokens);
}

HETPLAN_INLINE json write_predicted(const evaluation& e, const cluster& c) {
  json o;
  put(o, "latency", e.latency);
  o["energy"] = write_energy(e, c);
  o["peak_memory"] = write_peak_memory(e, c);
  put_bounds(o, e);
  return o;
}

HETPLAN_INLINE json write_stage(const plan& p, const stage& s, const planning_graph& model, const cluster& c) {
  json o;
  o["name"] = s.name;
  if (s.microbatch_size > 0 && s.microbatch_size != p.microbatch_size) o["microbatch_size"] = s.microbatch_size;
  o["layers"] = json::array();
  for (const layer_id l : s.layers) o["layers"].push_back(model[l].name);
  if (!s.columns.empty()) {
    for (std::size_t r = 0; r < s.rows(); ++r) o["grid"]["rows"].push_back(s.row(r).samples);
    o["grid"]["columns"] = s.columns;
  }
  o["devices"] = json::array();
  for (const assignment& a : s.devices) {
    json x;
    x["name"] = c[a.device].name;
    if (s.columns.empty()) x["samples"] = a.samples;
    if (a.tensor_parallel != 1) x["tensor_parallel"] = a.tensor_parallel;
    o["devices"].push_back(std::move(x));
  }
  if (s.recompute) o["recompute"] = true;
  if (s.shard == sharding::state) o["shard_state"] = true;
  if (s.shard == sharding::zero2 || s.shard == sharding::fsdp) o["shard"] = s.shard == sharding::zero2 ? "zero2" : "fsdp";
  for (const auto& unit : s.units) {
    json list = json::array();
    for (const layer_id l : unit) list.push_back(model[l].name);
    o["units"].push_back(std::move(list));
  }
  if (!s.cuts.forward.empty()) o["cuts"]["forward"] = s.cuts.forward;
  if (!s.cuts.backward.empty()) o["cuts"]["backward"] = s.cuts.backward;
  return o;
}

HETPLAN_INLINE json write_schedule(const plan_schedule& s, const cluster& c) {
  json o;
  o["kind"] = to_string(s.kind);
  if (s.kind == schedule_kind::one_f_one_b && !s.warmup.empty()) o["warmup"] = s.warmup;
  if (s.kind == schedule_kind::explicit_orders) {
    o["orders"] = json::object();
    for (std::size_t d = 0; d < s.orders.size() && d < c.size(); ++d) {
      if (s.orders[d].empty()) continue;
      json& list = o["orders"][c.devices()[d].name] = json::array();
      for (const order_entry& e : s.orders[d]) {
        const char* what = e.what == phase::forward ? "F" : e.what == phase::backward_input ? "B" : "W";
        list.push_back(json::array({what, e.stage.value, e.microbatch}));
      }
    }
  }
  for (const transfer_rule& r : s.transfers) {
    json x;
    x["from"] = c[r.from].name;
    x["to"] = c[r.to].name;
    x["from_stage"] = r.from_stage.value;
    x["to_stage"] = r.to_stage.value;
    x["microbatch"] = r.microbatch;
    x["phase"] = to_string(r.kind);
    if (r.chunks != 1) {
      x["chunk"] = r.chunk;
      x["of"] = r.chunks;
    }
    put_unless(x, "release", r.release, seconds{});
    if (r.priority != 0) x["priority"] = r.priority;
    o["flows"].push_back(std::move(x));
  }
  return o;
}

HETPLAN_INLINE json plan_json(const plan& p, const planning_graph& model, const cluster& c) {
  json o;
  o["format"] = plan_format;
  o["model"] = p.model;
  o["cluster"] = p.cluster;
  o["planner"] = p.planner;
  o["mode"] = to_string(p.workload.mode);
  json& w = o["workload"];
  put(w, "optimizer_factor", p.workload.optimizer_factor);
  w["context"] = p.workload.context;
  w["tokens"] = p.workload.tokens;
  o["microbatch_size"] = p.microbatch_size;
  o["microbatches"] = p.microbatches;
  o["schedule"] = write_schedule(p.schedule, c);
  o["network"] = to_string(p.sharing_policy);
  if (p.transfers != transfer_mode::overlap) o["transfers"] = to_string(p.transfers);
  if (p.copies != transfer_copies::per_edge) o["copies"] = to_string(p.copies);
  if (p.parameter_server) o["sync"]["parameter_server"] = c[*p.parameter_server].name;
  const auto stages_of = [&](int pipeline) {
    json list = json::array();
    for (const stage& s : p.stages) {
      if (p.pipelines.empty() || s.pipeline == pipeline) list.push_back(write_stage(p, s, model, c));
    }
    return list;
  };
  if (p.pipelines.empty()) o["stages"] = stages_of(0);
  for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
    json x;
    x["samples"] = p.pipelines[i];
    x["stages"] = stages_of(static_cast<int>(i));
    o["pipelines"].push_back(std::move(x));
  }
  if (p.predicted) o["predicted"] = write_predicted(*p.predicted, c);
  return o;
}

}  // namespace detail

HETPLAN_INLINE std::string write_plan(const plan& p, const planning_graph& model, const cluster& c) {
  return json_text(detail::plan_json(p, model, c));
}

}  // namespace HETPLAN_NAMESPACE::io
