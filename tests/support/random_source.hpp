// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Random numbers that are equal on all machines and compilers: no libm, no std distributions.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace hetplan::test {

/// Returns the first seed of random tests; HETPLAN_TEST_SEED changes it.
inline std::uint64_t first_seed() {
  const char* given = std::getenv("HETPLAN_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

/// The splitmix64 generator.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) { next(); }

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  /// Returns low * 2^[0, octaves), spread over orders of magnitude.
  double spread(double low, int octaves) {
    const double mantissa = low * (1 + unit());  // separate statement: argument order is unspecified
    return std::ldexp(mantissa, integer(0, octaves - 1));
  }
  int integer(int low, int high) { return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1)); }
  bool chance(double p) { return unit() < p; }
  template <class T>
  const T& pick(const std::vector<T>& all) {
    return all[index(all.size())];
  }
  std::size_t index(std::size_t size) { return static_cast<std::size_t>(next() % size); }
  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[index(i)]);
  }
  /// Returns `parts` random integers >= 1 that sum to `total` (>= parts).
  std::vector<int> split(int total, int parts) {
    std::vector<int> sizes(static_cast<std::size_t>(parts), 1);
    for (int left = total - parts; left > 0; --left) ++sizes[index(sizes.size())];
    return sizes;
  }

 private:
  std::uint64_t state_;
};

}  // namespace hetplan::test
