// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/plan_json.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <hetplan/core/sorting.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::io::detail {

inline constexpr std::array<std::pair<std::string_view, schedule_kind>, 3> plan_schedules{
    {{"1f1b", schedule_kind::one_f_one_b}, {"gpipe", schedule_kind::gpipe}, {"explicit", schedule_kind::explicit_orders}}};

inline constexpr std::array<std::pair<std::string_view, sharing>, all_sharings.size()> sharings = [] {
  std::array<std::pair<std::string_view, sharing>, all_sharings.size()> named;
  for (std::size_t i = 0; i < named.size(); ++i) named[i] = {to_string(all_sharings[i]), all_sharings[i]};
  return named;
}();

inline constexpr std::array<std::pair<std::string_view, transfer_copies>, 2> copies{
    {{"per_edge", transfer_copies::per_edge}, {"per_device", transfer_copies::per_device}}};
inline constexpr std::array<std::pair<std::string_view, transfer_mode>, 2> transfer_modes{
    {{"overlap", transfer_mode::overlap}, {"block", transfer_mode::block}}};

inline constexpr std::array<std::pair<std::string_view, sharding>, 2> shards{{{"zero2", sharding::zero2}, {"fsdp", sharding::fsdp}}};

inline constexpr std::array<std::pair<std::string_view, transfer_kind>, 4> transfer_kinds{{{"forward", transfer_kind::forward},
                                                                                           {"backward", transfer_kind::backward},
                                                                                           {"sync", transfer_kind::sync},
                                                                                           {"token", transfer_kind::token}}};

inline constexpr std::array<std::pair<std::string_view, phase>, 3> order_phases{
    {{"F", phase::forward}, {"B", phase::backward_input}, {"W", phase::backward_weight}}};

HETPLAN_INLINE plan_reader::plan_reader(const json_document& d, const planning_graph& model, const cluster& c)
    : top_(open_document(d, plan_format, keys::plan)), model_(model), cluster_(c) {}

HETPLAN_INLINE plan_file plan_reader::read() {
  p_.model = top_.at("model", "the name of a model").text();
  p_.cluster = top_.at("cluster", "the name of a cluster").text();
  if (const auto planner = top_.find("planner")) p_.planner = planner->text();
  read_workload();
  p_.microbatch_size = top_.required_integer("microbatch_size", 1);
  p_.microbatches = top_.required_integer("microbatches", 1);
  for (const device& d : cluster_.devices()) devices_.emplace(d.name, d.id);
  read_stages_or_pipelines();
  for (std::size_t s = 0; s < p_.stages.size(); ++s) {
    for (const assignment& a : p_.stages[s].devices) stages_of_[a.device].push_back(stage_id(s));
  }
  p_.sharing_policy = top_.one_of("network", sharings, std::optional(sharing::fair_share));
  p_.transfers = top_.one_of("transfers", transfer_modes, std::optional(transfer_mode::overlap));
  p_.copies = top_.one_of("copies", copies, std::optional(transfer_copies::per_edge));
  if (const auto sync = top_.find("sync")) read_sync(*sync);
  if (const auto schedule = top_.find("schedule")) read_schedule(*schedule);
  if (const auto flows = top_.find("flows")) {
    if (flows_given_) flows->fail_with("expected flows once, here or in the schedule, got both");
    flows_beside_schedule_ = true;
    read_flows(*flows);
  }
  plan_file file;
  if (const auto predicted = top_.find("predicted")) file.predicted = read_predicted(*predicted);
  file.plan = std::move(p_);
  return file;
}

HETPLAN_INLINE std::string plan_reader::pointer_of(const std::string& where) const {
  constexpr std::string_view schedule = "/schedule";
  return flows_beside_schedule_ && where.starts_with("/schedule/flows") ? where.substr(schedule.size()) : where;
}

