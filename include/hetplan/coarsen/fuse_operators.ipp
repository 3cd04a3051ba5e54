// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/fuse_operators.hpp>

#include <algorithm>
#include <utility>

namespace hetplan::coarsen {

namespace detail {

HETPLAN_INLINE const char* members_of_one_layer::join(const layer& l) {
  const bool weighs = l.weight > bytes{};
  if (weighs && weighted_ != nullptr) {
    if (l.trainable != weighted_->trainable) return "a frozen and a trainable weight";
    if (l.weight_group != weighted_->weight_group) return "a tensor of a weight group and another weight";
  }
  if (first_ != nullptr) {
    if (l.has_flops != first_->has_flops) return "a layer with forward_flops and one without";
    const auto measured_as_first = [&](const layer_profile& p) { return first_->profile_for(p.device_kind) != nullptr; };
    if (!l.has_flops &&
        (l.profiles.size() != first_->profiles.size() || !std::all_of(l.profiles.begin(), l.profiles.end(), measured_as_first))) {
      return "layers without forward_flops that are measured on different kinds of device";
    }
  }
  if (first_ == nullptr) first_ = &l;
  if (weighs) weighted_ = &l;
  return nullptr;
}

HETPLAN_INLINE rule_tree::rule_tree(const fusion_rules& rules) : nodes_(1) {
  for (const std::vector<std::string>& rule : rules_as_types(rules)) {
    std::size_t at = 0;
    for (const std::string& name : rule) {
      const std::int32_t type = types_.emplace(name, static_cast<std::int32_t>(types_.size())).first->second;
      const auto [next, fresh] = nodes_[at].next.emplace(type, static_cast<std::int32_t>(nodes_.size()));
      at = static_cast<std::size_t>(next->second);
      if (fresh) nodes_.emplace_back();
    }
    nodes_[at].rule_length = rule.size();
  }
}

HETPLAN_INLINE std::int32_t rule_tree::number_of(const std::string& type) const {
  const auto known = types_.find(type);
  return known == types_.end() ? none : known->second;
}

HETPLAN_INLINE std::int32_t rule_tree::step(std::int32_t from, std::int32_t type) const {
  const auto& next = nodes_[static_cast<std::size_t>(from)].next;
  const auto found = next.find(type);
  return found == next.end() ? none : found->second;
}

HETPLAN_INLINE operator_fusion::operator_fusion(const planning_graph& model, const fusion_rules& rules)
    : model_(model), rules_(rules), reader_(model.size(), none), head_(model.size()), position_(model.size()), match_(model.size()) {
  std::map<std::string, std::size_t> kinds;
  kind_.reserve(model.size());
  for (const layer& l : model.layers()) {
    const auto [kind, fresh] = kinds.emplace(l.kind, types_.size());
    if (fresh) {
      types_.emplace_back();
      for (const std::string& type : operator_types(l.kind, rules.aliases)) types_.back().push_back(rules_.number_of(type));
    }
    kind_.push_back(kind->second);
    const auto out = model.out_edges(l.id);
    if (out.size() == 1) reader_[l.id.index()] = out.front().to.index();
  }
}

HETPLAN_INLINE void operator_fusion::run() {
  for (std::size_t v = 0; v < model_.size(); ++v) {
    std::size_t owner = none;  // the operator before v whose chain gets v
    for (const std::uint32_t e : model_.in_edges(layer_id(v))) {
      std::size_t p = model_.edges()[e].from.index();
      ++looks_;
      if (reader_[p] == none) continue;
      while (goes_on(p)) {  // each release moves the head of p's chain forward
        if (owner == none) {
          owner = p;
          break;
        }
        if (prefers(p, owner)) std::swap(p, owner);
        release(p);
      }
    }
    head_[v] = owner == none ? v : head_[owner];
    position_[v] = owner == none ? 0 : position_[owner] + 1;
    if (owner == none) match_[v] = longest_rule(v);
  }
}

HETPLAN_INLINE blocks operator_fusion::result() const {
  std::vector<std::size_t> last(model_.size()), number(model_.size());
  for (std::size_t l = 0; l < model_.size(); ++l) last[head_[l]] = l;
  blocks fused;
  for (std::size_t l = 0; l < model_.size(); ++l) {
    if (last[head_[l]] != l) continue;
    number[head_[l]] = fused.layers.size();
    fused.layers.emplace_back();
  }
  fused.block_of.reserve(model_.size());
  for (std::size_t l = 0; l < model_.size(); ++l) {
    fused.block_of.push_back(number[head_[l]]);
    fused.layers[fused.block_of.back()].emplace_back(l);
  }
  return fused;
}

HETPLAN_INLINE operator_fusion::match operator_fusion::longest_rule(std::size_t head, std::size_t most) {
  match best;
  members_of_one_layer members;
  std::int32_t node = 0;
  std::size_t operators = 0;
  for (std::size_t l = head; l != none && operators < most; l = reader_[l]) {
    ++looks_;
    const std::vector<std::int32_t>& types = types_[kind_[l]];
    if (types.empty() || members.join(model_[layer_id(l)]) != nullptr) break;
    for (const std::int32_t type : types) {
      node = rules_.step(node, type);
      if (node == rule_tree::none) return best;
    }
    if (++operators > 1 && rules_.rule_length(node) > 0) best = {operators, rules_.rule_length(node)};
  }
  return best;
}

HETPLAN_INLINE bool operator_fusion::prefers(std::size_t p, std::size_t q) const {
  const std::size_t a = head_[p], b = head_[q];
  return match_[a].types != match_[b].types ? match_[a].types > match_[b].types : a < b;
}

HETPLAN_INLINE void operator_fusion::release(std::size_t p) {
  std::size_t head = head_[p], position = 0;
  match_[head] = longest_rule(head, position_[p] + 1);
  for (std::size_t l = head;; l = reader_[l]) {
    if (position == match_[head].operators) {
      head = l;
      position = 0;
      match_[head] = longest_rule(head);
    }
    head_[l] = head;
    position_[l] = position++;
    if (l == p) break;
  }
}

}  // namespace detail

HETPLAN_INLINE blocks fuse_operators(const planning_graph& model, const fusion_rules& rules) {
  detail::operator_fusion fusion(model, rules);
  fusion.run();
  return fusion.result();
}

}  // namespace hetplan::coarsen
