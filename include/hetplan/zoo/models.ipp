// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/models.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/coarsen/fuse_operators.hpp>

namespace hetplan::zoo {

HETPLAN_INLINE operator_graph::operator_graph(std::string name, precision dtype, int tokens_per_sample, std::string_view weights)
    : name_(std::move(name)), facts_{.tokens_per_sample = tokens_per_sample, .precision = dtype}, element_(bytes_per_element(dtype)) {
  if (weights.empty()) return;
  const auto found = std::find(weight_format_names.begin(), weight_format_names.end(), weights);
  if (found == weight_format_names.end()) throw_unknown("zoo::model", "weights", weights, weight_format_names);
  store(weight_formats[static_cast<std::size_t>(found - weight_format_names.begin())]);
}

HETPLAN_INLINE void operator_graph::store(const weight_format& f) {
  format_ = f;
  facts_.weight_format = f.family;
}

HETPLAN_INLINE void operator_graph::store(weight_sizes& sizes, std::string family) {
  sizes_ = &sizes;
  facts_.weight_format = std::move(family);
}

HETPLAN_INLINE void operator_graph::part(const std::string& name, const std::string& kind) {
  part_ = name.empty() ? -1 : static_cast<std::int32_t>(parts_.size());
  if (!name.empty()) parts_.emplace_back(scope_ + name, kind);
}

HETPLAN_INLINE void operator_graph::take_stored(layer_spec& s, double parameters) {
  if (sizes_ == nullptr || parameters == 0 || s.kind == "lora") return;
  const std::string& name = s.weight_group.empty() ? s.name : s.weight_group;
  const auto found = sizes_->find(name);
  const std::string expected = "model \"" + escaped(name_) + "\": expected tensors of \"" + escaped(name) + "\"";
  if (found == sizes_->end()) throw invalid_input(expected + ", got none");
  stored_weights& file = found->second;
  if (file.elements != 0 && file.elements != parameters) {
    throw invalid_input(expected + " with " + to_text(parameters) + " parameters, got " + to_text(file.elements));
  }
  file.used = true;
  if (s.weight_traffic) *s.weight_traffic *= file.size / s.weight;
  if (s.sequence.experts) s.sequence.experts->weight = file.size;
  s.weight = file.size;
}

HETPLAN_INLINE tensor operator_graph::add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output, const parameters& p,
                                          const saved_tensors& saved) {
  const layer_id id(nodes_.size());
  spec.weight = !format_ ? stored(p.matrix + p.others) : stored(p.matrix, p.use) + stored(p.others);
  spec.sequence.per = per_;
  spec.block = block_;
  if (spec.split_units > 0) {
    for (int g = 1; g <= spec.split_units; ++g) {
      if (spec.split_units % g == 0) spec.degrees.push_back(g);
    }
  }
  for (const tensor& t : inputs) edges_.push_back({t.from, id, t.size, t.size});
  spec.name.insert(0, scope_);
  take_stored(spec, p.matrix + p.others);
  part_of_.push_back(part_);
  spec.trainable = mode_ == training::trainable;
  const bool learns = spec.trainable && spec.weight > bytes{};
  nodes_.push_back({std::move(spec), output, p.matrix + p.others, learns, learns, false, saved});
  return {id, output};
}

HETPLAN_INLINE tensor operator_graph::weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements,
                                                 const execution& how, const saved_tensors& saved) {
  return add({.name = std::move(name),
              .kind = std::move(kind),
              .forward_flops = flops{},
              .split = how.split,
              .split_units = how.units,
              .calls = how.calls},
             inputs, stored(elements), {}, saved);
}

HETPLAN_INLINE tensor operator_graph::linear(std::string name, tensor x, double rows, double in, double out, double others,
                                             const execution& how, matrix_use use) {
  return add({.name = std::move(name),
              .kind = "linear",
              .forward_flops = flops(2 * rows * in * out),
              .split = how.split,
              .split_units = how.units,
              .calls = how.calls,
              .rows = rows,
              .scratch = kernel_workspace},
             {x}, stored(rows * out), {in * out, others, use});
}

HETPLAN_INLINE tensor operator_graph::adapted(const std::string& name, tensor x, tensor y, double rows, double in, double out,
                                              const execution& how) {
  if (rank_ == 0) return y;
  const training others = mode_;
  mode_ = training::trainable;
  const tensor adapter = add({.name = name + ".lora",
                              .kind = "lora",
                              .forward_flops = flops(2 * rows * rank_ * (in + out)),
                              .split = how.split,
                              .split_units = how.units,
                              .calls = 3,  // A, B, and the factor of their product
                              .rows = rows,
                              .scratch = kernel_workspace},
                             {x}, stored(rows * out), {0, rank_ * (in + out)}, {.own = stored(rows * rank_)});
  mode_ = others;
  const bool stays_split = how.split == layer_split::columns;
  return weightless(name + ".sum", "add", {y, adapter}, rows * out, {stays_split ? layer_split::along : layer_split::none},
                    {.inputs = false});
}

HETPLAN_INLINE tensor operator_graph::embedding(std::string name, tensor ids, double entries, double rows, double width,
                                                std::string group) {
  const matrix_use use = group.empty() ? matrix_use::embedding : matrix_use::head;
  return add({.name = std::move(name),
              .kind = "embedding",
              .forward_flops = flops{},
              .weight_traffic = stored(rows * width, use),
              .weight_group = std::move(group)},
             {ids}, stored(rows * width), {entries * width, 0, use});
}

