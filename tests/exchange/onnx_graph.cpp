// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <hetplan/cost/roofline.hpp>
#include <hetplan/exchange/onnx_graph.hpp>
#include <hetplan/exchange/onnx_parts.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/zoo/settings.hpp>
#include <support/random_tables.hpp>
#include <support/shared_data.hpp>

namespace test_onnx_graph {

using namespace hetplan;
using Catch::Matchers::Contains;

/// A model by hand: inputs, constants and nodes as they come.
class model_text {
 public:
  model_text() {
    m_.set_ir_version(7);
    auto& opset = *m_.add_opset_import();
    opset.set_domain("");
    opset.set_version(13);
    g().set_name("by hand");
  }
  onnx::GraphProto& g() { return *m_.mutable_graph(); }
  /// @param shape  -1: a dynamic axis "n".
  void input(const std::string& name, const std::vector<long long>& shape) { describe(*g().add_input(), name, shape); }
  void output(const std::string& name) {
    g().add_output()->set_name(name);
    g().mutable_output(g().output_size() - 1)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  void weight(const std::string& name, const std::vector<long long>& shape) {
    auto& t = *g().add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    double n = 1;
    for (const long long d : shape) t.add_dims(d), n *= static_cast<double>(d);
    for (int i = 0; i < static_cast<int>(n); ++i) t.add_float_data(0.5F);
  }
  void list(const std::string& name, const std::vector<long long>& values) {
    auto& t = *g().add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::INT64);
    t.add_dims(static_cast<long long>(values.size()));
    for (const long long v : values) t.add_int64_data(v);
  }
  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
    auto& n = *g().add_node();
    n.set_op_type(type);
    for (const auto& i : inputs) n.add_input(i);
    n.add_output(output);
    return n;
  }
  [[nodiscard]] std::string text() const { return m_.SerializeAsString(); }

 private:
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<long long>& shape) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const long long d : shape) {
      auto& axis = *type.mutable_shape()->add_dim();
      if (d < 0) axis.set_dim_param("n");
      else axis.set_dim_value(d);
    }
  }
  onnx::ModelProto m_;
};

/// A convolution, its norm's weights behind ConstantOfShape, and a product that shares nothing.
model_text small() {
  model_text m;
  m.input("x", {1, 3, 8, 8});
  m.weight("w", {4, 3, 3, 3});
  m.list("four", {4});
  m.node("ConstantOfShape", {"four"}, "s");
  m.node("Conv", {"x", "w"}, "c");
  m.node("BatchNormalization", {"c", "s", "s", "s", "s"}, "b");
  m.node("Relu", {"b"}, "r");
  m.node("Flatten", {"r"}, "f");
  m.weight("v", {144, 10});
  m.weight("bias", {10});
  m.node("Gemm", {"f", "v", "bias"}, "y");
  m.output("y");
  return m;
}

exchange::onnx_model read(const model_text& m, const exchange::onnx_options& o = {}) { return exchange::read_onnx(m.text(), "m.onnx", o); }

TEST_CASE("operators of an ONNX model are layers with their FLOP, weights and bytes") {
  const exchange::onnx_model m = read(small());
  REQUIRE(m.graph.size() == 5);
  CHECK(m.folded == 1);
  CHECK(m.not_inferred.empty());
  const auto layer = [&](const std::string& name) { return m.graph[m.graph.find(name)]; };
  CHECK(layer("Conv c").forward_flops.value() == 2.0 * 4 * 36 * 27);
  CHECK(layer("Conv c").weight.value() == 4.0 * 4 * 27);
  CHECK(layer("BatchNormalization b").forward_flops.value() == 2.0 * 144);
  CHECK(layer("BatchNormalization b").weight.value() == 16);
  CHECK(layer("Flatten f").forward_flops.value() == 0);
  CHECK(layer("Gemm y").forward_flops.value() == 2.0 * 10 * 144 + 10);
  CHECK(layer("Gemm y").weight.value() == 4.0 * 1450);
  CHECK(layer("Relu r").kind == "Relu");
  CHECK(m.graph.edges()[0].forward.value() == 4.0 * 144);
}

TEST_CASE("a dynamic axis takes its size from the options, a first one is 1, and shapes computed from it follow") {
  model_text m;
  m.input("x", {-1, 6});
  m.node("Shape", {"x"}, "shape");
  m.list("one", {1});
  m.list("zero", {0});
  m.list("six", {6});
  m.node("Slice", {"shape", "zero", "one"}, "rows");
  m.node("Concat", {"rows", "six", "one"}, "wanted").add_attribute()->set_name("axis");
  m.g().mutable_node(2)->mutable_attribute(0)->set_type(onnx::AttributeProto::INT);
  m.g().mutable_node(2)->mutable_attribute(0)->set_i(0);
  m.node("Reshape", {"x", "wanted"}, "r");
  m.node("Relu", {"r"}, "y");
  m.output("y");
  const exchange::onnx_model one = read(m);
  REQUIRE(one.graph.size() == 2);
  CHECK(one.folded == 3);
  CHECK(one.assumed.size() == 1);
  CHECK(one.graph[one.graph.find("Relu y")].forward_flops.value() == 6);
  const exchange::onnx_model five = read(m, {.dimensions = {{"n", 5}}, .name = {}});
  CHECK(five.assumed.empty());
  CHECK(five.graph[five.graph.find("Relu y")].forward_flops.value() == 30);
  CHECK(five.not_inferred.empty());
}

