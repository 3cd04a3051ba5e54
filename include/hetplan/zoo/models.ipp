// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/models.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <hetplan/zoo/language_models.hpp>
#include <hetplan/zoo/model_options.hpp>
#include <hetplan/zoo/multimodal.hpp>
#include <hetplan/zoo/names.hpp>

namespace hetplan::zoo {

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
