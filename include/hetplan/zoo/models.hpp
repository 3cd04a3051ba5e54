// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in models by name.

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/zoo/language_models.hpp>
#include <hetplan/zoo/multimodal.hpp>
#include <hetplan/zoo/names.hpp>
#include <hetplan/zoo/vision_models.hpp>

namespace hetplan::zoo {

namespace detail {

inline constexpr std::array<std::string_view, 12> model_names{"bert-base", "bert-small",       "qwen3-0.6b",      "qwen3-1.7b",
                                                              "qwen-omni", "qwen-omni-frozen", "llama3-8b",       "gpt2",
                                                              "resnet50",  "resnet101",        "efficientnet-b1", "mobilenetv2"};

}  // namespace detail

/// All names that `model` knows.
[[nodiscard]] inline std::span<const std::string_view> model_names() { return detail::model_names; }

/// Whether a built-in model has a use for model_options::tokens; the others have one for model_options::input.
[[nodiscard]] inline bool takes_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 4> vision{"resnet50", "resnet101", "efficientnet-b1", "mobilenetv2"};
  return std::find(vision.begin(), vision.end(), name) == vision.end();
}

/// A built-in model as a planning graph at operator granularity.
///
/// Units        per sample; 1 MAC = 2 FLOP; norms, activations, adds and pooling count 0 FLOP.
/// Throws       invalid_input (unknown name; tokens or input outside what the model takes).
/// Source       each model's own header; docs/reference/zoo.md has the numbers and the rules.
[[nodiscard]] inline planning_graph model(std::string_view name, const model_options& options = {}) {
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
