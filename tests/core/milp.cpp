// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/solve/lp.hpp>

#include "support/printed_text.hpp"
#include "support/solvers.hpp"

namespace test_milp {

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns a 0-1 knapsack problem with several capacities.
milp_problem knapsack(std::mt19937_64& random, int things, int capacities) {
  std::uniform_int_distribution<int> value(1, 40), weight(1, 30);
  milp_problem p;
  for (int c = 0; c < things; ++c) p.integers.push_back(p.relaxation.add_column(-value(random), 0, 1));
  for (int r = 0; r < capacities; ++r) {
    lp_problem::row row;
    double sum = 0;
    for (int c = 0; c < things; ++c) {
      row.terms.emplace_back(c, weight(random));
      sum += row.terms.back().second;
    }
    row.upper = std::floor(sum / 3);
    p.relaxation.rows.push_back(row);
  }
  return p;
}

/// Returns a problem that assigns each job to one machine of limited capacity. Column j * machines + m puts job j on machine m.
milp_problem random_assignment(std::mt19937_64& random, int jobs, int machines) {
  std::uniform_int_distribution<int> cost(1, 30), size(1, 9), capacity(6, 14);
  milp_problem p;
  for (int c = 0; c < jobs * machines; ++c) p.integers.push_back(p.relaxation.add_column(cost(random), 0, 1));
  for (int j = 0; j < jobs; ++j) {
    lp_problem::row once{.terms = {}, .lower = 1, .upper = 1};
    for (int m = 0; m < machines; ++m) once.terms.emplace_back(j * machines + m, 1);
    p.relaxation.rows.push_back(once);
  }
  std::vector<int> sizes(static_cast<std::size_t>(jobs));
  for (int& s : sizes) s = size(random);
  for (int m = 0; m < machines; ++m) {
    lp_problem::row room{.terms = {}, .upper = static_cast<double>(capacity(random))};
    for (int j = 0; j < jobs; ++j) room.terms.emplace_back(j * machines + m, sizes[static_cast<std::size_t>(j)]);
    p.relaxation.rows.push_back(room);
  }
  return p;
}

/// Returns a problem with integer and continuous columns, fractional data, and limits on both sides.
milp_problem mixed(std::mt19937_64& random, int columns, int rows) {
  std::uniform_real_distribution<double> cost(-5, 5), term(-3, 3);
  std::uniform_int_distribution<int> coin(0, 1);
  milp_problem p;
  for (int c = 0; c < columns; ++c) {
    const int column = p.relaxation.add_column(cost(random), -2.5, 6.5);
    if (c % 3 != 0) p.integers.push_back(column);
  }
  for (int r = 0; r < rows; ++r) {
    lp_problem::row row{.terms = {}, .lower = -8, .upper = 7};
    for (int c = 0; c < columns; ++c) {
      if (coin(random) == 1) row.terms.emplace_back(c, term(random));
    }
    p.relaxation.rows.push_back(row);
  }
  return p;
}

/// Returns a sparse, bounded problem with limits on one side, on both, or none.
milp_problem mixed_with_few_limits(std::mt19937_64& random) {
  std::uniform_int_distribution<int> size(3, 24), terms(1, 5), kind(0, 9);
  std::uniform_real_distribution<double> value(-4, 4), room(0.5, 6);
  milp_problem p;
  const int columns = size(random), rows = size(random);
  std::vector<double> inside;
  for (int c = 0; c < columns; ++c) {
    const int k = kind(random);
    const double at = value(random), cost = value(random);
    double low = k == 0 ? -inf : std::floor(at - room(random)), high = k <= 2 ? inf : std::ceil(at + room(random));
    if (cost < 0) high = std::min(high, 30.0);
    if (cost > 0) low = std::max(low, -30.0);
    inside.push_back(at);
    p.relaxation.add_column(cost, low, high);
    if (kind(random) < 7) p.integers.push_back(c);
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
    const int k = kind(random);
    if (k != 0) row.lower = activity - room(random) - 4;
    if (k >= 5) row.upper = activity + room(random) + 4;
    p.relaxation.rows.push_back(row);
  }
  return p;
}

/// Returns the least cost over all 0-1 columns by enumeration; infinity if the problem is infeasible.
double least_by_enumeration(const lp_problem& p) {
  const std::size_t n = p.objective.size();
  double least = inf;
  for (unsigned taken = 0; taken < 1u << n; ++taken) {
    const auto take = [&](int c) { return (taken >> c & 1u) != 0; };
    const bool keeps = std::ranges::all_of(p.rows, [&](const lp_problem::row& r) {
      double activity = 0;
      for (const auto& [c, v] : r.terms) activity += take(c) ? v : 0;
      return r.lower <= activity && activity <= r.upper;
    });
    double cost = 0;
    for (std::size_t c = 0; c < n; ++c) cost += take(static_cast<int>(c)) ? p.objective[c] : 0;
    if (keeps) least = std::min(least, cost);
  }
  return least;
}

void check_solution(const milp_problem& p, const milp_solution& s) {
  REQUIRE(s.x.size() == p.relaxation.objective.size());
  for (const int c : p.integers) CHECK(s.x[static_cast<std::size_t>(c)] == std::round(s.x[static_cast<std::size_t>(c)]));
  for (std::size_t c = 0; c < s.x.size(); ++c) {
    CHECK(s.x[c] >= p.relaxation.lower[c] - 1e-9);
    CHECK(s.x[c] <= p.relaxation.upper[c] + 1e-9);
  }
  for (const lp_problem::row& r : p.relaxation.rows) {
    double activity = 0;
    for (const auto& [c, v] : r.terms) activity += v * s.x[static_cast<std::size_t>(c)];
    CHECK(activity >= r.lower - 1e-6);
    CHECK(activity <= r.upper + 1e-6);
  }
  CHECK(std::inner_product(s.x.begin(), s.x.end(), p.relaxation.objective.begin(), 0.0) == Approx(s.objective).margin(1e-9));
}

}  // namespace

