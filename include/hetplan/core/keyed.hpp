// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Values looked up by keys of integers, ids, enumerators or numbers. One hash table serves every kind of key, so that another kind of
/// lookup costs little to compile; std::map has thousands of declarations for each.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Part of a key. Parts from one type are equal and ordered as the values are; integers from 2^63 on come before the others.
struct key_part {
  std::int64_t value = 0;

  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  constexpr key_part(T v) : value(static_cast<std::int64_t>(v)) {}
  template <class Tag>
  constexpr key_part(id<Tag> v) : value(v.value) {}
  /// @param v  any number but NaN; -0.0 equals 0.0.
  constexpr key_part(double v) : value(std::bit_cast<std::int64_t>(v + 0.0)) {
    if (value < 0) value ^= std::int64_t{0x7fff'ffff'ffff'ffff};  // a larger magnitude comes first
  }
};

using key_parts = std::vector<key_part>;

/// Returns a text as parts of a key, several characters in each, in the order of std::string.
[[nodiscard]] key_parts parts_of(std::string_view text);

/// Returns the elements of a range as parts of a key.
template <class R>
  requires(!std::is_convertible_v<const R&, std::string_view>)
[[nodiscard]] key_parts parts_of(const R& range) {
  return key_parts(range.begin(), range.end());
}

/// Key of any length, which must live as long as the call that it is passed to.
class key_view : public std::span<const key_part> {
 public:
  key_view(const key_part* parts, std::size_t size) : std::span<const key_part>(parts, size) {}
  key_view(std::initializer_list<key_part> parts) : key_view(parts.begin(), parts.size()) {}
  key_view(const key_parts& parts) : key_view(parts.data(), parts.size()) {}
};

/// Numbers 0, 1, 2, ... of at most 2^32 - 2 keys, in order of first appearance. Complexity of a lookup: the key's length, on average.
class key_index {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// Returns the key's number; `none` if it has none yet.
  [[nodiscard]] std::size_t find(key_view key) const;
  [[nodiscard]] bool contains(key_view key) const { return find(key) != none; }
  /// Returns the key's number, which is a new one if need be.
  std::size_t number(key_view key);
  /// Returns true if the key is new.
  bool insert(key_view key);
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  /// Returns a view that the next new key ends.
  [[nodiscard]] key_view key_of(std::size_t number) const;
  /// Returns the numbers of all keys in lexicographic order of the keys, which is that of std::map.
  /// Complexity  O(n log n) comparisons of keys.
  [[nodiscard]] std::vector<std::size_t> in_order() const;

 private:
  /// Returns the slot that has the key or is free for it.
  [[nodiscard]] std::size_t slot_of(key_view key) const;
  void grow();

  key_parts parts_;                   ///< of all keys, one after the other
  std::vector<std::size_t> ends_;     ///< by number: end of its parts
  std::vector<std::uint32_t> slots_;  ///< number + 1; 0: free. A power of two of them, at most half of them taken.
};

/// Values by key. Unlike those of std::map, references to values end with the next insertion.
template <class V>
class keyed {
 public:
  /// Returns null if the key has no value.
  [[nodiscard]] const V* find(key_view key) const {
    const std::size_t i = keys_.find(key);
    return i == key_index::none ? nullptr : &values_[i];
  }
  [[nodiscard]] V* find(key_view key) { return const_cast<V*>(std::as_const(*this).find(key)); }
  [[nodiscard]] bool contains(key_view key) const { return keys_.contains(key); }
  /// Returns the key's value, which is a new V{} if need be.
  V& operator[](key_view key) {
    const std::size_t i = keys_.number(key);
    if (i == values_.size()) values_.emplace_back();
    return values_[i];
  }
  /// Returns true if the key is new; else it keeps its value.
  bool insert(key_view key, V value) {
    if (!keys_.insert(key)) return false;
    values_.push_back(std::move(value));
    return true;
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }

  /// The keys' numbers, by which the values stand; the vector's size must not change.
  [[nodiscard]] const key_index& keys() const { return keys_; }
  [[nodiscard]] std::vector<V>& values() { return values_; }
  [[nodiscard]] const std::vector<V>& values() const { return values_; }

 private:
  key_index keys_;
  std::vector<V> values_;
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/keyed.ipp>
#endif
