// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_file.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/onnx_checks.hpp>
#include <hetplan/exchange/onnx_functions.hpp>
#include <hetplan/exchange/onnx_operators.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange::detail {

/// Sets sizes of the inputs' axes: the given ones for axes without a size or with size 0 in the file, else 1 for first axes.
///
/// @param assumed  gets a sentence for each assumed size, for each axis that stays 0, and for a sequence that counts as one token.
/// @param fail     does not return: an input that is no tensor or has no shape, an axis without a size, a size for no axis.
/// @return         sizes by the names of axes.
[[nodiscard]] std::map<std::string, long long> size_inputs(onnx::GraphProto& g, const onnx_options& options,
                                                           std::vector<std::string>& assumed, const onnx_failure& fail);

/// True for names of sequence axes: "seq", "seq_len", "SequenceLength" and the like.
[[nodiscard]] HETPLAN_INLINE bool is_sequence(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.starts_with("seq");
}

HETPLAN_INLINE std::map<std::string, long long> size_inputs(onnx::GraphProto& g, const onnx_options& options,
                                                            std::vector<std::string>& assumed, const onnx_failure& fail) {
  constexpr std::size_t most_told = 5;
  const std::map<std::string, long long>& dimensions = options.dimensions;
  bool tokens_known = options.tokens_per_sample.has_value();
  std::set<std::string> constants, used;
  for (const auto& i : g.initializer()) constants.insert(i.name());
  struct free_axis {
    onnx::TensorShapeProto::Dimension* size;
    std::string name, place, input;
    bool first;
  };
  std::vector<free_axis> axes;
  std::vector<std::string> empty;
  for (auto& input : *g.mutable_input()) {
    if (constants.contains(input.name())) continue;
    if (!input.type().has_tensor_type()) fail("input \"" + input.name() + "\": expected a tensor");
    if (!input.type().tensor_type().has_shape()) fail("input \"" + input.name() + "\" has no shape");
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      auto& d = *shape.mutable_dim(axis);
      const std::string place = input.name() + "[" + std::to_string(axis) + "]";
      if (!d.has_dim_value() || d.dim_value() < 0) axes.push_back({&d, d.dim_param(), place, input.name(), axis == 0});
      else if (d.dim_value() == 0 && dimensions.contains(place)) axes.push_back({&d, "", place, input.name(), false});
      else if (d.dim_value() == 0) empty.push_back(place);
      else if (dimensions.contains(place)) fail("axis \"" + place + "\" is " + std::to_string(d.dim_value()) + " in the file");
    }
  }
  std::map<std::string, long long> sizes = dimensions;
  for (const free_axis& a : axes) {
    if (!a.first || sizes.contains(a.place) || (!a.name.empty() && sizes.contains(a.name))) continue;
    const std::string& called = a.name.empty() ? a.place : a.name;
    sizes[called] = 1;
    assumed.push_back("axis \"" + called + "\" of the inputs is 1");
  }
  for (std::size_t i = 0; i < std::min(empty.size(), most_told); ++i)
    assumed.push_back("axis \"" + empty[i] + "\" of the inputs is 0 in the file: nothing is computed along it, unless \"" + empty[i] +
                      "\" is given a size");
  std::string missing;
  for (const free_axis& a : axes) {
    const auto given = sizes.contains(a.place) ? sizes.find(a.place) : a.name.empty() ? sizes.end() : sizes.find(a.name);
    if (given == sizes.end()) {
      missing += (missing.empty() ? "\"" : ", \"") + (a.name.empty() ? a.place + "\"" : a.name + "\" of input \"" + a.input + "\"");
      continue;
    }
    used.insert(given->first);
    a.size->set_dim_value(given->second);
    if (tokens_known || given->second == 1 || !is_sequence(a.name)) continue;
    tokens_known = true;
    assumed.push_back("axis \"" + a.name + "\" is " + std::to_string(given->second) +
                      ", yet a sample counts as one token: --tokens-per-sample says how many it has");
  }
  if (!missing.empty()) fail("expected a size for each dynamic axis, got none for " + missing);
  for (const auto& [name, size] : dimensions) {
    if (!used.contains(name)) fail("no dynamic axis of an input is called \"" + name + "\"");
  }
  return sizes;
}

