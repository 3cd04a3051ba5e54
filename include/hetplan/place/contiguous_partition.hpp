// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Partition of a DAG into contiguous parts on devices of several kinds: exact if its ideals can be enumerated, else along linear orders.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/ideals.hpp>

namespace hetplan::place {

/// Returns the weight of a unit of load on each kind in the bound
///
///   largest load >= sum over nodes of min over kinds of weight[kind] work(node, kind)
///
/// which holds for any weights >= 0 with sum over kinds of devices[kind] weight[kind] = 1, since the left side is at least the weighted
/// sum of all loads. The best weights give the optimum of the linear program in which every node may be split.
///
/// @param devices   number of each kind, >= 0.
/// @param work      by kind, then node; infinite where a node cannot run on a kind.
/// @return          weights; infinite for kinds without devices; all 0 without any device.
/// Complexity       O(kinds^3 nodes log nodes) a round, at most 20 rounds.
/// Determinism      exact for two kinds; for more, coordinate ascent until none improves, which is valid but not always the best.
/// Source           duality of linear programs; the bound is ours.
[[nodiscard]] std::vector<double> bound_weights(std::span<const int> devices, const std::vector<std::vector<double>>& work);

/// Load of a part of a graph on a device, for `ideal_dp` and `contiguous_partition`, which minimise the largest load. A search adds nodes
/// to a part one by one and removes them in reverse order; the part starts empty. Kinds of device are numbered 0, 1, ...
///
/// * The load may count anything: communication, memory, battery charge. A part that does not fit a kind has infinite load there, and so
///   has every larger part.
/// * A larger `work` makes the search faster; 0 is always valid.
///
/// Ships: `work_load` (work alone), `placement_load` (accelerators and CPUs as in the dnn-partitioning workloads).
///
/// Source  Tarnawski et al., NeurIPS 2020, section 3, as one formula; ours: a concept for any load.
template <class L>
concept part_load = requires(L& l, const L& c, std::size_t node, std::size_t kind) {
  l.add(node);
  l.remove(node);                                  // undoes the last add
  { c.load(kind) } -> std::same_as<double>;        // of the current part, >= 0
  { c.work(node, kind) } -> std::same_as<double>;  // >= 0; summed over a part's nodes at most the part's load, e.g. 0
};

template <class L>
consteval bool check_part_load() {
  static_assert(part_load<L>,
                "part_load needs: add(std::size_t node), remove(std::size_t node), double load(std::size_t kind) const, "
                "double work(std::size_t node, std::size_t kind) const");
  return part_load<L>;
}

/// Load of a part as the sum of its nodes' work.
class work_load {
 public:
  /// @param work  by kind, then node; >= 0, infinite where a node cannot run on a kind.
  explicit work_load(std::vector<std::vector<double>> work) : work_(std::move(work)), sums_{std::vector<double>(work_.size(), 0)} {}

  void add(std::size_t node) {
    std::vector<double> grown = sums_.back();
    for (std::size_t kind = 0; kind < grown.size(); ++kind) grown[kind] += work_[kind][node];
    sums_.push_back(std::move(grown));
  }
  void remove(std::size_t) { sums_.pop_back(); }
  [[nodiscard]] double load(std::size_t kind) const { return sums_.back()[kind]; }
  [[nodiscard]] double work(std::size_t node, std::size_t kind) const { return work_[kind][node]; }

 private:
  std::vector<std::vector<double>> work_;
  std::vector<std::vector<double>> sums_;  ///< after each add, so that remove leaves no rounding error
};

static_assert(check_part_load<work_load>());

/// Part of a partition: the difference of two nested ideals, on a device of a kind.
struct ideal_part {
  std::size_t kind = 0;
  std::vector<std::size_t> nodes;  ///< in topological order
  double load = 0;

  friend bool operator==(const ideal_part&, const ideal_part&) = default;
};

/// Parts in the order of the ideals: no edge leads from a part to an earlier one. Infeasible: no parts; stopped: the best known.
struct ideal_partition {
  hetplan::status status = {};
  double value = std::numeric_limits<double>::infinity();  ///< largest load
  double bound = 0;                                        ///< lower bound on the largest load of every partition
  std::vector<ideal_part> parts = {};                      ///< at most as many of a kind as there are devices; devices may stay empty
  std::size_t ideals = 0;                                  ///< of the graph; 0 if unknown
  long long pairs = 0;                                     ///< pairs of nested ideals whose difference was evaluated

