// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>

#include <hetplan/estimate/step_law.hpp>

#include "support/closed_form_latency.hpp"
#include "support/message_of.hpp"
#include "support/no_flush.hpp"
#include "support/random_source.hpp"

using namespace hetplan;

namespace test_step_law {
namespace {

/// Returns a random DAG of stages in topological order; a chain for even seeds.
[[nodiscard]] pipeline_steps random_steps(std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  const auto below = [&](std::uint64_t n) { return draw() % n; };
  const auto time = [&] { return static_cast<double>(below(1000)) * 1e-3; };
  pipeline_steps p;
  p.mode = std::array{mode::training, mode::inference, mode::generation}[seed % 3];
  p.microbatches = 1 + static_cast<int>(below(9));
  const bool training = p.mode == mode::training;
  const bool generation = p.mode == mode::generation;
  if (generation) {
    p.first_passes = 1 + static_cast<int>(below(4));
    p.later_passes = static_cast<int>(below(5));
    p.chunks_in_flight = static_cast<int>(below(4));
  }
  p.stages.resize(1 + below(6));
  const bool one_at_a_time = below(3) == 0;
  for (auto& s : p.stages) {
    s.total_s = time();
    s.backward_s = training ? s.total_s * 0.5 : 0;
    s.collective_s = training ? 4 * time() : 0;
    s.in_flight = one_at_a_time || !training ? 1 : 2;
    if (generation) s.first_s = time(), s.later_s = time();
  }
  for (std::size_t to = 1; to < p.stages.size(); ++to) {
    for (std::size_t from = seed % 2 == 0 ? to - 1 : 0; from < to; ++from) {
      if (seed % 2 == 1 && below(2) == 0) continue;
      pipeline_steps::link_step l{.from = from, .to = to};
      l.total_s = time();
      l.backward_s = training ? l.total_s * 0.25 : 0;
      l.own_s = l.total_s * (1 + static_cast<double>(below(8)));
      if (generation) {
        l.first_s = time(), l.later_s = time();
        l.first_own_s = l.first_s * (1 + static_cast<double>(below(8)));
        l.later_own_s = l.later_s * (1 + static_cast<double>(below(8)));
      }
      p.stages[from].out.push_back(p.links.size());
      p.stages[to].in.push_back(p.links.size());
      p.links.push_back(l);
    }
  }
  return p;
}

/// Faults of a law, each in one property.
enum class fault { none, falls_with_tail, falls_with_stage, grows_with_backward, response_falls, bound_too_high, not_a_number, negative };
struct liar : test::no_flush {
  fault what = fault::none;
  using no_flush::extend;
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    pipeline_tail t = no_flush::extend(p, s, behind);
    if (what == fault::falls_with_tail) t.rest_s = 1 - behind.reach_s;
    if (what == fault::falls_with_stage && s.total_s > 10) t.reach_s = behind.reach_s;
    if (what == fault::grows_with_backward) t.rest_s = s.backward_s;
    if (what == fault::not_a_number && s.total_s > 10) t.rest_s = std::numeric_limits<double>::quiet_NaN();
    return t;
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const {
    return what == fault::response_falls ? 1e3 - whole.reach_s : what == fault::negative ? -1.0 : whole.reach_s;
  }
  [[nodiscard]] double bound_s(const pipelining&, const pipeline_tail& t, const link_times&, double, double) const {
    return t.reach_s + (what == fault::bound_too_high ? 1 : 0);
  }
};

[[nodiscard]] std::string refusal(fault what) {
  liar l;
  l.what = what;
  return test::message_of<invalid_model>([&] { check_law(l, {4, 1}); });
}

}  // namespace
}  // namespace test_step_law

using namespace test_step_law;

TEST_CASE("a law that adds up step by step gives what its formula says of the whole plan") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 3000; ++seed) {
    INFO("seed " << seed);
    const pipeline_steps p = random_steps(seed);
    const run_times mine = any_step_law(p.mode).times(p), formula = times_by(test::closed_dominant_step{}, p);
    REQUIRE(mine.makespan.value() == Approx(formula.makespan.value()).epsilon(1e-12));
    REQUIRE(mine.ttft.value() == Approx(formula.ttft.value()).epsilon(1e-12));
    REQUIRE(mine.between_tokens.value() == Approx(formula.between_tokens.value()).epsilon(1e-12));
    REQUIRE(any_step_law(sum_and_largest{}).latency(p).value() ==
            Approx(times_by(test::closed_sum_and_largest{}, p).makespan.value()).epsilon(1e-12));
    REQUIRE(any_step_law(largest_step{}).latency(p).value() == times_by(test::closed_largest_step{}, p).makespan.value());
  }
}

