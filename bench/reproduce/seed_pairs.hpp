// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a simulation answers for several pairs of seeds, with its spread.

#include <cmath>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "sections.hpp"

namespace bench {

/// Of the day that is played, and of the day before by which services are placed.
struct seed_pair {
  std::uint64_t played = 1, before = 2;
};

/// One figure over all pairs; not a number where a pair has none.
class spread {
 public:
  void add(double x) { all_.push_back(x); }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double x : all_) sum += x;
    return sum / static_cast<double>(all_.size());
  }
  [[nodiscard]] double deviation() const {
    double sum = 0;
    for (const double x : all_) sum += (x - mean()) * (x - mean());
    return all_.size() > 1 ? std::sqrt(sum / static_cast<double>(all_.size() - 1)) : 0;
  }
  /// Mean and standard deviation, such as "1.02 ± 0.01", with no more decimals than the deviation is worth; how many pairs have a number
  /// where not all do.
  [[nodiscard]] std::string text(int most_decimals, const std::string& without = "serves none", double unit = 1) const {
    spread known;
    for (const double x : all_) {
      if (!std::isnan(x)) known.add(x * unit);
    }
    if (known.all_.empty()) return without;
    int decimals = 0;
    for (double worth = known.deviation(); decimals < most_decimals && worth < 3; worth *= 10) ++decimals;
    const std::string format = "%." + std::to_string(decimals) + "f";
    std::string words = number(format.c_str(), known.mean()) + " ± " + number(format.c_str(), known.deviation());
    if (known.all_.size() < all_.size()) words += " (" + std::to_string(known.all_.size()) + " of " + std::to_string(all_.size()) + ")";
    return words;
  }
  [[nodiscard]] std::string percent() const { return text(1, "", 100) + " %"; }

 private:
  std::vector<double> all_;
};

/// Plays ten pairs (one, where it is to be quick), two at a time: figure k of all answers.
template <class Play>
[[nodiscard]] std::vector<spread> over_seed_pairs(const sections& page, const Play& play) {
  const std::uint64_t pairs = page.quick() ? 1 : 10;
  std::vector<spread> figures;
  for (std::uint64_t first = 0; first < pairs; first += 2) {
    std::vector<std::future<std::vector<double>>> answers;
    for (std::uint64_t n = first; n < pairs && n < first + 2; ++n)
      answers.push_back(std::async(std::launch::async, [&play, n] { return std::vector<double>(play(seed_pair{2 * n + 1, 2 * n + 2})); }));
    for (auto& a : answers) {
      const std::vector<double> one = a.get();
      figures.resize(one.size());
      for (std::size_t k = 0; k < one.size(); ++k) figures[k].add(one[k]);
    }
  }
  return figures;
}

/// Of a goodput to that of a baseline that serves something.
[[nodiscard]] inline double over(double ours, double theirs) {
  return theirs > 0 ? ours / theirs : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace bench
