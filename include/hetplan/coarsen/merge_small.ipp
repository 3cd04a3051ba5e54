// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/merge_small.hpp>

#include <iterator>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan::coarsen {

HETPLAN_INLINE blocks each_layer(const planning_graph& model) {
  blocks single;
  for (const layer& l : model.layers()) {
    single.layers.push_back({l.id});
    single.block_of.push_back(l.id.index());
  }
  return single;
}

namespace detail {

HETPLAN_INLINE contraction::contraction(const planning_graph& model, double weight_limit, double work_limit)
    : model_(model), weight_limit_(weight_limit), work_limit_(work_limit), group_weight_(model.weight_groups().size()),
      nodes_(model.size()), readers_(model.size(), 0), into_(model.size()), order_(model.size()), twin_(model.size(), none),
      seen_(model.size(), 0) {
  for (const layer& l : model.layers()) {
    const std::size_t i = l.id.index();
    node& n = nodes_[i];
    n.work = l.forward_flops.value();
    if (l.weight_group >= 0) {
      n.groups.push_back(l.weight_group);
      group_weight_[static_cast<std::size_t>(l.weight_group)] = l.weight.value();
    } else {
      n.weight = l.weight.value();
    }
    n.position = into_[i] = order_[i] = i;
  }
  crossings_.reserve(model.edges().size());
  for (const layer_edge& e : model.edges()) {
    const std::size_t from = e.from.index(), to = e.to.index();
    nodes_[from].out.push_back(crossings_.size());
    ++readers_[from];
    nodes_[to].in.push_back(crossings_.size());
    crossings_.push_back({from, to, {{from, e.forward.value()}}, 0});
  }
  for (std::size_t c = 0; c < crossings_.size(); ++c) offer(c);
}

HETPLAN_INLINE void contraction::run() {
  while (!candidates_.empty()) {
    const candidate best = candidates_.pop();
    if (best.version == crossings_[best.crossing].version && make_room(best.crossing)) contract(best.crossing);
  }
}

HETPLAN_INLINE blocks contraction::result() const {
  std::vector<std::size_t> head_of(model_.size()), number(model_.size());  // blocks numbered by smallest layer
  std::size_t count = 0;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    head_of[i] = into_[i] == i ? i : head_of[into_[i]];  // into_[i] is smaller than i, so its head is known
    if (head_of[i] == i) number[i] = count++;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const crossing& c : crossings_) {
    if (c.version != dead) edges.emplace_back(number[c.from], number[c.to]);
  }
  const std::vector<std::size_t> order = topological_order(count, edges);
  HETPLAN_ASSERT(order.size() == count);
  std::vector<std::size_t> rank(count);
  for (std::size_t i = 0; i < count; ++i) rank[order[i]] = i;
  blocks merged;
  merged.layers.resize(count);
  for (std::size_t i = 0; i < model_.size(); ++i) {
    merged.block_of.push_back(rank[number[head_of[i]]]);
    merged.layers[merged.block_of.back()].emplace_back(i);
  }
  return merged;
}

HETPLAN_INLINE bool contraction::fits(const node& a, const node& b) const {
  if (!(a.work + b.work < work_limit_)) return false;
  double weight = a.weight + b.weight;
  for (const std::int32_t g : together(a.groups, b.groups)) weight += group_weight_[static_cast<std::size_t>(g)];
  return weight < weight_limit_;
}

