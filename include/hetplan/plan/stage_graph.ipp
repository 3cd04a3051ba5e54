// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/stage_graph.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/graph/topological_order.hpp>

namespace hetplan {

HETPLAN_INLINE double input_bytes(const stage_graph& g, stage_id s) {
  double total = 0;
  for (const std::size_t e : g[s].in) total += g.edges[e].forward_cut.value();
  return total;
}

HETPLAN_INLINE stage_graph make_stage_graph(const plan& p, const planning_graph& model) {
  stage_graph g;
  g.nodes.resize(p.stages.size());
  std::vector<long long> first(p.pipeline_count() + 1, 0);
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) first[i + 1] = first[i] + p.pipeline_samples(static_cast<int>(i));

  std::vector<stage_id> stage_of(model.size() * p.pipeline_count());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    stage_graph::node& n = g.nodes[s];
    n.microbatch_size = p.size_of(st);
    n.microbatches = p.microbatches_of(st);
    n.cuts = st.cuts;
    n.first_sample = first[static_cast<std::size_t>(st.pipeline)];
    for (const layer_id l : st.layers) stage_of[static_cast<std::size_t>(st.pipeline) * model.size() + l.index()] = stage_id(s);
  }

  // One tensor per (producing layer, consuming stage): the largest of its edges.
  std::vector<stage_edge> tensors;
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) {
    const auto at = [&](layer_id l) { return stage_of[i * model.size() + l.index()]; };
    for (const layer& l : model.layers()) {
      const std::size_t begin = tensors.size();
      for (const layer_edge& e : model.out_edges(l.id)) {
        const stage_id from = at(l.id), to = at(e.to);
        if (from == to) continue;
        auto it = std::find_if(tensors.begin() + static_cast<std::ptrdiff_t>(begin), tensors.end(),
                               [&](const stage_edge& t) { return t.to == to; });
        if (it == tensors.end()) it = tensors.insert(it, {from, to, {}, {}});
        it->forward_cut = std::max(it->forward_cut, e.forward);
        it->backward_cut = std::max(it->backward_cut, e.gradient);
      }
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const stage_edge& a, const stage_edge& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  for (const stage_edge& t : tensors) {
    if (g.edges.empty() || g.edges.back().from != t.from || g.edges.back().to != t.to) {
      g.edges.push_back(t);
    } else {
      g.edges.back().forward_cut += t.forward_cut;
      g.edges.back().backward_cut += t.backward_cut;
    }
  }

  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const std::size_t from = g.edges[e].from.index(), to = g.edges[e].to.index();
    g.nodes[from].out.push_back(e);
    g.nodes[to].in.push_back(e);
    pairs.emplace_back(from, to);
  }
  for (const std::size_t s : topological_order(g.nodes.size(), pairs)) g.topological.push_back(stage_id(s));
  for (auto it = g.topological.rbegin(); it != g.topological.rend(); ++it) {
    stage_graph::node& n = g.nodes[it->index()];
    for (const std::size_t e : n.out) n.depth = std::max(n.depth, 1 + g.nodes[g.edges[e].to.index()].depth);
  }
  return g;
}

}  // namespace hetplan
