// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/onnx_pb.h>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/onnx_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/moirai.hpp>
#include <hetplan/zoo/settings.hpp>
#include <support/onnx_text.hpp>
#include <support/shared_data.hpp>

namespace test_onnx_graph {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::onnx_text;

exchange::onnx_model read(const onnx_text& m, const exchange::onnx_options& o = {}) { return exchange::read_onnx(m.text(), "m.onnx", o); }

exchange::onnx_options sizes(const std::map<std::string, long long>& of) { return {.dimensions = of, .name = {}}; }

const layer& layer_of(const exchange::onnx_model& m, const std::string& name) { return m.graph[m.graph.find(name)]; }

void refuses(const std::string& text, const std::string& what, const exchange::onnx_options& o = {}) {
  CHECK_THROWS_WITH(exchange::read_onnx(text, "m.onnx", o), Contains("m.onnx: ") && Contains(what));
}

TEST_CASE("operators of an ONNX model are layers with their FLOP, weights and bytes") {
  const exchange::onnx_model m = read(test::small_onnx());
  REQUIRE(m.graph.size() == 5);
  CHECK(m.graph.name() == "m");
  CHECK(m.folded == 1);
  CHECK(m.not_inferred.empty());
  CHECK(m.assumed.empty());
  CHECK(layer_of(m, "Conv c").forward_flops.value() == 2.0 * 4 * 36 * 27);
  CHECK(layer_of(m, "Conv c").weight.value() == 4.0 * 4 * 27);
  CHECK(layer_of(m, "Conv c").traffic.value() == 4.0 * (3 * 64 + 4 * 36));
  CHECK(layer_of(m, "BatchNormalization b").forward_flops.value() == 2.0 * 144);
  CHECK(layer_of(m, "BatchNormalization b").weight.value() == 16);
  CHECK(layer_of(m, "Flatten f").forward_flops.value() == 0);
  CHECK(layer_of(m, "Flatten f").traffic.value() == 0);
  CHECK(layer_of(m, "Gemm y").forward_flops.value() == 2.0 * 10 * 144 + 10);
  CHECK(layer_of(m, "Gemm y").weight.value() == 4.0 * 1450);
  CHECK(layer_of(m, "Relu r").kind == "Relu");
  CHECK(m.graph.edges()[0].forward.value() == 4.0 * 144);
  CHECK(m.node_of == std::vector<std::size_t>{1, 2, 3, 4, 5});
}

TEST_CASE("a dynamic axis takes its size from the options, a first one is 1, and shapes computed from it follow") {
  onnx_text m;
  m.input("x", {-1, 6});
  m.node("Shape", {"x"}, "shape");
  m.list("one", {1});
  m.list("zero", {0});
  m.list("six", {6});
  m.node("Slice", {"shape", "zero", "one"}, "rows");
  onnx_text::integer(m.node("Concat", {"rows", "six", "one"}, "wanted"), "axis", 0);
  m.node("Reshape", {"x", "wanted"}, "r");
  m.node("Relu", {"r"}, "y");
  m.output("y");
  const exchange::onnx_model one = read(m);
  REQUIRE(one.graph.size() == 2);
  CHECK(one.folded == 3);
  CHECK(one.assumed == std::vector<std::string>{"axis \"n\" of the inputs is 1"});
  CHECK(layer_of(one, "Relu y").forward_flops.value() == 6);
  const exchange::onnx_model five = read(m, sizes({{"n", 5}}));
  CHECK(five.assumed.empty());
  CHECK(layer_of(five, "Relu y").forward_flops.value() == 30);
  CHECK(five.not_inferred.empty());
}

TEST_CASE("a sample of a language model has as many tokens as is said, and a sequence of which nobody says it is told") {
  for (const std::string name : {"seq", "Sequence_Length", "seq_len", "rows"}) {
    for (const long long size : {1, 8}) {
      CAPTURE(name, size);
      onnx_text m;
      for (const char* input : {"x", "z"}) {
        m.input(input, {2, -1});
        auto& shape = *m.g().mutable_input(m.g().input_size() - 1)->mutable_type()->mutable_tensor_type()->mutable_shape();
        shape.mutable_dim(1)->set_dim_param(name);
      }
      m.node("Add", {"x", "z"}, "y");
      exchange::onnx_options o = sizes({{name, size}});
      exchange::onnx_model r = read(m, o);
      CHECK(r.graph.tokens_per_sample() == 1);
      REQUIRE(r.assumed.size() == (size > 1 && name != "rows" ? 1 : 0));
      if (!r.assumed.empty())
        CHECK(r.assumed[0] == "axis \"" + name + "\" is 8, yet a sample counts as one token: --tokens-per-sample says how many it has");
      o.tokens_per_sample = static_cast<int>(size);
      r = read(m, o);
      CHECK(r.graph.tokens_per_sample() == size);
      CHECK(r.assumed.empty());
    }
  }
  exchange::onnx_options none = sizes({});
  none.tokens_per_sample = 0;
  CHECK_THROWS_AS(read(test::small_onnx(), none), invalid_input);
}

TEST_CASE("an axis of two inputs has one size, and one without a name is called by its place") {
  onnx_text m;
  m.input("x", {4, -1});
  m.input("z", {-1});
  m.node("Add", {"x", "z"}, "y");
  m.output("y");
  CHECK(layer_of(read(m), "Add y").forward_flops.value() == 4);  // z's first axis is 1, and so is x's second
  CHECK(layer_of(read(m, sizes({{"n", 7}})), "Add y").forward_flops.value() == 28);
  refuses(m.text(), "axis \"x[0]\" is 4 in the file", sizes({{"n", 7}, {"x[0]", 4}}));
  refuses(m.text(), "no dynamic axis of an input is called \"x\"", sizes({{"n", 7}, {"x", 4}}));
  for (auto& input : *m.g().mutable_input()) {
    for (auto& d : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (d.has_dim_param()) d.clear_dim_param();
    }
  }
  refuses(m.text(), "expected a size for each dynamic axis, got none for \"x[1]\"");
  const exchange::onnx_model placed = read(m, sizes({{"x[1]", 7}, {"z[0]", 7}}));
  CHECK(layer_of(placed, "Add y").forward_flops.value() == 28);
  CHECK(placed.assumed.empty());
}

TEST_CASE("what an ONNX file lacks is said, and no file makes the reader fall") {
  refuses("", "expected an ONNX model, got nothing");
  refuses("{\"format\": \"hetplan/model/1\"}", "expected an ONNX model, got something else");
  refuses(onnx_text().text(), "expected at least one operator");
  refuses(test::small_onnx().text(), "no dynamic axis of an input is called \"batch\"", sizes({{"batch", 2}}));
  onnx_text m;
  m.input("x", {1, -1});
  m.node("Relu", {"x"}, "y");
  refuses(m.text(), "expected a size for each dynamic axis, got none for \"n\" of input \"x\"");
  m = onnx_text();
  m.input("x", {4});
  m.node("Add", {"x", "b"}, "a");
  m.node("Relu", {"a"}, "b");
  refuses(m.text(), "expected no cycle, got one through operators \"b\" -> \"a\"");
  m = onnx_text();
  m.input("x", {4});
  m.node("Relu", {"z"}, "y");
  refuses(m.text(), "operator Relu \"y\" reads tensor \"z\", which nobody makes");
  m = onnx_text();
  m.input("x", {4});
  m.node("Relu", {"x"}, "y");
  m.output("z");
  refuses(m.text(), "nobody makes output \"z\"");
  m = onnx_text();
  m.input("x", {4});
  m.node("Relu", {"x"}, "y");
  m.node("Abs", {"x"}, "y");
  refuses(m.text(), "tensor \"y\" is made twice");
  m = onnx_text();
  m.weight("w", {4});
  m.node("Relu", {"w"}, "y");
  refuses(m.text(), "no operator reads an input");
  m = onnx_text();
  m.input("x", {1LL << 40, 1LL << 40});
  m.node("Relu", {"x"}, "y");
  refuses(m.text(), "expected at most 1e15 bytes");
  m = onnx_text();
  m.input("x", {1, 3, 8, 8});
  m.weight("w", {4, 3, 3});
  m.node("Conv", {"x", "w"}, "y");
  refuses(m.text(), "operator Conv \"y\": expected weights of 4 axes, got 3");
  m = onnx_text();
  m.input("x", {4});
  m.node("Relu", {"x", "x"}, "y");
  refuses(m.text(), "operator Relu \"y\": ONNX refuses it");
  m = onnx_text();
  m.input("x\xff", {4});
  refuses(m.text(), "an input has a name that is no UTF-8");
}

TEST_CASE("a file that ends early is refused wherever it ends") {
  const std::string whole = test::small_onnx().text();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    try {
      // A prefix may parse as a whole model by chance, but lacks the last field, the versions.
      static_cast<void>(exchange::read_onnx(whole.substr(0, n), "m.onnx"));
      FAIL("read from " << n << " bytes");
    } catch (const invalid_input& e) {
      if (!std::string(e.what()).starts_with("m.onnx: ")) FAIL(e.what());
    }
  }
  CHECK_NOTHROW(exchange::read_onnx(whole, "m.onnx"));
}

