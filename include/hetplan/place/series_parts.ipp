// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/series_parts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <hetplan/place/ranking.hpp>

namespace hetplan::place {

namespace detail {

/// A longest path and where everything else stands beside it.
class beside_a_path {
 public:
  explicit beside_a_path(const placement_table& t) : table_(t), up_(t.size(), -1), down_(t.size()) {
    find_path();
    const auto length = static_cast<std::int64_t>(path_.size());
    std::fill(down_.begin(), down_.end(), length);
    for (std::int64_t i = 0; i < length; ++i) up_[path_[at(i)]] = down_[path_[at(i)]] = i;
    for (const std::size_t v : t.order()) {
      for (const std::uint32_t e : t.in_edges(v)) up_[v] = std::max(up_[v], up_[t.edges()[e].from]);
    }
    for (std::size_t i = t.size(); i-- > 0;) {
      const std::size_t v = t.order()[i];
      for (const std::uint32_t e : t.out_edges(v)) down_[v] = std::min(down_[v], down_[t.edges()[e].to]);
    }
    measure();
  }

  [[nodiscard]] const std::vector<std::size_t>& path() const { return path_; }
  /// Different amounts of what is beside an operator of the path, ascending [s].
  [[nodiscard]] std::vector<double> levels() const {
    std::vector<double> all(beside_s_.begin(), beside_s_.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  /// The parts if operators with at most so much beside them are milestones, and how much of all is then left out [s].
  [[nodiscard]] std::pair<series_parts, double> cut(double most_beside_s) const {
    series_parts s;
    std::vector<std::size_t> before(path_.size() + 1, 0);  // milestones on the path before each index
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const bool milestone = beside_s_[i] <= most_beside_s;
      if (milestone) s.milestones.push_back(path_[i]);
      before[i + 1] = before[i] + milestone;
    }
    // Milestones strictly between two indices of the path.
    const auto between = [&](std::int64_t after, std::int64_t until) {
      return until <= after ? 0 : before[at(until)] - before[at(after + 1)];
    };
    std::vector<char> is_side(table_.size(), 0);
    s.parts.resize(s.milestones.size() + 1);
    double dropped_s = 0;
    for (const std::size_t v : table_.order()) {
      if (up_[v] == down_[v] && beside_s_[at(up_[v])] <= most_beside_s) continue;
      if (between(up_[v], down_[v]) > 0 && up_[v] != down_[v]) {
        is_side[v] = 1;
        s.sides.push_back(v);
        dropped_s += table_.fastest_s(v);
      } else {
        s.parts[before[at(up_[v] + 1)]].push_back(v);
      }
    }
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [u, w, size] = table_.edges()[e];
      if (is_side[u] || is_side[w] || between(down_[u] - (up_[u] != down_[u]), up_[w] + (up_[w] != down_[w])) == 0) continue;
      ++s.crossing_edges;
      dropped_s += mean_transfer_s(table_, e);
    }
    return {std::move(s), dropped_s};
  }

 private:
  [[nodiscard]] static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void find_path() {
    std::vector<std::pair<double, std::size_t>> longest(table_.size());  // seconds and operators from here on
    std::vector<std::size_t> next(table_.size(), table_.size());
    std::size_t first = table_.size();
    for (std::size_t i = table_.size(); i-- > 0;) {
      const std::size_t v = table_.order()[i];
      std::pair<double, std::size_t> rest{0, 0};
      for (const std::uint32_t e : table_.out_edges(v)) {
        const std::size_t w = table_.edges()[e].to;
        if (next[v] != table_.size() && !(longest[w] > rest)) continue;
        rest = longest[w];
        next[v] = w;
      }
      const double own_s = std::isfinite(table_.fastest_s(v)) ? table_.fastest_s(v) : 0;
      longest[v] = {rest.first + own_s, rest.second + 1};
      if (first == table_.size() || longest[v] >= longest[first]) first = v;
    }
    for (std::size_t v = first; v != table_.size(); v = next[v]) path_.push_back(v);
  }

  /// What is neither before nor behind each operator of the path, and the edges that pass it by.
  void measure() {
    std::vector<double> change(path_.size() + 1, 0);
    std::vector<std::int64_t> count(path_.size() + 1, 0);
    const auto add = [&](std::int64_t first, std::int64_t last, double s) {
      if (last < first) return;
      change[at(first)] += s;
      change[at(last) + 1] -= s;
      ++count[at(first)];
      --count[at(last) + 1];
    };
    for (std::size_t v = 0; v < table_.size(); ++v) {
      if (up_[v] != down_[v]) add(up_[v] + 1, down_[v] - 1, std::isfinite(table_.fastest_s(v)) ? table_.fastest_s(v) : 0);
    }
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [u, w, size] = table_.edges()[e];
      const std::int64_t first = down_[u] + (up_[u] == down_[u]), last = up_[w] - (up_[w] == down_[w]);
      if (first <= last) add(first, last, mean_transfer_s(table_, e));
    }
    double now_s = 0;
    std::int64_t beside = 0;
    for (std::size_t i = 0; i < path_.size(); ++i) {
      now_s += change[i];
      beside += count[i];
      // Sums that went up and down again are not quite 0; and what takes no time is beside it all the same.
      beside_s_.push_back(beside == 0 ? 0 : std::max(now_s, std::numeric_limits<double>::min()));
    }
  }

  const placement_table& table_;
  std::vector<std::size_t> path_;
  std::vector<std::int64_t> up_, down_;  ///< by operator: the last of the path before it, the first behind it; itself on the path
  std::vector<double> beside_s_;         ///< by index on the path
};

}  // namespace detail

HETPLAN_INLINE series_parts find_series_parts(const placement_table& t, const series_options& options) {
  const detail::beside_a_path beside(t);
  double all_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) all_s += t.fastest_s(v);
  const auto largest = [](const series_parts& s) {
    std::size_t most = 0;
    for (const auto& part : s.parts) most = std::max(most, part.size());
    return most;
  };
  series_parts best;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  std::vector<double> levels = beside.levels();
  constexpr std::size_t most_levels = 16;
  for (std::size_t i = 0; i < std::min(levels.size(), most_levels) && smallest > options.wanted_operators; ++i) {
    auto [s, dropped_s] = beside.cut(levels[i]);
    if (levels[i] > 0 && dropped_s > options.most_dropped * all_s) break;
    if (largest(s) >= smallest) continue;
    smallest = largest(s);
    best = std::move(s);
  }
  if (best.parts.empty()) best.parts.emplace_back(t.order().begin(), t.order().end());
  return best;
}

}  // namespace hetplan::place
