// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in vision models: their published numbers.

#include <array>
#include <span>
#include <string>

#include <hetplan/zoo/model_options.hpp>

namespace HETPLAN_NAMESPACE::zoo {

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

}  // namespace HETPLAN_NAMESPACE::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/vision_models.ipp>
#endif
