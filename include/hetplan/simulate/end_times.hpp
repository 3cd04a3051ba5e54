// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The earliest of many times that change.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// The ends of numbered flows [s]: as they are while these are few, else in a tournament, where a node has the earlier time of its two
/// children. Changes wait until somebody asks, and where many wait all is played again.
///
/// Complexity   O(1) for a change; for the earliest after k changes the smaller of O(k log flows) and O(flows); O(log flows) for each
///              that is due. Memory O(flows).
/// Determinism  flows that are due come in order of their numbers.
/// Source       textbook (tournament tree).
class end_times {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// One flow more, which never ends yet.
  void add() {
    if (++flows_ > leaves_) grow();
  }
  /// One flow less: the last takes the number of this one.
  void remove(std::uint32_t flow) {
    set(flow, node_[leaves_ + flows_ - 1]);
    set(static_cast<std::uint32_t>(flows_ - 1), never);
    --flows_;
  }
  void set(std::uint32_t flow, double time) {
    node_[leaves_ + flow] = time;
    known_ = false;
    if (played_) changed_.push_back(flow);
  }
  [[nodiscard]] double earliest() {
    if (!known_) play();
    return node_[1];
  }
  /// Appends the flows that end by then, a finite time.
  void find_due(double time, std::vector<std::uint32_t>& due);

 private:
  static constexpr std::size_t few = 32;

  void play();
  void grow();
  void find_due_below(std::size_t node, double time, std::vector<std::uint32_t>& due) const;

  std::size_t flows_ = 0, leaves_ = 1;      ///< leaves: a power of two; those of no flow say never
  std::vector<double> node_{never, never};  ///< below node n are 2 n and 2 n + 1, the leaves last; node 0 is not used
  std::vector<std::uint32_t> changed_;      ///< where played: flows; the nodes above them are out of date
  bool known_ = true;                       ///< the earliest of all
  bool played_ = false;                     ///< the nodes between it and the leaves
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/end_times.ipp>
#endif
