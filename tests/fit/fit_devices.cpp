// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/fit/fit_devices.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/message_of.hpp"

using namespace hetplan;
using fit::measured;
using fit::parameter_kind;
using fit::verdict;

namespace test_fit_devices {

/// Blocks of a product and attention with a cache, and a head of the last token: small enough to be judged thousands of times.
std::shared_ptr<const planning_graph> small_language_model(const std::string& format = "f16", int tokens = 64) {
  planning_graph_builder b("small-" + format, model_facts{.bytes_per_parameter = 2, .tokens_per_sample = tokens, .weight_format = format});
  layer_id last = b.add_layer({.name = "embed", .forward_flops = flops(0), .weight = 100_MB, .weight_traffic = bytes(0)});
  for (int i = 0; i < 4; ++i) {
    const std::string block = "l" + std::to_string(i) + ".";
    token_work w;
    w.attention_flops = flops(4e4);
    const double pairs = w.pairs(tokens, 0);
    const layer_id attention = b.add_layer({.name = block + "attention",
                                            .forward_flops = flops(1e8 * tokens + 4e4 * pairs),
                                            .weight = 100_MB,
                                            .kv_bytes_per_token = bytes(4e4),
                                            .sequence = w,
                                            .calls = 5});
    const layer_id mlp = b.add_layer({.name = block + "mlp", .forward_flops = flops(4e8 * tokens), .weight = 400_MB, .calls = 3});
    b.add_edge(last, attention, bytes(8e3 * tokens));
    b.add_edge(attention, mlp, bytes(8e3 * tokens));
    last = mlp;
  }
  token_work w;
  w.last_token = true;
  const layer_id head = b.add_layer({.name = "head", .forward_flops = flops(2e8 * tokens), .weight = 200_MB, .sequence = w});
  b.add_edge(last, head, bytes(8e3 * tokens));
  return std::make_shared<const planning_graph>(std::move(b).build());
}

device gpu(const std::string& name) {
  return {.name = name, .memory = 24_GB, .compute = flops_per_second(1e14), .memory_bandwidth = bytes_per_second(1e12)};
}

fit::measurement decode(std::shared_ptr<const planning_graph> m, int batch, int context, int tokens = 1) {
  return {.devices = {device_id(0)},
          .model = std::move(m),
          .what = measured::decode_tokens_per_s,
          .batch = batch,
          .context = context,
          .tokens = tokens};
}
fit::measurement prefill(std::shared_ptr<const planning_graph> m, int batch, int prompt) {
  return {.devices = {device_id(0)}, .model = std::move(m), .what = measured::prefill_tokens_per_s, .batch = batch, .prompt = prompt};
}

/// Gives every row what the judge says of it on the cluster.
void measure(std::vector<fit::measurement>& rows, const cluster& c) {
  for (fit::measurement& m : rows) m.value = fit::predict(m, c);
}

const fit::parameter& find(const fit::fit_result& r, parameter_kind what, const std::string& format = "") {
  for (const fit::parameter& p : r.parameters) {
    if (p.what == what && p.format == format) return p;
  }
  throw std::logic_error("no such parameter");
}

double sum_of_squares(const std::vector<fit::measurement>& rows, const cluster& c) {
  double sum = 0;
  for (const fit::measurement& m : rows) sum += m.weight * std::pow(std::log(fit::predict(m, c) / m.value), 2);
  return sum;
}

}  // namespace test_fit_devices

using namespace test_fit_devices;

TEST_CASE("fit: a prediction is what the judge says of the row's plan", "[fit]") {
  const auto m = small_language_model();
  device d = gpu("a");
  d.overhead = 1_ms;
  d.launch = seconds(1e-6);
  const cluster c("one", d);
  // 2.2 GB of weights at 1 TB/s, 34 launches (a call of the embedding and of the head among them), the cache of 4 blocks and 102 tokens.
  fit::measurement row = decode(m, 1, 100);
  const evaluation e = judge(fit::plan_of(row, c), *m, c, roofline{}).evaluation;
  CHECK(fit::predict(row, c) == Approx(1 / e.latency.value()).epsilon(1e-12));
  const double step_s = 2.2e-3 + 1e-3 + 34e-6 + 4 * 4e4 * 102 / 1e12;
  CHECK(1 / fit::predict(row, c) == Approx(step_s).epsilon(0.001));  // but for the activations, which are small
  // A layer's seconds leave the overhead of a task out.
  row.what = measured::layer_seconds;
  row.prompt = 1;
  CHECK(fit::predict(row, c) == Approx(e.latency.value() - 1e-3).epsilon(1e-12));
  row = prefill(m, 2, 300);
  CHECK(2 * 300 / fit::predict(row, c) == Approx(judge(fit::plan_of(row, c), *m, c, roofline{}).evaluation.ttft->value()).epsilon(1e-12));
}

