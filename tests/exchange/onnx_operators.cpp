// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <support/onnx_text.hpp>
#include <support/random_source.hpp>

namespace test_onnx_operators {

using namespace hetplan;
using test::onnx_text;

/// The layer of one operator on one input, whose output a Relu reads.
struct single {
  layer of;
  double output;  ///< bytes
};

single read(onnx_text& m, const std::string& output = "y") {
  m.node("Relu", {output}, "end");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx", {});
  CHECK(r.not_inferred.empty());
  CHECK(r.assumed.empty());
  REQUIRE(r.graph.size() == 2);
  return {r.graph[layer_id(0)], r.graph.edges()[0].forward.value()};
}

TEST_CASE("FLOP of convolutions by hand: groups, strides, biases, and those that go back") {
  onnx_text m;
  m.input("x", {2, 8, 10, 10});
  m.weight("w", {16, 2, 3, 3});
  m.weight("b", {16});
  auto& conv = m.node("Conv", {"x", "w", "b"}, "y");
  onnx_text::integer(conv, "group", 4);
  onnx_text::integers(conv, "strides", {2, 2});
  onnx_text::integers(conv, "pads", {1, 1, 1, 1});
  const double out = 2.0 * 16 * 5 * 5;
  const single grouped = read(m);
  CHECK(grouped.output == 4 * out);
  CHECK(grouped.of.forward_flops.value() == 2 * out * 2 * 9 + out);

  m = onnx_text();
  m.input("x", {1, 8, 5, 5});
  m.weight("w", {8, 4, 2, 2});
  onnx_text::integers(m.node("ConvTranspose", {"x", "w"}, "y"), "strides", {2, 2});
  const single back = read(m);
  CHECK(back.output == 4.0 * 4 * 10 * 10);
  CHECK(back.of.forward_flops.value() == 2.0 * 8 * 5 * 5 * 4 * 4);  // each input meets each weight of its channel

  m = onnx_text();
  m.input("x", {1, 3, 6, 6}, onnx::TensorProto::UINT8);
  m.weight("s", {});
  m.weight("z", {}, onnx::TensorProto::UINT8);
  m.weight("w", {4, 3, 3, 3}, onnx::TensorProto::UINT8);
  m.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, "q");
  const single quantized = read(m, "q");
  CHECK(quantized.of.forward_flops.value() == 2.0 * 4 * 16 * 27);
  CHECK(quantized.of.weight.value() == 108);
  CHECK(quantized.output == 64);
}

TEST_CASE("FLOP of products by hand: many matrices, turned ones, of integers, by an equation") {
  onnx_text m;
  m.input("x", {3, 4, 5});
  m.weight("w", {5, 6});
  m.node("MatMul", {"x", "w"}, "y");
  CHECK(read(m).of.forward_flops.value() == 2.0 * 3 * 4 * 6 * 5);
  m = onnx_text();
  m.input("x", {5, 4});
  m.weight("w", {6, 5});
  m.weight("b", {6});
  auto& gemm = m.node("Gemm", {"x", "w", "b"}, "y");
  onnx_text::integer(gemm, "transA", 1);
  onnx_text::integer(gemm, "transB", 1);
  CHECK(read(m).of.forward_flops.value() == 2.0 * 4 * 6 * 5 + 24);
  m = onnx_text();
  m.input("x", {4, 5}, onnx::TensorProto::UINT8);
  m.weight("w", {5, 6}, onnx::TensorProto::UINT8);
  m.node("MatMulInteger", {"x", "w"}, "y");
  const single integers = read(m);
  CHECK(integers.of.forward_flops.value() == 2.0 * 4 * 6 * 5);
  CHECK(integers.output == 4.0 * 24);
  for (const auto& [equation, columns] : {std::pair("abc,dc->abd", 6), std::pair("...c, dc -> ...d", 6)}) {
    m = onnx_text();
    m.input("x", {3, 4, 5});
    m.weight("w", {6, 5});
    onnx_text::words(m.node("Einsum", {"x", "w"}, "y"), "equation", equation);
    const single einsum = read(m);
    CHECK(einsum.of.forward_flops.value() == 2.0 * 3 * 4 * 5 * 6);
    CHECK(einsum.output == 4.0 * 3 * 4 * columns);
  }
}

