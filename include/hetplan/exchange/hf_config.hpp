// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transformers by their `config.json` of Hugging Face.

#include <array>
#include <string>
#include <string_view>

#include <hetplan/exchange/model_description.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

/// Values of `model_type` that are known.
inline constexpr std::array<std::string_view, 19> hf_model_types{
    "bert", "gemma", "gemma2", "gemma3", "gemma3_text", "gpt2",  "gpt_neox",  "llama", "mistral", "mixtral",
    "opt",  "phi",   "phi3",   "qwen2",  "qwen2_moe",   "qwen3", "qwen3_moe", "vit",   "whisper"};

/// Returns the model of a config.json.
///
/// Left out numbers are those of the model's configuration class, as far as published files leave them out. Of `gemma3` only the text part
/// is read. `architectures` decides what stands behind a BERT or a ViT. A window that is no shorter than the context is none. Of
/// `quantization_config`, gptq, awq, bitsandbytes, fp8, fbgemm_fp8, compressed-tensors and MLX's without a method are known: products are
/// quantised; embedding, head and norms are not, but for MLX.
///
/// @param name  of the model.
/// Throws       invalid_input, which names file and JSON pointer: an unknown model_type; a number that is missing, of another kind or out
/// of
///              its range; numbers that contradict each other (heads that do not divide the width, more active experts than there are,
///              ...).
/// Source       huggingface/transformers, src/transformers/models/*/configuration_*.py, modeling_*.py.
/// Deviations   rotary scaling, soft caps, dropout and the kind of activation change neither FLOP nor bytes here. `modules_to_not_convert`
///              is not looked at.
[[nodiscard]] model_description read_hf_config(const io::json_document& config, const std::string& name);

/// Returns the path of the config.json that `path` names or, as a folder, holds. Throws invalid_input if a folder has none.
[[nodiscard]] std::string hf_config_path(const std::string& path);

/// Returns the model's name for a path: that of the folder for FOLDER and FOLDER/config.json, else the file's.
[[nodiscard]] std::string hf_model_name(const std::string& path);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/hf_config.ipp>
#endif