  /// Returns the most by which the value exceeds the optimum, relative to the optimum; 0 if proven optimal.
  [[nodiscard]] double gap() const { return value == bound ? 0 : value / bound - 1; }
};

namespace detail {

/// Numbers of devices taken of each kind, as one state, and bounds on the load of the remaining devices.
class device_counts {
 public:
  static constexpr std::size_t max_states = 4096;

  device_counts(std::span<const int> devices, const std::vector<std::vector<double>>& work);

  [[nodiscard]] std::size_t states() const { return states_; }
  [[nodiscard]] std::size_t stride(std::size_t kind) const { return stride_[kind]; }
  [[nodiscard]] bool has_room(std::size_t state, std::size_t kind) const { return taken(state, kind) < devices_[kind]; }
  /// Returns a lower bound on the largest load of the remaining devices, which take all nodes outside `done`.
  [[nodiscard]] double rest(std::size_t state, node_set done) const;

 private:
  [[nodiscard]] int taken(std::size_t state, std::size_t kind) const;

  std::vector<int> devices_;
  std::vector<std::size_t> stride_;
  std::size_t states_ = 1;
  std::vector<std::vector<double>> least_;  ///< by state, then node
};

template <part_load Load>
[[nodiscard]] std::vector<std::vector<double>> work_of(const Load& load, std::size_t nodes, std::span<const int> devices) {
  std::vector<std::vector<double>> work(devices.size(), std::vector<double>(nodes));
  for (std::size_t k = 0; k < devices.size(); ++k) {
    if (devices[k] < 0)
      throw invalid_input("ideal_dp: devices[" + std::to_string(k) + "] = " + std::to_string(devices[k]) + "; expected >= 0");
    for (std::size_t v = 0; v < nodes; ++v) {
      work[k][v] = load.work(v, k);
      if (!(work[k][v] >= 0)) {
        throw invalid_model("ideal_dp: work(node " + std::to_string(v) + ", kind " + std::to_string(k) + ") = " + to_text(work[k][v]) +
                            "; expected >= 0");
      }
    }
  }
  return work;
}

template <part_load Load>
[[nodiscard]] double checked_load(const Load& load, std::size_t kind) {
  const double value = load.load(kind);
  if (!(value >= 0)) throw invalid_model("ideal_dp: load(kind " + std::to_string(kind) + ") = " + to_text(value) + "; expected >= 0");
  return value;
}

/// Partial partition, identified by the ideal at its end and the devices that it takes.
struct ideal_cell {
  double value = std::numeric_limits<double>::infinity();
  std::uint32_t from = 0;  ///< ideal below the last part
  std::uint32_t kind = 0;  ///< kind of the last part's device
};

}  // namespace detail

/// Returns the partition with the smallest largest load among those with boundaries in a family of ideals. This is the optimum over
/// contiguous partitions if the family is `ideals_of` the graph.
///
/// @param devices  number of each kind; devices of a kind are identical.
/// @param load     load of a part; empty before and after.
/// @param below    value of a known partition; only smaller values are sought.
/// @param max_pairs  limit on the pairs of nested ideals.
/// @return         infeasible: no partition is below `below`. `bound`: the value found, or else `below` (infinite: nothing fits).
///                 Stopped after max_pairs: the best so far, possibly none, with `bound` 0.
/// Complexity      with I ideals, P nested pairs whose difference fits a device, D = product of (devices + 1) over kinds, no more devices
///                 than nodes: O(P (degree + D)) time if adding a node costs O(degree), O(I (D + nodes)) memory. P is at most I^2 / 2. A
///                 lower ideal costs nothing if the remaining nodes are too much load for the remaining devices (device_counts::rest).
/// Throws          invalid_input: devices < 0, D > 4096; invalid_model: work or load < 0 or not a number.
/// Determinism     ties: the lower ideal with the smaller number, then the order of steps, then the smaller kind.
/// Source          Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020: the dynamic program
///                 for the largest load. Deviations: forward from the empty ideal; pairs are walked with a load that grows by a node at a
///                 time and are pruned by bounds; any load, any number of device kinds.
template <part_load Load>
[[nodiscard]] ideal_partition ideal_dp(const ideal_family& ideals, std::span<const int> devices, Load&& load,
                                       double below = std::numeric_limits<double>::infinity(),
                                       long long max_pairs = std::numeric_limits<long long>::max()) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto work_of_node = detail::work_of(load, ideals.nodes(), devices);
  const detail::device_counts counts(devices, work_of_node);
  const std::size_t kinds = devices.size(), states = counts.states(), full = ideals.size() - 1;
  std::vector<detail::ideal_cell> cells(ideals.size() * states);
  cells[0].value = 0;
  ideal_partition found{.bound = below, .ideals = ideals.size()};

