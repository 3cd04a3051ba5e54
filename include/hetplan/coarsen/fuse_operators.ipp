// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/fuse_operators.hpp>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/cost_model.hpp>

namespace hetplan::coarsen {

namespace detail {

using type_lists = std::vector<std::vector<std::string>>;

/// Appends each head followed by each tail.
HETPLAN_INLINE void append_products(type_lists& rules, const type_lists& heads, const type_lists& tails) {
  for (const auto& head : heads) {
    for (const auto& tail : tails) {
      rules.push_back(head);
      rules.back().insert(rules.back().end(), tail.begin(), tail.end());
    }
  }
}

HETPLAN_INLINE type_lists one_by_one(std::initializer_list<const char*> types) {
  type_lists all;
  for (const char* type : types) all.push_back({type});
  return all;
}

/// Returns the elementwise operators with a single input.
HETPLAN_INLINE type_lists activations() {
  return one_by_one({"relu", "leakyrelu", "prelu", "clip", "sigmoid", "tanh", "gelu", "elu", "silu", "hardsigmoid", "hardswish", "mish"});
}

/// Returns the activations without an ONNX operator as chains, from the first operator with a single reader on.
HETPLAN_INLINE type_lists written_out_activations() {
  return {{"div", "erf", "add", "mul", "mul"},  // GELU
          {"mul", "erf", "add", "mul", "mul"},
          {"div", "erf", "add", "mul"},
          {"mul", "erf", "add", "mul"},
          {"pow", "mul", "add", "mul", "tanh", "add", "mul", "mul"},  // approximation of GELU
          {"pow", "mul", "add", "mul", "tanh", "add", "mul"},
          {"sigmoid", "mul"},      // SiLU
          {"hardsigmoid", "mul"},  // hard swish
          {"add", "clip", "mul", "div"},
          {"add", "clip", "div", "mul"},
          {"add", "clip", "mul"},
          {"add", "clip", "div"},
          {"softplus", "tanh", "mul"}};  // Mish
}

HETPLAN_INLINE type_lists rules_as_types(const fusion_rules& given) {
  type_lists all;
  for (const auto& rule : given.rules) {
    std::vector<std::string> types;
    const auto fail = [&](const std::string& what) {
      throw invalid_input("fusion rules \"" + escaped(given.name) + "\": rule " + std::to_string(&rule - given.rules.data()) + " " + what);
    };
    for (const std::string& kind : rule) {
      const std::vector<std::string> named = operator_types(kind, given.aliases);
      if (named.empty()) fail("names an operator \"" + escaped(kind) + "\"; expected the name of a kind");
      types.insert(types.end(), named.begin(), named.end());
    }
    if (types.size() < 2) fail("has " + std::to_string(types.size()) + " operators; expected at least two");
    all.push_back(std::move(types));
  }
  return all;
}

}  // namespace detail

HETPLAN_INLINE const std::vector<type_alias>& common_aliases() {
  static const std::vector<type_alias> all = [] {
    std::vector<type_alias> known{
        {"convbn", {"conv", "bn"}}, {"convbnrelu", {"conv", "bn", "relu"}}, {"convrelu", {"conv", "relu"}}, {"bnrelu", {"bn", "relu"}}};
    const auto same = [&](const char* type, std::initializer_list<const char*> kinds) {
      for (const char* kind : kinds) known.push_back({kind, {type}});
    };
    same("conv", {"conv1d", "conv2d", "conv3d", "convolution", "depthwiseconv", "depthwiseconv2d"});
    same("deconv", {"convtranspose", "convtranspose2d", "deconvolution", "conv2dtranspose"});
    same("matmul", {"gemm", "linear", "dense", "fc", "fullyconnected", "innerproduct", "matrixmultiply"});
    same("bn", {"batchnorm", "batchnorm1d", "batchnorm2d", "batchnormalization", "batchnorminference"});
    same("layernorm", {"norm", "layernormalization", "rmsnorm", "rmsnormalization", "simplifiedlayernormalization"});
    same("add", {"sum", "plus", "biasadd", "residualadd", "elementwiseadd"});
    same("sub", {"subtract", "minus"});
    same("mul", {"multiply", "times", "scale"});
    same("div", {"divide", "realdiv"});
    same("pow", {"power"});
    same("min", {"minimum"});
    same("max", {"maximum"});
    same("clip", {"clamp", "relu6", "hardtanh"});
    same("silu", {"swish"});
    same("hardswish", {"hswish"});
    same("hardsigmoid", {"hsigmoid"});
    same("gelu", {"fastgelu", "quickgelu"});
    same("tanh", {"hyperbolictangent"});
    same("sigmoid", {"logistic"});
    same("avgpool", {"averagepool", "globalaveragepool", "globalavgpool"});
    same("maxpool", {"globalmaxpool"});
    same("reshape", {"flatten", "squeeze", "unsqueeze", "view"});
    same("transpose", {"permute"});
    return known;
  }();
  return all;
}

HETPLAN_INLINE std::string plain_type(std::string_view kind) {
  std::string plain;
  for (const char c : kind) {
    if (c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

HETPLAN_INLINE std::vector<std::string> operator_types(std::string_view kind, std::span<const type_alias> aliases) {
  std::vector<std::string> types;
  while (!kind.empty()) {
    const std::size_t end = std::min(kind.find('+'), kind.size());
    std::string plain = plain_type(kind.substr(0, end));
    kind.remove_prefix(std::min(end + 1, kind.size()));
    if (plain.empty()) continue;
    const auto known = std::find_if(aliases.begin(), aliases.end(), [&](const type_alias& a) { return a.kind == plain; });
    if (known == aliases.end()) types.push_back(std::move(plain));
    else types.insert(types.end(), known->types.begin(), known->types.end());
  }
  return types;
}

HETPLAN_INLINE fusion_rules tensorrt_like() {
  fusion_rules r{.name = "tensorrt"};
  const detail::type_lists acts = detail::activations(), sum{{"add"}};
  detail::type_lists summed_acts;
  detail::append_products(summed_acts, sum, acts);
  for (const detail::type_lists& tails : {acts, sum, summed_acts}) {
    detail::append_products(r.rules, {{"conv"}, {"conv", "bn"}, {"deconv"}, {"deconv", "bn"}, {"matmul"}, {"matmul", "bn"}}, tails);
  }
  detail::append_products(r.rules, {{"conv"}, {"deconv"}, {"matmul"}, {"pad", "conv"}}, {{"bn"}});
  detail::append_products(r.rules, {{"pad"}}, {{"conv"}, {"deconv"}});
  detail::append_products(r.rules, {{"pad", "conv"}, {"pad", "conv", "bn"}, {"bn"}}, acts);
  for (auto& written : detail::written_out_activations()) r.rules.push_back(std::move(written));
  const detail::type_lists binary = detail::one_by_one({"add", "sub", "mul", "div", "min", "max", "pow"});
  const detail::type_lists unary = detail::one_by_one({"sqrt", "exp", "log", "abs", "neg", "erf", "reciprocal"});
  detail::append_products(r.rules, binary, binary);
  detail::append_products(r.rules, binary, unary);
  detail::append_products(r.rules, unary, binary);
  detail::append_products(r.rules, unary, unary);
  detail::append_products(r.rules, binary, acts);
  detail::append_products(r.rules, acts, binary);
  r.rules.push_back({"pow", "reducemean", "add", "sqrt", "div", "mul", "add"});  // layer norm, after its first subtraction
  r.rules.push_back({"softmax", "log"});
  r.rules.push_back({"softmax", "topk"});
  detail::append_products(r.rules, {{"reshape"}, {"transpose"}}, {{"reshape"}, {"transpose"}, {"reducemean"}, {"reducesum"}});
  detail::append_products(r.rules, {{"reshape"}, {"transpose"}}, {{"transpose", "reshape"}, {"reshape", "transpose"}});
  sort_distinct(r.rules);
  return r;
}

HETPLAN_INLINE fusion_rules onednn_like() {
  fusion_rules r{.name = "onednn"};
  const detail::type_lists acts = detail::activations();
  const detail::type_lists binary = detail::one_by_one({"add", "sub", "mul", "div", "min", "max"});
  const detail::type_lists products{{"conv"}, {"conv", "bn"}, {"deconv"}, {"deconv", "bn"}, {"matmul"}};
  detail::append_products(r.rules, {{"conv"}, {"deconv"}}, {{"bn"}});
  for (const detail::type_lists& tails : {acts, binary}) {
    detail::append_products(r.rules, products, tails);
    detail::append_products(r.rules, binary, tails);
    detail::append_products(r.rules, detail::one_by_one({"softmax", "layernorm", "reducemean", "reducesum"}), tails);
  }
  detail::append_products(r.rules, detail::one_by_one({"avgpool", "maxpool"}), binary);
  r.rules.push_back({"bn", "relu"});
  detail::type_lists pairs, behind_sums;
  detail::append_products(pairs, detail::one_by_one({"add", "mul"}), acts);
  detail::append_products(pairs, acts, detail::one_by_one({"add", "mul"}));
  detail::append_products(pairs, detail::one_by_one({"add", "mul", "div"}), detail::one_by_one({"add", "mul"}));
  detail::append_products(behind_sums, {{"add", "add"}, {"add", "mul"}, {"mul", "add"}}, acts);
  detail::append_products(r.rules, products, pairs);
  detail::append_products(r.rules, products, behind_sums);
  detail::append_products(r.rules, {{"matmul", "add"}, {"conv"}}, {{"sigmoid", "mul"}, {"hardsigmoid", "mul"}});
  r.rules.push_back({"div", "erf", "add", "mul", "mul"});
  r.rules.push_back({"mul", "erf", "add", "mul", "mul"});
  detail::append_products(
      r.rules, {{"matmul"}, {"matmul", "div"}, {"matmul", "mul"}, {"matmul", "add"}, {"matmul", "div", "add"}, {"matmul", "mul", "add"}},
      {{"softmax", "matmul"}});
  sort_distinct(r.rules);
  return r;
}

HETPLAN_INLINE fusion_rules no_fusion() { return {.name = "none"}; }

namespace detail {

/// Do the tokens of a layer see others, so that its mask means something?
HETPLAN_INLINE bool attends(const layer& l) {
  return l.sequence.attention_flops > flops{} || l.kv_bytes_per_token > bytes{} || l.sequence.window ||
         l.sequence.attention != attention_kind::causal;
}

/// Makes the layers of fused_graph and joined_graph, one after the other.
class layer_fusion {
 public:
  layer_fusion(const planning_graph& model, const blocks& b, const fusion_rules& rules, std::span<const device> devices);
  /// Joins without fusing (see joined_graph).
  layer_fusion(const planning_graph& model, const blocks& b, std::span<const block_label> labels);

  [[nodiscard]] layer_spec fused(std::size_t block);

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw invalid_input("fused_graph: model \"" + escaped(model_.name()) + "\": " + what);
  }
  [[nodiscard]] std::string name_of(std::span<const layer_id> members);
  /// Returns the block of layers that can be run again to which the members belong; none if some block is fused in part with others.
  [[nodiscard]] std::optional<int> block_of(std::span<const layer_id> members) const;
  [[nodiscard]] std::string kind_of(std::span<const layer_id> members) const;
  /// Returns the traffic of a member that stays inside the block, per sample.
  [[nodiscard]] bytes kept(const layer& l) const;
  /// @param saved  Bytes per sample that no longer move.
  [[nodiscard]] std::vector<layer_profile> profiles_of(std::span<const layer_id> members, bytes saved) const;
  void add_profile(std::vector<layer_profile>& all, const std::string& kind, std::span<const layer_id> members, bytes saved) const;

  const planning_graph& model_;
  const blocks& blocks_;
  const fusion_rules& rules_;
  std::span<const block_label> labels_;  ///< empty: fuses
  keyed<double> bandwidth_;              ///< by kind, bytes per second
  key_index names_, mixed_;
};

/// Returns the split of layers together: `rows` wins, for their sum is what leaves; then `columns`, then `along`.
HETPLAN_INLINE layer_split joined_split(layer_split a, layer_split b) {
  for (const layer_split s : {layer_split::rows, layer_split::columns, layer_split::along}) {
    if (a == s || b == s) return s;
  }
  return layer_split::none;
}

HETPLAN_INLINE layer_fusion::layer_fusion(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                          std::span<const device> devices)
    : model_(model), blocks_(b), rules_(rules) {
  if (b.block_of.size() != model.size()) {
    fail("the blocks are of " + std::to_string(b.block_of.size()) + " layers; expected its " + std::to_string(model.size()));
  }
  std::vector<std::size_t> found(b.size(), 0);
  for (std::size_t l = 0; l < model.size(); ++l) {
    const std::size_t block = b.block_of[l];
    if (block >= b.size() || found[block] >= b.layers[block].size() || b.layers[block][found[block]++] != layer_id(l)) {
      fail("layer " + std::to_string(l) + " is not where the blocks say; expected each layer in one block, sorted");
    }
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b.layers[i].empty() || found[i] != b.layers[i].size()) fail("block " + std::to_string(i) + " is not made of its layers");
    for (const layer_id l : b.layers[i]) {
      if (model[l].block == model[b.layers[i].front()].block) continue;
      mixed_.insert({model[l].block});
      mixed_.insert({model[b.layers[i].front()].block});
    }
    if (b.layers[i].size() == 1) names_.insert(parts_of(model[b.layers[i].front()].name));
  }
  for (const device& d : devices) {
    double& rate = bandwidth_[parts_of(d.kind.empty() ? d.name : d.kind)];
    rate = std::max(rate, d.memory_bandwidth.value());
  }
}

HETPLAN_INLINE const fusion_rules& without_rules() {
  static const fusion_rules none = no_fusion();
  return none;
}

HETPLAN_INLINE layer_fusion::layer_fusion(const planning_graph& model, const blocks& b, std::span<const block_label> labels)
    : layer_fusion(model, b, without_rules(), {}) {
  if (labels.size() != b.size())
    fail(std::to_string(labels.size()) + " labels; expected " + std::to_string(b.size()) + ", one for each block");
  labels_ = labels;
}

HETPLAN_INLINE layer_spec layer_fusion::fused(std::size_t block) {
  const std::vector<layer_id>& members = blocks_.layers[block];
  if (members.size() == 1) {
    layer_spec same = spec_of(model_, model_[members.front()]);
    same.block = block_of(members);
    if (!labels_.empty()) {
      same.name = labels_[block].name;
      same.kind = labels_[block].kind;
    }
    return same;
  }
  const bool joins = !labels_.empty();
  layer_spec all{.name = joins ? labels_[block].name : name_of(members),
                 .kind = joins ? labels_[block].kind : kind_of(members),
                 .backward_input_flops = flops{},
                 .backward_weight_flops = flops{}};
  const layer& first = model_[members.front()];
  all.sequence = {.per = first.sequence.per, .last_token = first.sequence.last_token};
  if (joins) all.split = layer_split::none;
  all.degrees = first.degrees;
  all.forward_activation = bytes{};
  all.block = block_of(members);
  all.calls = 0;
  bool launched = false;
  members_of_one_layer one;
  flops forward, products, by_rows;
  bytes weight_traffic, traffic, backward_traffic, saved, for_weights;
  for (const layer_id id : members) {
    const layer& l = model_[id];
    if (const char* why = one.join(l)) fail("block \"" + escaped(all.name) + "\" holds " + why + ", which no layer can");
    forward += l.forward_flops;
    const flops paired = l.sequence.attention_flops * l.sequence.pairs(l.tokens_per_sample, 0);
    products += l.forward_flops - paired;
    by_rows += (l.forward_flops - paired) / l.rows;
    *all.backward_input_flops += l.backward_input_flops;
    *all.backward_weight_flops += l.backward_weight_flops;
    if (l.weight > bytes{}) {
      all.trainable = l.trainable;
      if (l.weight_group < 0) all.weight += l.weight;
      else {
        all.weight = l.weight;
        all.weight_group = model_.weight_groups()[static_cast<std::size_t>(l.weight_group)];
      }
    }
    weight_traffic += l.weight_traffic;
    all.activation += l.activation;
    *all.forward_activation += l.forward_activation;
    for_weights += l.activation_for_weights;
    const bytes stays = joins ? bytes{} : std::min(l.traffic, kept(l));
    traffic += l.traffic - stays;
    backward_traffic += l.backward_traffic - std::min(l.backward_traffic, stays);
    saved += stays;
    all.kv_bytes_per_token += l.kv_bytes_per_token;
    if (!all.sequence.experts) all.sequence.experts = l.sequence.experts;
    else if (l.sequence.experts) all.sequence.experts->weight += l.sequence.experts->weight;
    if (attends(l)) {
      all.sequence.attention = l.sequence.attention;
      all.sequence.window = l.sequence.window;
    }
    if (joins && l.is_split()) {
      all.split = joined_split(*all.split, l.split);
      all.split_units = std::gcd(all.split_units, l.split_units);
    }
    all.sequence.attention_flops += l.sequence.attention_flops;
    all.sequence.attention_traffic += l.sequence.attention_traffic;
    launched |= l.calls > 0;
    all.calls += joins ? l.calls : std::max(0, l.calls - 1);
    all.degrees = common_degrees(all.degrees, l.degrees);
    all.workspace = std::max(all.workspace, l.workspace);
    all.scratch = std::max(all.scratch, l.scratch);
    all.forward_workspace = std::max(all.forward_workspace, l.forward_workspace);
  }
  if (model_[members.front()].has_flops) all.forward_flops = forward;
  if (launched && !joins) ++all.calls;  // one for what is fused
  // The rows at which one product takes as long as those that it stands for.
  const auto as_first = [&](layer_id l) { return model_[l].rows == first.rows; };
  all.rows = by_rows > flops{} && !std::all_of(members.begin(), members.end(), as_first) ? products / by_rows : first.rows;
  all.weight_traffic = weight_traffic;
  all.traffic = traffic;
  all.backward_traffic = backward_traffic;
  all.activation_for_weights = std::min(for_weights, all.activation);
  all.profiles = profiles_of(members, saved);
  return all;
}

HETPLAN_INLINE std::optional<int> layer_fusion::block_of(std::span<const layer_id> members) const {
  const std::int32_t block = model_[members.front()].block;
  return block < 0 || mixed_.contains({block}) ? std::nullopt : std::optional<int>(block);
}

HETPLAN_INLINE std::string layer_fusion::name_of(std::span<const layer_id> members) {
  constexpr std::size_t longest = 200;
  std::string name;
  for (const layer_id l : members) name += (l == members.front() ? "" : "+") + model_[l].name;
  if (name.size() > longest) name = model_[members.front()].name + "+" + std::to_string(members.size() - 1) + " more";
  std::string unique = name;
  for (int i = 2; !names_.insert(parts_of(unique)); ++i) unique = name + "#" + std::to_string(i);
  return unique;
}

HETPLAN_INLINE std::string layer_fusion::kind_of(std::span<const layer_id> members) const {
  std::string kind;
  for (const layer_id l : members) {
    for (const std::string& type : operator_types(model_[l].kind, rules_.aliases)) kind += (kind.empty() ? "" : "+") + type;
  }
  return kind;
}

HETPLAN_INLINE bytes layer_fusion::kept(const layer& l) const {
  const std::size_t block = blocks_.block_of[l.id.index()];
  bytes moved;
  for (const std::uint32_t e : model_.in_edges(l.id)) {
    const layer_edge& in = model_.edges()[e];
    if (blocks_.block_of[in.from.index()] == block) moved += in.forward;
  }
  bytes written;
  for (const layer_edge& out : model_.out_edges(l.id)) {
    if (blocks_.block_of[out.to.index()] != block) return moved;
    written = std::max(written, out.forward);
  }
  return moved + written;
}

HETPLAN_INLINE std::vector<layer_profile> layer_fusion::profiles_of(std::span<const layer_id> members, bytes saved) const {
  std::vector<layer_profile> all;
  for (const layer_profile& p : model_[members.front()].profiles) {
    const auto measured = [&](layer_id l) { return model_[l].profile_for(p.device_kind) != nullptr; };
    if (std::all_of(members.begin(), members.end(), measured)) add_profile(all, p.device_kind, members, saved);
  }
  return all;
}

HETPLAN_INLINE void layer_fusion::add_profile(std::vector<layer_profile>& all, const std::string& kind, std::span<const layer_id> members,
                                              bytes saved) const {
  const device on{.name = kind, .kind = kind};
  std::vector<double> batches;
  double largest = std::numeric_limits<double>::infinity();  // limit beyond which a member's measurements say nothing
  bool backward = true;
  for (const layer_id l : members) {
    const layer_profile& p = *model_[l].profile_for(kind);
    batches.insert(batches.end(), p.batch.begin(), p.batch.end());
    backward = backward && !p.backward_s.empty();
  }
  for (const layer_id l : members) {
    largest = std::min(largest, profiled{}.largest_batch({model_[l], phase::forward}, on));
    if (backward) largest = std::min(largest, profiled{}.largest_batch({model_[l], phase::backward_input}, on));
  }
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  layer_profile sum{.device_kind = kind, .batch = {}, .forward_s = {}, .backward_s = {}};
  const double* rate = bandwidth_.find(parts_of(kind));
  const double saved_s = rate == nullptr || !(*rate > 0) ? 0 : saved.value() / *rate;  // per sample
  std::vector<double> before(members.size());                                          // at the previous batch size
  double most_rise = 0, forward_s = 0;                                                 // at the last batch size
  for (const double b : batches) {
    if (b > largest && !sum.batch.empty()) break;
    double longest_s = 0, backward_s = 0;
    forward_s = most_rise = 0;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const layer& l = model_[members[m]];
      const double s = profiled{}.time({l, phase::forward, b}, on).value();
      forward_s += s;
      longest_s = std::max(longest_s, s);
      most_rise = std::max(most_rise, s - before[m]);
      before[m] = s;
      if (!backward) continue;
      for (const phase part : {phase::backward_input, phase::backward_weight}) backward_s += profiled{}.time({l, part, b}, on).value();
    }
    sum.batch.push_back(b);
    sum.forward_s.push_back(std::max(longest_s, forward_s - saved_s * b));
    if (backward) sum.backward_s.push_back(backward_s);
  }
  if (const std::size_t n = sum.batch.size(); n > 1) {  // the last slope is extrapolated: it must not be below any member's
    sum.forward_s[n - 1] = std::min(forward_s, std::max(sum.forward_s[n - 1], sum.forward_s[n - 2] + most_rise));
  }
  all.push_back(std::move(sum));
}

}  // namespace detail

namespace detail {

HETPLAN_INLINE planning_graph graph_of_blocks(const planning_graph& model, const blocks& b, layer_fusion fusion) {
  planning_graph_builder builder(model.name(), model.facts());
  for (std::size_t i = 0; i < b.size(); ++i) builder.add_layer(fusion.fused(i));
  keyed<std::pair<bytes, bytes>> crossing;  // forward and gradient, by the blocks at both ends
  for (const layer& l : model.layers()) {
    const std::size_t from = b.block_of[l.id.index()];
    keyed<std::pair<bytes, bytes>> tensor;  // of this layer, by reading block
    for (const layer_edge& e : model.out_edges(l.id)) {
      const std::size_t to = b.block_of[e.to.index()];
      if (to == from) continue;
      if (to < from)
        throw invalid_input("fused_graph: an edge goes from block " + std::to_string(from) + " back to block " + std::to_string(to));
      auto& [forward, gradient] = tensor[{to}];
      forward = std::max(forward, e.forward);
      gradient = std::max(gradient, e.gradient);
    }
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      auto& [forward, gradient] = crossing[{from, tensor.keys().key_of(i)[0]}];
      forward += tensor.values()[i].first;
      gradient += tensor.values()[i].second;
    }
  }
  for (const std::size_t i : crossing.keys().in_order()) {
    const key_view ends = crossing.keys().key_of(i);
    builder.add_edge(layer_id(ends[0].value), layer_id(ends[1].value), crossing.values()[i].first, crossing.values()[i].second);
  }
  return std::move(builder).build();
}

}  // namespace detail

