// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/models.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace hetplan::zoo {

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
  std::optional<std::pair<tensor, tensor>> media;  // a step of generation finds them in the caches
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

// The built-in vision models: their published numbers.

/// The image of the options, or the model's own. Throws invalid_input unless all sides are >= 1.
image_shape image_of(const std::string& name, const model_options& o, const image_shape& own);

/// ResNet with bottlenecks; the stride is in the 3x3 convolution. Source  timm resnet.py.
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
