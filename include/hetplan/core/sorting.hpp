// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stable sorts for code that runs seldom: one sort, of indices, is compiled for all types and comparisons. Each takes O(n log n) indirect
/// calls and O(n) memory.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// A reference to a comparison of indices, which must outlive the reference.
class index_comparison {
 public:
  template <class Less>
  index_comparison(const Less& less)  // NOLINT(google-explicit-constructor): comparisons convert
      : less_(&less), call_([](const void* f, std::size_t a, std::size_t b) -> bool { return (*static_cast<const Less*>(f))(a, b); }) {}

  bool operator()(std::size_t a, std::size_t b) const { return call_(less_, a, b); }

 private:
  const void* less_;
  bool (*call_)(const void*, std::size_t, std::size_t);
};

/// Returns 0, ..., n - 1 in ascending order; equal ones keep their order.
[[nodiscard]] std::vector<std::size_t> sorted_indices(std::size_t n, index_comparison less);

/// Sorts in ascending order; equal elements keep their order.
template <class T, class Less = std::less<>>
void sort_stably(std::vector<T>& all, const Less& less = {}) {
  std::vector<std::size_t> from = sorted_indices(all.size(), [&](std::size_t a, std::size_t b) { return less(all[a], all[b]); });
  for (std::size_t first = 0; first < all.size(); ++first) {  // along each cycle of the permutation
    for (std::size_t to = first, next; (next = std::exchange(from[to], to)) != first; to = next) std::swap(all[to], all[next]);
  }
}

/// Sorts, and keeps one of each set of equal elements.
template <class T>
void sort_distinct(std::vector<T>& all) {
  sort_stably(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

/// Sorts by `key`, a function or a member, in ascending order; elements of equal keys keep their order.
template <class T, class Key>
void sort_by(std::vector<T>& all, const Key& key) {
  sort_stably(all, [&](const T& a, const T& b) { return std::invoke(key, a) < std::invoke(key, b); });
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/sorting.ipp>
#endif
