// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/ideals.hpp>

#include <boost/graph/graph_traits.hpp>

namespace hetplan {

namespace detail {

/// Returns a depth-first order: nodes that just became ready come next, so that branches are finished in turn.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> depth_first_order(const std::vector<std::vector<std::size_t>>& successors,
                                                                        bool smallest_first) {
  std::vector<std::size_t> waiting(successors.size(), 0), stack, order;
  for (const auto& targets : successors) {
    for (const std::size_t v : targets) ++waiting[v];
  }
  const auto push = [&](std::vector<std::size_t> ready) {
    std::sort(ready.begin(), ready.end());
    if (smallest_first) std::reverse(ready.begin(), ready.end());  // the node pushed last comes next
    stack.insert(stack.end(), ready.begin(), ready.end());
  };
  std::vector<std::size_t> ready;
  for (std::size_t v = 0; v < successors.size(); ++v) {
    if (waiting[v] == 0) ready.push_back(v);
  }
  push(std::move(ready));
  while (!stack.empty()) {
    const std::size_t node = stack.back();
    stack.pop_back();
    order.push_back(node);
    ready = {};
    for (const std::size_t v : successors[node]) {
      if (--waiting[v] == 0) ready.push_back(v);
    }
    push(std::move(ready));
  }
  return order;
}

}  // namespace detail

HETPLAN_INLINE std::vector<std::vector<std::size_t>> linear_orders(std::size_t n,
                                                                   std::span<const std::pair<std::size_t, std::size_t>> edges) {
  std::vector<std::vector<std::size_t>> successors(n), predecessors(n), orders{topological_order(n, edges)};
  for (const auto& [from, to] : edges) {
    successors[from].push_back(to);
    predecessors[to].push_back(from);
  }
  for (const bool smallest_first : {true, false}) {
    orders.push_back(detail::depth_first_order(successors, smallest_first));
    auto from_sinks = detail::depth_first_order(predecessors, smallest_first);
    std::reverse(from_sinks.begin(), from_sinks.end());
    orders.push_back(std::move(from_sinks));
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    for (std::size_t j = orders.size(); --j > i;) {
      if (orders[i] == orders[j]) orders.erase(orders.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  return orders;
}

HETPLAN_INLINE std::span<const ideal_family::step> ideal_family::steps(std::size_t ideal) const {
  return std::span(steps_).subspan(first_step_[ideal], first_step_[ideal + 1] - first_step_[ideal]);
}

HETPLAN_INLINE void ideal_family::append(std::size_t ideal, std::size_t node) {
  for (std::size_t w = 0; w < words_; ++w) bits_.push_back(bits_[ideal * words_ + w]);
  bits_[bits_.size() - words_ + node / 64] |= std::uint64_t{1} << (node % 64);
}

HETPLAN_INLINE bool ideal_family::is_grown(std::size_t ideal, std::size_t from, std::size_t node) const {
  for (std::size_t w = 0; w < words_; ++w) {
    const std::uint64_t added = w == node / 64 ? std::uint64_t{1} << (node % 64) : 0;
    if (bits_[ideal * words_ + w] != (bits_[from * words_ + w] | added)) return false;
  }
  return true;
}

HETPLAN_INLINE ideal_family prefixes_of(std::span<const std::size_t> order) {
  ideal_family all(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    all.first_step_.push_back(i);
    all.append(i, order[i]);
    all.steps_.push_back({static_cast<std::uint32_t>(order[i]), static_cast<std::uint32_t>(i + 1)});
  }
  all.first_step_.push_back(all.steps_.size());
  all.first_step_.push_back(all.steps_.size());
  return all;
}

}  // namespace hetplan