TEST_CASE("what an ONNX file lacks is said, and no file makes the reader fall") {
  const auto fails = [](const std::string& text, const std::string& what, const exchange::onnx_options& o = {}) {
    CHECK_THROWS_WITH(exchange::read_onnx(text, "m.onnx", o), Contains("m.onnx: ") && Contains(what));
  };
  fails("", "expected an ONNX model, got nothing");
  fails(small().text().substr(0, 200), "cut short");
  fails(model_text().text(), "expected at least one operator");
  fails(small().text(), "no axis of an input is called \"batch\"", {.dimensions = {{"batch", 2}}, .name = {}});
  model_text m;
  m.input("x", {1, -1});
  m.node("Relu", {"x"}, "y");
  fails(m.text(), "expected a size for each dynamic axis, got none for \"n\" of input \"x\"");
  m = model_text();
  m.input("x", {4});
  m.node("Add", {"x", "b"}, "a");
  m.node("Relu", {"a"}, "b");
  fails(m.text(), "expected no cycle");
  m = model_text();
  m.input("x", {4});
  m.node("Relu", {"z"}, "y");
  fails(m.text(), "reads tensor \"z\", which nobody makes");
  m = model_text();
  m.input("x", {4});
  m.node("Relu", {"x"}, "y");
  m.node("Abs", {"x"}, "y");
  fails(m.text(), "tensor \"y\" is made twice");
  m = model_text();
  m.weight("w", {4});
  m.node("Relu", {"w"}, "y");
  fails(m.text(), "no operator reads an input");
  m = model_text();
  m.input("x", {1LL << 40, 1LL << 40});
  m.node("Relu", {"x"}, "y");
  fails(m.text(), "expected at most 1e15 bytes");
}

TEST_CASE("operators of unknown types and tensors of unknown shapes are told") {
  model_text m;
  m.input("x", {4});
  m.node("NewOperator", {"x"}, "y");
  m.node("Relu", {"y"}, "z");
  m.output("z");
  const exchange::onnx_model r = read(m);
  CHECK(r.not_inferred == std::vector<std::string>{"y", "z"});
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("type NewOperator"));
}

TEST_CASE("thousands of broken files are read or refused") {
  const std::string whole = small().text();
  support::draws draw(11);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (std::size_t n = 1 + draw.below(4); n-- > 0;) {
      const std::size_t at = draw.below(text.size());
      if (draw.below(4) == 0) text.erase(at, 1 + draw.below(8));
      else text[at] = static_cast<char>(draw.below(256));
      if (text.empty()) text = "x";
    }
    try {
      static_cast<void>(exchange::read_onnx(text, "mutant", {}));
    } catch (const invalid_input&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("the parts of a cut model are whole models for ONNX's checker, and a device that waits in between has several") {
  const model_text m = small();
  const exchange::onnx_model r = read(m);
  plan p;
  for (const layer& l : r.graph.layers())
    p.stages.push_back({.name = l.name, .layers = {l.id}, .devices = {{device_id(l.id.index() % 2)}}});
  const auto parts = exchange::cut_onnx(m.text(), "m.onnx", {}, r, p);
  CHECK(parts.size() == 5);
  std::size_t nodes = 0;
  for (const exchange::onnx_part& part : parts) {
    onnx::ModelProto read_back;
    REQUIRE(read_back.ParseFromString(part.text));
    CHECK_NOTHROW(onnx::checker::check_model(read_back));
    nodes += static_cast<std::size_t>(read_back.graph().node_size());
  }
  CHECK(nodes == 6);
  for (stage& s : p.stages) s.devices = {{device_id(std::size_t{1})}};
  CHECK(exchange::cut_onnx(m.text(), "m.onnx", {}, r, p).size() == 1);
}

TEST_CASE("published graphs have their published parameters and FLOP, and plan as pipelines") {
  const auto folder = test::shared_data("data/onnx");
  if (!folder) return;
  struct expected {
    const char* file;
    double parameters, flop;
    exchange::onnx_options options = {};
  };
  for (const expected& e : {expected{"light_resnet50", 25.6e6, 8.2e9}, expected{"light_vgg19", 143.7e6, 39.3e9},
                            expected{"light_densenet121", 8.1e6, 5.7e9}, expected{"light_squeezenet", 1.235e6, 0.70e9},
                            expected{"light_inception_v1", 7.0e6, 2.9e9}, expected{"mobilenetv2", 3.49e6, 0.61e9},
                            expected{"bert_toy_optimized", 43.5e3, 0.69e6, {.dimensions = {{"max_seq_len_in_batch", 8}}, .name = {}}},
                            expected{"gpt2_one_layer", 374, 6.9e3, {.dimensions = {{"seq_len", 8}}, .name = {}}}}) {
    CAPTURE(e.file);
    const std::string file = (*folder / (std::string(e.file) + ".onnx")).string();
    const exchange::onnx_model m = exchange::read_onnx(io::read_text(file), file, e.options);
    CHECK(m.not_inferred.empty());
    CHECK(m.graph.parameters() == Approx(e.parameters).epsilon(0.02));
    CHECK(m.graph.forward_flops().value() == Approx(e.flop).epsilon(0.02));
    const cluster home = zoo::cluster("smart-home-2");
    const planning_problem problem{m.graph, home, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 4}};
    CHECK(recipes::pipeline(problem, minimize_latency{}).status.ok());
  }
}

}  // namespace test_onnx_graph

#endif
