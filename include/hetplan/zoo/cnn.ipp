// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/cnn.hpp>

namespace hetplan::zoo {

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

}  // namespace hetplan::zoo
