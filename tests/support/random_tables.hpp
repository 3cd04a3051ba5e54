// SPDX-License-Identifier: BSL-1.0
#pragma once
// Small random placement tables of whole numbers, so that sums are exact.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <hetplan/place/placement_table.hpp>

namespace support {

struct random_table_options {
  std::size_t operators = 8;
  std::size_t devices = 3;
  unsigned edge_percent = 35;  ///< percentage of all pairs i < j
  unsigned shortest_s = 1;     ///< shortest time of an operator
  unsigned longest_s = 9;
  unsigned longest_edge_s = 9;  ///< longest time of a transfer; the shortest is 0
  unsigned memory_percent = 0;  ///< memory of all devices in % of what operators hold; 0: no limit; 100 is tight, 150 binds often
  unsigned tied_percent = 0;    ///< percentage of operators that also hold one of two tied tensors
  bool edge_times = true;       ///< true: a time per edge and pair; false: bytes, latencies and rates of a mesh
};

/// Generator of equal numbers on all machines: upper bits of a 64-bit linear congruential generator (Knuth's MMIX constants).
class draws {
 public:
  explicit draws(std::uint64_t seed) : state_(seed * 2 + 1) { below(2); }
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state_ >> 33) % n);
  }

 private:
  std::uint64_t state_;
};

inline hetplan::place::placement_table random_table(std::uint64_t seed, const random_table_options& o = {}) {
  using namespace hetplan::place;
  draws draw(seed);
  const std::size_t n = o.operators, d = o.devices;
  placement_data t;
  for (std::size_t i = 0; i < n; ++i) t.operators.push_back("o" + std::to_string(i));
  for (std::size_t k = 0; k < d; ++k) t.devices.push_back("d" + std::to_string(k));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      if (draw.below(100) < o.edge_percent) t.edges.push_back({i, j, static_cast<double>(draw.below(5))});
    }
  }
  for (std::size_t i = 0; i < n * d; ++i)
    t.time_s.push_back(static_cast<double>(o.shortest_s + draw.below(o.longest_s + 1 - o.shortest_s)));
  double held = 0;
  for (std::size_t i = 0; i < n; ++i) {
    t.held_bytes.push_back(static_cast<double>(draw.below(10)));
    held += t.held_bytes.back();
  }
  for (std::size_t x = 0; x < 2 && o.tied_percent > 0; ++x) {
    tied_tensor tied{static_cast<double>(1 + draw.below(9)), {}};
    for (std::size_t i = 0; i < n; ++i) {
      if (draw.below(100) < o.tied_percent) tied.operators.push_back(i);
    }
    if (tied.operators.size() < 2) continue;
    held += tied.bytes;
    t.tied.push_back(std::move(tied));
  }
  for (std::size_t k = 0; k < d; ++k) {
    const double share = static_cast<double>(static_cast<long long>(held * o.memory_percent / 100 / static_cast<double>(d)));
    t.capacity_bytes.push_back(o.memory_percent == 0 ? 1e9 : share + static_cast<double>(draw.below(6)));
  }
  for (std::size_t a = 0; a < d; ++a) {
    for (std::size_t b = 0; b < d; ++b) {
      device_pair p;
      if (a != b) {
        p = {static_cast<double>(draw.below(2)), static_cast<double>(1 + draw.below(3)), {t.resources++}};
      }
      t.pairs.push_back(std::move(p));
    }
  }
  if (o.edge_times) {
    for (std::size_t e = 0; e < t.edges.size(); ++e) {
      for (std::size_t p = 0; p < d * d; ++p) {
        t.edge_time_s.push_back(p / d == p % d ? 0 : static_cast<double>(draw.below(o.longest_edge_s + 1)));
      }
    }
  }
  return placement_table(std::move(t));
}

}  // namespace support
