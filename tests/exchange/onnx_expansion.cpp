// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <support/onnx_text.hpp>

namespace test_onnx_expansion {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::onnx_text;

exchange::onnx_model read(const onnx_text& m, const exchange::onnx_options& o = {}) { return exchange::read_onnx(m.text(), "m.onnx", o); }

exchange::onnx_options taking(const std::map<std::string, bool>& conditions) {
  return {.dimensions = {}, .name = {}, .conditions = conditions};
}

void refuses(const onnx_text& m, const std::string& what, const exchange::onnx_options& o = {}) {
  CHECK_THROWS_WITH(exchange::read_onnx(m.text(), "m.onnx", o), Contains("m.onnx: ") && Contains(what));
}

/// Returns each layer's attributes except its name.
std::vector<std::tuple<std::string, double, double, double>> layers_of(const exchange::onnx_model& m) {
  std::vector<std::tuple<std::string, double, double, double>> all;
  for (const layer& l : m.graph.layers()) all.emplace_back(l.kind, l.forward_flops.value(), l.weight.value(), l.traffic.value());
  return all;
}

std::vector<std::string> kinds_of(const exchange::onnx_model& m) {
  std::vector<std::string> all;
  for (const layer& l : m.graph.layers()) all.push_back(l.kind);
  return all;
}

onnx_text with_input(int opset = 15) {
  onnx_text m(opset);
  m.import("own", 1);
  m.input("x", {4, 8});
  m.input("c", {}, onnx::TensorProto::BOOL);
  return m;
}

/// Returns a model that calls a function of a product and a bias, which calls another function as activation.
onnx_text with_functions() {
  onnx_text act;
  onnx_text::refers(act.node("LeakyRelu", {"a"}, "b"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  act.node("Abs", {"b"}, "c");
  onnx_text dense;
  onnx_text::refers(dense.node("Gemm", {"in", "w", "bias"}, "a"), "transB", "turned", onnx::AttributeProto::INT);
  onnx_text::refers(dense.node("Activation", {"a"}, "c", "own"), "slope", "slope", onnx::AttributeProto::FLOAT);
  onnx_text m = with_input();
  onnx::AttributeProto turned;
  turned.set_name("turned"), turned.set_type(onnx::AttributeProto::INT), turned.set_i(1);
  m.function("Dense", {"in", "w", "bias"}, {"c"}, dense, "", {turned});
  m.function("Activation", {"a"}, {"c"}, act);
  m.weight("w", {6, 8});
  m.weight("v", {6, 3});
  m.weight("bias", {6});
  onnx_text::real(m.node("Dense", {"x", "w", "bias"}, "h", "own"), "slope", 0.5);  // transposed by default
  onnx_text::integer(m.node("Dense", {"h", "v"}, "y", "own"), "turned", 0);        // without a bias
  m.output("y");
  return m;
}

TEST_CASE("functions of a file are what they hold, in the place of their calls: nested, with attributes, defaults and inputs left out") {
  onnx_text by_hand = with_input();
  by_hand.weight("w", {6, 8});
  by_hand.weight("v", {6, 3});
  by_hand.weight("bias", {6});
  onnx_text::integer(by_hand.node("Gemm", {"x", "w", "bias"}, "1"), "transB", 1);
  onnx_text::real(by_hand.node("LeakyRelu", {"1"}, "2"), "alpha", 0.5);
  by_hand.node("Abs", {"2"}, "h");
  by_hand.node("Gemm", {"h", "v"}, "3");
  by_hand.node("LeakyRelu", {"3"}, "4");
  by_hand.node("Abs", {"4"}, "y");
  by_hand.output("y");
  const exchange::onnx_model expanded = read(with_functions()), expected = read(by_hand);
  CHECK(layers_of(expanded) == layers_of(expected));
  REQUIRE(expanded.graph.edges().size() == expected.graph.edges().size());
  for (std::size_t i = 0; i < expected.graph.edges().size(); ++i) CHECK(expanded.graph.edges()[i] == expected.graph.edges()[i]);
  CHECK(expanded.assumed.empty());
  CHECK(expanded.not_inferred.empty());
  CHECK(expanded.graph[layer_id(0)].forward_flops.value() == 2.0 * 4 * 8 * 6 + 24);
}

TEST_CASE("overloads of a function are told apart, and one that is not there is refused") {
  onnx_text one, two;
  one.node("Relu", {"a"}, "b");
  two.node("Sigmoid", {"a"}, "b");
  onnx_text m = with_input();
  m.function("F", {"a"}, {"b"}, one, "float");
  m.function("F", {"a"}, {"b"}, two, "double");
  onnx_text::overload(m.node("F", {"x"}, "h", "own"), "double");
  onnx_text::overload(m.node("F", {"h"}, "y", "own"), "float");
  CHECK(kinds_of(read(m)) == std::vector<std::string>{"Sigmoid", "Relu"});
  m.node("F", {"y"}, "z", "own");
  refuses(m, "operator F \"z\": there is no function \"F\" of \"own\"");
}

TEST_CASE("a function may hand on its input, and names in it are its own") {
  onnx_text twice;
  twice.node("Relu", {"a"}, "t");
  onnx_text m = with_input();
  m.function("Twice", {"a"}, {"t", "a"}, twice);
  auto& first = m.node("Twice", {"x"}, "t", "own");  // t of the caller is another tensor than t of the function
  first.add_output("copy");
  auto& second = m.node("Twice", {"t"}, "u", "own");
  second.add_output("");
  m.node("Add", {"u", "copy"}, "y");
  const exchange::onnx_model r = read(m);
  CHECK(kinds_of(r) == std::vector<std::string>{"Relu", "Identity", "Relu", "Add"});
  CHECK(r.graph.edges().size() == 3);
}

TEST_CASE("a branch in a function does not catch a name of the caller") {
  onnx_text inside, other, body;
  inside.node("Relu", {"a"}, "z");  // "a" is the caller's z, another tensor than this z
  inside.node("Add", {"z", "a"}, "r");
  inside.output("r");
  other.node("Relu", {"a"}, "z");
  other.output("z");
  auto& choice = body.node("If", {"which"}, "b");
  onnx_text::graph(choice, "then_branch", inside);
  onnx_text::graph(choice, "else_branch", other);
  onnx_text m = with_input();
  m.function("F", {"which", "a"}, {"b"}, body);
  m.node("Sigmoid", {"x"}, "z");
  m.node("F", {"c", "z"}, "y", "own");
  m.output("y");
  const exchange::onnx_model r = read(m);
  CHECK(kinds_of(r) == std::vector<std::string>{"Sigmoid", "Relu", "Add"});
  REQUIRE(r.graph.edges().size() == 3);  // Sigmoid to Relu and to Add, Relu to Add
}

TEST_CASE("functions that cannot be expanded are refused by name") {
  onnx_text calls_g, calls_f;
  calls_g.node("G", {"a"}, "b", "own");
  calls_f.node("F", {"a"}, "b", "own");
  onnx_text m = with_input();
  m.function("F", {"a"}, {"b"}, calls_g);
  m.function("G", {"a"}, {"b"}, calls_f);
  m.node("F", {"x"}, "y", "own");
  refuses(m, "function \"F\" of \"own\" calls itself, by way of function \"G\" of \"own\"");

  m = with_input();
  onnx_text relu;
  relu.node("Relu", {"a"}, "b");
  m.function("F", {"a"}, {"b"}, relu);
  m.node("F", {"x", "x"}, "y", "own");
  refuses(m, "operator F \"y\": expected at most 1 inputs and 1 outputs, as function \"F\" of \"own\" has, got 2 and 1");
  m.function("F", {"a"}, {"b"}, relu);
  refuses(m, "expected one function \"F\" of \"own\", got two");

  m = with_input();
  onnx_text wants;
  onnx_text::refers(wants.node("LeakyRelu", {"a"}, "b"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  m.function("F", {"a"}, {"b"}, wants);
  onnx_text::integer(m.node("F", {"x"}, "y", "own"), "slope", 1);
  refuses(m, "operator LeakyRelu expects attribute \"slope\" of type FLOAT, got INT");
  m = with_input();
  onnx_text::refers(m.node("LeakyRelu", {"x"}, "y"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  refuses(m, "operator LeakyRelu \"y\" refers to attribute \"slope\" of a function, and is in none");

  m = with_input();
  onnx_text open;
  open.node("Add", {"a", "x"}, "b");  // functions do not see the caller's tensors
  m.function("F", {"a"}, {"b"}, open);
  m.node("F", {"x"}, "y", "own");
  refuses(m, "reads tensor \"y/x\", which nobody makes");

  m = with_input();
  m.node("F0", {"x"}, "y", "own");
  for (int i = 0; i < 400; ++i) {
    onnx_text next;
    next.node("F" + std::to_string(i + 1), {"a"}, "b", "own");
    m.function("F" + std::to_string(i), {"a"}, {"b"}, next);
  }
  m.function("F400", {"a"}, {"b"}, relu);
  refuses(m, "expected calls of functions at most 256 deep");
}

TEST_CASE("functions that make too many operators are refused before they are expanded", "[long]") {
  onnx_text m = with_input(), relu;
  relu.node("Relu", {"a"}, "b");
  m.node("F0", {"x"}, "y", "own");
  for (int i = 0; i < 40; ++i) {  // 2^40 calls
    onnx_text two;
    two.node("F" + std::to_string(i + 1), {"a"}, "t", "own");
    two.node("F" + std::to_string(i + 1), {"t"}, "b", "own");
    m.function("F" + std::to_string(i), {"a"}, {"b"}, two);
  }
  m.function("F40", {"a"}, {"b"}, relu);
  refuses(m, "expected at most 500000 operators of functions, got more");
}

TEST_CASE("a function brings versions of operators that the file lacks, and others than the file's are told where they differ") {
  onnx_text body;  // of version 13
  body.node("Softmax", {"a"}, "b");
  onnx_text m(11);
  m.import("own", 1);
  m.input("x", {4, 8});
  m.function("F", {"a"}, {"b"}, body);
  m.node("F", {"x"}, "y", "own");
  exchange::onnx_model r = read(m);
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("asks for version 13 of operator Softmax: it counts as of version 11, which the file asks for"));
  m.model().mutable_opset_import(0)->set_version(15);
  CHECK(read(m).assumed.empty());  // the same operator in both
  m.model().mutable_opset_import()->DeleteSubrange(0, 1);
  CHECK(read(m).assumed.empty());
}

TEST_CASE("a function that asks for newer operators than the file is named with their version, also where they are refused") {
  onnx_text body;
  auto& split = body.node("Split", {"a"}, "b");
  split.add_output("c");
  onnx_text m(17);
  m.import("own", 1);
  m.input("x", {4, 8});
  m.function("F", {"a"}, {"b", "c"}, body);
  auto& version = *m.model().mutable_functions(0)->mutable_opset_import(0);
  CHECK(version.domain().empty());
  version.set_version(18);
  m.node("F", {"x"}, "y", "own").add_output("z");
  m.node("Add", {"y", "z"}, "end");
  const std::string told =
      "function \"F\" of \"own\" asks for version 18 of ONNX's operators: they count as of version 17, which the file asks for";
  CHECK(read(m).assumed == std::vector<std::string>{told});
  onnx_text::integer(*m.model().mutable_functions(0)->mutable_node(0), "num_outputs", 2);
  refuses(m, "operator Split \"y\": ONNX refuses it: Unrecognized attribute: num_outputs for operator Split; " + told);
}

TEST_CASE("operators in the branches of a function are called by its call") {
  onnx_text body;
  onnx_text inner, other;
  inner.node("Gemm", {"a", "w"}, "z").set_name("gm"), inner.output("z");
  other.node("Relu", {"a"}, "z"), other.output("z");
  auto& choice = body.node("If", {"which"}, "b");
  choice.set_name("fi");
  onnx_text::graph(choice, "then_branch", inner), onnx_text::graph(choice, "else_branch", other);
  onnx_text m = with_input();
  m.weight("w", {8, 8});
  m.function("F", {"which", "a", "w"}, {"b"}, body);
  m.node("F", {"c", "x", "w"}, "h", "own").set_name("call1");
  m.node("F", {"c", "h", "w"}, "y", "own").set_name("call2");
  const exchange::onnx_model r = read(m);
  REQUIRE(r.graph.size() == 2);
  CHECK(r.graph[layer_id(0)].name == "call1/gm");
  CHECK(r.graph[layer_id(1)].name == "call2/gm");
}

/// Adds an If with a small and a large branch, whose outputs are both named "z".
onnx::NodeProto& add_if(onnx_text& m, const std::string& condition = "c", const std::string& output = "y") {
  onnx_text small, large;
  small.node("Relu", {"x"}, "z");
  small.output("z");
  large.weight("w", {8, 8});
  large.node("MatMul", {"x", "w"}, "t");
  large.node("Abs", {"t"}, "z");
  large.output("z");
  auto& n = m.node("If", {condition}, output);
  onnx_text::graph(n, "then_branch", small);
  onnx_text::graph(n, "else_branch", large);
  return n;
}

TEST_CASE("If is its larger branch, or the one that is asked for, and that is told") {
  onnx_text m = with_input();
  add_if(m).set_name("choice");
  m.node("Tanh", {"y"}, "end");
  m.output("end");
  exchange::onnx_model r = read(m);
  CHECK(kinds_of(r) == std::vector<std::string>{"MatMul", "Abs", "Tanh"});
  CHECK(r.graph.parameters() == 64);
  CHECK(r.graph.edges().size() == 2);
  CHECK(r.assumed ==
        std::vector<std::string>{"operator If \"choice\": which branch it takes is known when it runs; else_branch counts, with 544 "
                                 "FLOP, not then_branch with 32"});
  for (const char* name : {"", "choice", "y"}) {
    r = read(m, taking({{name, true}}));
    CHECK(kinds_of(r) == std::vector<std::string>{"Relu", "Tanh"});
    CHECK(r.graph.parameters() == 0);
    CHECK(r.assumed == std::vector<std::string>{"operator If \"choice\": then_branch counts, as asked for"});
  }
  CHECK(kinds_of(read(m, taking({{"", true}, {"choice", false}}))).size() == 3);
  refuses(m, "no operator If is called \"x\"", taking({{"x", true}}));
  onnx_text none = with_input();
  none.node("Relu", {"x"}, "y");
  refuses(none, "there is no operator If for which a branch can be chosen", taking({{"", true}}));
}

TEST_CASE("a branch that is asked for is counted, or it is said that it has no effect; both of one operator are refused") {
  onnx_text inner_then, inner_else, outer_then, outer_else;
  inner_then.node("Sigmoid", {"x"}, "u"), inner_then.output("u");
  inner_else.node("Neg", {"x"}, "u"), inner_else.output("u");
  auto& inner = outer_then.node("If", {"c"}, "z");
  inner.set_name("INNER");
  onnx_text::graph(inner, "then_branch", inner_then), onnx_text::graph(inner, "else_branch", inner_else);
  outer_then.output("z");
  outer_else.node("Relu", {"x"}, "z"), outer_else.output("z");
  onnx_text m = with_input();
  auto& outer = m.node("If", {"c"}, "y");
  outer.set_name("IF");
  onnx_text::graph(outer, "then_branch", outer_then), onnx_text::graph(outer, "else_branch", outer_else);
  m.output("y");
  exchange::onnx_model r = read(m, taking({{"IF", false}, {"INNER", true}}));
  CHECK(kinds_of(r) == std::vector<std::string>{"Relu"});
  CHECK(r.assumed ==
        std::vector<std::string>{"operator If \"IF\": else_branch counts, as asked for",
                                 "the branch asked for of operator If \"INNER\" has no effect: no branch that counts has that operator"});
  r = read(m, taking({{"IF", true}, {"INNER", false}}));
  CHECK(kinds_of(r) == std::vector<std::string>{"Neg"});
  CHECK(r.assumed.size() == 2);
  for (const bool taken : {true, false}) {
    CHECK(kinds_of(read(m, taking({{"IF", taken}, {"y", taken}, {"INNER", true}}))).front() == (taken ? "Sigmoid" : "Relu"));
    refuses(m, "both branches are asked for of operator If \"IF\", by its name and by its output \"y\"",
            taking({{"IF", taken}, {"y", !taken}}));
  }

  onnx_text several = with_input();  // conditions for one operator and for all others, which have no names
  for (int i = 0; i < 7; ++i) add_if(several, "c", "y" + std::to_string(i));
  r = read(several, taking({{"", true}, {"y3", false}}));
  CHECK(kinds_of(r) == std::vector<std::string>{"Relu", "Relu", "Relu", "MatMul", "Abs", "Relu", "Relu", "Relu"});
  REQUIRE(r.assumed.size() == 6);
  CHECK(r.assumed[5] == "so it is with 2 more operators If, each by its condition, as asked for or by size");
}

TEST_CASE("If takes the branch that a constant condition says, whatever is asked, where shapes are computed first, too") {
  for (const bool truth : {true, false}) {
    for (const int how : {0, 1, 2}) {
      CAPTURE(truth, how);
      onnx_text m = with_input();
      if (how == 0) {
        auto& t = *m.g().add_initializer();
        t.set_name("is"), t.set_data_type(onnx::TensorProto::BOOL), t.set_raw_data(std::string(1, truth ? '\1' : '\0'));
      } else if (how == 1) {  // as exporters test whether an axis can be squeezed
        m.node("Shape", {"x"}, "s");
        m.list("one", {1}), m.list("eight", {truth ? 8 : 4});
        m.node("Gather", {"s", "one"}, "columns");
        m.node("Equal", {"columns", "eight"}, "is");
      } else {
        m.node("Size", {"x"}, "n");
        auto& t = *m.g().add_initializer();
        t.set_name("half"), t.set_data_type(onnx::TensorProto::FLOAT), t.add_float_data(truth ? 15.5F : 64.5F);
        onnx_text::integer(m.node("Cast", {"n"}, "real"), "to", onnx::TensorProto::FLOAT);
        m.node("LessOrEqual", {"real", "half"}, "less");
        m.node("Not", {"less"}, "is");
      }
      add_if(m, "is");
      const exchange::onnx_model r = read(m, taking({{"", !truth}}));
      CHECK(kinds_of(r).front() == (truth ? "Relu" : "MatMul"));
      REQUIRE(r.assumed.size() == 1);
      CHECK_THAT(r.assumed[0], Contains("its condition is constant, and " + std::string(truth ? "then" : "else") + "_branch counts"));
    }
  }
}

TEST_CASE("If within If, in functions and with outputs from around it or of constants") {
  onnx_text inner_then, inner_else, outer_then, outer_else;
  inner_then.node("Sigmoid", {"t"}, "z");  // t of the enclosing branch
  inner_then.output("z");
  inner_else.node("Neg", {"x"}, "z");  // x of the graph
  inner_else.output("z");
  outer_then.node("Exp", {"x"}, "t");
  auto& inner = outer_then.node("If", {"d"}, "z");
  onnx_text::graph(inner, "then_branch", inner_then);
  onnx_text::graph(inner, "else_branch", inner_else);
  outer_then.output("z");
  outer_then.output("x");
  outer_else.weight("k", {8});
  outer_else.output("x");
  outer_else.output("k");
  onnx_text m = with_input();
  m.input("d", {}, onnx::TensorProto::BOOL);
  auto& outer = m.node("If", {"c"}, "p");
  outer.add_output("q");
  onnx_text::graph(outer, "then_branch", outer_then);
  onnx_text::graph(outer, "else_branch", outer_else);
  m.node("Add", {"p", "q"}, "y");
  m.output("y");
  exchange::onnx_model r = read(m);
  CHECK(kinds_of(r) == std::vector<std::string>{"Exp", "Sigmoid", "Identity", "Add"});
  CHECK(r.graph.edges().size() == 3);
  CHECK(r.assumed.size() == 2);
  r = read(m, taking({{"p", false}}));
  CHECK(kinds_of(r) == std::vector<std::string>{"Identity", "Add"});  // only the constant is folded
  CHECK(r.graph[layer_id(1)].weight.value() == 32);

  onnx_text body;
  add_if(body, "which", "b");
  onnx_text f = with_input();
  f.function("F", {"which", "x"}, {"b"}, body);
  f.node("F", {"c", "x"}, "h", "own");
  f.node("Relu", {"h"}, "y");
  CHECK(kinds_of(read(f)) == std::vector<std::string>{"MatMul", "Abs", "Relu"});
}

TEST_CASE("what a branch holds is checked, and one that cannot be read may be left out") {
  onnx_text small, looped;
  small.node("Relu", {"x"}, "z");
  small.output("z");
  auto& loop = looped.node("Loop", {"", "c", "x"}, "z");
  loop.set_name("again");
  onnx_text::graph(loop, "body", small);
  looped.output("z");
  const auto with = [&](onnx_text first, onnx_text second) {
    onnx_text m = with_input();
    auto& n = m.node("If", {"c"}, "y");
    onnx_text::graph(n, "then_branch", std::move(first));
    onnx_text::graph(n, "else_branch", std::move(second));
    m.output("y");
    return m;
  };
  refuses(with(small, looped), "operator Loop \"again\" has a subgraph, which is not read");
  CHECK(kinds_of(read(with(small, looped), taking({{"", true}}))) == std::vector<std::string>{"Relu"});
  onnx_text of_other;
  of_other.node("Relu", {"z"}, "u");  // z of the other branch
  of_other.output("u");
  refuses(with(small, of_other), "operator Relu \"u\" reads tensor \"z\", which nobody makes");
  onnx_text cycle;
  cycle.node("Add", {"x", "b"}, "a");
  cycle.node("Relu", {"a"}, "b");
  cycle.output("b");
  refuses(with(small, cycle), "expected no cycle");
  onnx_text around;
  around.node("Relu", {"y"}, "u");  // y of the If itself
  around.output("u");
  refuses(with(small, around), "expected no cycle");
  onnx_text nothing;
  nothing.output("x");
  CHECK(kinds_of(read(with(nothing, nothing))) == std::vector<std::string>{"Identity"});
  onnx_text two = small;
  two.output("x");
  refuses(with(small, two), "expected branches without inputs and with 1 outputs, got 0 and 2");
  onnx_text m = with_input();
  m.node("If", {"c"}, "y");
  refuses(m, "operator If \"y\": expected a condition, a then_branch and an else_branch");
  onnx_text deep = small;  // thirty nested branches, which protobuf can read
  for (int i = 0; i < 30; ++i) {
    onnx_text next;
    auto& n = next.node("If", {"c"}, "z");
    onnx_text::graph(n, "then_branch", deep);
    onnx_text::graph(n, "else_branch", small);
    next.output("z");
    deep = next;
  }
  const exchange::onnx_model r = read(with(deep, small));
  CHECK(kinds_of(r) == std::vector<std::string>{"Relu"});
  CHECK(r.assumed.size() == 6);
}

TEST_CASE("a model of functions and branches is cut as what it stands for") {
  onnx_text m = with_functions();
  m.g().clear_output();
  onnx_text then_branch, else_branch;
  then_branch.node("Dense", {"y", "w2"}, "z", "own");
  then_branch.weight("w2", {5, 3});
  then_branch.output("z");
  else_branch.node("Relu", {"y"}, "z");
  else_branch.output("z");
  auto& n = m.node("If", {"c"}, "last");
  onnx_text::graph(n, "then_branch", then_branch);
  onnx_text::graph(n, "else_branch", else_branch);
  m.output("last");
  for (const bool first : {true, false}) {
    const exchange::onnx_options o = taking({{"", first}});
    const exchange::onnx_model r = read(m, o);
    plan p;
    for (const layer& l : r.graph.layers())
      p.stages.push_back({.name = l.name, .layers = {l.id}, .devices = {{device_id(l.id.index() / 2 % 2)}}});
    const auto parts = exchange::cut_onnx(m.text(), "m.onnx", o, r, p);
    CHECK(parts.size() == (first ? 5 : 4));
    std::size_t operators = 0;
    for (const exchange::onnx_part& part : parts) {
      onnx::ModelProto whole;
      REQUIRE(whole.ParseFromString(part.text));
      CHECK_NOTHROW(onnx::checker::check_model(whole));
      operators += exchange::read_onnx(part.text, "part.onnx").graph.size();
    }
    CHECK(operators == r.graph.size());
    CHECK(r.graph.size() == (first ? 9U : 7U));
  }
}

TEST_CASE("the same import twice is one") {
  onnx_text m = test::small_onnx();
  m.import("", 13);
  m.import("ai.onnx", 13);
  CHECK(read(m).graph == read(test::small_onnx()).graph);
}

TEST_CASE("axes of size 0 are told, and may be given a size") {
  onnx_text m;
  m.input("x", {0, 3, 8, 8});
  m.weight("w", {4, 3, 3, 3});
  m.node("Conv", {"x", "w"}, "y");
  m.node("Relu", {"y"}, "z");
  m.output("z");
  const exchange::onnx_model none = read(m);
  CHECK(none.assumed == std::vector<std::string>{
                            "axis \"x[0]\" of the inputs is 0 in the file: nothing is computed along it, unless \"x[0]\" is given a size",
                            "tensor \"y\" and 1 more have an axis of size 0: what makes them costs nothing"});
  const exchange::onnx_model two = read(m, {.dimensions = {{"x[0]", 2}}, .name = {}, .conditions = {}});
  CHECK(two.assumed.empty());
  CHECK(two.graph.forward_flops().value() == 2 * (2.0 * 4 * 36 * 27 + 4 * 36));
  onnx_text cut;  // a size of 0 that results from Slice
  cut.input("x", {4, 8});
  cut.list("end", {9}), cut.list("start", {8}), cut.list("axis", {1});
  cut.node("Slice", {"x", "start", "end", "axis"}, "s");
  cut.node("Relu", {"s"}, "y");
  CHECK(read(cut).assumed.size() == 1);
}

TEST_CASE("what is drawn by chance is no constant, and sparse constants are refused wherever they stand") {
  for (const char* type : {"Bernoulli", "Multinomial", "RandomUniformLike", "RandomNormalLike"}) {
    CAPTURE(type);
    onnx_text m = with_input();
    m.weight("w", {4, 8});
    m.node(type, {"w"}, "drawn");
    onnx_text::integer(m.node("Cast", {"drawn"}, "real"), "to", onnx::TensorProto::FLOAT);
    m.node("Add", {"real", "x"}, "y");
    const exchange::onnx_model r = read(m);
    CHECK(kinds_of(r) == std::vector<std::string>{type, "Cast", "Add"});
    CHECK(r.folded == 0);
  }
  onnx_text dropped = with_input();
  dropped.weight("w", {4, 8});
  auto& ratio = *dropped.g().add_initializer();
  ratio.set_name("ratio"), ratio.set_data_type(onnx::TensorProto::FLOAT), ratio.add_float_data(0.5F);
  dropped.node("Dropout", {"w", "ratio", "c"}, "d");
  dropped.node("Add", {"d", "x"}, "y");
  CHECK(kinds_of(read(dropped)) == std::vector<std::string>{"Dropout", "Add"});
  onnx_text m = with_input();
  auto& n = m.node("Constant", {}, "s");
  auto& a = *n.add_attribute();
  a.set_name("sparse_value"), a.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  a.mutable_sparse_tensor()->add_dims(8), a.mutable_sparse_tensor()->add_dims(2);
  m.node("MatMul", {"x", "s"}, "y");
  refuses(m, "operator Constant \"s\" holds a sparse tensor, which is not read");
}

}  // namespace test_onnx_expansion

#endif
