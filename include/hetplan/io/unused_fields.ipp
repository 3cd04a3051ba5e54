// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_fields.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::io {

HETPLAN_INLINE void check_together(const planning_graph& model, const cluster& c, std::string_view file, std::optional<workload> w) {
  if (w) check_mode(model, *w);
  const bool generates = w && w->mode == mode::generation, trains = w && w->mode == mode::training;
  const layer& any = model.layers().front();
  for (const device& d : c.devices()) {
    const auto fail = [&](const layer& l, std::string_view field, std::string_view expected, std::string_view why) {
      throw invalid_input(escaped(file) + ": /devices/" + std::to_string(d.id.value) + "/" + std::string(field) + ": expected " +
                          std::string(expected) + ": layer " + in_quotes(l.name) + " of model " + in_quotes(model.name()) + " " +
                          std::string(why) + " kind " + in_quotes(d.kind));
    };
    const auto layers = model.layers();
    const bool by_rates = std::any_of(layers.begin(), layers.end(), [&](const layer& l) { return l.profile_for(d.kind) == nullptr; });
    if (by_rates && d.compute.value() > 0 && !d.computes_in(any.precision)) {
      fail(any, "compute", "a rate for " + std::string(to_string(any.precision)) + " or a precision that can stand in for it, got none",
           "computes in it on");
    }
    for (const auto& [field, share] : {std::pair("efficiency", &d.efficiency), std::pair("memory_efficiency", &d.memory_efficiency)}) {
      if (by_rates && share->find(any.weight_format) == nullptr)
        fail(any, field, "a share for weight_format " + in_quotes(any.weight_format) + ", got none", "has it on");
    }
    for (const layer& l : model.layers()) {
      const layer_profile* p = l.profile_for(d.kind);
      if (p != nullptr && generates && l.tokens_per_sample > 1) {
        fail(l, "kind", "a kind without a profile, got " + in_quotes(d.kind) + ", as generation needs times of single tokens",
             "is measured with tokens_per_sample " + std::to_string(l.tokens_per_sample) + " on");
      }
      if (p == nullptr && d.compute.value() <= 0) fail(l, "compute", "FLOP/s > 0, got nothing", "has no profile for");
      if (p == nullptr && !l.has_flops)
        fail(l, "kind", "a kind with a profile, got " + in_quotes(d.kind), "has no forward_flops and no profile for");
      if (p != nullptr && p->backward_s.empty() && trains) {
        fail(l, "kind", "a kind with a measured backward, got " + in_quotes(d.kind),
             "has no backward, which training needs, in its profile for");
      }
    }
  }
}

namespace detail {

class plan_field_check {
 public:
  plan_field_check(const plan_file& file, const planning_graph& model, const cluster& c, bool by_rule)
      : p_(file.plan), predicted_(file.predicted), model_(model), cluster_(c), training_(p_.workload.mode == mode::training),
        by_rule_(by_rule) {
    if (training_) reductions_ = reductions_of(p_, model);
  }

  [[nodiscard]] std::vector<std::string> run(const json_node& n) {
    for (const auto& [key, value] : n.members()) {
      if (key == "workload") look_at_workload(value);
      if (key == "schedule") look_at_schedule(value);
      if (key == "flows") look_at_flows(value);
      if (key == "network") look_at_network(value);
      if (key == "copies") look_at_copies(value);
      if (key == "sync") look_at_sync(value);
      if (key == "stages") look_at_stages(value, 0);
      if (key == "predicted") look_at_predicted(value);
      if (key == "pipelines") {
        std::size_t first = 0;
        for (const json_node pipeline : value.elements("")) {
          for (const auto& [inner, list] : pipeline.members()) {
            if (inner == "stages") first = look_at_stages(list, first);
          }
        }
      }
    }
    return std::move(lines_);
  }

 private:
  void unused(const json_node& field, const std::string& why) {
    lines_.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  }