TEMPLATE_TEST_CASE("small knapsacks and assignments have the answer of enumeration", "[unsanitized]", MILP_SOLVERS) {
  const unsigned seed = 5;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int infeasible = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const milp_problem p = trial % 2 == 0 ? knapsack(random, 10, 1 + trial % 3) : random_assignment(random, 4, 3);
    const double least = least_by_enumeration(p.relaxation);
    const milp_solution s = TestType{}.solve(p);
    INFO("trial " << trial);
    if (least == inf) {
      ++infeasible;
      CHECK(s.status == milp_status::infeasible);
      CHECK(s.x.empty());
      continue;
    }
    REQUIRE(s.status == milp_status::optimal);
    CHECK(s.objective == Approx(least).margin(1e-9));
    CHECK(s.bound == s.objective);
    check_solution(p, s);
  }
  CHECK(infeasible > 0);
  CHECK(infeasible < 50);
}

TEMPLATE_TEST_CASE("mixed programs have one optimum, whoever solves them", "[long]", MILP_SOLVERS) {
  const unsigned seed = 19;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 400; ++trial) {
    INFO("trial " << trial);
    const milp_problem p = trial % 8 == 0 ? mixed(random, 12, 6) : mixed_with_few_limits(random);
    const milp_solution s = TestType{}.solve(p), reference = glpk_milp{}.solve(p);
    REQUIRE(s.status == reference.status);
    if (s.status != milp_status::optimal) continue;
    check_solution(p, s);
    CHECK(s.objective == Approx(reference.objective).epsilon(1e-6));
    const milp_solution again = TestType{}.solve(p, reference.x);
    REQUIRE(again.status == milp_status::optimal);
    check_solution(p, again);
    CHECK(again.objective == Approx(reference.objective).epsilon(1e-6));
  }
}