constexpr double most_tensor_bytes = 1e15;
constexpr std::size_t most_reasons = 5;

HETPLAN_INLINE onnx_file::onnx_file(std::string_view text, std::string file, const onnx_options& options)
    : file_(std::move(file)), options_(options), look_up_([this](const std::string& name) -> const onnx_tensor& { return tensor(name); }) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail("expected at most 2 GB, got " + std::to_string(text.size()) + " bytes");
  if (!model_.ParseFromArray(text.data(), static_cast<int>(text.size())) || !model_.has_graph()) {
    fail("expected an ONNX model, got " + std::string(text.empty() ? "nothing" : "something else, or one that is cut short"));
  }
  const onnx_failure failure = [this](const std::string& what) { fail(what); };
  check_names(model_, failure);
  other_versions_ = expand_functions(
      model_, [this](const std::string& what) { done_.assumed.push_back(what); }, failure);
  check_versions(model_, done_.assumed, failure);
  check_tensors(model_.graph(), failure);
  sizes_ = size_inputs(*model_.mutable_graph(), options, done_.assumed, failure);
  for (const auto& input : model_.graph().input()) set_shape(input.name(), described(input, sizes_));
  read_constants(model_.graph());
  inference_ = onnx_inference(model_);
  in_place_ = names_made(model_.graph());
  collect_names(model_.graph(), names_);
  std::set<std::string> conditions;
  find_conditions(model_.graph(), conditions);
  for (const auto& [name, taken] : options_.conditions) {
    if (conditions.empty()) fail("there is no operator If for which a branch can be chosen");
    if (!name.empty() && !conditions.contains(name)) fail("no operator If is called \"" + name + "\"");
  }
  std::vector<std::size_t> all(static_cast<std::size_t>(model_.graph().node_size()));
  std::iota(all.begin(), all.end(), std::size_t{0});
  run(all);
  if (done_.branches > 0) drop_what_is_not_run();
  if (done_.branches > most_reasons)
    done_.assumed.push_back("so it is with " + std::to_string(done_.branches - most_reasons) +
                            " more operators If, each by its condition, as asked for or by size");
  for (const auto& [name, taken] : options_.conditions) {
    if (!name.empty() && std::find(done_.asked.begin(), done_.asked.end(), name) == done_.asked.end())
      done_.assumed.push_back("the branch asked for of operator If \"" + name +
                              "\" has no effect: no branch that counts has that operator");
  }
  if (done_.without_shape > most_reasons)
    done_.assumed.push_back("so it is with " + std::to_string(done_.without_shape - most_reasons) + " more operators");
  if (!done_.believed.empty()) {
    done_.assumed.push_back("no rule gives the shape of tensor \"" + done_.believed.front() + "\"" +
                            (done_.believed.size() == 1 ? "" : " and of " + std::to_string(done_.believed.size() - 1) + " more") +
                            ": it counts as the file says");
  }
}

HETPLAN_INLINE void onnx_file::fail(const std::string& what) const { throw invalid_input(escaped(file_) + ": " + escaped(what)); }

HETPLAN_INLINE const onnx_tensor& onnx_file::tensor(const std::string& name) const {
  static const onnx_tensor unknown;
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? unknown : it->second;
}

HETPLAN_INLINE void onnx_file::read_constants(const onnx::GraphProto& g) {
  check_readable(g, [this](const std::string& what) { fail(what); });
  for (const auto& i : g.initializer()) {
    set_shape(i.name(), {.known = true, .shape = {i.dims().begin(), i.dims().end()}, .type = i.data_type()});
    onnx_tensor& t = tensors_[i.name()];
    t.constant = true;
    read_numbers(i, t);
  }
  for (const auto& info : g.output()) stated_[info.name()] = described(info, sizes_);
  for (const auto& info : g.value_info()) stated_[info.name()] = described(info, sizes_);
}