TEST_CASE("FLOP of recurrent layers are their products and what their gates compute") {
  for (const auto& [type, gates] : {std::pair("LSTM", 4), std::pair("GRU", 3), std::pair("RNN", 1)}) {
    onnx_text m;
    m.input("x", {7, 2, 5});
    m.weight("w", {2, gates * 3LL, 5});
    m.weight("r", {2, gates * 3LL, 3});
    auto& n = m.node(type, {"x", "w", "r"}, "");  // of all outputs, only that of the last step is used
    n.add_output("last");
    onnx_text::integer(n, "hidden_size", 3);
    onnx_text::words(n, "direction", "bidirectional");
    const single r = read(m, "last");
    CHECK(r.of.name == std::string(type) + " last");
    CHECK(r.output == 4.0 * 2 * 2 * 3);
    CHECK(r.of.forward_flops.value() == 7.0 * 2 * (2.0 * 2 * gates * 3 * (5 + 3) + 6.0 * 2 * gates * 3));
  }
}

TEST_CASE("FLOP of windows, reductions, norms, functions and of what only moves") {
  struct expected {
    const char* type;
    double flop;
    std::function<void(onnx::NodeProto&)> more = [](onnx::NodeProto&) {};
  };
  const auto window = [](onnx::NodeProto& n) { onnx_text::integers(n, "kernel_shape", {2, 3}); };
  const auto mode = [](const char* how) {
    return [how](onnx::NodeProto& n) {
      onnx_text::words(n, "mode", how);
      n.add_input(""), n.add_input("scales");
    };
  };
  const double all = 1.0 * 4 * 6 * 6, cut = 1.0 * 4 * 5 * 4;
  for (const expected& e :
       {expected{"MaxPool", cut * 6, window}, expected{"AveragePool", cut * 6, window}, expected{"GlobalAveragePool", all},
        expected{"ReduceMean", all}, expected{"ReduceL2", 2 * all},
        expected{"LRN", all * 13, [](onnx::NodeProto& n) { onnx_text::integer(n, "size", 5); }}, expected{"Softmax", 5 * all},
        expected{"Sigmoid", 4 * all}, expected{"HardSwish", 4 * all}, expected{"Abs", all}, expected{"Transpose", 0},
        expected{"Resize", 0, mode("nearest")}, expected{"Resize", 8 * 4 * all, mode("linear")},
        expected{"Sum", 2 * all, [](onnx::NodeProto& n) { n.add_input("x"), n.add_input("x"); }}}) {
    CAPTURE(e.type);
    onnx_text m(14);
    m.input("x", {1, 4, 6, 6});
    m.weight("scales", {4});
    auto& scales = *m.g().mutable_initializer(0);
    scales.clear_raw_data();
    for (const float s : {1.F, 1.F, 2.F, 2.F}) scales.add_float_data(s);
    e.more(m.node(e.type, {"x"}, "y"));
    CHECK(read(m).of.forward_flops.value() == e.flop);
  }
}

TEST_CASE("operators that ONNX Runtime adds have shapes and FLOP") {
  const auto model = [](const std::vector<long long>& x) {
    onnx_text m;
    m.import("com.microsoft", 1);
    m.input("x", x);
    return m;
  };
  onnx_text m = model({2, 5, 16});
  m.weight("w", {7, 16});
  onnx_text::integer(m.node("FusedMatMul", {"x", "w"}, "y", "com.microsoft"), "transB", 1);
  single r = read(m);
  CHECK(r.output == 4.0 * 2 * 5 * 7);
  CHECK(r.of.forward_flops.value() == 2.0 * 2 * 5 * 7 * 16);

  m = model({2, 5, 16});
  m.weight("w", {16, 48});
  m.weight("b", {48});
  onnx_text::integer(m.node("Attention", {"x", "w", "b"}, "y", "com.microsoft"), "num_heads", 4);
  r = read(m);
  CHECK(r.output == 4.0 * 2 * 5 * 16);
  CHECK(r.of.forward_flops.value() == 2.0 * 2 * 5 * 16 * 48 + 2.0 * 5 * 5 * (4 * 16 + 5 * 4));

  m = model({2, 5, 16});
  m.weight("k", {2, 9, 16});
  m.weight("v", {2, 9, 16});
  onnx_text::integer(m.node("MultiHeadAttention", {"x", "k", "v"}, "y", "com.microsoft"), "num_heads", 4);
  CHECK(read(m).of.forward_flops.value() == 2.0 * 5 * 9 * (4 * 16 + 5 * 4));

  m = model({1, 1, 32});
  m.weight("k", {1, 1, 16});
  m.weight("v", {1, 1, 16});
  m.weight("past", {1, 2, 9, 8});
  auto& gqa = m.node("GroupQueryAttention", {"x", "k", "v", "past", "past"}, "y", "com.microsoft");
  onnx_text::integer(gqa, "num_heads", 4);
  onnx_text::integer(gqa, "kv_num_heads", 2);
  r = read(m);
  CHECK(r.output == 4.0 * 32);
  CHECK(r.of.forward_flops.value() == 1.0 * 10 * (4 * 32 + 5 * 4));

  m = model({2, 5, 16});
  m.weight("w", {6, 1, 8}, onnx::TensorProto::UINT8);
  m.weight("s", {6});
  auto& bits = m.node("MatMulNBits", {"x", "w", "s"}, "y", "com.microsoft");
  onnx_text::integer(bits, "N", 6);
  onnx_text::integer(bits, "K", 16);
  r = read(m);
  CHECK(r.output == 4.0 * 2 * 5 * 6);
  CHECK(r.of.forward_flops.value() == 2.0 * 2 * 5 * 6 * 16);
  CHECK(r.of.weight.value() == 48 + 24);

  m = model({2, 5, 16});
  m.weight("g", {16});
  m.node("SkipSimplifiedLayerNormalization", {"x", "x", "g"}, "y", "com.microsoft");
  r = read(m);
  CHECK(r.of.forward_flops.value() == 7.0 * 160);
}