HETPLAN_INLINE void plan_reader::read_workload() {
  p_.workload.mode = top_.one_of("mode", modes);
  const auto n = top_.find("workload");
  if (!n) return;
  const json_object o(*n, keys::workload,
                      "an object with optimizer_factor, optimizer, context, tokens, prompt, prompt_chunk, chunks_in_flight");
  p_.workload.optimizer_factor = o.number("optimizer_factor", range::at_least_zero).value_or(p_.workload.optimizer_factor);
  if (const auto named = o.find("optimizer")) {
    if (o.has("optimizer_factor")) named->fail_with("expected optimizer or optimizer_factor, got both");
    p_.workload.optimizer = named->one_of(optimizers);
  }
  p_.workload.context = o.integer_or("context", 0, p_.workload.context);
  p_.workload.tokens = o.integer_or("tokens", p_.workload.mode == mode::generation ? 1 : 0, p_.workload.tokens);
  if (const auto prompt = o.find("prompt")) p_.workload.prompt = prompt->integer(0);
  p_.workload.prompt_chunk = o.integer_or("prompt_chunk", 1, p_.workload.prompt_chunk);
  p_.workload.chunks_in_flight = o.integer_or("chunks_in_flight", 1, p_.workload.chunks_in_flight);
}

HETPLAN_INLINE device_id plan_reader::find_device(const json_node& n) const {
  const auto it = devices_.find(n.text("the name of a device"));
  if (it != devices_.end()) return it->second;
  n.fail("the name of a device of cluster " + in_quotes(cluster_.name()), device_suggestion(n.text()));
}

HETPLAN_INLINE device_id plan_reader::find_device(const json_node& owner, std::string_view key) const {
  const auto it = devices_.find(key);
  if (it != devices_.end()) return it->second;
  owner.fail_with("expected the name of a device of cluster " + in_quotes(cluster_.name()) + " as key, got " + in_quotes(key) +
                  device_suggestion(key));
}

HETPLAN_INLINE std::string plan_reader::device_suggestion(std::string_view given) const {
  std::vector<std::string_view> known;
  for (const device& d : cluster_.devices()) known.push_back(d.name);
  return suggestion(given, known);
}

HETPLAN_INLINE void plan_reader::read_stages_or_pipelines() {
  const auto pipelines = top_.find("pipelines");
  if (pipelines && top_.has("stages")) pipelines->fail_with("expected either stages or pipelines, got both");
  if (!pipelines) {
    read_stages(top_.at("stages", "an array of stages"), 0);
    return;
  }
  for (const json_node n : pipelines->elements("at least one pipeline", 1)) {
    const json_object o(n, keys::pipeline, "a pipeline");
    const int index = static_cast<int>(p_.pipelines.size());
    p_.pipelines.push_back(o.required_integer<long long>("samples", 1));
    read_stages(o.at("stages", "an array of stages"), index);
  }
}

HETPLAN_INLINE void plan_reader::read_stages(const json_node& list, int pipeline) {
  std::size_t held = 0;
  for (const json_node n : list.elements("at least one stage", 1)) {
    read_stage(n, pipeline);
    held += p_.stages.back().layers.size();
  }
  if (held >= model_.size()) return;
  std::vector<bool> seen(model_.size(), false);
  for (const stage& s : p_.stages) {
    for (const layer_id l : s.layers) {
      if (s.pipeline == pipeline) seen[l.index()] = true;
    }
  }
  const auto missing = static_cast<std::size_t>(std::find(seen.begin(), seen.end(), false) - seen.begin());
  list.fail_with("expected every layer in a stage, got none with layer " + in_quotes(model_.layers()[missing].name));
}

HETPLAN_INLINE recomputation recomputation_in(const json_node& n) {
  if (n.is_text() && n.text() == "blocks") return recomputation::blocks;
  if (!n.is_boolean()) n.fail("true, false or \"blocks\"");
  return whole_stage_if(n.boolean());
}

