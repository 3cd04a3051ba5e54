// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/fused_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>
#include <hetplan/cost/profiled.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>

namespace hetplan::coarsen {

namespace detail {

/// Makes the layers of fused_graph, one after the other.
class layer_fusion {
 public:
  layer_fusion(const planning_graph& model, const blocks& b, const fusion_rules& rules, std::span<const device> devices);

  [[nodiscard]] layer_spec fused(std::size_t block);

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw invalid_input("fused_graph: model \"" + escaped(model_.name()) + "\": " + what);
  }
  [[nodiscard]] std::string name_of(std::span<const layer_id> members);
  [[nodiscard]] std::string kind_of(std::span<const layer_id> members) const;
  /// What the block keeps to itself of what this member moves, per sample.
  [[nodiscard]] bytes kept(const layer& l) const;
  /// @param saved  bytes per sample that no longer move.
  [[nodiscard]] std::vector<layer_profile> profiles_of(std::span<const layer_id> members, bytes saved) const;
  void add_profile(std::vector<layer_profile>& all, const std::string& kind, std::span<const layer_id> members, bytes saved) const;

  const planning_graph& model_;
  const blocks& blocks_;
  const fusion_rules& rules_;
  std::map<std::string, double> bandwidth_;  ///< by kind, bytes per second
  std::set<std::string> names_;
};

HETPLAN_INLINE layer_fusion::layer_fusion(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                          std::span<const device> devices)
    : model_(model), blocks_(b), rules_(rules) {
  if (b.block_of.size() != model.size()) {
    fail("the blocks are of " + std::to_string(b.block_of.size()) + " layers; expected its " + std::to_string(model.size()));
  }
  std::vector<std::size_t> found(b.size(), 0);
  for (std::size_t l = 0; l < model.size(); ++l) {
    const std::size_t block = b.block_of[l];
    if (block >= b.size() || found[block] >= b.layers[block].size() || b.layers[block][found[block]++] != layer_id(l)) {
      fail("layer " + std::to_string(l) + " is not where the blocks say; expected each layer in one block, sorted");
    }
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b.layers[i].empty() || found[i] != b.layers[i].size()) fail("block " + std::to_string(i) + " is not made of its layers");
    if (b.layers[i].size() == 1) names_.insert(model[b.layers[i].front()].name);
  }
  for (const device& d : devices) {
    double& rate = bandwidth_[d.kind.empty() ? d.name : d.kind];
    rate = std::max(rate, d.memory_bandwidth.value());
  }
}

HETPLAN_INLINE layer_spec layer_fusion::fused(std::size_t block) {
  const std::vector<layer_id>& members = blocks_.layers[block];
  if (members.size() == 1) return spec_of(model_, model_[members.front()]);
  layer_spec all{.name = name_of(members), .kind = kind_of(members), .backward_input_flops = flops{}, .backward_weight_flops = flops{}};
  members_of_one_layer one;
  flops forward;
  bytes weight_traffic, traffic, saved, for_weights;
  for (const layer_id id : members) {
    const layer& l = model_[id];
    if (const char* why = one.join(l)) fail("block \"" + escaped(all.name) + "\" holds " + why + ", which no layer can");
    forward += l.forward_flops;
    *all.backward_input_flops += l.backward_input_flops;
    *all.backward_weight_flops += l.backward_weight_flops;
    if (l.weight > bytes{}) {
      all.trainable = l.trainable;
      if (l.weight_group < 0) all.weight += l.weight;
      else {
        all.weight = l.weight;
        all.weight_group = model_.weight_groups()[static_cast<std::size_t>(l.weight_group)];
      }
    }
    weight_traffic += l.weight_traffic;
    all.activation += l.activation;
    for_weights += l.activation_for_weights;
    const bytes stays = std::min(l.traffic, kept(l));
    traffic += l.traffic - stays;
    saved += stays;
    all.kv_bytes_per_token += l.kv_bytes_per_token;
  }
  if (model_[members.front()].has_flops) all.forward_flops = forward;
  all.weight_traffic = weight_traffic;
  all.traffic = traffic;
  all.activation_for_weights = std::min(for_weights, all.activation);
  all.profiles = profiles_of(members, saved);
  return all;
}

HETPLAN_INLINE std::string layer_fusion::name_of(std::span<const layer_id> members) {
  constexpr std::size_t longest = 200;
  std::string name;
  for (const layer_id l : members) name += (l == members.front() ? "" : "+") + model_[l].name;
  if (name.size() > longest) name = model_[members.front()].name + "+" + std::to_string(members.size() - 1) + " more";
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "#" + std::to_string(i);
  return unique;
}

HETPLAN_INLINE std::string layer_fusion::kind_of(std::span<const layer_id> members) const {
  std::string kind;
  for (const layer_id l : members) {
    for (const std::string& type : operator_types(model_[l].kind, rules_.aliases)) kind += (kind.empty() ? "" : "+") + type;
  }
  return kind;
}

