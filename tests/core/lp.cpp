// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/solve/glpk.hpp>
#include <hetplan/solve/lp.hpp>

#include "support/printed_text.hpp"

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Dantzig's: maximise 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18.
lp_problem windows_and_doors() {
  lp_problem p;
  const int x = p.add_column(-3), y = p.add_column(-5);
  p.rows = {{.terms = {{x, 1}}, .upper = 4}, {.terms = {{y, 2}}, .upper = 12}, {.terms = {{x, 3}, {y, 2}}, .upper = 18}};
  return p;
}

lp_problem random_problem(std::mt19937_64& random, int columns, int rows) {
  std::uniform_real_distribution<double> cost(0.5, 4), coefficient(0.1, 3);
  lp_problem p;
  for (int c = 0; c < columns; ++c) p.add_column(cost(random), 0, 10);
  for (int r = 0; r < rows; ++r) {
    lp_problem::row row{.terms = {}, .lower = cost(random)};
    for (int c = 0; c < columns; ++c) row.terms.emplace_back(c, coefficient(random));
    p.rows.push_back(row);
  }
  return p;
}

}  // namespace

TEST_CASE("a linear program that a solver would choke on is refused with its place") {
  const auto refuses = [](const lp_problem& p, const std::string& message) {
    CHECK_THROWS_MATCHES(check_lp_problem(p), invalid_input, Catch::Message(message));
    CHECK_THROWS_MATCHES(glpk_lp{}.solve(p), invalid_input, Catch::Message(message));  // before GLPK sees it
  };
  CHECK_NOTHROW(check_lp_problem(windows_and_doors()));
  CHECK_NOTHROW(check_lp_problem({}));

  lp_problem p = windows_and_doors();
  p.lower.pop_back();
  refuses(p, "lp: objective, lower and upper differ in length");
  p = windows_and_doors();
  p.upper.push_back(1);
  refuses(p, "lp: objective, lower and upper differ in length");
  for (const double bad : {no_number, inf, -inf}) {
    p = windows_and_doors();
    p.objective[1] = bad;
    refuses(p, "lp: objective of column 1 is not finite");
    p = windows_and_doors();
    p.rows[2].terms[1].second = bad;
    refuses(p, "lp: row 2, column 1 is not finite");
  }
  p = windows_and_doors();
  p.upper[0] = -1;
  refuses(p, "lp: no number keeps the limits of column 0");
  p = windows_and_doors();
  p.lower[1] = no_number;
  refuses(p, "lp: no number keeps the limits of column 1");
  p = windows_and_doors();
  p.rows[1].lower = 13;
  refuses(p, "lp: no number keeps the limits of row 1");
  p = windows_and_doors();
  p.rows[1].upper = no_number;
  refuses(p, "lp: no number keeps the limits of row 1");
  p = windows_and_doors();
  p.rows[0].terms[0].first = 2;
  refuses(p, "lp: row 0 names column 2");
  p = windows_and_doors();
  p.rows[0].terms[0].first = -1;
  refuses(p, "lp: row 0 names column -1");
  p = windows_and_doors();
  p.rows[2].terms.emplace_back(0, 1);
  refuses(p, "lp: row 2 names column 0 twice");
}

TEST_CASE("limits that no number keeps are refused, not read as no limits") {
  lp_problem p = windows_and_doors();
  p.lower[0] = inf;  // x >= inf
  CHECK_THROWS_MATCHES(glpk_lp{}.solve(p), invalid_input, Catch::Message("lp: no number keeps the limits of column 0"));
  p = windows_and_doors();
  p.lower[0] = p.upper[0] = -inf;  // x <= -inf
  CHECK_THROWS_AS(glpk_lp{}.solve(p), invalid_input);
  p = windows_and_doors();
  p.rows[2].lower = inf;
  CHECK_THROWS_AS(glpk_lp{}.solve(p), invalid_input);
  p = windows_and_doors();
  p.rows[2].upper = -inf;
  CHECK_THROWS_AS(glpk_lp{}.solve(p), invalid_input);
}

TEST_CASE("duals are <= 0 where an upper limit binds, and 0 where none does") {
  const lp_solution s = glpk_lp{}.solve(windows_and_doors());
  REQUIRE(s.status == lp_status::optimal);
  CHECK(s.objective == Approx(-36));
  REQUIRE(s.x.size() == 2);
  CHECK(s.x[0] == Approx(2));
  CHECK(s.x[1] == Approx(6));
  REQUIRE(s.row_duals.size() == 3);
  CHECK(s.row_duals[0] == Approx(0).margin(1e-12));
  CHECK(s.row_duals[1] == Approx(-1.5));
  CHECK(s.row_duals[2] == Approx(-1));
}