HETPLAN_INLINE void onnx_file::set_shape(const std::string& name, const onnx_tensor& t) {
  onnx_tensor& mine = tensors_[name];
  mine.known = t.known;
  mine.type = t.type;
  if (!t.known) return;
  mine.shape = t.shape;
  if (!(mine.bytes() <= most_tensor_bytes)) fail("tensor \"" + name + "\": expected at most 1e15 bytes, got " + to_text(mine.bytes()));
}

HETPLAN_INLINE std::vector<std::size_t> onnx_file::sorted(const std::vector<std::size_t>& nodes) const {
  std::map<std::string, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& o : node(nodes[i]).output()) producer[o] = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : names_read(node(nodes[i]))) {
      if (const auto it = producer.find(name); it != producer.end()) edges.emplace_back(it->second, i);
    }
  }
  std::vector<std::size_t> order = topological_order(nodes.size(), edges);
  if (order.size() < nodes.size()) {
    const auto [from, to] = edge_on_cycle(nodes.size(), edges, order);
    fail("expected no cycle, got one through operators \"" + first_output(node(nodes[from])) + "\" -> \"" + first_output(node(nodes[to])) +
         "\"");
  }
  for (std::size_t& i : order) i = nodes[i];
  return order;
}

HETPLAN_INLINE void onnx_file::run(const std::vector<std::size_t>& nodes) {
  for (const std::size_t i : sorted(nodes)) {
    if (is_if(node(i))) {
      choose_branch(i);
      continue;
    }
    check_readable(node(i), [this](const std::string& what) { fail(what); });
    for (const auto& name : node(i).output()) {
      if (!name.empty()) tensors_[name].producer = i;
    }
    if (!fold_values(i)) infer(i);
    mark_folded(i);
    done_.order.push_back(i);
  }
}

HETPLAN_INLINE void onnx_file::infer(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  const inferred_outputs found = inference_(n, look_up_);
  if (const auto it = other_versions_.find(first_output(n)); !found.broken.empty())
    fail(label(n) + ": " + found.broken + (it == other_versions_.end() ? "" : "; " + it->second));
  const std::vector<onnx_tensor> ours = shapes_beyond_onnx(n, inference_.asked(), look_up_);
  bool unknown = false;
  for (std::size_t i = 0; i < found.outputs.size(); ++i) {
    const std::string& name = n.output(static_cast<int>(i));
    if (name.empty()) continue;
    onnx_tensor t = found.outputs[i];
    if (!t.known && i < ours.size()) t = ours[i];
    if (const auto it = stated_.find(name); !t.known && it != stated_.end()) {
      t = it->second;
      if (t.known) done_.believed.push_back(name);
    }
    unknown = unknown || !t.known;
    set_shape(name, t);
  }
  const auto told = [&](const std::string& what) {
    if (++done_.without_shape <= most_reasons) done_.assumed.push_back(label(n) + ": " + what);
  };
  if (!found.left_out.empty()) told("attribute " + found.left_out + " is newer than this build's ONNX; the shape counts without it");
  if (unknown && !found.reason.empty()) told(found.reason);
}

HETPLAN_INLINE bool onnx_file::fold_values(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  std::vector<onnx_tensor> folded = fold(n, look_up_);
  if (folded.size() != static_cast<std::size_t>(n.output_size())) return false;
  const auto count = [](const onnx_tensor& t) { return t.values ? t.values->size() : t.reals ? t.reals->size() : 0; };
  if (std::any_of(folded.begin(), folded.end(), [&](const onnx_tensor& t) { return count(t) > most_folded_values; })) return false;
  if (!folded.front().known) infer(at);  // infer the shape if the value does not tell it
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const std::string& name = n.output(static_cast<int>(i));
    if (name.empty()) continue;
    if (folded[i].known) set_shape(name, folded[i]);
    onnx_tensor& out = tensors_[name];
    if (!out.known || out.elements() != static_cast<double>(count(folded[i]))) continue;
    out.type = folded[i].type;
    out.values = std::move(folded[i].values);
    out.reals = std::move(folded[i].reals);
  }
  return true;
}

