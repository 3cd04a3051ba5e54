// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in models by name.

#include <array>
#include <span>
#include <string_view>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/model_options.hpp>

namespace hetplan::zoo {

namespace detail {

inline constexpr std::array<std::string_view, 12> model_names{"bert-base", "bert-small",       "qwen3-0.6b",      "qwen3-1.7b",
                                                              "qwen-omni", "qwen-omni-frozen", "llama3-8b",       "gpt2",
                                                              "resnet50",  "resnet101",        "efficientnet-b1", "mobilenetv2"};

}  // namespace detail

/// All names that `model` knows.
[[nodiscard]] inline std::span<const std::string_view> model_names() { return detail::model_names; }

/// Whether a built-in model has a use for model_options::tokens; the others have one for model_options::input.
[[nodiscard]] bool takes_tokens(std::string_view name);

/// A built-in model as a planning graph at operator granularity.
///
/// Units        per sample; 1 MAC = 2 FLOP; norms, activations, adds and pooling count 0 FLOP.
/// Throws       invalid_input (unknown name; tokens or input outside what the model takes).
/// Source       each model's own header; docs/reference/zoo.md has the numbers and the rules.
[[nodiscard]] planning_graph model(std::string_view name, const model_options& options = {});

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/models.ipp>
#endif