HETPLAN_INLINE planning_graph fused_graph(const planning_graph& model, const blocks& b, const fusion_rules& rules,
                                          std::span<const device> devices) {
  return detail::graph_of_blocks(model, b, detail::layer_fusion(model, b, rules, devices));
}

HETPLAN_INLINE planning_graph joined_graph(const planning_graph& model, const blocks& b, std::span<const block_label> labels) {
  return detail::graph_of_blocks(model, b, detail::layer_fusion(model, b, labels));
}

HETPLAN_INLINE blocks layers_in_parts(const planning_graph& model, std::span<const std::int32_t> part_of) {
  if (part_of.size() != model.size())
    throw invalid_input("layers_in_parts: " + std::to_string(part_of.size()) + " parts; expected " + std::to_string(model.size()));
  blocks parts;
  detail::members_of_one_layer members;
  for (std::size_t l = 0; l < model.size(); ++l) {
    const layer& next = model[layer_id(l)];
    const bool same = l > 0 && part_of[l] >= 0 && part_of[l] == part_of[l - 1];
    if (!same || members.join(next) != nullptr) {
      parts.layers.emplace_back();
      members = {};
      static_cast<void>(members.join(next));
    }
    parts.layers.back().emplace_back(l);
    parts.block_of.push_back(parts.layers.size() - 1);
  }
  return parts;
}

