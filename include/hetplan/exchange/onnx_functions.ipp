// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_functions.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/defs/schema.h>

#include <hetplan/exchange/onnx_checks.hpp>
#include <hetplan/exchange/onnx_inference.hpp>
#include <hetplan/exchange/onnx_operators.hpp>

namespace hetplan::exchange::detail {

/// True if a shape is small even with its zeros replaced by 1, so that no partial product of its sizes is large.
[[nodiscard]] HETPLAN_INLINE bool is_small(const std::vector<long long>& shape) {
  double n = 1;
  for (const long long d : shape) n *= d < 0 ? 1e30 : static_cast<double>(std::max(d, 1LL));
  return n <= static_cast<double>(most_folded_values);
}

/// Returns the elements of a tensor at these flat indices, with a new shape.
[[nodiscard]] HETPLAN_INLINE onnx_tensor picked(const onnx_tensor& x, const std::vector<std::size_t>& at, std::vector<long long> shape) {
  onnx_tensor t{.known = true, .shape = std::move(shape), .type = x.type};
  if (x.values) t.values.emplace();
  else t.reals.emplace();
  for (const std::size_t i : at) {
    if (x.values) t.values->push_back((*x.values)[i]);
    else t.reals->push_back((*x.reals)[i]);
  }
  return t;
}

/// Returns the flat indices of the elements selected along every axis.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> places_in(const std::vector<long long>& shape,
                                                                const std::vector<std::vector<long long>>& wanted) {
  std::vector<std::size_t> at{0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (const long long i : wanted[axis]) deeper.push_back(base * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(i));
    }
    at = std::move(deeper);
  }
  return at;
}