HETPLAN_INLINE void put_recomputation(json& o, recomputation r) {
  if (r == recomputation::stage) o["recompute"] = true;
  if (r == recomputation::blocks) o["recompute"] = "blocks";
}

HETPLAN_INLINE void plan_reader::read_stage(const json_node& n, int pipeline) {
  const json_object o(n, keys::stage, "a stage");
  stage s{.name = "s" + std::to_string(p_.stages.size()), .layers = {}, .devices = {}, .microbatch_size = 0, .pipeline = pipeline};
  if (const auto name = o.find("name")) s.name = name->name();
  if (const auto size = o.find("microbatch_size")) s.microbatch_size = size->integer(1);
  s.layers = read_layers(o.at("layers", "an array of layer names"));
  read_devices(o, s);
  if (const auto recompute = o.find("recompute")) s.recompute = recomputation_in(*recompute);
  if (const auto shard = o.find("shard_state"); shard && shard->boolean()) s.shard = sharding::state;
  if (const auto shard = o.find("shard")) {
    if (s.shard == sharding::state) shard->fail_with("expected shard or shard_state, got both");
    s.shard = shard->one_of(shards);
  }
  if (const auto units = o.find("units")) {
    if (!o.has("shard")) units->fail_with("expected units beside shard only");
    for (const json_node unit : units->elements("at least one unit", 1)) s.units.push_back(read_layers(unit));
  }
  if (const auto cuts = o.find("cuts")) read_cuts(*cuts, s);
  if (const auto offload = o.find("offload")) s.offload = read_offload(*offload);
  p_.stages.push_back(std::move(s));
}

HETPLAN_INLINE std::vector<layer_id> plan_reader::read_layers(const json_node& list) const {
  std::vector<layer_id> layers;
  for (const json_node l : list.elements("at least one layer", 1)) {
    const std::string name(l.text("the name of a layer"));
    if (!model_.contains(name)) l.fail("the name of a layer of model " + in_quotes(model_.name()), layer_suggestion(name));
    layers.push_back(model_.find(name));
  }
  return layers;
}

HETPLAN_INLINE std::string plan_reader::layer_suggestion(std::string_view given) const {
  std::vector<std::string_view> known;
  for (const layer& each : model_.layers()) known.push_back(each.name);
  return suggestion(given, known);
}

HETPLAN_INLINE std::vector<offloaded_layer> plan_reader::read_offload(const json_node& n) const {
  std::vector<offloaded_layer> offload;
  for (const auto& [layer, tier] : n.members("an object from layer to tier")) {
    if (!model_.contains(layer))
      tier.fail_with("expected the name of a layer of model " + in_quotes(model_.name()) + " as key, got " + in_quotes(layer) +
                     layer_suggestion(layer));
    offload.push_back({model_.find(layer), std::string(tier.name("the name of a tier"))});
  }
  sort_by(offload, &offloaded_layer::layer);
  return offload;
}

/// In a grid, samples are given per row.
HETPLAN_INLINE void plan_reader::read_devices(const json_object& o, stage& s) const {
  const json_node devices = o.at("devices", "an array of devices");
  const auto grid = o.find("grid");
  std::vector<int> rows;
  if (grid) {
    const json_object g(*grid, keys::grid, "an object with rows and columns");
    for (const json_node r : g.at("rows", "an array of samples").elements("an array of integers >= 1, one for each row", 1))
      rows.push_back(r.integer(1));
    for (const json_node c : g.at("columns", "an array of weights").elements("an array of integers >= 1, one for each column", 1))
      s.columns.push_back(c.integer(1));
    if (const std::size_t all = rows.size() * s.columns.size(); devices.size() != all) {
      devices.fail_with("expected " + std::to_string(all) + " devices, row by row, for a grid of " + std::to_string(rows.size()) + " x " +
                        std::to_string(s.columns.size()) + ", got " + std::to_string(devices.size()));
    }
  }
  for (const json_node a : devices.elements("at least one device", 1)) {
    const json_object part(a, keys::assignment, "an object with name and samples");
    const int of_row = grid ? rows[s.devices.size() / s.columns.size()] : 0;
    if (grid && part.has("samples")) part.find("samples")->fail_with("expected no samples in a grid, whose rows have them");
    const int samples = grid ? of_row : part.required_integer("samples", 1);
    s.devices.push_back({find_device(part.at("name", "the name of a device")), samples, part.integer_or("tensor_parallel", 1, 1)});
  }
}

