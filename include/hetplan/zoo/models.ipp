// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/models.hpp>

#include <algorithm>
#include <string>

#include <hetplan/zoo/language_models.hpp>
#include <hetplan/zoo/multimodal.hpp>
#include <hetplan/zoo/names.hpp>
#include <hetplan/zoo/vision_models.hpp>

namespace HETPLAN_NAMESPACE::zoo {

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

}  // namespace HETPLAN_NAMESPACE::zoo