HETPLAN_INLINE void onnx_file::mark_folded(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  const auto known = [&](const std::string& name) { return name.empty() || tensor(name).constant; };
  const bool constant = !is_random(n, look_up_) && std::all_of(n.input().begin(), n.input().end(), known);
  if (folded_.size() <= at) folded_.resize(at + 1);
  folded_[at] = constant || tensor(first_output(n)).is_read();
  for (const auto& o : n.output()) {
    if (!o.empty()) tensors_[o].constant = folded_[at] != 0;
  }
}

HETPLAN_INLINE void onnx_file::find_conditions(const onnx::GraphProto& g, std::set<std::string>& names) const {
  for (const auto& n : g.node()) {
    if (!is_if(n)) continue;
    std::set<bool> asked;
    for (const std::string& called : {n.name(), first_output(n)}) {
      const auto it = options_.conditions.find(called);
      if (called.empty()) continue;
      if (it != options_.conditions.end()) asked.insert(it->second);
      names.insert(called);
    }
    if (asked.size() > 1)
      fail("both branches are asked for of " + label(n) + ", by its name and by its output \"" + first_output(n) + "\"");
    for (const auto& a : n.attribute()) find_conditions(a.g(), names);
  }
}

HETPLAN_INLINE void onnx_file::choose_branch(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  const auto* first = attribute(n, "then_branch");
  const auto* second = attribute(n, "else_branch");
  if (n.input_size() != 1 || n.input(0).empty() || first == nullptr || second == nullptr || !first->has_g() || !second->has_g())
    fail(label(n) + ": expected a condition, a then_branch and an else_branch");
  const auto side = [&](bool taken) -> const onnx::GraphProto& { return taken ? first->g() : second->g(); };
  const auto name = [](bool taken) { return std::string(taken ? "then_branch" : "else_branch"); };
  std::optional<bool> known, asked;
  if (const auto& v = tensor(n.input(0)).values; v && v->size() == 1) known = v->front() != 0;
  if (const auto it = options_.conditions.find(""); it != options_.conditions.end()) asked = it->second;
  for (const std::string& called : {n.name(), first_output(n)}) {
    const auto it = options_.conditions.find(called);
    if (called.empty() || it == options_.conditions.end()) continue;
    asked = it->second;
    done_.asked.push_back(called);
  }
  std::string why;
  trial chosen;
  if (known || asked) {
    const bool taken = known ? *known : *asked;
    chosen = try_branch(n, side(taken));
    why = known ? "its condition is constant, and " + name(taken) + " counts" : name(taken) + " counts, as asked for";
  } else {
    chosen = try_branch(n, side(true));
    trial other = try_branch(n, side(false));
    const bool taken = std::pair(chosen.flop, chosen.bytes) >= std::pair(other.flop, other.bytes);
    if (!taken) std::swap(chosen, other);
    why = "which branch it takes is known when it runs; " + name(taken) + " counts, with " + to_text(chosen.flop) + " FLOP, not " +
          name(!taken) + " with " + to_text(other.flop);
  }
  const bool told = ++chosen.done.branches <= most_reasons;
  if (told) done_.assumed.push_back(label(n) + ": " + why);
  accept(n, std::move(chosen));
}

