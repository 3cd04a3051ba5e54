// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/models.hpp>

#include <algorithm>

namespace hetplan::zoo {

HETPLAN_INLINE operator_graph::operator_graph(std::string name, precision dtype, int tokens_per_sample)
    : builder_(std::move(name), bytes_per_element(dtype), tokens_per_sample), element_(bytes_per_element(dtype)) {}

HETPLAN_INLINE tensor operator_graph::add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output) {
  const layer_id id(nodes_.size());
  for (const tensor& t : inputs) edges_.push_back({t.from, id, t.size, t.size});
  spec.name.insert(0, scope_);
  spec.trainable = mode_ == training::trainable;
  const bool learns = spec.trainable && spec.weight > bytes{};
  nodes_.push_back({std::move(spec), output, learns, learns});
  return {id, output};
}

HETPLAN_INLINE tensor operator_graph::weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements,
                                                 shared_tensors how) {
  return add({.name = std::move(name), .kind = std::move(kind), .forward_flops = flops{}, .split = how.split, .split_units = how.units},
             inputs, stored(elements));
}

HETPLAN_INLINE tensor operator_graph::weighted(std::string name, std::string kind, tensor x, double parameters, double forward,
                                               double elements, shared_tensors how) {
  return add({.name = std::move(name),
              .kind = std::move(kind),
              .forward_flops = flops(forward),
              .weight = stored(parameters),
              .split = how.split,
              .split_units = how.units},
             {x}, stored(elements));
}

HETPLAN_INLINE tensor operator_graph::linear(std::string name, tensor x, double rows, double in, double out, double extra,
                                             shared_tensors how) {
  return weighted(std::move(name), "linear", x, in * out + extra, 2 * rows * in * out, rows * out, how);
}

HETPLAN_INLINE tensor operator_graph::embedding(std::string name, tensor ids, double entries, double rows, double width,
                                                std::string group) {
  return add({.name = std::move(name),
              .kind = "embedding",
              .forward_flops = flops{},
              .weight = stored(entries * width),
              .weight_traffic = stored(rows * width),
              .weight_group = std::move(group)},
             {ids}, stored(rows * width));
}

HETPLAN_INLINE planning_graph operator_graph::build() && {
  // Edges into a layer come after all edges into its predecessors, so that one pass in order settles each rule.
  for (const layer_edge& e : edges_) {
    node& from = nodes_[e.from.index()];
    node& to = nodes_[e.to.index()];
    if (from.gradient) to.gradient = to.input_gradient = true;
    if (to.learns) from.kept = true;
    from.read = true;
    to.read_bytes += e.forward;
  }
  for (node& n : nodes_) {
    if (!n.input_gradient) n.spec.backward_input_flops = flops{};
    if (n.gradient || n.kept) n.spec.activation = n.output;
    if (!n.read) n.spec.traffic = n.read_bytes + n.output;
    builder_.add_layer(std::move(n.spec));
  }
  for (const layer_edge& e : edges_) {
    builder_.add_edge(e.from, e.to, e.forward, nodes_[e.from.index()].gradient ? e.gradient : bytes{});
  }
  return std::move(builder_).build();
}

HETPLAN_INLINE feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c) {
  const image_shape out = strided(x.shape, c.channels, c.stride);
  const double weights = 1.0 * c.kernel * c.kernel * x.shape.channels / c.groups * c.channels;
  const double forward = 2 * weights * out.height * out.width;
  return {g.weighted(std::move(name), "conv_bn", x.data, weights + 2.0 * c.channels, forward, out.elements()), out};
}

HETPLAN_INLINE feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride) {
  const image_shape out = strided(x.shape, x.shape.channels, stride);
  return {g.weightless(std::move(name), "max_pool", {x.data}, out.elements()), out};
}

HETPLAN_INLINE feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b) {
  return {g.weightless(std::move(name), "add", {a.data, b.data}, a.shape.elements()), a.shape};
}