TEST_CASE("what is not read of ONNX is refused by name") {
  onnx_text m;
  m.input("x", {4});
  onnx_text body;
  onnx_text::graph(m.node("Loop", {"", "", "x"}, "y"), "body", body);
  refuses(m.text(), "operator Loop \"y\" has a subgraph, which is not read");
  m = onnx_text();
  m.input("x", {4});
  m.node("Relu", {"x"}, "y");
  m.g().add_sparse_initializer()->mutable_values()->set_name("s");
  refuses(m.text(), "sparse initializers are not read: \"s\"");
  m.node("Add", {"y", "s"}, "z");  // a reader of the sparse tensor
  refuses(m.text(), "sparse initializers are not read: \"s\"");
  m = onnx_text();
  m.g().add_input()->set_name("list");
  m.g().mutable_input(0)->mutable_type()->mutable_sequence_type();
  m.node("SequenceAt", {"list", "list"}, "y");
  refuses(m.text(), "input \"list\": expected a tensor");
  m = onnx_text();
  m.g().add_input()->set_name("x");
  m.g().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  m.node("Relu", {"x"}, "y");
  refuses(m.text(), "input \"x\" has no shape");
}

TEST_CASE("versions of operators: both names of ONNX's own, none, two, and newer ones than the library knows") {
  onnx_text m = test::small_onnx();
  m.model().mutable_opset_import(0)->set_domain("ai.onnx");
  CHECK(read(m).graph == read(test::small_onnx()).graph);
  m.import("", 12);
  refuses(m.text(), "expected one version of the operators of \"\", got two: 13 and 12");
  m.model().clear_opset_import();
  refuses(m.text(), "expected a version of ONNX's operators (opset_import), got none");
  m = test::small_onnx();
  m.model().mutable_opset_import(0)->set_version(0);
  refuses(m.text(), "expected a version >= 1");

  onnx_text newer(21);
  newer.input("x", {2, 4, 6});
  newer.list("axes", {1});
  onnx_text::integer(newer.node("ReduceMean", {"x", "axes"}, "mean"), "keepdims", 0);  // an input since version 18
  onnx_text::integer(newer.node("Cast", {"mean"}, "c"), "to", onnx::TensorProto::FLOAT16);
  onnx_text::integer(*newer.g().mutable_node(1), "saturate", 1);  // since version 19
  newer.node("Gelu", {"c"}, "y");                                 // since version 20
  const exchange::onnx_model r = read(newer);
  CHECK(r.not_inferred.empty());
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("operators of version 21 count as those of version 17"));
  CHECK(layer_of(r, "ReduceMean mean").forward_flops.value() == 48);
  CHECK(layer_of(r, "Gelu y").forward_flops.value() == 8.0 * 12);
  CHECK(layer_of(r, "Gelu y").traffic.value() == 2 * 2.0 * 12);
}

