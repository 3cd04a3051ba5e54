// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Fewer, larger blocks: small layers merge with a neighbour until one more merge would make a block too large.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/graph/topological_order.hpp>

namespace hetplan::coarsen {

/// A partition of the layers, as a map in both directions.
///
/// Blocks are numbered so that every edge of the model goes from a block to itself or to a larger one.
struct blocks {
  std::vector<std::vector<layer_id>> layers;  ///< by block, each sorted by id
  std::vector<std::size_t> block_of;          ///< by layer id

  [[nodiscard]] std::size_t size() const { return layers.size(); }

  friend bool operator==(const blocks&, const blocks&) = default;
};

/// Every layer a block of its own.
[[nodiscard]] inline blocks each_layer(const planning_graph& model) {
  blocks single;
  for (const layer& l : model.layers()) {
    single.layers.push_back({l.id});
    single.block_of.push_back(l.id.index());
  }
  return single;
}

struct merge_options {
  double share = 0.05;  ///< of all parameters and of all forward FLOP: a merged block has less of both
};

namespace detail {

/// A graph of blocks that shrinks edge by edge. A block goes by its smallest layer.
class contraction {
 public:
  /// The limits are on sums over one block: weight bytes, and forward FLOP.
  contraction(const planning_graph& model, double weight_limit, double work_limit)
      : model_(model),
        weight_limit_(weight_limit),
        work_limit_(work_limit),
        group_weight_(model.weight_groups().size()),
        nodes_(model.size()),
        readers_(model.size(), 0),
        into_(model.size()),
        order_(model.size()),
        twin_(model.size(), none),
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

  /// Contracts the best crossing that is allowed until none is.
  ///
  /// A crossing on which another path runs from end to end waits until one of its ends has merged: nothing
  /// else can take the other path away, so what is refused need not be asked again before that.
  void run() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const candidate best = heap_.back();
      heap_.pop_back();
      if (best.version == crossings_[best.crossing].version && make_room(best.crossing)) contract(best.crossing);
    }
  }