  void look_at_workload(const json_node& n) {
    const workload standard;
    const bool generates = p_.workload.mode == mode::generation;
    const bool cached = std::any_of(model_.layers().begin(), model_.layers().end(), [](const layer& l) {
      return l.kv_bytes_per_token.value() > 0 || l.sequence.attention_flops.value() > 0 || l.sequence.attention_traffic.value() > 0;
    });
    for (const auto& [key, value] : n.members()) {
      if (!training_ && (key == "optimizer" || (key == "optimizer_factor" && p_.workload.optimizer_factor != standard.optimizer_factor)))
        unused(value, "only training has an optimizer");
      if (key == "tokens" && !generates && p_.workload.tokens != standard.tokens) unused(value, "only generation makes tokens");
      if ((key == "prompt" || key == "prompt_chunk" || key == "chunks_in_flight") && !generates)
        unused(value, "only generation has prompts");
      if (key == "context" && p_.workload.context != standard.context) {
        if (!generates) unused(value, "only generation keeps a cache");
        else if (!cached) unused(value, "no layer of the model keeps a cache");
      }
    }
  }

  void look_at_schedule(const json_node& n) {
    for (const auto& [key, value] : n.members()) {
      if (key == "kind" && !training_ && p_.schedule.kind == schedule_kind::gpipe)
        unused(value, "outside training every schedule is the forwards in order");
      if (key == "warmup") look_at_warmup(value);
      if (key == "flows") look_at_flows(value);
    }
  }

  void look_at_warmup(const json_node& list) {
    if (!training_) return unused(list, "only training has a warm-up");
    if (by_rule_) return;
    const stage_graph g = make_stage_graph(p_, model_);
    std::size_t s = 0;
    for (const json_node n : list.elements("")) {
      const int given = p_.schedule.warmup[s], most = g.nodes[s++].microbatches;
      if (given > most) unused(n, std::to_string(given) + " is as good as " + std::to_string(most) + ", the microbatches of the stage");
    }
  }

  void look_at_flows(const json_node& list) {
    if (p_.sharing_policy != sharing::fair_share && p_.sharing_policy != sharing::unlimited) return;
    std::optional<json_node> first;
    std::size_t given = 0, at = 0;
    for (const json_node flow : list.elements("")) {
      const bool ranked = p_.schedule.transfers[at++].priority != 0;
      for (const auto& [key, value] : flow.members()) {
        if (key == "priority" && ranked && given++ == 0) first = value;
      }
    }
    if (!first) return;
    unused(*first, "network " + in_quotes(to_string(p_.sharing_policy)) + " does not look at priorities" +
                       (given > 1 ? ", as those of " + std::to_string(given - 1) + " more flows" : ""));
  }

  /// With transfers that block, only reductions and token transfers share the network.
  void look_at_network(const json_node& n) {
    const auto& rules = p_.schedule.transfers;
    if (n.text() == to_string(sharing::priority) && p_.sharing_policy == sharing::priority &&
        std::all_of(rules.begin(), rules.end(), [](const transfer_rule& r) { return r.priority == 0; }))
      return unused(n, "no flow has a priority, so that all share as under \"fair_share\"");
    if (p_.transfers != transfer_mode::block || p_.sharing_policy == sharing::fair_share) return;
    if (p_.workload.mode == mode::inference || (training_ && reductions_.empty()))
      unused(n, "transfers that block share nothing, and there are no others");
  }