HETPLAN_INLINE double operator_graph::bytes_per_parameter() const {
  if (rank_ > 0 || (!format_ && sizes_ == nullptr)) return element_;
  bytes weight;
  double parameters = 0;
  key_index groups;
  for (const node& n : nodes_) {
    if (!n.spec.weight_group.empty() && !groups.insert(parts_of(n.spec.weight_group))) continue;
    weight += n.spec.weight;
    parameters += n.parameters;
  }
  return weight.value() / parameters;
}

HETPLAN_INLINE std::vector<bytes> operator_graph::alive_tensors() const {
  std::vector<std::size_t> last_reader(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) last_reader[i] = i;
  for (const layer_edge& e : edges_) last_reader[e.from.index()] = std::max(last_reader[e.from.index()], e.to.index());
  std::vector<bytes> freed(nodes_.size() + 1), alive;
  for (std::size_t i = 0; i < nodes_.size(); ++i) freed[last_reader[i] + 1] += nodes_[i].output;
  bytes now;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    now += nodes_[i].output - freed[i];
    alive.push_back(now);
  }
  return alive;
}

HETPLAN_INLINE planning_graph operator_graph::build(level l) && {
  // Edges into a layer come after all edges into its predecessors, so that one pass in order settles each rule.
  for (const layer_edge& e : edges_) {
    node& from = nodes_[e.from.index()];
    node& to = nodes_[e.to.index()];
    if (from.gradient) to.gradient = to.input_gradient = true;
    from.read = true;
    to.read_bytes += e.forward;
  }
  for (const layer_edge& e : edges_) {
    const node& to = nodes_[e.to.index()];
    if (to.saved.inputs && (to.parameters > 0 ? to.learns : to.gradient)) nodes_[e.from.index()].kept = true;
  }
  facts_.bytes_per_parameter = bytes_per_parameter();
  const std::vector<bytes> alive = alive_tensors();
  planning_graph_builder builder(std::move(name_), std::move(facts_));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    node& n = nodes_[i];
    if (!n.input_gradient) {
      n.spec.backward_input_flops = flops{};
      n.spec.backward_traffic = bytes{};
    }
    if (n.kept || (n.gradient && n.saved.output)) n.spec.activation = n.output;
    n.spec.forward_activation = bytes{};
    n.spec.forward_workspace += alive[i] / (n.spec.sequence.per == layer_scope::request ? 1.0 : facts_.tokens_per_sample);
    if (n.gradient) n.spec.activation += n.saved.own;
    if (n.gradient && n.spec.workspace == bytes{}) {
      const bool per_request = n.spec.sequence.per == layer_scope::request;
      n.spec.workspace = 2 * n.output / (per_request ? 1.0 : facts_.tokens_per_sample);
    }
    if (n.learns) n.spec.scratch += n.spec.weight;
    if (!n.gradient) n.spec.workspace = n.spec.scratch = bytes{};
    const bytes traffic = n.read_bytes + n.output;
    if (!n.read) n.spec.traffic = traffic;
    if (n.input_gradient && n.spec.forward_flops == flops{}) n.spec.backward_traffic = elementwise_backward * traffic;
    builder.add_layer(std::move(n.spec));
  }
  for (const layer_edge& e : edges_) {
    builder.add_edge(e.from, e.to, e.forward, nodes_[e.from.index()].gradient ? e.gradient : bytes{});
  }
  planning_graph operators = std::move(builder).build();
  if (l == level::operators) return operators;
  const coarsen::blocks joined = coarsen::layers_in_parts(operators, part_of_);
  std::vector<int> pieces(parts_.size(), 0);
  const auto part_of = [&](const std::vector<layer_id>& members) { return part_of_[members.front().index()]; };
  for (const auto& members : joined.layers) {
    if (part_of(members) >= 0) ++pieces[static_cast<std::size_t>(part_of(members))];
  }
  std::vector<coarsen::block_label> labels;
  for (const auto& members : joined.layers) {
    const auto found = [&](auto&& is) {
      return std::find_if(members.begin(), members.end(), [&](layer_id m) { return is(operators[m]); });
    };
    const bool attends = found([](const layer& x) { return x.kind == "attention"; }) != members.end();
    const auto part = static_cast<std::size_t>(part_of(members));
    if (part_of(members) >= 0 && (pieces[part] == 1 || attends)) {
      labels.push_back({parts_[part].first, parts_[part].second});
      continue;
    }
    auto main = found([](const layer& x) { return x.forward_flops > flops{}; });
    if (main == members.end()) main = found([](const layer& x) { return x.weight > bytes{}; });
    const layer& of = operators[main == members.end() ? members.front() : *main];
    labels.push_back({of.name, of.kind});
  }
  return coarsen::joined_graph(operators, joined, labels);
}

HETPLAN_INLINE feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c) {
  const image_shape out = strided(x.shape, c.channels, c.stride);
  const double weights = 1.0 * c.kernel * c.kernel * x.shape.channels / c.groups * c.channels;
  const double forward = 2 * weights * out.height * out.width;
  const bool copies = c.activation == activation_kind::silu;
  return {g.add({.name = std::move(name),
                 .kind = "conv_bn",
                 .forward_flops = flops(forward),
                 .rows = 1.0 * out.height * out.width,
                 .scratch = kernel_workspace},
                {x.data}, g.stored(out.elements()), {weights, 2.0 * c.channels},
                {.output = c.activation == activation_kind::relu, .own = g.stored((copies ? 2 : 1) * out.elements())}),
          out};
}

