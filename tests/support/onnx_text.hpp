// SPDX-License-Identifier: BSL-1.0
#pragma once
// Hand-made ONNX models.

#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

namespace hetplan::test {

class onnx_text {
 public:
  explicit onnx_text(int opset = 13) {
    m_.set_ir_version(7);
    import("", opset);
    g().set_name("by hand");
  }
  onnx::ModelProto& model() { return m_; }
  onnx::GraphProto& g() { return *m_.mutable_graph(); }
  void import(const std::string& domain, int version) {
    auto& o = *m_.add_opset_import();
    o.set_domain(domain);
    o.set_version(version);
  }
  /// @param shape  sizes; -1: the dynamic axis "n".
  void input(const std::string& name, const std::vector<long long>& shape, int type = onnx::TensorProto::FLOAT) {
    describe(*g().add_input(), name, shape, type);
  }
  void output(const std::string& name) { g().add_output()->set_name(name), type_of(*g().mutable_output()->rbegin()); }
  /// States the shape of an intermediate tensor in the file.
  void stated(const std::string& name, const std::vector<long long>& shape) {
    describe(*g().add_value_info(), name, shape, onnx::TensorProto::FLOAT);
  }
  void weight(const std::string& name, const std::vector<long long>& shape, int type = onnx::TensorProto::FLOAT) {
    auto& t = *g().add_initializer();
    t.set_name(name);
    t.set_data_type(type);
    double n = type == onnx::TensorProto::FLOAT ? 4 : 1;
    for (const long long d : shape) t.add_dims(d), n *= static_cast<double>(d);
    t.set_raw_data(std::string(static_cast<std::size_t>(n), '\0'));
  }
  void list(const std::string& name, const std::vector<long long>& values) {
    auto& t = *g().add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::INT64);
    t.add_dims(static_cast<long long>(values.size()));
    for (const long long v : values) t.add_int64_data(v);
  }
  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output,
                        const std::string& domain = "") {
    auto& n = *g().add_node();
    n.set_op_type(type);
    for (const auto& i : inputs) n.add_input(i);
    n.add_output(output);
    if (!domain.empty()) n.set_domain(domain);
    return n;
  }
  static void integer(onnx::NodeProto& n, const std::string& name, long long value) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::INT);
    a.set_i(value);
  }
  static void integers(onnx::NodeProto& n, const std::string& name, const std::vector<long long>& values) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::INTS);
    for (const long long v : values) a.add_ints(v);
  }
  static void words(onnx::NodeProto& n, const std::string& name, const std::string& value) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::STRING);
    a.set_s(value);
  }
  static void real(onnx::NodeProto& n, const std::string& name, double value) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::FLOAT);
    a.set_f(static_cast<float>(value));
  }
  /// Adds an attribute that refers to the function's attribute `to`.
  static void refers(onnx::NodeProto& n, const std::string& name, const std::string& to, onnx::AttributeProto::AttributeType type) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_ref_attr_name(to);
    a.set_type(type);
  }
  /// Adds a subgraph: a branch of If, or the body of Loop.
  static void graph(onnx::NodeProto& n, const std::string& name, onnx_text inside) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::GRAPH);
    a.mutable_g()->Swap(&inside.g());
  }
  /// Adds a function with the operators of `body`. Fields that older versions of ONNX lack are written in their encoded form.
  void function(const std::string& name, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                const onnx_text& body, const std::string& overload = "", const std::vector<onnx::AttributeProto>& defaults = {}) {
    auto& f = *m_.add_functions();
    f.set_name(name);
    f.set_domain("own");
    for (const auto& i : inputs) f.add_input(i);
    for (const auto& o : outputs) f.add_output(o);
    *f.mutable_node() = body.m_.graph().node();
    *f.mutable_opset_import() = body.m_.opset_import();
    for (const auto& a : defaults) f.mutable_unknown_fields()->AddLengthDelimited(11, a.SerializeAsString());
    if (!overload.empty()) f.mutable_unknown_fields()->AddLengthDelimited(13, overload);
  }
  static void overload(onnx::NodeProto& n, const std::string& name) { n.mutable_unknown_fields()->AddLengthDelimited(8, name); }

  [[nodiscard]] std::string text() const { return m_.SerializeAsString(); }

 private:
  static onnx::TypeProto::Tensor& type_of(onnx::ValueInfoProto& info, int type = onnx::TensorProto::FLOAT) {
    auto& t = *info.mutable_type()->mutable_tensor_type();
    t.set_elem_type(type);
    return t;
  }
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<long long>& shape, int type) {
    info.set_name(name);
    auto& t = type_of(info, type);
    t.mutable_shape();
    for (const long long d : shape) {
      auto& axis = *t.mutable_shape()->add_dim();
      if (d < 0) axis.set_dim_param("n");
      else axis.set_dim_value(d);
    }
  }
  onnx::ModelProto m_;
};