  void look_at_copies(const json_node& n) {
    if (p_.copies != transfer_copies::per_device) return;
    if (p_.transfers == transfer_mode::block) return unused(n, "transfers that block go once for each edge");
    const stage_graph g = make_stage_graph(p_, model_);
    bool matters = by_rule_;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      std::map<device_id, std::pair<int, bool>> readers;  // reading stages, and true if all of them can share one transfer
      for (const std::size_t e : g.nodes[s].out) {
        const stage_id to = g.edges[e].to;
        const bool shares =
            p_.stages[s].devices.size() == 1 && p_[to].devices.size() == 1 && g.nodes[s].microbatch_size == g[to].microbatch_size;
        for (const assignment& a : p_[to].devices) {
          auto& [count, all_share] = readers.try_emplace(a.device, 0, true).first->second;
          ++count;
          all_share = all_share && shares;
        }
      }
      for (const auto& [d, found] : readers) {
        const bool here = std::all_of(p_.stages[s].devices.begin(), p_.stages[s].devices.end(),
                                      [&, device = d](const assignment& a) { return a.device == device; });
        if (here || found.first < 2) continue;
        matters = true;
        if (found.second) continue;
        return unused(n, "the output of stage " + in_quotes(p_.stages[s].name) + " goes more than once to device " +
                             in_quotes(cluster_[d].name) +
                             ", because a stage has several devices or another microbatch size; for such stages");
      }
    }
    if (!matters) unused(n, "no output is read by two stages of one device");
  }

  void look_at_sync(const json_node& n) {
    if (!n.is_object()) return;
    for (const auto& [key, value] : n.members()) {
      if (!training_) unused(value, "only training reduces gradients");
      else if (std::none_of(reductions_.begin(), reductions_.end(), [](const reduction& r) { return r.is_across_stages(); }))
        unused(value, "no two stages on different devices hold one tensor, and a stage reduces its own in a ring");
    }
  }

  /// @return  the index of the next stage
  std::size_t look_at_stages(const json_node& list, std::size_t first) {
    for (const json_node n : list.elements("")) {
      const stage& s = p_.stages[first++];
      const bool trains =
          std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return model_[l].trainable && model_[l].weight.value() > 0; });
      for (const auto& [key, value] : n.members()) {
        const bool state = key == "shard_state" && s.shard == sharding::state;
        if (key == "grid" && s.column_count() > 1 &&
            std::none_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return model_[l].is_split(); }))
          unused(value, "no layer of the stage is split: every column does all of it");
        if (key == "recompute" && s.recompute == recomputation::blocks && hetplan::repeated_layers(model_, s).empty())
          unused(value, "the stage has no block that keeps activations");
        if (key == "offload") look_at_offload(value, s);
        if (!state && key != "shard") continue;
        if (s.devices.size() == 1 || (state && s.rows() == 1))
          unused(value, "the stage has one device" + std::string(s.columns.empty() ? "" : " in a column"));
        else if (!trains || (state && !p_.workload.has_optimizer_state()))
          unused(value, state ? "the stage has no state of an optimizer" : "the stage has no trainable weights");
      }
    }
    return first;
  }

  void look_at_offload(const json_node& n, const stage& s) {
    if (s.offload.empty()) return unused(n, "no layer is named");
    for (const auto& [name, tier] : n.members()) {
      const layer& l = model_[model_.find(name)];
      if (l.weight.value() == 0 && l.weight_traffic.value() == 0) unused(tier, "the layer has no weights");
    }
  }

  void look_at_predicted(const json_node& n) {
    const evaluation& e = *predicted_;
    for (const auto& [key, value] : n.members()) {
      if (key == "time_between_tokens" && p_.workload.mode != mode::generation) unused(value, "only generation makes tokens");
      if (key == "placement_bound" && p_.workload.mode != mode::inference && e.placement_bound.value() > 0)
        unused(value, "only the operators of an inference are placed");
      if (key == "gap" && e.gap != 0 && e.bound.value() <= 0) unused(value, "there is no bound that it could be to");
      if (key == "schedule_gap" && e.schedule_gap != 0 && e.schedule_bound.value() <= 0)
        unused(value, "there is no schedule_bound that it could be to");
    }
  }

  const plan& p_;
  const std::optional<evaluation>& predicted_;
  const planning_graph& model_;
  const cluster& cluster_;
  bool training_;
  bool by_rule_;
  std::vector<reduction> reductions_ = {};
  std::vector<std::string> lines_ = {};
};

}  // namespace detail

