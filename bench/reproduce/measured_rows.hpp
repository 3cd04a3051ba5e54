// SPDX-License-Identifier: BSL-1.0
#pragma once
// What others measured, re-typed: rows that reproduce/measured.cpp predicts.

#include <array>
#include <string_view>

namespace measured_rows {

/// llama.cpp's llama-bench on one sequence: tg n generates n tokens behind an empty cache (the mean), pp n is a prompt of n tokens. Several
/// GPUs share a host and split the model by layers. 0: not measured.
/// Source  XiongjieDai/GPU-Benchmarks-on-LLM-Inference, README, snapshots of May 2024.
struct llama_bench {
  std::string_view device;
  int devices;
  std::string_view model, weights;
  std::array<double, 4> decode;   ///< tokens/s at tg 512, 1024, 4096, 8192
  std::array<double, 4> prefill;  ///< tokens/s at pp 512, 1024, 4096, 8192
};
inline constexpr std::array<int, 4> lengths{512, 1024, 4096, 8192};

inline constexpr std::array llama3{
    llama_bench{"RTX 3070", 1, "llama3-8b", "q4_k_m", {72.79, 70.94, 67.01, 61.64}, {2402.51, 2283.62, 1826.59, 1419.97}},
    llama_bench{"RTX 4080", 1, "llama3-8b", "q4_k_m", {108.15, 106.22, 100.44, 93.71}, {5389.74, 5064.99, 3790.96, 2882.03}},
    llama_bench{"RTX 4080", 1, "llama3-8b", "f16", {40.58, 40.29, 39.44, 0}, {7246.97, 6758.90, 4720.22, 0}},
    llama_bench{"RTX 3090", 1, "llama3-8b", "q4_k_m", {115.42, 111.74, 97.31, 87.49}, {4030.40, 3865.39, 3169.91, 2527.40}},
    llama_bench{"RTX 3090", 1, "llama3-8b", "f16", {47.40, 46.51, 44.79, 42.62}, {4444.65, 4239.64, 3410.47, 2667.14}},
    llama_bench{"M1 Max", 1, "llama3-8b", "f16", {18.75, 18.43, 16.33, 15.03}, {517.34, 418.77, 374.09, 351.46}},
    llama_bench{"M1 Max", 1, "llama3-8b", "q4_k_m", {35.73, 34.49, 31.18, 26.84}, {408.23, 355.45, 329.84, 302.92}},
    llama_bench{"M3 Max", 1, "llama3-8b", "f16", {22.04, 22.39, 20.72, 18.74}, {769.84, 751.49, 609.97, 515.15}},
    llama_bench{"RTX 3090", 2, "llama3-8b", "f16", {47.72, 47.15, 45.56, 43.61}, {4122.66, 4690.50, 4788.60, 3851.37}},
    llama_bench{"RTX 3090", 2, "llama3-70b", "q4_k_m", {16.57, 16.29, 15.36, 14.34}, {357.32, 393.89, 379.52, 338.82}},
    llama_bench{"RTX 3090", 4, "llama3-8b", "f16", {47.07, 46.40, 44.76, 42.81}, {4608.40, 5713.41, 6596.17, 5361.52}},
    llama_bench{"RTX 3090", 6, "llama3-8b", "f16", {46.23, 45.55, 43.99, 42.15}, {3875.97, 5952.55, 9437.91, 8780.49}},
    llama_bench{"RTX 3090", 6, "llama3-70b", "f16", {5.85, 5.82, 5.76, 5.53}, {579.00, 927.23, 998.79, 813.99}}};

/// Llama 2 7B in F16, of the same source, which does not tell the lengths: taken for tg 512 and pp 512.
struct other_gpu {
  std::string_view device;
  std::string_view like;  ///< of the same generation: its shares are taken
  double decode, prefill;
};
inline constexpr std::array llama2{other_gpu{"RTX A6000", "RTX 3090", 43.96, 3716.76},
                                   other_gpu{"RTX 5000 Ada", "RTX 4080", 36.34, 5054.38},
                                   other_gpu{"RTX 6000 Ada", "RTX 4080", 50.56, 5097.77}};

/// Peaks of the data sheets: tensor cores in FP16 with FP16 sums, dense; bytes/s of the memory.
/// Sources  NVIDIA's Ampere GA102 and Ada whitepapers and data sheets. Apple tells no FLOP/s: cores x 128 lanes x 2 x clock (1.30, 1.38
/// GHz).
struct data_sheet {
  std::string_view name;
  double memory_GB, TFLOP_per_s, GB_per_s;
  bool launches;  ///< kernels of CUDA
};
inline constexpr std::array sheets{data_sheet{"RTX 3070", 8, 81.3, 448, true},       data_sheet{"RTX 4080", 16, 194.9, 716.8, true},
                                   data_sheet{"RTX 3090", 24, 142.3, 936.2, true},   data_sheet{"M1 Max", 64, 10.6, 400, false},
                                   data_sheet{"M3 Max", 64, 14.1, 400, false},       data_sheet{"RTX A6000", 48, 154.8, 768, true},
                                   data_sheet{"RTX 5000 Ada", 32, 261.1, 576, true}, data_sheet{"RTX 6000 Ada", 48, 364.2, 960, true}};

/// Prompts of 8192 tokens in chunks of 256 through 1 to 4 GPUs of one RPC host, phi-4-mini Q4_K_M. Source  llama.cpp pull request 18626.
inline constexpr std::array<double, 4> phi4_over_rpc{7558, 9553, 6543, 5008};

/// Llama 3.2 3B in 4 bits, tokens/s on one Mac, on the other, on both over Wi-Fi. Source  exo issue 489.
inline constexpr std::array<double, 3> two_macs{40, 20, 24};

/// TinyLlama 1.1B in F16, tokens/s on the remote GPU by itself, and from here over gigabit Ethernet. Source  llama.cpp discussion 6829.
inline constexpr std::array<double, 2> remote_gpu{74.8, 42};

}  // namespace measured_rows