HETPLAN_INLINE feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride) {
  const image_shape out = strided(x.shape, x.shape.channels, stride);
  constexpr double index = 8;  // bytes
  return {g.weightless(std::move(name), "max_pool", {x.data}, out.elements(), {}, {.own = bytes(index * out.elements())}), out};
}

HETPLAN_INLINE feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b,
                                        activation_kind activation) {
  const saved_tensors saved{.inputs = false, .output = activation == activation_kind::relu};
  return {g.weightless(std::move(name), "add", {a.data, b.data}, a.shape.elements(), {}, saved), a.shape};
}

HETPLAN_INLINE feature_map squeeze_excite(operator_graph& g, const std::string& prefix, const feature_map& x, int reduced) {
  const double c = x.shape.channels, r = reduced, two_layers = 4 * c * r;
  const tensor scale = g.add({.name = prefix + "se",
                              .kind = "squeeze_excite",
                              .forward_flops = flops(2 * x.shape.elements() + two_layers),
                              .backward_weight_flops = flops(two_layers)},
                             {x.data}, g.stored(c), {2 * c * r, r + c}, {.inputs = false});
  return {g.weightless(prefix + "scale", "mul", {x.data, scale}, x.shape.elements(), {}, {}), x.shape};
}

HETPLAN_INLINE tensor classifier(operator_graph& g, const feature_map& x, int classes) {
  const tensor pooled = g.weightless("pool", "global_avg_pool", {x.data}, x.shape.channels, {}, {.inputs = false});
  const double in = x.shape.channels, out = classes;
  constexpr double fp32 = 4;  // of what cross entropy keeps and of its gradients
  return g.add({.name = "fc",
                .kind = "linear",
                .forward_flops = flops(2 * in * out),
                .rows = 1,
                .workspace = bytes(2 * fp32 * out),
                .scratch = kernel_workspace},
               {pooled}, g.stored(out), {in * out, out}, {.own = bytes(fp32 * out)});
}

HETPLAN_INLINE feature_map bottleneck(operator_graph& g, const std::string& prefix, const feature_map& x, int width, int stride) {
  const int out = 4 * width;
  g.begin_block();
  feature_map y = conv_bn(g, prefix + "c1", x, {.channels = width});
  y = conv_bn(g, prefix + "c2", y, {.channels = width, .kernel = 3, .stride = stride});
  y = conv_bn(g, prefix + "c3", y, {.channels = out, .activation = activation_kind::none});
  const feature_map shortcut =
      x.shape == y.shape ? x : conv_bn(g, prefix + "down", x, {.channels = out, .stride = stride, .activation = activation_kind::none});
  y = x.shape == y.shape ? residual_add(g, prefix + "add", x, y, activation_kind::relu)
                         : residual_add(g, prefix + "add", y, shortcut, activation_kind::relu);
  g.end_block();
  return y;
}

HETPLAN_INLINE feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x,
                                             const inverted_residual_stage& s, int stride, gating gate) {
  const int wide = s.expand * x.shape.channels;
  const activation_kind act = activation_of(gate);
  feature_map y = x;
  g.begin_block();
  if (s.expand > 1) y = conv_bn(g, prefix + "expand", y, {.channels = wide, .activation = act});
  y = conv_bn(g, prefix + "dw", y, {.channels = wide, .kernel = s.kernel, .stride = stride, .groups = wide, .activation = act});
  if (gate == gating::squeeze_excite) y = squeeze_excite(g, prefix, y, x.shape.channels / 4);
  y = conv_bn(g, prefix + "project", y, {.channels = s.channels, .activation = activation_kind::none});
  if (stride == 1 && x.shape == y.shape) y = residual_add(g, prefix + "add", x, y);
  g.end_block();
  return y;
}

HETPLAN_INLINE std::vector<transformer> blocks_of(const transformer& t) {
  std::vector<transformer> blocks(static_cast<std::size_t>(t.layers), t);
  for (int i = 0; i < t.layers; ++i) blocks[static_cast<std::size_t>(i)].window = t.window_of(i);
  return blocks;
}

HETPLAN_INLINE tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows, double more) {
  constexpr double fp32 = 4;  // of its input, which it computes with, and of one number a row
  const double kept = rows * t.hidden + (t.norm == norm_kind::rms ? 1 : 2) * rows;
  return g.add({.name = std::move(name), .kind = "norm", .forward_flops = flops{}, .split = layer_split::none}, {x},
               g.stored(rows * t.hidden), {0, t.norm_parameters() + more}, {.inputs = false, .own = bytes(fp32 * kept)});
}

