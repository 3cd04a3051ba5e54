// SPDX-License-Identifier: BSL-1.0
#include "program.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <range/v3/action/sort.hpp>
#include <range/v3/action/unique.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>

namespace executors {

std::size_t program::add_flow(const hetplan::cluster& nominal, hetplan::device_id from, hetplan::device_id to, double bytes, int priority) {
  const hetplan::route* way = nominal.network().find(from, to);
  if (way == nullptr) {
    throw hetplan::invalid_input("cluster \"" + nominal.name() + "\": no route from \"" + nominal[from].name + "\" to \"" +
                                 nominal[to].name + "\"; expected the one that the plan's transfers take");
  }
  if (policy != hetplan::sharing::priority) priority = 0;
  flows.push_back({.from = from, .to = to, .bytes = bytes, .latency_s = way->latency.value(), .priority = priority});
  std::vector<std::size_t> held;
  if (policy == hetplan::sharing::exclusive) held = {from.index(), tasks.size() + to.index()};
  if (policy == hetplan::sharing::per_link) {
    for (const hetplan::resource_use& u : way->via) held.push_back(u.resource.index());
  }
  rules.push_back({way->via, priority, std::move(held), rules.size()});
  return flows.size() - 1;
}

std::size_t program::slots() const {
  if (policy == hetplan::sharing::exclusive) return 2 * tasks.size();
  return policy == hetplan::sharing::per_link ? resources.size() : 0;
}

program idle_program(const hetplan::cluster& nominal) {
  program idle;
  idle.resources.assign(nominal.network().resources().begin(), nominal.network().resources().end());
  idle.tasks.resize(nominal.size());
  return idle;
}

void require_executable(const hetplan::plan& p, const hetplan::cluster& c) {
  const auto refuse = [&](const std::string& where, const std::string& got, const std::string& expected) {
    throw hetplan::invalid_input("plan: " + where + ": got " + got + "; the executors run " + expected);
  };
  if (p.workload.mode != hetplan::mode::training) refuse("/mode", "\"" + std::string(to_string(p.workload.mode)) + "\"", "training");
  if (p.pipeline_count() > 1) refuse("/pipelines", std::to_string(p.pipeline_count()) + " pipelines", "one pipeline");
  if (p.parameter_server) refuse("/sync/parameter_server", "\"" + c[*p.parameter_server].name + "\"", "ring reductions");
  if (p.sharing_policy == hetplan::sharing::unlimited) refuse("/network", "\"unlimited\"", "transfers that share what there is");
  if (p.transfers != hetplan::transfer_mode::overlap)
    refuse("/transfers", "\"" + std::string(to_string(p.transfers)) + "\"", "transfers that overlap computing");
  hetplan::require_plain_stages(p, "plan", true);
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    if (p.stages[s].cuts.forward != p.stages[s].cuts.backward) {
      refuse("/stages/" + std::to_string(s) + "/cuts", "backward passes of other samples than the forward passes",
             "stages whose backward passes are those of the forward");
    }
    if (!p.stages[s].offload.empty()) {
      refuse("/stages/" + std::to_string(s) + "/offload", "weights in tiers", "stages whose weights lie in the devices' memory");
    }
    if (p.stages[s].recompute == hetplan::recomputation::blocks) {
      refuse("/stages/" + std::to_string(s) + "/recompute", "\"blocks\"", "stages that keep activations or recompute as a whole");
    }
    if (p.stages[s].state_shards() > 1) {
      refuse("/stages/" + std::to_string(s) + "/shard_state", "true", "stages whose devices each hold the whole optimizer's state");
    }
    for (const hetplan::assignment& a : p.stages[s].devices) {
      if (a.tensor_parallel > 1) {
        refuse("/stages/" + std::to_string(s), "tensor_parallel " + std::to_string(a.tensor_parallel) + " on \"" + c[a.device].name + "\"",
               "tensor_parallel 1");
      }
    }
  }
}

namespace {

class program_maker {
 public:
  program_maker(const hetplan::plan& p, const neural_network& net, const hetplan::planning_graph& model, const hetplan::cluster& nominal,
                const hetplan::tasks::task_graph& graph)
      : p_(p), net_(net), nominal_(nominal), graph_(graph), out_(idle_program(nominal)) {
    out_.batch = static_cast<long>(p.batch());
    out_.policy = p.sharing_policy;
    out_.stage_of.resize(net.layers.size());
    add_stages();
    require_one_sum_each();
    add_flows();
    add_messages();
    add_rings(reductions_of(p, model));
    add_tasks();
  }
  [[nodiscard]] program take() && { return std::move(out_); }

