// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cuts a DAG into contiguous parts so that the largest load is smallest: dynamic programming over ideals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/graph/ideals.hpp>
#include <hetplan/place/part_load.hpp>

namespace HETPLAN_NAMESPACE::place {

/// The difference of two nested ideals on a device of a kind.
struct ideal_part {
  std::size_t kind = 0;
  std::vector<std::size_t> nodes;  ///< each behind its predecessors
  double load = 0;

  friend bool operator==(const ideal_part&, const ideal_part&) = default;
};

/// Parts in the order of the ideals: nothing flows from a part to one before it. Infeasible: no parts; stopped: the best known.
struct ideal_partition {
  hetplan::status status = {};
  double value = std::numeric_limits<double>::infinity();  ///< the largest load
  double bound = 0;                                        ///< no partition has a smaller one
  std::vector<ideal_part> parts = {};                      ///< no more of a kind than there are devices; devices may stay empty
  std::size_t ideals = 0;                                  ///< that the graph has; 0: not known
  long long pairs = 0;                                     ///< nested ideals whose difference was weighed

  /// By how much the value may exceed the optimum, relative to it; 0: proven optimal.
  [[nodiscard]] double gap() const { return value == bound ? 0 : value / bound - 1; }
};

namespace detail {

/// How many devices of each kind are taken, as one number, and what the rest of a graph costs those that are not.
class device_counts {
 public:
  static constexpr std::size_t max_states = 4096;

  device_counts(std::span<const int> devices, const std::vector<std::vector<double>>& work);

  [[nodiscard]] std::size_t states() const { return states_; }
  [[nodiscard]] std::size_t stride(std::size_t kind) const { return stride_[kind]; }
  [[nodiscard]] bool has_room(std::size_t state, std::size_t kind) const { return taken(state, kind) < devices_[kind]; }
  /// Some device that is left has at least this load when it is through with what the set does not hold.
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

/// A partial partition: the ideal it ends with and the devices it takes say which.
struct ideal_cell {
  double value = std::numeric_limits<double>::infinity();
  std::uint32_t from = 0;  ///< the ideal below the last part
  std::uint32_t kind = 0;  ///< of the last part's device
};

}  // namespace detail

/// The partition with the smallest largest load among those whose boundaries are in a family of ideals: the exact
/// optimum over contiguous partitions where the family is `ideals_of` the graph.
///
/// @param devices  how many there are of each kind; devices of a kind are the same.
/// @param load     what a part costs; empty before and after.
/// @param below    partitions of no smaller value are of no interest: a partition that is known already.
/// @param max_pairs  pairs of nested ideals to weigh.
/// @return         infeasible: nothing below `below` exists. `bound`: the value found, or else `below` (infinite: nothing fits).
///                 Stopped after max_pairs: the best so far, which may be none, `bound` 0.
/// Complexity      with I ideals, P nested pairs of them whose difference a device can bear, D = product of (devices + 1) over kinds,
///                 no more devices than nodes: O(P (degree + D)) time where adding a node costs O(degree), O(I (D + nodes)) memory. P is at
///                 most I^2 / 2; a pair costs nothing if its lower ideal cannot be part of a better partition, because what is left is too
///                 much for the devices that are left (load_bound.hpp).
/// Throws          invalid_input: devices < 0, D > 4096; invalid_model: work or load < 0 or not a number.
/// Determinism     ties: the lower ideal with the smaller number, then the order of steps, then the smaller kind.
/// Source          Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020: the dynamic
///                 program for the largest load. Deviations: forward from the empty ideal; pairs are walked with a load that grows node by
///                 node and are cut off by bounds; any load, any number of device kinds.
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
  std::vector<double> work(kinds, 0);                 // of each prefix of the path, by kind
  std::vector<std::uint32_t> seen(ideals.size(), 0);  // by the walk from ideal seen - 1
  std::vector<std::vector<std::size_t>> live(kinds);  // states with room for a kind
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
    // The nodes in the order of some way up between the two.
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

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/ideal_dp.ipp>
#endif