HETPLAN_INLINE tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows) {
  const double width = 1.0 * t.heads * t.head_dim, kv_width = 1.0 * t.kv_heads * t.head_dim;
  constexpr double fp32 = 4;
  // Flash attention keeps one number for each row and head. PyTorch has no such kernel for fp32 and grouped queries: scores are
  // written out, and keys and values repeated for each head.
  const bool flash = g.element_bytes() < fp32 || t.heads == t.kv_heads;
  const double scores = fp32 * t.heads * rows * rows;
  const bytes kept = flash ? bytes(fp32 * t.heads * rows) : bytes(scores) + g.stored(rows * 2 * (width - kv_width));
  const bytes gradients = g.stored(rows * 2 * (width + kv_width)) + bytes(flash ? fp32 * rows * width : 2 * scores);
  const bytes out = g.stored(rows * width);
  // FlashAttention-2's backward reads q, k, v, the output and its gradient, and writes the three gradients. It adds up that of q in fp32
  // (cleared, read and written, read) and those of k and v for each head of q (written, read). Behind it they are put side by side for the
  // product that made all three.
  const bytes qkv = g.stored(rows * (width + 2 * kv_width));
  const bytes moved_back = 2 * qkv + 2 * out + bytes(4 * fp32 * rows * width) + (t.heads > t.kv_heads ? 4 * out : bytes{}) + 2 * qkv;
  const flops each(4 * width);
  token_work sees{
      .attention_flops = each, .attention = t.attention, .window = t.window, .attention_traffic = bytes(t.heads * g.score_bytes())};
  const flops forward = each * sees.pairs(rows, 0);
  if (g.per() == layer_scope::request || rows != g.tokens()) sees = {};  // its tokens are no tokens of the sequence
  return g.add({.name = "attn",
                .kind = "attention",
                .forward_flops = forward,
                .backward_input_flops = 2.5 * forward,
                .backward_traffic = moved_back,
                .kv_bytes_per_token = t.decodes() ? g.stored(2.0 * t.kv_heads * t.head_dim) : bytes{},
                .split = layer_split::along,
                .split_units = t.kv_heads,
                .sequence = sees,
                .calls = 2,  // rotary positions, then all the rest
                .rows = rows,
                .workspace = g.per_token(gradients),
                .forward_workspace = g.per_token(flash && g.score_bytes() <= 0 ? bytes{} : bytes(scores))},
               {q, k, v}, out, {}, {.output = true, .own = kept});
}

HETPLAN_INLINE tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, q_width = 1.0 * t.heads * t.head_dim, kv_width = 1.0 * t.kv_heads * t.head_dim;
  const double bias = t.qkv_bias ? 1 : 0, head_norm = t.qk_norm ? t.head_dim : 0;
  const execution first{layer_split::columns, t.kv_heads}, others{layer_split::columns, t.kv_heads, 0};  // one product makes q, k and v
  const execution summed{layer_split::rows, t.kv_heads};
  tensor q = g.linear("q", x, rows, d, q_width, bias * q_width + head_norm, first);
  tensor k = g.linear("k", x, rows, d, kv_width, (t.key_bias ? bias : 0) * kv_width + head_norm, others);
  tensor v = g.linear("v", x, rows, d, kv_width, bias * kv_width, others, matrix_use::sensitive);
  q = g.adapted("q", x, q, rows, d, q_width, first);
  k = g.adapted("k", x, k, rows, d, kv_width, first);
  v = g.adapted("v", x, v, rows, d, kv_width, first);
  const tensor seen = attention(g, t, q, k, v, rows);
  const tensor o = g.linear("o", seen, rows, q_width, d, t.output_bias ? d : 0, summed);
  return g.adapted("o", seen, o, rows, q_width, d, summed);
}

HETPLAN_INLINE cross_keys keys_of(operator_graph& g, const transformer& t, const encoder_states& e) {
  const double d = t.hidden, width = 1.0 * t.kv_heads * t.head_dim, bias = t.qkv_bias ? width : 0;
  const execution first{layer_split::columns, t.kv_heads}, others{layer_split::columns, t.kv_heads, 0};
  const layer_scope before = g.per();
  g.set(layer_scope::request);
  g.part("cross_kv", "linear");
  tensor k = g.linear("cross.k", e.states, e.frames, d, width, t.key_bias ? bias : 0, first);
  tensor v = g.linear("cross.v", e.states, e.frames, d, width, bias, others, matrix_use::sensitive);
  k = g.adapted("cross.k", e.states, k, e.frames, d, width, first);
  v = g.adapted("cross.v", e.states, v, e.frames, d, width, first);
  g.set(before);
  return {k, v, e.frames};
}

HETPLAN_INLINE tensor cross_attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, const cross_keys& keys) {
  const double d = t.hidden, width = 1.0 * t.heads * t.head_dim;
  const execution columns{layer_split::columns, t.kv_heads}, summed{layer_split::rows, t.kv_heads};
  tensor q = g.linear("cross.q", x, rows, d, width, t.qkv_bias ? width : 0, columns);
  q = g.adapted("cross.q", x, q, rows, d, width, columns);
  constexpr double fp32 = 4;
  const flops forward(4 * width * rows * keys.frames);
  const tensor seen = g.add({.name = "cross.attn",
                             .kind = "attention",
                             .forward_flops = forward,
                             .backward_input_flops = 2.5 * forward,
                             .split = layer_split::along,
                             .split_units = t.kv_heads,
                             .calls = 1,
                             .rows = rows},
                            {q, keys.k, keys.v}, g.stored(rows * width), {}, {.output = true, .own = bytes(fp32 * t.heads * rows)});
  const tensor o = g.linear("cross.o", seen, rows, width, d, t.output_bias ? d : 0, summed);
  return g.adapted("cross.o", seen, o, rows, width, d, summed);
}

HETPLAN_INLINE tensor swiglu(operator_graph& g, const std::string& name, tensor gate, tensor up, double elements) {
  return g.add({.name = name,
                .kind = "swiglu",
                .forward_flops = flops{},
                .split = layer_split::along,
                .workspace = g.per_token(4 * g.stored(elements))},
               {gate, up}, g.stored(elements), {}, {.own = g.stored(elements)});
}