TEST_CASE("what ONNX's library would not survive is refused before it sees it") {
  const auto refused = [](int version, const std::vector<long long>& x, const char* what, const std::function<void(onnx_text&)>& more) {
    onnx_text m(version);
    m.input("x", x);
    m.input("z", {2, 2});
    more(m);
    CHECK_THROWS_WITH(exchange::read_onnx(m.text(), "m.onnx", {}), Catch::Matchers::Contains(std::string(what)));
  };
  refused(13, {1LL << 31}, "expected at most 64 axes, got 2147483648", [](onnx_text& m) { m.node("ConstantOfShape", {"x"}, "y"); });
  refused(17, {}, "expected axis from 0 to -1, got -1", [](onnx_text& m) { m.node("LayerNormalization", {"x", "x"}, "y"); });
  refused(17, {8}, "expected input 0 with 3 axes, got 1", [](onnx_text& m) { m.node("STFT", {"x", "z"}, "y"); });
  refused(1, {8}, "expected input 0 with 3 axes, got 1", [](onnx_text& m) { m.node("LSTM", {"x", "z", "z"}, "y"); });
  refused(6, {8}, "expected input 0 with 2 axes, got 1", [](onnx_text& m) { m.node("Gemm", {"x", "z", "z"}, "y"); });
  refused(12, {8}, "expected batch_dims from 0 to 0", [](onnx_text& m) {
    onnx_text::integer(m.node("GatherND", {"x", "z"}, "y"), "batch_dims", -9);
  });
  refused(13, {1, 4, 2, 2}, "expected blocksize",
          [](onnx_text& m) { onnx_text::integer(m.node("DepthToSpace", {"x"}, "y"), "blocksize", 1LL << 62); });
  refused(13, {1, 4, 2, 2}, "expected kernel_shape of 2 numbers, got 1",
          [](onnx_text& m) { onnx_text::integers(m.node("MaxPool", {"x"}, "y"), "kernel_shape", {2}); });
  refused(13, {1, 4, 2, 2}, "expected weights of 4 axes, got 2", [](onnx_text& m) {
    onnx_text::integers(m.node("MaxUnpool", {"x", "z"}, "y"), "kernel_shape", {2, 2});
  });
  refused(13, {4}, "expected sizes from 1 to 1e9", [](onnx_text& m) {
    m.list("none", {0}), m.node("SplitToSequence", {"x", "none"}, "y");
  });
}

TEST_CASE("weights that are stored in a byte and unpacked before they are used count as stored") {
  onnx_text m;
  m.input("x", {2, 8});
  m.weight("w", {8, 8}, onnx::TensorProto::INT8);
  m.weight("s", {});
  m.node("DequantizeLinear", {"w", "s"}, "real");
  m.node("MatMul", {"x", "real"}, "y");
  CHECK(read(m).of.weight.value() == 64);
}

