// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a part of a graph costs the device that it is on: the door for loads of ideal_dp.

#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::place {

/// The load of one part, which a search grows node by node and takes back in reverse order; it begins empty. Kinds of device
/// are numbered 0, 1, ... A part that a kind cannot bear has infinite load there, and so has every larger part.
///
/// Source  Tarnawski et al., NeurIPS 2020, section 3, where it is one formula; ours: a door for any load.
template <class L>
concept part_load = requires(L& l, const L& c, std::size_t node, std::size_t kind) {
  l.add(node);
  l.remove(node);                                  // undoes the last add
  { c.load(kind) } -> std::same_as<double>;        // of the part as it is, >= 0
  { c.work(node, kind) } -> std::same_as<double>;  // >= 0: a part's load is at least the sum of its nodes' work; 0 will do
};

template <class L>
consteval bool check_part_load() {
  static_assert(part_load<L>,
                "part_load needs: add(std::size_t node), remove(std::size_t node), double load(std::size_t kind) const, "
                "double work(std::size_t node, std::size_t kind) const");
  return part_load<L>;
}

/// Nothing but work: a part's load is the sum over its nodes.
class work_load {
 public:
  /// @param work  by kind, then node; >= 0, infinite where a node cannot be on a kind.
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
  std::vector<std::vector<double>> sums_;  ///< after each add: taking back leaves no rounding behind
};

static_assert(check_part_load<work_load>());

}  // namespace HETPLAN_NAMESPACE::place
