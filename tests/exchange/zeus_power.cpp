// SPDX-License-Identifier: BSL-1.0
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/zeus_power.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_zeus_power {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::message_of;
using test::near;
using test::with;

namespace {

const std::string toy =
    "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
    "imagenet,resnet50,64,adadelta,250,120,240\n"
    "imagenet,resnet50,8,adadelta,250,390,150.5\n"
    "imagenet,resnet50,16,adadelta,250,180,160\n"
    "imagenet,resnet50,64,adadelta,100,500,99\n"
    "squad,bert,8,adamw,250,60,200\n"
    "sentiment140,bert,8,adam,250,70,210\n";

std::vector<exchange::zeus_measurement> read(const std::string& text) { return exchange::parse_zeus_power(text, "power.csv"); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}
std::string refused(const exchange::zeus_selection& s) {
  return message_of([&] { return exchange::zeus_times(read(toy), s); });
}

}  // namespace

TEST_CASE("a power trace of Zeus is read row by row") {
  const auto all = read(toy);
  REQUIRE(all.size() == 6);
  CHECK(all[1].dataset == "imagenet");
  CHECK(all[1].network == "resnet50");
  CHECK(all[1].optimizer == "adadelta");
  CHECK(all[1].batch == 8);
  CHECK(all[1].power_limit == 250_W);
  CHECK(all[1].epoch == 390_s);
  CHECK(all[1].average_power == watts(150.5));
}

TEST_CASE("a pass is a third of an iteration, at least that of a smaller batch") {
  // 1000 samples: 125, 63 and 16 iterations of 3.12, 2.857... (less, by noise) and 7.5 s.
  const auto t = exchange::zeus_times(read(toy), {.network = "resnet50", .power_limit = 250_W, .samples_per_epoch = 1000});
  CHECK(t.pass.batch == std::vector<int>{1, 8, 16, 64});
  CHECK(t.pass.seconds_at[0] == near(1.04));
  CHECK(t.pass.seconds_at[1] == near(1.04));
  CHECK(t.pass.seconds_at[2] == near(1.04));
  CHECK(t.pass.seconds_at[3] == near(2.5));
  CHECK(t.per_token_s == 0);
  CHECK(t.step.batch.empty());
  CHECK_NOTHROW(serve::service_time_table({{t}}));
  const auto whole = exchange::zeus_times(
      read(toy), {.network = "bert", .dataset = "squad", .power_limit = 250_W, .samples_per_epoch = 16, .forward_share = 1});
  CHECK(whole.pass.seconds_at == std::vector<double>{30, 30});
}

TEST_CASE("a power trace that is wrong ends in one sentence with its line") {
  CHECK_THAT(error(with(toy, "power_limit", "limit")), Contains("power.csv: line 1") && Contains("\"power_limit\""));
  CHECK_THAT(error(with(toy, ",390,", ",0,")), Contains("power.csv: line 3: time_per_epoch: expected seconds > 0"));
  CHECK_THAT(error(with(toy, ",390,", ",nan,")), Contains("power.csv: line 3: time_per_epoch: expected seconds > 0"));
  CHECK_THAT(error(with(toy, ",240", ",-240")), Contains("power.csv: line 2: average_power: expected W > 0"));
  CHECK_THAT(error(with(toy, "resnet50,8,", "resnet50,0,")), Contains("power.csv: line 3: batch_size: expected a whole number from 1"));
  CHECK_THAT(error(toy.substr(0, toy.size() - 8)), Contains("power.csv: line 7: expected 7 fields"));
  CHECK_THAT(error(toy.substr(0, toy.find('\n') + 1)), Contains("got none"));
}

TEST_CASE("a selection that means no row or several is refused") {
  CHECK_THAT(refused({.network = "bert", .power_limit = 250_W, .samples_per_epoch = 1}), Contains("one row of \"bert\" at a batch of 8") &&
                                                                                             Contains("\"squad\" by \"adamw\"") &&
                                                                                             Contains("\"sentiment140\" by \"adam\""));
  CHECK_NOTHROW(exchange::zeus_times(read(toy), {.network = "bert", .optimizer = "adam", .power_limit = 250_W, .samples_per_epoch = 1}));
  CHECK_THAT(refused({.network = "resnet50", .power_limit = 225_W, .samples_per_epoch = 1}), Contains("\"resnet50\" at 225 W, got none"));
  CHECK_THAT(refused({.network = "resnet50", .power_limit = 250_W}), Contains("samples_per_epoch = 0"));
  CHECK_THAT(refused({.network = "resnet50", .power_limit = 250_W, .samples_per_epoch = 1, .forward_share = 0}),
             Contains("forward_share = 0"));
  CHECK_THAT(refused({.network = "resnet50", .power_limit = 250_W, .samples_per_epoch = 1, .forward_share = 1.5}), Contains("at most 1"));
}

TEST_CASE("Zeus' power traces of the collection have the sums that were made apart") {
  const auto folder = test::shared_data("data/zeus/examples/research_reproducibility/zeus_nsdi23/trace");
  if (!folder) return;
  struct known {
    std::string kind;
    std::size_t rows;
    double sum_s;
  };
  for (const auto& k : {known{"a40", 453, 1327722.4522905003}, known{"p100", 270, 2288203.9334175405},
                        known{"rtx6000", 410, 1625961.5872420662}, known{"v100", 476, 1815194.0823364097}}) {
    CAPTURE(k.kind);
    const auto all = exchange::read_zeus_power((*folder / ("summary_power_" + k.kind + ".csv")).string());
    CHECK(all.size() == k.rows);
    double sum_s = 0;
    for (const auto& m : all) sum_s += m.epoch.value();
    CHECK(sum_s == Approx(k.sum_s).epsilon(1e-12));
    // ImageNet's training set has 1 281 167 pictures.
    const auto t = exchange::zeus_times(all, {.network = "resnet50", .power_limit = 250_W, .samples_per_epoch = 1'281'167});
    CHECK_NOTHROW(serve::service_time_table({{t}}));
    CHECK(t.pass.batch[1] == 8);
    CHECK(t.pass.seconds_at[0] > 0.01);
    CHECK(t.pass.seconds_at[0] < 0.03);
  }
}

}  // namespace test_zeus_power