HETPLAN_INLINE tensor gated_mlp(operator_graph& g, const std::string& prefix, const transformer& t, tensor x, double rows, double wide) {
  const double d = t.hidden, wide_bias = t.mlp_bias ? wide : 0, bias = t.mlp_bias ? d : 0;
  const execution columns{layer_split::columns}, summed{layer_split::rows};
  const execution in_the_same{layer_split::columns, 0, 0};  // one product makes gate and up
  tensor gate = g.linear(prefix + "gate", x, rows, d, wide, wide_bias, columns);
  tensor up = g.linear(prefix + "up", x, rows, d, wide, wide_bias, in_the_same);
  gate = g.adapted(prefix + "gate", x, gate, rows, d, wide, columns);
  up = g.adapted(prefix + "up", x, up, rows, d, wide, columns);
  const tensor a = swiglu(g, prefix + "act", gate, up, rows * wide);
  const tensor down = g.linear(prefix + "down", a, rows, wide, d, bias, summed, matrix_use::sensitive);
  return g.adapted(prefix + "down", a, down, rows, wide, d, summed);
}

HETPLAN_INLINE tensor experts_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, wide = t.intermediate, taken = rows * t.active_experts;  // rows of all experts' products together
  const double matrix = t.experts * d * wide;
  const tensor choice = g.linear("router", x, rows, d, t.experts, 0, {layer_split::none, 0, 2});  // a product, then the best few
  const auto product = [&](std::string name, std::initializer_list<tensor> inputs, layer_split split, int calls, bytes out, matrix_use use,
                           bytes gathered = {}) {
    return g.add({.name = std::move(name),
                  .kind = "experts",
                  .forward_flops = flops(2 * taken * d * wide),
                  .split = split,
                  .sequence = {.experts = expert_weights{t.experts, t.active_experts, g.stored(matrix, use)}},
                  .calls = calls,
                  .rows = rows},
                 inputs, out, {matrix, 0, use}, {.own = gathered});
  };
  const tensor gate =
      product("gate", {x, choice}, layer_split::columns, 1, g.stored(taken * wide), matrix_use::product, g.stored(taken * d));
  const tensor up = product("up", {x, choice}, layer_split::columns, 0, g.stored(taken * wide), matrix_use::product);
  const tensor a = swiglu(g, "act", gate, up, taken * wide);
  const tensor chosen = product("down", {a}, layer_split::rows, 1, g.stored(rows * d), matrix_use::sensitive);
  if (t.shared_intermediate == 0) return chosen;
  const tensor shared = gated_mlp(g, "shared.", t, x, rows, t.shared_intermediate);
  if (!t.shared_gate) return g.weightless("shared.add", "add", {chosen, shared}, rows * d, {}, {.inputs = false});
  const tensor share = g.linear("shared.share", x, rows, d, 1, 0, {layer_split::none, 0, 2});  // a product, then a sigmoid
  return g.weightless("shared.add", "add", {chosen, shared, share}, rows * d, {}, {});
}

HETPLAN_INLINE tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, wide = t.intermediate;
  const double wide_bias = t.mlp_bias ? wide : 0, bias = t.mlp_bias ? d : 0;
  const execution columns{layer_split::columns}, along{layer_split::along}, summed{layer_split::rows};
  if (t.experts > 0) return experts_branch(g, t, x, rows);
  if (t.mlp == mlp_kind::gated) return gated_mlp(g, "", t, x, rows, wide);
  tensor first = g.linear("fc1", x, rows, d, wide, wide_bias, columns);
  first = g.adapted("fc1", x, first, rows, d, wide, columns);
  const tensor a = g.weightless("act", "gelu", {first}, rows * wide, along, {.own = t.composed_gelu ? 3 * g.stored(rows * wide) : bytes{}});
  const tensor second = g.linear("fc2", a, rows, wide, d, bias, summed, matrix_use::sensitive);
  return g.adapted("fc2", a, second, rows, wide, d, summed);
}

HETPLAN_INLINE tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows,
                                        const std::optional<cross_keys>& keys) {
  const bool before = t.place != norm_place::after, around = t.place == norm_place::around;
  const double size = rows * t.hidden;
  const execution in_the_norm{{}, 0, 0};  // the kernel of the next norm adds, too
  const std::string mlp = t.experts > 0 ? "experts" : "mlp";
  if (t.residual != residual_kind::sequential) {
    g.part("attn", "attention");
    const tensor normed = norm(g, "norm1", t, x, rows);
    const tensor seen = attention_branch(g, t, normed, rows);
    g.part("mlp", mlp);
    const tensor other = t.residual == residual_kind::parallel_one_norm ? normed : norm(g, "norm2", t, x, rows);
    const tensor out = mlp_branch(g, t, other, rows);
    return g.weightless("add", "add", {x, seen, out}, size, in_the_norm, {.inputs = false});
  }
  const auto branch = [&](const std::string& part, const std::string& kind, const std::string& number, tensor in, auto&& inner) {
    g.part(part, kind);
    tensor out = inner(before ? norm(g, "norm" + number, t, in, rows) : in);
    if (around) out = norm(g, "post" + number, t, out, rows);
    const tensor sum = g.weightless("add" + number, "add", {in, out}, size, in_the_norm, {.inputs = false});
    return before ? sum : norm(g, "norm" + number, t, sum, rows);
  };
  x = branch("attn", "attention", "1", x, [&](tensor in) { return attention_branch(g, t, in, rows); });
  if (keys) x = branch("cross", "attention", "3", x, [&](tensor in) { return cross_attention_branch(g, t, in, rows, *keys); });
  return branch("mlp", mlp, "2", x, [&](tensor in) { return mlp_branch(g, t, in, rows); });
}

