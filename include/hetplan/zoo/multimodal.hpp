// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Qwen2.5-Omni-3B: audio and vision towers, the language model that they join, the talker that follows.

#include <string>

#include <hetplan/zoo/model_options.hpp>
#include <hetplan/zoo/transformer.hpp>

namespace hetplan::zoo {

/// What a sample of a multimodal model holds besides its text.
inline constexpr int omni_audio_frames = 1500;   ///< 30 s of sound
inline constexpr int omni_image_patches = 1024;  ///< 448 x 448 pixels, patches of 14 x 14

/// The text part ("thinker"). Source  the published configuration as quoted by Tyr (qwen25omni_3B); layers,
/// heads and widths equal torchtune's qwen2_5_3b.
[[nodiscard]] constexpr language_model omni_text() {
  return {.blocks = {.layers = 36, .hidden = 2048, .heads = 16, .kv_heads = 2, .head_dim = 128, .intermediate = 11008, .qkv_bias = true},
          .vocabulary = 151936,
          .context = 32768};
}

/// The speech decoder. Source  nntrainer's talker_converter.py for Qwen2.5-Omni-3B, which reads these numbers
/// from the checkpoint; a third party's word, so treat them as an estimate. Its codec embedding has the text
/// part's width (2048).
[[nodiscard]] constexpr language_model omni_talker() {
  return {.blocks = {.layers = 24, .hidden = 896, .heads = 14, .kv_heads = 2, .head_dim = 64, .intermediate = 4864, .qkv_bias = true},
          .vocabulary = 8448,
          .context = 32768,
          .tied = false};
}

/// Two convolutions (128 mel bins, 3 wide, the second with stride 2), 32 blocks with attention in windows of 200
/// frames, pairs of frames averaged, a projection to `out`. Source  transformers Qwen2_5OmniAudioEncoderConfig.
tensor audio_tower(operator_graph& g, const std::string& prefix, int out);

/// Patches of 14 x 14 x 3 x 2 numbers, 32 blocks with attention in windows of 8 x 8 patches but over the whole
/// image in every eighth, then 2 x 2 patches merged by two linear layers. Source  transformers
/// Qwen2_5OmniVisionEncoderConfig; hidden size from a printout of the module (the class default is the output's).
tensor vision_tower(operator_graph& g, const std::string& prefix, int out);

/// Reads the text part's hidden states and the codec ids so far, one of each per position; gives codec logits.
tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens);

/// Which parts of the model learn.
enum class omni_training { all, text_only };

/// The towers' outputs take the places of the media tokens in the language model, which runs on `tokens` positions in
/// all: 512 by default, as the agreed settings have it. With 750 audio and 256 image tokens beside 512 of text the
/// real sequence has 1518; say tokens = 1518 to plan that. One token is a step of generation: text and talker alone, for the
/// towers ran with the prompt, and their outputs are in the caches.
/// `text_only` freezes audio, vision and talker: no gradient enters the towers, the talker hands its own back.
planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o);

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/multimodal.ipp>
#endif
