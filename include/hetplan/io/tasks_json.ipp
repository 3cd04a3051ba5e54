// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/tasks_json.hpp>

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::io {

namespace detail {

template <class Range, class Write>
[[nodiscard]] json json_list(const Range& all, Write&& write) {
  json list = json::array();
  for (const auto& each : all) list.push_back(write(each));
  return list;
}

/// Predecessors of tasks, and ends of transfers. The graph has successors, executors need predecessors.
struct task_neighbours {
  static constexpr tasks::node_id none = std::numeric_limits<tasks::node_id>::max();
  struct ends {
    tasks::node_id producer = none;  ///< a task; chunks have the ends of the transfer that they belong to
    tasks::node_id consumer = none;
    int chunks = 1;
  };
  std::vector<std::vector<tasks::node_id>> needs;  ///< by task: tasks of the same device whose results it takes
  std::vector<ends> transfers;

  explicit task_neighbours(const tasks::task_graph& g) : needs(g.computes.size()), transfers(g.transfers.size()) {
    const auto at = [&](tasks::node_id n) -> ends& { return transfers[n - g.computes.size()]; };
    for (tasks::node_id n = 0; n < g.size(); ++n) {
      for (const tasks::node_id next : g.successors_of(n)) {
        if (g.is_compute(n) && g.is_compute(next)) needs[next].push_back(n);
        if (g.is_compute(n) && g.is_transfer(next)) at(next).producer = n;
        if (g.is_transfer(n) && g.is_compute(next)) at(n).consumer = next;
      }
    }
    // Chunks form a chain: the first has the producer, the last the consumer.
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      transfers[t].chunks = g.transfers[t].chunk + 1;
      if (g.transfers[t].chunk > 0) transfers[t].producer = transfers[t - 1].producer;
    }
    for (std::size_t t = transfers.size(); t-- > 1;) {
      if (g.transfers[t].chunk == 0) continue;
      transfers[t - 1].consumer = transfers[t].consumer;
      transfers[t - 1].chunks = transfers[t].chunks;
    }
  }
};

class tasks_writer {
 public:
  tasks_writer(const plan& p, const planning_graph& model, const cluster& c, const judgement& j)
      : plan_(p), model_(model), cluster_(c), graph_(j.graph), trace_(j.trace), stages_(make_stage_graph(p, model)), neighbours_(j.graph) {}

  [[nodiscard]] json document() const {
    json o;
    o["format"] = tasks_format;
    o["model"] = plan_.model;
    o["cluster"] = plan_.cluster;
    o["planner"] = plan_.planner;
    o["mode"] = to_string(plan_.workload.mode);
    o["batch"] = plan_.batch();
    o["network"] = to_string(plan_.sharing_policy);
    if (plan_.parameter_server) o["parameter_server"] = name(*plan_.parameter_server);
    o["devices"] = json_list(cluster_.devices(), [&](const device& d) {
      return json{{"name", d.name}, {"kind", d.kind}, {"order", graph_.device_order[d.id.index()]}};
    });
    o["resources"] = json_list(cluster_.network().resources(), [](const resource& r) {
      return json{{"name", r.name}, {"capacity", json_number(r.capacity.value())}};
    });
    o["routes"] = routes();
    o["stages"] = json::array();
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) o["stages"].push_back(stage_json(stage_id(s)));
    o["tasks"] = json::array();
    for (std::size_t t = 0; t < graph_.computes.size(); ++t) o["tasks"].push_back(task_json(t));
    o["transfers"] = json::array();
    for (std::size_t t = 0; t < graph_.transfers.size(); ++t) o["transfers"].push_back(transfer_json(t));
    o["reductions"] = json::array();
    if (plan_.workload.mode == mode::training) {
      o["reductions"] = json_list(reductions_of(plan_, model_), [&](const reduction& r) { return reduction_json(r); });
    }
    const auto when = [](const interval& i) { return json::array({json_number(i.start_s), json_number(i.end_s)}); };
    json& predicted = o["predicted"];
    predicted["latency"] = json_number(trace_.latency.value());
    predicted["tasks"] = json_list(trace_.computes, when);
    predicted["transfers"] = json_list(trace_.transfers, when);
    return o;
  }

 private:
  [[nodiscard]] const std::string& name(device_id d) const { return cluster_[d].name; }
  [[nodiscard]] json layer_names(const std::vector<layer_id>& layers) const {
    return json_list(layers, [&](layer_id l) { return model_[l].name; });
  }

  [[nodiscard]] json routes() const {
    json all = json_list(graph_.routes, [&](const route& r) {
      return json{{"from", ""},
                  {"to", ""},
                  {"latency", json_number(r.latency.value())},
                  {"via", json_list(r.via, [&](const resource_use& u) {
                     return json{{"resource", cluster_.network()[u.resource].name}, {"weight", json_number(u.weight)}};
                   })}};
    });
    for (const tasks::transfer& t : graph_.transfers) {
      all[t.route]["from"] = name(t.from);
      all[t.route]["to"] = name(t.to);
    }
    return all;
  }

  [[nodiscard]] json stage_json(stage_id id) const {
    const stage& s = plan_[id];
    json o{{"name", s.name},
           {"layers", layer_names(s.layers)},
           {"devices", json_list(s.devices, [&](const assignment& a) {
              return json{{"name", name(a.device)}, {"samples", a.samples}, {"tensor_parallel", a.tensor_parallel}};
            })}};
    o["microbatch_size"] = stages_[id].microbatch_size;
    o["microbatches"] = stages_[id].microbatches;
    if (plan_.pipeline_count() > 1) o["pipeline"] = s.pipeline;
    detail::put_recomputation(o, s.recompute);
    if (s.shard == sharding::state) o["shard_state"] = true;
    return o;
  }

  [[nodiscard]] json task_json(std::size_t n) const {
    const tasks::compute_task& t = graph_.computes[n];
    const char* letter = t.what == phase::forward           ? "F"
                         : t.what == phase::backward_input  ? "B"
                         : t.what == phase::backward_weight ? "W"
                                                            : "U";
    json o{{"device", name(t.device)}, {"phase", letter}, {"stage", t.stage.value}, {"microbatch", t.microbatch}, {"step", t.pass}};
    o["samples"] = {t.first_sample, t.last_sample};
    o["seconds"] = json_number(t.duration_s);
    o["needs"] = neighbours_.needs[n];
    return o;
  }

  [[nodiscard]] json transfer_json(std::size_t n) const {
    const tasks::transfer& t = graph_.transfers[n];
    const task_neighbours::ends& ends = neighbours_.transfers[n];
    json o{{"kind", to_string(t.kind)},    {"from", name(t.from)},       {"to", name(t.to)}, {"from_stage", t.from_stage.value},
           {"to_stage", t.to_stage.value}, {"microbatch", t.microbatch}, {"step", t.pass}};
    o["samples"] = {t.first_sample, t.last_sample};
    o["bytes"] = json_number(t.volume_bytes);
    o["chunk"] = t.chunk;
    o["of"] = ends.chunks;
    o["release"] = json_number(t.release_s);
    o["priority"] = t.priority;
    if (ends.producer != task_neighbours::none) o["producer"] = ends.producer;
    if (ends.consumer != task_neighbours::none) o["consumer"] = ends.consumer;
    return o;
  }

  [[nodiscard]] json reduction_json(const reduction& r) const {
    json o{{"devices", json_list(r.members, [&](const reduction::member& m) { return name(m.device); })},
           {"stages", json_list(r.members, [](const reduction::member& m) { return m.stage.value; })},
           {"holders", json_list(r.holders, [](stage_id s) { return s.value; })}};
    o["layers"] = layer_names(r.layers);
    o["bytes"] = json_number(r.bytes);
    return o;
  }

  const plan& plan_;
  const planning_graph& model_;
  const cluster& cluster_;
  const tasks::task_graph& graph_;
  const trace& trace_;
  stage_graph stages_;
  task_neighbours neighbours_;
};

}  // namespace detail

