// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A priority queue with the least item first: events by time, then by the key that breaks ties.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace hetplan {

/// A queue of items with operator>, least first. An event is compared by its time and then by a key of its own, so that the order does
/// not depend on when it was pushed.
/// Complexity  O(log n) to push and pop, O(1) for the first.
template <class Item>
class min_queue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// Requires an item.
  [[nodiscard]] const Item& first() const { return heap_.front(); }

  void push(Item item) {
    heap_.push_back(std::move(item));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  /// Removes and returns the first item. Requires one.
  Item pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    Item first = std::move(heap_.back());
    heap_.pop_back();
    return first;
  }
  void clear() { heap_.clear(); }

  /// Iterates over all items in no particular order.
  [[nodiscard]] auto begin() const { return heap_.begin(); }
  [[nodiscard]] auto end() const { return heap_.end(); }

 private:
  std::vector<Item> heap_;
};

}  // namespace hetplan
