// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests that wait, in order: a ring buffer of numbers.

#include <cstddef>
#include <vector>

#include <hetplan/serve/ended_request.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// A queue without allocation once it has grown; its memory is a power of two, and never shrinks.
class waiting_line {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// The k-th from the front; requires k < size().
  [[nodiscard]] request_number operator[](std::size_t k) const { return slots_[(front_ + k) & (slots_.size() - 1)]; }

  void push(request_number r) {
    if (size_ == slots_.size()) grow();
    slots_[(front_ + size_) & (slots_.size() - 1)] = r;
    ++size_;
  }
  void pop(std::size_t count = 1) {
    front_ = (front_ + count) & (slots_.size() - 1);
    size_ -= count;
  }

  /// Everybody, in order; nobody is left.
  [[nodiscard]] std::vector<request_number> take_all() {
    std::vector<request_number> all(size_);
    for (std::size_t k = 0; k < size_; ++k) all[k] = (*this)[k];
    front_ = size_ = 0;
    return all;
  }

 private:
  void grow() {
    std::vector<request_number> larger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::size_t k = 0; k < size_; ++k) larger[k] = (*this)[k];
    slots_.swap(larger);
    front_ = 0;
  }

  std::vector<request_number> slots_;
  std::size_t front_ = 0;
  std::size_t size_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::serve