HETPLAN_INLINE tensor transformer_stack(operator_graph& g, const std::string& prefix, std::span<const transformer> blocks, tensor x,
                                        double rows, const std::optional<encoder_states>& e) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    g.scope(prefix + "l" + std::to_string(i) + ".");
    std::optional<cross_keys> keys;
    if (e && blocks[i].cross_attention) keys = keys_of(g, blocks[i], *e);
    g.begin_block();
    x = transformer_block(g, blocks[i], x, rows, keys);
    g.end_block();
  }
  g.scope(prefix);
  g.part("");
  return x;
}

HETPLAN_INLINE tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens) {
  g.scope(prefix);
  const transformer& t = m.blocks;
  g.part("embed", "embedding");
  const tensor ids = g.input("tokens", bytes(4.0 * tokens));
  const bool narrow = m.embedding_width > 0 && m.embedding_width != t.hidden;
  const double width = narrow ? m.embedding_width : t.hidden;
  tensor x = g.embedding("embed", ids, m.vocabulary, tokens, width, m.tied ? prefix + "embed" : "");
  if (narrow) x = g.linear("project_in", x, tokens, width, t.hidden);
  // A layer of its own: the head does not share the position table.
  if (m.learned_positions) x = g.embedding("positions", x, m.context + m.more_positions + m.segments, tokens, t.hidden);
  if (t.place == norm_place::after && m.embedding_norm) x = norm(g, "embed_norm", t, x, tokens);
  g.part("");
  return x;
}

HETPLAN_INLINE tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m,
                                    std::span<const transformer> blocks, tensor x, double rows, const std::optional<encoder_states>& e) {
  x = transformer_stack(g, prefix, blocks, x, rows, e);
  return m.blocks.place != norm_place::after ? norm(g, "norm", m.blocks, x, rows) : x;
}

HETPLAN_INLINE tensor sound_features(operator_graph& g, double mel, double frames, double width) {
  const double first = 3 * mel * width, second = 3 * width * width;
  return g.add({.name = "conv",
                .kind = "conv1d",
                .forward_flops = flops(2 * (2 * frames) * first + 2 * frames * second),
                .calls = 2,
                .rows = frames},
               {g.input("mel", g.stored(mel * 2 * frames))}, g.stored(frames * width), {first + second, 2 * width},
               {.own = g.stored(5 * frames * width)});  // around both GELU, the last's output apart
}

/// Adds a table of positions to x, all of it.
HETPLAN_INLINE tensor add_positions(operator_graph& g, tensor x, double rows, double width) {
  return g.add({.name = "positions", .kind = "embedding", .forward_flops = flops{}}, {x}, g.stored(rows * width), {0, rows * width},
               {.inputs = false});
}

HETPLAN_INLINE encoder_states encode_sound(operator_graph& g, const std::string& prefix, const sound_encoder& s) {
  const double frames = s.frames, width = s.blocks.hidden;
  g.scope(prefix);
  g.set(layer_scope::request);
  g.part("embed", "conv1d");
  tensor x = add_positions(g, sound_features(g, s.mel, frames, width), frames, width);
  x = transformer_stack(g, prefix, blocks_of(s.blocks), x, frames);
  x = norm(g, "norm", s.blocks, x, frames);
  g.set(layer_scope::token);
  return {x, frames};
}

HETPLAN_INLINE tensor embed_patches(operator_graph& g, const image_patches& image, int hidden) {
  const double rows = image.positions(), numbers = 1.0 * image.channels * image.patch * image.patch, pixels = image.side;
  g.part("embed", "embedding");
  const tensor input = g.input("image", g.stored(image.channels * pixels * pixels));
  const tensor x = add_positions(g, g.linear("patches", input, rows - 1, numbers, hidden, 2.0 * hidden), rows, hidden);  // bias, class
  g.part("");
  return x;
}

HETPLAN_INLINE tensor model_head(operator_graph& g, const language_model& m, tensor x, double rows) {
  const double d = m.blocks.hidden;
  const std::string table = m.tied ? "embed" : "";
  // The first token's states, if there is a pooler or a class to tell.
  if (m.pooler) x = g.linear("pooler", x, 1, d, d, d);
  switch (m.head) {
    case head_kind::none: return x;
    case head_kind::classes: return g.linear("classifier", x, 1, d, m.classes, m.classes);
    case head_kind::masked_tokens:
      x = g.linear("head_dense", x, rows, d, d, d);
      x = g.weightless("head_act", "gelu", {x}, rows * d, {}, {});
      // The bias of a head that is the embedding table: a weight group is one tensor.
      x = norm(g, "head_norm", m.blocks, x, rows, m.tied && m.head_bias ? m.vocabulary : 0);
      break;
    case head_kind::tokens:
      if (m.embedding_width > 0 && m.embedding_width != m.blocks.hidden)
        x = g.linear("project_out", x, rows, d, m.embedding_width, 0, {layer_split::none});
  }
  return language_head(g, "lm_head", m, x, static_cast<int>(rows), table);
}

