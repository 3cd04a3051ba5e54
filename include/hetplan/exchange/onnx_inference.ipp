// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_inference.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/onnx_operators.hpp>

namespace hetplan::exchange::detail {

HETPLAN_INLINE std::string names_of_others(const onnx::NodeProto& n, const std::function<bool(const std::string&)>& known) {
  std::string names;
  for (const auto& a : n.attribute()) {
    if (!known(a.name())) names += (names.empty() ? "\"" : ", \"") + a.name() + "\"";
  }
  return names;
}

/// Shape rules of newer operators.
class newer_rule {
 public:
  using list = std::vector<long long>;

  newer_rule(const onnx::NodeProto& n, const onnx_lookup& tensor) : o_{n, tensor}, x_(o_.in(0)) {
    found_.outputs.resize(static_cast<std::size_t>(n.output_size()));
  }

  [[nodiscard]] std::optional<inferred_outputs> infer() {
    struct rule {
      void (newer_rule::*apply)();
      std::set<std::string_view> attributes;  ///< of all versions of the operator
    };
    static const rule pooling{
        &newer_rule::pool,
        {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "p", "pads", "storage_order", "strides"}};
    static const rule reduction{&newer_rule::reduce, {"axes", "keepdims", "noop_with_empty_axes"}};
    static const std::map<std::string_view, rule> rules{
        {"AveragePool", pooling},
        {"MaxPool", pooling},
        {"LpPool", pooling},
        {"Pad", {&newer_rule::pad, {"mode", "pads", "paddings", "value"}}},
        {"Resize",
         {&newer_rule::resize,
          {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value",
           "keep_aspect_ratio_policy", "mode", "nearest_mode"}}},
        {"Split", {&newer_rule::split, {"axis", "num_outputs", "split"}}},
        {"QuantizeLinear", {&newer_rule::quantize, {"axis", "block_size", "output_dtype", "precision", "saturate"}}},
        {"DequantizeLinear", {&newer_rule::dequantize, {"axis", "block_size", "output_dtype"}}},
        {"DFT", {&newer_rule::dft, {"axis", "inverse", "onesided"}}},
        {"GridSample", {&newer_rule::grid_sample, {"align_corners", "mode", "padding_mode"}}},
        {"CenterCropPad", {&newer_rule::crop_or_pad, {"axes"}}},
        {"Attention",
         {&newer_rule::attention,
          {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"}}}};
    const std::string& op = o_.type();
    const auto it = rules.find(op);
    const rule* asked = it != rules.end() ? &it->second : op.starts_with("Reduce") ? &reduction : nullptr;
    if (asked == nullptr) return std::nullopt;
    found_.left_out = names_of_others(o_.node, [&](const std::string& name) { return asked->attributes.contains(name); });
    if (o_.node.input_size() == 0 || !o_.has(0)) found_.broken = "expected an input, got none";
    else if (x_.known) (this->*asked->apply)();
    return std::move(found_);
  }

 private:
  void give(int output, list shape, int type) {
    if (std::any_of(shape.begin(), shape.end(), [](long long d) { return d < 0; })) found_.reason = "an axis would be smaller than 0";
    else if (output < o_.node.output_size()) found_.outputs[static_cast<std::size_t>(output)] = {true, std::move(shape), type};
  }
  void wrong(std::string what) { found_.broken = std::move(what); }
  /// Returns an axis counted from the front. Records an error if the axis is out of range.
  [[nodiscard]] std::size_t axis(long long a) {
    const auto rank = static_cast<long long>(x_.shape.size());
    if (a >= -rank && a < rank) return static_cast<std::size_t>(a < 0 ? a + rank : a);
    wrong("expected axes of an input that has " + std::to_string(rank) + ", got " + std::to_string(a));
    return 0;
  }
  /// Returns the axes of an input or an attribute, by default all. None if they are known only at run time.
  [[nodiscard]] std::optional<std::vector<std::size_t>> axes(int input) {
    list given = attribute_list(o_.node, "axes");
    if (input >= 0 && o_.has(input)) {
      if (!o_.in(input).values) return std::nullopt;
      given = *o_.in(input).values;
    }
    std::vector<std::size_t> all;
    for (const long long a : given) all.push_back(axis(a));
    if (given.empty()) {
      for (std::size_t i = 0; i < x_.shape.size(); ++i) all.push_back(i);
    }
    if (!found_.broken.empty()) return std::nullopt;
    return all;
  }
  [[nodiscard]] std::string words(std::string_view name, const char* otherwise) const {
    const auto* a = attribute(o_.node, name);
    return a == nullptr || a->s().empty() ? otherwise : a->s();
  }
  [[nodiscard]] bool expect(std::size_t got, std::size_t wanted, const char* what) {
    if (got != wanted) wrong("expected " + std::to_string(wanted) + " " + what + ", got " + std::to_string(got));
    return got == wanted;
  }

  void pool() {
    const std::size_t spatial = x_.shape.size() < 2 ? 0 : x_.shape.size() - 2;
    const list kernel = attribute_list(o_.node, "kernel_shape");
    if (!expect(kernel.size(), spatial, "numbers of kernel_shape")) return;
    const auto numbers = [&](std::string_view name, std::size_t count, long long otherwise) {
      list v = attribute_list(o_.node, name);
      if (v.empty()) v.assign(count, otherwise);
      return v;
    };
    list strides = numbers("strides", spatial, 1), dilations = numbers("dilations", spatial, 1), pads = numbers("pads", 2 * spatial, 0);
    const std::string how = words("auto_pad", "NOTSET");
    const bool up = attribute_or(o_.node, "ceil_mode", 0) != 0;
    if (how != "NOTSET") pads.assign(2 * spatial, 0);
    list shape = x_.shape;
    for (std::size_t i = 0; i < spatial; ++i) {
      const long long in = x_.shape[i + 2], stride = strides[i];
      const long long room = in + pads[i] + pads[i + spatial] - ((kernel[i] - 1) * dilations[i] + 1);
      long long& out = shape[i + 2];
      out = room < 0 ? -1 : (room + (up ? stride - 1 : 0)) / stride + 1;
      if (up && out > 0 && (out - 1) * stride >= in + pads[i]) --out;
      if (how.starts_with("SAME")) out = (in + stride - 1) / stride;
    }
    give(0, shape, x_.type);
    give(1, shape, onnx::TensorProto::INT64);  // indices of the maxima
  }

  void pad() {
    const auto along = axes(3);
    const auto& pads = o_.in(1).values;
    if (!along || !pads || !expect(pads->size(), 2 * along->size(), "pads")) return;
    list shape = x_.shape;
    for (std::size_t i = 0; i < along->size(); ++i) {
      const long long before = (*pads)[i], behind = (*pads)[i + along->size()];
      if (std::max(std::abs(static_cast<double>(before)), std::abs(static_cast<double>(behind))) > 1e15)
        return wrong("expected pads below 1e15");
      shape[(*along)[i]] += before + behind;
    }
    give(0, shape, x_.type);
  }

  /// In single precision, as runtimes compute sizes.
  void resize() {
    const auto along = axes(-1);
    const auto& scales = o_.in(2).reals;
    const auto& sizes = o_.in(3).values;
    if (!along) return;
    const std::size_t count = along->size();
    list shape = x_.shape;
    const auto in = [&](std::size_t i) { return static_cast<float>(x_.shape[(*along)[i]]); };
    const auto whole = [](float v) { return v >= 0 && v <= 1e15F ? static_cast<long long>(v) : -1; };
    if (sizes && !sizes->empty()) {
      if (!expect(sizes->size(), count, "sizes")) return;
      const std::string policy = words("keep_aspect_ratio_policy", "stretch");
      float scale = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const float s = static_cast<float>((*sizes)[i]) / in(i);
        scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
      }
      for (std::size_t i = 0; i < count; ++i)
        shape[(*along)[i]] = policy == "stretch" ? (*sizes)[i] : whole(std::floor(scale * in(i) + 0.5F));
    } else if (scales && !scales->empty()) {
      if (!expect(scales->size(), count, "scales")) return;
      std::vector<double> span(count, 1);
      if (words("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") {
        const auto& roi = o_.in(1).reals;
        if (!roi || !expect(roi->size(), 2 * count, "ends of the region")) return;
        for (std::size_t i = 0; i < count; ++i) span[i] = (*roi)[i + count] - (*roi)[i];
      }
      for (std::size_t i = 0; i < count; ++i)
        shape[(*along)[i]] = whole(std::floor(in(i) * static_cast<float>(span[i]) * static_cast<float>((*scales)[i])));
    } else {
      if (!o_.has(2) && !o_.has(3)) wrong("expected scales or sizes");
      return;
    }
    give(0, shape, x_.type);
  }

  void split() {
    const std::size_t along = axis(attribute_or(o_.node, "axis", 0));
    if (!found_.broken.empty()) return;
    const long long size = x_.shape[along], parts = o_.node.output_size();
    list sizes;
    if (o_.has(1)) {
      if (!o_.in(1).values) return;
      sizes = *o_.in(1).values;
      if (!expect(sizes.size(), static_cast<std::size_t>(parts), "sizes, as there are outputs,")) return;
    } else {
      if (attribute_or(o_.node, "num_outputs", parts) != parts)
        return wrong("expected as many outputs as num_outputs says, " + std::to_string(attribute_or(o_.node, "num_outputs", parts)) +
                     ", got " + std::to_string(parts));
      const long long part = (size + parts - 1) / parts;
      sizes.assign(static_cast<std::size_t>(parts), part);
      sizes.back() = size - part * (parts - 1);
    }
    double sum = 0;
    bool negative = false;
    for (const long long part : sizes) sum += static_cast<double>(part), negative = negative || part < 0;
    if (negative) found_.reason = "an axis would be smaller than 0";
    else if (sum != static_cast<double>(size))
      found_.reason = "expected sizes that add up to " + std::to_string(size) + ", got " + to_text(sum);
    for (int i = 0; i < o_.node.output_size() && found_.reason.empty(); ++i) {
      list shape = x_.shape;
      shape[along] = sizes[static_cast<std::size_t>(i)];
      give(i, shape, x_.type);
    }
  }

  void reduce() {
    const auto along = axes(1);
    const bool keeps = attribute_or(o_.node, "keepdims", 1) != 0, noop = attribute_or(o_.node, "noop_with_empty_axes", 0) != 0;
    if (!along) return;
    const bool none = noop && (o_.has(1) ? o_.in(1).elements() == 0 : attribute(o_.node, "axes") == nullptr);
    std::vector<char> gone(x_.shape.size());
    for (const std::size_t a : *along) gone[a] = none ? 0 : 1;
    list shape;
    for (std::size_t i = 0; i < gone.size(); ++i) {
      if (gone[i] == 0 || keeps) shape.push_back(gone[i] != 0 ? 1 : x_.shape[i]);
    }
    give(0, shape, x_.type);
  }

  void quantize() {
    const auto asked = static_cast<int>(attribute_or(o_.node, "output_dtype", 0));
    give(0, x_.shape, o_.has(2) ? o_.in(2).type : asked != 0 ? asked : static_cast<int>(onnx::TensorProto::UINT8));
  }
  void dequantize() {
    const auto asked = static_cast<int>(attribute_or(o_.node, "output_dtype", 0));
    give(0, x_.shape, asked != 0 ? asked : o_.in(1).type != 0 ? o_.in(1).type : static_cast<int>(onnx::TensorProto::FLOAT));
  }

  void dft() {
    if (x_.shape.empty() || (o_.has(2) && !o_.in(2).values) || (o_.has(1) && !o_.in(1).values)) return;
    const auto number = [&](int input, long long otherwise) {
      return o_.has(input) && !o_.in(input).values->empty() ? o_.in(input).values->front() : otherwise;
    };
    const std::size_t along = axis(number(2, -2));
    list shape = x_.shape;
    shape[along] = number(1, shape[along]);
    if (attribute_or(o_.node, "onesided", 0) != 0) shape[along] = shape[along] / 2 + 1;
    shape.back() = 2;
    give(0, shape, x_.type);
  }

  void grid_sample() {
    const onnx_tensor& grid = o_.in(1);
    if (!grid.known || !expect(grid.shape.size(), x_.shape.size(), "axes of the grid") || x_.shape.size() < 3) return;
    list shape{x_.shape[0], x_.shape[1]};
    shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    give(0, shape, x_.type);
  }

  void crop_or_pad() {
    const auto along = axes(-1);
    const auto& sizes = o_.in(1).values;
    if (!along || !sizes || !expect(sizes->size(), along->size(), "sizes")) return;
    list shape = x_.shape;
    for (std::size_t i = 0; i < sizes->size(); ++i) shape[(*along)[i]] = (*sizes)[i];
    give(0, shape, x_.type);
  }

  void attention() {
    const onnx_tensor &key = o_.in(1), &value = o_.in(2);
    const std::size_t rank = x_.shape.size();
    if (!key.known || !value.known) return;
    if (rank != 3 && rank != 4) return wrong("expected queries of three or four axes, got " + std::to_string(rank));
    if (key.shape.size() != rank || value.shape.size() != rank) return wrong("expected keys and values with as many axes as queries");
    const bool apart = rank == 4;
    const long long heads = apart ? x_.shape[1] : attribute_or(o_.node, "q_num_heads", 0);
    const long long kept = apart ? key.shape[1] : attribute_or(o_.node, "kv_num_heads", 0);
    const long long of_values = apart ? value.shape[1] : kept, rows = key.shape[apart ? 2 : 1];
    if (heads < 1 || kept < 1 || (!apart && (x_.shape[2] % heads != 0 || key.shape[2] % kept != 0 || value.shape[2] % kept != 0)))
      return wrong("expected q_num_heads and kv_num_heads that divide the last axes, got " + std::to_string(heads) + " and " +
                   std::to_string(kept));
    if (heads % kept != 0 || of_values != kept)
      return wrong("expected heads of queries that are a multiple of those of keys, and as many of values, got " + std::to_string(heads) +
                   ", " + std::to_string(kept) + " and " + std::to_string(of_values));
    const long long wide = apart ? key.shape[3] : key.shape[2] / kept, deep = apart ? value.shape[3] : value.shape[2] / kept;
    if (static_cast<double>(heads) * static_cast<double>(deep) > 1e15) return wrong("expected at most 1e15 values a query");
    const long long asked = apart ? x_.shape[3] : x_.shape[2] / heads;
    if (asked != wide) return wrong("expected queries as wide as keys, got " + std::to_string(asked) + " and " + std::to_string(wide));
    if (value.shape[apart ? 2 : 1] != rows)
      return wrong("expected as many values as keys, got " + std::to_string(value.shape[apart ? 2 : 1]) + " and " + std::to_string(rows));
    const onnx_tensor& past = o_.in(4);
    if (o_.has(4) && past.shape.size() != 4) return;
    const long long queries = x_.shape[apart ? 2 : 1], all = rows + (o_.has(4) ? past.shape[2] : 0);
    list out = x_.shape;
    out.back() = apart ? deep : heads * deep;
    give(0, out, x_.type);
    give(1, {x_.shape[0], kept, all, wide}, key.type);
    give(2, {x_.shape[0], kept, all, deep}, value.type);
    give(3, {x_.shape[0], heads, queries, all}, x_.type);
  }

  operator_view o_;
  const onnx_tensor& x_;
  inferred_outputs found_;
};

HETPLAN_INLINE std::optional<inferred_outputs> infer_newer(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  return newer_rule(n, tensor).infer();
}

constexpr double most_axes = 64;

HETPLAN_INLINE long long onnx_inference::newest() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

HETPLAN_INLINE onnx_inference::onnx_inference(const onnx::ModelProto& model) {
  frame_.set_ir_version(std::max<std::int64_t>(4, model.ir_version()));
  *frame_.mutable_opset_import() = model.opset_import();
  for (const auto& o : model.opset_import()) version_[o.domain()] = o.version();
}

HETPLAN_INLINE long long onnx_inference::version_of(const std::string& domain) const {
  const auto it = version_.find(domain);
  return it == version_.end() ? 0 : it->second;
}

/// Checks ranks and attributes of convolutions and pooling, which the library does not check.
[[nodiscard]] HETPLAN_INLINE std::string find_unsafe_window(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> sliding{"Conv",    "ConvTranspose", "ConvInteger", "QLinearConv",
                                                  "MaxPool", "AveragePool",   "LpPool",      "MaxUnpool"};
  if (!sliding.contains(n.op_type())) return "";
  const onnx_tensor& first = tensor(input_of(n, 0));
  const onnx_tensor& second = tensor(input_of(n, n.op_type() == "QLinearConv" ? 3 : 1));  // weights, or indices of maxima
  const std::size_t rank = first.shape.size();
  if (first.known && rank < 3) return "expected an input of three axes or more, got " + std::to_string(rank);
  if (n.op_type() == "MaxUnpool" && !second.known) return "expected places of a known shape";
  if (first.known && second.known && second.shape.size() != rank)
    return "expected weights of " + std::to_string(rank) + " axes, got " + std::to_string(second.shape.size());
  for (const auto& [name, times, least] : {std::tuple("kernel_shape", 1U, 1LL), std::tuple("strides", 1U, 1LL),
                                           std::tuple("dilations", 1U, 1LL), std::tuple("pads", 2U, 0LL)}) {
    const std::vector<long long> v = attribute_list(n, name);
    if (attribute(n, name) == nullptr) continue;
    if (std::any_of(v.begin(), v.end(), [least = least](long long x) { return x < least || x > 1'000'000; }))
      return "expected " + std::string(name) + " from " + std::to_string(least) + " to 1000000";
    if (first.known && v.size() != times * (rank - 2))
      return "expected " + std::string(name) + " of " + std::to_string(times * (rank - 2)) + " numbers, got " + std::to_string(v.size());
  }
  return "";
}

/// Checks ranks and attributes of other operators, which the library does not check.
[[nodiscard]] HETPLAN_INLINE std::string find_unsafe_rank(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using ranks = std::vector<std::size_t>;
  static const std::map<std::string_view, ranks> exact{
      {"Gemm", {2, 2}}, {"RNN", {3, 3, 3}}, {"GRU", {3, 3, 3}}, {"LSTM", {3, 3, 3}}, {"STFT", {3}}};
  if (const auto it = exact.find(n.op_type()); it != exact.end()) {
    for (std::size_t i = 0; i < it->second.size(); ++i) {
      const onnx_tensor& t = tensor(input_of(n, static_cast<int>(i)));
      if (t.known && t.shape.size() != it->second[i])
        return "expected input " + std::to_string(i) + " with " + std::to_string(it->second[i]) + " axes, got " +
               std::to_string(t.shape.size());
    }
  }
  const auto given = [&](int i) { return tensor(input_of(n, i)).known && tensor(input_of(n, i)).elements() > 0; };
  if (n.op_type() == "Resize" && given(2) && given(3)) return "expected scales or sizes, got both";
  const onnx_tensor& first = tensor(input_of(n, 0));
  const auto rank = static_cast<long long>(first.shape.size());
  const auto outside = [&](std::string_view name, long long otherwise, long long least, long long most) {
    const long long v = attribute_or(n, name, otherwise);
    return v >= least && v <= most ? ""
                                   : "expected " + std::string(name) + " from " + std::to_string(least) + " to " + std::to_string(most) +
                                         ", got " + std::to_string(v);
  };
  if (n.op_type() == "DepthToSpace" || n.op_type() == "SpaceToDepth") return outside("blocksize", 0, 1, 1'000'000);
  if (n.op_type() == "GatherND" && first.known) return outside("batch_dims", 0, 0, std::max(rank - 1, 0LL));
  if (n.op_type() == "LayerNormalization" && first.known) return outside("axis", -1, -rank, rank - 1);
  if (const auto& sizes = tensor(input_of(n, 1)).values; n.op_type() == "SplitToSequence" && sizes) {
    if (std::any_of(sizes->begin(), sizes->end(), [](long long x) { return x < 1 || x > 1'000'000'000; }))
      return "expected sizes from 1 to 1e9";
  }
  return "";
}

HETPLAN_INLINE std::string find_unsafe(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  // The library allocates one axis per element of such an input, without a limit.
  static const std::set<std::string_view> sized{"ConstantOfShape", "Reshape", "Expand", "Tile",    "Resize",
                                                "Upsample",        "Slice",   "Pad",    "Squeeze", "Unsqueeze"};
  if (sized.contains(n.op_type())) {
    for (int i = n.op_type() == "ConstantOfShape" ? 0 : 1; i < n.input_size(); ++i) {
      const onnx_tensor& t = tensor(n.input(i));
      if (t.known && t.elements() > most_axes) return "expected at most 64 axes, got " + to_text(t.elements());
    }
  }
  if (n.op_type() == "Einsum") return einsum_fault({n, tensor});
  std::string unsafe = find_unsafe_window(n, tensor);
  return unsafe.empty() ? find_unsafe_rank(n, tensor) : unsafe;
}

/// Turns a node of a newer operator set into the newest known version. Returns the removed attributes that may affect the shape.
[[nodiscard]] HETPLAN_INLINE std::string take_as_known(onnx::NodeProto& n, const onnx::OpSchema& schema) {
  static const std::set<std::string_view> of_numbers{"saturate", "round_mode", "stash_type", "precision"};
  const auto known = [&](const std::string& name) { return schema.attributes().contains(name); };
  std::string left_out = names_of_others(n, [&](const std::string& name) { return known(name) || of_numbers.contains(name); });
  auto& attributes = *n.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;) {
    if (!known(attributes[i].name())) attributes.DeleteSubrange(i, 1);
  }
  return left_out;
}

HETPLAN_INLINE inferred_outputs onnx_inference::operator()(const onnx::NodeProto& node, const onnx_lookup& tensor) const {
  inferred_outputs found;
  found.outputs.resize(static_cast<std::size_t>(node.output_size()));
  const auto version = static_cast<int>(std::min(version_of(node.domain()), 1'000'000LL));
  const bool newer = node.domain().empty() && version > newest();
  if (newer) {
    found.broken = find_unsafe(node, tensor);
    if (!found.broken.empty()) return found;
    if (auto ours = infer_newer(node, tensor)) return *ours;
  }
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version, node.domain());
  if (schema == nullptr) return found;
  onnx::ModelProto one = frame_;
  onnx::GraphProto& g = *one.mutable_graph();
  onnx::NodeProto& n = *g.add_node() = node;
  if (newer) found.left_out = take_as_known(n, *schema);
  if (std::string unsafe = find_unsafe(n, tensor); !unsafe.empty()) {
    found.broken = std::move(unsafe);
    return found;
  }
  std::set<std::string> given;
  for (const auto& input : n.input()) {
    if (input.empty() || !given.insert(input).second) continue;
    const onnx_tensor& t = tensor(input);
    describe(*g.add_input(), input, t);
    if (t.is_read()) put_values(*g.add_initializer(), input, t);  // a folded shape
  }
  for (const auto& output : n.output()) {
    if (!output.empty()) g.add_output()->set_name(output);
  }
  try {
    schema->Verify(n);
  } catch (const std::exception& e) {
    (newer ? found.reason : found.broken) = std::string("ONNX refuses it: ") + e.what();
    return found;
  }
  if (!newer && node.domain().empty() && attribute_or(node, "ceil_mode", 0) != 0) {
    if (auto ours = infer_newer(node, tensor)) return *ours;
  }
  try {
    onnx::shape_inference::InferShapes(one, onnx::OpSchemaRegistry::Instance(), onnx::ShapeInferenceOptions(false, 1, false));
  } catch (const std::exception& e) {
    found.reason = std::string("ONNX infers no shape: ") + e.what();
  }
  std::map<std::string, const onnx::ValueInfoProto*> info;
  for (const auto& o : g.output()) info[o.name()] = &o;
  for (const auto& o : g.value_info()) info[o.name()] = &o;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto it = info.find(node.output(i));
    if (it != info.end()) found.outputs[static_cast<std::size_t>(i)] = described(*it->second, {});
  }
  return found;
}

}  // namespace hetplan::exchange::detail
