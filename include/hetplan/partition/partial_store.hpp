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
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>
#include <hetplan/estimate/step_law.hpp>

namespace hetplan::partition {

/// What lies behind a boundary, as seen through one port: the numbers that suffice for an exact extension.
struct tail : pipeline_tail {  ///< training: D and R; inference: Z and S; generation: see generation_pipeline
  std::uint32_t depth = 0;     ///< stages on the longest path to a sink
  std::uint32_t group = 0;     ///< group of the stage behind the port; 0 if all pairs of devices have equal links
  std::uint32_t twin = 0;      ///< first port that leads to the same stage
};

/// A partial plan: the last blocks of the sequence in stages on devices. Two partial plans are comparable only within one cell (blocks
/// left, devices taken, stages up to where warm-up saturates), and only if every extension costs both the same.
struct partial_plan {
  tail finished = {};                                        ///< placed sources; in a serial sequence with one port, that port
  double energy_J = 0;                                       ///< dynamic energy so far
  double idle_W = 0;                                         ///< idle power of the used devices: J per second of the run
  double limit_s = std::numeric_limits<double>::infinity();  ///< longest run that the energy budgets allow
  double stretch_s = 0;                                      ///< shortest run that the busy caps allow
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

/// Policies whose `covers` is no_worse_than. Cells are sorted by rank, which never falls as a partial plan gets worse, so a partial plan
/// needs comparing only with those of less rank that may cover it, and those of more rank that it may cover.
template <class P>
inline constexpr bool drops_by_dominance = std::same_as<P, dominance> || std::same_as<P, top_k>;

/// What every search compares of a partial plan, and a link to its parent. It is small because the cells of a search exceed the cache.
/// Source: own.
struct partial_node {
  double rank = 0;
  pipeline_tail tail = {};  ///< of partial_plan::finished
  std::uint32_t link = 0;   ///< partial_plan::finished.group
  int stages = 0;
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
  /// @param whole  true if partial plans differ in more than their nodes tell: in energy, limits or ports.
  partial_store(const Policy& policy, std::size_t cells, bool whole)
      : policy_(policy), capacity_(policy.capacity()), whole_(whole || !drops_by_dominance<Policy>), cells_(cells),
        plans_(whole_ ? cells : 0) {
    closed_.push_back({});  // the empty plan
    if (whole_) closed_plans_.push_back({});
  }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// Returns true if the whole partial plans are kept beside their nodes. If not, nothing asks for them.
  [[nodiscard]] bool whole() const { return whole_; }
  /// Returns the bar of a cell: a partial plan is rejected unless its rank is below.
  [[nodiscard]] double bar(std::size_t cell) const { return cells_[cell].bar; }
  [[nodiscard]] const partial_node& operator[](std::size_t closed) const { return closed_[closed]; }
  [[nodiscard]] const partial_plan& plan(std::size_t closed) const { return closed_plans_[closed]; }