  struct frame {
    std::uint32_t ideal, node, next_step;
  };
  std::vector<frame> path;                            // from the lower ideal up; the load holds its nodes
  std::vector<double> work(kinds, 0);                 // sums over each prefix of the path, by kind
  std::vector<std::uint32_t> seen(ideals.size(), 0);  // 1 + the lower ideal of the last walk that reached the ideal
  std::vector<std::vector<std::size_t>> live(kinds);  // by kind: states with a free device
  bool stopped = false;
  for (std::size_t lower = 0; lower < full && !stopped; ++lower) {
    bool alive = false;
    for (auto& of_kind : live) of_kind.clear();
    for (std::size_t s = 0; s < states; ++s) {
      if (cells[lower * states + s].value >= below || counts.rest(s, ideals[lower]) >= below) continue;
      for (std::size_t k = 0; k < kinds; ++k) {
        if (!counts.has_room(s, k)) continue;
        live[k].push_back(s);
        alive = true;
      }
    }
    if (!alive) continue;
    path.assign(1, {static_cast<std::uint32_t>(lower), 0, 0});
    while (true) {
      frame& top = path.back();
      const auto steps = ideals.steps(top.ideal);
      stopped = stopped || found.pairs >= max_pairs;
      if (top.next_step == steps.size() || stopped) {
        if (path.size() == 1) break;
        load.remove(top.node);
        path.pop_back();
        work.resize(work.size() - kinds);
        continue;
      }
      const ideal_family::step up = steps[top.next_step++];
      if (seen[up.to] == lower + 1) continue;
      seen[up.to] = static_cast<std::uint32_t>(lower + 1);
      load.add(up.node);
      ++found.pairs;
      bool can_grow = false;
      for (std::size_t k = 0; k < kinds; ++k) {
        work.push_back(work[work.size() - kinds] + work_of_node[k][up.node]);
        if (live[k].empty() || work.back() >= below) continue;
        const double mine = detail::checked_load(load, k);
        can_grow = can_grow || mine < inf;
        if (mine >= below) continue;
        for (const std::size_t s : live[k]) {
          const double value = std::max(mine, cells[lower * states + s].value);
          detail::ideal_cell& cell = cells[up.to * states + s + counts.stride(k)];
          if (value < cell.value) cell = {value, static_cast<std::uint32_t>(lower), static_cast<std::uint32_t>(k)};
          if (up.to == full) below = std::min(below, value);
        }
      }
      if (can_grow) {
        path.push_back({up.to, up.node, 0});
      } else {
        load.remove(up.node);
        work.resize(work.size() - kinds);
      }
    }
  }

  std::size_t state = 0;
  for (std::size_t s = 0; s < states; ++s) {
    if (cells[full * states + s].value < cells[full * states + state].value) state = s;
  }
  found.value = cells[full * states + state].value;
  if (stopped) {
    found.status = {outcome::stopped, "more than " + std::to_string(max_pairs) + " pairs of nested ideals"};
  } else if (found.value == inf) {
    found.status = {
        outcome::infeasible,
        found.bound == inf ? "no contiguous partition fits the devices"
                           : "no contiguous partition has a largest load below " + to_text(found.bound),
        infeasibility_proof{"contiguous partitions, as chains of ideals", {}, static_cast<long long>(ideals.size()) + found.pairs}};
    return found;
  }
  found.bound = stopped ? 0 : found.value;
  if (found.value == inf) return found;
  for (std::size_t ideal = full; ideal != 0;) {
    const detail::ideal_cell& cell = cells[ideal * states + state];
    ideal_part& part = found.parts.emplace_back();
    part.kind = cell.kind;
    const std::size_t from = cell.from;
    state -= counts.stride(cell.kind);
    // Nodes along one path from the lower ideal to the upper one.
    for (std::size_t at = from; at != ideal;) {
      for (const ideal_family::step& up : ideals.steps(at)) {
        if (!ideals[ideal].contains(up.node)) continue;
        load.add(up.node);
        part.nodes.push_back(up.node);
        at = up.to;
        break;
      }
    }
    part.load = detail::checked_load(load, part.kind);
    for (std::size_t i = part.nodes.size(); i-- > 0;) load.remove(part.nodes[i]);
    ideal = from;
  }
  std::reverse(found.parts.begin(), found.parts.end());
  return found;
}