TEST_CASE("fit: a pipeline's stages have layers by memory, cut where little crosses", "[fit]") {
  const auto m = small_language_model();
  device a = gpu("a"), b = gpu("b");
  b.memory = 72_GB;
  const cluster c("two", {a, b}, shared_medium{bytes_per_second(1e10)});
  fit::measurement row = decode(m, 1, 0);
  row.devices = {device_id(0), device_id(1)};
  const plan p = fit::plan_of(row, c);
  REQUIRE(p.stages.size() == 2);
  CHECK((*m)[p.stages[1].layers.front()].name == "l1.attention");  // 0.5 of 2.2 GB
  CHECK(p.stages[0].layers.size() + p.stages[1].layers.size() == m->size());
}

TEST_CASE("fit: known numbers are found again", "[fit]") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto between = [&](double a, double b) { return a + (b - a) * static_cast<double>(random() >> 11) * 0x1p-53; };
    device d = gpu("a");
    const cluster unknown("one", d);
    d.efficiency = between(0.3, 0.9);
    d.memory_efficiency = between(0.3, 0.9);
    d.cache_efficiency = between(0.2, 0.9);
    d.half_rows = between(5, 60);
    d.launch = seconds(between(5e-6, 5e-5));
    d.overhead = seconds(between(1e-4, 1e-3));
    const cluster truth("one", d);
    const auto m = small_language_model();
    std::vector<fit::measurement> rows{decode(m, 1, 100),   decode(m, 1, 20000), decode(m, 16, 4000),
                                       prefill(m, 1, 4000), prefill(m, 4, 500),  prefill(m, 1, 20000)};
    for (const char* part : {"l0.attention", "l0.mlp"}) {
      const auto layers = std::make_shared<const planning_graph>(fit::layers_named(*m, {part}));
      for (const int prompt : {1, 1000, 3000}) {
        rows.push_back({.devices = {device_id(0)}, .model = layers, .what = measured::layer_seconds, .prompt = prompt, .context = 0});
      }
    }
    measure(rows, truth);
    const fit::fit_result r = fit::fit_devices(unknown, rows, {.tolerance = 1e-7});
    const device& found = r.cluster[device_id(0)];
    CHECK(share_for(found.efficiency, "f16", found, "efficiency") == Approx(d.efficiency.of_all).epsilon(1e-6));
    CHECK(share_for(found.memory_efficiency, "f16", found, "memory_efficiency") == Approx(d.memory_efficiency.of_all).epsilon(1e-6));
    CHECK(found.cache_efficiency == Approx(d.cache_efficiency).epsilon(1e-6));
    CHECK(found.half_rows == Approx(d.half_rows).epsilon(1e-6));
    CHECK(found.launch.value() == Approx(d.launch.value()).epsilon(1e-6));
    CHECK(found.overhead.value() == Approx(d.overhead.value()).epsilon(1e-6));
    CHECK(sum_of_squares(rows, r.cluster) < 1e-18);
  }
}