HETPLAN_INLINE planning_graph build_language_model(const std::string& name, const language_model& m, const model_options& o,
                                                   std::span<const transformer> blocks, weight_sizes* sizes, std::string family) {
  const int tokens = m.image ? 1 : o.tokens;
  check_tokens(name, m, tokens);
  if (o.lora < 0) throw invalid_input("zoo::model: \"" + name + "\": lora = " + std::to_string(o.lora) + "; expected >= 1, or 0 for none");
  operator_graph g(name, o.dtype.value_or(precision::bf16), tokens, o.weights);
  if (o.stored) g.store(*o.stored);
  if (sizes != nullptr) g.store(*sizes, std::move(family));
  g.score_bytes(o.score_bytes);
  g.adapt(o.lora);
  if (o.lora > 0) g.set(training::frozen);
  const std::vector<transformer> same = blocks.empty() ? blocks_of(m.blocks) : std::vector<transformer>();
  if (blocks.empty()) blocks = same;
  std::optional<encoder_states> states;
  if (m.sound) states = encode_sound(g, "enc.", *m.sound);
  const double rows = m.image ? m.image->positions() : tokens;
  const tensor x = m.image ? embed_patches(g, *m.image, m.blocks.hidden) : embed_tokens(g, "", m, tokens);
  model_head(g, m, hidden_states(g, "", m, blocks, x, rows, states), rows);
  return std::move(g).build(o.level);
}

HETPLAN_INLINE tensor language_head(operator_graph& g, const std::string& name, const language_model& m, tensor x, int tokens,
                                    const std::string& group) {
  const double in = m.embedding_width > 0 ? m.embedding_width : m.blocks.hidden, out = m.vocabulary, rows = tokens;
  // Cross entropy keeps the logarithms of probabilities in fp32. Behind them come their gradient and that of the fp32 copy of the logits;
  // in the forward that copy beside the logits.
  constexpr double fp32 = 4;
  return g.add({.name = name,
                .kind = "linear",
                .forward_flops = flops(2 * rows * in * out),
                .weight_group = group,
                .split = layer_split::columns,
                .sequence = {.last_token = m.blocks.decodes()},
                .workspace = bytes(2 * fp32 * out),
                .scratch = kernel_workspace},
               {x}, g.stored(rows * out), {in * out, m.head_bias && group.empty() ? out : 0, matrix_use::head},
               {.own = bytes(fp32 * rows * out)});
}

HETPLAN_INLINE void check_tokens(const std::string& name, const language_model& m, int tokens) {
  if (tokens >= 1 && tokens <= m.context) return;
  throw invalid_input("zoo::model: \"" + name + "\": tokens = " + std::to_string(tokens) + "; expected 1 to " + std::to_string(m.context));
}

HETPLAN_INLINE tensor audio_tower(operator_graph& g, const std::string& prefix, int out) {
  constexpr transformer t{.layers = 32,
                          .hidden = 1280,
                          .heads = 20,
                          .kv_heads = 20,
                          .head_dim = 64,
                          .intermediate = 5120,
                          .norm = norm_kind::layer,
                          .mlp = mlp_kind::plain,
                          .attention = attention_kind::full,
                          .qkv_bias = true,
                          .output_bias = true,
                          .mlp_bias = true,
                          .window = 200};
  constexpr double frames = omni_audio_frames, d = t.hidden;
  g.scope(prefix);
  const tensor x = transformer_stack(g, prefix, blocks_of(t), sound_features(g, 128, frames, d), frames);
  return g.linear("proj", x, frames / 2, d, out, out);
}

HETPLAN_INLINE tensor vision_tower(operator_graph& g, const std::string& prefix, int out) {
  constexpr transformer t{.layers = 32,
                          .hidden = 1280,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 80,
                          .intermediate = 3420,
                          .attention = attention_kind::full,
                          .qkv_bias = true,
                          .window = 64,
                          .full_every = 8};
  constexpr double patches = omni_image_patches, numbers = 14 * 14 * 3 * 2, merged = 4.0 * t.hidden;
  g.scope(prefix);
  tensor x = g.linear("embed", g.input("patches", g.stored(patches * numbers)), patches, numbers, t.hidden);
  x = transformer_stack(g, prefix, blocks_of(t), x, patches);
  x = g.linear("merge1", x, patches / 4, merged, merged, merged);
  return g.linear("merge2", x, patches / 4, merged, out, out);
}

HETPLAN_INLINE tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens) {
  constexpr language_model m = omni_talker();
  constexpr double width = omni_text().blocks.hidden, d = m.blocks.hidden;
  const double rows = tokens;
  g.scope(prefix);
  const tensor codes = g.embedding("embed", g.input("codes", bytes(4 * rows)), m.vocabulary, rows, width);
  tensor x = g.weightless("join", "add", {thought, codes}, rows * width, {}, {.inputs = false});
  x = hidden_states(g, prefix, m, blocks_of(m.blocks), g.linear("proj", x, rows, width, d, d), rows);
  return language_head(g, "codec_head", m, x, tokens);
}

HETPLAN_INLINE planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o) {
  constexpr language_model text = omni_text();
  check_tokens(name, text, o.tokens);
  const training text_part = o.lora > 0 ? training::frozen : training::trainable;
  const training others = learns == omni_training::all ? text_part : training::frozen;
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens, o.weights);
  g.set(others);
  g.set(layer_scope::request);
  std::optional<std::pair<tensor, tensor>> media;  // in a generation step their outputs are in the caches
  if (o.tokens > 1) media = std::pair{audio_tower(g, "audio.", text.blocks.hidden), vision_tower(g, "vision.", text.blocks.hidden)};
  g.set(text_part);
  g.set(layer_scope::token);
  const tensor words = embed_tokens(g, "text.", text, o.tokens);
  const double joined = 1.0 * o.tokens * text.blocks.hidden;
  const tensor x = media ? g.weightless("join", "join", {media->first, media->second, words}, joined, {}, {.inputs = false}) : words;
  g.adapt(o.lora);
  const tensor thought = hidden_states(g, "text.", text, blocks_of(text.blocks), x, o.tokens);
  g.adapt(0);
  language_head(g, "lm_head", text, thought, o.tokens, "text.embed");
  g.set(others);
  talker(g, "talker.", thought, o.tokens);
  return std::move(g).build();
}

