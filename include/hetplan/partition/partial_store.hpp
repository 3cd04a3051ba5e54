// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The table of a search: cells of partial plans, and the final partial plans with links to their parents.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>

namespace hetplan::partition {

/// What lies behind a boundary, as seen through one port: the two numbers that suffice for an exact extension.
struct tail {
  double reach_s = 0;       ///< training: D, iteration time seen from this stage; inference: Z; generation: largest step
  double rest_s = 0;        ///< training: R, added by reductions; otherwise S, time of one microbatch
  std::uint32_t depth = 0;  ///< stages on the longest path to a sink
  std::uint32_t group = 0;  ///< group of the stage behind the port; 0 if all pairs of devices have equal links
  std::uint32_t twin = 0;   ///< first port that leads to the same stage
};

/// A partial plan: the last blocks of the sequence in stages on devices. Two partial plans are comparable only within one cell (blocks
/// left, devices taken, stages up to where warm-up saturates), and only if every extension costs both the same.
struct partial_plan {
  tail finished;                                             ///< placed sources; in a serial sequence with one port, that port
  double energy_J = 0;                                       ///< dynamic energy so far
  double idle_W = 0;                                         ///< idle power of the used devices: J per second of iteration
  double limit_s = std::numeric_limits<double>::infinity();  ///< largest response that the energy budgets allow
  double stretch_s = 0;                                      ///< least response that the busy caps allow
  double rank = 0;                                           ///< lower bound on the score of all completions
  int stages = 0;
  std::span<const tail> ports = {};

  /// Returns true if every completion of this plan is at least as good as the same completion of `other`.
  /// Source  safe dominance in (D, R, X, -C); all updates are monotone in each, so nothing better is lost.
  [[nodiscard]] bool no_worse_than(const partial_plan& other) const;
  /// Returns the same up to a factor 1 + slack. The loss by dropping `other` grows with the number of stages.
  [[nodiscard]] bool no_worse_than(const partial_plan& other, double slack) const;
};

template <class P>
concept has_capacity = requires(const P& p) {
  { p.capacity() } -> std::same_as<std::size_t>;  // number of partial plans that a cell keeps, those of least rank; >= 1
};
template <class P>
concept covers_partial_plans = requires(const P& p, const partial_plan& kept, const partial_plan& other) {
  { p.covers(kept, other) } -> std::same_as<bool>;  // true if `kept` makes `other` superfluous, and with it every plan that is worse; pure
};

/// Rule for the partial plans that a cell of the search keeps.
///
/// * Partial plans are compared only within one cell, and only if their future costs are equal: same blocks left, same devices taken, same
///   number of stages up to where warm-up saturates, and the same groups behind the ports where links differ.
/// * `kept.no_worse_than(other)` is safe: every completion of `kept` is at least as good as the same completion of `other`.
/// * The rank of a partial plan is a lower bound on the score of its completions, so the best come first.
/// * A search with several threads calls the policy concurrently.
///
/// Ships: `dominance` (exact under the estimate), `top_k` (of those, the K of least rank), `exhaustive` (drops nothing, so it works with
/// any `objective`).
template <class P>
concept cell_policy = has_capacity<P> && covers_partial_plans<P>;

template <class P>
consteval bool check_cell_policy() {
  static_assert(has_capacity<P>, "cell_policy needs: std::size_t capacity() const");
  static_assert(covers_partial_plans<P>, "cell_policy needs: bool covers(const partial_plan& kept, const partial_plan& other) const");
  return cell_policy<P>;
}

/// Policy that keeps every partial plan: exhaustive search, for any objective. For small problems.
struct exhaustive {
  [[nodiscard]] std::size_t capacity() const { return std::numeric_limits<std::size_t>::max(); }
  [[nodiscard]] bool covers(const partial_plan&, const partial_plan&) const { return false; }
};

/// Policy that drops only by safe dominance: exact, sometimes slow.
struct dominance {
  [[nodiscard]] std::size_t capacity() const { return std::numeric_limits<std::size_t>::max(); }
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other); }
};

/// Policy that keeps, after safe dominance, the K partial plans of least rank. Source: Dora, section 4.1.
struct top_k {
  int k = 10;
  [[nodiscard]] std::size_t capacity() const;
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other); }
};

static_assert(check_cell_policy<exhaustive>() && check_cell_policy<dominance>() && check_cell_policy<top_k>());

/// A partial plan with a link to its parent. Source: own.
struct partial_node : partial_plan {
  std::uint32_t parent = 0;    ///< index in the store; 0: no stage behind
  std::uint32_t group = 0;     ///< group of the first stage
  std::uint32_t boundary = 0;  ///< where the first stage begins
  int in_flight = 0;           ///< microbatches that the first stage holds
};

