// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <support/onnx_text.hpp>

namespace test_onnx_folding {

using namespace hetplan;
using test::onnx_text;

constexpr int to_float = onnx::TensorProto::FLOAT, to_int = onnx::TensorProto::INT64;

void number(onnx_text& m, const std::string& name, double value) {
  auto& t = *m.g().add_initializer();
  t.set_name(name), t.set_data_type(onnx::TensorProto::FLOAT), t.add_float_data(static_cast<float>(value));
}

/// Returns the number of elements of a tensor whose shape "y" is computed from the shape "s" of x.
double folded(const std::vector<long long>& x, const std::function<void(onnx_text&)>& compute) {
  onnx_text m(15);
  m.input("x", x);
  m.input("one", {1});
  m.node("Shape", {"x"}, "s");
  for (long long i = 0; i < 4; ++i) m.list(std::to_string(i), {i});
  compute(m);
  m.list("row", {-1});
  m.node("Reshape", {"y", "row"}, "wanted");
  m.node("Expand", {"one", "wanted"}, "wide");
  m.node("Relu", {"wide"}, "end");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.not_inferred.empty());
  CHECK(r.assumed.empty());
  CHECK(r.graph.size() == 2);  // everything else is folded
  return r.graph[r.graph.find("Relu end")].forward_flops.value();
}

/// As `folded`, with a change between casts to floating point and back.
double through_real(const std::vector<long long>& x, const std::function<std::string(onnx_text&)>& change) {
  return folded(x, [&](onnx_text& m) {
    onnx_text::integer(m.node("Cast", {"s"}, "real"), "to", to_float);
    const std::string changed = change(m);
    onnx_text::integer(m.node("Cast", {changed}, "y"), "to", to_int);
  });
}

TEST_CASE("shapes are folded through floating point: quotients, roots, rounding up, down and to even") {
  using text = std::string;
  const auto behind = [](const char* type) {
    return [type](onnx_text& m) {
      number(m, "by", 2);
      m.node("Div", {"real", "by"}, "half");
      m.node(type, {"half"}, "t");
      return text("t");
    };
  };
  CHECK(through_real({7, 5}, behind("Ceil")) == 4 * 3);
  CHECK(through_real({7, 5}, behind("Floor")) == 3 * 2);
  CHECK(through_real({7, 5}, behind("Round")) == 4 * 2);  // 3.5 and 2.5
  CHECK(through_real({7, 5}, behind("Abs")) == 3 * 2);    // truncated by the cast
  CHECK(through_real({49, 10}, [](onnx_text& m) { return m.node("Sqrt", {"real"}, "t"), text("t"); }) == 7 * 3);
  CHECK(through_real({10, 20}, [](onnx_text& m) {
          number(m, "by", 0.7);  // 7.0 in single precision, 6.99... in double
          m.node("Mul", {"real", "by"}, "t");
          return text("t");
        }) == 7 * 14);
  CHECK(through_real({4, 9}, [](onnx_text& m) {
          number(m, "half", 0.5);
          m.node("Pow", {"real", "half"}, "root");
          m.node("Reciprocal", {"root"}, "r");
          m.node("Reciprocal", {"r"}, "t");
          return text("t");
        }) == 2 * 3);
  CHECK(through_real({5, 9}, [](onnx_text& m) {
          number(m, "most", 6.5), number(m, "least", 2);
          m.node("Clip", {"real", "least", "most"}, "t");
          return text("t");
        }) == 5 * 6);
}

TEST_CASE("shapes are folded through products, sums and extremes of their axes") {
  CHECK(folded({2, 3, 5}, [](onnx_text& m) { m.node("ReduceProd", {"s"}, "y"); }) == 30);
  CHECK(folded({2, 3, 5}, [](onnx_text& m) { onnx_text::integer(m.node("ReduceSum", {"s"}, "y"), "keepdims", 0); }) == 10);
  CHECK(folded({2, 3, 5}, [](onnx_text& m) { onnx_text::integers(m.node("ReduceMax", {"s"}, "y"), "axes", {0}); }) == 5);
  CHECK(folded({2, 3, 5}, [](onnx_text& m) { m.node("ReduceMin", {"s"}, "y"); }) == 2);
  CHECK(folded({2, 6, 5, 7}, [](onnx_text& m) {
          m.list("square", {2, 2});
          m.node("Reshape", {"s", "square"}, "q");
          auto& n = m.node("ReduceProd", {"q"}, "y");
          onnx_text::integers(n, "axes", {1});
          onnx_text::integer(n, "keepdims", 0);
        }) == 12 * 35);
  CHECK(folded({2, 3, 5}, [](onnx_text& m) {
          m.node("Max", {"s", "3", "1"}, "most");
          m.node("Min", {"most", "3"}, "y");
        }) == 27);
  onnx_text m(11);  // flattens all but the first two axes, as exporters do
  m.input("x", {2, 8, 4, 16});
  m.node("Shape", {"x"}, "s");
  m.list("behind", {2, 3}), m.list("rest", {-1});
  m.weight("w", {64, 256});
  m.node("Gather", {"s", "behind"}, "g");
  m.node("ReduceProd", {"g"}, "p");
  onnx_text::integer(m.node("Concat", {"rest", "p"}, "wanted"), "axis", 0);
  m.node("Reshape", {"x", "wanted"}, "rows");
  m.node("MatMul", {"rows", "w"}, "y");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.graph[r.graph.find("MatMul y")].forward_flops.value() == 2.0 * 16 * 64 * 256);
  CHECK(r.not_inferred.empty());
}

