// SPDX-License-Identifier: BSL-1.0
#pragma once
/// safetensors files: header, and models by it and the config.json beside it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/model_description.hpp>

namespace hetplan::exchange {

struct safetensor {
  std::string name;
  std::string dtype;         ///< as "BF16"
  double elements = 1;       ///< of its shape
  std::uint64_t offset = 0;  ///< from the beginning of the data
  std::uint64_t size = 0;    ///< bytes
};

/// Headers are no longer, in bytes.
inline constexpr std::size_t max_safetensors_header = 64'000'000;

/// Parses a header: 8 bytes that tell its length, and a JSON object with data type, shape and place of each tensor.
///
/// @param head        the beginning of the file, at least to the end of the header.
/// @param file_bytes  of the whole file.
/// Throws             invalid_input with the file's name: a length beyond the file, no JSON object, a data type without a size, a size that
///                    is not that of type and shape, tensors that overlap or end beyond the file.
/// Source             huggingface/safetensors, README.md (Format).
[[nodiscard]] std::vector<safetensor> parse_safetensors(std::string_view head, std::uint64_t file_bytes, const std::string& file);

/// Returns the tensors of a file.  Throws as parse_safetensors; invalid_input if it cannot be read.
[[nodiscard]] std::vector<safetensor> read_safetensors_header(const std::string& file);

/// Returns the model of tensors and the config.json in the same folder. Layers have the bytes of their tensors.
///
/// @param path  a folder with model.safetensors.index.json or model.safetensors, that index, or a file, of which siblings
///              "-00001-of-0000N.safetensors" are the other parts.
/// Throws       as read_hf_config and parse_safetensors; invalid_input: no such files, a part that is missing or lacks a tensor of the
/// index. Source       names of tensors: huggingface/transformers, src/transformers/models/*/modeling_*.py.
[[nodiscard]] model_description read_safetensors(const std::string& path);

/// Gives tensors, by their names in Hugging Face's models, to the operators of a model.
///
/// Deviations  of packed tensors (GPTQ, AWQ, bitsandbytes) that hold several products each has the share of its rows.
void place_tensors(model_description& d, const std::vector<safetensor>& tensors);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/safetensors.ipp>
#endif
