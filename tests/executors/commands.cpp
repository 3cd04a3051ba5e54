// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "executors/support.hpp"
#include "executors/threads/run.hpp"
#include "support/message_of.hpp"

using namespace executors;
using namespace executors::test;
using Catch::Contains;
using hetplan::invalid_input;

namespace {

/// Files of the built-in dense network: a model, three devices, and a plan of two stages.
class files {
 public:
  files() : folder_(std::filesystem::temp_directory_path() / ("hetplan-executors-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    write("model.json", hetplan::io::write_model(model()));
    write("cluster.json", hetplan::io::write_cluster(three()));
    write("plan.json", hetplan::io::write_plan(two_stages(), model(), three()));
  }
  ~files() { std::filesystem::remove_all(folder_); }
  files(const files&) = delete;
  files& operator=(const files&) = delete;

  static const hetplan::planning_graph& model() {
    const neural_network net = find_network("mlp");
    const auto times = [&](double s) { return std::vector<layer_times>(net.layers.size(), {{s, 2 * s}, {2 * s, 4 * s}}); };
    static const hetplan::planning_graph m =
        describe_measured(net, {{"core/2", times(2e-4)}, {"core/4", times(4e-4)}, {"core/8", times(8e-4)}}, {1, 2});
    return m;
  }
  static hetplan::cluster three() {
    const auto one = [](const char* name, const char* kind) {
      return hetplan::device{.name = name, .kind = kind, .memory = hetplan::bytes(1e9)};
    };
    return {"three",
            {one("a", "core/2"), one("b", "core/4"), one("c", "core/8")},
            hetplan::shared_medium{hetplan::bytes_per_second(5e7), hetplan::seconds(1e-3)}};
  }
  static hetplan::plan two_stages() {
    hetplan::plan p{.model = "mlp", .cluster = "three", .microbatch_size = 2, .microbatches = 2};
    p.stages = {stage_of(0, 6, {{0, 2}}), stage_of(6, 11, {{1, 1}, {2, 1}})};
    return p;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const { return hetplan::io::read_text(path(name)); }
  void change(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = read(name);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write(name, text.replace(at, from.size(), to));
  }
  run_inputs inputs(const std::string& nominal = {}) const {
    return read_run(path("model.json"), path("cluster.json"), path("plan.json"), nominal.empty() ? "" : path(nominal));
  }

 private:
  std::filesystem::path folder_;
};

std::string refusal(const std::function<void()>& work) { return hetplan::test::message_of(work); }

}  // namespace

TEST_CASE("A plan runs from its files, trains as one device does, and says so in its report") {
  const files f;
  const run_report r = run_plan(f.inputs(), {.iterations = 2, .paced = false, .check = true});
  REQUIRE(r.difference);
  CHECK(*r.difference < 1e-6);
  const auto document = nlohmann::json::parse(report_json(r));
  CHECK(document["executor"] == "threads");
  CHECK(document["network"] == "mlp");
  CHECK(document["iterations"].size() == 2);
  CHECK(document["losses"].size() == 3);
  CHECK(document["losses"][2] < document["losses"][0]);  // training reduces the loss
  CHECK(document["paced"] == false);
  CHECK(document["recoveries"].empty());
  const hetplan::judgement j = hetplan::judge(files::two_stages(), files::model(), files::three(), hetplan::profiled_or_roofline{});
  CHECK(document["predicted"].get<double>() == Approx(j.evaluation.latency.value()));
  CHECK_THAT(report_text(r), Contains("predicted") && Contains("difference"));
}

TEST_CASE("Files that are not what they should be are refused in a line that names them") {
  const files f;
  SECTION("a plan cut off in the middle") {
    f.write("plan.json", f.read("plan.json").substr(0, 200));
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("plan.json"));
  }
  SECTION("a plan of another network") {
    f.change("plan.json", "\"mlp\"", "\"transformer\"");
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("plan.json") && Contains("transformer") && Contains("mlp"));
  }
  SECTION("a plan for a device that is not there") {
    f.change("plan.json", "\"name\": \"c\"", "\"name\": \"z\"");
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("plan.json") && Contains("\"z\""));
  }
  SECTION("a model that no executor has") {
    f.change("model.json", "\"mlp\"", "\"resnet\"");
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("model.json") && Contains("resnet") && Contains("mlp, transformer, towers"));
  }
  SECTION("a model with another layer") {
    f.change("model.json", "\"hidden2\"", "\"hidden_two\"");
    f.change("model.json", "\"hidden2\"", "\"hidden_two\"");
    f.change("model.json", "\"hidden2\"", "\"hidden_two\"");
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("/layers/3") && Contains("hidden_two") && Contains("\"hidden2\""));
  }
  SECTION("a model with another weight") {
    f.change("model.json", "\"weight\": 1182720", "\"weight\": 1182728");
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("/layers/0") && Contains("1182728") && Contains("1182720"));
  }
  SECTION("a nominal cluster of other devices") {
    f.write("other.json", f.read("cluster.json"));
    f.change("other.json", "\"name\": \"a\"", "\"name\": \"x\"");
    for (int i = 0; i < 2; ++i) f.change("other.json", "\"from\": \"a\"", "\"from\": \"x\"");
    for (int i = 0; i < 2; ++i) f.change("other.json", "\"to\": \"a\"", "\"to\": \"x\"");
    CHECK_THAT(refusal([&] { f.inputs("other.json"); }), Contains("other.json: /devices/0/name") && Contains("\"x\"") && Contains("\"a\""));
  }
  SECTION("a file that is not there") {
    std::filesystem::remove(f.path("cluster.json"));
    CHECK_THAT(refusal([&] { f.inputs(); }), Contains("cluster.json"));
  }
}