/// Pool of port lists that reuses those of dropped partial plans. Not thread-safe.
class port_lists {
 public:
  [[nodiscard]] std::span<const tail> own(std::span<const tail> ports) {
    if (free_.size() <= ports.size()) free_.resize(ports.size() + 1);
    auto& free = free_[ports.size()];
    if (free.empty()) {
      lists_.push_back(std::make_unique<tail[]>(ports.size()));
      free.push_back(lists_.back().get());
    }
    tail* mine = free.back();
    free.pop_back();
    std::copy(ports.begin(), ports.end(), mine);
    return {mine, ports.size()};
  }
  void release(std::span<const tail> ports) {
    if (!ports.empty()) free_[ports.size()].push_back(const_cast<tail*>(ports.data()));  // memory of own(), not const
  }
  /// Returns the number of lists ever allocated.
  [[nodiscard]] std::size_t size() const { return lists_.size(); }

 private:
  std::vector<std::unique_ptr<tail[]>> lists_;
  std::vector<std::vector<tail*>> free_;  ///< free lists by length
};

/// Table of cells, which fill according to a policy until they are closed, and never change afterwards. Threads may fill distinct cells.
///
/// Complexity   keep: O(partial plans of the cell x ports).
/// Determinism  equal ranks keep their order of arrival.
/// Source       Dora, section 4.1: a state of the recurrence keeps plans, here several (its Algorithm 1 takes the top K). Own: dominance
///              among partial plans with equal extension costs.
template <cell_policy Policy>
class partial_store {
 public:
  partial_store(const Policy& policy, std::size_t cells) : policy_(policy), capacity_(policy.capacity()), cells_(cells) {
    closed_.push_back({});  // the empty plan
  }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// Returns the bar of a cell: a partial plan is rejected unless its rank is below.
  [[nodiscard]] double bar(std::size_t cell) const { return cells_[cell].bar; }
  [[nodiscard]] const partial_node& operator[](std::size_t closed) const { return closed_[closed]; }

  /// Returns true if `other` may be dropped because `kept` is in its cell.
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const {
    return policy_.covers(kept, other) && comparable(kept, other);
  }
  /// Returns true if a partial plan of the cell covers this one.
  [[nodiscard]] bool covered(std::size_t cell, const partial_plan& p) const {
    const auto& c = cells_[cell].kept;
    return std::any_of(c.begin(), c.end(), [&](const partial_node& n) { return covers(n, p); });
  }
  /// Puts a partial plan into a cell unless it is covered, and drops those that it covers.
  ///
  /// @param lists  the same pool for all calls with this cell.
  void keep(const partial_node& next, std::size_t cell, port_lists& lists) {
    if (covered(cell, next)) return;
    auto& c = cells_[cell].kept;
    std::erase_if(c, [&](const partial_node& n) {
      const bool gone = covers(next, n);
      if (gone) lists.release(n.ports);
      return gone;
    });
    if (c.size() >= capacity_) {
      lists.release(c.back().ports);
      c.pop_back();
    }
    const auto at = std::upper_bound(c.begin(), c.end(), next.rank, [](double rank, const partial_node& n) { return rank < n.rank; });
    partial_node& mine = *c.insert(at, next);
    if (!next.ports.empty()) mine.ports = lists.own(next.ports);
    cells_[cell].bar = c.size() < capacity_ ? std::numeric_limits<double>::infinity() : c.back().rank;
  }
  [[nodiscard]] const std::vector<partial_node>& cell(std::size_t c) const { return cells_[c].kept; }
  /// Moves a cell's partial plans, by rank, to the closed ones. Returns their range [first, second) there.
  std::pair<std::size_t, std::size_t> close(std::size_t cell) {
    const std::size_t begin = closed_.size();
    auto& c = cells_[cell].kept;
    closed_.insert(closed_.end(), c.begin(), c.end());
    std::vector<partial_node>().swap(c);
    return {begin, closed_.size()};
  }

 private:
  /// Returns true if every extension costs both the same.
  [[nodiscard]] static bool comparable(const partial_plan& x, const partial_plan& y) {
    if (x.finished.group != y.finished.group) return false;
    for (std::size_t i = 0; i < x.ports.size(); ++i) {
      const tail &s = x.ports[i], &t = y.ports[i];
      if (s.depth != t.depth || s.group != t.group || s.twin != t.twin) return false;
    }
    return true;
  }

  /// A cell. Bar and plans are adjacent for locality: most reads use both, and the cells exceed the cache.
  struct filling {
    std::vector<partial_node> kept;  ///< by rank
    double bar = std::numeric_limits<double>::infinity();
  };

  const Policy& policy_;
  std::size_t capacity_;
  std::vector<filling> cells_;
  std::vector<partial_node> closed_;
};

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/partial_store.ipp>
#endif