/// Returns all indices along every axis, in order.
[[nodiscard]] HETPLAN_INLINE std::vector<std::vector<long long>> all_places(const std::vector<long long>& shape) {
  std::vector<std::vector<long long>> all;
  for (const long long size : shape) {
    std::vector<long long>& axis = all.emplace_back(static_cast<std::size_t>(size));
    std::iota(axis.begin(), axis.end(), 0LL);
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE onnx_tensor picked(const onnx_tensor& x, const std::vector<std::vector<long long>>& wanted) {
  std::vector<long long> shape;
  for (const auto& axis : wanted) shape.push_back(static_cast<long long>(axis.size()));
  return picked(x, places_in(x.shape, wanted), std::move(shape));
}

/// Returns an axis counted from the front, none if the tensor has no such axis.
[[nodiscard]] HETPLAN_INLINE std::optional<std::size_t> axis_of(const onnx_tensor& x, long long axis) {
  const auto rank = static_cast<long long>(x.shape.size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_slice(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  const onnx_tensor& x = tensor(n.input(0));
  const auto numbers = [&](int i, std::string_view old) {
    const auto& given = input_of(n, i);
    return given.empty() ? attribute_list(n, old) : tensor(given).values.value_or(list{});
  };
  const list starts = numbers(1, "starts"), ends = numbers(2, "ends"), axes = numbers(3, "axes"), steps = numbers(4, "steps");
  if (x.elements() == 0) return std::nullopt;
  std::vector<list> wanted = all_places(x.shape);
  if (ends.size() != starts.size() || (!axes.empty() && axes.size() != starts.size())) return std::nullopt;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto axis = axis_of(x, axes.empty() ? static_cast<long long>(k) : axes[k]);
    if (!axis) return std::nullopt;
    const long long size = x.shape[*axis], step = k < steps.size() ? std::clamp(steps[k], -size - 1, size + 1) : 1;
    if (step == 0) return std::nullopt;
    const auto place = [&](long long i) {
      if (i < 0) i = i < -size ? -1 : i + size;
      return step > 0 ? std::clamp(i, 0LL, size) : std::clamp(i, -1LL, size - 1);
    };
    wanted[*axis].clear();
    for (long long i = place(starts[k]); step > 0 ? i < place(ends[k]) : i > place(ends[k]); i += step) wanted[*axis].push_back(i);
  }
  return picked(x, wanted);
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_transpose(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  std::vector<long long> perm = attribute_list(n, "perm"), shape, strides(x.shape.size(), 1);
  for (std::size_t i = perm.empty() ? x.shape.size() : 0; i-- > 0;) perm.push_back(static_cast<long long>(i));
  if (perm.size() != x.shape.size()) return std::nullopt;
  for (std::size_t i = x.shape.size(); i-- > 1;) strides[i - 1] = strides[i] * x.shape[i];
  std::vector<std::size_t> at{0};
  for (const long long p : perm) {
    const auto axis = axis_of(x, p);
    if (!axis) return std::nullopt;
    shape.push_back(x.shape[*axis]);
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (long long i = 0; i < shape.back(); ++i) deeper.push_back(base + static_cast<std::size_t>(i * strides[*axis]));
    }
    at = std::move(deeper);
    if (at.size() > most_folded_values) return std::nullopt;
  }
  return at.size() == static_cast<std::size_t>(x.elements()) ? std::optional(picked(x, at, shape)) : std::nullopt;
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_gather(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  const onnx_tensor& which = tensor(input_of(n, 1));
  const auto axis = axis_of(x, attribute_or(n, "axis", 0));
  if (!axis || !which.values) return std::nullopt;
  std::vector<std::vector<long long>> wanted = all_places(x.shape);
  wanted[*axis].clear();
  for (long long i : *which.values) {
    if (i < 0) i += x.shape[*axis];
    if (i < 0 || i >= x.shape[*axis]) return std::nullopt;
    wanted[*axis].push_back(i);
  }
  std::vector<long long> shape = x.shape;
  shape[*axis] = static_cast<long long>(wanted[*axis].size());
  if (!is_small(shape)) return std::nullopt;
  onnx_tensor t = picked(x, wanted);
  t.shape.erase(t.shape.begin() + static_cast<long>(*axis));
  t.shape.insert(t.shape.begin() + static_cast<long>(*axis), which.shape.begin(), which.shape.end());
  return t;
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_concat(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& first = tensor(n.input(0));
  const auto axis = axis_of(first, attribute_or(n, "axis", 0));
  if (!axis) return std::nullopt;
  onnx_tensor t{.known = true, .shape = first.shape, .type = first.type};
  t.shape[*axis] = 0;
  long long rows = 1;
  for (std::size_t i = 0; i < *axis; ++i) rows *= first.shape[i];
  for (const auto& name : n.input()) {
    std::vector<long long> rest = tensor(name).shape;
    if (rest.size() != first.shape.size() || tensor(name).values.has_value() != first.values.has_value()) return std::nullopt;
    t.shape[*axis] += std::exchange(rest[*axis], first.shape[*axis]);
    if (rest != first.shape || !is_small(t.shape)) return std::nullopt;
  }
  if (first.values) t.values.emplace();
  else t.reals.emplace();
  for (long long row = 0; row < rows; ++row) {
    for (const auto& name : n.input()) {
      const onnx_tensor& x = tensor(name);
      const auto size = static_cast<long>(x.elements()) / rows, from = static_cast<long>(row) * size;
      if (x.values) t.values->insert(t.values->end(), x.values->begin() + from, x.values->begin() + from + size);
      else t.reals->insert(t.reals->end(), x.reals->begin() + from, x.reals->begin() + from + size);
    }
  }
  return t;
}

/// Folds Split. Sizes come from the second input, the attribute, or the number of outputs.
[[nodiscard]] HETPLAN_INLINE std::vector<onnx_tensor> fold_split(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  const auto axis = axis_of(x, attribute_or(n, "axis", 0));
  if (!axis) return {};
  const long long size = x.shape[*axis], parts = n.output_size(), part = (size + parts - 1) / parts;
  std::vector<long long> sizes = input_of(n, 1).empty() ? attribute_list(n, "split") : *tensor(n.input(1)).values;
  for (long long left = size; sizes.size() < static_cast<std::size_t>(parts); left -= sizes.back()) sizes.push_back(std::min(part, left));
  std::vector<onnx_tensor> all;
  long long from = 0;
  for (const long long s : sizes) {
    if (s < 0 || from + s > size) return {};
    auto wanted = all_places(x.shape);
    wanted[*axis].assign(wanted[*axis].begin() + from, wanted[*axis].begin() + from + s);
    all.push_back(picked(x, wanted));
    from += s;
  }
  return from == size && all.size() == static_cast<std::size_t>(parts) ? all : std::vector<onnx_tensor>{};
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_range(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  double number[3] = {};
  for (int i = 0; i < 3; ++i) {
    const onnx_tensor& t = tensor(input_of(n, i));
    if (!t.is_read() || t.elements() != 1) return std::nullopt;
    number[i] = t.values ? static_cast<double>(t.values->front()) : t.reals->front();
    if (!(std::abs(number[i]) <= 1e15)) return std::nullopt;
  }
  const int type = tensor(n.input(0)).type;
  if (number[2] == 0) return std::nullopt;
  const double count = std::max(std::ceil((number[1] - number[0]) / number[2]), 0.0);
  if (count > most_folded_values) return std::nullopt;
  onnx_tensor t{.known = true, .shape = {static_cast<long long>(count)}, .type = type};
  if (is_real(type)) t.reals.emplace();
  else t.values.emplace();
  for (long long i = 0; i < t.shape[0]; ++i) {
    const auto v = rounded(number[0] + static_cast<double>(i) * number[2], type);
    if (!v) return std::nullopt;
    if (is_real(type)) t.reals->push_back(*v);
    else t.values->push_back(static_cast<long long>(*v));
  }
  return t;
}

/// Folds operators that read no values: Constant, Shape, Size.
[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_source(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  constexpr int wide = onnx::TensorProto::INT64, single = onnx::TensorProto::FLOAT;
  const auto row = [](list values) {
    const auto size = static_cast<long long>(values.size());
    return onnx_tensor{.known = true, .shape = {size}, .type = wide, .values = std::move(values)};
  };
  if (n.op_type() == "Constant") {
    const auto* one = attribute(n, "value_int");
    if (one != nullptr) return onnx_tensor{.known = true, .type = wide, .values = list{one->i()}};
    if (attribute(n, "value_ints") != nullptr) return row(attribute_list(n, "value_ints"));
    if (const auto* f = attribute(n, "value_float"); f != nullptr)
      return onnx_tensor{.known = true, .type = single, .reals = std::vector<double>{f->f()}};
    const auto* some = attribute(n, "value_floats");
    if (some != nullptr && some->floats_size() <= static_cast<int>(most_folded_data)) {
      return onnx_tensor{.known = true,
                         .shape = {some->floats_size()},
                         .type = single,
                         .reals = std::vector<double>(some->floats().begin(), some->floats().end())};
    }
    const auto* a = attribute(n, "value");
    if (a == nullptr || !a->has_t()) return std::nullopt;
    onnx_tensor t{.known = true, .shape = list(a->t().dims().begin(), a->t().dims().end()), .type = a->t().data_type()};
    if (is_small(t.shape)) read_numbers(a->t(), t);
    return t.is_read() ? std::optional(t) : std::nullopt;
  }
  const onnx_tensor& x = tensor(input_of(n, 0));
  if (!x.known) return std::nullopt;
  if (n.op_type() == "Size") return onnx_tensor{.known = true, .type = wide, .values = list{static_cast<long long>(x.elements())}};
  const auto rank = static_cast<long long>(x.shape.size());
  const auto place = [&](long long i) { return std::clamp(i < 0 ? std::max(i, -rank) + rank : i, 0LL, rank); };
  const long long from = place(attribute_or(n, "start", 0)), to = std::max(from, place(attribute_or(n, "end", rank)));
  return row(list(x.shape.begin() + from, x.shape.begin() + to));
}

/// Folds ConstantOfShape.
[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_filled(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& shape = tensor(n.input(0));
  const auto* a = attribute(n, "value");
  onnx_tensor one{.known = true, .shape = {1}, .type = onnx::TensorProto::FLOAT, .reals = std::vector<double>{0}};
  if (a != nullptr) {
    one = {.known = true, .shape = {1}, .type = a->t().data_type()};
    read_numbers(a->t(), one);
  }
  onnx_tensor t{.known = true, .shape = shape.values.value_or(std::vector<long long>{-1}), .type = one.type};
  const auto most = static_cast<double>(one.type == onnx::TensorProto::INT64 ? most_folded_values : most_folded_data);
  if (!is_small(t.shape) || !one.is_read() || t.elements() > most) return std::nullopt;
  const auto count = static_cast<std::size_t>(t.elements());
  if (one.values && one.values->size() == 1) t.values.emplace(count, one.values->front());
  if (one.reals && one.reals->size() == 1) t.reals.emplace(count, one.reals->front());
  return t.is_read() ? std::optional(t) : std::nullopt;
}

/// Folds NonZero. Each row of the output has the indices along one axis.
[[nodiscard]] HETPLAN_INLINE onnx_tensor fold_nonzero(const onnx_tensor& x) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.elements()); ++i) {
    if (x.values ? (*x.values)[i] != 0 : (*x.reals)[i] != 0) at.push_back(i);
  }
  onnx_tensor t{.known = true,
                .shape = {static_cast<long long>(x.shape.size()), static_cast<long long>(at.size())},
                .type = onnx::TensorProto::INT64,
                .values = std::vector<long long>(x.shape.size() * at.size())};
  for (std::size_t k = 0; k < at.size(); ++k) {
    auto rest = static_cast<long long>(at[k]);
    for (std::size_t axis = x.shape.size(); axis-- > 0; rest /= x.shape[axis]) (*t.values)[axis * at.size() + k] = rest % x.shape[axis];
  }
  return t;
}

HETPLAN_INLINE std::vector<onnx_tensor> fold(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> views{"Unsqueeze", "Squeeze", "Reshape", "Flatten"};
  const std::string& op = n.op_type();
  const auto one = [](std::optional<onnx_tensor> t) { return t ? std::vector{std::move(*t)} : std::vector<onnx_tensor>{}; };
  if (!n.domain().empty()) return {};
  if (op == "Constant" || op == "Shape" || op == "Size") return one(fold_source(n, tensor));
  if (n.input_size() == 0 || n.input(0).empty()) return {};
  for (const auto& name : n.input()) {
    const onnx_tensor& t = tensor(name);
    if (!name.empty() && !(t.known && t.is_read()) && !(op == "CastLike" && name == n.input(n.input_size() - 1))) return {};
    if (t.known && !is_small(t.shape)) return {};
  }
  const onnx_tensor& x = tensor(n.input(0));
  if (!x.is_read()) return {};
  if (op == "Identity") return {picked(x, all_places(x.shape))};
  if (views.contains(op)) return {{.type = x.type, .values = x.values, .reals = x.reals}};
  if (op == "ConstantOfShape") return one(fold_filled(n, tensor));
  if (op == "Concat") return one(fold_concat(n, tensor));
  if (op == "Gather") return one(fold_gather(n, tensor));
  if (op == "Slice") return one(fold_slice(n, tensor));
  if (op == "Split") return fold_split(n, tensor);
  if (op == "Transpose") return one(fold_transpose(n, tensor));
  if (op == "Range") return one(fold_range(n, tensor));
  if (op == "NonZero") return {fold_nonzero(x)};
  if (op == "Expand" && tensor(input_of(n, 1)).values) {
    const std::vector<long long>& wished = *tensor(n.input(1)).values;
    const auto shape = spread_shape({x.shape, wished});
    if (!shape || !is_small(*shape)) return {};
    return {picked(x, spread_places(x.shape, *shape), *shape)};
  }
  if (op == "Tile" && tensor(input_of(n, 1)).values) {
    auto wanted = all_places(x.shape);
    const std::vector<long long>& times = *tensor(n.input(1)).values;
    std::vector<long long> shape = x.shape;
    if (times.size() != shape.size()) return {};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (times[i] < 0 || times[i] > static_cast<long long>(most_folded_values)) return {};
      shape[i] *= times[i];
    }
    if (!is_small(shape)) return {};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::vector<long long> once = std::exchange(wanted[i], {});
      for (long long k = 0; k < times[i]; ++k) wanted[i].insert(wanted[i].end(), once.begin(), once.end());
    }
    return {picked(x, wanted)};
  }
  if (op.starts_with("Reduce")) return one(fold_reduction(n, tensor));
  return one(fold_elementwise(n, tensor));
}

/// Returns the strings of a message's field, also of fields that the linked library does not know.
[[nodiscard]] HETPLAN_INLINE std::vector<std::string> texts_of_field(const google::protobuf::MessageLite& message, int field) {
  using wire = google::protobuf::internal::WireFormatLite;
  const std::string all = message.SerializeAsString();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(all.data()), static_cast<int>(all.size()));
  std::vector<std::string> found;
  for (std::uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    std::uint32_t size = 0;
    if (wire::GetTagFieldNumber(tag) != field || wire::GetTagWireType(tag) != wire::WIRETYPE_LENGTH_DELIMITED) {
      if (!wire::SkipField(&in, tag)) break;
    } else if (!in.ReadVarint32(&size) || !in.ReadString(&found.emplace_back(), static_cast<int>(size))) {
      found.pop_back();
      break;
    }
  }
  return found;
}

class onnx_function_expander {
 public:
  using say = std::function<void(const std::string&)>;
  onnx_function_expander(onnx::ModelProto& model, const say& note, const say& fail) : model_(model), note_(note), fail_(fail) {}

  [[nodiscard]] std::map<std::string, std::string> run() && {
    for (const auto& f : model_.functions()) {
      const function_key key{own_domain(f.domain()), f.name(), last_text(f, 13)};
      if (!functions_.emplace(key, &f).second) fail_("expected one " + to_text(key) + ", got two");
      named_.emplace(std::get<0>(key), std::get<1>(key));
    }
    if (!named_.empty()) collect_names(model_.graph(), taken_);
    expand(*model_.mutable_graph());
    for (const auto& [domain, version] : imports_) {
      auto& o = *model_.add_opset_import();
      o.set_domain(domain);
      o.set_version(version);
    }
    model_.clear_functions();
    return std::move(asks_of_);
  }

 private:
  using function_key = std::tuple<std::string, std::string, std::string>;  ///< domain, name, overload
  using attributes = std::map<std::string, onnx::AttributeProto>;
  using node_list = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  [[nodiscard]] static std::string own_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
  [[nodiscard]] static std::string last_text(const google::protobuf::MessageLite& m, int field) {
    const std::vector<std::string> all = texts_of_field(m, field);
    return all.empty() ? "" : all.back();
  }
  [[nodiscard]] static std::string to_text(const function_key& key) {
    const auto& [domain, name, overload] = key;
    return "function \"" + name + "\" of \"" + domain + "\"" + (overload.empty() ? "" : ", overload \"" + overload + "\"");
  }

  void expand(onnx::GraphProto& g) {
    node_list all;
    all.Swap(g.mutable_node());
    for (auto& n : all) expand(std::move(n), *g.mutable_node());
  }

  void expand(onnx::NodeProto&& n, node_list& to) {
    if (n.domain() == "ai.onnx") n.clear_domain();
    for (auto& a : *n.mutable_attribute()) {
      if (!a.ref_attr_name().empty() && open_.empty())
        fail_("operator " + n.op_type() + " \"" + called(n) + "\" refers to attribute \"" + a.ref_attr_name() +
              "\" of a function, and is in none");
      if (a.has_g()) expand(*a.mutable_g());
      for (auto& g : *a.mutable_graphs()) expand(g);
    }
    if (named_.contains({n.domain(), n.op_type()})) return call(n, to);
    if (!open_.empty()) count(n);
    *to.Add() = std::move(n);
  }

  void count(const onnx::NodeProto& n) {
    bytes_ += n.ByteSizeLong();
    if (++expanded_ > most_expanded_nodes)
      fail_("expected at most " + std::to_string(most_expanded_nodes) + " operators of functions, got more");
    if (bytes_ > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      fail_("expected at most 2 GB with all functions in place, got more");
  }

  [[nodiscard]] static std::string called(const onnx::NodeProto& n) { return n.name().empty() ? first_output(n) : n.name(); }

  void call(const onnx::NodeProto& n, node_list& to) {
    const function_key key{n.domain(), n.op_type(), last_text(n, 8)};
    const auto found = functions_.find(key);
    const std::string what = "operator " + n.op_type() + " \"" + called(n) + "\"";
    if (found == functions_.end()) fail_(what + ": there is no " + to_text(key));
    const onnx::FunctionProto& f = *found->second;
    if (std::find(open_.begin(), open_.end(), key) != open_.end())
      fail_(to_text(key) + " calls itself, by way of " + to_text(open_.back()));
    if (open_.size() >= most_nested_calls)
      fail_("expected calls of functions at most " + std::to_string(most_nested_calls) + " deep, got more");
    if (n.input_size() > f.input_size() || n.output_size() > f.output_size()) {
      fail_(what + ": expected at most " + std::to_string(f.input_size()) + " inputs and " + std::to_string(f.output_size()) +
            " outputs, as " + to_text(key) + " has, got " + std::to_string(n.input_size()) + " and " + std::to_string(n.output_size()));
    }
    count(n);
    import_versions(key, f);
    const attributes given = attributes_of(n, f);
    std::string prefix = called(n);
    if (prefix.size() > longest_prefix) prefix = n.op_type() + " " + std::to_string(expanded_);

    std::map<std::string, std::string> names;  // by name in the function: name at the call
    for (int i = 0; i < f.input_size(); ++i) names[f.input(i)] = input_of(n, i);
    std::vector<std::pair<std::string, std::string>> copies;
    for (int i = 0; i < n.output_size(); ++i) {
      if (!n.output(i).empty() && !names.emplace(f.output(i), n.output(i)).second) copies.emplace_back(f.output(i), n.output(i));
    }
    const auto renamed = [&](const std::string& name) -> std::string {
      if (name.empty()) return "";
      const auto it = names.find(name);
      return it != names.end() ? it->second : names.emplace(name, free_name(taken_, prefix + "/" + name)).first->second;
    };
    open_.push_back(key);
    for (const auto& body : f.node()) {
      onnx::NodeProto copy = body;
      bind(copy, given, to_text(key));
      set_names(copy, prefix);
      for (auto& o : *copy.mutable_output()) o = renamed(o);
      rename_reads(copy, renamed, [&](const std::string& own) { return free_name(taken_, prefix + "/" + own); });
      if (const auto it = asks_.find(key); it != asks_.end()) asks_of_.emplace(first_output(copy), it->second);
      expand(std::move(copy), to);
    }
    open_.pop_back();
    for (const auto& [from, output] : copies) {
      if (renamed(from).empty())
        fail_(what + ": " + to_text(key) + " gives its input \"" + from + "\" as it is, which the call leaves out");
      onnx::NodeProto& same = *to.Add();
      same.set_op_type("Identity");
      same.add_input(renamed(from));
      same.add_output(output);
    }
  }

  /// Renames the operators of a function, and of its branches, to CALL/NAME.
  static void set_names(onnx::NodeProto& n, const std::string& prefix) {
    if (!n.name().empty()) n.set_name(prefix + "/" + n.name());
    const auto inside = [&](onnx::GraphProto& g) {
      for (auto& inner : *g.mutable_node()) set_names(inner, prefix);
    };
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) inside(*a.mutable_g());
      std::for_each(a.mutable_graphs()->begin(), a.mutable_graphs()->end(), inside);
    }
  }

  /// Returns attributes by name: those of the call, else the function's defaults.
  [[nodiscard]] attributes attributes_of(const onnx::NodeProto& n, const onnx::FunctionProto& f) const {
    attributes all;
    for (const auto& a : n.attribute()) all[a.name()] = a;
    for (const std::string& text : texts_of_field(f, 11)) {
      onnx::AttributeProto a;
      if (a.ParseFromString(text)) all.emplace(a.name(), a);
    }
    return all;
  }

  /// Replaces references to the function's attributes by their values.
  void bind(onnx::NodeProto& n, const attributes& given, const std::string& function) {
    auto& all = *n.mutable_attribute();
    for (int i = all.size(); i-- > 0;) {
      const std::string name = all[i].name(), wanted = all[i].ref_attr_name();
      const auto type = all[i].type();
      if (!wanted.empty()) {
        const auto it = given.find(wanted);
        if (it == given.end()) {
          all.DeleteSubrange(i, 1);
          continue;
        }
        if (type != onnx::AttributeProto::UNDEFINED && it->second.type() != onnx::AttributeProto::UNDEFINED && type != it->second.type()) {
          fail_(function + ": operator " + n.op_type() + " expects attribute \"" + wanted + "\" of type " +
                onnx::AttributeProto::AttributeType_Name(type) + ", got " + onnx::AttributeProto::AttributeType_Name(it->second.type()));
        }
        all[i] = it->second;
        all[i].set_name(name);
      }
      const auto inside = [&](onnx::GraphProto& g) {
        for (auto& inner : *g.mutable_node()) bind(inner, given, function);
      };
      if (wanted.empty() && all[i].has_g()) inside(*all[i].mutable_g());
      if (wanted.empty()) std::for_each(all[i].mutable_graphs()->begin(), all[i].mutable_graphs()->end(), inside);
    }
  }

  /// Imports the operator versions of a function. Notes versions that conflict with the file's if an operator differs between them.
  void import_versions(const function_key& key, const onnx::FunctionProto& f) {
    if (!imported_.insert(key).second) return;
    std::map<std::string, std::int64_t> whole = imports_;
    for (const auto& o : model_.opset_import()) whole[own_domain(o.domain())] = o.version();
    for (const auto& o : f.opset_import()) {
      const std::string domain = own_domain(o.domain());
      const auto [it, is_new] = whole.emplace(domain, o.version());
      if (is_new) imports_.emplace(domain, o.version());
      if (it->second == o.version()) continue;
      const auto known = [&](const std::string& type, std::int64_t version) {
        const auto most = static_cast<std::int64_t>(1'000'000);
        return onnx::OpSchemaRegistry::Schema(type, static_cast<int>(std::clamp<std::int64_t>(version, 0, most)), domain);
      };
      const bool newer = domain.empty() && o.version() > std::max<std::int64_t>(it->second, onnx_inference::newest());
      const auto differs = std::find_if(f.node().begin(), f.node().end(), [&](const onnx::NodeProto& n) {
        return own_domain(n.domain()) == domain && (newer || known(n.op_type(), it->second) != known(n.op_type(), o.version()));
      });
      if (differs == f.node().end()) continue;
      asks_[key] = to_text(key) + " asks for version " + std::to_string(o.version()) + " of " +
                   (newer ? "ONNX's operators: they count" : "operator " + differs->op_type() + ": it counts") + " as of version " +
                   std::to_string(it->second) + ", which the file asks for";
      note_(asks_[key]);
    }
  }

  static constexpr std::size_t longest_prefix = 200;

  onnx::ModelProto& model_;
  const say& note_;
  const say& fail_;
  std::map<function_key, const onnx::FunctionProto*> functions_;
  std::set<std::pair<std::string, std::string>> named_;  ///< domains and names of functions, without overloads
  std::set<std::string> taken_;                          ///< names of tensors
  std::vector<function_key> open_;                       ///< stack of open calls
  std::set<function_key> imported_;
  std::map<function_key, std::string> asks_;     ///< sentence on operator versions other than the file's
  std::map<std::string, std::string> asks_of_;   ///< the same by first output of each operator of the function
  std::map<std::string, std::int64_t> imports_;  ///< operator versions that the file lacks
  std::size_t expanded_ = 0, bytes_ = 0;
};

HETPLAN_INLINE std::map<std::string, std::string> expand_functions(onnx::ModelProto& model,
                                                                   const std::function<void(const std::string&)>& note,
                                                                   const std::function<void(const std::string&)>& fail) {
  return onnx_function_expander(model, note, fail).run();
}

}  // namespace hetplan::exchange::detail