HETPLAN_INLINE std::vector<std::string> unused_plan_fields(const json_node& n, const plan_file& file, const planning_graph& model,
                                                           const cluster& c, bool by_rule) {
  return detail::plan_field_check(file, model, c, by_rule).run(n);
}

HETPLAN_INLINE std::set<std::string_view> resources_on_routes(const cluster& c) {
  std::set<std::string_view> names;
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      const route* r = a.id == b.id ? nullptr : c.network().find(a.id, b.id);
      if (r == nullptr) continue;
      for (const resource_use& u : r->via) names.insert(c.network()[u.resource].name);
    }
  }
  return names;
}

HETPLAN_INLINE std::vector<std::string> unused_cluster_fields(const json_node& n, const cluster& c) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const json_object top(n, keys::cluster);
  std::size_t device_number = 0;
  for (const json_node device : top.at("devices", "").elements("")) {
    const json_object o(device, keys_of<hetplan::device>());
    const hetplan::device& read = c.devices()[device_number++];
    const auto accelerators = o.find("accelerators"), interconnect = o.find("interconnect");
    const bool several = read.accelerators > 1;
    if (accelerators && several && !read.interconnect) unused(*accelerators, "without an interconnect a plan uses one of them");
    if (interconnect && !several) unused(*interconnect, "it joins accelerators, and the device has one");
  }
  if (const auto topology = top.find("topology")) {
    const json_object o(*topology, keys::topology);
    const auto duplex = o.find("duplex"), groups = o.find("groups");
    std::size_t inhabited = 0;
    std::vector<json_node> empty;
    if (groups) {
      for (const json_node g : groups->elements("")) {
        if (json_object(g, keys::group).at("devices", "").size() > 0) ++inhabited;
        else empty.push_back(g);
      }
    }
    if (c.size() == 1) unused(*topology, "there is one device");
    else if (duplex && o.at("kind", "").text() == "shared") unused(*duplex, "a shared medium has no directions");
    else if (inhabited == 1) unused(o.at("capacity", ""), "nothing goes between groups, as all devices are in one");
    for (const json_node& g : empty) unused(g, "no device is in it");
  }
  if (const auto resources = top.find("resources")) {
    auto taken = resources_on_routes(c);
    for (const device& d : c.devices()) {
      for (const memory_tier& t : d.tiers) taken.insert(t.resource);
    }
    for (const json_node r : resources->elements("")) {
      const auto name = json_object(r, keys::resource).at("name", "").text();
      if (!taken.contains(name)) unused(r, "no route takes resource " + in_quotes(name));
    }
  }
  if (const auto routes = top.find("routes")) {
    std::unordered_map<std::string_view, device_id> ids;
    for (const device& d : c.devices()) ids.emplace(d.name, d.id);
    const auto end = [&](std::string_view name) { return name == "*" ? std::nullopt : std::optional(ids.at(name)); };
    detail::route_choice choice(c.size());
    for (const json_node r : routes->elements("")) {
      const json_object o(r, keys::route);
      choice.add(end(o.at("from", "").text()), end(o.at("to", "").text()));
    }
    std::vector<bool> wins(routes->size());
    bool added = false;  // true if "widest" adds a route
    for (const device& from : c.devices()) {
      for (const device& to : c.devices()) {
        const auto rule = choice.rule_of(from.id.index(), to.id.index());
        if (rule) wins[*rule] = true;
        else added = added || (from.id != to.id && c.network().find(from.id, to.id) != nullptr);
      }
    }
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> first;
    std::size_t number = 0;
    for (const json_node r : routes->elements("")) {
      const json_object o(r, keys::route);
      const auto from = o.at("from", "").text(), to = o.at("to", "").text();
      const bool used = wins[number];
      const auto [it, fresh] = first.emplace(std::pair(from, to), number++);
      if (used) continue;
      if (c.size() == 1 || (from == to && from != "*")) unused(r, "a device needs no route to itself");
      else if (!fresh) unused(r, "route " + std::to_string(it->second) + " is between the same ends and comes before it");
      else unused(r, "every pair of devices that it could be for takes another route");
    }
    const auto indirect = top.find("indirect");
    if (indirect && indirect->text() == "widest" && !added) unused(*indirect, "no pair of devices gets a route by it");
  }
  return lines;
}