TEST_CASE("packed weights count with their scales and zero points, in their own types") {
  onnx_text m(21);
  m.input("x", {1, 4096}, onnx::TensorProto::FLOAT16);
  const auto beside = [&](const std::string& name, const std::vector<long long>& shape, int type) {
    auto& t = *m.g().add_initializer();
    t.set_name(name), t.set_data_type(type), t.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const long long d : shape) t.add_dims(d);
  };
  constexpr int int4 = 22;
  beside("w", {4096, 4096}, int4), beside("s", {128, 4096}, onnx::TensorProto::FLOAT16), beside("z", {128, 4096}, int4);
  auto& n = m.node("DequantizeLinear", {"w", "s", "z"}, "real");
  onnx_text::integer(n, "block_size", 32);
  onnx_text::integer(n, "axis", 0);
  m.node("Transpose", {"real"}, "turned");
  m.node("MatMul", {"x", "turned"}, "y");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  REQUIRE(r.graph.size() == 1);
  CHECK(r.graph[layer_id(0)].weight.value() == 9'699'328);
  CHECK(r.graph[layer_id(0)].traffic.value() == 2 * 2.0 * 4096);  // as wide as the scales
  CHECK(r.assumed.size() == 1);                                   // about the version: block_size does not affect the shape

  m = onnx_text();  // a quantized scale with one scale of its own
  m.input("x", {2, 8});
  m.weight("w", {8, 8}, onnx::TensorProto::INT8), m.weight("s", {8}, onnx::TensorProto::UINT8), m.weight("one", {});
  m.weight("zero", {8}, onnx::TensorProto::UINT8);
  m.node("DequantizeLinear", {"s", "one"}, "scale");
  m.node("DequantizeLinear", {"w", "scale", "zero"}, "real");
  m.node("MatMul", {"x", "real"}, "y");
  CHECK(read(m).of.weight.value() == 64 + 8 + 8);
}

/// Returns the least cost of pairwise contractions over all orders.
double cheapest_contraction(std::vector<std::set<char>> terms, const std::set<char>& output, const std::map<char, double>& sizes) {
  if (terms.size() < 2) return 0;
  double least = 1e300;
  for (std::size_t a = 0; a < terms.size(); ++a) {
    for (std::size_t b = a + 1; b < terms.size(); ++b) {
      std::set<char> both = terms[a], wanted = output;
      both.insert(terms[b].begin(), terms[b].end());
      std::vector<std::set<char>> left;
      for (std::size_t i = 0; i < terms.size(); ++i) {
        if (i == a || i == b) continue;
        left.push_back(terms[i]);
        wanted.insert(terms[i].begin(), terms[i].end());
      }
      double cost = 2;
      std::set<char> kept;
      for (const char c : both) {
        cost *= sizes.at(c);
        if (wanted.contains(c)) kept.insert(c);
      }
      left.push_back(kept);
      least = std::min(least, cost + cheapest_contraction(left, output, sizes));
    }
  }
  return least;
}

onnx_text einsum(const std::string& equation, const std::vector<std::vector<long long>>& shapes) {
  onnx_text m;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back("x" + std::to_string(i));
    m.input(inputs.back(), shapes[i]);
  }
  onnx_text::words(m.node("Einsum", inputs, "y"), "equation", equation);
  return m;
}

