// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How long requests took, in bins that grow with the time.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::serve {

/// Counts of times from a microsecond to twelve days, in bins 1/64 of an octave wide at most, and of each bin the longest.
/// Source  ours.
class latency_histogram {
 public:
  /// By which part a quantile may be above the exact one.
  static constexpr double resolution = 1.0 / 64;

  void add(double time_s) {
    if (bins_.empty()) bins_.resize(last_bin + 1);
    auto& in = bins_[bin(time_s)];
    ++in.count;
    in.longest_s = std::max(in.longest_s, time_s);
    ++count_;
    sum_s_ += time_s;
    largest_s_ = std::max(largest_s_, time_s);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] seconds mean() const { return seconds(count_ == 0 ? 0 : sum_s_ / static_cast<double>(count_)); }
  [[nodiscard]] seconds largest() const { return seconds(largest_s_); }

  /// The least of the times that as many as this part are at most as long as, or one above it by no more than `resolution`: the longest
  /// of its bin. 0 without a time. Requires 0 <= q <= 1.
  [[nodiscard]] seconds quantile(double q) const {
    auto left = q * static_cast<double>(count_);
    for (const auto& b : bins_) {
      left -= static_cast<double>(b.count);
      if (b.count > 0 && left <= relative_tolerance * static_cast<double>(count_)) return seconds(b.longest_s);
    }
    return seconds(largest_s_);
  }

  /// How many took at most that long; of the bin that holds the time, the part below it. Requires time >= 0.
  [[nodiscard]] double count_within(seconds time) const {
    if (at_most(largest_s_, time.value())) return static_cast<double>(count_);
    const auto last = bin(time.value());
    double sum = 0;
    for (std::size_t b = 0; b < last; ++b) sum += static_cast<double>(bins_[b].count);
    const double from = last == 0 ? 0 : edge(last);
    return sum + static_cast<double>(bins_[last].count) * std::min(1.0, (time.value() - from) / (edge(last + 1) - from));
  }
  friend bool operator==(const latency_histogram&, const latency_histogram&) = default;

 private:
  static constexpr int steps_log2 = 6;
  static constexpr std::uint64_t first_bits = std::bit_cast<std::uint64_t>(0x1p-20) >> (52 - steps_log2);
  static constexpr std::size_t last_bin = std::size_t{41} << steps_log2;

  /// The number that sign, exponent and the first bits of the fraction spell: it grows with the time. An edge, but for rounding, is the
  /// end of the bin below it: whoever is answered when an SLO is over is in time.
  [[nodiscard]] static std::size_t bin(double time_s) {
    time_s *= 1 - relative_tolerance;
    if (!(time_s >= 0x1p-20)) return 0;
    return std::min<std::size_t>(last_bin, (std::bit_cast<std::uint64_t>(time_s) >> (52 - steps_log2)) - first_bits);
  }
  [[nodiscard]] static double edge(std::size_t b) { return std::bit_cast<double>((first_bits + b) << (52 - steps_log2)); }

  struct times {
    std::uint64_t count = 0;
    double longest_s = 0;
    friend bool operator==(const times&, const times&) = default;
  };
  std::vector<times> bins_;
  std::uint64_t count_ = 0;
  double sum_s_ = 0;
  double largest_s_ = 0;
};

}  // namespace hetplan::serve