TEST_CASE("operators of old versions have attributes where newer ones have inputs") {
  onnx_text m(6);
  m.input("x", {2, 6});
  auto& slice = m.node("Slice", {"x"}, "s");
  onnx_text::integers(slice, "starts", {1});
  onnx_text::integers(slice, "ends", {5});
  onnx_text::integers(slice, "axes", {1});
  onnx_text::integers(m.node("Unsqueeze", {"s"}, "u"), "axes", {0});
  onnx_text::integers(m.node("Squeeze", {"u"}, "q"), "axes", {0});
  auto& split = m.node("Split", {"q"}, "a");
  split.add_output("b");
  onnx_text::integer(split, "axis", 1);
  m.weight("w", {2});
  onnx_text::integer(m.node("Add", {"a", "w"}, "sum"), "broadcast", 1);
  m.node("Mul", {"sum", "b"}, "y");
  const exchange::onnx_model r = read(m);
  CHECK(r.not_inferred.empty());
  CHECK(layer_of(r, "Mul y").forward_flops.value() == 4);
}

TEST_CASE("operators of unknown types and tensors of unknown shapes are told, or count as the file says") {
  onnx_text m;
  m.input("x", {4});
  m.import("own", 1);
  m.node("NewOperator", {"x"}, "y");
  m.node("Mine", {"y"}, "u", "own");
  m.node("Relu", {"u"}, "z");
  m.output("z");
  const exchange::onnx_model r = read(m);
  CHECK(r.not_inferred == std::vector<std::string>{"y", "u", "z"});
  REQUIRE(r.assumed.size() == 2);
  CHECK(r.assumed[0] == "operators of type NewOperator compute nothing that counts: what they cost is their traffic");
  CHECK_THAT(r.assumed[1], Contains("type own.Mine"));
  m.stated("y", {4});
  m.stated("u", {-1});
  m.g().mutable_value_info(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(9);
  const exchange::onnx_model told = read(m);
  CHECK(told.not_inferred.empty());
  CHECK(told.assumed[0] == "no rule gives the shape of tensor \"y\" and of 1 more: it counts as the file says");
  CHECK(layer_of(told, "Relu z").forward_flops.value() == 9);
}

TEST_CASE("an operator whose shapes do not fit is told with ONNX's reason") {
  onnx_text m;
  m.input("x", {2, 3});
  m.weight("w", {4, 5});
  m.node("MatMul", {"x", "w"}, "y");
  m.output("y");
  const exchange::onnx_model r = read(m);
  CHECK(r.not_inferred == std::vector<std::string>{"y"});
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("operator MatMul \"y\": ONNX infers no shape: ") && Contains("Incompatible dimensions"));
}

