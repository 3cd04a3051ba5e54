// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>

using namespace hetplan;

namespace {

template <class A, class B>
concept adds = requires(A a, B b) { a + b; };
template <class A, class B>
concept compares = requires(A a, B b) { a < b; };
template <class A, class B>
concept equates = requires(A a, B b) { a == b; };

/// The literal has this type and this many SI units.
template <class Quantity>
void check_si(std::type_identity_t<Quantity> q, double si) {
  CHECK(q.value() == Approx(si).epsilon(1e-15));
}

}  // namespace

TEST_CASE("literals are SI numbers with a dimension") {
  check_si<seconds>(5_s, 5);
  check_si<seconds>(5_ms, 0.005);
  check_si<seconds>(2.5_us, 2.5e-6);
  check_si<bytes>(7_B, 7);
  check_si<bytes>(7_kB, 7e3);
  check_si<bytes>(7_MB, 7e6);
  check_si<bytes>(0.5_GB, 5e8);
  check_si<bytes>(1_MiB, 1048576);
  check_si<bytes>(3_GiB, 3.0 * 1024 * 1024 * 1024);
  check_si<joules>(9_J, 9);
  check_si<watts>(35_W, 35);
  check_si<joules_per_byte>(4e-8_J_per_B, 4e-8);
  check_si<flops>(11_FLOP, 11);
  check_si<flops>(11_MFLOP, 11e6);
  check_si<flops>(11_GFLOP, 11e9);
  check_si<flops>(1.5_TFLOP, 1.5e12);
  check_si<flops_per_second>(30_GFLOP_per_s, 30e9);
  check_si<flops_per_second>(9.1_TFLOP_per_s, 9.1e12);
  check_si<bytes_per_second>(900_Mbit_per_s, 112.5e6);  // bits, not bytes
  check_si<bytes_per_second>(10_Gbit_per_s, 1.25e9);
  check_si<bytes_per_second>(3_MB_per_s, 3e6);
  check_si<bytes_per_second>(3_GB_per_s, 3e9);
}

TEST_CASE("products and quotients combine dimensions") {
  check_si<joules>(10_W * 3_s, 30);
  check_si<joules>(3_s * 10_W, 30);
  check_si<watts>(30_J / 3_s, 10);
  check_si<seconds>(100_MB / 50_MB_per_s, 2);
  check_si<seconds>(4_GFLOP / 2_GFLOP_per_s, 2);
  check_si<bytes_per_second>(100_MB / 2_s, 5e7);
  check_si<joules>(2e-8_J_per_B * 1_GB, 20);
  check_si<quantity<2, 0, 0, 0>>(3_s * 3_s, 9);
  check_si<quantity<-1, 0, 0, 0>>(1 / 4_s, 0.25);
}

TEST_CASE("what has no dimension is a plain double") {
  static_assert(std::same_as<decltype(6_s / 3_s), double>);
  static_assert(std::same_as<decltype((1 / 4_s) * 8_s), double>);
  CHECK(6_s / 4_s == 1.5);
  CHECK((1 / 4_s) * 8_s == 2);
}

TEST_CASE("numbers scale a quantity, and quantities of one dimension add and compare") {
  seconds t = 3_s;
  t += 1_s;
  t -= 2_s;
  t *= 4;
  CHECK(t == 8_s);
  CHECK(t / 2 == 4_s);
  CHECK(0.5 * t == t * 0.5);
  CHECK(-t + 9_s == 1_s);
  CHECK(9_s - t == 1_s);
  CHECK(7_s < t);
  CHECK(t != 7_s);
  CHECK(seconds{} == 0_s);
  static_assert(3_s - 5_s == -2_s, "usable at compile time");
}

TEST_CASE("different dimensions neither add nor compare nor convert") {
  static_assert(adds<seconds, seconds> && compares<seconds, seconds> && equates<seconds, seconds>);
  static_assert(!adds<seconds, bytes> && !compares<seconds, bytes> && !equates<seconds, bytes>);
  static_assert(!adds<seconds, double> && !compares<seconds, double>);
  static_assert(!std::convertible_to<double, seconds>, "a bare number has no unit");
  static_assert(!std::convertible_to<seconds, double>, "the unit is left at the door on purpose, with value()");
  static_assert(!std::constructible_from<seconds, bytes>);
  static_assert(sizeof(seconds) == sizeof(double) && std::is_trivially_copyable_v<seconds>);
}

TEST_CASE("not-a-number is unordered and not finite") {
  const seconds nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(nan == nan);
  CHECK_FALSE(nan < 1_s);
  CHECK_FALSE(nan >= 1_s);
  CHECK_FALSE(is_finite(nan));
  CHECK_FALSE(is_finite(bytes(std::numeric_limits<double>::infinity())));
  CHECK(is_finite(bytes(std::numeric_limits<double>::max())));
}

