// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/ideals.hpp>

#include <boost/graph/graph_traits.hpp>

namespace hetplan {

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