TEST_CASE("duals are >= 0 where a lower limit binds") {
  lp_problem p;
  const int x = p.add_column(1), y = p.add_column(2);
  p.rows = {{.terms = {{x, 1}, {y, 1}}, .lower = 3}, {.terms = {{y, 1}}, .lower = 1}};
  const lp_solution s = glpk_lp{}.solve(p);
  REQUIRE(s.status == lp_status::optimal);
  CHECK(s.objective == Approx(4));
  CHECK(s.x == std::vector<double>{2, 1});
  CHECK(s.row_duals == std::vector<double>{1, 1});
}

TEST_CASE("limits of every kind bind: free, one-sided, double, fixed") {
  lp_problem p;
  const int free = p.add_column(1, -inf, inf), below = p.add_column(-1, -inf, 3), both = p.add_column(-1, -2, 5),
            fixed = p.add_column(7, 4, 4);
  p.rows = {{.terms = {{free, 1}, {fixed, 1}}, .lower = -10, .upper = 10},  // free >= -14
            {.terms = {{both, 2}}, .lower = 6, .upper = 6},                  // both = 3
            {.terms = {{below, 1}}}};                                        // no limits
  const lp_solution s = glpk_lp{}.solve(p);
  REQUIRE(s.status == lp_status::optimal);
  CHECK(s.x == std::vector<double>{-14, 3, 3, 4});
  CHECK(s.objective == Approx(-14 - 3 - 3 + 28));
}

TEST_CASE("a program without rows or without columns has an answer") {
  lp_problem p;
  p.add_column(2, 1, 5);
  p.add_column(-1, 1, 5);
  CHECK(glpk_lp{}.solve(p).x == std::vector<double>{1, 5});
  CHECK(glpk_lp{}.solve({}).status == lp_status::optimal);
  lp_problem impossible;
  impossible.rows = {{.terms = {}, .lower = 1}};  // 0 >= 1
  CHECK(glpk_lp{}.solve(impossible).status == lp_status::infeasible);
}

TEST_CASE("infeasible, unbounded and unsolved are answers, not exceptions") {
  lp_problem none;
  none.add_column(1);
  none.rows = {{.terms = {{0, 1}}, .lower = 2}, {.terms = {{0, 1}}, .upper = 1}};
  CHECK(glpk_lp{}.solve(none).status == lp_status::infeasible);

  lp_problem endless;
  endless.add_column(-1);
  endless.add_column(1);
  endless.rows = {{.terms = {{0, 1}, {1, -1}}, .lower = 0}};
  CHECK(glpk_lp{}.solve(endless).status == lp_status::unbounded);

  CHECK(glpk_lp{.max_iterations = 0}.solve(windows_and_doors()).status == lp_status::unsolved);
  CHECK(no_lp{}.solve(windows_and_doors()).status == lp_status::unsolved);
  CHECK(no_lp{}.solve(windows_and_doors()).row_duals.empty());
  CHECK(no_lp{}.solve(windows_and_doors()).basis == lp_basis{});
}

TEST_CASE("a dual is the change of the objective per unit of its row's limit") {
  const unsigned seed = 7;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 30; ++trial) {
    const lp_problem p = random_problem(random, 6, 4);
    const lp_solution s = glpk_lp{}.solve(p);
    REQUIRE(s.status == lp_status::optimal);
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      lp_problem moved = p;
      moved.rows[r].lower += 1e-5;
      CHECK((glpk_lp{}.solve(moved).objective - s.objective) / 1e-5 == Approx(s.row_duals[r]).margin(1e-6));
    }
  }
}

TEST_CASE("a basis says where columns and rows stand") {
  const lp_solution s = glpk_lp{}.solve(windows_and_doors());
  using enum lp_position;
  CHECK(s.basis.columns == std::vector{basic, basic});
  CHECK(s.basis.rows == std::vector{basic, at_upper, at_upper});
  CHECK(s.iterations > 0);
}

