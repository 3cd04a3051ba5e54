// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/average_linkage.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace HETPLAN_NAMESPACE::coarsen {

namespace detail {

[[nodiscard]] HETPLAN_INLINE double nine_digits(double v) {
  constexpr int bits = 30;
  int exponent = 0;
  const double mantissa = std::frexp(v, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, bits)), exponent - bits);
}

}  // namespace detail

HETPLAN_INLINE average_linkage::average_linkage(const distance_matrix& distances)
    : size_(distances.size()), sum_(size_ * size_), own_(size_, 0), nearest_(size_, std::numeric_limits<double>::infinity()),
      count_(size_, 1), node_(size_), head_(size_), version_(size_, 0), alive_(size_) {
  std::iota(node_.begin(), node_.end(), std::size_t{0});
  std::iota(head_.begin(), head_.end(), std::size_t{0});
  std::iota(alive_.begin(), alive_.end(), std::uint32_t{0});
  for (std::size_t a = 0; a < size_; ++a) {
    for (std::size_t b = 0; b < size_; ++b) {
      sum_[a * size_ + b] = distances(a, b);
      if (a != b) nearest_[a] = std::min(nearest_[a], distances(a, b));
    }
  }
}

HETPLAN_INLINE double average_linkage::distance(std::size_t a, std::size_t b) const {
  return sum_[a * size_ + b] / (count_[a] * count_[b]);
}

HETPLAN_INLINE double average_linkage::spread(std::size_t a) const {
  return count_[a] == 1 ? 0 : own_[a] / (count_[a] * (count_[a] - 1) / 2);
}

HETPLAN_INLINE bool average_linkage::offer(std::size_t a, std::size_t b, const rule& may) {
  const double d = distance(a, b);
  if (!std::isfinite(d) || !may(d, inner(a), inner(b))) return false;
  heap_.push_back({detail::nine_digits(d), static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), version_[a], version_[b]});
  return true;
}

HETPLAN_INLINE void average_linkage::merge_while(const rule& may) {
  heap_.clear();
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    for (std::size_t j = i + 1; j < alive_.size(); ++j) offer(alive_[i], alive_[j], may);
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const candidate best = heap_.back();
    heap_.pop_back();
    if (best.version_a != version_[best.a] || best.version_b != version_[best.b]) continue;
    join(best.a, best.b);
    for (const std::uint32_t k : alive_) {
      if (k != best.a && offer(std::min(k, best.a), std::max(k, best.a), may)) std::push_heap(heap_.begin(), heap_.end());
    }
  }
}

HETPLAN_INLINE void average_linkage::join(std::size_t a, std::size_t b) {
  merges_.push_back({node_[a], node_[b], distance(a, b)});
  node_[a] = size_ + merges_.size() - 1;
  own_[a] += own_[b] + sum_[a * size_ + b];
  count_[a] += count_[b];
  head_[b] = a;
  ++version_[a];
  ++version_[b];
  alive_.erase(std::find(alive_.begin(), alive_.end(), b));
  for (const std::size_t k : alive_) {
    if (k != a) sum_[k * size_ + a] = sum_[a * size_ + k] += sum_[b * size_ + k];
  }
}

HETPLAN_INLINE std::vector<std::vector<std::size_t>> average_linkage::groups() const {
  std::vector<std::size_t> first(size_), number(size_);
  for (std::size_t i = 0; i < alive_.size(); ++i) number[alive_[i]] = i;
  std::vector<std::vector<std::size_t>> all(alive_.size());
  for (std::size_t i = 0; i < size_; ++i) {
    first[i] = head_[i] == i ? i : first[head_[i]];  // a smaller one, so that is known
    all[number[first[i]]].push_back(i);
  }
  return all;
}

HETPLAN_INLINE std::vector<double> average_linkage::spreads() const {
  std::vector<double> all;
  for (const std::uint32_t g : alive_) all.push_back(spread(g));
  return all;
}

}  // namespace HETPLAN_NAMESPACE::coarsen