HETPLAN_INLINE std::vector<std::int32_t> contraction::together(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  std::vector<std::int32_t> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

HETPLAN_INLINE void contraction::offer(std::size_t c) {
  crossing& x = crossings_[c];
  ++x.version;
  if (!fits(nodes_[x.from], nodes_[x.to])) return;
  double freed = 0, total = 0;
  for (const tensor& t : x.tensors) {
    total += t.second;
    if (readers_[t.first] == 1) freed += t.second;
  }
  candidates_.push({freed, total, std::min(x.from, x.to), std::max(x.from, x.to), c, x.version});
}

HETPLAN_INLINE bool contraction::make_room(std::size_t c) {
  const std::size_t u = crossings_[c].from, v = crossings_[c].to;
  const std::size_t first = nodes_[u].position, last = nodes_[v].position;
  std::size_t place = last;
  if (nodes_[v].in.size() == 1) {
    place = first;  // v can move up to u
  } else if (nodes_[u].out.size() > 1) {
    if (!reach_short_of(u, v)) return false;
    // Blocks that u leads to move behind v, in their order; the other blocks between u and v stay before it.
    if (!reached_.empty()) {
      sort_by(reached_, [&](std::size_t b) { return nodes_[b].position; });
      place = first;
      for (std::size_t p = first + 1; p < last; ++p) {
        if (order_[p] != none && seen_[order_[p]] != search_) put(order_[p], place++);
      }
      std::size_t next = place + 1;
      for (const std::size_t b : reached_) put(b, next++);
      for (std::size_t p = next; p <= last; ++p) order_[p] = none;
    }
  }
  if (order_[first] == u) order_[first] = none;
  if (order_[last] == v) order_[last] = none;
  put(u, place);
  put(v, place);
  return true;
}

HETPLAN_INLINE void contraction::put(std::size_t block, std::size_t place) {
  order_[place] = block;
  nodes_[block].position = place;
}

HETPLAN_INLINE bool contraction::reach_short_of(std::size_t u, std::size_t v) {
  reached_.clear();
  ++search_;
  const std::size_t end = nodes_[v].position;
  const auto step_from = [&](std::size_t block) {
    for (const std::size_t c : nodes_[block].out) {
      const std::size_t next = crossings_[c].to;
      if (next == v && block != u) return false;
      if (nodes_[next].position >= end || seen_[next] == search_) continue;
      seen_[next] = search_;
      reached_.push_back(next);
    }
    return true;
  };
  if (!step_from(u)) return false;
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    if (!step_from(reached_[i])) return false;
  }
  return true;
}

HETPLAN_INLINE void contraction::contract(std::size_t c) {
  const std::size_t u = crossings_[c].from, v = crossings_[c].to;
  const std::size_t keep = std::min(u, v), gone = std::max(u, v);
  drop(nodes_[u].out, c);
  drop(nodes_[v].in, c);
  crossings_[c].version = dead;
  for (const tensor& t : crossings_[c].tensors) --readers_[t.first];
  join(keep, gone, &node::out, &node::in, &crossing::from, &crossing::to);
  join(keep, gone, &node::in, &node::out, &crossing::to, &crossing::from);
  node &k = nodes_[keep], &g = nodes_[gone];
  k.weight += g.weight;
  k.work += g.work;
  k.groups = together(k.groups, g.groups);
  g = {};
  into_[gone] = keep;
  order_[k.position] = keep;
  for (const std::size_t x : k.out) offer(x);
  for (const std::size_t x : k.in) offer(x);
}

HETPLAN_INLINE void contraction::join(std::size_t keep, std::size_t gone, std::vector<std::size_t> node::*near,
                                      std::vector<std::size_t> node::*far, std::size_t crossing::*here, std::size_t crossing::*there) {
  auto& kept = nodes_[keep].*near;
  for (const std::size_t c : kept) twin_[crossings_[c].*there] = c;
  const std::size_t before = kept.size();
  for (const std::size_t c : nodes_[gone].*near) {
    const std::size_t neighbour = crossings_[c].*there;
    if (twin_[neighbour] == none) {
      crossings_[c].*here = keep;
      kept.push_back(c);
    } else {
      absorb(crossings_[twin_[neighbour]].tensors, crossings_[c].tensors);
      drop(nodes_[neighbour].*far, c);
      crossings_[c].version = dead;
    }
  }
  for (std::size_t i = 0; i < before; ++i) twin_[crossings_[kept[i]].*there] = none;
}

HETPLAN_INLINE void contraction::absorb(std::vector<tensor>& all, const std::vector<tensor>& more) {
  std::vector<tensor> sum;
  auto a = all.begin();
  for (const tensor& b : more) {
    while (a != all.end() && a->first < b.first) sum.push_back(*a++);
    const bool same = a != all.end() && a->first == b.first;
    if (same) --readers_[b.first];
    sum.emplace_back(b.first, same ? std::max(a++->second, b.second) : b.second);
  }
  sum.insert(sum.end(), a, all.end());
  all = std::move(sum);
}

}  // namespace detail

HETPLAN_INLINE blocks merge_small(const planning_graph& model, const merge_options& options) {
  if (!(options.share >= 0 && options.share <= 1)) {
    throw invalid_input("merge_small: share = " + to_text(options.share) + "; expected a number in [0, 1]");
  }
  const double weight = model.parameters() * model.bytes_per_parameter(), work = model.forward_flops().value();
  if (options.share == 0 || (weight == 0 && work == 0)) return each_layer(model);
  const auto limit = [&](double total) { return total > 0 ? options.share * total : std::numeric_limits<double>::infinity(); };
  detail::contraction graph(model, limit(weight), limit(work));
  graph.run();
  return graph.result();
}

}  // namespace hetplan::coarsen
