// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/keyed.hpp>

#include <algorithm>
#include <numeric>

#include <hetplan/core/version.hpp>

namespace hetplan {

HETPLAN_INLINE key_parts parts_of(std::string_view text) {
  constexpr std::size_t most = 7;
  key_parts parts;
  for (; !text.empty(); text.remove_prefix(std::min(most, text.size()))) {
    std::int64_t part = 0;
    for (std::size_t i = 0; i < most; ++i) part = part << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
    parts.emplace_back(part << 3 | static_cast<std::int64_t>(std::min(most, text.size())));  // a prefix comes first
  }
  return parts;
}

HETPLAN_INLINE std::size_t key_index::find(key_view key) const { return slots_.empty() ? none : std::size_t{slots_[slot_of(key)]} - 1; }

HETPLAN_INLINE std::size_t key_index::number(key_view key) {
  if (2 * (size() + 1) > slots_.size()) grow();
  std::uint32_t& slot = slots_[slot_of(key)];
  if (slot == 0) {
    parts_.insert(parts_.end(), key.begin(), key.end());
    ends_.push_back(parts_.size());
    slot = static_cast<std::uint32_t>(size());
  }
  return slot - 1;
}

HETPLAN_INLINE bool key_index::insert(key_view key) {
  const std::size_t before = size();
  return number(key) == before;
}

HETPLAN_INLINE key_view key_index::key_of(std::size_t number) const {
  const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
  return {parts_.data() + begin, ends_[number] - begin};
}

HETPLAN_INLINE std::vector<std::size_t> key_index::in_order() const {
  std::vector<std::size_t> numbers(size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::sort(numbers.begin(), numbers.end(), [&](std::size_t i, std::size_t j) {
    const key_view a = key_of(i), b = key_of(j);
    for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
      if (a[k].value != b[k].value) return a[k].value < b[k].value;
    }
    return a.size() < b.size();
  });
  return numbers;
}

HETPLAN_INLINE std::size_t key_index::slot_of(key_view key) const {
  std::uint64_t hash = key.size();
  for (const key_part& p : key) {
    hash = (hash ^ static_cast<std::uint64_t>(p.value)) * 0x9e37'79b9'7f4a'7c15U;
    hash ^= hash >> 32;
  }
  const std::size_t last = slots_.size() - 1;
  for (std::size_t slot = hash & last;; slot = (slot + 1) & last) {
    if (slots_[slot] == 0) return slot;
    const key_view other = key_of(slots_[slot] - 1);
    std::size_t k = 0;
    if (other.size() != key.size()) continue;
    while (k < key.size() && other[k].value == key[k].value) ++k;
    if (k == key.size()) return slot;
  }
}

HETPLAN_INLINE void key_index::grow() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), 0);
  for (std::size_t i = 0; i < size(); ++i) slots_[slot_of(key_of(i))] = static_cast<std::uint32_t>(i + 1);
}

}  // namespace hetplan
