// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Formats in which the weights of language models are stored, by the names of files that people have.

#include <array>
#include <cstddef>
#include <string_view>

namespace hetplan::zoo {

/// What a matrix is for: formats store some with more bits.
enum class matrix_use { product, sensitive, embedding, head };

/// Bits per weight. `sensitive` are the value and the last MLP matrices, of which llama.cpp's mixtures store those of half the blocks with
/// more bits; here each has the mean of both. An embedding that is the head, too, is stored as a head.
/// Source      block sizes of GGUF: q8_0 34 B for 32 weights, q6_k 210 B, q5_k 176 B and q4_k 144 B for 256, q4_0 18 B for 32; which tensor
///             has which: llama.cpp's quantize. int8: bitsandbytes, int4: GPTQ and AWQ, groups of 128 with a scale of 16 and a zero of 4
///             bits; these two store embedding and head with 16 bits.
/// Deviations  left out: exceptions for single models (e.g. 70B, whose values have 5 bits at least) and row scales of int8.
struct weight_format {
  std::string_view name;
  std::string_view family;  ///< model_facts::weight_format, by which devices tell their shares of peaks
  double product;
  double sensitive;
  double embedding;
  double head;

  [[nodiscard]] constexpr double bits(matrix_use use) const {
    switch (use) {
      case matrix_use::product: return product;
      case matrix_use::sensitive: return sensitive;
      case matrix_use::embedding: return embedding;
      case matrix_use::head: break;
    }
    return head;
  }
};

inline constexpr double q6_k_bits = 6.5625;

inline constexpr std::array weight_formats{weight_format{"f16", "f16", 16, 16, 16, 16},
                                           weight_format{"q8_0", "q8", 8.5, 8.5, 8.5, 8.5},
                                           weight_format{"q6_k", "q6", q6_k_bits, q6_k_bits, q6_k_bits, q6_k_bits},
                                           weight_format{"q5_k_m", "q5", 5.5, (5.5 + q6_k_bits) / 2, 5.5, q6_k_bits},
                                           weight_format{"q4_k_m", "q4", 4.5, (4.5 + q6_k_bits) / 2, 4.5, q6_k_bits},
                                           weight_format{"q4_0", "q4", 4.5, 4.5, 4.5, q6_k_bits},
                                           weight_format{"int8", "q8", 8, 8, 16, 16},
                                           weight_format{"int4", "q4", 4 + 20.0 / 128, 4 + 20.0 / 128, 16, 16}};

inline constexpr auto weight_format_names = [] {
  std::array<std::string_view, weight_formats.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = weight_formats[i].name;
  return names;
}();

}  // namespace hetplan::zoo
