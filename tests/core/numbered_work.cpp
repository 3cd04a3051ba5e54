// SPDX-License-Identifier: BSL-1.0
#include <hetplan/core/crew.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

using namespace hetplan;

namespace {

const std::vector<int> crews{-1, 0, 1, 2, 3, 8, 40};  // 0: as many threads as the machine runs at once

/// Early pieces take longest, so that later ones end first.
std::size_t slow_square(std::size_t i) {
  std::this_thread::sleep_for(std::chrono::microseconds(300 / (i + 1)));
  return i * i;
}

}  // namespace

TEST_CASE("numbered work hands out its results in order, whatever the threads") {
  for (const int threads : crews) {
    INFO("threads " << threads);
    numbered_work squares(40, threads, slow_square);
    for (std::size_t i = 0; i < 40; ++i) REQUIRE(squares.take(i) == i * i);
  }
}

TEST_CASE("every piece of numbered work is done once") {
  for (const int threads : crews) {
    INFO("threads " << threads);
    std::vector<std::atomic<int>> done(30);
    {
      numbered_work crew(done.size(), threads, [&](std::size_t i) { return ++done[i]; });
      for (std::size_t i = 0; i < done.size(); ++i) REQUIRE(crew.take(i) == 1);
    }
    CHECK(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
  }
}

TEST_CASE("numbered work runs side by side on several threads, and on the caller's with one") {
  std::promise<void> second_began;
  const std::shared_future<void> began = second_began.get_future().share();
  numbered_work two(2, 2, [&](std::size_t i) {  // the first piece ends only after the second has begun
    if (i == 1) second_began.set_value();
    return began.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  });
  CHECK(two.take(0));
  CHECK(two.take(1));

  numbered_work alone(3, 1, [](std::size_t) { return std::this_thread::get_id(); });
  for (std::size_t i = 0; i < 3; ++i) CHECK(alone.take(i) == std::this_thread::get_id());
}

TEST_CASE("on one thread a piece of numbered work waits until it is taken") {
  int done = 0;
  numbered_work lazy(5, 1, [&](std::size_t) { return ++done; });
  CHECK(done == 0);
  CHECK(lazy.take(0) == 1);
  CHECK(done == 1);
}

TEST_CASE("what a piece of numbered work throws comes when that piece is taken, and the pieces before it are good") {
  for (const int threads : crews) {
    INFO("threads " << threads);
    numbered_work crew(20, threads, [](std::size_t i) -> std::size_t {
      if (i == 7 || i == 3) throw std::runtime_error("piece " + std::to_string(i));
      return i;
    });
    std::string first;
    std::size_t taken = 0;
    try {
      while (taken < 20 && crew.take(taken) == taken) ++taken;
    } catch (const std::runtime_error& e) {
      first = e.what();
    }
    CHECK(taken == 3);
    CHECK(first == "piece 3");
    CHECK(crew.take(4) == 4);  // others are not lost
    CHECK_THROWS_WITH(crew.take(7), "piece 7");
    CHECK(crew.take(19) == 19);
  }
}

TEST_CASE("numbered work that goes out of scope ends what has begun and leaves the rest") {
  constexpr std::size_t count = 10'000;
  std::atomic<int> begun = 0, ended = 0;
  {
    numbered_work crew(count, 3, [&](std::size_t i) {
      ++begun;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++ended;
      return i;
    });
    CHECK(crew.take(0) == 0);
  }
  CHECK(begun == ended);
  CHECK(begun >= 1);
  CHECK(begun < static_cast<int>(count));
}

TEST_CASE("numbered work of no pieces, and of fewer than threads, ends") {
  for (const int threads : crews) {
    INFO("threads " << threads);
    const numbered_work none(0, threads, [](std::size_t i) { return i; });
    numbered_work one(1, threads, [](std::size_t i) { return i + 5; });
    CHECK(one.take(0) == 5);
  }
}

TEST_CASE("results of numbered work need neither a default nor a copy") {
  struct answer {
    explicit answer(std::size_t n) : number(std::make_unique<std::size_t>(n)) {}
    std::unique_ptr<std::size_t> number;
  };
  for (const int threads : {1, 3}) {
    numbered_work crew(4, threads, [](std::size_t i) { return answer(i); });
    for (std::size_t i = 0; i < 4; ++i) CHECK(*crew.take(i).number == i);
  }
}