TEST_CASE("What the executors do not run is refused by name") {
  const files f;
  hetplan::plan p = files::two_stages();
  const auto refused = [&] { return refusal([&] { require_executable(p, files::three()); }); };
  REQUIRE(refused() == "no error");
  SECTION("several pipelines") {
    p.pipelines = {2, 2};
    CHECK_THAT(refused(), Contains("/pipelines") && Contains("2 pipelines") && Contains("one"));
  }
  SECTION("a parameter server") {
    p.parameter_server = device_id(1);
    CHECK_THAT(refused(), Contains("parameter_server") && Contains("\"b\""));
  }
  SECTION("inference") {
    p.workload.mode = hetplan::mode::inference;
    CHECK_THAT(refused(), Contains("inference") && Contains("training"));
  }
  SECTION("a network without limits") {
    p.sharing_policy = hetplan::sharing::unlimited;
    CHECK_THAT(refused(), Contains("/network") && Contains("unlimited"));
  }
  SECTION("transfers that stop their devices") {
    p.transfers = hetplan::transfer_mode::block;
    CHECK_THAT(refused(), Contains("/transfers") && Contains("block"));
  }
  SECTION("several accelerators") {
    p.stages[1].devices[1].tensor_parallel = 2;
    CHECK_THAT(refused(), Contains("/stages/1") && Contains("tensor_parallel 2") && Contains("\"c\""));
  }
  SECTION("optimizer state in parts") {
    p.stages[0].shard = p.stages[1].shard = sharding::state;
    CHECK_THAT(refused(), Contains("/stages/1/shard_state"));
  }
  SECTION("a grid") {
    p.stages[1].columns = {1, 1};
    CHECK_THAT(refused(), Contains("stage \"s6\" is a grid"));
  }
  SECTION("gradients or weights in parts") {
    p.stages[1].shard = sharding::zero2;
    CHECK_THAT(refused(), Contains("stage \"s6\" is under zero2"));
    p.stages[1].shard = sharding::fsdp;
    CHECK_THAT(refused(), Contains("stage \"s6\" is under fsdp"));
  }
  SECTION("backwards that split a forward") {
    p.stages[0].cuts = {.forward = {0, 4}, .backward = {0, 1, 4}};
    CHECK_THAT(refused(), Contains("/stages/0/cuts: got backward passes of other samples"));
  }
}