HETPLAN_INLINE std::vector<std::string> unused_job_fields(const json_node& n, const job& j, const job_use& use) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const mode what = j.workload.mode;
  const objective_kind objective = j.effective_objective();
  const bool wants_latency = objective == objective_kind::qoe || (use.latency_may_come && !j.objective);
  const auto look_at_qoe = [&](const json_node& qoe) {
    for (const auto& [key, value] : qoe.members()) {
      if (key == "latency" && !use.over_time && objective != objective_kind::qoe) {
        unused(value, "objective " + in_quotes(to_string(objective)) + " does not ask for a latency");
      } else if (key == "latency" && what == mode::generation) {
        lines.push_back(escaped(value.document().file()) + ": " + value.pointer() +
                        ": in generation it is the time between tokens; clearer: time_between_tokens, ttft or makespan");
      } else if (key == "lambda" && !wants_latency) {
        unused(value, "objective " + in_quotes(to_string(objective)) + " has no latency that could be missed");
      } else if ((key == "deadline" || key == "iterations") && !use.over_time) {
        unused(value, "the end of a job matters to `hetplan adapt` alone");
      } else if (key == "deadline" && !j.qoe.iterations) {
        unused(value, "without qoe.iterations a job has no end");
      }
    }
  };
  for (const auto& [key, value] : n.members()) {
    if (key == "context" && what != mode::generation && j.workload.context != 0) unused(value, "only generation keeps a cache");
    if (key == "tokens" && what != mode::generation) unused(value, "only generation makes tokens");
    if ((key == "prompt" || key == "prompt_chunk" || key == "chunks_in_flight") && what != mode::generation)
      unused(value, "only generation has prompts");
    if ((key == "optimizer_factor" || key == "optimizer") && what != mode::training) unused(value, "only training has an optimizer");
    if (key == "schedule" && what != mode::training) unused(value, "only training has a backward to schedule");
    if (key == "objective" && use.over_time && j.qoe.deadline && j.qoe.iterations) {
      unused(value, "a job with a deadline is to end in time, then with the least energy");
    }
    if (key == "microbatch_sizes") {
      for (const json_node size : value.elements("")) {
        if (j.batch % size.integer(1) != 0) unused(size, size.shown() + " does not divide the batch " + std::to_string(j.batch));
      }
    }
    if (key == "memory_savers" && use.over_time) {
      for (const json_node saver : value.elements("")) {
        if (saver.text() == "shard_state") unused(saver, "plans that change while they run shard no states");
      }
    }
    if (key == "split_tensors" && use.over_time && j.split_tensors) unused(value, "plans that change while they run share no tensors");
    if (key == "qoe") look_at_qoe(value);
  }
  return lines;
}