 private:
  void add_stages() {
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      stage_part part{.layers = {}, .outside = {}, .devices = {}, .recompute = p_.stages[s].recomputes()};
      for (const hetplan::layer_id l : p_.stages[s].layers) {
        part.layers.push_back(l.index());
        out_.stage_of[l.index()] = s;
      }
      std::sort(part.layers.begin(), part.layers.end());
      for (const hetplan::assignment& a : p_.stages[s].devices) part.devices.push_back(a.device);
      out_.stages.push_back(std::move(part));
    }
    for (std::size_t s = 0; s < out_.stages.size(); ++s) {
      auto& outside = out_.stages[s].outside;
      for (const std::size_t l : out_.stages[s].layers) {
        for (const std::size_t from : net_.layers[l].inputs) {
          if (out_.stage_of[from] != s) outside.push_back(from);
        }
      }
      outside |= ranges::actions::sort | ranges::actions::unique;
    }
  }

  /// Throws for shared tensors whose stages have the same first device: no ring across stages could pass a sum to the other devices.
  void require_one_sum_each() const {
    std::map<std::size_t, std::vector<std::size_t>> holders;  // [tensor]
    for (std::size_t s = 0; s < out_.stages.size(); ++s) {
      for (const std::size_t l : out_.stages[s].layers) {
        auto& mine = holders[net_.tensor_of(l)];
        if (net_.layers[l].parameters() > 0 && (mine.empty() || mine.back() != s)) mine.push_back(s);
      }
    }
    for (const auto& [tensor, stages] : holders) {
      const auto first = [&](std::size_t s) { return out_.stages[s].devices.front(); };
      const auto same = [&](std::size_t s) { return first(s) == first(stages.front()); };
      const auto alone = [&](std::size_t s) { return out_.stages[s].devices.size() == 1; };
      if (stages.size() < 2 || !std::all_of(stages.begin(), stages.end(), same) || std::all_of(stages.begin(), stages.end(), alone))
        continue;
      throw hetplan::invalid_input("plan: /stages/" + std::to_string(stages.back()) + ": got the tensor of layer \"" +
                                   net_.layers[tensor].name + "\" in replicated stages with one first device, \"" +
                                   nominal_[first(stages.front())].name +
                                   "\"; the executors run stages without replicas there, or with first devices of their own");
    }
  }

  /// Flow f is transfer f of the task graph, with the graph's volumes and rules and the routes of the links. Where flows wait for slots,
  /// their line is that of the simulator (semantics, section 6), and flows of our own stand behind them.
  void add_flows() {
    for (const hetplan::tasks::transfer& t : graph_.transfers) {
      out_.add_flow(nominal_, t.from, t.to, t.volume_bytes, t.priority);
      out_.flows.back().release_s = t.release_s;
      if (t.chunk > 0) {
        out_.flows.back().after = static_cast<int>(out_.flows.size()) - 2;  // expand lists the chunks of a transfer consecutively
        out_.flows.back().latency_s = 0;
      }
    }
    const auto key = [this](std::size_t f) {
      const hetplan::tasks::transfer& t = graph_.transfers[f];
      const bool sync = t.kind == hetplan::transfer_kind::sync;
      return std::tuple(t.priority, sync, sync ? 0 : t.microbatch, t.from_stage, t.from, t.to_stage, t.to, f);
    };
    std::vector<std::size_t> line(graph_.transfers.size());
    std::iota(line.begin(), line.end(), std::size_t{0});
    std::sort(line.begin(), line.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < line.size(); ++i) out_.rules[line[i]].place = i;
  }

  void add_messages() {
    message_of_.resize(graph_.transfers.size());
    for (std::size_t f = 0; f < graph_.transfers.size(); ++f) {
      const hetplan::tasks::transfer& t = graph_.transfers[f];
      if (t.kind == hetplan::transfer_kind::sync) continue;
      if (t.chunk == 0) {
        message m{.from = t.from_stage,
                  .to = t.to_stage,
                  .backward = t.kind == hetplan::transfer_kind::backward,
                  .layers = {},
                  .first = static_cast<long>(t.first_sample),
                  .last = static_cast<long>(t.last_sample),
                  .flows = {}};
        const std::size_t producer = (m.backward ? m.to : m.from).index(), consumer = (m.backward ? m.from : m.to).index();
        for (const std::size_t l : out_.stages[consumer].outside) {
          if (out_.stage_of[l] == producer) m.layers.push_back(l);
        }
        out_.messages.push_back(std::move(m));
      }
      out_.messages.back().flows.push_back(f);
      message_of_[f] = out_.messages.size() - 1;
    }
  }

