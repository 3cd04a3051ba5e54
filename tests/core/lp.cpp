// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/solve/lp.hpp>

#include "support/printed_text.hpp"
#include "support/solvers.hpp"

namespace test_lp {

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Dantzig's example: maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18.
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

/// Returns a feasible problem with six terms a row.
lp_problem random_covering(std::mt19937_64& random, int columns, int rows) {
  lp_problem p = random_problem(random, columns, rows);
  for (lp_problem::row& r : p.rows) {
    std::shuffle(r.terms.begin(), r.terms.end(), random);
    r.terms.resize(6);
  }
  return p;
}

/// Returns a sparse problem with limits of every kind; some are infeasible, some unbounded.
lp_problem random_sparse_problem(std::mt19937_64& random) {
  std::uniform_int_distribution<int> size(3, 40), terms(1, 5), kind(0, 9);
  std::uniform_real_distribution<double> value(-4, 4), room(0.5, 6);
  lp_problem p;
  const int columns = size(random), rows = size(random);
  std::vector<double> inside;  // feasible unless a row is out of reach
  for (int c = 0; c < columns; ++c) {
    const int k = kind(random);
    inside.push_back(value(random));
    const double low = k == 0 ? -inf : inside.back() - room(random), high = k <= 2 ? inf : inside.back() + room(random);
    p.add_column(value(random), k == 9 ? inside.back() : low, k == 9 ? inside.back() : high);
  }
  std::uniform_int_distribution<int> column(0, columns - 1);
  for (int r = 0; r < rows; ++r) {
    lp_problem::row row;
    double activity = 0;
    for (int t = terms(random); t > 0; --t) {
      const int c = column(random);
      if (std::ranges::any_of(row.terms, [&](const auto& term) { return term.first == c; })) continue;
      row.terms.emplace_back(c, value(random));
      activity += row.terms.back().second * inside[static_cast<std::size_t>(c)];
    }
    if (room(random) > 5.95) activity += 200;  // out of reach
    const int k = kind(random);
    if (k != 0) row.lower = activity - (k == 9 ? 0 : room(random));
    if (k >= 5) row.upper = k == 9 ? activity : activity + room(random);
    p.rows.push_back(row);
  }
  return p;
}

/// Returns the objective of the dual, a lower bound on that of all feasible points.
double dual_objective(const lp_problem& p, const std::vector<double>& duals) {
  const auto least = [](double price, double low, double high) {
    if (std::abs(price) < 1e-7) return 0.0;  // a rounding error, maybe at an infinite limit
    return price * (price > 0 ? low : high);
  };
  std::vector<double> reduced = p.objective;
  double sum = 0;
  for (std::size_t r = 0; r < p.rows.size(); ++r) {
    for (const auto& [c, v] : p.rows[r].terms) reduced[static_cast<std::size_t>(c)] -= duals[r] * v;
    sum += least(duals[r], p.rows[r].lower, p.rows[r].upper);
  }
  for (std::size_t c = 0; c < reduced.size(); ++c) sum += least(reduced[c], p.lower[c], p.upper[c]);
  return sum;
}

bool keeps_limits(const lp_problem& p, const std::vector<double>& x) {
  const auto within = [](double v, double low, double high) { return v >= low - 1e-6 && v <= high + 1e-6; };
  for (std::size_t c = 0; c < x.size(); ++c) {
    if (!within(x[c], p.lower[c], p.upper[c])) return false;
  }
  return std::ranges::all_of(p.rows, [&](const lp_problem::row& r) {
    double activity = 0;
    for (const auto& [c, v] : r.terms) activity += v * x[static_cast<std::size_t>(c)];
    return within(activity, r.lower, r.upper);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("a linear program that a solver would choke on is refused with its place", "", LP_SOLVERS) {
  const auto refuses = [](const lp_problem& p, const std::string& message) {
    CHECK_THROWS_MATCHES(check_lp_problem(p), invalid_input, Catch::Message(message));
    CHECK_THROWS_MATCHES(TestType{}.solve(p), invalid_input, Catch::Message(message));  // before the solver runs
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

TEMPLATE_TEST_CASE("limits that no number keeps are refused, not read as no limits", "", LP_SOLVERS) {
  lp_problem p = windows_and_doors();
  p.lower[0] = inf;
  CHECK_THROWS_MATCHES(TestType{}.solve(p), invalid_input, Catch::Message("lp: no number keeps the limits of column 0"));
  p = windows_and_doors();
  p.lower[0] = p.upper[0] = -inf;
  CHECK_THROWS_AS(TestType{}.solve(p), invalid_input);
  p = windows_and_doors();
  p.rows[2].lower = inf;
  CHECK_THROWS_AS(TestType{}.solve(p), invalid_input);
  p = windows_and_doors();
  p.rows[2].upper = -inf;
  CHECK_THROWS_AS(TestType{}.solve(p), invalid_input);
}

TEMPLATE_TEST_CASE("duals are <= 0 where an upper limit binds, and 0 where none does", "", LP_SOLVERS) {
  const lp_solution s = TestType{}.solve(windows_and_doors());
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

TEMPLATE_TEST_CASE("duals are >= 0 where a lower limit binds", "", LP_SOLVERS) {
  lp_problem p;
  const int x = p.add_column(1), y = p.add_column(2);
  p.rows = {{.terms = {{x, 1}, {y, 1}}, .lower = 3}, {.terms = {{y, 1}}, .lower = 1}};
  const lp_solution s = TestType{}.solve(p);
  REQUIRE(s.status == lp_status::optimal);
  CHECK(s.objective == Approx(4));
  CHECK(s.x == std::vector<double>{2, 1});
  CHECK(s.row_duals == std::vector<double>{1, 1});
}

TEMPLATE_TEST_CASE("limits of every kind bind: free, one-sided, double, fixed", "", LP_SOLVERS) {
  lp_problem p;
  const int free = p.add_column(1, -inf, inf), below = p.add_column(-1, -inf, 3), both = p.add_column(-1, -2, 5),
            fixed = p.add_column(7, 4, 4);
  p.rows = {{.terms = {{free, 1}, {fixed, 1}}, .lower = -10, .upper = 10},  // free >= -14
            {.terms = {{both, 2}}, .lower = 6, .upper = 6},                 // both = 3
            {.terms = {{below, 1}}}};
  const lp_solution s = TestType{}.solve(p);
  REQUIRE(s.status == lp_status::optimal);
  CHECK(s.x == std::vector<double>{-14, 3, 3, 4});
  CHECK(s.objective == Approx(-14 - 3 - 3 + 28));
}

TEMPLATE_TEST_CASE("a program without rows or without columns has an answer", "", LP_SOLVERS) {
  lp_problem p;
  p.add_column(2, 1, 5);
  p.add_column(-1, 1, 5);
  CHECK(TestType{}.solve(p).x == std::vector<double>{1, 5});
  CHECK(TestType{}.solve({}).status == lp_status::optimal);
  lp_problem impossible;
  impossible.rows = {{.terms = {}, .lower = 1}};
  CHECK(TestType{}.solve(impossible).status == lp_status::infeasible);
}

TEMPLATE_TEST_CASE("infeasible, unbounded and unsolved are answers, not exceptions", "", LP_SOLVERS) {
  lp_problem none;
  none.add_column(1);
  none.rows = {{.terms = {{0, 1}}, .lower = 2}, {.terms = {{0, 1}}, .upper = 1}};
  CHECK(TestType{}.solve(none).status == lp_status::infeasible);

  lp_problem endless;
  endless.add_column(-1);
  endless.add_column(1);
  endless.rows = {{.terms = {{0, 1}, {1, -1}}, .lower = 0}};
  CHECK(TestType{}.solve(endless).status == lp_status::unbounded);

  TestType limited;
  limited.max_iterations = 0;
  CHECK(limited.solve(windows_and_doors()).status == lp_status::unsolved);
  CHECK(no_lp{}.solve(windows_and_doors()).status == lp_status::unsolved);
  CHECK(no_lp{}.solve(windows_and_doors()).row_duals.empty());
  CHECK(no_lp{}.solve(windows_and_doors()).basis == lp_basis{});
}

TEMPLATE_TEST_CASE("a dual is the change of the objective per unit of its row's limit", "", LP_SOLVERS) {
  const unsigned seed = 7;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 30; ++trial) {
    const lp_problem p = random_problem(random, 6, 4);
    const lp_solution s = TestType{}.solve(p);
    REQUIRE(s.status == lp_status::optimal);
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      lp_problem moved = p;
      moved.rows[r].lower += 1e-5;
      CHECK((TestType{}.solve(moved).objective - s.objective) / 1e-5 == Approx(s.row_duals[r]).margin(1e-6));
    }
  }
}

TEMPLATE_TEST_CASE("a basis says where columns and rows stand", "", LP_SOLVERS) {
  const lp_solution s = TestType{}.solve(windows_and_doors());
  using enum lp_position;
  CHECK(s.basis.columns == std::vector{basic, basic});
  CHECK(s.basis.rows == std::vector{basic, at_upper, at_upper});
  CHECK(s.iterations > 0);
}

TEMPLATE_TEST_CASE("from an optimal basis there is nothing left to do", "", LP_SOLVERS) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const lp_problem p = random_problem(random, 15, 12);
    const lp_solution cold = TestType{}.solve(p), warm = solve_from(TestType{}, p, cold.basis);
    CHECK(warm.status == lp_status::optimal);
    CHECK(warm.iterations == 0);
    CHECK(warm.basis == cold.basis);
    CHECK(warm.objective == Approx(cold.objective).epsilon(1e-9));
  }
}

TEMPLATE_TEST_CASE("a start that is no basis costs time, not the answer", "", LP_SOLVERS) {
  using enum lp_position;
  const lp_problem p = windows_and_doors();
  const auto same = [&](const lp_problem& q, const lp_basis& start, const lp_solution& answer) {
    const lp_solution s = solve_from(TestType{}, q, start);
    CHECK(s.status == answer.status);
    CHECK(s.x == answer.x);
  };
  const lp_solution answer = TestType{}.solve(p);
  same(p, {}, answer);
  same(p, {{basic}, {basic, at_upper}}, answer);                                       // too small
  same(p, {{basic, basic, basic}, {at_lower, at_lower, at_lower}}, answer);            // too large
  same(p, {{basic, basic}, {basic, basic, basic}}, answer);                            // too many basic
  same(p, {{at_lower, at_lower}, {at_upper, at_upper, at_upper}}, answer);             // too few basic
  same(p, {{at_upper, free}, {basic, basic, basic}}, answer);                          // at infinite limits
  same(p, {{basic, static_cast<lp_position>(99)}, {at_upper, basic, basic}}, answer);  // not a position

  lp_problem twins;  // x + y <= 2 and 2x + 2y <= 4: singular with both columns basic
  twins.add_column(-1);
  twins.add_column(-1);
  twins.rows = {{.terms = {{0, 1}, {1, 1}}, .upper = 2}, {.terms = {{0, 2}, {1, 2}}, .upper = 4}};
  const lp_solution s = solve_from(TestType{}, twins, {{basic, basic}, {at_upper, at_upper}});
  CHECK(s.status == lp_status::optimal);
  CHECK(s.objective == Approx(-2));
}

TEMPLATE_TEST_CASE("on random programs of every outcome the answers keep the limits, and the duals prove them", "", LP_SOLVERS) {
  const unsigned seed = 41;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::map<lp_status, int> seen;
  for (int trial = 0; trial < 200; ++trial) {
    INFO("trial " << trial);
    const lp_problem p = random_sparse_problem(random);
    const lp_solution s = TestType{}.solve(p), reference = glpk_lp{}.solve(p);
    ++seen[s.status];
    REQUIRE(s.status == reference.status);
    if (s.status != lp_status::optimal) continue;
    CHECK(s.objective == Approx(reference.objective).epsilon(1e-7).margin(1e-7));
    CHECK(keeps_limits(p, s.x));
    CHECK(dual_objective(p, s.row_duals) == Approx(s.objective).epsilon(1e-6).margin(1e-6));
    CHECK(could_be_basis(s.basis, p));
    const lp_solution warm = TestType{}.solve(p, s.basis), across = TestType{}.solve(p, reference.basis);
    CHECK(warm.iterations == 0);
    CHECK(warm.x.size() == s.x.size());
    CHECK(across.iterations == 0);  // a basis means the same to every solver
    CHECK(across.status == lp_status::optimal);
  }
  CHECK(seen[lp_status::unsolved] == 0);
  for (const lp_status each : {lp_status::optimal, lp_status::infeasible, lp_status::unbounded}) CHECK(seen[each] >= 20);
}

TEMPLATE_TEST_CASE("from anywhere the answer is the same", "", LP_SOLVERS) {
  const unsigned seed = 99;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> position(1, 3);
  const printed_text printed;
  int different = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const lp_problem p = random_sparse_problem(random);
    const lp_solution reference = glpk_lp{}.solve(p);
    std::vector<lp_position> all(p.objective.size() + p.rows.size(), lp_position::basic);
    for (std::size_t i = p.rows.size(); i < all.size(); ++i) all[i] = static_cast<lp_position>(position(random));
    std::shuffle(all.begin(), all.end(), random);  // as many basic as rows, often singular: GLPK may meet a fatal error
    const auto rows = all.begin() + static_cast<std::ptrdiff_t>(p.objective.size());
    const lp_solution s = TestType{}.solve(p, {{all.begin(), rows}, {rows, all.end()}});
    if (s.status != reference.status) ++different;
    if (s.status == lp_status::optimal && std::abs(s.objective - reference.objective) > 1e-7 * (1 + std::abs(s.objective))) ++different;
  }
  CHECK(printed.text() == "");
  CHECK(different == 0);
}

TEMPLATE_TEST_CASE("from the basis of a neighbour the way is shorter", "", LP_SOLVERS) {
  const unsigned seed = 43;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> change(0.9, 1.1);
  enum { costs, limits, more_rows, more_columns };
  for (const int what : {costs, limits, more_rows, more_columns}) {
    std::vector<long long> cold, warm;
    for (int trial = 0; trial < 31; ++trial) {
      lp_problem p = random_covering(random, 60, 40);
      lp_basis start = TestType{}.solve(p).basis;
      if (what == costs) {
        for (double& c : p.objective) c *= change(random);
      } else if (what == limits) {
        for (lp_problem::row& r : p.rows) r.lower *= change(random);
      } else if (what == more_rows) {
        p.rows.push_back({.terms = {{0, 1}, {1, 1}, {2, 1}}, .lower = 0.5});
        start.rows.push_back(lp_position::basic);
      } else {
        const int column = p.add_column(0.5, 0, 10);
        for (std::size_t r = 0; r < p.rows.size(); r += 8) p.rows[r].terms.emplace_back(column, change(random));
        start.columns.push_back(lp_position::at_lower);
      }
      const lp_solution from_nothing = TestType{}.solve(p), from_start = TestType{}.solve(p, start);
      CHECK(from_start.status == lp_status::optimal);
      CHECK(from_start.objective == Approx(from_nothing.objective).epsilon(1e-7));
      cold.push_back(from_nothing.iterations);
      warm.push_back(from_start.iterations);
    }
    std::ranges::sort(cold);
    std::ranges::sort(warm);
    CHECK(warm[15] < cold[15]);  // the medians
  }
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

TEMPLATE_TEST_CASE("the same program has the same answer to the bit, in every thread", "", LP_SOLVERS) {
  std::mt19937_64 random(3);
  std::vector<lp_problem> problems;
  for (int i = 0; i < 40; ++i) problems.push_back(random_problem(random, 12, 9));
  std::vector<std::vector<double>> here, there;
  const auto solve = [&](std::vector<std::vector<double>>& into) {
    for (const lp_problem& p : problems) into.push_back(TestType{}.solve(p).x);
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
  CHECK(glpk_lp{}.solve(large).status == lp_status::optimal);  // a memory limit ends with its call
  CHECK_THROWS_AS(glpk_lp{.max_memory_MB = 0}.solve(small), invalid_input);
}

TEMPLATE_TEST_CASE("solvers of linear programs print nothing", "", LP_SOLVERS) {
  std::mt19937_64 random(47);
  TestType limited;
  limited.max_iterations = 3;
  const printed_text printed;
  for (int trial = 0; trial < 50; ++trial) {
    const lp_problem p = random_sparse_problem(random);
    static_cast<void>(limited.solve(p));
    static_cast<void>(TestType{}.solve(p, TestType{}.solve(p).basis));
  }
  CHECK(printed.text() == "");
}

}  // namespace test_lp