TEST_CASE("from an optimal basis there is nothing left to do") {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const lp_problem p = random_problem(random, 15, 12);
    const lp_solution cold = glpk_lp{}.solve(p), warm = solve_from(glpk_lp{}, p, cold.basis);
    CHECK(warm.status == lp_status::optimal);
    CHECK(warm.iterations == 0);
    CHECK(warm.basis == cold.basis);
    CHECK(warm.objective == Approx(cold.objective).epsilon(1e-9));
  }
}

TEST_CASE("a start that is no basis costs time, not the answer") {
  using enum lp_position;
  const lp_problem p = windows_and_doors();
  const auto same = [&](const lp_problem& q, const lp_basis& start, const lp_solution& answer) {
    const lp_solution s = solve_from(glpk_lp{}, q, start);
    CHECK(s.status == answer.status);
    CHECK(s.x == answer.x);
  };
  const lp_solution answer = glpk_lp{}.solve(p);
  same(p, {}, answer);
  same(p, {{basic}, {basic, at_upper}}, answer);                                      // too small
  same(p, {{basic, basic, basic}, {at_lower, at_lower, at_lower}}, answer);           // too large
  same(p, {{basic, basic}, {basic, basic, basic}}, answer);                           // too many basic
  same(p, {{at_lower, at_lower}, {at_upper, at_upper, at_upper}}, answer);            // too few
  same(p, {{at_upper, free}, {basic, basic, basic}}, answer);                         // at limits that are none
  same(p, {{basic, static_cast<lp_position>(99)}, {at_upper, basic, basic}}, answer);  // no position at all

  lp_problem twins;  // x + y <= 2 and 2x + 2y <= 4: singular with both columns basic
  twins.add_column(-1);
  twins.add_column(-1);
  twins.rows = {{.terms = {{0, 1}, {1, 1}}, .upper = 2}, {.terms = {{0, 2}, {1, 2}}, .upper = 4}};
  const lp_solution s = solve_from(glpk_lp{}, twins, {{basic, basic}, {at_upper, at_upper}});
  CHECK(s.status == lp_status::optimal);
  CHECK(s.objective == Approx(-2));
}

TEST_CASE("a solver that takes no start solves from nothing") {
  struct cold_only {
    [[nodiscard]] lp_solution solve(const lp_problem& p) const { return glpk_lp{}.solve(p); }
  };
  STATIC_REQUIRE(check_lp_solver<cold_only>());
  STATIC_REQUIRE(!warm_starts_lp<cold_only>);
  STATIC_REQUIRE(warm_starts_lp<glpk_lp>);
  const lp_solution s = glpk_lp{}.solve(windows_and_doors());
  CHECK(solve_from(cold_only{}, windows_and_doors(), s.basis).iterations > 0);
  CHECK(solve_from(no_lp{}, windows_and_doors(), s.basis).status == lp_status::unsolved);
}

TEST_CASE("the same program has the same answer to the bit, in every thread") {
  std::mt19937_64 random(3);
  std::vector<lp_problem> problems;
  for (int i = 0; i < 40; ++i) problems.push_back(random_problem(random, 12, 9));
  std::vector<std::vector<double>> here, there;
  const auto solve = [&](std::vector<std::vector<double>>& into) {
    for (const lp_problem& p : problems) into.push_back(glpk_lp{}.solve(p).x);
  };
  std::thread other(solve, std::ref(there));
  solve(here);
  other.join();
  CHECK(here == there);
}

TEST_CASE("a fatal error of GLPK ends neither the process nor what other threads solve") {
  std::mt19937_64 random(17);
  const lp_problem large = random_problem(random, 300, 200), small = random_problem(random, 20, 10);
  const lp_solution answer = glpk_lp{}.solve(small);
  std::vector<lp_solution> elsewhere;
  const printed_text printed;
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) elsewhere.push_back(glpk_lp{}.solve(small));
  });
  for (int i = 0; i < 20; ++i) {
    const lp_solution s = glpk_lp{.max_memory_MB = 1}.solve(large);
    CHECK(s.status == lp_status::unsolved);
    CHECK(s.x.empty());
    CHECK(s.basis == lp_basis{});
    CHECK(glpk_lp{}.solve(small).x == answer.x);
  }
  other.join();
  CHECK(printed.text() == "");
  CHECK(std::ranges::all_of(elsewhere, [&](const lp_solution& s) { return s.status == lp_status::optimal && s.x == answer.x; }));
  CHECK(glpk_lp{}.solve(large).status == lp_status::optimal);  // a limit of memory ends with its call
  CHECK_THROWS_AS(glpk_lp{.max_memory_MB = 0}.solve(small), invalid_input);
}
