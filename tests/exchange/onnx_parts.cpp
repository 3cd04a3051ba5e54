// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <support/onnx_text.hpp>
#include <support/random_source.hpp>
#include <support/shared_data.hpp>

namespace test_onnx_parts {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::onnx_text;

/// Every layer by itself, on the device that `device_of` says.
template <class DeviceOf>
plan placed(const planning_graph& g, DeviceOf&& device_of) {
  plan p;
  for (const layer& l : g.layers()) p.stages.push_back({.name = l.name, .layers = {l.id}, .devices = {{device_id(device_of(l))}}});
  return p;
}

onnx::ModelProto parsed(const exchange::onnx_part& part) {
  onnx::ModelProto m;
  REQUIRE(m.ParseFromString(part.text));
  return m;
}

bool is_known(const onnx::NodeProto& n, const onnx::ModelProto& m) {
  for (const auto& o : m.opset_import()) {
    if (o.domain() == n.domain()) return onnx::OpSchemaRegistry::Schema(n.op_type(), static_cast<int>(o.version()), n.domain()) != nullptr;
  }
  return false;
}

/// Parts that pass ONNX's checker, begin from what the model's inputs or earlier parts give, say its shape, and hold every operator
/// that computes once and all outputs. Where a part holds an operator that ONNX does not know the checker cannot pass; returns how many.
std::size_t check_parts(const std::vector<exchange::onnx_part>& parts, const std::string& text, const exchange::onnx_model& r,
                        const std::filesystem::path& folder) {
  onnx::ModelProto whole;
  REQUIRE(whole.ParseFromString(text));
  std::map<std::string, std::string> given;  // tensors and their types
  std::set<std::string> inputs;
  for (const auto& i : whole.graph().input()) inputs.insert(i.name());
  std::map<std::string, std::size_t> times;  // first outputs
  std::size_t unknown = 0;
  int step = 0;
  for (const exchange::onnx_part& part : parts) {
    CHECK(part.step >= step);
    step = part.step;
    onnx::ModelProto m = parsed(part);
    bool known = true;
    for (const auto& n : m.graph().node()) known = known && is_known(n, m), ++times[n.output(0)];
    if (known) {
      const std::string file = (folder / "part.onnx").string();
      io::write_atomically(file, part.text);
      CHECK_NOTHROW(onnx::checker::check_model(file));  // by path: it looks for the weights beside
      CHECK_NOTHROW(onnx::shape_inference::InferShapes(m, onnx::OpSchemaRegistry::Instance(), {true, 1, true}));
    } else {
      ++unknown;
    }
    std::set<std::string> constants;
    for (const auto& t : m.graph().initializer()) constants.insert(t.name());
    for (const auto& i : m.graph().input()) {
      if (constants.contains(i.name())) continue;
      const auto it = given.find(i.name());
      const bool goes_on = it != given.end() ? it->second == i.type().SerializeAsString() : inputs.contains(i.name());
      if (!goes_on) FAIL("part " << part.step << " reads " << i.name());
    }
    for (const auto& o : m.graph().output()) given[o.name()] = o.type().SerializeAsString();
  }
  for (const std::size_t node : r.node_of) CHECK(times[whole.graph().node(static_cast<int>(node)).output(0)] == 1);
  for (const auto& o : whole.graph().output()) CHECK(given.contains(o.name()));
  return unknown;
}

/// A folder that goes when the test ends.
struct scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hetplan_parts_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  scratch() { std::filesystem::create_directories(path); }
  ~scratch() { std::filesystem::remove_all(path); }
};

TEST_CASE("the parts of a cut model are whole models for ONNX's checker, and a device that waits in between has several") {
  const scratch folder;
  const std::string text = test::small_onnx().text();
  const exchange::onnx_model r = exchange::read_onnx(text, "m.onnx");
  const auto parts = exchange::cut_onnx(text, "m.onnx", {}, r, placed(r.graph, [](const layer& l) { return l.id.index() % 2; }));
  CHECK(parts.size() == 5);
  CHECK(check_parts(parts, text, r, folder.path) == 0);
  CHECK(exchange::cut_onnx(text, "m.onnx", {}, r, placed(r.graph, [](const layer&) { return std::size_t{1}; })).size() == 1);
}

TEST_CASE("parts of one step wait for each other's step alone, and a constant goes with each of its readers") {
  onnx_text m;
  m.input("x", {4, 4});
  m.weight("w", {4, 4});
  m.node("MatMul", {"x", "w"}, "left");
  m.node("MatMul", {"left", "w"}, "right");
  m.node("Add", {"left", "right"}, "y");
  m.output("y");
  m.output("left");
  const scratch folder;
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  const auto parts =
      exchange::cut_onnx(m.text(), "m.onnx", {}, r, placed(r.graph, [](const layer& l) { return l.kind == "Add" ? 0U : l.id.index(); }));
  REQUIRE(parts.size() == 3);
  CHECK(check_parts(parts, m.text(), r, folder.path) == 0);
  CHECK(parsed(parts[0]).graph().initializer_size() == 1);
  CHECK(parsed(parts[1]).graph().initializer_size() == 1);
  CHECK(parsed(parts[2]).graph().initializer_size() == 0);
  CHECK(parsed(parts[2]).graph().input_size() == 2);
}

