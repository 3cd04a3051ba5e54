// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GGUF, the files of llama.cpp: header, and models by it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/model_description.hpp>

namespace hetplan::exchange {

/// Stores `block` elements of a row in `size` bytes.
struct gguf_type {
  std::uint32_t id;
  std::string_view name;
  std::uint32_t block;
  std::uint32_t size;
  std::string_view family;  ///< model_facts::weight_format
};

/// Source  ggml-org/llama.cpp, gguf-py/gguf/constants.py (GGMLQuantizationType, GGML_QUANT_SIZES).
inline constexpr std::array gguf_types{
    gguf_type{0, "F32", 1, 4, "f32"},        gguf_type{1, "F16", 1, 2, "f16"},        gguf_type{2, "Q4_0", 32, 18, "q4"},
    gguf_type{3, "Q4_1", 32, 20, "q4"},      gguf_type{6, "Q5_0", 32, 22, "q5"},      gguf_type{7, "Q5_1", 32, 24, "q5"},
    gguf_type{8, "Q8_0", 32, 34, "q8"},      gguf_type{9, "Q8_1", 32, 40, "q8"},      gguf_type{10, "Q2_K", 256, 84, "q2"},
    gguf_type{11, "Q3_K", 256, 110, "q3"},   gguf_type{12, "Q4_K", 256, 144, "q4"},   gguf_type{13, "Q5_K", 256, 176, "q5"},
    gguf_type{14, "Q6_K", 256, 210, "q6"},   gguf_type{15, "Q8_K", 256, 292, "q8"},   gguf_type{16, "IQ2_XXS", 256, 66, "q2"},
    gguf_type{17, "IQ2_XS", 256, 74, "q2"},  gguf_type{18, "IQ3_XXS", 256, 98, "q3"}, gguf_type{19, "IQ1_S", 256, 50, "q1"},
    gguf_type{20, "IQ4_NL", 32, 18, "q4"},   gguf_type{21, "IQ3_S", 256, 110, "q3"},  gguf_type{22, "IQ2_S", 256, 82, "q2"},
    gguf_type{23, "IQ4_XS", 256, 136, "q4"}, gguf_type{24, "I8", 1, 1, "q8"},         gguf_type{25, "I16", 1, 2, "f16"},
    gguf_type{26, "I32", 1, 4, "f32"},       gguf_type{27, "I64", 1, 8, "f32"},       gguf_type{28, "F64", 1, 8, "f32"},
    gguf_type{29, "IQ1_M", 256, 56, "q1"},   gguf_type{30, "BF16", 1, 2, "f16"},      gguf_type{34, "TQ1_0", 256, 54, "q1"},
    gguf_type{35, "TQ2_0", 256, 66, "q2"},   gguf_type{39, "MXFP4", 32, 17, "q4"}};

struct gguf_tensor {
  std::string name;
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};  ///< the fastest dimension first, as in the file
  const gguf_type* type = nullptr;
  std::uint64_t offset = 0;  ///< from the beginning of the data
  std::uint64_t size = 0;    ///< bytes

  [[nodiscard]] double elements() const {
    return static_cast<double>(shape[0]) * static_cast<double>(shape[1]) * static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
  }
};

/// What metadata hold under a key: a number, a short text, or a short list of numbers. Of others only the length is kept.
struct gguf_value {
  std::uint64_t position = 0;  ///< in the file
  std::optional<double> number = {};
  std::optional<std::string> text = {};
  std::vector<double> list = {};
  std::uint64_t length = 0;  ///< of a list or a text
  bool is_list = false;
};

struct gguf_header {
  std::string file;
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::uint64_t data = 0;  ///< position of the tensors
  std::map<std::string, gguf_value, std::less<>> metadata;
  std::vector<gguf_tensor> tensors;
};

/// Parses the beginning of a file of `file_bytes` bytes. Returns nothing if `head` ends before the header does: read more, and try again.
///
/// Nothing is allocated before a count is known to fit into the file.
/// Throws      invalid_input, one line with file and byte: no GGUF, another version than 2 and 3, the other byte order, counts or lengths
///             beyond the file, unknown types, sizes that do not go in blocks, offsets that are not aligned, tensors that overlap, end
///             beyond the file or have a name twice, a key twice.
/// Complexity  O(length of the header log tensors).
/// Source      ggml-org/ggml, docs/gguf.md; ggml/include/gguf.h.
[[nodiscard]] std::optional<gguf_header> parse_gguf(std::string_view head, std::uint64_t file_bytes, const std::string& file);

/// Headers end within so many bytes; vocabularies take some 10 MB.
inline constexpr std::size_t max_gguf_header = 256 << 20;

/// Reads the header of a file, and no tensors.  Throws as parse_gguf; invalid_input if the file cannot be read, or for a longer header.
[[nodiscard]] gguf_header read_gguf_header(const std::string& file);

/// Architectures (`general.architecture`) that are known.
inline constexpr std::array<std::string_view, 13> gguf_architectures{"bert", "gemma", "gemma2", "gemma3",   "gpt2",  "gptneox", "llama",
                                                                     "phi2", "phi3",  "qwen2",  "qwen2moe", "qwen3", "qwen3moe"};

/// Returns the model of a GGUF file. Of a split model any file names all; its siblings lie beside it.
///
/// Layers have the bytes of their tensors. Metadata tell layers, widths, heads of keys and values (by layer, if they are a list), context,
/// windows and experts; tensors tell biases, norms, whether the head is the embedding, and the widths of MLPs.
///
/// Throws      as parse_gguf; invalid_input: an unknown architecture; metadata that are missing or contradict each other or the tensors;
///             siblings that are missing or not of the same model.
/// Source      ggml-org/llama.cpp, gguf-py/gguf/constants.py and tensor_mapping.py; src/llama-model.cpp for windows.
[[nodiscard]] model_description read_gguf(const std::string& file);

namespace detail {
/// Returns the model of headers, which are the parts of one.
[[nodiscard]] model_description gguf_model(const std::vector<gguf_header>& parts, const std::string& name);
}  // namespace detail

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/gguf.ipp>
#endif