TEST_CASE("weights count wherever they stand, and a table is read by rows") {
  onnx_text m;
  m.input("ids", {3}, onnx::TensorProto::INT64);
  auto& table = *m.g().add_initializer();  // external data, which is never opened
  table.set_name("table");
  table.set_data_type(onnx::TensorProto::FLOAT);
  table.add_dims(1000), table.add_dims(8);
  table.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *table.add_external_data();
  entry.set_key("location"), entry.set_value("absent.bin");
  m.node("Gather", {"table", "ids"}, "e");
  m.node("Transpose", {"table"}, "turned");
  m.node("MatMul", {"e", "turned"}, "y");
  m.output("y");
  const exchange::onnx_model r = read(m);
  REQUIRE(r.graph.size() == 2);
  CHECK(r.graph.parameters() == 8000);
  CHECK(layer_of(r, "Gather e").weight == layer_of(r, "MatMul y").weight);
  CHECK(layer_of(r, "Gather e").weight_group == layer_of(r, "MatMul y").weight_group);
  CHECK(layer_of(r, "Gather e").weight_traffic.value() == 4.0 * 3 * 8);
  CHECK(layer_of(r, "MatMul y").weight_traffic.value() == 32'000);
  CHECK(r.assumed.empty());
}

TEST_CASE("whole numbers and truth values that a layer computes with are weights, those that say sizes and places are none") {
  onnx_text m;
  m.input("x", {4, 16});
  m.input("ids", {4, 16}, onnx::TensorProto::INT64);
  const auto constant = [&](const std::string& name, int type, int bytes) {
    m.weight(name, {16}, type);
    m.g().mutable_initializer(m.g().initializer_size() - 1)->set_raw_data(std::string(static_cast<std::size_t>(16 * bytes), '\0'));
  };
  constant("mask", onnx::TensorProto::BOOL, 1), constant("wide", onnx::TensorProto::INT64, 8);
  m.node("Where", {"mask", "x", "x"}, "masked");
  m.node("Add", {"ids", "wide"}, "moved");
  m.node("Gather", {"wide", "moved"}, "looked up");
  m.list("shape", {16, 4}), m.list("first", {0, 0}), m.list("last", {2, 2}), m.list("axes", {0, 1}), m.list("places", {1, 0});
  m.node("Reshape", {"masked", "shape"}, "turned");
  m.node("Slice", {"turned", "first", "last", "axes"}, "cut");
  m.node("Gather", {"cut", "places"}, "picked");
  m.node("ReduceSum", {"picked", "axes"}, "y");
  const exchange::onnx_model r = read(m);
  CHECK(layer_of(r, "Where masked").weight.value() == 16);
  CHECK(layer_of(r, "Add moved").weight.value() == 128);
  CHECK(layer_of(r, "Gather looked up").weight.value() == 128);
  for (const char* none : {"Reshape turned", "Slice cut", "Gather picked", "ReduceSum y"}) CHECK(layer_of(r, none).weight.value() == 0);

  m = onnx_text();
  m.input("x", {1, 8, 10, 10}, onnx::TensorProto::UINT8);
  m.weight("s", {}), m.weight("z", {}, onnx::TensorProto::UINT8), m.weight("w", {16, 8, 2, 2}, onnx::TensorProto::UINT8);
  constant("bias", onnx::TensorProto::INT32, 4);
  m.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z", "bias"}, "y");
  CHECK(layer_of(read(m), "QLinearConv y").weight.value() == 512 + 64);

  m = onnx_text();
  m.input("x", {1, 1, 4, 4});
  for (const char* name : {"region", "scales"}) {
    auto& t = *m.g().add_initializer();
    t.set_name(name), t.set_data_type(onnx::TensorProto::FLOAT);
    for (int i = 0; i < (name[0] == 'r' ? 8 : 4); ++i) t.add_float_data(name[0] == 'r' && i < 4 ? 0.F : 1.F);
    t.add_dims(t.float_data_size());
  }
  m.node("Resize", {"x", "region", "scales"}, "y");
  const layer resized = layer_of(read(m), "Resize y");
  CHECK(resized.weight.value() == 0);
  CHECK(resized.traffic.value() == 2 * 4.0 * 16);
}

TEST_CASE("constants of unknown shapes are told, and what they are views of counts as stored") {
  onnx_text m;
  m.import("own", 1);
  m.input("x", {4, 8});
  m.weight("w", {4, 8});
  m.weight("packed", {4, 8}, onnx::TensorProto::INT8), m.weight("scale", {});
  m.node("Mine", {"w"}, "mine", "own");
  m.node("Add", {"x", "mine"}, "y");
  m.node("Mul", {"y", "mine"}, "z");
  m.node("Reshape", {"w", "mine"}, "turned");
  m.node("Sub", {"z", "turned"}, "end");
  for (const char* name : {"y", "z", "end"}) m.stated(name, {4, 8});
  const exchange::onnx_model r = read(m);
  CHECK(r.not_inferred == std::vector<std::string>{"mine", "turned"});
  CHECK(layer_of(r, "Sub end").weight.value() == 128);
  CHECK(layer_of(r, "Add y").weight.value() == 0);
}

TEST_CASE("elements of types that are newer than the headers count in their bytes, and those of none that is known are told") {
  struct packed {
    int type, scale, zero;  // data types; 0 for no zero point
    double weight;
  };
  for (const packed& p : {packed{23, 24, 0, 4096 + 256}, packed{26, 1, 26, 2048 + 1024 + 64}, packed{25, 1, 25, 2048 + 1024 + 64}}) {
    CAPTURE(p.type);
    onnx_text m(25);
    m.input("x", {3, 128});
    m.weight("w", {128, 64}, p.type), m.weight("s", {4, 64}, p.scale);
    if (p.zero != 0) m.weight("z", {4, 64}, p.zero);
    auto& n = m.node("DequantizeLinear", {"w", "s"}, "real");
    if (p.zero != 0) n.add_input("z");
    onnx_text::integer(n, "axis", 0), onnx_text::integer(n, "block_size", 32);
    m.node("MatMul", {"x", "real"}, "y");
    const exchange::onnx_model r = read(m);
    CHECK(layer_of(r, "MatMul y").weight.value() == p.weight);
    CHECK(r.assumed.size() == 1);
  }
  onnx_text m;
  m.input("x", {3, 4}, 99);
  m.node("Identity", {"x"}, "y");
  m.node("Identity", {"y"}, "z");
  const exchange::onnx_model r = read(m);
  REQUIRE(r.assumed.size() == 1);
  CHECK(r.assumed[0] == "elements of type 99, as tensor \"x\" has them, count 4 bytes each");
  CHECK(r.graph.edges()[0].forward.value() == 48);
}

TEST_CASE("layers with the same weights are a group; weights shared with different others count again, which is told") {
  onnx_text m;
  m.input("x", {2, 8});
  m.weight("w", {8, 8});
  m.weight("b", {8});
  m.weight("c", {8});
  m.node("Gemm", {"x", "w", "b"}, "one");
  m.node("Gemm", {"one", "w", "b"}, "two");
  exchange::onnx_model r = read(m);
  CHECK(layer_of(r, "Gemm one").weight_group == layer_of(r, "Gemm two").weight_group);
  CHECK(r.graph.parameters() == 72);
  CHECK(r.assumed.empty());
  m.node("Gemm", {"two", "w", "c"}, "three");
  r = read(m);
  CHECK(r.graph.parameters() == 144);
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("1 constants count several times, 256 bytes more"));
}

