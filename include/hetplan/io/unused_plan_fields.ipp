// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_plan_fields.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <hetplan/plan/reductions.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::io {

namespace detail {

/// Goes through a plan's file and asks of each field whether a run of the plan can tell it from its default.
class plan_field_check {
 public:
  plan_field_check(const plan& p, const planning_graph& model, const cluster& c, bool by_rule)
      : p_(p), model_(model), cluster_(c), training_(p.workload.mode == mode::training), by_rule_(by_rule) {
    if (training_) reductions_ = reductions_of(p, model);
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
    const bool cached =
        std::any_of(model_.layers().begin(), model_.layers().end(), [](const layer& l) { return l.kv_bytes_per_token.value() > 0; });
    for (const auto& [key, value] : n.members()) {
      if (key == "optimizer_factor" && !training_ && p_.workload.optimizer_factor != standard.optimizer_factor)
        unused(value, "only training has an optimizer");
      if (key == "tokens" && !generates && p_.workload.tokens != standard.tokens) unused(value, "only generation makes tokens");
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

  /// Under `block` the network is there for reductions and tokens alone.
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
      std::map<device_id, std::pair<int, bool>> readers;  // stages, and whether all of them can share one transfer
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

  /// @return  the number of the stage behind them
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
        if (!state && key != "shard") continue;
        if (s.devices.size() == 1 || (state && s.rows() == 1))
          unused(value, "the stage has one device" + std::string(s.columns.empty() ? "" : " in a column"));
        else if (!trains || (state && p_.workload.optimizer_factor == 0))
          unused(value, state ? "the stage has no state of an optimizer" : "the stage has no trainable weights");
      }
    }
    return first;
  }

  void look_at_predicted(const json_node& n) {
    const evaluation& e = *p_.predicted;
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
  const planning_graph& model_;
  const cluster& cluster_;
  bool training_;
  bool by_rule_;
  std::vector<reduction> reductions_ = {};
  std::vector<std::string> lines_ = {};
};

}  // namespace detail

HETPLAN_INLINE std::vector<std::string> unused_plan_fields(const json_node& n, const plan& p, const planning_graph& model, const cluster& c,
                                                           bool by_rule) {
  return detail::plan_field_check(p, model, c, by_rule).run(n);
}

}  // namespace hetplan::io