/// Returns a lower bound on the largest load of every partition of nodes 0 ... n-1, contiguous or not: the work as if it could be split
/// (bound_weights), and the heaviest node on its best kind.
/// Complexity  of bound_weights.
/// Throws      as ideal_dp.
/// Source      ours.
template <part_load Load>
[[nodiscard]] double partition_bound(std::size_t nodes, std::span<const int> devices, const Load& load) {
  const auto work = detail::work_of(load, nodes, devices);
  double bound = detail::device_counts(devices, work).rest(0, ideal_family(nodes)[0]);
  for (std::size_t v = 0; v < nodes; ++v) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < devices.size(); ++k) {
      if (devices[k] > 0) least = std::min(least, work[k][v]);
    }
    bound = std::max(bound, least);
  }
  return bound;
}

/// Returns the best partition along the linear orders of a graph, with a bound on all partitions.
/// @param g       a graph as for ideals_of: a planning graph with graph/bgl.hpp.
/// @return        `bound` is partition_bound. None found: no partition along these orders fits, though the graph may have one.
///                Infeasible: a node fits no device.
/// Complexity     of ideal_dp with n + 1 ideals, for each order.
/// Throws, Determinism: as ideal_dp; among equal partitions the earlier order.
template <class Graph, part_load Load>
[[nodiscard]] ideal_partition linear_partition(const Graph& g, std::span<const int> devices, Load&& load) {
  const std::size_t n = num_vertices(g);
  const auto edges = hetplan::detail::edges_of_dag(g);
  ideal_partition best;
  for (const auto& order : linear_orders(n, edges)) {
    ideal_partition found = ideal_dp(prefixes_of(order), devices, load, best.value);
    found.pairs += best.pairs;
    if (found.status.ok()) best = std::move(found);
    else best.pairs = found.pairs;
  }
  best.ideals = 0;
  best.bound = std::min(best.value, partition_bound(n, devices, load));  // rounding may lift the bound above the value
  if (best.parts.empty() && n > 0)
    best.status = best.bound < std::numeric_limits<double>::infinity()
                      ? status{outcome::none_found, "no contiguous partition along the graph's linear orders fits the devices"}
                      : status{outcome::infeasible, "a node fits no device, or there is none",
                               infeasibility_proof{"partitions of " + std::to_string(n) + " nodes",
                                                   {{"devices for the node that is heaviest wherever it goes", 1, 0}},
                                                   0}};
  return best;
}

struct contiguous_options {
  std::size_t max_ideals = 1'000'000;   ///< fewer if 16 bytes per ideal and combination of devices exceed 1 GiB
  long long max_pairs = 2'000'000'000;  ///< limit on the pairs of nested ideals, at about 10^7 to 10^8 a second
};

/// Returns the contiguous partition with the smallest largest load.
/// @param g       a graph as for ideals_of: a planning graph with graph/bgl.hpp.
/// @param devices number of each kind.
/// @param load    load of a part; a model of part_load.
/// @return        feasible: proven optimal, gap 0. Infeasible: nothing fits. Stopped: more ideals or pairs than the options allow; the
///                best known partition, with its bound. None found: stopped without any partition.
/// Complexity     of linear_partition, ideals_of and ideal_dp.
/// Throws, Determinism: as linear_partition, ideals_of and ideal_dp.
template <class Graph, part_load Load>
[[nodiscard]] ideal_partition contiguous_partition(const Graph& g, std::span<const int> devices, Load&& load,
                                                   const contiguous_options& o = {}) {
  ideal_partition best = linear_partition(g, devices, load);
  const std::size_t n = num_vertices(g);
  const detail::device_counts counts(devices, detail::work_of(load, n, devices));
  const std::size_t most = std::min(o.max_ideals, (std::size_t{1} << 30) / (sizeof(detail::ideal_cell) * counts.states()));
  const auto ideals = ideals_of(g, most);
  if (!ideals) {
    if (best.status.result == outcome::infeasible) return best;
    const bool any = best.status.ok();
    best.status = {any ? outcome::stopped : outcome::none_found,
                   "more than " + std::to_string(most) + " ideals; " +
                       (any ? "the best along linear orders" : "nothing along linear orders fits the devices")};
    return best;
  }
  ideal_partition exact = ideal_dp(*ideals, devices, load, best.value, o.max_pairs);
  exact.pairs += best.pairs;
  if (exact.parts.empty() && !best.parts.empty()) {  // nothing beats the known partition
    exact.value = best.value;
    exact.parts = std::move(best.parts);
    if (exact.status.result == outcome::infeasible) exact.status = {};
  }
  if (exact.status.result == outcome::stopped) {
    exact.bound = std::min(exact.value, best.bound);
    if (exact.parts.empty()) exact.status.result = outcome::none_found;
  }
  return exact;
}

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/contiguous_partition.ipp>
#endif