TEST_CASE("shapes are folded through whole arithmetic, comparisons and choices, spread over each other") {
  CHECK(folded({7, 5}, [](onnx_text& m) { m.node("Mod", {"s", "3"}, "y"); }) == 1 * 2);
  CHECK(folded({7, 5}, [](onnx_text& m) { m.node("Neg", {"s"}, "n"), m.node("Mod", {"n", "3"}, "y"); }) == 2 * 1);
  CHECK(folded({7, 5}, [](onnx_text& m) {
          m.node("Neg", {"s"}, "n");
          onnx_text::integer(m.node("Mod", {"n", "3"}, "r"), "fmod", 1);
          m.node("Neg", {"r"}, "y");
        }) == 1 * 2);
  CHECK(folded({7, 5}, [](onnx_text& m) {
          m.node("Neg", {"s"}, "n"), m.node("Div", {"n", "2"}, "d"), m.node("Neg", {"d"}, "y");
        }) == 3 * 2);
  CHECK(folded({2, 3}, [](onnx_text& m) { m.node("Pow", {"s", "3"}, "y"); }) == 8 * 27);
  CHECK(folded({7, 2}, [](onnx_text& m) {
          m.node("Greater", {"s", "3"}, "large");
          m.node("GreaterOrEqual", {"s", "2"}, "some");
          m.node("And", {"large", "some"}, "both");
          m.node("Where", {"both", "3", "s"}, "y");
        }) == 3 * 2);
  CHECK(folded({7, 2}, [](onnx_text& m) {  // a column plus a row
          m.list("column", {2, 1});
          m.node("Reshape", {"s", "column"}, "c");
          m.list("pair", {1, 2});
          m.node("Add", {"c", "pair"}, "y");
        }) == 8.0 * 9 * 3 * 4);
}

TEST_CASE("shapes are folded through Clip with both bounds or one of them") {
  const auto clipped = [](const std::vector<std::string>& bounds) {
    return folded({8, 15, 33}, [&](onnx_text& m) {
      m.list("nine", {9}), m.list("ten", {10});
      for (int i = 1; i < 3; ++i) m.g().mutable_initializer(m.g().initializer_size() - i)->clear_dims();
      std::vector<std::string> inputs{"s"};
      inputs.insert(inputs.end(), bounds.begin(), bounds.end());
      m.node("Clip", inputs, "y");
    });
  };
  CHECK(clipped({"ten"}) == 10 * 15 * 33);
  CHECK(clipped({"", "ten"}) == 8 * 10 * 10);
  CHECK(clipped({"nine", "ten"}) == 9 * 10 * 10);
}

TEST_CASE("shapes are folded through what moves numbers") {
  CHECK(folded({2, 3, 5}, [](onnx_text& m) {
          auto& n = m.node("Split", {"s"}, "a");
          n.add_output("b"), n.add_output("c");
          m.node("Add", {"a", "c"}, "y");
        }) == 7);
  CHECK(folded({2, 3}, [](onnx_text& m) {
          m.list("two by two", {2, 2});
          m.node("Expand", {"s", "two by two"}, "y");
        }) == 36);
  CHECK(folded({2, 3}, [](onnx_text& m) { m.node("Tile", {"s", "2"}, "y"); }) == 36);
  CHECK(folded({2, 3, 5, 7}, [](onnx_text& m) {
          m.list("square", {2, 2});
          m.node("Reshape", {"s", "square"}, "q");
          m.node("Transpose", {"q"}, "t");
          onnx_text::integer(m.node("Gather", {"t", "0"}, "g"), "axis", 1);
          onnx_text::integer(m.node("Concat", {"g", "g"}, "y"), "axis", 1);
        }) == 36);
  CHECK(folded({3, 2}, [](onnx_text& m) {
          m.node("Gather", {"s", "0"}, "n");
          m.node("ConstantOfShape", {"n"}, "ones");
          auto& value = *m.g().mutable_node(m.g().node_size() - 1)->add_attribute();
          value.set_name("value"), value.set_type(onnx::AttributeProto::TENSOR);
          value.mutable_t()->set_data_type(to_int), value.mutable_t()->add_dims(1), value.mutable_t()->add_int64_data(1);
          m.node("NonZero", {"ones"}, "at");
          m.node("Add", {"at", "2"}, "y");
        }) == 2 * 3 * 4);
  CHECK(folded({9, 2}, [](onnx_text& m) {  // a descending Range
          for (const char* name : {"0", "1"}) {
            auto& one = *m.g().add_initializer();
            one.set_name(std::string("just ") + name), one.set_data_type(to_int), one.add_int64_data(name[0] == '0' ? 7 : -3);
          }
          auto& last = *m.g().add_initializer();
          last.set_name("last"), last.set_data_type(to_int), last.add_int64_data(0);
          m.node("Range", {"just 0", "last", "just 1"}, "y");
        }) == 7 * 4 * 1);
}

TEST_CASE("numbers that have no place in their type are not made up") {
  onnx_text m(15);
  m.input("x", {4, 8});
  m.list("large", {1LL << 62}), m.list("least", {std::numeric_limits<long long>::min()}), m.list("minus", {-1}), m.list("zero", {0});
  m.node("Mul", {"large", "large"}, "a");
  m.node("Div", {"least", "minus"}, "b");
  m.node("Mod", {"minus", "zero"}, "c");
  m.node("Add", {"least", "minus"}, "d");
  m.node("Neg", {"least"}, "e");
  for (const char* name : {"a", "b", "c", "d", "e"}) m.node("Reshape", {"x", name}, std::string(name) + " of x");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.graph.size() == 5);
}

}  // namespace test_onnx_folding

#endif