namespace detail {

HETPLAN_INLINE const char* members_of_one_layer::join(const layer& l) {
  const bool weighs = l.weight > bytes{};
  if (weighs && weighted_ != nullptr) {
    if (l.trainable != weighted_->trainable) return "a frozen and a trainable weight";
    if (l.weight_group != weighted_->weight_group) return "a tensor of a weight group and another weight";
  }
  if (first_ != nullptr) {
    const token_work &a = first_->sequence, &b = l.sequence;
    if (a.per != b.per || a.last_token != b.last_token) return "layers of which some run less often or for the last token only";
    if (attends_ != nullptr && attends(l) && (attends_->sequence.attention != b.attention || attends_->sequence.window != b.window)) {
      return "layers whose tokens see different tokens";
    }
    if (chooses_ != nullptr && b.experts &&
        (chooses_->sequence.experts->total != b.experts->total || chooses_->sequence.experts->active != b.experts->active)) {
      return "layers with different numbers of experts";
    }
    if (l.has_flops != first_->has_flops) return "a layer with forward_flops and one without";
    const auto measured_as_first = [&](const layer_profile& p) { return first_->profile_for(p.device_kind) != nullptr; };
    if (!l.has_flops &&
        (l.profiles.size() != first_->profiles.size() || !std::all_of(l.profiles.begin(), l.profiles.end(), measured_as_first))) {
      return "layers without forward_flops that are measured on different kinds of device";
    }
  }
  if (first_ == nullptr) first_ = &l;
  if (weighs) weighted_ = &l;
  if (attends(l)) attends_ = &l;
  if (l.sequence.experts) chooses_ = &l;
  return nullptr;
}

HETPLAN_INLINE rule_tree::rule_tree(const fusion_rules& rules) : rule_lengths_(1) {
  for (const std::vector<std::string>& rule : rules_as_types(rules)) {
    std::size_t at = 0;
    for (const std::string& name : rule) {
      const std::size_t type = types_.number(parts_of(name));
      if (next_.insert({at, type}, static_cast<std::int32_t>(rule_lengths_.size()))) rule_lengths_.push_back(0);
      at = static_cast<std::size_t>(*next_.find({at, type}));
    }
    rule_lengths_[at] = rule.size();
  }
}

HETPLAN_INLINE std::int32_t rule_tree::number_of(const std::string& type) const {
  const std::size_t known = types_.find(parts_of(type));
  return known == key_index::none ? none : static_cast<std::int32_t>(known);
}

HETPLAN_INLINE std::int32_t rule_tree::step(std::int32_t from, std::int32_t type) const {
  const std::int32_t* next = next_.find({from, type});
  return next == nullptr ? none : *next;
}

HETPLAN_INLINE operator_fusion::operator_fusion(const planning_graph& model, const fusion_rules& rules)
    : model_(model), rules_(rules), reader_(model.size(), none), head_(model.size()), position_(model.size()), match_(model.size()) {
  key_index kinds;
  kind_.reserve(model.size());
  for (const layer& l : model.layers()) {
    const std::size_t kind = kinds.number(parts_of(l.kind));
    if (kind == types_.size()) {
      types_.emplace_back();
      for (const std::string& type : operator_types(l.kind, rules.aliases)) types_.back().push_back(rules_.number_of(type));
    }
    kind_.push_back(kind);
    const auto out = model.out_edges(l.id);
    if (out.size() == 1) reader_[l.id.index()] = out.front().to.index();
  }
}

HETPLAN_INLINE void operator_fusion::run() {
  for (std::size_t v = 0; v < model_.size(); ++v) {
    std::size_t owner = none;  // predecessor whose chain v joins
    for (const std::uint32_t e : model_.in_edges(layer_id(v))) {
      std::size_t p = model_.edges()[e].from.index();
      ++looks_;
      if (reader_[p] == none) continue;
      while (goes_on(p)) {  // each release moves the head of p's chain forward
        if (owner == none) {
          owner = p;
          break;
        }
        if (prefers(p, owner)) std::swap(p, owner);
        release(p);
      }
    }
    head_[v] = owner == none ? v : head_[owner];
    position_[v] = owner == none ? 0 : position_[owner] + 1;
    if (owner == none) match_[v] = longest_rule(v);
  }
}

HETPLAN_INLINE blocks operator_fusion::result() const {
  std::vector<std::size_t> last(model_.size()), number(model_.size());
  for (std::size_t l = 0; l < model_.size(); ++l) last[head_[l]] = l;
  blocks fused;
  for (std::size_t l = 0; l < model_.size(); ++l) {
    if (last[head_[l]] != l) continue;
    number[head_[l]] = fused.layers.size();
    fused.layers.emplace_back();
  }
  fused.block_of.reserve(model_.size());
  for (std::size_t l = 0; l < model_.size(); ++l) {
    fused.block_of.push_back(number[head_[l]]);
    fused.layers[fused.block_of.back()].emplace_back(l);
  }
  return fused;
}

HETPLAN_INLINE operator_fusion::match operator_fusion::longest_rule(std::size_t head, std::size_t most) {
  match best;
  members_of_one_layer members;
  std::int32_t node = 0;
  std::size_t operators = 0;
  for (std::size_t l = head; l != none && operators < most; l = reader_[l]) {
    ++looks_;
    const std::vector<std::int32_t>& types = types_[kind_[l]];
    if (types.empty() || members.join(model_[layer_id(l)]) != nullptr) break;
    for (const std::int32_t type : types) {
      node = rules_.step(node, type);
      if (node == rule_tree::none) return best;
    }
    if (++operators > 1 && rules_.rule_length(node) > 0) best = {operators, rules_.rule_length(node)};
  }
  return best;
}

HETPLAN_INLINE bool operator_fusion::prefers(std::size_t p, std::size_t q) const {
  const std::size_t a = head_[p], b = head_[q];
  return match_[a].types != match_[b].types ? match_[a].types > match_[b].types : a < b;
}

HETPLAN_INLINE void operator_fusion::release(std::size_t p) {
  std::size_t head = head_[p], position = 0;
  match_[head] = longest_rule(head, position_[p] + 1);
  for (std::size_t l = head;; l = reader_[l]) {
    if (position == match_[head].operators) {
      head = l;
      position = 0;
      match_[head] = longest_rule(head);
    }
    head_[l] = head;
    position_[l] = position++;
    if (l == p) break;
  }
}

}  // namespace detail

HETPLAN_INLINE blocks fuse_operators(const planning_graph& model, const fusion_rules& rules) {
  detail::operator_fusion fusion(model, rules);
  fusion.run();
  return fusion.result();
}

}  // namespace hetplan::coarsen