  /// Returns true if `other` may be dropped because `kept` is in its cell. The plans are those of the nodes; null unless whole().
  [[nodiscard]] bool covers(const partial_node& kept, const partial_plan* kept_plan, const partial_node& other,
                            const partial_plan* other_plan) const {
    if constexpr (drops_by_dominance<Policy>) {
      if (!no_longer(kept.tail, other.tail) || kept.stages > other.stages || kept.link != other.link) return false;
      if (!whole_) return true;
    }
    return policy_.covers(*kept_plan, *other_plan) && comparable(*kept_plan, *other_plan);
  }
  /// Returns true if a partial plan of the cell covers this one, whose rank is at most that of the node.
  [[nodiscard]] bool covered(std::size_t cell, const partial_node& n, const partial_plan* plan) const {
    const auto& nodes = cells_[cell].nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (drops_by_dominance<Policy> && nodes[i].rank > n.rank) return false;
      if (covers(nodes[i], plan_in(cell, i), n, plan)) return true;
    }
    return false;
  }
  /// Puts a partial plan into a cell unless it is covered, and drops those that it covers.
  ///
  /// @param lists  the same pool for all calls with this cell.
  void keep(const partial_node& next, const partial_plan* plan, std::size_t cell, port_lists& lists) {
    auto& nodes = cells_[cell].nodes;
    std::size_t first = 0;  // those before it are not covered
    if constexpr (drops_by_dominance<Policy>) {
      std::size_t i = 0;
      for (; i < nodes.size() && nodes[i].rank <= next.rank; ++i) {
        if (covers(nodes[i], plan_in(cell, i), next, plan)) return;
        if (nodes[i].rank < next.rank) first = i + 1;
      }
    } else {
      if (covered(cell, next, plan)) return;
    }
    std::size_t left = first;
    for (std::size_t i = first; i < nodes.size(); ++i) {
      if (covers(next, plan, nodes[i], plan_in(cell, i))) drop_ports(cell, i, lists);
      else move_to(cell, i, left++);
    }
    if (left >= capacity_) drop_ports(cell, --left, lists);
    std::size_t at = left;
    while (at > 0 && next.rank < nodes[at - 1].rank) --at;
    if (nodes.capacity() == 0) nodes.reserve(std::min<std::size_t>(capacity_, 16));
    nodes.resize(left);
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(at), next);
    if (whole_) {
      auto& plans = plans_[cell];
      plans.resize(left);
      partial_plan& mine = *plans.insert(plans.begin() + static_cast<std::ptrdiff_t>(at), *plan);
      if (!mine.ports.empty()) mine.ports = lists.own(mine.ports);
    }
    cells_[cell].bar = nodes.size() < capacity_ ? std::numeric_limits<double>::infinity() : nodes.back().rank;
  }
  [[nodiscard]] const std::vector<partial_node>& cell(std::size_t c) const { return cells_[c].nodes; }
  /// Returns a cell's partial plans, by rank.
  [[nodiscard]] std::vector<partial_plan> plans_of(std::size_t cell) const {
    if (whole_) return plans_[cell];
    std::vector<partial_plan> plans;
    for (const partial_node& n : cells_[cell].nodes)
      plans.push_back({.finished = {n.tail, 0, n.link, 0}, .rank = n.rank, .stages = n.stages});
    return plans;
  }
  /// Moves a cell's partial plans, by rank, to the closed ones. Returns their range [first, second) there.
  std::pair<std::size_t, std::size_t> close(std::size_t cell) {
    const auto append = [](auto& all, auto& some) {
      all.insert(all.end(), some.begin(), some.end());
      std::remove_reference_t<decltype(some)>().swap(some);
    };
    const std::size_t begin = closed_.size();
    append(closed_, cells_[cell].nodes);
    if (whole_) append(closed_plans_, plans_[cell]);
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
  [[nodiscard]] const partial_plan* plan_in(std::size_t cell, std::size_t i) const { return whole_ ? &plans_[cell][i] : nullptr; }
  void drop_ports(std::size_t cell, std::size_t i, port_lists& lists) {
    if (whole_) lists.release(plans_[cell][i].ports);
  }
  void move_to(std::size_t cell, std::size_t from, std::size_t to) {
    if (from == to) return;
    cells_[cell].nodes[to] = cells_[cell].nodes[from];
    if (whole_) plans_[cell][to] = plans_[cell][from];
  }

  /// A cell. Bar and nodes are adjacent for locality: most reads use both.
  struct filling {
    std::vector<partial_node> nodes;  ///< by rank
    double bar = std::numeric_limits<double>::infinity();
  };

  const Policy& policy_;
  std::size_t capacity_;
  bool whole_;
  std::vector<filling> cells_;
  std::vector<std::vector<partial_plan>> plans_;  ///< by cell, those of its nodes; empty unless whole
  std::vector<partial_node> closed_;
  std::vector<partial_plan> closed_plans_;
};

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/partial_store.ipp>
#endif