TEMPLATE_TEST_CASE("integers are exact, and the other columns fit them", "", MILP_SOLVERS) {
  // Facility location. With a capacity of 1e5, a facility opened by 1e-6 would ship almost for free.
  milp_problem p;
  const int open = p.relaxation.add_column(10, 0, 1), other = p.relaxation.add_column(11, 0, 1);
  const int ship = p.relaxation.add_column(1, 0), elsewhere = p.relaxation.add_column(0.5, 0);
  p.integers = {open, other};
  p.relaxation.rows = {{.terms = {{ship, 1}, {open, -1e5}}, .upper = 0},
                       {.terms = {{elsewhere, 1}, {other, -1e5}}, .upper = 0},
                       {.terms = {{ship, 1}, {elsewhere, 1}}, .lower = 0.75}};
  const milp_solution s = TestType{}.solve(p);
  REQUIRE(s.status == milp_status::optimal);
  check_solution(p, s);
  CHECK(s.x[0] == 1);
  CHECK(s.x[1] == 0);
  CHECK(s.x[2] == Approx(0.75));
  CHECK(s.objective == Approx(10.75));
}

TEMPLATE_TEST_CASE("integers of any size and sign, between limits that are none", "", MILP_SOLVERS) {
  milp_problem p;
  const int x = p.relaxation.add_column(-1, -7.5, 3.7), y = p.relaxation.add_column(1, -inf, inf), z = p.relaxation.add_column(2, -2.2, 8);
  p.integers = {x, y, z};
  p.relaxation.rows = {{.terms = {{y, 2}}, .lower = -9}, {.terms = {{z, 1}, {x, 1}}, .lower = 0.5, .upper = 6}};
  const milp_solution s = TestType{}.solve(p);
  REQUIRE(s.status == milp_status::optimal);
  CHECK(s.x == std::vector<double>{3, -4, -2});
  CHECK(s.objective == -11);
}

TEMPLATE_TEST_CASE("a mixed-integer program without integers, rows or columns has an answer", "", MILP_SOLVERS) {
  CHECK(TestType{}.solve({}).status == milp_status::optimal);
  milp_problem p;
  p.relaxation.add_column(-1, 0, 2.5);
  CHECK(TestType{}.solve(p).x == std::vector<double>{2.5});
  p.integers = {0};
  CHECK(TestType{}.solve(p).x == std::vector<double>{2});
  p.relaxation.lower[0] = 2.25;
  p.relaxation.upper[0] = 2.75;  // no integer within
  CHECK(TestType{}.solve(p).status == milp_status::infeasible);
  milp_problem impossible;
  impossible.relaxation.rows = {{.terms = {}, .lower = 1}};
  CHECK(TestType{}.solve(impossible).status == milp_status::infeasible);
}

TEMPLATE_TEST_CASE("infeasible and unbounded mixed-integer programs are told apart", "", MILP_SOLVERS) {
  milp_problem none;  // 2x + 2y = 3: the relaxation is feasible
  none.integers = {none.relaxation.add_column(1, 0, 5), none.relaxation.add_column(1, 0, 5)};
  none.relaxation.rows = {{.terms = {{0, 2}, {1, 2}}, .lower = 3, .upper = 3}};
  CHECK(TestType{}.solve(none).status == milp_status::infeasible);
  none.relaxation.rows[0].lower = none.relaxation.rows[0].upper = 30;  // the relaxation is infeasible
  CHECK(TestType{}.solve(none).status == milp_status::infeasible);

  milp_problem endless;
  endless.integers = {endless.relaxation.add_column(-1)};
  endless.relaxation.add_column(1);
  endless.relaxation.rows = {{.terms = {{0, 1}, {1, -1}}, .lower = 0}};
  CHECK(TestType{}.solve(endless).status == milp_status::unbounded);
}

