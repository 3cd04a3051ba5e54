// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a caller may choose about a built-in model.

#include <optional>

#include <hetplan/zoo/cnn.hpp>

namespace hetplan::zoo {

/// An option that a model has no use for (tokens of a vision model, input of a language model) is ignored.
struct model_options {
  int tokens = 512;                       ///< of a sample of a language model
  std::optional<image_shape> input = {};  ///< of a vision model (= the size it was published with)
  std::optional<precision> dtype = {};    ///< (= bf16 for language models, fp32 for vision models)
};

}  // namespace hetplan::zoo
