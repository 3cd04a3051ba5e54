// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transfers that wait until what they hold alone is free: two ports, or the resources of a route.

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include <hetplan/simulate/network_policy.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// Whose turn it is among those that wait for the same: smaller first. A reduction has no microbatch of its own and comes after
/// all of them; of a microbatch's gathers and scatters those of earlier units come first, gathers before scatters.  Source: semantics,
/// section 6 (`exclusive`).
class transfer_order {
 public:
  explicit transfer_order(const tasks::task_graph& g) : g_(&g) {}
  [[nodiscard]] auto key(std::uint32_t i) const {
    const tasks::transfer& t = g_->transfers[i];
    const bool reduction = t.kind == transfer_kind::sync;
    return std::tuple(t.priority, reduction, reduction ? 0 : t.microbatch, t.unit, t.kind == transfer_kind::scatter, t.from_stage, t.from,
                      t.to_stage, t.to, t.token, i);
  }
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const { return key(a) < key(b); }
  /// For priority_queue, which keeps the largest on top.
  [[nodiscard]] bool operator()(std::uint32_t a, std::uint32_t b) const { return before(b, a); }

 private:
  const tasks::task_graph* g_;
};

/// Grants waiting transfers what they need, in their turn; those for which all is free may pass others.
///
/// Transfers that need the same wait in one line, so that only the first of each line is ever looked at, and only after
/// something that the line needs was freed.
/// Complexity  O(log) per transfer, and per grant O(lines that need something that was freed or came).
class grant_queue {
 public:
  grant_queue(const tasks::task_graph& g, route_access access, std::size_t resources);

  /// Does anything wait under this access?
  [[nodiscard]] static bool is_used(route_access a) { return a == route_access::exclusive_ports || a == route_access::exclusive_links; }

  void add(std::uint32_t t);
  /// What a granted transfer held is free again.
  void release(std::uint32_t t);
  /// Calls start(transfer) for all that can be granted now. True: there were some.
  template <class Start>
  bool grant(Start&& start) {
    bool any = false;
    while (true) {
      std::erase_if(awake_, [&](std::size_t l) {
        const bool can = !lines_[l].waiting.empty() &&
                         std::all_of(lines_[l].needs.begin(), lines_[l].needs.end(), [&](std::uint32_t n) { return taken_[n] == 0; });
        if (!can) lines_[l].is_awake = false;
        return !can;
      });
      if (awake_.empty()) return any;
      line& next = lines_[*std::min_element(awake_.begin(), awake_.end(), [&](std::size_t a, std::size_t b) {
        return order_.before(lines_[a].waiting.top(), lines_[b].waiting.top());
      })];
      const std::uint32_t t = next.waiting.top();
      next.waiting.pop();
      for (const std::uint32_t n : next.needs) taken_[n] = 1;
      start(t);
      any = true;
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  using waiting_line = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, transfer_order>;
  struct line {
    std::vector<std::uint32_t> needs;
    waiting_line waiting;
    bool is_awake = false;
  };

  void wake(std::size_t l);

  /// What a transfer has to itself: its ports (out by sender, then in by receiver), or the resources of its route.
  [[nodiscard]] std::vector<std::uint32_t> needs_of(const tasks::transfer& t) const;

  [[nodiscard]] std::size_t line_of(std::uint32_t t);

  const tasks::task_graph* g_;
  bool ports_;
  transfer_order order_;
  std::map<std::vector<std::uint32_t>, std::size_t> lines_by_needs_;
  std::vector<std::uint32_t> line_of_transfer_;  ///< as far as known
  std::vector<line> lines_;
  std::vector<std::vector<std::size_t>> needed_by_;  ///< lines by port or resource
  std::vector<char> taken_;                          ///< by port or resource
  std::vector<std::size_t> awake_;                   ///< lines that may have something to grant
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/grant_queue.ipp>
#endif