TEST_CASE("ids of different tables do not mix, and a fresh id names nothing") {
  static_assert(!std::convertible_to<layer_id, device_id> && !std::constructible_from<device_id, layer_id>);
  static_assert(!equates<layer_id, device_id> && !compares<layer_id, stage_id>);
  static_assert(!std::convertible_to<int, layer_id>, "a number becomes an id openly");
  CHECK_FALSE(layer_id{}.valid());
  CHECK(layer_id(0).valid());
  CHECK(layer_id(std::size_t{7}).index() == 7);
  CHECK(layer_id(7) == layer_id(7L));
  CHECK(layer_id(3) < layer_id(10));
  CHECK(task_id{} != task_id(0));
  CHECK(resource_id(2) > resource_id(1));
}

TEST_CASE("a number's text reads back to the same bits and is the shortest that does") {
  CHECK(to_text(0.1) == "0.1");
  CHECK(to_text(3) == "3");
  CHECK(to_text(-0.0) == "-0");
  CHECK(to_text(1e300) == "1e+300");
  CHECK(to_text(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(to_text(-std::numeric_limits<double>::infinity()) == "-inf");

  const auto same = [](double v) {
    const std::string text = to_text(v);
    double back = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
    INFO(text);
    CHECK(error == std::errc{});
    CHECK(end == text.data() + text.size());
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(v));
  };
  for (const double v : {-std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(), 1.0 / 3}) same(v);
  const std::uint64_t seed = 1;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto v = std::bit_cast<double>(random());
    if (std::isfinite(v)) same(v);
  }
}

TEST_CASE("a status is fine unless it says otherwise") {
  CHECK(status{}.ok());
  CHECK_FALSE(status{outcome::infeasible, "memory"}.ok());
  CHECK_FALSE(status{outcome::stopped, ""}.ok());
  CHECK(to_string(outcome::feasible) == "feasible");
  CHECK(to_string(outcome::infeasible) == "infeasible");
  CHECK(to_string(outcome::stopped) == "stopped");
  CHECK(status{outcome::stopped, "a"} != status{outcome::stopped, "b"});
}

TEST_CASE("bad input and a bad model are told apart by type") {
  static_assert(std::derived_from<invalid_input, std::invalid_argument>);
  static_assert(std::derived_from<invalid_model, std::runtime_error>);
  static_assert(!std::derived_from<invalid_model, std::logic_error>);
  CHECK(std::string(invalid_input("who: what").what()) == "who: what");
}

TEST_CASE("the version's text is made of its three numbers") {
  CHECK(version ==
        std::to_string(HETPLAN_VERSION_MAJOR) + "." + std::to_string(HETPLAN_VERSION_MINOR) + "." + std::to_string(HETPLAN_VERSION_PATCH));
}

TEST_CASE("amounts and times are compared to one part in 10^9") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (int n = 1; n <= 100000; ++n) {
    sum += 0.1;
    if (at_most(sum, n / 10.0) && at_most(n / 10.0, sum)) continue;
    FAIL(n << " tenths are " << to_text(sum));
  }
  CHECK(at_most(1.0, 1.0 - 0.9e-9));
  CHECK_FALSE(at_most(1.0, 1.0 - 1.1e-9));
  CHECK(at_most(1e300 * (1 + 0.9e-9), 1e300));
  CHECK_FALSE(at_most(1e-300, 0.0));
  CHECK(at_most(0.0, 0.0));
  CHECK(at_most(-1.0, -1.0 - 0.9e-9));
  CHECK_FALSE(at_most(-1.0, -1.0 - 1.1e-9));
  CHECK(at_most(1.0, inf));
  CHECK(at_most(inf, inf));
  CHECK_FALSE(at_most(inf, 1.0));
  CHECK(at_most(-inf, 0.0));
  for (const double x : {nan, 1.0}) {
    CHECK_FALSE(at_most(x, nan));
    CHECK_FALSE(at_most(nan, x));
  }
  CHECK(at_most(seconds(0.1) + seconds(0.2), seconds(0.3)));
  CHECK_FALSE(at_most(0.301_s, 0.3_s));

  // On a clock: a part of the span, and four steps of the clock.
  CHECK(at_most(1000 + 0.9e-9, 1000, 1));
  CHECK_FALSE(at_most(1000 + 1.1e-9, 1000, 0.5));
  CHECK_FALSE(at_most(1000.0001, 1000, 0.3));
  const double long_ago = 1.7e9;
  CHECK(at_most(long_ago + 0.1 + 0.1 + 0.1, long_ago + 0.3, 0.3));
  CHECK_FALSE(at_most(long_ago + 0.30001, long_ago + 0.3, 0.3));
}

TEST_CASE("a queue gives the earliest first, by the key of ties whenever they came") {
  std::vector<std::pair<double, int>> events;
  for (int key = 0; key < 60; ++key) events.emplace_back(key % 7, key);
  std::mt19937_64 random(1);
  std::shuffle(events.begin(), events.end(), random);
  min_queue<std::pair<double, int>> queue;
  for (const auto& e : events) queue.push(e);
  CHECK(std::is_permutation(queue.begin(), queue.end(), events.begin(), events.end()));
  std::sort(events.begin(), events.end());
  for (const auto& e : events) {
    CHECK(queue.first() == e);
    CHECK(queue.pop() == e);
  }
  CHECK(queue.empty());
}