TEST_CASE("fit: shares belong to weight formats, and what a device knows of others stays", "[fit]") {
  device d = gpu("a");
  d.efficiency = attained_share({{"q8", 0.5}});
  const cluster unknown("one", d);
  d.efficiency = attained_share({{"q8", 0.5}, {"f16", 0.6}, {"q4", 0.3}});
  d.memory_efficiency = attained_share({{"f16", 0.8}, {"q4", 0.55}});
  const cluster truth("one", d);
  std::vector<fit::measurement> rows;
  for (const char* format : {"f16", "q4"}) {
    const auto m = small_language_model(format);
    rows.push_back(decode(m, 1, 0, 64));
    rows.push_back(prefill(m, 1, 2000));
  }
  measure(rows, truth);
  const fit::fit_result r = fit::fit_devices(unknown, rows);
  REQUIRE(r.cluster[device_id(0)].efficiency.by_format.size() == 3);
  CHECK(r.cluster[device_id(0)].efficiency.by_format[0] == std::pair<std::string, double>{"q8", 0.5});
  CHECK(find(r, parameter_kind::efficiency, "f16").after == Approx(0.6).epsilon(1e-6));
  CHECK(find(r, parameter_kind::efficiency, "q4").after == Approx(0.3).epsilon(1e-6));
  CHECK(find(r, parameter_kind::memory_efficiency, "f16").after == Approx(0.8).epsilon(1e-6));
  CHECK(find(r, parameter_kind::memory_efficiency, "q4").after == Approx(0.55).epsilon(1e-6));

  // Without formats the shares are plain numbers; beside others a model without one has the share of the others.
  std::vector<fit::measurement> plain{decode(small_language_model(""), 1, 0)};
  measure(plain, cluster("one", gpu("a")));
  const fit::fit_result of_all = fit::fit_devices(cluster("one", gpu("a")), plain);
  CHECK(of_all.cluster[device_id(0)].memory_efficiency.by_format.empty());
  plain.push_back(prefill(small_language_model(""), 1, 2000));
  device other = gpu("a");
  other.efficiency = attained_share({{"q8", 0.5}, {"other", 0.7}});
  measure(plain, cluster("one", other));
  const fit::fit_result of_others = fit::fit_devices(unknown, plain);
  CHECK(find(of_others, parameter_kind::efficiency, "other").after == Approx(0.7).epsilon(1e-6));
  CHECK(*of_others.cluster[device_id(0)].efficiency.find("q8") == 0.5);

  // A model without a format can be planned on a device that was fitted to one with a format.
  rows.resize(2);
  const fit::fit_result of_one = fit::fit_devices(cluster("one", gpu("a")), rows);
  CHECK(*of_one.cluster[device_id(0)].efficiency.find("") == find(of_one, parameter_kind::efficiency, "f16").after);
}

TEST_CASE("fit: no point of a grid of two shares is better", "[fit]") {
  const auto m = small_language_model();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto noise = [&] { return 1 + 0.2 * (static_cast<double>(random() >> 11) * 0x1p-52 - 1); };
    device d = gpu("a");
    d.efficiency = 0.5;
    d.memory_efficiency = 0.6;
    std::vector<fit::measurement> rows{decode(m, 1, 100), decode(m, 8, 3000), prefill(m, 1, 64), prefill(m, 1, 300), prefill(m, 1, 3000)};
    measure(rows, cluster("one", d));
    for (fit::measurement& row : rows) row.value *= noise();
    const cluster start("one", gpu("a"));
    const fit::fit_result r =
        fit::fit_devices(start, rows, {.parameters = {parameter_kind::efficiency, parameter_kind::memory_efficiency}});
    const double reached = sum_of_squares(rows, r.cluster);
    CHECK(reached <= sum_of_squares(rows, start));
    double least = 1e9;
    for (double e = 0.05; e <= 1; e += 0.025) {
      for (double b = 0.05; b <= 1; b += 0.025) {
        device at = gpu("a");
        at.efficiency = e;
        at.memory_efficiency = b;
        least = std::min(least, sum_of_squares(rows, cluster("one", at)));
      }
    }
    CHECK(reached <= least + 1e-12);
  }
}

TEST_CASE("fit: parameters that rows do not tell keep their numbers, and why is said", "[fit]") {
  const auto m = small_language_model();
  device d = gpu("a");
  d.half_rows = 7;
  d.launch = seconds(2e-6);
  d.cache_efficiency = 0.5;
  const cluster start("one", d);
  d.efficiency = 0.4;
  std::vector<fit::measurement> rows{prefill(m, 1, 2000)};
  measure(rows, cluster("one", d));
  const fit::fit_result r = fit::fit_devices(start, rows);
  CHECK(find(r, parameter_kind::efficiency, "f16").verdict == verdict::fitted);
  CHECK(find(r, parameter_kind::efficiency, "f16").after == Approx(0.4).epsilon(1e-6));
  CHECK(find(r, parameter_kind::memory_efficiency, "f16").verdict == verdict::unused);
  const fit::parameter& half = find(r, parameter_kind::half_rows);
  CHECK(half.verdict == verdict::inseparable);
  REQUIRE(half.like.size() == 1);
  CHECK(r.parameters[half.like.front()].name() == "efficiency (f16) of a");
  const device& found = r.cluster[device_id(0)];
  CHECK((found.half_rows == 7 && found.launch == seconds(2e-6) && found.cache_efficiency == 0.5));
  CHECK(share_for(found.memory_efficiency, "f16", found, "memory_efficiency") == 1);
}

TEST_CASE("fit: a share that the rows want beyond its limit ends there", "[fit]") {
  std::vector<fit::measurement> rows{decode(small_language_model(), 1, 0)};
  device fast = gpu("a");
  fast.memory_bandwidth = bytes_per_second(2e12);
  measure(rows, cluster("one", fast));
  const fit::fit_result r = fit::fit_devices(cluster("one", gpu("a")), rows);
  CHECK(find(r, parameter_kind::memory_efficiency, "f16").verdict == verdict::at_limit);
  CHECK(find(r, parameter_kind::memory_efficiency, "f16").after == 1);
}

