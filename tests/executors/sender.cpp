// SPDX-License-Identifier: BSL-1.0
// A device's sender: the order in which its parcels cross the medium. Arrival times come from the medium, not the clock, and are exact.
#include <catch2/catch.hpp>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "executors/common/transport.hpp"

namespace test_sender {

using executors::parcel;
using hetplan::device_id;

namespace {

/// Two flows from one sender over one resource of 8 MB/s, with the arrival time of each part.
class bench {
 public:
  bench() : free_at_s_(1, 0), states_(2), medium_({resources_.data(), 1}, rules(), free_at_s_, states_, lock_) {
    for (const executors::flow_rule& r : rules()) {
      program_.flows.push_back({.from = device_id(0), .to = device_id(1), .latency_s = 0.004});
      program_.rules.push_back(r);
    }
  }
  executors::program& program() { return program_; }

  std::map<std::pair<std::size_t, int>, double> run(std::vector<parcel> parcels) {
    const std::size_t all = parcels.size();
    std::map<std::pair<std::size_t, int>, double> at_s;
    std::mutex mutex;
    std::condition_variable arrived;
    executors::sender<std::mutex> out(program_, medium_, [&](const parcel& x) {
      const std::lock_guard hold(mutex);
      at_s[{x.flow, x.part}] = x.at_s - begin_s_;
      arrived.notify_one();
    });
    out.send(std::move(parcels));
    std::unique_lock hold(mutex);
    REQUIRE(arrived.wait_for(hold, std::chrono::seconds(20), [&] { return at_s.size() == all; }));
    return at_s;
  }
  /// Returns a parcel of 80 kB, which takes 10 ms alone.
  [[nodiscard]] parcel of(std::size_t flow, int part, double at_s) const {
    return {flow, part, std::vector<double>(10000), begin_s_ + at_s};
  }

 private:
  static std::vector<executors::flow_rule> rules() { return {2, {{{hetplan::resource_id(0), 1}}, 0}}; }

  const double begin_s_ = executors::steady_s();
  std::vector<hetplan::resource> resources_ = {{"air", hetplan::bytes_per_second(8e6)}};
  std::vector<double> free_at_s_;
  std::vector<executors::flow_state> states_;
  std::mutex lock_;
  executors::medium<std::mutex> medium_;
  executors::program program_;
};

constexpr double pieces_s = 2 * 0.75e-3;

}  // namespace

TEST_CASE("Parts of one flow arrive one after the other, also where the second is there before the first has left") {
  bench b;
  const auto at_s = b.run({b.of(0, 0, 0), b.of(0, 1, 0.006)});
  CHECK(at_s.at({0, 0}) == Approx(0.014));  // including the latency, which later parts do not wait for
  CHECK(at_s.at({0, 1}) == Approx(0.024));
}

TEST_CASE("A chunk waits for the chunk before it, and no longer") {
  bench b;
  b.program().flows[1].after = 0;
  b.program().flows[1].latency_s = 0;
  const auto at_s = b.run({b.of(0, 0, 0), b.of(1, 0, 0)});
  CHECK(at_s.at({0, 0}) == Approx(0.014));
  CHECK(at_s.at({1, 0}) == Approx(0.024));
}

TEST_CASE("Flows of one sender share what they both use") {
  bench b;
  const auto at_s = b.run({b.of(0, 0, 0), b.of(1, 0, 0)});
  CHECK(at_s.at({0, 0}) == Approx(0.024).margin(pieces_s));
  CHECK(at_s.at({1, 0}) == Approx(0.024).margin(pieces_s));
}

}  // namespace test_sender