TEST_CASE("parameters are counted in the type that most weights have, and single numbers are none") {
  onnx_text m;
  m.input("x", {2, 8}, onnx::TensorProto::FLOAT16);
  m.weight("w", {8, 8}, onnx::TensorProto::FLOAT16);
  m.g().mutable_initializer(0)->set_raw_data(std::string(128, '\0'));
  m.weight("scale", {});
  m.node("MatMul", {"x", "w"}, "p");
  m.node("Mul", {"p", "scale"}, "y");
  const exchange::onnx_model r = read(m);
  CHECK(r.graph.bytes_per_parameter() == 2);
  CHECK(r.graph.parameters() == 64);
  CHECK(layer_of(r, "Mul y").weight.value() == 0);
  CHECK(r.graph.edges()[0].forward.value() == 2.0 * 16);
}

TEST_CASE("the same file gives the same model") {
  const std::string text = test::sentence_onnx().text();
  CHECK(exchange::read_onnx(text, "m.onnx", sizes({{"n", 5}})).graph == exchange::read_onnx(text, "m.onnx", sizes({{"n", 5}})).graph);
}

struct published {
  const char* file;
  std::size_t layers;
  double parameters, flop;
  exchange::onnx_options options = {};
};

/// Published parameters (of toys, those left after constant folding) and FLOP, counted separately by operator.
const std::vector<published>& published_graphs() {
  static const std::vector<published> all{{"light_resnet50", 176, 25'610'152, 8'217'637'232},
                                          {"light_vgg19", 46, 143'667'240, 39'299'972'976},
                                          {"light_densenet121", 668, 8'146'152, 5'749'220'584},
                                          {"light_squeezenet", 66, 1'235'496, 706'628'160},
                                          {"light_inception_v1", 143, 6'998'552, 2'890'612'992},
                                          {"mobilenetv2", 100, 3'487'816, 614'612'552},
                                          {"bert_toy_optimized", 302, 40'286, 687'122, sizes({{"max_seq_len_in_batch", 8}})},
                                          {"gpt2_one_layer", 34, 372, 6'912, {.dimensions = {{"seq_len", 8}}, .tokens_per_sample = 8}}};
  return all;
}

TEST_CASE("published graphs have their published parameters and FLOP, each read in less than two seconds") {
  const auto folder = test::shared_data("data/onnx");
  if (!folder) return;
  for (const published& e : published_graphs()) {
    CAPTURE(e.file);
    const auto start = std::chrono::steady_clock::now();
    const std::string file = (*folder / (std::string(e.file) + ".onnx")).string();
    const exchange::onnx_model m = exchange::read_onnx(io::read_text(file), file, e.options);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
    CHECK(m.not_inferred.empty());
    CHECK(m.graph.name() == e.file);
    CHECK(m.graph.size() == e.layers);
    CHECK(m.graph.parameters() == e.parameters);
    CHECK(m.graph.forward_flops().value() == e.flop);
    for (const std::string& line : m.assumed) CHECK_THAT(line, Contains("of the inputs is 1"));
  }
}

TEST_CASE("published graphs plan as pipelines by Dora, and their operators are placed") {
  const auto folder = test::shared_data("data/onnx");
  if (!folder) return;
  for (const published& e : published_graphs()) {
    CAPTURE(e.file);
    const std::string file = (*folder / (std::string(e.file) + ".onnx")).string();
    const exchange::onnx_model m = exchange::read_onnx(io::read_text(file), file, e.options);
    const cluster home = zoo::cluster("smart-home-2");
    const planning_problem several{m.graph, home, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 4}};
    CHECK(recipes::dora(several, minimize_latency{}).status.ok());
    const planning_problem one{m.graph, home, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
    CHECK(recipes::moirai(one, minimize_latency{}).status.ok());
  }
}

}  // namespace test_onnx_graph

#endif
