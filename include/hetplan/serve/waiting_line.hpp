// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests that wait, in order: a ring buffer of numbers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <hetplan/core/prefetch.hpp>
#include <hetplan/serve/ended_request.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// A queue without allocation once it has grown, in 24 bytes: a cloud has hundreds of thousands. Its room is a power of two and never
/// shrinks.
/// Source  ours.
class waiting_line {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// The k-th from the front; requires k < size().
  [[nodiscard]] request_number operator[](std::size_t k) const { return slots_[(front_ + k) & (room_ - 1)]; }

  void push(request_number r) {
    if (size_ == room_) grow();
    slots_[(front_ + size_) & (room_ - 1)] = r;
    ++size_;
  }
  void pop(std::size_t count = 1) {
    front_ = static_cast<std::uint32_t>((front_ + count) & (room_ - 1));
    size_ -= static_cast<std::uint32_t>(count);
  }

  /// Everybody, in order; nobody is left.
  [[nodiscard]] std::vector<request_number> take_all() {
    std::vector<request_number> all(size_);
    for (std::size_t k = 0; k < size_; ++k) all[k] = (*this)[k];
    front_ = size_ = 0;
    return all;
  }

  /// Fetches both ends into the cache.
  void fetch() const {
    prefetch(slots_.get() + front_);
    prefetch(slots_.get() + ((front_ + size_) & (room_ - 1)));
  }

 private:
  void grow() {
    const std::uint32_t room = room_ == 0 ? 8 : 2 * room_;
    auto larger = std::make_unique<request_number[]>(room);
    for (std::size_t k = 0; k < size_; ++k) larger[k] = (*this)[k];
    slots_ = std::move(larger);
    room_ = room;
    front_ = 0;
  }

  std::unique_ptr<request_number[]> slots_;
  std::uint32_t front_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::serve