TEST_CASE("folded shapes are constants in parts, and outputs that are constant belong to the first") {
  onnx_text m = test::sentence_onnx();
  m.node("Identity", {"table"}, "copy");
  m.output("copy");
  m.output("shape");
  m.g().mutable_output(2)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  const exchange::onnx_options o{.dimensions = {{"n", 6}}, .name = {}};
  const scratch folder;
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx", o);
  const auto parts = exchange::cut_onnx(m.text(), "m.onnx", o, r, placed(r.graph, [](const layer& l) { return l.id.index() / 3 % 2; }));
  CHECK(parts.size() > 2);
  CHECK(check_parts(parts, m.text(), r, folder.path) == 1);  // FastGelu
  const onnx::ModelProto first = parsed(parts[0]);
  std::set<std::string> outputs;
  for (const auto& out : first.graph().output()) outputs.insert(out.name());
  CHECK(outputs.contains("copy"));
  CHECK(outputs.contains("shape"));
}

TEST_CASE("parts name the files that hold their weights") {
  onnx_text m = test::small_onnx();
  auto& w = *m.g().mutable_initializer(0);
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *w.add_external_data();
  entry.set_key("location"), entry.set_value("weights.bin");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  const auto parts = exchange::cut_onnx(m.text(), "m.onnx", {}, r, placed(r.graph, [](const layer& l) { return l.id.index() / 2; }));
  CHECK(parts[0].beside == std::vector<std::string>{"weights.bin"});
  CHECK(parts[1].beside.empty());
  const scratch folder;
  std::ofstream(folder.path / "weights.bin") << std::string(432, '\0');
  CHECK(check_parts(parts, m.text(), r, folder.path) == 0);
}

TEST_CASE("what cannot be cut is refused") {
  onnx_text m;
  m.input("x", {4});
  m.node("NewOperator", {"x"}, "y");
  m.node("Relu", {"y"}, "z");
  m.output("z");
  const auto cut = [&](const plan& p) { return exchange::cut_onnx(m.text(), "m.onnx", {}, exchange::read_onnx(m.text(), "m.onnx"), p); };
  const planning_graph g = exchange::read_onnx(m.text(), "m.onnx").graph;
  CHECK_THROWS_WITH(cut(placed(g, [](const layer& l) { return l.id.index(); })),
                    "m.onnx: tensor \"y\": expected a known shape of what goes in or out of a part");
  plan shared = placed(g, [](const layer&) { return 0U; });
  shared.stages[1].devices.push_back({device_id(std::size_t{1})});
  CHECK_THROWS_WITH(cut(shared), Contains("expected a plan with every layer on one device, got stage \"Relu z\" on several"));
  plan twice = placed(g, [](const layer&) { return 0U; });
  twice.pipelines = {1, 1};
  CHECK_THROWS_WITH(cut(twice), Contains("expected a plan with one pipeline, got 2"));
}

TEST_CASE("the parts of published graphs pass ONNX's checker, whatever the placement") {
  const auto data = test::shared_data("data/onnx");
  if (!data) return;
  const scratch folder;
  std::ofstream(folder.path / "mobilenetv2.external") << std::string(1, '\0');  // the checker looks whether it is there
  std::size_t checked = 0;
  for (const char* name : {"light_resnet50", "light_vgg19", "light_densenet121", "light_squeezenet", "light_inception_v1", "mobilenetv2",
                           "bert_toy_optimized", "gpt2_one_layer"}) {
    CAPTURE(name);
    const std::string file = (*data / (std::string(name) + ".onnx")).string(), text = io::read_text(file);
    exchange::onnx_options o;
    if (std::string(name).starts_with("bert")) o.dimensions = {{"max_seq_len_in_batch", 8}};
    if (std::string(name).starts_with("gpt2")) o.dimensions = {{"seq_len", 8}};
    const exchange::onnx_model r = exchange::read_onnx(text, file, o);
    test::random_source random(test::first_seed());
    for (const bool runs : {true, false}) {  // a few long pieces, and any device for any layer
      const plan p = placed(r.graph, [&](const layer& l) { return runs ? l.id.index() * 5 / r.graph.size() % 2 : random.index(3); });
      const auto parts = exchange::cut_onnx(text, file, o, r, p);
      CHECK(parts.size() >= 2);
      const std::size_t unknown = check_parts(parts, text, r, folder.path);
      // LayerNormalization before version 17 and FastGelu are ONNX Runtime's.
      CHECK((unknown == 0 || std::string(name) == "gpt2_one_layer"));
      checked += parts.size() - unknown;
    }
  }
  CHECK(checked > 500);
}

}  // namespace test_onnx_parts

#endif