TEMPLATE_TEST_CASE("a limit of nodes keeps what was found, with a bound below it", "[long]", MILP_SOLVERS) {
  std::mt19937_64 random(23);
  int cut_short = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const milp_problem p = knapsack(random, 35, 6);
    const milp_solution best = TestType{}.solve(p);
    REQUIRE(best.status == milp_status::optimal);
    for (const int nodes : {0, 1, 10, 100}) {
      TestType limited;
      limited.max_nodes = nodes;
      const milp_solution s = limited.solve(p), again = limited.solve(p);
      CHECK(s.x == again.x);  // limits count nodes, not time
      CHECK(s.bound == again.bound);
      CHECK(s.nodes == again.nodes);
      CHECK(s.bound <= best.objective + 1e-6);
      CHECK(s.bound > -inf);
      if (s.status == milp_status::optimal) {
        CHECK(s.objective == Approx(best.objective));
        continue;
      }
      ++cut_short;
      if (s.status == milp_status::feasible) {
        check_solution(p, s);
        CHECK(s.bound <= s.objective);
        CHECK(s.objective >= best.objective - 1e-6);
      } else {
        CHECK(s.status == milp_status::unsolved);
        CHECK(s.x.empty());
      }
    }
  }
  CHECK(cut_short >= 5);
}

TEMPLATE_TEST_CASE("a limit of time ends the search with what was found", "", MILP_SOLVERS) {
  std::mt19937_64 random(29);
  const milp_problem p = knapsack(random, 150, 30);
  TestType limited;
  limited.time_limit = 100_ms;
  const milp_solution s = limited.solve(p);
  CHECK((s.status == milp_status::feasible || s.status == milp_status::unsolved));
  if (s.status == milp_status::feasible) {
    check_solution(p, s);
    CHECK(s.bound <= s.objective);
  }
}

TEMPLATE_TEST_CASE("a start changes no answer, whatever it is", "", MILP_SOLVERS) {
  static_assert(starts_milp<TestType>);
  std::mt19937_64 random(37);
  std::uniform_real_distribution<double> anything(-3, 9);
  int begun = 0;
  for (int trial = 0; trial < 60; ++trial) {
    INFO("trial " << trial);
    const milp_problem p = trial % 3 == 0   ? knapsack(random, 10, 2)
                           : trial % 3 == 1 ? random_assignment(random, 4, 3)
                                            : mixed(random, 9, 5);
    const milp_solution alone = TestType{}.solve(p);
    std::vector<double> drawn(p.relaxation.objective.size());
    for (double& x : drawn) x = anything(random);
    std::vector<double> short_one(drawn.begin(), drawn.end() - 1), no_numbers(drawn.size(), std::nan("")), nothing(drawn.size(), 0),
        optimum = alone.x.empty() ? drawn : alone.x;
    begun += static_cast<int>(!detail::begin_with(glpk_lp{}, p, nothing).x.empty());
    for (const auto& start : {drawn, short_one, no_numbers, nothing, optimum}) {
      const milp_solution s = TestType{}.solve(p, start);
      REQUIRE(s.status == alone.status);
      if (s.status != milp_status::optimal) continue;
      check_solution(p, s);
      CHECK(s.objective == Approx(alone.objective).margin(1e-6));
    }
  }
  CHECK(begun >= 20);  // a knapsack may stay empty
}

TEMPLATE_TEST_CASE("a search that a limit ends is no worse than its start", "[unsanitized]", MILP_SOLVERS) {
  std::mt19937_64 random(23);
  for (int trial = 0; trial < 3; ++trial) {
    const milp_problem p = knapsack(random, 35, 6);
    const milp_solution best = TestType{}.solve(p);
    REQUIRE(best.status == milp_status::optimal);
    for (const int nodes : {0, 1, 10, 1'000'000}) {
      TestType limited;
      limited.max_nodes = nodes;
      const milp_solution s = limited.solve(p, best.x);
      INFO("trial " << trial << ", nodes " << nodes);
      CHECK((s.status == milp_status::feasible || s.status == milp_status::optimal));
      check_solution(p, s);
      CHECK(s.objective == Approx(best.objective));
      CHECK(s.bound <= s.objective);
      CHECK(s.bound > -inf);
      CHECK(limited.solve(p, best.x).x == s.x);
    }
  }
}