HETPLAN_INLINE void plan_reader::read_cuts(const json_node& n, stage& s) const {
  const json_object o(n, keys::cuts, "an object with forward and backward");
  const auto read = [&](std::string_view key, std::vector<long long>& to) {
    if (const auto list = o.find(key)) {
      for (const json_node c : list->elements("samples: 0, ..., all of them", 1)) to.push_back(c.integer<long long>(0));
    }
  };
  read("forward", s.cuts.forward);
  read("backward", s.cuts.backward);
  if (s.cuts.forward.empty()) n.fail_missing("forward", "samples: 0, ..., all of them");
  if (p_.workload.mode == mode::training && s.cuts.backward.empty()) n.fail_missing("backward", "samples: 0, ..., all of them");
}

HETPLAN_INLINE void plan_reader::read_sync(const json_node& n) {
  if (n.is_text() && n.text() == "ring") return;
  if (!n.is_object()) n.fail("\"ring\" or {\"parameter_server\": a device}");
  p_.parameter_server = find_device(json_object(n, keys::sync).at("parameter_server", "the name of a device"));
}

HETPLAN_INLINE void plan_reader::read_schedule(const json_node& n) {
  const json_object o(n, keys::schedule, "an object with kind");
  plan_schedule& s = p_.schedule;
  s.kind = o.one_of("kind", plan_schedules, std::optional(schedule_kind::one_f_one_b));
  if (const auto warmup = o.find("warmup")) {
    if (s.kind != schedule_kind::one_f_one_b)
      warmup->fail_with("expected warmup with kind \"1f1b\" only, got kind " + in_quotes(to_string(s.kind)));
    for (const json_node k : warmup->elements("an array of integers >= 1")) s.warmup.push_back(k.integer(1));
    // An empty list would mean the default.
    if (s.warmup.size() != p_.stages.size()) {
      warmup->fail_with("expected one entry per stage (" + std::to_string(p_.stages.size()) + "), got " + std::to_string(s.warmup.size()));
    }
  }
  const auto orders = o.find("orders");
  if (orders && s.kind != schedule_kind::explicit_orders) {
    orders->fail_with("expected orders with kind \"explicit\" only, got kind " + in_quotes(to_string(s.kind)));
  }
  if (s.kind == schedule_kind::explicit_orders) read_orders(o.at("orders", "an object from device to its order"));
  if (const auto flows = o.find("flows")) read_flows(*flows);
}

HETPLAN_INLINE void plan_reader::read_flows(const json_node& flows) {
  flows_given_ = true;
  for (const json_node f : flows.elements("an array of flows")) p_.schedule.transfers.push_back(read_flow(f));
}

HETPLAN_INLINE stage_id plan_reader::find_stage(const json_node& n) {
  if (!n.is_text()) {
    const int last = static_cast<int>(p_.stages.size()) - 1;
    return stage_id(n.integer(0, last));
  }
  if (stage_names_.empty()) {
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const auto [it, fresh] = stage_names_.emplace(p_.stages[s].name, stage_id(s));
      if (!fresh) it->second = stage_id();  // ambiguous names refer to no stage
    }
  }
  const auto it = stage_names_.find(std::string(n.text()));
  if (it == stage_names_.end()) {
    std::vector<std::string_view> known;
    for (const stage& s : p_.stages) known.push_back(s.name);
    n.fail("the index or name of a stage", suggestion(n.text(), known));
  }
  if (!it->second.valid()) n.fail("the index of a stage, or a name that only one has");
  return it->second;
}