HETPLAN_INLINE feature_map squeeze_excite(operator_graph& g, const std::string& prefix, const feature_map& x, int reduced) {
  const double c = x.shape.channels, r = reduced, two_layers = 4 * c * r;
  const tensor scale = g.add({.name = prefix + "se",
                              .kind = "squeeze_excite",
                              .forward_flops = flops(2 * x.shape.elements() + two_layers),
                              .backward_weight_flops = flops(two_layers),
                              .weight = g.stored(2 * c * r + r + c)},
                             {x.data}, g.stored(c));
  return {g.weightless(prefix + "scale", "mul", {x.data, scale}, x.shape.elements()), x.shape};
}

HETPLAN_INLINE tensor classifier(operator_graph& g, const feature_map& x, int classes) {
  const tensor pooled = g.weightless("pool", "global_avg_pool", {x.data}, x.shape.channels);
  return g.linear("fc", pooled, 1, x.shape.channels, classes, classes);
}

HETPLAN_INLINE feature_map bottleneck(operator_graph& g, const std::string& prefix, const feature_map& x, int width, int stride) {
  const int out = 4 * width;
  feature_map y = conv_bn(g, prefix + "c1", x, {.channels = width});
  y = conv_bn(g, prefix + "c2", y, {.channels = width, .kernel = 3, .stride = stride});
  y = conv_bn(g, prefix + "c3", y, {.channels = out});
  if (x.shape == y.shape) return residual_add(g, prefix + "add", x, y);
  const feature_map shortcut = conv_bn(g, prefix + "down", x, {.channels = out, .stride = stride});
  return residual_add(g, prefix + "add", y, shortcut);
}

HETPLAN_INLINE feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x,
                                             const inverted_residual_stage& s, int stride, gating gate) {
  const int wide = s.expand * x.shape.channels;
  feature_map y = x;
  if (s.expand > 1) y = conv_bn(g, prefix + "expand", y, {.channels = wide});
  y = conv_bn(g, prefix + "dw", y, {.channels = wide, .kernel = s.kernel, .stride = stride, .groups = wide});
  if (gate == gating::squeeze_excite) y = squeeze_excite(g, prefix, y, x.shape.channels / 4);
  y = conv_bn(g, prefix + "project", y, {.channels = s.channels});
  return stride == 1 && x.shape == y.shape ? residual_add(g, prefix + "add", x, y) : y;
}

HETPLAN_INLINE tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows) {
  return g.weighted(std::move(name), "norm", x, t.norm_parameters(), 0, rows * t.hidden, {layer_split::none});
}

HETPLAN_INLINE tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows, double span) {
  const double width = 1.0 * t.heads * t.head_dim;
  const double forward = 4 * rows * std::min(span, rows) * width;
  const bool cached = t.attention == attention_kind::causal;
  return g.add({.name = "attn",
                .kind = "attention",
                .forward_flops = flops(forward),
                .backward_input_flops = flops(2 * forward),
                .kv_bytes_per_token = cached ? g.stored(2.0 * t.kv_heads * t.head_dim) : bytes{},
                .split = layer_split::along,
                .split_units = t.kv_heads},
               {q, k, v}, g.stored(rows * width));
}

HETPLAN_INLINE tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const double d = t.hidden, q_width = 1.0 * t.heads * t.head_dim, kv_width = 1.0 * t.kv_heads * t.head_dim;
  const double bias = t.qkv_bias ? 1 : 0, head_norm = t.qk_norm ? t.head_dim : 0;
  const shared_tensors heads{layer_split::columns, t.kv_heads};
  const tensor q = g.linear("q", x, rows, d, q_width, bias * q_width + head_norm, heads);
  const tensor k = g.linear("k", x, rows, d, kv_width, bias * kv_width + head_norm, heads);
  const tensor v = g.linear("v", x, rows, d, kv_width, bias * kv_width, heads);
  return g.linear("o", attention(g, t, q, k, v, rows, span), rows, q_width, d, t.output_bias ? d : 0, {layer_split::rows, t.kv_heads});
}