HETPLAN_INLINE std::vector<std::string> unused_timeline_fields(const json_node& n, const cluster& c, const job& j, bool priorities) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const std::set<std::string_view> on_routes = resources_on_routes(c);
  const auto look_at_resource = [&](const json_object& o) {
    const auto name = o.find("resource");
    if (name && !on_routes.contains(name->text())) unused(*name, "no route takes resource " + in_quotes(name->text()));
  };
  const json_object top(n, keys::timeline);
  const auto duration = top.required_amount<seconds>("duration", range::above_zero);
  std::map<std::string_view, bool> here;                       // by device; absent: still there
  std::map<std::string_view, std::vector<json_node>> unheard;  // by device that has left and not returned: its speeds
  if (const auto events = top.find("events")) {
    for (const json_node event : events->elements("")) {
      const json_object o(event, keys::event);
      if (o.required_amount<seconds>("at", range::at_least_zero) >= duration) {
        unused(event, "it and what follows comes when the timeline has ended");
        break;
      }
      look_at_resource(o);
      if (const auto d = o.find("device")) {
        if (o.has("leaves")) here[d->text()] = false;
        if (o.has("joins")) {
          here[d->text()] = true;
          unheard.erase(d->text());
        }
        const auto known = here.find(d->text());
        if (o.has("speed") && known != here.end() && !known->second) unheard[d->text()].push_back(*o.find("speed"));
      }
      if (const auto t = o.find("transfer"); t && !priorities) {
        const auto p = json_object(*t, keys::foreign_transfer).find("priority");
        if (p && p->integer(std::numeric_limits<int>::min()) != 0) unused(*p, "no plan that ran has network \"priority\"");
      }
      if (const auto q = o.find("qoe"); q && !j.qoe.iterations) {
        if (const auto deadline = json_object(*q, keys::qoe_target).find("deadline"))
          unused(*deadline, "without qoe.iterations the job has no end");
      }
    }
  }
  for (const auto& [device, speeds] : unheard) {
    for (const json_node& s : speeds) unused(s, "device " + in_quotes(device) + " has left and does not come back");
  }
  if (const auto traces = top.find("traces")) {
    for (const json_node t : traces->elements("")) look_at_resource(json_object(t, keys::bandwidth_trace));
  }
  return lines;
}

HETPLAN_INLINE std::vector<std::string> unused_faults(const json_node& n, const std::vector<serve::serving_fault>& all,
                                                      const serve::edge_cloud& cloud) {
  enum class part { whole, gpu, device };
  std::set<std::tuple<std::size_t, part, int>> gone;
  std::vector<std::string> lines;
  std::size_t number = 0;
  for (const json_node event : json_object(n, keys::faults).at("events", "").elements("")) {
    const serve::serving_fault& f = all[number++];
    const std::size_t s = f.server.index();
    const serve::edge_server& server = cloud[f.server];
    const std::tuple whole(s, part::whole, 0);
    auto taken = whole;
    std::string who;
    if (const auto* g = std::get_if<serve::gpu_fails>(&f.what)) {
      taken = {s, part::gpu, g->gpu};
      who = "GPU " + std::to_string(g->gpu) + " of server " + in_quotes(server.name) + " has failed";
    } else if (const auto* d = std::get_if<serve::device_leaves>(&f.what)) {
      taken = {s, part::device, d->device};
      who = "device " + in_quotes(server.devices[static_cast<std::size_t>(d->device)].name) + " has left server " + in_quotes(server.name);
    } else if (const auto* r = std::get_if<serve::device_registers>(&f.what)) {
      taken = {s, part::device, r->device};
      gone.erase(taken);
    } else if (!std::holds_alternative<serve::server_fails>(f.what)) {
      continue;
    }
    const bool with_server = gone.contains(whole);
    if (with_server) who = "server " + in_quotes(server.name) + " has failed";
    if (with_server || gone.contains(taken))
      lines.push_back(escaped(event.document().file()) + ": " + event.pointer() + ": " + who + " before; not used");
    if (!std::holds_alternative<serve::device_registers>(f.what)) gone.insert(taken);
  }
  return lines;
}

HETPLAN_INLINE std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c) {
  std::set<std::string_view> kinds;
  for (const device& d : c.devices()) kinds.insert(d.kind);
  for (const layer& l : model.layers()) {
    for (const layer_profile& p : l.profiles) {
      if (kinds.contains(p.device_kind)) continue;
      for (const device& d : c.devices()) {
        if (l.profile_for(d.kind) != nullptr) continue;
        return "model " + in_quotes(model.name()) + ": layer " + in_quotes(l.name) + " has a profile for kind " + in_quotes(p.device_kind) +
               ", which no device of cluster " + in_quotes(c.name()) + " is, and none for kind " + in_quotes(d.kind) + " of " +
               in_quotes(d.name) + ", which is timed by FLOP" + suggestion(p.device_kind, kinds);
      }
    }
  }
  return std::nullopt;
}

}  // namespace hetplan::io