HETPLAN_INLINE void plan_reader::read_orders(const json_node& n) {
  p_.schedule.orders.assign(cluster_.size(), {});
  for (const auto& [device, list] : n.members("an object from device to its order")) {
    auto& order = p_.schedule.orders[find_device(list, device).index()];
    for (const json_node e : list.elements("an array of [phase, stage, microbatch]")) {
      const auto parts = e.elements("[phase, stage, microbatch]", 3);
      if (e.size() != 3) e.fail("[phase, stage, microbatch]");
      auto part = parts.begin();
      const phase what = (*part).one_of(order_phases);
      const stage_id stage = find_stage(*++part);
      order.push_back({what, stage, (*++part).integer(0)});
    }
  }
}

HETPLAN_INLINE transfer_rule plan_reader::read_flow(const json_node& n) {
  const json_object o(n, keys::flow, "a flow");
  transfer_rule r;
  r.from = find_device(o.at("from", "the name of a device"));
  r.to = find_device(o.at("to", "the name of a device"));
  r.kind = o.one_of("phase", transfer_kinds);
  std::optional<stage_id> from = stage_or_only_one(o, "from_stage", r.from), to = stage_or_only_one(o, "to_stage", r.to);
  // A flow to or from a parameter server names one stage, that of the other device.
  if (r.kind == transfer_kind::sync && p_.parameter_server) {
    if (!o.has("from_stage") && r.from == *p_.parameter_server) from = to;
    if (!o.has("to_stage") && r.to == *p_.parameter_server) to = from;
  }
  if (!from) n.fail_missing("from_stage", which_stage(r.from));
  if (!to) n.fail_missing("to_stage", which_stage(r.to));
  r.from_stage = *from;
  r.to_stage = *to;
  // Reductions have no microbatch.
  r.microbatch = r.kind == transfer_kind::sync ? o.integer_or("microbatch", 0, 0) : o.required_integer("microbatch", 0);
  r.chunk = o.integer_or("chunk", 0, 0);
  r.chunks = o.integer_or("of", 1, 1);
  r.release = o.amount<seconds>("release", range::at_least_zero).value_or(seconds{});
  if (const auto priority = o.find("priority")) r.priority = priority->integer(std::numeric_limits<int>::min());
  return r;
}

HETPLAN_INLINE std::optional<stage_id> plan_reader::stage_or_only_one(const json_object& flow, std::string_view key, device_id d) {
  if (const auto given = flow.find(key)) return find_stage(*given);
  const auto it = stages_of_.find(d);
  return it != stages_of_.end() && it->second.size() == 1 ? std::optional(it->second.front()) : std::nullopt;
}

HETPLAN_INLINE std::string plan_reader::which_stage(device_id d) const {
  const auto it = stages_of_.find(d);
  return "a stage, because device " + in_quotes(cluster_[d].name) + " holds " +
         std::to_string(it == stages_of_.end() ? 0 : it->second.size()) + " of them";
}