TEMPLATE_TEST_CASE("of a start only the integers count", "", MILP_SOLVERS) {
  milp_problem p;
  const int many = p.relaxation.add_column(-1, 0, 9), rest = p.relaxation.add_column(-0.5, 0, 0.75);
  p.integers = {many};
  p.relaxation.rows = {{.terms = {{many, 2}, {rest, 1}}, .upper = 7}};
  const milp_solution begun = detail::begin_with(glpk_lp{}, p, {2.2, -1e30});
  CHECK(begun.x == std::vector<double>{2, 0.75});
  CHECK(begun.objective == -2.375);
  CHECK(detail::begin_with(glpk_lp{}, p, {4, 0}).x.empty());  // beyond the row's limit
  CHECK(detail::begin_with(glpk_lp{}, p, {10, 0}).x.empty());
  CHECK(TestType{}.solve(p, {2.2, -1e30}).x == std::vector<double>{3, 0.75});
}

TEST_CASE("a start wins over a solver that denies it") {
  const milp_solution begun{.status = milp_status::feasible, .objective = 5, .x = {1}};
  CHECK(detail::no_worse_than(begun, {.status = milp_status::infeasible}).x == begun.x);
  const milp_solution worse{.status = milp_status::optimal, .objective = 6, .bound = 6, .x = {2}, .nodes = 3};
  const milp_solution s = detail::no_worse_than(begun, worse);
  CHECK(s.status == milp_status::feasible);
  CHECK(s.objective == 5);
  CHECK(s.bound == 5);
  CHECK(s.nodes == 3);
  CHECK(detail::no_worse_than(begun, {.status = milp_status::unsolved, .bound = 4}).bound == 4);
  CHECK(detail::no_worse_than(begun, {.status = milp_status::unbounded}).status == milp_status::unbounded);
  CHECK(detail::no_worse_than({}, worse).objective == 6);
}

TEST_CASE("a solver that takes no start is asked without") {
  struct startless {
    milp_solution solve(const milp_problem& p) const { return {.nodes = static_cast<long long>(p.integers.size())}; }
  };
  static_assert(check_milp_solver<startless>() && !starts_milp<startless>);
  milp_problem p;
  p.integers = {p.relaxation.add_column(1)};
  CHECK(solve_from(startless{}, p, {1.0}).nodes == 1);
  CHECK(solve_from(glpk_milp{}, p, {1.0}).status == milp_status::optimal);
}

TEST_CASE("an attempt that a limit ends without an answer does not lose the answer of the one before") {
  // x <= 1e9 y, y binary, x >= 1: a solver's y = 1e-9 rounds to 0, which leaves no x. y = 1 is feasible.
  milp_problem p;
  const int x = p.relaxation.add_column(0, 1, 10), y = p.relaxation.add_column(1, 0, 1);
  p.integers = {y};
  p.relaxation.rows.push_back({.terms = {{x, 1}, {y, -1e9}}, .upper = 0});
  std::vector<double> asked;
  const milp_solution s = detail::solve_exactly(glpk_lp{}, p, [&](const milp_problem&, double tolerance) {
    asked.push_back(tolerance);
    if (asked.size() > 1) return milp_solution{.nodes = 5};
    return milp_solution{.status = milp_status::optimal, .objective = 0.5, .x = {1, 1}, .nodes = 7};  // claims too much
  });
  CHECK(asked == std::vector<double>{1e-6, 1e-8});
  CHECK(s.status == milp_status::feasible);
  CHECK(s.objective == 1);
  CHECK(s.bound == 0.5);
  CHECK(s.nodes == 12);
}

TEST_CASE("a solver's limit of time runs from its call on, whatever it tries") {
  const detail::time_left forever{seconds(inf)}, none{0_s}, hour{3600_s};
  CHECK(forever() == seconds(inf));
  CHECK(none() == 0_s);
  const seconds first = hour(), second = hour();
  CHECK(second <= first);
  CHECK(first <= 3600_s);
  std::mt19937_64 random(29);
  const milp_problem p = knapsack(random, 150, 30);
  const glpk_milp at_once{.time_limit = 0_s};
  const milp_solution s = at_once.solve(p);
  CHECK((s.status == milp_status::feasible || s.status == milp_status::unsolved));
}