/// Returns the input shape of the options, else the model's own. Throws invalid_input unless all sides are >= 1.
image_shape image_of(const std::string& name, const model_options& o, const image_shape& own);

/// ResNet with bottlenecks; the 3x3 convolution has the stride. Source  timm resnet.py.
planning_graph resnet(const std::string& name, const std::array<int, 4>& repeats, const model_options& o);

/// Stem of 32 channels, inverted residuals "b0." and so on, head of 1280 channels, classifier.
planning_graph mobile_network(const std::string& name, std::span<const inverted_residual_stage> stages, gating gate, const image_shape& own,
                              const model_options& o);

/// Source  timm efficientnet.py (_gen_mobilenet_v2).
planning_graph mobilenetv2(const model_options& o);

/// Repeats are B0's times 1.1, rounded up. Source  timm and torchvision efficientnet.py.
planning_graph efficientnet_b1(const model_options& o);

HETPLAN_INLINE image_shape image_of(const std::string& name, const model_options& o, const image_shape& own) {
  const image_shape s = o.input.value_or(own);
  if (s.channels >= 1 && s.height >= 1 && s.width >= 1) return s;
  throw invalid_input("zoo::model: \"" + name + "\": input = " + std::to_string(s.channels) + "," + std::to_string(s.height) + "," +
                      std::to_string(s.width) + "; expected channels, height and width >= 1");
}

HETPLAN_INLINE planning_graph resnet(const std::string& name, const std::array<int, 4>& repeats, const model_options& o) {
  operator_graph g(name, o.dtype.value_or(precision::fp32));
  feature_map x = image(g, image_of(name, o, {3, 224, 224}));
  x = conv_bn(g, "conv1", x, {.channels = 64, .kernel = 7, .stride = 2});
  x = max_pool(g, "maxpool", x, 2);
  for (std::size_t stage = 0; stage < repeats.size(); ++stage) {
    for (int i = 0; i < repeats[stage]; ++i) {
      const std::string prefix = "l" + std::to_string(stage) + "." + std::to_string(i) + ".";
      x = bottleneck(g, prefix, x, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  classifier(g, x, 1000);
  return std::move(g).build();
}

HETPLAN_INLINE planning_graph mobile_network(const std::string& name, std::span<const inverted_residual_stage> stages, gating gate,
                                             const image_shape& own, const model_options& o) {
  operator_graph g(name, o.dtype.value_or(precision::fp32));
  const activation_kind act = activation_of(gate);
  feature_map x = conv_bn(g, "stem", image(g, image_of(name, o, own)), {.channels = 32, .kernel = 3, .stride = 2, .activation = act});
  int block = 0;
  for (const inverted_residual_stage& s : stages) {
    for (int i = 0; i < s.repeats; ++i) {
      const std::string prefix = "b" + std::to_string(block++) + ".";
      x = inverted_residual(g, prefix, x, s, i == 0 ? s.stride : 1, gate);
    }
  }
  x = conv_bn(g, "head", x, {.channels = 1280, .activation = act});
  classifier(g, x, 1000);
  return std::move(g).build();
}

HETPLAN_INLINE planning_graph mobilenetv2(const model_options& o) {
  constexpr std::array<inverted_residual_stage, 7> stages{
      {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2}, {6, 3, 2, 32, 3}, {6, 3, 2, 64, 4}, {6, 3, 1, 96, 3}, {6, 3, 2, 160, 3}, {6, 3, 1, 320, 1}}};
  return mobile_network("mobilenetv2", stages, gating::none, {3, 224, 224}, o);
}

HETPLAN_INLINE planning_graph efficientnet_b1(const model_options& o) {
  constexpr std::array<inverted_residual_stage, 7> stages{
      {{1, 3, 1, 16, 2}, {6, 3, 2, 24, 3}, {6, 5, 2, 40, 3}, {6, 3, 2, 80, 4}, {6, 5, 1, 112, 4}, {6, 5, 2, 192, 5}, {6, 3, 1, 320, 2}}};
  return mobile_network("efficientnet-b1", stages, gating::squeeze_excite, {3, 240, 240}, o);
}

HETPLAN_INLINE bool takes_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 4> vision{"resnet50", "resnet101", "efficientnet-b1", "mobilenetv2"};
  return std::find(vision.begin(), vision.end(), name) == vision.end();
}

HETPLAN_INLINE planning_graph model(std::string_view name, const model_options& options) {
  const std::string n(name);
  for (const named_language_model& m : language_models) {
    if (m.name == name) return build_language_model(n, m.model, options);
  }
  if (n == "qwen-omni") return qwen_omni(n, omni_training::all, options);
  if (n == "qwen-omni-frozen") return qwen_omni(n, omni_training::text_only, options);
  if (n == "resnet50") return resnet(n, {3, 4, 6, 3}, options);
  if (n == "resnet101") return resnet(n, {3, 4, 23, 3}, options);
  if (n == "efficientnet-b1") return efficientnet_b1(options);
  if (n == "mobilenetv2") return mobilenetv2(options);
  throw_unknown("zoo::model", "model", name, model_names());
}

}  // namespace hetplan::zoo