HETPLAN_INLINE bytes layer_fusion::kept(const layer& l) const {
  const std::size_t block = blocks_.block_of[l.id.index()];
  bytes moved;
  for (const std::uint32_t e : model_.in_edges(l.id)) {
    const layer_edge& in = model_.edges()[e];
    if (blocks_.block_of[in.from.index()] == block) moved += in.forward;
  }
  bytes written;
  for (const layer_edge& out : model_.out_edges(l.id)) {
    if (blocks_.block_of[out.to.index()] != block) return moved;
    written = std::max(written, out.forward);
  }
  return moved + written;
}

HETPLAN_INLINE std::vector<layer_profile> layer_fusion::profiles_of(std::span<const layer_id> members, bytes saved) const {
  std::vector<layer_profile> all;
  for (const layer_profile& p : model_[members.front()].profiles) {
    const auto measured = [&](layer_id l) { return model_[l].profile_for(p.device_kind) != nullptr; };
    if (std::all_of(members.begin(), members.end(), measured)) add_profile(all, p.device_kind, members, saved);
  }
  return all;
}

HETPLAN_INLINE void layer_fusion::add_profile(std::vector<layer_profile>& all, const std::string& kind, std::span<const layer_id> members,
                                              bytes saved) const {
  const device on{.name = kind, .kind = kind};
  std::set<double> batches;
  double largest = std::numeric_limits<double>::infinity();  // beyond it a member's measurements say nothing
  bool backward = true;
  for (const layer_id l : members) {
    const layer_profile& p = *model_[l].profile_for(kind);
    batches.insert(p.batch.begin(), p.batch.end());
    backward = backward && !p.backward_s.empty();
  }
  for (const layer_id l : members) {
    largest = std::min(largest, profiled{}.largest_batch({model_[l], phase::forward}, on));
    if (backward) largest = std::min(largest, profiled{}.largest_batch({model_[l], phase::backward_input}, on));
  }
  layer_profile sum{.device_kind = kind, .batch = {}, .forward_s = {}, .backward_s = {}};
  const auto rate = bandwidth_.find(kind);
  const double saved_s = rate == bandwidth_.end() || !(rate->second > 0) ? 0 : saved.value() / rate->second;  // per sample
  std::vector<double> before(members.size());                                                                 // at the batch size before
  double most_rise = 0, forward_s = 0;                                                                        // at the last batch size
  for (const double b : batches) {
    if (b > largest && !sum.batch.empty()) break;
    double longest_s = 0, backward_s = 0;
    forward_s = most_rise = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const layer& l = model_[members[m]];
      const double s = profiled{}.time({l, phase::forward, b}, on).value();
      forward_s += s;
      longest_s = std::max(longest_s, s);
      most_rise = std::max(most_rise, s - before[m]);
      before[m] = s;
      if (!backward) continue;
      for (const phase part : {phase::backward_input, phase::backward_weight}) backward_s += profiled{}.time({l, part, b}, on).value();
    }
    sum.batch.push_back(b);
    sum.forward_s.push_back(std::max(longest_s, forward_s - saved_s * b));
    if (backward) sum.backward_s.push_back(backward_s);
  }
  if (const std::size_t n = sum.batch.size(); n > 1) {  // the last slope goes on, so it must not fall behind that of any member
    sum.forward_s[n - 1] = std::min(forward_s, std::max(sum.forward_s[n - 1], sum.forward_s[n - 2] + most_rise));
  }
  all.push_back(std::move(sum));
}

}  // namespace detail

HETPLAN_INLINE planning_graph fused_graph(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                          std::span<const device> devices) {
  detail::layer_fusion fusion(model, b, rules, devices);
  planning_graph_builder builder(model.name(), model.bytes_per_parameter(), model.tokens_per_sample());
  for (std::size_t i = 0; i < b.size(); ++i) builder.add_layer(fusion.fused(i));
  std::map<std::pair<std::size_t, std::size_t>, std::pair<bytes, bytes>> crossing;  // forward and gradient
  std::map<std::size_t, std::pair<bytes, bytes>> tensor;                            // of one layer, by the block that reads it
  for (const layer& l : model.layers()) {
    const std::size_t from = b.block_of[l.id.index()];
    tensor.clear();
    for (const layer_edge& e : model.out_edges(l.id)) {
      const std::size_t to = b.block_of[e.to.index()];
      if (to == from) continue;
      if (to < from)
        throw invalid_input("fused_graph: an edge goes from block " + std::to_string(from) + " back to block " + std::to_string(to));
      auto& [forward, gradient] = tensor[to];
      forward = std::max(forward, e.forward);
      gradient = std::max(gradient, e.gradient);
    }
    for (const auto& [to, moved] : tensor) {
      auto& [forward, gradient] = crossing[{from, to}];
      forward += moved.first;
      gradient += moved.second;
    }
  }
  for (const auto& [pair, moved] : crossing) builder.add_edge(layer_id(pair.first), layer_id(pair.second), moved.first, moved.second);
  return std::move(builder).build();
}

}  // namespace hetplan::coarsen
