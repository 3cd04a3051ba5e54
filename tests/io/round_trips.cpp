// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "io/reading.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using test::document;

TEST_CASE("every built-in model is written and read again unchanged") {
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const planning_graph g = zoo::model(name);
    CHECK(io::read_model(document(io::write_model(g))) == g);
  }
}

TEST_CASE("every built-in cluster and device is written and read again unchanged") {
  for (const std::string_view name : zoo::clusters_and_devices()) {
    INFO(name);
    const cluster c = zoo::cluster(name);
    CHECK(io::read_cluster(document(io::write_cluster(c))) == c);
  }
}

TEST_CASE("random models, clusters and plans are written and read again unchanged") {
  test::for_random_instances(40, [](const test::instance& i) {
    const planning_graph model = i.model();
    CHECK(io::read_model(document(io::write_model(model))) == model);
    const cluster c = i.cluster();
    // A network of one device has no routes, even if the instance asks for some.
    if (c.size() > 1) CHECK(io::read_cluster(document(io::write_cluster(c))) == c);
    const plan read = io::read_plan(document(io::write_plan(i.plan, model, c)), model, c).plan;
    CHECK(io::write_plan(read, model, c) == io::write_plan(i.plan, model, c));
    // A stage with the plan's microbatch size is written without it; orders have an entry per device.
    plan expected = i.plan;
    for (stage& s : expected.stages) s.microbatch_size = s.microbatch_size == expected.microbatch_size ? 0 : s.microbatch_size;
    CHECK(read == expected);
  });
}

TEST_CASE("a layer with everything set is written and read again unchanged") {
  planning_graph_builder b("all", 2, 512);
  const auto first = b.add_layer({.name = "a",
                                  .kind = "x",
                                  .forward_flops = flops(0.1),
                                  .backward_input_flops = flops(0.2),
                                  .backward_weight_flops = flops(0.3),
                                  .weight = bytes(1e17),
                                  .trainable = false,
                                  .weight_traffic = bytes(0.7),
                                  .weight_group = "g",
                                  .activation = bytes(1e-300),
                                  .activation_for_weights = bytes(1e-301),
                                  .traffic = bytes(0),
                                  .kv_bytes_per_token = bytes(1.7976931348623157e308),
                                  .profiles = {{"", {1, 2.5}, {0, 1e-9}, {}}, {"k/~", {1}, {3}, {4}}},
                                  .calls = 0,
                                  .rows = 0.3});
  const auto second = b.add_layer(
      {.name = "\"\\\n\xC3\xA4", .weight = bytes(1e17), .trainable = false, .weight_group = "g", .profiles = {{"k", {1}, {1}, {1}}}});
  b.add_edge(first, second, bytes(0.1), bytes(0));
  const planning_graph g = std::move(b).build();
  CHECK(io::read_model(document(io::write_model(g))) == g);
}

TEST_CASE("a device with everything set is written and read again unchanged") {
  const device d{.name = "d",
                 .kind = "k",
                 .memory = 3_GB,
                 .memory_budget = 3_GB,
                 .compute = 1_TFLOP_per_s,
                 .memory_bandwidth = 1_GB_per_s,
                 .half_batch = 0.1,
                 .launch = 1_us,
                 .accelerators = 3,
                 .interconnect = 2_GB_per_s,
                 .power = {1_W, 2_W, joules_per_byte(3e-9), joules_per_byte(0.1), 1.5_W},
                 .energy_budget = 0_J,
                 .max_busy = 0.3};
  const cluster c("c", d);
  CHECK(io::read_cluster(document(io::write_cluster(c))) == c);
}