TEST_CASE("Devices together faster than the machine are refused, and kinds that say nothing of speed") {
  CHECK(slowness_of("core") == 1);
  CHECK(slowness_of("core/2.5") == 2.5);
  for (const char* kind : {"", "cores", "core/", "core/0", "core/0.5", "core/-2", "core/2x", "gpu", "core/nan"})
    CHECK_FALSE(slowness_of(kind));
  const hetplan::plan p = files::two_stages();  // 1/2 + 1/4 + 1/8 of a core
  CHECK_NOTHROW(require_cores(files::three(), p, "home.json", slowing::wait, 1));
  const hetplan::cluster three = files::three();
  std::vector<hetplan::device> fast(three.devices().begin(), three.devices().end());
  fast[1].kind = "core";
  const hetplan::cluster faster = files::three().with_devices(fast);
  const std::string too_fast = refusal([&] { require_cores(faster, p, "home.json", slowing::wait, 1); });
  CHECK_THAT(too_fast, Contains("home.json: /devices") && Contains("1.625") && Contains("at most 1,"));
  CHECK_NOTHROW(require_cores(faster, p, "home.json", slowing::wait, 2));
  CHECK_THAT(refusal([&] { require_cores(files::three(), p, "home.json", slowing::repeat, 2); }), Contains("keep 3 cores busy"));
  fast[2].kind = "phone";
  const std::string unknown = refusal([&] { require_known_kinds(three.with_devices(fast), "home.json"); });
  CHECK_THAT(unknown, Contains("home.json: /devices/2/kind") && Contains("phone"));
}

TEST_CASE("Slower devices repeat their work where each has a core and all do it a whole number of times, and wait elsewhere") {
  const hetplan::cluster c = files::three();
  CHECK(choose_slowing("", c, "c.json", 3) == slowing::repeat);
  CHECK(choose_slowing("", c, "c.json", 2) == slowing::wait);
  CHECK(choose_slowing("repeat", c, "c.json", 1) == slowing::repeat);
  CHECK(choose_slowing("wait", c, "c.json", 3) == slowing::wait);
  std::vector<hetplan::device> all(c.devices().begin(), c.devices().end());
  all[1].kind = "core/2.5";
  const hetplan::cluster odd = c.with_devices(all);
  CHECK(choose_slowing("", odd, "c.json", 3) == slowing::wait);
  CHECK_THAT(refusal([&] { static_cast<void>(choose_slowing("repeat", odd, "c.json", 3)); }),
             Contains("c.json: /devices/1/kind: got \"core/2.5\"; expected a whole number"));
  CHECK(paces_of(c, slowing::repeat)[2].times == 8);
  CHECK(paces_of(c, slowing::repeat)[2].wait == 1);
  CHECK(paces_of(odd, slowing::wait)[1].times == 1);
  CHECK(paces_of(odd, slowing::wait)[1].wait == 2.5);
  CHECK(own_cores() >= 1);
}

TEST_CASE("Replicated stages that share a tensor and their first device are refused") {
  const neural_network net = small_transformer();
  const hetplan::cluster c = devices(2);
  hetplan::plan p = plan_of(net, c, {stage_of(0, 3, {{0, 1}, {1, 1}}), stage_of(3, 6, {{0, 2}})}, 2, 1);
  p.schedule.kind = hetplan::schedule_kind::explicit_orders;
  const auto entry = [](hetplan::phase what, int s) { return hetplan::order_entry{what, stage_id(s), 0}; };
  using enum hetplan::phase;
  p.schedule.orders = {{entry(forward, 0), entry(forward, 1), entry(backward_input, 1), entry(backward_input, 0)},
                       {entry(forward, 0), entry(backward_input, 0)}};
  CHECK_THAT(refusal([&] { program_of(p, net, c); }), Contains("\"embed\"") && Contains("\"d0\"") && Contains("/stages/1"));
}

