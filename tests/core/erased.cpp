// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <memory>
#include <utility>

#include <hetplan/core/erased.hpp>

namespace test_erased {
using namespace hetplan;

struct counter {
  std::shared_ptr<int> alive;  ///< use_count: this object and the test's own
  int value = 0;
  int add(int n) { return value += n; }
  [[nodiscard]] int get() const { return value; }
};
struct calls {
  int (*add)(void*, int);
  int (*get)(void*);
};
template <class T>
erased<calls> hold(T object) {
  return {std::move(object),
          {.add = [](void* o, auto... a) { return as<T>(o).add(a...); }, .get = [](void* o) { return as<const T>(o).get(); }}};
}

TEST_CASE("copies of an erased object share it, and it dies with the last of them") {
  const auto alive = std::make_shared<int>();
  erased<calls> first = hold(counter{alive, 1});
  CHECK(alive.use_count() == 2);
  {
    const erased<calls> second = first;
    CHECK(alive.use_count() == 2);
    CHECK(second.call(&calls::add, 2) == 3);
    CHECK(first.call(&calls::get) == 3);
    erased<calls> third = std::move(first);
    CHECK(third.call(&calls::add, 1) == 4);
    CHECK(second.call(&calls::get) == 4);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move)
  }
  CHECK(alive.use_count() == 1);
}

TEST_CASE("nothing is erased by default, and an object of another type may follow") {
  struct constant {
    int add(int n) const { return n; }
    int get() const { return 7; }
    std::unique_ptr<int> not_copied = {};
  };
  erased<calls> held;
  CHECK_FALSE(held);
  held = hold(counter{});
  held = hold(constant{});
  CHECK(held);
  CHECK(held.call(&calls::get) == 7);
}

}  // namespace test_erased