/// Returns a convolution, its norm with weights from ConstantOfShape, and a product without shared tensors.
inline onnx_text small_onnx() {
  onnx_text m;
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

/// Returns a model of sentences of n words: a table, computed shapes, and operators with equations, windows and steps.
inline onnx_text sentence_onnx() {
  onnx_text m(14);
  m.import("com.microsoft", 1);
  m.input("ids", {1, -1}, onnx::TensorProto::INT64);
  m.weight("table", {50, 8});
  m.node("Gather", {"table", "ids"}, "e");
  m.node("Shape", {"ids"}, "shape");
  m.list("zero", {0});
  m.list("one", {1});
  m.list("two", {2});
  m.list("four", {4});
  m.node("Slice", {"shape", "one", "two"}, "n");
  onnx_text::integer(m.node("Concat", {"one", "n", "two", "four"}, "heads"), "axis", 0);
  m.node("Reshape", {"e", "heads"}, "h");
  onnx_text::integers(m.node("Transpose", {"h"}, "t"), "perm", {0, 2, 1, 3});
  onnx_text::words(m.node("Einsum", {"t", "t"}, "scores"), "equation", "bhqd,bhkd->bhqk");
  onnx_text::integer(m.node("Softmax", {"scores"}, "p"), "axis", -1);
  m.node("MatMul", {"p", "t"}, "o");
  auto& mean = m.node("ReduceMean", {"o"}, "mean");
  onnx_text::integers(mean, "axes", {1});
  onnx_text::integer(mean, "keepdims", 0);
  m.node("FastGelu", {"mean"}, "g", "com.microsoft");
  m.weight("lw", {1, 9, 4});
  m.weight("lr", {1, 9, 3});
  onnx_text::integer(m.node("GRU", {"g", "lw", "lr"}, "s"), "hidden_size", 3);
  auto& pool = m.node("MaxPool", {"s"}, "pool");
  onnx_text::integers(pool, "kernel_shape", {1, 2});
  onnx_text::integers(pool, "pads", {0, 1, 0, 0});
  m.node("Identity", {"pool"}, "y");
  m.output("y");
  return m;
}

/// Returns nested functions with the caller's attributes, and nested Ifs, one of whose conditions is computed from shapes.
inline onnx_text branching_onnx() {
  onnx_text act, dense, inner_then, inner_else, then_branch, else_branch;
  onnx_text::refers(act.node("LeakyRelu", {"a"}, "b"), "alpha", "slope", onnx::AttributeProto::FLOAT);
  onnx_text::refers(dense.node("Gemm", {"in", "w"}, "a"), "transB", "turned", onnx::AttributeProto::INT);
  onnx_text::refers(dense.node("Activation", {"a"}, "c", "own"), "slope", "slope", onnx::AttributeProto::FLOAT);
  onnx_text m(19);
  m.import("own", 1);
  m.function("Dense", {"in", "w"}, {"c"}, dense);
  m.function("Activation", {"a"}, {"b"}, act);
  m.input("x", {-1, 8});
  m.input("c", {}, onnx::TensorProto::BOOL);
  m.weight("w", {8, 8});
  auto& first = m.node("Dense", {"x", "w"}, "h", "own");
  onnx_text::real(first, "slope", 0.5);
  onnx_text::integer(first, "turned", 1);
  m.node("Shape", {"h"}, "s");
  m.list("eight", {8});
  m.list("one", {1});
  m.node("Gather", {"s", "one"}, "columns");
  m.node("Equal", {"columns", "eight"}, "is");
  inner_then.node("Sigmoid", {"t"}, "z");
  inner_then.output("z");
  inner_else.node("Dense", {"h", "w"}, "z", "own");
  inner_else.output("z");
  then_branch.node("Exp", {"h"}, "t");
  auto& inner = then_branch.node("If", {"is"}, "z");
  onnx_text::graph(inner, "then_branch", inner_then);
  onnx_text::graph(inner, "else_branch", inner_else);
  then_branch.output("z");
  else_branch.weight("k", {8});
  else_branch.node("Add", {"h", "k"}, "z");
  else_branch.output("z");
  auto& outer = m.node("If", {"c"}, "p");
  onnx_text::graph(outer, "then_branch", then_branch);
  onnx_text::graph(outer, "else_branch", else_branch);
  m.node("Unsqueeze", {"p", "one"}, "u");
  auto& pool = m.node("AveragePool", {"u"}, "y");
  onnx_text::integers(pool, "kernel_shape", {2});
  onnx_text::integers(pool, "dilations", {2});
  m.output("y");
  return m;
}

}  // namespace hetplan::test
