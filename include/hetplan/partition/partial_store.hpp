// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The table of a search: cells of partial plans, and the final ones with the way back to their parts.

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

// What a cell of the search keeps: the door for cell policies, and the three that ship.

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

/// What a cell of the search keeps of the partial plans that reach it.
///
/// * Only partial plans of one cell whose future costs are equal are compared: same blocks left, same devices taken, as many stages up to
///   where warm-up saturates, and the same groups behind the ports where links differ.
/// * kept.no_worse_than(other) is safe: whatever is put before them, `kept` ends no worse.
/// * The rank is a score that no completion beats, so the best come first.
/// * Called from several threads at once where a search has threads.
///
/// Ships: `dominance` (exact under the estimate), `top_k` (the K of least rank among those), `exhaustive` (drops nothing, and so takes
/// any `objective`).
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

/// A partial plan that knows what it was made from. Source: own.
struct partial_node : partial_plan {
  std::uint32_t parent = 0;    ///< in the store; 0: nothing is behind this stage
  std::uint32_t group = 0;     ///< of its first stage
  std::uint32_t boundary = 0;  ///< where it begins
  int in_flight = 0;           ///< microbatches that its first stage holds
};

/// Copies of lists of ports. Those of dropped partial plans serve others. Not for two threads at once.
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
    if (!ports.empty()) free_[ports.size()].push_back(const_cast<tail*>(ports.data()));  // from own(), which made it
  }
  /// Lists that were ever allocated.
  [[nodiscard]] std::size_t size() const { return lists_.size(); }

 private:
  std::vector<std::unique_ptr<tail[]>> lists_;
  std::vector<std::vector<tail*>> free_;  ///< lists of dropped partial plans, by length
};

/// Cells fill as a policy says until they are closed; closed ones are never touched again.
/// Several threads may fill cells, each its own.
///
/// Complexity   keep: O(partial plans of the cell x ports).
/// Determinism  equal ranks stay in the order in which they came.
/// Source       Dora, section 4.1: a state of the recurrence keeps plans, here several (its Algorithm 1 takes the top K).
///              Own: dominance among those that whatever is put before them costs the same.
template <cell_policy Policy>
class partial_store {
 public:
  partial_store(const Policy& policy, std::size_t cells) : policy_(policy), capacity_(policy.capacity()), cells_(cells) {
    closed_.push_back({});  // nothing placed yet
  }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// A partial plan whose rank is not below has no place in the cell.
  [[nodiscard]] double bar(std::size_t cell) const { return cells_[cell].bar; }
  [[nodiscard]] const partial_node& operator[](std::size_t closed) const { return closed_[closed]; }

  /// May a partial plan be dropped where another is kept in its cell?
  [[nodiscard]] bool covers(const partial_plan& kept, const partial_plan& other) const {
    return policy_.covers(kept, other) && comparable(kept, other);
  }
  /// Is there a partial plan in the cell that covers this one?
  [[nodiscard]] bool covered(std::size_t cell, const partial_plan& p) const {
    const auto& c = cells_[cell].kept;
    return std::any_of(c.begin(), c.end(), [&](const partial_node& n) { return covers(n, p); });
  }
  /// Puts a partial plan into a cell unless it is covered, and drops what it covers.
  ///
  /// @param lists  the same for all that a cell ever keeps.
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
  /// Moves a cell's partial plans, by rank, to their final place: [first, second) of the closed ones.
  std::pair<std::size_t, std::size_t> close(std::size_t cell) {
    const std::size_t begin = closed_.size();
    auto& c = cells_[cell].kept;
    closed_.insert(closed_.end(), c.begin(), c.end());
    std::vector<partial_node>().swap(c);
    return {begin, closed_.size()};
  }

 private:
  /// Does whatever is put before them cost both the same?
  [[nodiscard]] static bool comparable(const partial_plan& x, const partial_plan& y) {
    if (x.finished.group != y.finished.group) return false;
    for (std::size_t i = 0; i < x.ports.size(); ++i) {
      const tail &s = x.ports[i], &t = y.ports[i];
      if (s.depth != t.depth || s.group != t.group || s.twin != t.twin) return false;
    }
    return true;
  }

  /// Bar and plans side by side: who reads one mostly reads the other next, and there are too many for a cache.
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