TEST_CASE("fit: a few rows that contradict each other do not carry secondary numbers away", "[fit]") {
  // Two formats, three rows each, off by a few percent: as many parameters as rows could fit them exactly.
  device d = gpu("a");
  d.cache_efficiency = 0.4;
  const cluster start("one", d);
  d.efficiency = attained_share({{"f16", 0.6}, {"q4", 0.4}});
  d.memory_efficiency = attained_share({{"f16", 0.8}, {"q4", 0.6}});
  std::vector<fit::measurement> rows;
  for (const char* format : {"f16", "q4"}) {
    const auto m = small_language_model(format);
    for (const fit::measurement& row : {decode(m, 1, 0, 512), prefill(m, 1, 512), prefill(m, 1, 8192)}) rows.push_back(row);
  }
  measure(rows, cluster("one", d));
  const double off[] = {1.03, 0.97, 1.02, 0.96, 1.03, 0.98};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].value *= off[i];
  const device found = fit::fit_devices(start, rows).cluster[device_id(0)];
  CHECK(found.cache_efficiency > 0.2);
  CHECK(found.launch < seconds(5e-6));
}

TEST_CASE("fit: a host that all routes use, and what sending costs, come out of a pipeline's rows", "[fit]") {
  const auto m = small_language_model();
  std::vector<device> two{gpu("a"), gpu("b")};
  for (device& d : two) d.kind = "gpu";
  const cluster start("two", two, shared_medium{bytes_per_second(1e11)});
  fit::measurement row = prefill(m, 1, 4096);
  row.devices = {device_id(0), device_id(1)};
  row.prompt_chunk = 256;
  for (const double capacity : {2e7, 1e8}) {  // far below what the cluster's number makes any difference of
    std::vector<fit::measurement> rows{row};
    measure(rows, cluster("two", two, shared_medium{bytes_per_second(capacity)}));
    const fit::fit_result r = fit::fit_devices(start, rows, {.parameters = {}, .resources = {"shared"}});
    CHECK(r.cluster.network().resources()[0].capacity.value() == Approx(capacity).epsilon(1e-6));
  }
  std::vector<device> slow = two;
  for (device& d : slow) d.send_overhead = 3_ms;
  std::vector<fit::measurement> rows{row, row};
  rows[1].prompt = 1024;
  measure(rows, cluster("two", slow, shared_medium{bytes_per_second(1e11)}));
  const fit::fit_result r = fit::fit_devices(start, rows, {.parameters = {parameter_kind::send_overhead}, .tolerance = 1e-6});
  CHECK(find(r, parameter_kind::send_overhead).after == Approx(3e-3).epsilon(1e-5));
  CHECK(r.cluster[device_id(1)].send_overhead.value() == r.parameters[0].after);

  // One row tells one number alone if the cluster's does not hold it.
  const std::vector<fit::measurement> one{rows[0]};
  const auto fitted_alone = [&](std::vector<parameter_kind> free) {
    return fit::fit_devices(start, one, {.parameters = {parameter_kind::send_overhead}, .free = std::move(free), .tolerance = 1e-6});
  };
  const fit::fit_result held = fitted_alone({}), alone = fitted_alone({parameter_kind::send_overhead});
  CHECK(find(held, parameter_kind::send_overhead).after < 2.99e-3);
  CHECK(find(alone, parameter_kind::send_overhead).after == Approx(3e-3).epsilon(1e-6));
  CHECK(alone.predicted.front() == Approx(one.front().value).epsilon(1e-9));
  const fit::fit_result late = fit::fit_devices(start, one, {.parameters = {parameter_kind::latency}, .free = {parameter_kind::latency}});
  CHECK(late.predicted.front() == Approx(one.front().value).epsilon(1e-9));
  CHECK(test::message_of([&] { return fit::fit_devices(start, rows, {.free = {parameter_kind::send_overhead}}); }) ==
        "fit: free: expected one of the parameters that are fitted, got send_overhead");
  CHECK(test::message_of([&] { return fit::fit_devices(start, rows, {.resources = {"host"}}); }) ==
        "fit: expected a resource of cluster \"two\" (shared), got \"host\"");
}