HETPLAN_INLINE tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, wide = t.intermediate;
  const double wide_bias = t.mlp_bias ? wide : 0, bias = t.mlp_bias ? d : 0;
  const shared_tensors columns{layer_split::columns}, along{layer_split::along}, summed{layer_split::rows};
  if (t.mlp == mlp_kind::gelu) {
    const tensor a = g.weightless("act", "gelu", {g.linear("fc1", x, rows, d, wide, wide_bias, columns)}, rows * wide, along);
    return g.linear("fc2", a, rows, wide, d, bias, summed);
  }
  const tensor gate = g.linear("gate", x, rows, d, wide, wide_bias, columns);
  const tensor up = g.linear("up", x, rows, d, wide, wide_bias, columns);
  return g.linear("down", g.weightless("act", "swiglu", {gate, up}, rows * wide, along), rows, wide, d, bias, summed);
}

HETPLAN_INLINE tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const bool before = t.place == norm_place::before;
  const double size = rows * t.hidden;
  const tensor o = attention_branch(g, t, before ? norm(g, "norm1", t, x, rows) : x, rows, span);
  tensor y = g.weightless("add1", "add", {x, o}, size);
  if (!before) y = norm(g, "norm1", t, y, rows);
  const tensor m = mlp_branch(g, t, before ? norm(g, "norm2", t, y, rows) : y, rows);
  y = g.weightless("add2", "add", {y, m}, size);
  return before ? y : norm(g, "norm2", t, y, rows);
}

HETPLAN_INLINE tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens) {
  g.scope(prefix);
  const transformer& t = m.blocks;
  const tensor ids = g.input("tokens", bytes(4.0 * tokens));
  tensor x = g.embedding("embed", ids, m.vocabulary, tokens, t.hidden, m.tied ? prefix + "embed" : "");
  // A layer of its own: the head does not share the position table.
  if (m.learned_positions) x = g.embedding("positions", x, m.context + m.segments, tokens, t.hidden);
  if (t.place == norm_place::after) x = norm(g, "embed_norm", t, x, tokens);
  return x;
}

HETPLAN_INLINE tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  x = transformer_stack(g, prefix, m.blocks, x, tokens, [&](int) { return 1.0 * tokens; });
  return m.blocks.place == norm_place::before ? norm(g, "norm", m.blocks, x, tokens) : x;
}

HETPLAN_INLINE tensor language_head(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  const double in = m.blocks.hidden, out = m.vocabulary, rows = tokens;
  g.scope(prefix);
  return g.add({.name = "lm_head",
                .kind = "linear",
                .forward_flops = flops(2 * rows * in * out),
                .weight = g.stored(in * out),
                .weight_group = m.tied ? prefix + "embed" : "",
                .split = layer_split::columns},
               {x}, g.stored(rows * out));
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
                          .mlp = mlp_kind::gelu,
                          .attention = attention_kind::encoder,
                          .qkv_bias = true,
                          .output_bias = true,
                          .mlp_bias = true};
  constexpr double frames = omni_audio_frames, mel = 128, d = t.hidden, first = 3 * mel * d, second = 3 * d * d;
  g.scope(prefix);
  tensor x = g.input("mel", g.stored(mel * 2 * frames));
  x = g.weighted("conv", "conv1d", x, first + second + 2 * d, 2 * (2 * frames) * first + 2 * frames * second, frames * d);
  x = transformer_stack(g, prefix, t, x, frames, [](int) { return 200.0; });
  return g.linear("proj", x, frames / 2, d, out, out);
}