TEST_CASE("a bound may be any number, and only a number") {
  struct bounded : test::no_flush {
    double bound = 0;
    [[nodiscard]] double bound_s(const pipelining&, const pipeline_tail&, const link_times&, double, double) const { return bound; }
  };
  const auto checked = [](double bound) {
    bounded l;
    l.bound = bound;
    check_law(l, {4, 1});
  };
  CHECK_NOTHROW(checked(-1));
  CHECK_NOTHROW(checked(-std::numeric_limits<double>::infinity()));
  CHECK_THROWS_WITH(checked(std::numeric_limits<double>::quiet_NaN()),
                    "step law, 4 microbatches: bound_s of tail (0, 0) is nan s; expected a number");
}

TEST_CASE("laws that ship are what a law must be, and so is one without a bound") {
  for (const int microbatches : {1, 3, 100}) {
    for (const int in_turn : {1, microbatches}) {
      for (const mode m : {mode::training, mode::inference, mode::generation})
        CHECK_NOTHROW(check_law(any_step_law(m), {microbatches, in_turn}));
      CHECK_NOTHROW(check_law(sum_and_largest{}, {microbatches, in_turn}));
      CHECK_NOTHROW(check_law(largest_step{}, {microbatches, in_turn}));
      CHECK_NOTHROW(check_law(test::no_flush{}, {microbatches, in_turn}));
    }
  }
  CHECK(any_step_law(test::no_flush{}).is_users());
  CHECK_FALSE(any_step_law(largest_step{}).is_users());
}

TEST_CASE("a law that lies is refused with the two points") {
  CHECK(refusal(fault::none) == "no error");
  CHECK(refusal(fault::falls_with_tail) ==
        "step law, 4 microbatches: stage (0, 0, 0) before tail (0, 0) gives tail (0, 1), stage (0, 0, 0) before tail (0.5, 0) gives tail "
        "(0.5, 0.5); expected no less of either number");
  for (const fault what : {fault::falls_with_stage, fault::grows_with_backward})
    CHECK_THAT(refusal(what), Catch::Contains("expected no less of either"));
  CHECK_THAT(refusal(fault::response_falls), Catch::Contains("tail (0, 0) takes 1000 s, tail (0.5, 0) takes 999.5 s; expected no less"));
  CHECK_THAT(refusal(fault::bound_too_high), Catch::Contains("the bound of link (") && Catch::Contains("expected no more"));
  CHECK_THAT(refusal(fault::not_a_number), Catch::Contains("expected numbers"));
  CHECK_THAT(refusal(fault::negative), Catch::Contains("response_s of tail (0, 0) is -1 s; expected a number >= 0"));
}

TEST_CASE("a law that goes wrong where nobody has tried it is named all the same") {
  pipeline_steps p;
  p.mode = mode::inference;
  p.microbatches = 2;
  p.stages.resize(1);
  const auto said = [&](const any_step_law& law, double total_s) {
    p.stages[0].total_s = total_s;
    return test::message_of<invalid_model>([&] { return law.latency(p); });
  };
  struct far_off : test::no_flush {
    double reach_s = 0, takes_s = 0;  ///< answers beyond 1000 s
    using no_flush::extend;
    [[nodiscard]] pipeline_tail extend(const pipelining& q, const stage_times& s, const pipeline_tail& behind) const {
      return s.total_s > 1000 ? pipeline_tail{reach_s, 0} : no_flush::extend(q, s, behind);
    }
    [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const {
      return whole.reach_s > 1000 ? takes_s : whole.reach_s;
    }
  };
  const far_off no_number{{}, std::numeric_limits<double>::quiet_NaN(), 0}, negative{{}, 2000, -5};
  CHECK_NOTHROW(check_law(no_number, {2, 1}));
  CHECK(said(no_number, 3) == "no error");
  CHECK(said(no_number, 2000) == "step law, 2 microbatches: stage (2000, 0, 0) before tail (0, 0) gives tail (nan, 0); expected numbers");
  CHECK(said(negative, 2000) == "step law, 2 microbatches: response_s of tail (2000, 0) is -5 s; expected a number >= 0");
}