TEST_CASE("fit: rounded numbers, weights of 0, and layers that are profiled", "[fit]") {
  const auto m = small_language_model();
  device d = gpu("a");
  d.memory_efficiency = 0.123456789;
  std::vector<fit::measurement> rows{decode(m, 1, 0), decode(m, 1, 0)};
  measure(rows, cluster("one", d));
  rows[1].value *= 3;
  rows[1].weight = 0;  // predicted, but not fitted
  const fit::fit_result r = fit::fit_devices(cluster("one", gpu("a")), rows, {.digits = 3});
  CHECK(find(r, parameter_kind::memory_efficiency, "f16").after == 0.123);
  CHECK(r.predicted[0] == r.predicted[1]);
  CHECK(r.notes.empty());

  planning_graph_builder b("profiled");
  b.add_layer({.name = "x", .profiles = {{"a", {1}, {0.01}, {}}}});
  const auto profiled = std::make_shared<const planning_graph>(std::move(b).build());
  const std::vector<fit::measurement> one{
      {.devices = {device_id(0)}, .model = profiled, .what = measured::images_per_s, .value = 90, .where = "rows.csv: line 4"}};
  const fit::fit_result same = fit::fit_devices(cluster("one", gpu("a")), one, {.parameters = {parameter_kind::efficiency}});
  REQUIRE(same.notes.size() == 1);
  CHECK(same.notes[0] ==
        "rows.csv: line 4: 1 of 1 layers of model \"profiled\" have a measured profile for a, which fitting does not change");
  CHECK(same.predicted[0] == Approx(100));
  CHECK(fit::deviations(one, same.predicted)[0].worst == Approx(1.0 / 9));
}

TEST_CASE("fit: layers in training, and layers of a name", "[fit]") {
  const auto m = small_language_model("f16", 512);
  const auto block = std::make_shared<const planning_graph>(fit::layers_named(*m, {"l1.", "head"}));
  CHECK(block->size() == 3);
  CHECK(block->edges().size() == 1);
  const cluster c("one", gpu("a"));
  fit::measurement row{.devices = {device_id(0)}, .model = block, .what = measured::layer_seconds, .batch = 4, .prompt = 512};
  const double forward = fit::predict(row, c);
  row.phase = fit::timed_phase::backward_input;
  const double input = fit::predict(row, c);
  row.phase = fit::timed_phase::backward_weight;
  const double weight = fit::predict(row, c);
  row.phase = fit::timed_phase::backward;
  CHECK(fit::predict(row, c) == Approx(input + weight));
  CHECK((input > 0.5 * forward && weight > 0.5 * forward));
  CHECK(test::message_of([&] {
          return fit::layers_named(*m, {"l1.", "l9."});
        }) == "model \"small-f16\" has no layer whose name begins with \"l9.\"");
}

TEST_CASE("fit: rows that say nothing, or what cannot be, are refused", "[fit]") {
  const auto m = small_language_model();
  const cluster c("two", {gpu("a"), gpu("b")}, shared_medium{bytes_per_second(1e10)});
  const auto refused = [&](auto change) {
    fit::measurement row = decode(m, 1, 0);
    row.where = "r";
    change(row);
    return test::message_of([&] { return fit::predict(row, c); });
  };
  CHECK(test::message_of([&] { return fit::fit_devices(c, {}); }) == "fit: expected at least one measurement, got none");
  CHECK(refused([](auto& r) { r.value = 0; }) == "r: value: expected a finite number > 0, got 0");
  CHECK(refused([](auto& r) { r.weight = -1; }) == "r: weight: expected a finite number >= 0, got -1");
  CHECK(refused([](auto& r) { r.batch = 0; }) == "r: batch: expected an integer >= 1, got 0");
  CHECK(refused([](auto& r) { r.what = measured::prefill_tokens_per_s; }) == "r: prompt: expected tokens >= 1, got 0");
  CHECK(refused([](auto& r) { r.devices = {device_id(0), device_id(0)}; }) == "r: expected every device once, got \"a\" twice");
  CHECK(refused([](auto& r) { r.devices = {device_id(7)}; }) == "r: expected devices of cluster \"two\"");
  CHECK(refused([](auto& r) { r.phase = fit::timed_phase::backward; }) ==
        "r: phase: a backward is measured in layer_seconds, without a context");
  CHECK(refused([](auto& r) {
          r.what = measured::layer_seconds;
          r.context.reset();
          r.prompt = 7;
        }) == "r: prompt: expected the 64 tokens of a sample of model \"small-f16\", or a context, got 7");
  CHECK(refused([](auto& r) {
          r.what = measured::layer_seconds;
          r.devices = {device_id(0), device_id(1)};
        }) == "r: layer_seconds: expected one device, got several");
}
