// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Convolutional building blocks that keep track of the shape.

#include <string>

#include <hetplan/zoo/operator_graph.hpp>

namespace hetplan::zoo {

/// Channels, height and width of an image or feature map.
struct image_shape {
  int channels;
  int height;
  int width;

  [[nodiscard]] double elements() const { return 1.0 * channels * height * width; }
  friend bool operator==(const image_shape&, const image_shape&) = default;
};

/// A tensor with its shape.
struct feature_map {
  tensor data;
  image_shape shape;
};

struct convolution {
  int channels;  ///< out
  int kernel = 1;
  int stride = 1;
  int groups = 1;
};

/// The shape after a window with "same" padding (kernel / 2): ceil(n / stride) for odd kernels.
[[nodiscard]] constexpr image_shape strided(const image_shape& s, int channels, int stride) {
  return {channels, (s.height + stride - 1) / stride, (s.width + stride - 1) / stride};
}

[[nodiscard]] inline feature_map image(operator_graph& g, const image_shape& s) { return {g.input("input", g.stored(s.elements())), s}; }

/// Convolution, batch norm (two parameters a channel) and activation, which run as one operator.
feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c);

feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride);

feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b);

/// Squeeze and excite: the mean of each channel, through `reduced` channels and back (with biases), scales it.
/// The mean counts 2 FLOP an element, as a multiply-add.
feature_map squeeze_excite(operator_graph& g, const std::string& prefix, const feature_map& x, int reduced);

/// The mean over the image and a linear classifier.
tensor classifier(operator_graph& g, const feature_map& x, int classes);

/// ResNet's block: 1x1 down, 3x3 (which has the stride), 1x1 up to 4 * width, and the shortcut.
feature_map bottleneck(operator_graph& g, const std::string& prefix, const feature_map& x, int width, int stride);

/// One stage of MobileNetV2 or EfficientNet: `repeats` inverted residuals, the first with the stride.
struct inverted_residual_stage {
  int expand;
  int kernel;
  int stride;
  int channels;
  int repeats;
};

enum class gating { none, squeeze_excite };

/// MBConv: 1x1 to expand * channels, depthwise, optional squeeze and excite (a quarter of the block's input
/// channels), 1x1 down, and a residual add where the shape stays.
feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x, const inverted_residual_stage& s,
                              int stride, gating gate);

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/cnn.ipp>
#endif