TEST_CASE("Faults on the command line are read, or refused with their form") {
  const files f;
  const run_inputs in = f.inputs();
  const auto read = [&](std::vector<std::string> kills, std::vector<std::string> cuts) {
    return read_faults({std::move(kills), std::move(cuts)}, in, 3);
  };
  const faults all = read({"b@2", "c@3+0.25"}, {"shared@1:5"});
  REQUIRE(all.kills.size() == 2);
  CHECK(all.kills[0].device == device_id(1));
  CHECK(all.kills[0].iteration == 2);
  CHECK(all.kills[0].after_s == 1.5);
  CHECK(all.kills[1].after_s == 0.25);
  REQUIRE(all.cuts.size() == 1);
  CHECK(all.cuts[0].seconds == 5);
  for (const char* bad : {"b", "b@", "@2", "b@x", "b@2+", "b@-1", "b@1+x"}) {
    CHECK_THAT(refusal([&] { read({bad}, {}); }), Contains("DEVICE@ITERATION") && Contains(bad));
  }
  for (const char* bad : {"shared", "shared@1", "shared@1:", "shared@1:x"}) {
    CHECK_THAT(refusal([&] { read({}, {bad}); }), Contains("RESOURCE@ITERATION:SECONDS") && Contains(bad));
  }
  CHECK_THAT(refusal([&] { read({"z@1"}, {}); }), Contains("\"z\""));
  CHECK_THAT(refusal([&] { read({}, {"wire@1:2"}); }), Contains("wire"));
}

TEST_CASE("A line through samples finds latency and bandwidth") {
  const hetplan::transfer_cost line = fit_link({{1e3, 0.002 + 1e3 / 5e6}, {4e3, 0.002 + 4e3 / 5e6}, {9e3, 0.002 + 9e3 / 5e6}});
  CHECK(line.latency_s == Approx(0.002));
  CHECK(line.s_per_byte == Approx(1 / 5e6));
}

TEST_CASE("A measured cluster has the capacities and latencies that its flows found") {
  const hetplan::cluster shared = files::three();
  const hetplan::star wires{hetplan::bytes_per_second(1e7), hetplan::seconds(1e-3)};
  const hetplan::cluster nominal("star", {shared.devices().begin(), shared.devices().end()}, wires);
  const hetplan::cluster found = measure_cluster(nominal, 3, [&](device_id, device_id, double bytes) { return 0.004 + bytes / 8e6; });
  for (const hetplan::resource& r : found.network().resources()) CHECK(r.capacity.value() == Approx(8e6));
  const hetplan::route* way = found.network().find(device_id(0), device_id(2));
  REQUIRE(way != nullptr);
  CHECK(way->latency.value() == Approx(0.004));
  CHECK(way->via == nominal.network().find(device_id(0), device_id(2))->via);
}

TEST_CASE("A profile has every layer and kind, and slower kinds take as many times longer") {
  const neural_network net = small_mlp();
  const slowing how = GENERATE(slowing::wait, slowing::repeat);
  const unsigned busy = GENERATE(0U, 1U);
  const hetplan::planning_graph g =
      describe_measured(net, measure_layers(net, files::three(), {.batches = {1, 4}, .runs = 2, .slow = how, .busy = busy}), {1, 4});
  double fast_s = 0, slow_s = 0;
  for (const hetplan::layer& l : g.layers()) {
    REQUIRE(l.profile_for("core/2") != nullptr);
    CHECK(l.profile_for("core/2")->batch == std::vector<double>{1, 4});
    CHECK(l.profile_for("core/2")->forward_s[1] > 0);
    fast_s += l.profile_for("core/2")->backward_s[1];
    slow_s += l.profile_for("core/8")->backward_s[1];
    const hetplan::device on{.name = "a", .kind = "core/2"};  // B and W add up to the measured backward; W exists where weights do
    const auto part_s = [&](hetplan::phase what) { return hetplan::profiled{}.time({.layer = l, .phase = what, .batch = 4}, on).value(); };
    CHECK(part_s(hetplan::phase::backward_input) + part_s(hetplan::phase::backward_weight) ==
          Approx(l.profile_for("core/2")->backward_s[1]));
    CHECK(part_s(hetplan::phase::backward_input) > 0);
    CHECK((part_s(hetplan::phase::backward_weight) > 0) == (l.weight.value() > 0));
  }
  CHECK(slow_s > fast_s);
}