TEMPLATE_TEST_CASE("a mixed-integer program that a solver would choke on is refused with its place", "", MILP_SOLVERS) {
  std::mt19937_64 random(1);
  const milp_problem good = knapsack(random, 4, 1);
  const auto refuses = [](const milp_problem& p, const std::string& message) {
    CHECK_THROWS_MATCHES(check_milp_problem(p), invalid_input, Catch::Message(message));
    CHECK_THROWS_MATCHES(TestType{}.solve(p), invalid_input, Catch::Message(message));  // before the solver runs
  };
  CHECK_NOTHROW(check_milp_problem(good));
  CHECK_NOTHROW(check_milp_problem({}));
  milp_problem p = good;
  p.integers.push_back(4);
  refuses(p, "milp: integers name column 4");
  p = good;
  p.integers[0] = -1;
  refuses(p, "milp: integers name column -1");
  p = good;
  p.integers[2] = 1;
  refuses(p, "milp: integers name column 1 twice");
  p = good;
  p.relaxation.objective[1] = std::numeric_limits<double>::quiet_NaN();
  refuses(p, "lp: objective of column 1 is not finite");
  p = good;
  p.relaxation.rows[0].terms[1].first = 9;
  refuses(p, "lp: row 0 names column 9");
  TestType strange;
  strange.time_limit = seconds(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(strange.solve(good), invalid_input);
}

TEMPLATE_TEST_CASE("the same mixed-integer program has the same answer to the bit, in every thread", "[unsanitized]", MILP_SOLVERS) {
  std::mt19937_64 random(3);
  std::vector<milp_problem> problems;
  for (int i = 0; i < 10; ++i) problems.push_back(knapsack(random, 25, 4));
  std::vector<std::vector<double>> here, there;
  const auto solve = [&](std::vector<std::vector<double>>& into) {
    for (const milp_problem& p : problems) into.push_back(TestType{}.solve(p).x);
  };
  std::thread other(solve, std::ref(there));
  solve(here);
  other.join();
  CHECK(here == there);
}

TEST_CASE("without a solver a mixed-integer program is unsolved") {
  const milp_solution s = no_milp{}.solve({});
  CHECK(s.status == milp_status::unsolved);
  CHECK(s.bound == -inf);
}

TEMPLATE_TEST_CASE("mixed-integer solvers print nothing", "", MILP_SOLVERS) {
  std::mt19937_64 random(31);
  const milp_problem p = knapsack(random, 30, 5);
  milp_problem none = p;
  none.relaxation.rows[0].upper = -1;
  milp_problem between = p;
  between.relaxation.rows.assign(1, {.terms = {{0, 2}, {1, 2}}, .lower = 1, .upper = 1});
  milp_problem endless = p;
  endless.relaxation.add_column(-1);
  TestType limited;
  limited.max_nodes = 1;
  const printed_text printed;
  for (const milp_problem& each : {p, none, between, endless}) {
    static_cast<void>(TestType{}.solve(each));
    static_cast<void>(limited.solve(each));
  }
  CHECK(printed.text() == "");
}

TEST_CASE("a fatal error of GLPK in a mixed-integer program ends neither the process nor what other threads solve") {
  std::mt19937_64 random(37);
  const milp_problem large = knapsack(random, 300, 200), small = knapsack(random, 20, 3);
  const milp_solution answer = glpk_milp{}.solve(small);
  std::vector<milp_solution> elsewhere;
  const printed_text printed;
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) elsewhere.push_back(glpk_milp{}.solve(small));
  });
  for (int i = 0; i < 5; ++i) {
    const milp_solution s = glpk_milp{.max_memory_MB = 1}.solve(large);
    CHECK(s.status == milp_status::unsolved);
    CHECK(s.x.empty());
    CHECK(glpk_milp{}.solve(small).x == answer.x);
  }
  // The limit may also end a search half way; its incumbent is lost.
  const milp_problem deep = knapsack(random, 150, 20);
  CHECK(glpk_milp{.max_nodes = 1'000'000, .max_memory_MB = 2}.solve(deep).status == milp_status::unsolved);
  other.join();
  CHECK(printed.text() == "");
  CHECK(std::ranges::all_of(elsewhere, [&](const milp_solution& s) { return s.x == answer.x; }));
}

}  // namespace test_milp