HETPLAN_INLINE tensor vision_tower(operator_graph& g, const std::string& prefix, int out) {
  constexpr transformer t{.layers = 32,
                          .hidden = 1280,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 80,
                          .intermediate = 3420,
                          .attention = attention_kind::encoder,
                          .qkv_bias = true};
  constexpr double patches = omni_image_patches, numbers = 14 * 14 * 3 * 2, merged = 4.0 * t.hidden;
  g.scope(prefix);
  tensor x = g.linear("embed", g.input("patches", g.stored(patches * numbers)), patches, numbers, t.hidden);
  x = transformer_stack(g, prefix, t, x, patches, [](int block) { return block % 8 == 7 ? patches : 64.0; });
  x = g.linear("merge1", x, patches / 4, merged, merged, merged);
  return g.linear("merge2", x, patches / 4, merged, out, out);
}

HETPLAN_INLINE tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens) {
  constexpr language_model m = omni_talker();
  constexpr double width = omni_text().blocks.hidden, d = m.blocks.hidden;
  const double rows = tokens;
  g.scope(prefix);
  const tensor codes = g.embedding("embed", g.input("codes", bytes(4 * rows)), m.vocabulary, rows, width);
  tensor x = g.weightless("join", "add", {thought, codes}, rows * width);
  x = hidden_states(g, prefix, m, g.linear("proj", x, rows, width, d, d), tokens);
  return g.linear("codec_head", x, rows, d, m.vocabulary, 0, {layer_split::columns});
}

HETPLAN_INLINE planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o) {
  constexpr language_model text = omni_text();
  check_tokens(name, text, o.tokens);
  const training others = learns == omni_training::all ? training::trainable : training::frozen;
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens);
  g.set(others);
  std::optional<std::pair<tensor, tensor>> media;  // in a generation step their outputs are in the caches
  if (o.tokens > 1) media = std::pair{audio_tower(g, "audio.", text.blocks.hidden), vision_tower(g, "vision.", text.blocks.hidden)};
  g.set(training::trainable);
  const tensor words = embed_tokens(g, "text.", text, o.tokens);
  const tensor x = media ? g.weightless("join", "join", {media->first, media->second, words}, 1.0 * o.tokens * text.blocks.hidden) : words;
  const tensor thought = hidden_states(g, "text.", text, x, o.tokens);
  language_head(g, "text.", text, thought, o.tokens);
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
  feature_map x = conv_bn(g, "stem", image(g, image_of(name, o, own)), {.channels = 32, .kernel = 3, .stride = 2});
  int block = 0;
  for (const inverted_residual_stage& s : stages) {
    for (int i = 0; i < s.repeats; ++i) {
      const std::string prefix = "b" + std::to_string(block++) + ".";
      x = inverted_residual(g, prefix, x, s, i == 0 ? s.stride : 1, gate);
    }
  }
  x = conv_bn(g, "head", x, {.channels = 1280});
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
  if (n == "bert-base") return build_language_model(n, bert(12, 768), options);
  if (n == "bert-small") return build_language_model(n, bert(4, 512), options);
  if (n == "qwen3-0.6b") return build_language_model(n, qwen3(1024, 3072), options);
  if (n == "qwen3-1.7b") return build_language_model(n, qwen3(2048, 6144), options);
  if (n == "qwen-omni") return qwen_omni(n, omni_training::all, options);
  if (n == "qwen-omni-frozen") return qwen_omni(n, omni_training::text_only, options);
  if (n == "llama3-8b") return build_language_model(n, llama3_8b(), options);
  if (n == "gpt2") return build_language_model(n, gpt2(), options);
  if (n == "resnet50") return resnet(n, {3, 4, 6, 3}, options);
  if (n == "resnet101") return resnet(n, {3, 4, 23, 3}, options);
  if (n == "efficientnet-b1") return efficientnet_b1(options);
  if (n == "mobilenetv2") return mobilenetv2(options);
  throw_unknown("zoo::model", "model", name, model_names());
}

}  // namespace hetplan::zoo
