// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/place/placement_table.hpp>

namespace support {

class appended_in_every_order {
 public:
  explicit appended_in_every_order(const hetplan::place::placement_table& t)
      : table_(t), device_(t.size()), end_(t.size()), free_(t.devices(), 0), done_(t.size(), 0) {}
  double run() {
    append(0, 0);
    return best_;
  }

 private:
  void append(std::size_t count, double makespan) {
    if (makespan >= best_) return;
    if (count == table_.size()) {
      best_ = makespan;
      return;
    }
    for (std::size_t v = 0; v < table_.size(); ++v) {
      bool ready = done_[v] == 0;
      for (const std::uint32_t e : table_.in_edges(v)) ready = ready && done_[table_.edges()[e].from] != 0;
      for (std::size_t k = 0; ready && k < table_.devices(); ++k) {
        double held = table_.held_bytes(v), data = 0;
        const auto is_there = [&](std::size_t u) { return u == v || (done_[u] != 0 && device_[u] == k); };
        for (std::size_t u = 0; u < table_.size(); ++u) held += u != v && is_there(u) ? table_.held_bytes(u) : 0;
        for (const hetplan::place::tied_tensor& x : table_.tied())
          held += std::any_of(x.operators.begin(), x.operators.end(), is_there) ? x.bytes : 0;
        if (held > table_.capacity_bytes(k)) continue;
        for (const std::uint32_t e : table_.in_edges(v)) {
          const std::size_t u = table_.edges()[e].from;
          data = std::max(data, end_[u] + table_.transfer_s(e, device_[u], k));
        }
        const double before = free_[k];
        done_[v] = 1;
        device_[v] = k;
        free_[k] = end_[v] = std::max(before, data) + table_.time_s(v, k);
        append(count + 1, std::max(makespan, end_[v]));
        free_[k] = before;
        done_[v] = 0;
      }
    }
  }

  const hetplan::place::placement_table& table_;
  std::vector<std::size_t> device_;
  std::vector<double> end_, free_;
  std::vector<char> done_;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Returns the least makespan without contention, by appending operators in every order to every device; infinity if none fits.
inline double shortest_makespan_s(const hetplan::place::placement_table& t) { return appended_in_every_order(t).run(); }

}  // namespace support
