// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How full the devices are while operators are placed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

/// Bytes on each device: what its operators hold, a tied tensor once, and what the largest of them works with: only one runs at a time.
///
/// A sum of many bytes is exact where it is a whole number below 2^53, in any order; elsewhere capacities have a little slack
/// (placement_table::capacity_bytes).
/// Complexity  fits: O(1). add, remove: O(log of the device's operators), and the sizes behind one move.
/// Source      Moirai, eq. 5. Deviations: m_i is split into what is held and what is only needed while an operator runs.
class device_memory {
 public:
  explicit device_memory(const placement_table& t)
      : table_(&t), held_(t.devices(), 0), working_(t.devices()), holders_(t.tied().size() * t.devices(), 0) {}

  /// Would the operator fit beside what is there? By the byte: a full device is full.
  [[nodiscard]] bool fits(std::size_t op, std::size_t device) const { return bytes_with(op, device) <= table_->capacity_bytes(device); }
  [[nodiscard]] double bytes_with(std::size_t op, std::size_t device) const {
    return held_[device] + added_bytes(op, device) + std::max(largest_working(device), table_->working_bytes(op));
  }
  /// What the device would hold more with an operator that is not there, whatever it works with: tied tensors may be there already.
  [[nodiscard]] double added_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 0); }
  /// What the device would hold less without one of its operators: tied tensors may stay.
  [[nodiscard]] double freed_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 1); }
  [[nodiscard]] double bytes(std::size_t device) const { return held_[device] + largest_working(device); }
  /// What is left of a device's capacity; negative: it is over it.
  [[nodiscard]] double free_bytes(std::size_t device) const { return table_->capacity_bytes(device) - bytes(device); }

  void add(std::size_t op, std::size_t device) {
    held_[device] += added_bytes(op, device);
    for (const std::uint32_t x : table_->tied_of(op)) ++holders_[x * held_.size() + device];
    if (const double w = table_->working_bytes(op); w > 0) {
      auto& all = working_[device];
      all.insert(std::upper_bound(all.begin(), all.end(), w), w);
    }
  }
  void remove(std::size_t op, std::size_t device) {
    held_[device] -= freed_bytes(op, device);
    for (const std::uint32_t x : table_->tied_of(op)) --holders_[x * held_.size() + device];
    if (const double w = table_->working_bytes(op); w > 0) {
      auto& all = working_[device];
      all.erase(std::lower_bound(all.begin(), all.end(), w));
    }
  }

 private:
  /// Of an operator's bytes, those of tied tensors that so many operators of the device hold, and its own.
  [[nodiscard]] double held_beside(std::size_t op, std::size_t device, std::uint32_t holders) const {
    double sum = table_->held_bytes(op);
    for (const std::uint32_t x : table_->tied_of(op)) {
      if (holders_[x * held_.size() + device] == holders) sum += table_->tied()[x].bytes;
    }
    return sum;
  }
  [[nodiscard]] double largest_working(std::size_t device) const { return working_[device].empty() ? 0 : working_[device].back(); }

  const placement_table* table_;
  std::vector<double> held_;
  std::vector<std::vector<double>> working_;  ///< by device, ascending
  std::vector<std::uint32_t> holders_;        ///< tied tensors x devices: operators there that hold it
};

}  // namespace hetplan::place