TEST_CASE("Einsum of many operands contracts them in the cheapest pairs") {
  const auto flop = [](const std::string& equation, const std::vector<std::vector<long long>>& shapes) {
    return exchange::read_onnx(einsum(equation, shapes).text(), "m.onnx").graph.forward_flops().value();
  };
  CHECK(flop("ij,jk,kl->il", {{10, 20}, {20, 30}, {30, 40}}) == 36'000);
  CHECK(flop("ij,jk,kl", {{10, 20}, {20, 30}, {30, 40}}) == 36'000);  // implicit output
  CHECK(flop("ij,jk,kl->il", {{40, 30}, {30, 20}, {20, 10}}) == 36'000);
  CHECK(flop("...ij,...jk,...kl->...il", {{5, 10, 20}, {5, 20, 30}, {5, 30, 40}}) == 5 * 36'000);
  test::random_source random(test::first_seed());
  for (int round = 0; round < 200; ++round) {
    std::map<char, double> sizes;
    for (char c = 'a'; c < 'f'; ++c) sizes[c] = random.integer(1, 6);
    std::vector<std::set<char>> terms;
    std::vector<std::vector<long long>> shapes;
    std::string equation;
    std::set<char> all, output;
    for (int t = random.integer(2, 5); t > 0; --t) {
      auto& term = terms.emplace_back();
      for (int n = random.integer(1, 3); n > 0; --n) term.insert(static_cast<char>('a' + random.integer(0, 4)));
      all.insert(term.begin(), term.end());
      auto& shape = shapes.emplace_back();
      equation += equation.empty() ? "" : ",";
      for (const char c : term) shape.push_back(static_cast<long long>(sizes[c])), equation += c;
    }
    equation += "->";
    for (const char c : all) {
      if (random.chance(0.5)) output.insert(c), equation += c;
    }
    CAPTURE(equation, test::first_seed());
    CHECK(flop(equation, shapes) == cheapest_contraction(terms, output, sizes));
  }
  std::string many = "ab";  // too many operands for all orders: left to right, and fast
  std::vector<std::vector<long long>> shapes{{2, 2}};
  for (int i = 0; i < 23; ++i) many += std::string(",") + static_cast<char>('b' + i) + static_cast<char>('c' + i), shapes.push_back({2, 2});
  CHECK(flop(many + "->ay", shapes) == 23 * 16);
}

TEST_CASE("Einsum spreads axes of size 1 over larger ones, and is refused where sizes or terms do not fit") {
  const auto costs = [&](const std::string& equation, const std::vector<std::vector<long long>>& shapes, double flop, double output) {
    CAPTURE(equation);
    onnx_text m = einsum(equation, shapes);
    const single r = read(m);
    CHECK(r.of.forward_flops.value() == flop);
    CHECK(r.output == output);
  };
  for (const bool first : {true, false}) {
    const long long b = first ? 5 : 1, c = first ? 1 : 5;
    costs("...ij,...jk->...ik", {{b, 2, 3}, {c, 3, 4}}, 240, 160);
    costs("bij,bjk->bik", {{b, 2, 3}, {c, 3, 4}}, 240, 160);
  }
  costs("...ij,...jk->...ik", {{5, 1, 2, 3}, {7, 3, 4}}, 7 * 240, 7 * 160);  // broadcast both ways and over missing leading axes
  costs("...ij,...jk", {{2, 3}, {5, 3, 4}}, 240, 160);
  costs("bi,ij,bj->b", {{5, 2}, {2, 3}, {1, 3}}, 2 * 6 + 2 * 10, 20);  // broadcasting itself costs nothing
  costs("i,j,k->", {{10}, {20}, {30}}, 460, 4);
  costs("i,i", {{10}, {10}}, 20, 4);
  const auto refused = [&](const std::string& equation, const std::vector<std::vector<long long>>& shapes, const std::string& what) {
    CHECK_THROWS_WITH(exchange::read_onnx(einsum(equation, shapes).text(), "m.onnx"),
                      Catch::Matchers::Contains("operator Einsum \"y\": ") && Catch::Matchers::Contains(what));
  };
  refused("ij,jk->ik", {{2, 3}, {5, 4}}, "expected one size of an index, got 3 and 5 in \"jk\"");
  refused("...i,...i->...", {{2, 3, 4}, {5, 1, 4}}, "expected one size of an index, got 2 and 5");
  refused("ij->ij", {{2, 3}, {5, 4}}, "expected an equation of 2 terms, as there are inputs, got 1");
  refused("ij,jk->iz", {{2, 3}, {3, 4}}, "expected an output of indices that its inputs have, got \"iz\"");
  refused("ijk,jk->i", {{2, 3}, {3, 4}}, "expected input 0 with 3 axes, as \"ijk\" says, got 2");
  refused("ij,jk->ik", {{2, 3, 1}, {3, 4}}, "expected input 0 with 2 axes, as \"ij\" says, got 3");
  refused("i1,1k->ik", {{2, 3}, {3, 4}}, "expected letters in its equation, got \"1k\"");
  refused("...,...->...", {std::vector<long long>(65, 1), {1}}, "expected at most 64 indices, got 65");
}

TEST_CASE("attention of ONNX Runtime counts keys and values of other widths, and what is packed in one input") {
  struct expected {
    const char* type;
    std::vector<std::vector<long long>> inputs;  // empty: left out
    double flop;
    std::vector<double> elements;  // by output
    std::vector<long long> sizes = {};
  };
  for (const expected& e :
       {expected{"MultiHeadAttention", {{2, 10, 512}, {2, 12, 512}, {2, 12, 256}}, 240.0 * (2 * 512 + 2 * 256 + 5 * 8), {20 * 256}},
        expected{"MultiHeadAttention", {{2, 10, 512}, {2, 8, 12, 64}, {2, 8, 12, 32}}, 240.0 * (2 * 512 + 2 * 256 + 5 * 8), {20 * 256}},
        expected{"MultiHeadAttention", {{2, 10, 512}, {2, 12, 8, 2, 64}}, 501'120, {20 * 512}},
        expected{"MultiHeadAttention", {{2, 10, 8, 3, 64}}, 200.0 * (4 * 512 + 40), {20 * 512}},
        expected{"Attention", {{2, 10, 512}, {512, 1280}}, 26'529'600, {20 * 256}, {512, 512, 256}},
        expected{"GroupQueryAttention",
                 {{1, 10, 768}, {}, {}, {1, 2, 99, 64}, {1, 2, 99, 64}},
                 2'275'920,
                 {5120, 2 * 109 * 64, 2 * 109 * 64}}}) {
    CAPTURE(e.type, e.inputs.size());
    onnx_text m;
    m.import("com.microsoft", 1);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
      names.push_back(e.inputs[i].empty() ? "" : "x" + std::to_string(i));
      if (!e.inputs[i].empty()) m.input(names.back(), e.inputs[i]);
    }
    auto& n = m.node(e.type, names, "y0", "com.microsoft");
    onnx_text::integer(n, "num_heads", 8);
    if (e.elements.size() > 1) onnx_text::integer(n, "kv_num_heads", 2);
    if (!e.sizes.empty()) onnx_text::integers(n, "qkv_hidden_sizes", e.sizes);
    for (std::size_t i = 1; i < e.elements.size(); ++i) n.add_output("y" + std::to_string(i));
    for (std::size_t i = 0; i < e.elements.size(); ++i) m.node("Relu", {"y" + std::to_string(i)}, "z" + std::to_string(i));
    const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
    CHECK(r.not_inferred.empty());
    CHECK(r.graph[layer_id(0)].forward_flops.value() == e.flop);
    for (std::size_t i = 0; i < e.elements.size(); ++i) CHECK(r.graph[layer_id(i + 1)].forward_flops.value() == e.elements[i]);
  }
  for (const char* type : {"SkipSimplifiedLayerNormalization", "SkipLayerNormalization"}) {
    onnx_text m;
    m.import("com.microsoft", 1);
    m.input("x", {2, 5, 16});
    m.weight("g", {16});
    auto& n = m.node(type, {"x", "x", "g"}, "y", "com.microsoft");
    for (const char* output : {"", "", "sum"}) n.add_output(output);
    CHECK(read(m, "sum").output == 4.0 * 160);
  }
}

TEST_CASE("attention of version 23 has shapes and FLOP: heads apart or packed, fewer of keys, what was kept before") {
  onnx_text m(23);
  m.input("q", {2, 8, 5, 16}), m.input("k", {2, 4, 7, 16}), m.input("v", {2, 4, 7, 12}), m.input("past", {2, 4, 9, 16});
  m.input("past_v", {2, 4, 9, 12});
  auto& n = m.node("Attention", {"q", "k", "v", "", "past", "past_v"}, "y");
  n.add_output("keys"), n.add_output("values"), n.add_output("scores");
  onnx_text::integer(n, "is_causal", 1);
  for (const char* name : {"y", "keys", "values", "scores"}) m.node("Relu", {name}, std::string(name) + " end");
  exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.not_inferred.empty());
  CHECK(r.assumed.size() == 1);
  CHECK(r.graph[layer_id(0)].forward_flops.value() == 2.0 * 8 * 5 * 16 * (2 * 16 + 2 * 12 + 5));
  const std::vector<double> elements{2.0 * 8 * 5 * 12, 2.0 * 4 * 16 * 16, 2.0 * 4 * 16 * 12, 2.0 * 8 * 5 * 16};
  for (std::size_t i = 0; i < 4; ++i) CHECK(r.graph[layer_id(i + 1)].forward_flops.value() == elements[i]);

  m = onnx_text(23);
  m.input("q", {2, 5, 8 * 16}), m.input("k", {2, 7, 4 * 16}), m.input("v", {2, 7, 4 * 12});
  auto& packed = m.node("Attention", {"q", "k", "v"}, "y");
  onnx_text::integer(packed, "q_num_heads", 8);
  m.node("Relu", {"y"}, "end");
  CHECK_THROWS_WITH(exchange::read_onnx(m.text(), "m.onnx"), Catch::Matchers::Contains("expected q_num_heads and kv_num_heads"));
  onnx_text::integer(*m.g().mutable_node(0), "kv_num_heads", 4);
  r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.graph[layer_id(0)].forward_flops.value() == 2.0 * 8 * 5 * 7 * (2 * 16 + 2 * 12 + 5));
  CHECK(r.graph[layer_id(1)].forward_flops.value() == 2.0 * 5 * 8 * 12);

  m = onnx_text(23);  // no overflow
  m.input("q", {1, 0, 1LL << 40}), m.input("k", {1, 0, 1LL << 40}), m.input("v", {1, 0, 1LL << 40});
  auto& wide = m.node("Attention", {"q", "k", "v"}, "y");
  onnx_text::integer(wide, "q_num_heads", 1LL << 40);
  onnx_text::integer(wide, "kv_num_heads", 1);
  CHECK_THROWS_WITH(exchange::read_onnx(m.text(), "m.onnx"), Catch::Matchers::Contains("expected at most 1e15 values a query"));
}

TEST_CASE("shapes are folded through all that exporters compute them with") {
  const auto shape_of = [](const std::function<std::string(onnx_text&)>& compute) {
    onnx_text m(15);
    m.input("x", {2, 3, 5, 7});
    m.node("Shape", {"x"}, "s");
    m.list("zero", {0}), m.list("one", {1}), m.list("two", {2}), m.list("three", {3}), m.list("minus", {-1});
    const std::string wanted = compute(m);
    m.node("Reshape", {"x", wanted}, "y");
    return read(m).output;
  };
  const double all = 4.0 * 2 * 3 * 5 * 7;
  CHECK(shape_of([](onnx_text& m) {
          m.node("Gather", {"s", "one"}, "a");
          m.node("Mul", {"a", "two"}, "b");
          onnx_text::integer(m.node("Concat", {"b", "minus"}, "w"), "axis", 0);
          return "w";
        }) == all);
  // Part of the shape and its number of elements.
  CHECK(shape_of([](onnx_text& m) {
          auto& part = m.node("Shape", {"x"}, "a");
          onnx_text::integer(part, "start", -2);
          m.node("Size", {"x"}, "all");
          m.node("Unsqueeze", {"all", "zero"}, "row");
          m.node("Gather", {"a", "zero"}, "five");
          m.node("Div", {"row", "five"}, "rest");
          onnx_text::integer(m.node("Concat", {"rest", "five"}, "w"), "axis", 0);
          return "w";
        }) == all);
  // A condition selects between computed shapes.
  CHECK(shape_of([](onnx_text& m) {
          m.node("ConstantOfShape", {"one"}, "filled");
          auto& value = *m.g().mutable_node(m.g().node_size() - 1)->add_attribute();
          value.set_name("value");
          value.set_type(onnx::AttributeProto::TENSOR);
          value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
          value.mutable_t()->add_dims(1);
          value.mutable_t()->add_int64_data(6);
          m.node("Equal", {"minus", "minus"}, "is");
          m.node("Where", {"is", "filled", "zero"}, "six");
          onnx_text::integer(m.node("Concat", {"six", "minus"}, "w"), "axis", 0);
          return "w";
        }) == all);
  // Reversed pads in two dimensions, through floating point.
  CHECK(shape_of([](onnx_text& m) {
          m.list("pairs", {-1, 2});
          m.list("four", {7, 5, 3, 2});
          m.node("Reshape", {"four", "pairs"}, "a");
          m.node("Slice", {"a", "minus", "low", "zero", "minus"}, "b");
          m.list("low", {-9});
          onnx_text::integers(m.node("Transpose", {"b"}, "c"), "perm", {1, 0});
          m.node("Reshape", {"c", "minus"}, "d");
          onnx_text::integer(m.node("Cast", {"d"}, "real"), "to", onnx::TensorProto::FLOAT);
          m.node("Floor", {"real"}, "floor");
          onnx_text::integer(m.node("Cast", {"floor"}, "w"), "to", onnx::TensorProto::INT64);
          return "w";
        }) == all);
}

}  // namespace test_onnx_operators

#endif
