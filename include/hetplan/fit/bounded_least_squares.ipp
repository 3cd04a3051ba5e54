// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/fit/bounded_least_squares.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <Eigen/Dense>

#include <hetplan/core/error.hpp>

namespace hetplan::fit {

namespace detail {

using matrix = Eigen::MatrixXd;
using column = Eigen::VectorXd;

/// The active set: unknowns at a bound stay there, the free ones solve an ordinary problem.
class bounded_problem {
 public:
  bounded_problem(const matrix& a, const column& b, std::span<const double> lower, std::span<const double> upper)
      : a_(a), b_(b), lower_(lower), upper_(upper), x_(a.cols()), at_(lower.size(), side::lower) {
    for (Eigen::Index j = 0; j < x_.size(); ++j) x_[j] = lower[static_cast<std::size_t>(j)];
  }

  std::vector<double> solve() {
    const std::size_t n = at_.size();
    std::vector<char> tried(n, 0);  // freed since the last step, and went back at once: rounding alone let them go
    for (std::size_t round = 0; round < 10 * n + 10; ++round) {
      const std::size_t j = most_wanted(tried);
      if (j == n) break;
      tried[j] = 1;
      at_[j] = side::free;
      if (settle()) std::fill(tried.begin(), tried.end(), 0);
    }
    return {x_.data(), x_.data() + x_.size()};
  }

 private:
  enum class side { lower, upper, free };

  /// Returns the unknown at a bound whose way inwards makes the residual smaller fastest; the number of unknowns if there is none.
  [[nodiscard]] std::size_t most_wanted(const std::vector<char>& tried) const {
    const column residual = b_ - a_ * x_;
    double most = 0;
    std::size_t best = at_.size();
    for (std::size_t j = 0; j < at_.size(); ++j) {
      if (at_[j] == side::free || tried[j] != 0 || !(lower_[j] < upper_[j])) continue;
      const auto a = a_.col(static_cast<Eigen::Index>(j));
      const double norm = a.norm();
      if (!(norm > 0)) continue;
      const double gain = (at_[j] == side::lower ? 1 : -1) * a.dot(residual) / norm;
      if (gain > 1e-14 * b_.norm() && gain > most) {
        most = gain;
        best = j;
      }
    }
    return best;
  }

  /// Moves the free unknowns to their minimum; those that meet a bound on the way stop there. Returns false if nothing moved.
  bool settle() {
    bool moved = false;
    for (;;) {
      std::vector<std::size_t> free;
      column rest = b_;
      for (std::size_t j = 0; j < at_.size(); ++j) {
        if (at_[j] == side::free) free.push_back(j);
        else rest -= a_.col(static_cast<Eigen::Index>(j)) * x_[static_cast<Eigen::Index>(j)];
      }
      if (free.empty()) return moved;
      matrix part(a_.rows(), static_cast<Eigen::Index>(free.size()));
      for (std::size_t k = 0; k < free.size(); ++k) part.col(static_cast<Eigen::Index>(k)) = a_.col(static_cast<Eigen::Index>(free[k]));
      const column z = part.colPivHouseholderQr().solve(rest);
      double step = 1;
      std::size_t first = at_.size();
      for (std::size_t k = 0; k < free.size(); ++k) {
        const std::size_t j = free[k];
        const double from = x_[static_cast<Eigen::Index>(j)], to = z[static_cast<Eigen::Index>(k)];
        const double bound = to < lower_[j] ? lower_[j] : upper_[j];
        if (to >= lower_[j] && to <= upper_[j]) continue;
        const double part_of_way = to == from ? 0 : std::clamp((bound - from) / (to - from), 0.0, 1.0);
        if (part_of_way < step || first == at_.size()) {
          step = part_of_way;
          first = j;
        }
      }
      for (std::size_t k = 0; k < free.size(); ++k) {
        double& x = x_[static_cast<Eigen::Index>(free[k])];
        const double to = x + step * (z[static_cast<Eigen::Index>(k)] - x);
        moved = moved || to != x;
        x = first == at_.size() ? z[static_cast<Eigen::Index>(k)] : std::clamp(to, lower_[free[k]], upper_[free[k]]);
      }
      if (first == at_.size()) return moved;
      for (std::size_t k = 0; k < free.size(); ++k) {
        const std::size_t j = free[k];
        double& x = x_[static_cast<Eigen::Index>(j)];
        const double to = z[static_cast<Eigen::Index>(k)];
        if (j == first) x = to < lower_[j] ? lower_[j] : upper_[j];
        if (x == lower_[j] && to < lower_[j]) at_[j] = side::lower;
        if (x == upper_[j] && to > upper_[j]) at_[j] = side::upper;
      }
    }
  }

  const matrix& a_;
  const column& b_;
  std::span<const double> lower_, upper_;
  column x_;
  std::vector<side> at_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<double> bounded_least_squares(std::span<const double> a, std::span<const double> b,
                                                         std::span<const double> lower, std::span<const double> upper) {
  const std::size_t n = lower.size();
  if (upper.size() != n || a.size() != b.size() * n) {
    throw invalid_input("bounded_least_squares: " + std::to_string(a.size()) + " numbers, " + std::to_string(b.size()) + " rows, " +
                        std::to_string(n) + " lower and " + std::to_string(upper.size()) +
                        " upper bounds; expected rows x unknowns numbers and both bounds of each unknown");
  }
  for (std::size_t j = 0; j < n; ++j) {
    if (std::isfinite(lower[j]) && lower[j] <= upper[j]) continue;
    throw invalid_input("bounded_least_squares: unknown " + std::to_string(j) + " between " + to_text(lower[j]) + " and " +
                        to_text(upper[j]) + "; expected a finite lower bound, at most the upper one");
  }
  const auto rows = static_cast<Eigen::Index>(b.size()), columns = static_cast<Eigen::Index>(n);
  using by_row = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const detail::matrix dense = Eigen::Map<const by_row>(a.data(), rows, columns);
  const detail::column wanted = Eigen::Map<const detail::column>(b.data(), rows);
  return detail::bounded_problem(dense, wanted, lower, upper).solve();
}

HETPLAN_INLINE double distinct_part(std::span<const double> columns, std::span<const double> column, std::vector<double>& shares) {
  const auto rows = static_cast<Eigen::Index>(column.size());
  const Eigen::Index count = rows == 0 ? 0 : static_cast<Eigen::Index>(columns.size()) / rows;
  const detail::column wanted = Eigen::Map<const detail::column>(column.data(), rows);
  shares.assign(static_cast<std::size_t>(count), 0);
  if (count == 0) return wanted.norm();
  const detail::matrix dense = Eigen::Map<const detail::matrix>(columns.data(), rows, count);
  const detail::column nearest = dense.jacobiSvd(Eigen::ComputeThinU | Eigen::ComputeThinV).solve(wanted);
  std::copy(nearest.data(), nearest.data() + count, shares.begin());
  return (wanted - dense * nearest).norm();
}

}  // namespace hetplan::fit