HETPLAN_INLINE evaluation plan_reader::read_predicted(const json_node& n) const {
  const json_object o(n, keys::predicted, "an object of predicted numbers");
  evaluation e;
  e.latency = o.required_amount<seconds>("latency", range::at_least_zero);
  e.ttft = o.amount<seconds>("ttft", range::at_least_zero);
  e.time_between_tokens = o.amount<seconds>("time_between_tokens", range::at_least_zero);
  e.devices.resize(cluster_.size());
  const auto by_device = [&](std::string_view key, auto&& set) {
    const auto list = o.find(key);
    if (!list) return;
    for (const auto& [name, value] : list->members("an object from device to number")) {
      device_evaluation& d = e.devices[find_device(value, name).index()];
      d.used = true;
      set(d, value);
    }
  };
  by_device("energy", [](device_evaluation& d, const json_node& v) { d.energy = v.amount<joules>(range::at_least_zero); });
  by_device("peak_memory", [](device_evaluation& d, const json_node& v) { d.peak_memory = v.amount<bytes>(range::at_least_zero); });
  e.resource_bytes.resize(cluster_.network().resources().size());
  e.bound = o.amount<seconds>("bound", range::at_least_zero).value_or(seconds{});
  e.gap = o.number("gap", range::any).value_or(gap_to(e.latency, e.bound));
  e.schedule_bound = o.amount<seconds>("schedule_bound", range::at_least_zero).value_or(seconds{});
  e.schedule_gap = o.number("schedule_gap", range::any).value_or(gap_to(e.latency, e.schedule_bound));
  e.contention_bound = o.amount<seconds>("contention_bound", range::at_least_zero).value_or(seconds{});
  e.placement_bound = o.amount<seconds>("placement_bound", range::at_least_zero).value_or(seconds{});
  return e;
}

}  // namespace hetplan::io::detail

namespace hetplan::io {

HETPLAN_INLINE plan_file read_plan(const json_document& d, const planning_graph& model, const cluster& c) {
  detail::plan_reader reader(d, model, c);
  plan_file file = reader.read();
  if (const auto v = validate(file.plan, model, c)) {
    throw invalid_input(escaped(d.file()) + ": " + escaped(reader.pointer_of(v->where)) + ": " + escaped(v->what));
  }
  return file;
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
  if (e.ttft) put(o, "ttft", *e.ttft);
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
  put_recomputation(o, s.recompute);
  if (s.shard == sharding::state) o["shard_state"] = true;
  if (s.shard == sharding::zero2 || s.shard == sharding::fsdp) o["shard"] = s.shard == sharding::zero2 ? "zero2" : "fsdp";
  for (const auto& unit : s.units) {
    json list = json::array();
    for (const layer_id l : unit) list.push_back(model[l].name);
    o["units"].push_back(std::move(list));
  }
  if (!s.cuts.forward.empty()) o["cuts"]["forward"] = s.cuts.forward;
  if (!s.cuts.backward.empty()) o["cuts"]["backward"] = s.cuts.backward;
  for (const auto& [l, tier] : s.offload) o["offload"][model[l].name] = tier;
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

HETPLAN_INLINE json plan_json(const plan& p, const planning_graph& model, const cluster& c, const evaluation* predicted) {
  json o;
  o["format"] = plan_format;
  o["model"] = p.model;
  o["cluster"] = p.cluster;
  o["planner"] = p.planner;
  o["mode"] = to_string(p.workload.mode);
  json& w = o["workload"];
  if (p.workload.optimizer) w["optimizer"] = to_string(*p.workload.optimizer);
  else put(w, "optimizer_factor", p.workload.optimizer_factor);
  w["context"] = p.workload.context;
  w["tokens"] = p.workload.tokens;
  if (p.workload.prompt) w["prompt"] = *p.workload.prompt;
  if (p.workload.prompt_chunk > 0) w["prompt_chunk"] = p.workload.prompt_chunk;
  if (p.workload.chunks_in_flight > 0) w["chunks_in_flight"] = p.workload.chunks_in_flight;
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
  if (predicted != nullptr) o["predicted"] = write_predicted(*predicted, c);
  return o;
}

HETPLAN_INLINE json plan_json(const ranked_plan& r, const planning_graph& model, const cluster& c) {
  return plan_json(r.plan, model, c, &r.evaluation);
}

}  // namespace detail

HETPLAN_INLINE std::string write_plan(const plan& p, const planning_graph& model, const cluster& c) {
  return json_text(detail::plan_json(p, model, c));
}

HETPLAN_INLINE std::string write_plan(const ranked_plan& r, const planning_graph& model, const cluster& c) {
  return json_text(detail::plan_json(r, model, c));
}

}  // namespace hetplan::io
