// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <Eigen/Dense>
#include <catch2/catch.hpp>

#include <hetplan/fit/bounded_least_squares.hpp>

#include "support/message_of.hpp"

using namespace hetplan;

namespace test_bounded_least_squares {

double squares(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    double r = -b[i];
    for (std::size_t j = 0; j < x.size(); ++j) r += a[i * x.size() + j] * x[j];
    sum += r * r;
  }
  return sum;
}

/// The least sum of squares over every choice of unknowns at the lower bound, at the upper bound, or free.
double brute_force(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& lower,
                   const std::vector<double>& upper) {
  const std::size_t n = lower.size(), m = b.size();
  std::size_t choices = 1;
  for (std::size_t j = 0; j < n; ++j) choices *= 3;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t choice = 0; choice < choices; ++choice) {
    std::vector<double> x(n, 0);
    std::vector<std::size_t> free;
    std::size_t left = choice;
    bool possible = true;
    for (std::size_t j = 0; j < n; ++j, left /= 3) {
      if (left % 3 == 0) x[j] = lower[j];
      else if (left % 3 == 1) x[j] = upper[j];
      else free.push_back(j);
      possible = possible && std::isfinite(x[j]);
    }
    if (!possible) continue;
    if (!free.empty()) {
      Eigen::MatrixXd part(m, free.size());
      Eigen::VectorXd rest(m);
      for (std::size_t i = 0; i < m; ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        rest[row] = b[i];
        for (std::size_t j = 0; j < n; ++j) rest[row] -= a[i * n + j] * x[j];
        for (std::size_t k = 0; k < free.size(); ++k) part(row, static_cast<Eigen::Index>(k)) = a[i * n + free[k]];
      }
      const Eigen::VectorXd z = part.colPivHouseholderQr().solve(rest);
      for (std::size_t k = 0; k < free.size(); ++k) {
        x[free[k]] = z[static_cast<Eigen::Index>(k)];
        possible = possible && x[free[k]] >= lower[free[k]] - 1e-12 && x[free[k]] <= upper[free[k]] + 1e-12;
      }
    }
    if (possible) least = std::min(least, squares(a, b, x));
  }
  return least;
}

}  // namespace test_bounded_least_squares

using namespace test_bounded_least_squares;

TEST_CASE("bounded least squares: as good as every choice of bounds, over seeds", "[fit]") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
    const std::size_t n = 1 + random() % 5, m = n + random() % 6;
    std::vector<double> a(m * n), b(m), lower(n), upper(n);
    for (double& v : a) v = uniform() * (random() % 4 == 0 ? 1e-3 : 1);
    for (double& v : b) v = uniform();
    for (std::size_t j = 0; j < n; ++j) {
      lower[j] = random() % 3 == 0 ? 0 : uniform();
      upper[j] = random() % 3 == 0 ? std::numeric_limits<double>::infinity() : lower[j] + (random() % 5 == 0 ? 0 : std::abs(uniform()));
    }
    const std::vector<double> x = fit::bounded_least_squares(a, b, lower, upper);
    for (std::size_t j = 0; j < n; ++j) {
      CHECK(x[j] >= lower[j]);
      CHECK(x[j] <= upper[j]);
    }
    CHECK(squares(a, b, x) == Approx(brute_force(a, b, lower, upper)).epsilon(1e-9).margin(1e-12));
  }
}

TEST_CASE("bounded least squares: columns that depend on each other, and bounds that leave no room", "[fit]") {
  // Two equal columns: any x0 + x1 = 1.
  const std::vector<double> same{1, 1, 1, 1}, one{1, 1}, zero{0, 0}, two{2, 2};
  CHECK(squares(same, one, fit::bounded_least_squares(same, one, zero, two)) == Approx(0).margin(1e-20));
  CHECK(fit::bounded_least_squares(same, one, two, two) == two);
  CHECK(fit::bounded_least_squares(std::vector<double>{}, std::vector<double>{1, 2}, std::vector<double>{}, std::vector<double>{}).empty());
}

TEST_CASE("bounded least squares: sizes and bounds that do not fit are refused", "[fit]") {
  const std::vector<double> a{1, 2}, b{1}, lower{0, 0}, upper{1, 1};
  CHECK(test::message_of([&] { return fit::bounded_least_squares(a, b, lower, b); }) ==
        "bounded_least_squares: 2 numbers, 1 rows, 2 lower and 1 upper bounds; expected rows x unknowns numbers and both bounds of each "
        "unknown");
  CHECK(test::message_of([&] { return fit::bounded_least_squares(a, b, upper, lower); }) ==
        "bounded_least_squares: unknown 0 between 1 and 0; expected a finite lower bound, at most the upper one");
}

TEST_CASE("distinct part: what is left of a column beside others", "[fit]") {
  std::vector<double> shares;
  CHECK(fit::distinct_part(std::vector<double>{}, std::vector<double>{3, 4}, shares) == Approx(5));
  CHECK(fit::distinct_part(std::vector<double>{2, 0}, std::vector<double>{3, 4}, shares) == Approx(4));
  CHECK(shares == std::vector<double>{1.5});
  CHECK(fit::distinct_part(std::vector<double>{1, 0, 0, 1}, std::vector<double>{3, 4}, shares) == Approx(0).margin(1e-12));
}
