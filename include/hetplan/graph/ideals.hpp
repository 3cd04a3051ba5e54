// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Ideals of a DAG, the sets of nodes that contain every predecessor of their members, and topological orders.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Returns several topological orders: the stable one, and depth-first orders from the sources and from the sinks, each with the
/// smallest and with the largest node first; no order twice.
///
/// @param edges  Pairs (from, to), without cycles.
/// Complexity    O((n + edges) log n).   Determinism  always the same orders in the same sequence.
[[nodiscard]] std::vector<std::vector<std::size_t>> linear_orders(std::size_t n,
                                                                  std::span<const std::pair<std::size_t, std::size_t>> edges);

/// View of a set of nodes 0 ... n-1, stored as bits.
class node_set {
 public:
  explicit node_set(std::span<const std::uint64_t> words) : words_(words) {}

  [[nodiscard]] bool contains(std::size_t node) const { return (words_[node / 64] >> (node % 64) & 1) != 0; }

 private:
  std::span<const std::uint64_t> words_;
};

/// Ideals of one DAG, and the steps that extend one ideal to another by a single node. Number 0 is the empty set, the last one holds
/// every node; an ideal's number is larger than those of the ideals inside it.
class ideal_family {
 public:
  struct step {
    std::uint32_t node;
    std::uint32_t to;  ///< ideal with this node added
  };

  explicit ideal_family(std::size_t nodes) : nodes_(nodes), words_(std::max<std::size_t>(1, (nodes + 63) / 64)), bits_(words_, 0) {}

  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  [[nodiscard]] std::size_t size() const { return bits_.size() / words_; }
  [[nodiscard]] node_set operator[](std::size_t ideal) const { return node_set(std::span(bits_).subspan(ideal * words_, words_)); }
  /// Returns the steps that extend an ideal, by node.
  [[nodiscard]] std::span<const step> steps(std::size_t ideal) const;

 private:
  template <class Graph>
  friend std::optional<ideal_family> ideals_of(const Graph& g, std::size_t limit);
  friend ideal_family prefixes_of(std::span<const std::size_t> order);

  /// Adds the ideal that extends another one by one node.
  void append(std::size_t ideal, std::size_t node);
  [[nodiscard]] bool is_grown(std::size_t ideal, std::size_t from, std::size_t node) const;

  std::size_t nodes_, words_;
  std::vector<std::uint64_t> bits_;
  std::vector<step> steps_;
  std::vector<std::size_t> first_step_;
};

namespace detail {
/// Returns the edges of a graph as taken by ideals_of. Throws invalid_input if they close a cycle.
template <class Graph>
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> edges_of_dag(const Graph& g) {
  const auto number = [](auto v) -> std::size_t {
    if constexpr (std::integral<decltype(v)>) return static_cast<std::size_t>(v);
    else return v.index();
  };
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (auto [v, last] = vertices(g); v != last; ++v) {
    for (auto [e, end] = out_edges(*v, g); e != end; ++e) all.emplace_back(number(*v), number(target(*e, g)));
  }
  if (const auto order = topological_order(num_vertices(g), all); order.size() < num_vertices(g)) {
    const auto [from, to] = edge_on_cycle(num_vertices(g), all, order);
    throw invalid_input("ideals: edge " + std::to_string(from) + " -> " + std::to_string(to) + " is on a cycle; expected a graph without");
  }
  return all;
}
}  // namespace detail

/// Returns all ideals, or nothing if there are more than `limit`.
///
/// @param g      Boost graph (vertex list, incidence) whose vertices are 0 ... n-1, or ids: a planning graph with graph/bgl.hpp.
/// Complexity    O(I (w + n / 64)) expected, as much memory, for I ideals that each grow by at most w nodes, w <= width of the DAG.
/// Throws        invalid_input: the graph has a cycle.
/// Determinism   ideals are numbered by size, then by the number of the ideal first extended to them, then by node.
template <class Graph>
[[nodiscard]] std::optional<ideal_family> ideals_of(const Graph& g, std::size_t limit) {
  const std::size_t n = num_vertices(g);
  std::vector<std::vector<std::uint32_t>> predecessors(n), successors(n);
  for (const auto& [from, to] : detail::edges_of_dag(g)) {
    predecessors[to].push_back(static_cast<std::uint32_t>(from));
    successors[from].push_back(static_cast<std::uint32_t>(to));
  }
  // The hash of a set is the exclusive or of its nodes' hashes: one operation per step.
  std::vector<std::uint64_t> hash_of_node(n), hashes{0};
  std::uint64_t state = 0;
  for (std::uint64_t& h : hash_of_node) {  // splitmix64
    std::uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    h = z ^ (z >> 31);
  }
  constexpr std::uint32_t none = 0xffffffffU;
  std::vector<std::uint32_t> table(1024, none);  // open addressing; filled at most half
  const auto slot_of = [&](std::uint64_t hash) { return hash & (table.size() - 1); };

  ideal_family all(n);
  // open: the nodes that extend an ideal, kept for the ideals of two sizes only.
  std::vector<std::vector<std::uint32_t>> open(1), open_next;
  for (std::size_t v = 0; v < n; ++v) {
    if (predecessors[v].empty()) open[0].push_back(static_cast<std::uint32_t>(v));
  }
  for (std::size_t first = 0, last = 1; first < last; first = last, last = all.size(), open = std::move(open_next), open_next.clear()) {
    for (std::size_t i = first; i < last; ++i) {
      all.first_step_.push_back(all.steps_.size());
      for (const std::uint32_t v : open[i - first]) {
        const std::uint64_t hash = hashes[i] ^ hash_of_node[v];
        std::size_t slot = slot_of(hash);
        while (table[slot] != none && !(hashes[table[slot]] == hash && all.is_grown(table[slot], i, v)))
          slot = (slot + 1) & (table.size() - 1);
        if (table[slot] == none) {
          if (all.size() >= limit) return std::nullopt;
          const auto grown = static_cast<std::uint32_t>(all.size());
          table[slot] = grown;
          all.append(i, v);
          hashes.push_back(hash);
          std::vector<std::uint32_t>& ready = open_next.emplace_back();
          for (const std::uint32_t u : open[i - first]) {
            if (u != v) ready.push_back(u);
          }
          const node_set members = all[grown];
          for (const std::uint32_t u : successors[v]) {
            bool is_ready = true;
            for (const std::uint32_t p : predecessors[u]) is_ready = is_ready && members.contains(p);
            if (is_ready) ready.insert(std::lower_bound(ready.begin(), ready.end(), u), u);
          }
          ready.erase(std::unique(ready.begin(), ready.end()), ready.end());  // parallel edges
          all.steps_.push_back({v, grown});
          if (2 * all.size() > table.size()) {
            table.assign(2 * table.size(), none);
            for (std::uint32_t k = 1; k < all.size(); ++k) {
              std::size_t s = slot_of(hashes[k]);
              while (table[s] != none) s = (s + 1) & (table.size() - 1);
              table[s] = k;
            }
          }
        } else {
          all.steps_.push_back({v, table[slot]});
        }
      }
    }
  }
  all.first_step_.push_back(all.steps_.size());
  return all;
}

/// Returns the prefixes of a sequence of all nodes: the ideals of a graph linearised to that sequence.
[[nodiscard]] ideal_family prefixes_of(std::span<const std::size_t> order);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/graph/ideals.ipp>
#endif