  [[nodiscard]] blocks result() const {
    std::vector<std::size_t> head_of(model_.size()), number(model_.size());  // blocks numbered by smallest layer
    std::size_t count = 0;
    for (std::size_t i = 0; i < model_.size(); ++i) {
      head_of[i] = into_[i] == i ? i : head_of[into_[i]];  // into a smaller one, so that is known
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

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint32_t dead = std::numeric_limits<std::uint32_t>::max();
  using tensor = std::pair<std::size_t, double>;  ///< its layer, and the most bytes that one reader takes

  struct node {
    std::vector<std::size_t> out, in;  ///< crossings; at most one between two blocks
    double weight = 0, work = 0;       ///< weight without groups
    std::vector<std::int32_t> groups;  ///< sorted
    std::size_t position = 0;          ///< in order_
  };
  struct crossing {
    std::size_t from, to;
    std::vector<tensor> tensors;  ///< by layer
    std::uint32_t version;        ///< older candidates are stale
  };
  struct candidate {
    double freed, total;          ///< bytes that cross and no other block reads, and all that cross
    std::size_t smaller, larger;  ///< the two blocks
    std::size_t crossing;
    std::uint32_t version;

    friend bool operator<(const candidate& a, const candidate& b) {  // the largest is the best
      return std::tie(a.freed, a.total, b.smaller, b.larger) < std::tie(b.freed, b.total, a.smaller, a.larger);
    }
  };

  [[nodiscard]] bool fits(const node& a, const node& b) const {
    if (!(a.work + b.work < work_limit_)) return false;
    double weight = a.weight + b.weight;
    for (const std::int32_t g : together(a.groups, b.groups)) weight += group_weight_[static_cast<std::size_t>(g)];
    return weight < weight_limit_;
  }

  static std::vector<std::int32_t> together(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    std::vector<std::int32_t> both;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
  }

  /// Blocks only grow, so a crossing that does not fit is never looked at again. Whoever merges offers all crossings of
  /// the merged block: when a tensor comes down to one reader, the crossing left to it is among them.
  void offer(std::size_t c) {
    crossing& x = crossings_[c];
    ++x.version;
    if (!fits(nodes_[x.from], nodes_[x.to])) return;
    double freed = 0, total = 0;
    for (const tensor& t : x.tensors) {
      total += t.second;
      if (readers_[t.first] == 1) freed += t.second;
    }
    heap_.push_back({freed, total, std::min(x.from, x.to), std::max(x.from, x.to), c, x.version});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Reorders the blocks between the ends of a crossing so that both ends can share one position; false, and
  /// nothing moves, if another path runs from end to end.
  bool make_room(std::size_t c) {
    const std::size_t u = crossings_[c].from, v = crossings_[c].to;
    const std::size_t first = nodes_[u].position, last = nodes_[v].position;
    std::size_t place = last;
    if (nodes_[v].in.size() == 1) {
      place = first;  // v may come as early as u
    } else if (nodes_[u].out.size() > 1) {
      if (!reach_short_of(u, v)) return false;
      // Whatever u leads to moves behind v, in its order; the rest of the blocks between them stays before.
      if (!reached_.empty()) {
        const auto earlier = [&](std::size_t a, std::size_t b) { return nodes_[a].position < nodes_[b].position; };
        std::sort(reached_.begin(), reached_.end(), earlier);
        place = first;
        for (std::size_t p = first + 1; p < last; ++p) {
          if (order_[p] != none && seen_[order_[p]] != search_) put(order_[p], place++);
        }
        std::size_t behind = place + 1;
        for (const std::size_t b : reached_) put(b, behind++);
        for (std::size_t p = behind; p <= last; ++p) order_[p] = none;
      }
    }
    if (order_[first] == u) order_[first] = none;
    if (order_[last] == v) order_[last] = none;
    put(u, place);
    put(v, place);
    return true;
  }

  void put(std::size_t block, std::size_t place) {
    order_[place] = block;
    nodes_[block].position = place;
  }

  /// Fills reached_ with the blocks before v that u leads to, v's own crossing aside; false if v is met.
  bool reach_short_of(std::size_t u, std::size_t v) {
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

  void contract(std::size_t c) {
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

  /// Hands one side of a block's crossings to another block; two that then join the same blocks become one.
  void join(std::size_t keep, std::size_t gone, std::vector<std::size_t> node::*near, std::vector<std::size_t> node::*far,
            std::size_t crossing::*here, std::size_t crossing::*there) {
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

  /// A tensor that both carry is read on both ways but crosses once.
  void absorb(std::vector<tensor>& all, const std::vector<tensor>& more) {
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

  static void drop(std::vector<std::size_t>& list, std::size_t c) { list.erase(std::find(list.begin(), list.end(), c)); }

  const planning_graph& model_;
  double weight_limit_, work_limit_;
  std::vector<double> group_weight_;
  std::vector<node> nodes_;
  std::vector<int> readers_;  ///< by layer: the other blocks that read its tensor
  std::vector<crossing> crossings_;
  std::vector<candidate> heap_;
  std::vector<std::size_t> into_;   ///< the smaller block that a block merged into; itself while it lives
  std::vector<std::size_t> order_;  ///< a topological order of the living blocks, with gaps (none)
  std::vector<std::size_t> twin_, reached_;
  std::vector<std::size_t> seen_;  ///< by block: the last search that reached it
  std::size_t search_ = 0;
};

}  // namespace detail

/// Merges adjacent blocks while the result has less than a share of the model, and stays a DAG.
///
/// An edge u -> v of the graph of blocks is contracted if the merged block has less than `share` of all
/// parameters and less than `share` of all forward FLOP (a weight group counts once, in the total and inside a
/// block) and no other path leads from u to v. A tensor crosses between two blocks with the largest edge from its
/// producer into the other block. First goes the pair whose contraction frees most bytes, counting the tensors that
/// no other block reads; then the pair between which most bytes cross. A tensor with a second reader still crosses a
/// boundary after one of them has merged, so a block closes over the branches of its residuals, and boundaries end up
/// where few bytes cross. Blocks that are not adjacent never merge, so parallel branches survive. No allowed
/// contraction is left at the end.
///
/// @param options   share 0 merges nothing. A single layer above the share stays alone.
/// @return          blocks numbered as topological_order would, by their smallest layers.
/// Complexity       per merge the edges at the two blocks (each back into a heap) and the blocks between them in a
///                  topological order; per pair tried a search among the blocks between its two ends. Near-linear
///                  on chains of residual blocks; a block that touches all others costs a pass over them per merge.
/// Determinism      ties: the pair with the smaller block (by its smallest layer), then with the smaller second one.
/// Throws           invalid_input (share not in [0, 1]).
/// Source           Dora sec. 4.1, planning graph.
/// Deviations       FLOP count as well as parameters: by parameters alone one block takes 40 % of ResNet-50's work. A
///                  model without parameters, or without FLOP (profiles only), has no limit on that side; without
///                  either nothing is known to be small, and nothing merges.
[[nodiscard]] inline blocks merge_small(const planning_graph& model, const merge_options& options = {}) {
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