HETPLAN_INLINE void require_tasks_file(const plan& p, const planning_graph& model) {
  require_plain_stages(p, "export to tasks", true);
  for (const stage& s : p.stages) {
    if (!s.offload.empty())
      throw invalid_input("export to tasks: stage \"" + s.name + "\" has weights in tiers; expected weights in the devices' memory");
    if (s.cuts.forward == s.cuts.backward || p.workload.mode != mode::training) continue;
    throw invalid_input("export to tasks: stage \"" + s.name +
                        "\" has backward passes of other samples than its forward passes; expected the same samples");
  }
  if (p.transfers == transfer_mode::block) {
    throw invalid_input(
        "export to tasks: plan: /transfers: got \"block\"; a transfer of a tasks file runs beside the work, expected \"overlap\"");
  }
  const expansion_size size = size_of_expansion(p, model, make_stage_graph(p, model));
  if (size.total() <= max_tasks_file) return;
  throw invalid_input("export to tasks: plan: /microbatches: expected at most " + to_text(max_tasks_file) + " tasks and transfers, got " +
                      to_text(size.tasks) + " tasks and " + to_text(size.transfers) + " transfers");
}

HETPLAN_INLINE std::string write_tasks(const plan& p, const planning_graph& model, const cluster& c, const judgement& j) {
  require_tasks_file(p, model);
  return json_text(detail::tasks_writer(p, model, c, j).document());
}

}  // namespace hetplan::io