  /// The graph lists transfers of reductions in the order of reductions, ring by ring, those across stages last.
  void add_rings(const std::vector<hetplan::reduction>& reductions) {
    std::size_t next = 0;
    const auto next_sync = [&] {
      while (graph_.transfers[next].kind != hetplan::transfer_kind::sync || graph_.transfers[next].chunk > 0) ++next;
      return next++;
    };
    for (const hetplan::reduction& r : reductions) {
      ring_sum all{r, {}, {}};
      for (std::size_t i = 0; i < r.members.size(); ++i) all.flows.push_back(next_sync());
      for (const hetplan::layer_id l : r.layers) all.tensors.push_back(net_.tensor_of(l.index()));
      out_.rings.push_back(std::move(all));
    }
    // Later chunks of a ring's transfers belong to the same flow: its rounds are the chunks.
    for (std::size_t k = 0; k < out_.rings.size(); ++k) {
      const hetplan::reduction& r = out_.rings[k].what;
      if (!r.is_across_stages()) continue;
      std::vector<hetplan::device_id> have;
      for (const auto& m : r.members) have.push_back(m.device);
      for (const hetplan::stage_id s : r.holders) {
        const auto& devices = out_.stages[s.index()].devices;
        for (std::size_t i = 1; i < devices.size(); ++i) {
          if (std::find(have.begin(), have.end(), devices[i]) != have.end()) continue;
          have.push_back(devices[i]);
          out_.handouts.push_back({k, out_.add_flow(nominal_, devices[0], devices[i], r.bytes)});
        }
      }
    }
  }

  void add_tasks() {
    std::vector<task> all;
    for (const hetplan::tasks::compute_task& t : graph_.computes) {
      all.push_back({.what = t.what,
                     .stage = t.stage,
                     .first = static_cast<long>(t.first_sample),
                     .last = static_cast<long>(t.last_sample),
                     .receives = {},
                     .sends = {}});
    }
    const auto is_message = [&](hetplan::tasks::node_id n) {
      return graph_.is_transfer(n) && graph_.transfer_at(n).kind != hetplan::transfer_kind::sync;
    };
    for (hetplan::tasks::node_id n = 0; n < graph_.size(); ++n) {
      for (const hetplan::tasks::node_id m : graph_.successors_of(n)) {
        if (graph_.is_compute(n) && is_message(m)) all[n].sends.push_back(message_of_[m - graph_.computes.size()]);
        if (is_message(n) && graph_.is_compute(m)) all[m].receives.push_back(message_of_[n - graph_.computes.size()]);
      }
    }
    for (std::size_t d = 0; d < graph_.device_order.size(); ++d) {
      std::set<hetplan::stage_id> split;
      for (const hetplan::tasks::node_id n : graph_.device_order[d]) {
        if (all[n].what == hetplan::phase::backward_weight) split.insert(all[n].stage);
      }
      for (const hetplan::tasks::node_id n : graph_.device_order[d]) {
        task t = all[n];
        if (t.what == hetplan::phase::backward_input && !split.contains(t.stage)) {
          out_.tasks[d].push_back(t);
          out_.tasks[d].back().sends.clear();
          t.what = hetplan::phase::backward_weight;
          t.receives.clear();
        }
        out_.tasks[d].push_back(std::move(t));
      }
    }
  }

  const hetplan::plan& p_;
  const neural_network& net_;
  const hetplan::cluster& nominal_;
  const hetplan::tasks::task_graph& graph_;
  program out_;
  std::vector<std::size_t> message_of_;  ///< [flow]
};

}  // namespace

program make_program(const hetplan::plan& p, const neural_network& net, const hetplan::planning_graph& model, const hetplan::cluster& c,
                     const hetplan::cluster& nominal, const hetplan::tasks::task_graph& graph) {
  require_executable(p, c);
  return program_maker(p, net, model, nominal, graph).take();
}

}  // namespace executors
