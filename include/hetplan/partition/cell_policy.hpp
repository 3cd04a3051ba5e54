// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a cell of the search keeps: the door for cell policies, and the three that ship.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <hetplan/core/linkage.hpp>

namespace hetplan::partition {

/// What lies behind a boundary, seen through one port: the two numbers that extend it exactly.
struct tail {
  double reach_s = 0;       ///< D in training: iteration time seen from this stage; Z in inference; the busiest step in generation
  double rest_s = 0;        ///< R in training: what the reductions add; S, the time of one microbatch, otherwise
  std::uint32_t depth = 0;  ///< stages on the longest way to a sink
  std::uint32_t group = 0;  ///< of the stage behind the port; 0 where all pairs of devices are joined alike
  std::uint32_t twin = 0;   ///< the first port that leads to the same stage
};

/// A partial plan: the last blocks of the sequence in stages on devices. Two partial plans are compared only inside
/// one cell (blocks left, devices taken, stages up to where warm-up saturates) and only if whatever is put before
/// them costs both the same.
struct partial_plan {
  tail finished;                                             ///< sources that are placed; in a serial sequence with one port, that port
  double energy_J = 0;                                       ///< dynamic energy so far
  double idle_W = 0;                                         ///< of the devices used: J per second of iteration
  double limit_s = std::numeric_limits<double>::infinity();  ///< the largest response that the energy budgets allow
  double stretch_s = 0;                                      ///< the least response that the busy caps allow
  double rank = 0;                                           ///< no completion scores less
  int stages = 0;
  std::span<const tail> ports = {};

  /// Is this one at least as good, up to a factor 1 + slack, however both are completed?
  ///
  /// Source  safe dominance in (D, R, X, -C); all updates are monotone in each, so nothing better is lost at slack 0.
  [[nodiscard]] bool no_worse_than(const partial_plan& other) const;
  /// The same up to a factor 1 + slack: what may be lost by dropping `other` grows with the number of stages.
  [[nodiscard]] bool no_worse_than(const partial_plan& other, double slack) const;
};

template <class P>
concept has_capacity = requires(const P& p) {
  { p.capacity() } -> std::same_as<std::size_t>;  // a cell keeps so many, those of least rank; >= 1
};
template <class P>
concept covers_partial_plans = requires(const P& p, const partial_plan& kept, const partial_plan& other) {
  { p.covers(kept, other) } -> std::same_as<bool>;  // may `other` be dropped because `kept` is there? pure; then so may all that is worse
};

/// What a cell keeps of the partial plans that reach it.
template <class P>
concept cell_policy = has_capacity<P> && covers_partial_plans<P>;

template <class P>
consteval bool check_cell_policy() {
  static_assert(has_capacity<P>, "cell_policy needs: std::size_t capacity() const");
  static_assert(covers_partial_plans<P>, "cell_policy needs: bool covers(const partial_plan& kept, const partial_plan& other) const");
  return cell_policy<P>;
}

/// Everything: the search is exhaustive, for any objective. For small problems.
struct exhaustive {
  [[nodiscard]] std::size_t capacity() const { return std::numeric_limits<std::size_t>::max(); }
  [[nodiscard]] bool covers(const partial_plan&, const partial_plan&) const { return false; }
};

/// All that safe dominance does not drop: exact, at most times slow.
struct dominance {
  [[nodiscard]] std::size_t capacity() const { return std::numeric_limits<std::size_t>::max(); }
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other); }
};

/// The K of least rank among those that safe dominance does not drop. Source: Dora, section 4.1.
struct top_k {
  int k = 10;
  [[nodiscard]] std::size_t capacity() const;
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other); }
};

static_assert(check_cell_policy<exhaustive>() && check_cell_policy<dominance>() && check_cell_policy<top_k>());

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/cell_policy.ipp>
#endif
