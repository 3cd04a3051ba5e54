// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <support/onnx_text.hpp>
#include <support/random_source.hpp>

namespace test_onnx_newer {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::onnx_text;

void reals(onnx_text& m, const std::string& name, const std::vector<double>& values) {
  auto& t = *m.g().add_initializer();
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_dims(static_cast<long long>(values.size()));
  for (const double v : values) t.add_float_data(static_cast<float>(v));
}

/// FLOP and elements of one operator on one input, and the assumptions made for it.
struct result {
  double flop, elements;
  std::vector<std::string> assumed;
};

result of(int version, const std::vector<long long>& x, const std::function<void(onnx_text&)>& add) {
  onnx_text m(version);
  m.input("x", x);
  add(m);
  m.node("Relu", {"y"}, "end");
  const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
  CHECK(r.not_inferred.empty());
  std::vector<std::string> assumed = r.assumed;
  if (version > 17 && !assumed.empty()) assumed.erase(assumed.begin());  // about the version
  return {r.graph[layer_id(0)].forward_flops.value(), r.graph[r.graph.find("Relu end")].forward_flops.value(), assumed};
}

void refused(int version, const std::vector<long long>& x, const std::string& what, const std::function<void(onnx_text&)>& add) {
  onnx_text m(version);
  m.input("x", x);
  add(m);
  CHECK_THROWS_WITH(exchange::read_onnx(m.text(), "m.onnx"), Contains(what));
}

/// Returns the number of pooling windows by enumeration.
long long windows(long long in, long long before, long long behind, long long kernel, long long dilation, long long stride, bool up) {
  long long n = 0;
  for (long long start = -before;; start += stride) {
    const long long last = start + (kernel - 1) * dilation;
    const bool whole = last < in + behind;
    // With rounding up, a window may extend beyond the edge if the one before did not end there and if it begins before the end padding.
    const bool partly = up && start < in && last - (in + behind - 1) < stride;
    if (!whole && !partly) return n;
    ++n;
  }
}

TEST_CASE("pooling of versions 18 to 22 has as many windows as can be counted, with gaps and rounded up") {
  test::random_source random(test::first_seed());
  for (int round = 0; round < 400; ++round) {
    const int version = random.integer(18, 22);
    const long long in = random.integer(4, 14), before = random.integer(0, 2), behind = random.integer(0, 2), kernel = random.integer(1, 4),
                    dilation = random.integer(1, 3), stride = random.integer(1, 4);
    const bool up = random.chance(0.5);
    const std::string type = version >= 19 && random.chance(0.6) ? "AveragePool" : random.chance(0.5) ? "LpPool" : "MaxPool";
    const long long expected = windows(in, before, behind, kernel, dilation, stride, up);
    if (expected < 1 || (kernel - 1) * dilation + 1 > in + before + behind || std::max(before, behind) >= kernel) continue;
    CAPTURE(version, type, in, before, behind, kernel, dilation, stride, up, test::first_seed());
    const result r = of(version, {1, 2, in}, [&](onnx_text& m) {
      auto& n = m.node(type, {"x"}, "y");
      onnx_text::integers(n, "kernel_shape", {kernel});
      onnx_text::integers(n, "dilations", {dilation});
      onnx_text::integers(n, "strides", {stride});
      onnx_text::integers(n, "pads", {before, behind});
      onnx_text::integer(n, "ceil_mode", up ? 1 : 0);
    });
    CHECK(r.elements == 2.0 * static_cast<double>(expected));
    CHECK(r.flop == 2.0 * static_cast<double>(expected * kernel));
    CHECK(r.assumed.empty());
  }
  const result same = of(19, {1, 4, 20, 20}, [](onnx_text& m) {
    auto& n = m.node("AveragePool", {"x"}, "y");
    onnx_text::integers(n, "kernel_shape", {3, 3});
    onnx_text::integers(n, "dilations", {2, 2});
    onnx_text::integers(n, "strides", {3, 3});
    onnx_text::words(n, "auto_pad", "SAME_UPPER");
  });
  CHECK(same.elements == 4.0 * 7 * 7);
  const result gaps = of(19, {1, 4, 20, 20}, [](onnx_text& m) {
    auto& n = m.node("AveragePool", {"x"}, "y");
    onnx_text::integers(n, "kernel_shape", {3, 3});
    onnx_text::integers(n, "dilations", {2, 2});
  });
  CHECK(gaps.flop == 9216);
  refused(19, {1, 4, 20, 20}, "expected 2 numbers of kernel_shape, got 0", [](onnx_text& m) { m.node("AveragePool", {"x"}, "y"); });
}

TEST_CASE("Pad of version 18 pads some axes, in every mode, and cuts where it is negative") {
  for (const char* mode : {"constant", "wrap", "edge"}) {
    const auto add = [&](onnx_text& m) {
      m.list("pads", {1, 2, 3, -1});
      m.list("axes", {-1, 1});
      onnx_text::words(m.node("Pad", {"x", "pads", "", "axes"}, "y"), "mode", mode);
    };
    CHECK(of(19, {2, 5, 7}, add).elements == 2.0 * (5 + 2 - 1) * (7 + 1 + 3));
  }
  refused(18, {2, 5}, "expected 4 pads, got 3", [](onnx_text& m) { m.list("pads", {1, 2, 3}), m.node("Pad", {"x", "pads"}, "y"); });
  refused(18, {2, 5}, "expected axes of an input that has 2, got 2", [](onnx_text& m) {
    m.list("pads", {1, 2}), m.list("axes", {2});
    m.node("Pad", {"x", "pads", "", "axes"}, "y");
  });
}

TEST_CASE("Resize of version 18: fractional scales, axes, the ratio kept, and wider windows against aliases") {
  const auto scaled = [](const std::vector<double>& by, const std::vector<long long>& axes, const char* mode, bool antialias) {
    return of(18, {1, 3, 10, 20}, [&](onnx_text& m) {
      reals(m, "scales", by);
      auto& n = m.node("Resize", {"x", "", "scales"}, "y");
      onnx_text::words(n, "mode", mode);
      if (!axes.empty()) onnx_text::integers(n, "axes", axes);
      if (antialias) onnx_text::integer(n, "antialias", 1);
    });
  };
  CHECK(scaled({1, 1, 1.5, 0.33}, {}, "nearest", false).elements == 3.0 * 15 * 6);
  CHECK(scaled({0.7, 0.3}, {-2, -1}, "nearest", false).elements == 3.0 * 7 * 6);  // 0.7F * 10 is 7 in single precision
  CHECK(scaled({2, 2}, {2, 3}, "linear", false).flop == 8 * 3.0 * 20 * 40);
  CHECK(scaled({2}, {3}, "linear", false).flop == 4 * 3.0 * 10 * 40);
  CHECK(scaled({2, 2}, {2, 3}, "cubic", false).flop == 32 * 3.0 * 20 * 40);
  CHECK(scaled({0.5, 0.25}, {2, 3}, "linear", true).flop == 2 * (2 * 2.0) * (2 * 4.0) * 3 * 5 * 5);
  CHECK(scaled({0.5, 0.25}, {2, 3}, "linear", false).flop == 8 * 3.0 * 5 * 5);
  const auto sized = [](const char* policy) {
    return of(18, {1, 3, 10, 20}, [&](onnx_text& m) {
      m.list("sizes", {15, 25});
      auto& n = m.node("Resize", {"x", "", "", "sizes"}, "y");
      onnx_text::integers(n, "axes", {2, 3});
      onnx_text::words(n, "keep_aspect_ratio_policy", policy);
    });
  };
  CHECK(sized("stretch").elements == 3.0 * 15 * 25);
  CHECK(sized("not_larger").elements == 3.0 * 13 * 25);  // ratio 1.25: 12.5 rounds up
  CHECK(sized("not_smaller").elements == 3.0 * 15 * 30);
  for (const int version : {13, 18}) {  // also in versions known to the ONNX library
    const result r = of(version, {1, 3, 10, 20}, [](onnx_text& m) {
      reals(m, "scales", {1, 1, 1.5, 1.25});
      m.node("Resize", {"x", "", "scales"}, "y");
    });
    CHECK(r.elements == 3.0 * 15 * 25);
  }
  refused(18, {1, 3}, "expected scales or sizes", [](onnx_text& m) { m.node("Resize", {"x"}, "y"); });
}

TEST_CASE("Split of version 18 may leave a smaller part, or parts of sizes that are given") {
  for (const long long parts : {2, 3, 4}) {
    CAPTURE(parts);
    for (long long part = 0; part < parts; ++part) {
      const result r = of(18, {2, 10}, [&](onnx_text& m) {
        auto& n = m.node("Split", {"x"}, part == 0 ? "y" : "0");
        for (long long i = 1; i < parts; ++i) n.add_output(i == part ? "y" : std::to_string(i));
        onnx_text::integer(n, "axis", -1);
        onnx_text::integer(n, "num_outputs", parts);
      });
      const long long each = (10 + parts - 1) / parts;
      CHECK(r.elements == 2.0 * static_cast<double>(part + 1 < parts ? each : 10 - each * (parts - 1)));
    }
  }
  const result r = of(20, {2, 10}, [](onnx_text& m) {
    m.list("sizes", {3, 7});
    auto& n = m.node("Split", {"x", "sizes"}, "z");
    n.add_output("y");
    onnx_text::integer(n, "axis", 1);
  });
  CHECK(r.elements == 14);
  refused(18, {2, 10}, "expected as many outputs as num_outputs says, 2, got 1",
          [](onnx_text& m) { onnx_text::integer(m.node("Split", {"x"}, "y"), "num_outputs", 2); });
}

TEST_CASE("reductions of version 18 have their axes as an input, which may be empty or left out") {
  const auto reduced = [](const std::function<void(onnx_text&)>& add) { return of(18, {2, 3, 5}, add).elements; };
  CHECK(reduced([](onnx_text& m) { m.list("a", {-1}), m.node("ReduceMax", {"x", "a"}, "y"); }) == 6);
  CHECK(reduced([](onnx_text& m) { m.node("ReduceMax", {"x"}, "y"); }) == 1);
  CHECK(reduced([](onnx_text& m) { m.node("ReduceMean", {"x", ""}, "y"); }) == 1);
  CHECK(reduced([](onnx_text& m) { onnx_text::integer(m.node("ReduceL2", {"x"}, "y"), "noop_with_empty_axes", 1); }) == 30);
  CHECK(reduced([](onnx_text& m) { m.list("a", {0, 2}), onnx_text::integer(m.node("ReduceMin", {"x", "a"}, "y"), "keepdims", 0); }) == 3);
}

TEST_CASE("parts of Split that do not add up are told in all versions") {
  for (const int version : {13, 18, 21}) {
    for (const std::vector<long long>& sizes : {std::vector<long long>{2, 4}, {9, -2}}) {
      if (version < 18 && sizes[1] < 0) continue;  // ONNX infers a shape for the first part
      CAPTURE(version, sizes);
      onnx_text m(version);
      m.input("x", {7, 3});
      m.list("sizes", sizes);
      auto& n = m.node("Split", {"x", "sizes"}, "y");
      n.add_output("z");
      m.node("Add", {"y", "z"}, "end");
      const exchange::onnx_model r = exchange::read_onnx(m.text(), "m.onnx");
      REQUIRE(r.not_inferred.size() >= 2);
      CHECK(r.not_inferred[0] == "y");
      CHECK(r.not_inferred[1] == "z");
      REQUIRE(r.assumed.size() == (version > 17 ? 2 : 1));
      CHECK_THAT(r.assumed.back(), Contains("operator Split \"y\": "));
      if (version > 17 && sizes[1] > 0) CHECK_THAT(r.assumed.back(), Contains("expected sizes that add up to 7, got 6"));
    }
  }
}

TEST_CASE("what pooling holds is checked, also where windows are rounded up") {
  for (const char* name : {"dilations", "bogus"}) {
    for (const long long up : {0, 1}) {
      CAPTURE(name, up);
      refused(13, {1, 1, 10, 10}, "operator AveragePool \"y\": ONNX refuses it: Unrecognized attribute: " + std::string(name),
              [&](onnx_text& m) {
                auto& n = m.node("AveragePool", {"x"}, "y");
                onnx_text::integers(n, "kernel_shape", {3, 3});
                onnx_text::integers(n, name, {2, 2});
                onnx_text::integer(n, "ceil_mode", up);
              });
    }
  }
}

TEST_CASE("attention whose heads, widths or rows do not fit is refused, and so is Resize by scales and by sizes") {
  const auto attention = [](const std::vector<std::vector<long long>>& shapes, const std::string& what) {
    refused(23, shapes[0], "operator Attention \"y\": expected " + what, [&](onnx_text& m) {
      m.input("k", shapes[1]), m.input("v", shapes[2]);
      m.node("Attention", {"x", "k", "v"}, "y");
    });
  };
  attention({{2, 7, 10, 64}, {2, 2, 12, 64}, {2, 2, 12, 32}},
            "heads of queries that are a multiple of those of keys, and as many of values, got 7, 2 and 2");
  attention({{2, 8, 10, 64}, {2, 2, 12, 64}, {2, 4, 12, 32}},
            "heads of queries that are a multiple of those of keys, and as many of values, got 8, 2 and 4");
  attention({{2, 8, 10, 64}, {2, 8, 12, 32}, {2, 8, 12, 32}}, "queries as wide as keys, got 64 and 32");
  attention({{2, 8, 10, 64}, {2, 8, 12, 64}, {2, 8, 13, 32}}, "as many values as keys, got 13 and 12");
  for (const int version : {13, 18}) {
    refused(version, {1, 3, 4, 4}, "operator Resize \"y\": expected scales or sizes, got both", [](onnx_text& m) {
      reals(m, "scales", {1, 1, 2, 2}), m.list("sizes", {1, 3, 5, 5});
      m.node("Resize", {"x", "", "scales", "sizes"}, "y");
    });
  }
}

TEST_CASE("other operators whose rules have changed, and attributes that nobody knows by name") {
  CHECK(of(20, {1, 8, 1}, [](onnx_text& m) {
          auto& axis = *m.g().add_initializer();
          axis.set_name("axis"), axis.set_data_type(onnx::TensorProto::INT64), axis.add_int64_data(1);
          onnx_text::integer(m.node("DFT", {"x", "", "axis"}, "y"), "onesided", 1);
        }).elements == 5 * 2);
  CHECK(of(20, {1, 3, 4, 5, 6}, [](onnx_text& m) {
          m.input("grid", {1, 7, 8, 9, 3});
          m.node("GridSample", {"x", "grid"}, "y");
        }).elements == 3.0 * 7 * 8 * 9);
  CHECK(of(18, {4, 6}, [](onnx_text& m) {
          m.list("to", {9});
          onnx_text::integers(m.node("CenterCropPad", {"x", "to"}, "y"), "axes", {-1});
        }).elements == 36);
  const result norm = of(23, {2, 4, 6}, [](onnx_text& m) { m.weight("g", {6}), m.node("RMSNormalization", {"x", "g"}, "y"); });
  CHECK(norm.elements == 48);
  CHECK(norm.flop == 6 * 48);
  const result turned = of(23, {2, 4, 6, 8}, [](onnx_text& m) {
    m.weight("cos", {2, 6, 4}), m.weight("sin", {2, 6, 4});
    m.node("RotaryEmbedding", {"x", "cos", "sin"}, "y");
  });
  CHECK(turned.elements == 384);
  CHECK(turned.flop == 3 * 384);
  const result r = of(21, {4, 6}, [](onnx_text& m) {
    auto& n = m.node("Softmax", {"x"}, "y");
    onnx_text::integer(n, "folded_in_two", 1);
    n.set_name("soft");
  });
  REQUIRE(r.assumed.size() == 1);
  CHECK_THAT(r.assumed[0], Contains("operator Softmax \"soft\": attribute \"folded_in_two\" is newer than this build's ONNX"));
  for (const char* type : {"AveragePool", "ReduceMax", "Split", "Resize"}) {  // operators with rules of their own
    CAPTURE(type);
    const result pooled = of(30, {1, 3, 8, 8}, [&](onnx_text& m) {
      reals(m, "scales", {1, 1, 2, 2});
      const bool resize = type == std::string("Resize");
      auto& n = m.node(type, resize ? std::vector<std::string>{"x", "", "scales"} : std::vector<std::string>{"x"}, "y");
      if (type == std::string("AveragePool")) onnx_text::integers(n, "kernel_shape", {3, 3});
      onnx_text::integer(n, "newfield", 3);
    });
    REQUIRE(pooled.assumed.size() == 1);
    CHECK_THAT(pooled.assumed[0],
               Contains("operator " + std::string(type) + " \"y\": attribute \"newfield\" is newer than this build's ONNX"));
  }
  const result harmless = of(21, {4, 6}, [](onnx_text& m) {
    auto& n = m.node("Cast", {"x"}, "y");
    onnx_text::integer(n, "to", onnx::TensorProto::FLOAT);
    onnx_text::integer(n, "saturate", 0);
  });
  CHECK(harmless.assumed.empty());
}

}  // namespace test_onnx_newer

#endif