HETPLAN_INLINE onnx_file::trial onnx_file::try_branch(const onnx::NodeProto& n, const onnx::GraphProto& branch) {
  if (branch.input_size() > 0 || branch.output_size() != n.output_size()) {
    fail(label(n) + ": expected branches without inputs and with " + std::to_string(n.output_size()) + " outputs, got " +
         std::to_string(branch.input_size()) + " and " + std::to_string(branch.output_size()));
  }
  onnx::GraphProto inner = branch;
  const std::set<std::string> own = names_made(inner);
  std::map<std::string, std::string> names;
  for (const std::string& name : own) {
    const bool free = in_place_.insert(name).second;
    names[name] = free ? name : *in_place_.insert(free_name(names_, name)).first;
  }
  const auto own_to = [&](const std::string& name) { return names.contains(name) ? names.at(name) : name; };
  rename_graph(
      inner, [](const std::string& name) { return name; }, own_to);
  onnx::GraphProto& g = *model_.mutable_graph();
  trial t;
  std::set<std::string> made;
  for (const auto& node : inner.node()) made.insert(node.output().begin(), node.output().end());
  for (const auto& o : inner.output()) {
    t.outputs.push_back(o.name());
    if (made.erase(o.name()) > 0) continue;
    auto& same = *inner.add_node();  // the output is captured, a constant, or a duplicate
    same.set_op_type("Identity");
    same.add_input(o.name());
    t.outputs.back() = *in_place_.insert(free_name(names_, o.name())).first;
    same.add_output(t.outputs.back());
  }
  t.done.without_shape = done_.without_shape, t.done.branches = done_.branches;
  std::swap(done_, t.done);
  read_constants(inner);
  for (auto& i : *inner.mutable_initializer()) *g.add_initializer() = std::move(i);
  std::vector<std::size_t> nodes;
  for (auto& node : *inner.mutable_node()) {
    nodes.push_back(static_cast<std::size_t>(g.node_size()));
    *g.add_node() = std::move(node);
  }
  run(nodes);
  for (const std::size_t i : done_.order) {
    if (folded_[i] != 0) continue;
    t.flop += operator_flops(node(i), look_up_).value_or(0);
    for (int k = 0; k < node(i).input_size(); ++k) {
      if (!node(i).input(k).empty()) t.bytes += bytes_read(node(i), k, look_up_);
    }
    for (const auto& o : node(i).output()) t.bytes += tensor(o).bytes();
  }
  std::swap(done_, t.done);
  return t;
}

HETPLAN_INLINE void onnx_file::accept(const onnx::NodeProto& n, trial chosen) {
  std::map<std::string, std::string> names;
  for (int i = 0; i < n.output_size(); ++i) {
    const std::string& from = chosen.outputs[static_cast<std::size_t>(i)];
    const std::string& to = n.output(i);
    if (to.empty()) continue;
    names[from] = to;
    tensors_[to] = tensor(from);
    tensors_.erase(from);
    if (const auto it = stated_.find(to); !tensors_[to].known && it != stated_.end() && it->second.known) {
      chosen.done.believed.push_back(to);
      set_shape(to, it->second);
    }
  }
  const auto renamed = [&](std::string& name) {
    if (const auto it = names.find(name); it != names.end()) name = it->second;
  };
  for (const std::size_t i : chosen.done.order) {
    auto& node = *model_.mutable_graph()->mutable_node(static_cast<int>(i));
    std::for_each(node.mutable_input()->begin(), node.mutable_input()->end(), renamed);
    std::for_each(node.mutable_output()->begin(), node.mutable_output()->end(), renamed);
  }
  const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  append(done_.order, chosen.done.order);
  append(done_.assumed, chosen.done.assumed);
  append(done_.believed, chosen.done.believed);
  append(done_.asked, chosen.done.asked);
  done_.without_shape = chosen.done.without_shape, done_.branches = chosen.done.branches;
}

HETPLAN_INLINE void onnx_file::drop_what_is_not_run() {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  std::map<std::size_t, std::size_t> place;
  std::vector<char> folded;
  for (std::size_t& i : done_.order) {
    *kept.Add() = std::move(*model_.mutable_graph()->mutable_node(static_cast<int>(i)));
    folded.push_back(folded_[i]);
    place.emplace(i, place.size());
    i = place.at(i);
  }
  kept.Swap(model_.mutable_graph()->mutable_node());
  folded_ = std::move(folded);
  for (auto& [name, t] : tensors_) {
    if (!t.producer) continue;
    const auto it = place.find(*t.producer);
    if (it == place.end()) t = {};
    else t.producer = it->second;
  }
}

}  // namespace hetplan::exchange::detail
