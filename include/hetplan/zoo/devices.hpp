// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Built-in devices: peaks of data sheets, and the shares of them that programs attain.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/cluster/device.hpp>

namespace hetplan::zoo {

/// Kind of a device's network link, which sets the energy per byte. Both pairs of values are estimates.
enum class link { wifi, wire };

/// A built-in device, and where its numbers come from.
struct device_entry {
  hetplan::device device;       ///< named after its kind
  std::string_view estimated;   ///< fields of `device` without a source, comma-separated
  std::string_view data_sheet;  ///< source of peaks, memory and power; empty: all of them are estimates
  std::string_view shares_of;   ///< kind whose attained shares it has: its own, or one of the same class
  std::string_view fitted_on;   ///< measurements that those were fitted on; empty: estimates
};

namespace detail {

/// Peak rates of dense products [TFLOP/s]; 0: does not compute in it.
struct device_peaks {
  double any = 0;  ///< sustained by a training kernel at large batch, in any precision, for devices without rates by precision
  double fp32 = 0, tf32 = 0, bf16 = 0, fp16 = 0, fp8 = 0, int8 = 0;
};

/// Peaks of a GeForce since Ada, by the FP32 rate of its vector units. Tensor cores accumulate in FP32, as PyTorch does: with FP16, rates
/// in BF16, FP16 and FP8 would be twice as high. Source  NVIDIA's whitepapers on the Ada and the RTX Blackwell architecture, appendices.
constexpr device_peaks geforce(double fp32) {
  return {.fp32 = fp32, .tf32 = fp32, .bf16 = 2 * fp32, .fp16 = 2 * fp32, .fp8 = 4 * fp32, .int8 = 8 * fp32};
}
/// The same of one with Ampere architecture, which has no FP8.
/// Source  NVIDIA's whitepaper on GA102, version 2, tables 8 to 10.
constexpr device_peaks geforce_ampere(double fp32) {
  return {.fp32 = fp32, .tf32 = fp32, .bf16 = 2 * fp32, .fp16 = 2 * fp32, .int8 = 8 * fp32};
}
/// Peaks of NVIDIA's other cards with these chips, whose rates do not depend on what accumulates. Source  the same.
constexpr device_peaks ampere(double fp32) {
  return {.fp32 = fp32, .tf32 = 2 * fp32, .bf16 = 4 * fp32, .fp16 = 4 * fp32, .int8 = 8 * fp32};
}
constexpr device_peaks ada_generation(double fp32) {
  return {.fp32 = fp32, .tf32 = 2 * fp32, .bf16 = 4 * fp32, .fp16 = 4 * fp32, .fp8 = 8 * fp32, .int8 = 8 * fp32};
}
/// Source  NVIDIA's data sheets of A100, H100 and H200 (SXM).
inline constexpr device_peaks a100{.fp32 = 19.5, .tf32 = 156, .bf16 = 312, .fp16 = 312, .int8 = 624};
inline constexpr device_peaks hopper{.fp32 = 66.9, .tf32 = 494.7, .bf16 = 989.4, .fp16 = 989.4, .fp8 = 1978.9, .int8 = 1978.9};
/// A GPU of Apple, whose FP16 is as fast as its FP32: 256 FLOP per core and cycle.
constexpr device_peaks apple_gpu(double fp32) { return {.fp32 = fp32, .fp16 = fp32}; }
/// CPU cores of Arm with FP16 and dot products of INT8.
constexpr device_peaks arm_cores(double fp32) { return {.fp32 = fp32, .fp16 = 2 * fp32, .int8 = 4 * fp32}; }

/// A row of the table of devices, in the units of data sheets.
struct device_row {
  std::string_view kind;
  device_peaks tflops;
  double memory_gb;
  double budget_gb;  ///< usable by a plan; the rest is for the system and other programs
  double bandwidth_gb_per_s;
  double interconnect_gb_per_s;  ///< one way; 0: none
  double memory_overhead_gb;
  double idle_w;
  double active_w;
  std::string_view attains;  ///< kind of the row of attained_rows; empty: its own
  std::string_view estimated;
  std::string_view data_sheet;
  double memory_w = 0;  ///< while memory is the limit of the work; 0: not measured, so as active_w
};

// Fields without a source.
inline constexpr std::string_view idle = "power.idle", of_card = "power.idle, memory_overhead", of_board = "memory_budget, power.idle";
inline constexpr std::string_view of_orin = "memory_budget, memory_overhead, power.idle", of_cpu = "compute, memory_budget, power.idle";
inline constexpr std::string_view of_apple = "memory_budget, power", of_chip = "compute, memory_budget, power";
inline constexpr std::string_view of_genio = "compute, memory_budget, memory_bandwidth, power";

inline constexpr std::string_view ga102 = "GA102 whitepaper", ada = "Ada whitepaper";
inline constexpr std::string_view like_ga102 = "product page; ratios of the GA102 whitepaper";
inline constexpr std::string_view like_ada = "product page; ratios of the Ada whitepaper";

// Peaks are dense. Of CPUs: cores x clock x operations per cycle. Memory is what drivers report, except for the first ten, which count 1e9
// bytes for each GB of the data sheet: that leaves room for the CUDA context. The budget of the A40 is the memory in Dora's table 2.
// Power of the H100: mean of the board in loops of products of 1 row (memory-bound) and of 256 to 4096 rows, and without work.
inline constexpr std::array<device_row, 42> device_rows{{
    {"rtx4060ti", geforce(22.06), 8, 8, 288, 0, 0, 20, 160, "", idle, like_ada},
    {"rtx4050", geforce(8.99), 6, 6, 192, 0, 0, 8, 50, "rtx4080", idle, "product page (50 W); ratios of the Ada whitepaper"},
    {"snapdragon-8-elite", {.any = 1.6}, 12, 8, 84.8, 0, 0, 1, 8, "", of_chip, "LPDDR5X-10600"},
    {"genio-720", {.any = 0.9}, 16, 12, 34, 0, 0, 2, 9, "snapdragon-8-elite", of_genio, ""},
    {"genio-520", {.any = 0.7}, 16, 12, 26, 0, 0, 2, 7, "snapdragon-8-elite", of_genio, ""},
    {"a40", ampere(37.42), 48, 16, 695.8, 0, 0, 30, 300, "", idle, "A40 data sheet"},
    {"v100", {0, 14.13, 0, 0, 112, 0, 0}, 16, 16, 897, 0, 0, 30, 250, "", idle, "V100 data sheet (PCIe)"},
    {"jetson-nano", {.any = 0.2358}, 4, 3, 25.6, 0, 0, 1.5, 10, "jetson-nx", of_board, "Jetson Nano data sheet"},
    {"jetson-tx2", {.any = 0.7501}, 8, 6, 59.7, 0, 0, 2, 15, "jetson-nx", of_board, "Jetson TX2 data sheet"},
    {"jetson-nx", {.any = 0.8448}, 8, 6, 51.2, 0, 0, 2, 15, "", of_board, "Xavier NX data sheet DA-09366"},
    {"rtx3060", geforce_ampere(12.74), 12.88, 12.88, 360, 0, 0.4, 13, 170, "", of_card, like_ga102},
    {"rtx3070", geforce_ampere(20.31), 8.58, 8.58, 448, 0, 0.4, 12, 220, "", of_card, ga102},
    {"rtx3080", geforce_ampere(29.77), 10.73, 10.73, 760, 0, 0.4, 20, 320, "", of_card, "GA102 whitepaper (10 GB)"},
    {"rtx3090", geforce_ampere(35.58), 25.76, 25.76, 936.2, 0, 0.4, 25, 350, "", of_card, ga102},
    {"rtx4060", geforce(15.11), 8.58, 8.58, 272, 0, 0.4, 8, 115, "rtx4080", of_card, like_ada},
    {"rtx4070", geforce(29.15), 12.88, 12.88, 504, 0, 0.4, 12, 200, "rtx4080", of_card, like_ada},
    {"rtx4080", geforce(48.74), 17.17, 17.17, 716.8, 0, 0.4, 15, 320, "", of_card, ada},
    {"rtx4090", geforce(82.58), 25.76, 25.76, 1008, 0, 0.4, 20, 450, "", of_card, ada},
    {"rtx5090", geforce(104.8), 34.19, 34.19, 1792, 0, 0.4, 25, 575, "", of_card, "RTX Blackwell whitepaper"},
    {"a6000", ampere(38.7), 51.53, 51.53, 768, 56.25, 0.4, 20, 300, "", of_card, ga102},
    {"rtx5000-ada", ada_generation(65.3), 34.36, 34.36, 576, 0, 0.4, 15, 250, "", of_card, "RTX 5000 Ada data sheet"},
    {"rtx6000-ada", ada_generation(91.1), 51.53, 51.53, 960, 0, 0.4, 20, 300, "", of_card, "RTX PRO Blackwell whitepaper"},
    {"l4", {0, 30.3, 60, 121, 121, 242.5, 242.5}, 24.15, 24.15, 300, 0, 0.4, 12, 72, "rtx5000-ada", of_card, "L4 data sheet"},
    {"t4", {0, 8.1, 0, 0, 65, 0, 130}, 16.1, 16.1, 320, 0, 0.4, 10, 70, "v100", of_card, "T4 data sheet"},
    {"a100-40gb", a100, 42.5, 42.5, 1555, 300, 0.5, 45, 400, "a100-80gb", of_card, "A100 data sheet (SXM)"},
    {"a100-80gb", a100, 85.2, 85.2, 2039, 300, 0.5, 55, 400, "", of_card, "A100 data sheet (SXM)"},
    {"h100", hopper, 85.5, 85.5, 3350, 450, 0.8, 139, 690, "", "", "H100 data sheet (SXM)", 470},
    {"h200", hopper, 150.7, 150.7, 4800, 450, 0.8, 130, 700, "h100", of_card, "H200 data sheet (SXM)"},
    {"m1", apple_gpu(2.6), 17.18, 11.4, 68.25, 0, 0, 5, 20, "", of_apple, "Apple (8-core GPU, 16 GB)"},
    {"m1-max", apple_gpu(10.4), 68.7, 51.5, 400, 0, 0, 8, 60, "", of_apple, "Apple (32-core GPU, 64 GB)"},
    {"m2-ultra", apple_gpu(27.2), 206.2, 154.6, 800, 0, 0, 12, 150, "", of_chip, "Apple (76-core GPU, 192 GB)"},
    {"m3-max", apple_gpu(14.2), 68.7, 51.5, 400, 0, 0, 8, 70, "", of_chip, "Apple (40-core GPU, 64 GB)"},
    {"m4", apple_gpu(4.6), 17.18, 11.4, 120, 0, 0, 4, 25, "", of_chip, "Apple (10-core GPU, 16 GB)"},
    {"m4-pro", apple_gpu(9.2), 51.5, 38.6, 273, 0, 0, 6, 50, "", of_chip, "Apple (20-core GPU, 48 GB)"},
    {"m4-max", apple_gpu(18.4), 68.7, 51.5, 546, 0, 0, 8, 80, "", of_chip, "Apple (40-core GPU, 64 GB)"},
    {"raspberry-pi-5", arm_cores(0.1536), 8.58, 7.5, 17.07, 0, 0, 3, 12, "", of_board, "4 x A76, 2.4 GHz; LPDDR4X-4267"},
    {"jetson-orin-nano", {0, 2.09, 0, 16.7, 16.7, 0, 33.5}, 8.2, 6.5, 102.4, 0, 0.3, 5, 25, "", of_orin, "Orin Nano Super data sheet"},
    {"jetson-agx-orin", {0, 5.3, 0, 42.5, 42.5, 0, 85}, 65.9, 58, 204.8, 0, 0.3, 9, 60, "", of_orin, "AGX Orin brief (64 GB; GPU)"},
    {"ryzen-9-7950x", {0, 2.3, 0, 4.61, 0, 0, 9.22}, 68.7, 60, 83.2, 0, 0, 30, 170, "", of_cpu, "16 x Zen 4, 4.5 GHz; 2 x DDR5-5200"},
    {"xeon-8480", {0, 7.17, 0, 114.7, 0, 0, 229.4}, 549.8, 500, 307.2, 0, 0, 100, 350, "", of_cpu, "56 cores, 2 GHz, AMX; 8 x DDR5-4800"},
    {"snapdragon-8-gen-3", arm_cores(0.35), 16, 11, 76.8, 0, 0, 1, 8, "", of_chip, "CPU: 1 x X4, 5 x A720; LPDDR5X-9600"},
    {"dimensity-9300", arm_cores(0.505), 16, 11, 76.8, 0, 0, 1, 8, "snapdragon-8-gen-3", of_chip, "CPU: 4 x X4, 4 x A720; LPDDR5T-9600"},
}};

/// A share for each of the weight formats.
struct format_shares {
  double f16, q8, q4, other;
  constexpr format_shares(double all) : format_shares(all, all, all, all) {}
  constexpr format_shares(double of_f16, double of_q8, double of_q4, double of_other)
      : f16(of_f16), q8(of_q8), q4(of_q4), other(of_other) {}
};

/// What programs attain on a device. Other devices of its class take its row.
struct attained_row {
  std::string_view kind;
  format_shares efficiency, memory_efficiency;
  double cache_efficiency;
  double half_rows;
  double launch_us;
  double send_overhead_us;
  std::string_view fitted_on;
};

// f16, q8 and q4 are what llama.cpp attains, `other` what PyTorch does, or where that was not measured the share of a similar device; the
// H100 has shares of PyTorch and, for q8 and q4, estimates. Fitted with the 9 kernels a block of the built-in models, with one share of the
// bandwidth for all formats where the rows allow it. A launch takes 8.7 us without CUDA graphs, 2.2 to 3.6 with them: those programs launch
// some 13 kernels a block.
// half_rows: on the A40 the products alone have 88, on the H100 92. All but the H100 have less, the same in a class: a step with 4-bit
// weights is bound by memory, and this is about the most with which the formula says so. send_overhead: from one card to the next in a
// host, from rows of 2 to 8 RTX 3090 and RTX 4090. What was left out of the fit, and how well it is predicted: docs/reference/zoo.md.
inline constexpr std::array<attained_row, 30> attained_rows{{
    {"rtx3060", {0.94, 1, 1, 0.85}, {0.98}, 0.35, 16, 8.7, 200, "7B Q4 pp 512, tg 128 (15013)"},
    {"rtx3070", {0.94, 0.87, 0.87, 0.85}, {0.93}, 0.47, 16, 8.7, 200, "8B Q4 pp 512, tg 512, 8192"},
    {"rtx3080", {0.94, 0.93, 0.93, 0.85}, {0.94}, 0.34, 16, 8.7, 200, "8B Q4 pp 512, tg 512, 8192"},
    {"rtx3090", {0.94, 0.84, 0.84, 0.85}, {0.85}, 0.24, 16, 8.7, 200, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"rtx4060ti", {1, 1, 1, 0.85}, {0.97}, 0.5, 24, 8.7, 0, "7B Q4 pp 512, tg 128 (15013)"},
    {"rtx4080", {1, 0.84, 0.84, 0.85}, {0.96}, 0.52, 24, 8.7, 200, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"rtx4090", {0.9, 0.67, 0.67, 0.85}, {0.93}, 0.38, 24, 8.7, 200, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"rtx5090", {0.9, 0.95, 0.95, 0.85}, {0.89}, 0.4, 24, 3.6, 200, "7B Q4 pp 512, tg 128 (15013)"},
    {"a6000", {0.43, 0.36, 0.36, 0.78}, {0.87}, 0.4, 24, 8.7, 200, "8B F16, Q4 pp 1024, tg 1024"},
    {"rtx5000-ada", {0.35, 0.26, 0.26, 0.7}, {0.95}, 0.4, 24, 8.7, 200, "8B F16, Q4 pp 1024, tg 1024"},
    {"rtx6000-ada", {0.27, 0.24, 0.24, 0.7}, {0.95}, 0.4, 24, 8.7, 200, "8B F16, Q4 pp 1024, tg 1024"},
    {"a40", {0.42, 0.33, 0.33, 0.78}, {0.79}, 0.4, 24, 8.7, 0, "8B F16, Q4 pp 1024, tg 1024; 342 products (vidur)"},
    {"v100", {0.4, 0.37, 0.37, 0.6}, {0.81}, 0.4, 12, 8.7, 0, "7B Q4 pp 512, tg 128 (15013)"},
    {"a100-80gb", {0.38, 0.29, 0.29, 0.75}, {0.5, 0.5, 0.5, 0.8}, 0.4, 24, 8.7, 0, "8B F16, Q4 pp 1024, tg 1024 (PCIe, SXM)"},
    {"h100",
     {0.62, 0.45, 0.45, 0.62},
     {0.745, 0.6, 0.4, 0.745},
     1,
     96,
     2.2,
     0,
     "8B bf16 MLP of 1 to 16 384 rows and decode (PyTorch); 7B Q4 tg 128 (15013)"},
    {"m1", {0.6, 0.58, 0.58, 0.6}, {0.76, 0.84, 0.75, 0.76}, 0.2, 4, 11.6, 0, "7B Q8, Q4 tg 128 (4167)"},
    {"m1-max", {0.71, 0.56, 0.56, 0.71}, {0.76, 0.6, 0.49, 0.76}, 0.2, 4, 11.6, 0, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"m2-ultra", {0.62, 0.52, 0.52, 0.62}, {0.8, 0.75, 0.65, 0.8}, 0.15, 4, 11.6, 0, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"m3-max", {0.78, 0.7, 0.7, 0.78}, {0.9, 0.8, 0.7, 0.9}, 0.21, 4, 11.6, 0, "8B F16, Q4 pp 512, tg 512, 8192"},
    {"m4", {0.66, 0.64, 0.64, 0.66}, {0.84, 0.84, 0.83, 0.84}, 0.2, 4, 11.6, 0, "7B F16, Q8, Q4 pp 512, tg 128 (4167)"},
    {"m4-pro", {0.67, 0.63, 0.63, 0.67}, {0.89, 0.89, 0.86, 0.89}, 0.2, 4, 11.6, 0, "7B F16, Q8, Q4 pp 512, tg 128 (4167)"},
    {"m4-max", {0.67, 0.64, 0.64, 0.67}, {0.86, 0.86, 0.8, 0.86}, 0.2, 4, 11.6, 0, "7B F16, Q8, Q4 pp 512, tg 128 (4167)"},
    {"jetson-orin-nano", {0.32}, {0.83}, 0.4, 16, 8.7, 0, "3B, 8B INT4 decode (NVIDIA)"},
    {"jetson-agx-orin", {0.32}, {0.73}, 0.4, 16, 14.4, 0, "7B Q4 pp 512, tg 128 (15013)"},
    {"jetson-nx", {1}, {0.73}, 0.4, 2, 40, 0, ""},
    {"raspberry-pi-5", {0.25, 0.25, 0.25, 0.55}, {0.6}, 0.5, 1, 7.2, 0, "3B, 8B Q4 decode (Ollama); ResNet-50 (ncnn)"},
    {"ryzen-9-7950x", {0.62, 0.5, 0.48, 0.6}, {0.77, 0.75, 0.74, 0.77}, 0.5, 2, 2.9, 0, "8B BF16, Q5 pp 512, tg 128 (ik_llama.cpp)"},
    {"xeon-8480", {0.3}, {0.75}, 0.5, 16, 5, 0, ""},
    {"snapdragon-8-elite", {1}, {0.8}, 0.5, 4, 58, 0, "3B, 8B 4-bit decode (AI Hub)"},
    {"snapdragon-8-gen-3",
     {0.17, 0.73, 0.73, 0.5},
     {0.64, 0.57, 0.57, 0.64},
     0.5,
     1,
     7.2,
     0,
     "1B, 3B, 8B BF16, 4-bit (ExecuTorch); ResNet-50 (ncnn)"},
}};

inline constexpr auto device_kinds = [] {
  std::array<std::string_view, device_rows.size()> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = device_rows[i].kind;
  return kinds;
}();

}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> device_kinds() { return detail::device_kinds; }

[[nodiscard]] inline bool is_device_kind(std::string_view name) { return std::ranges::find(device_kinds(), name) != device_kinds().end(); }

/// Returns a built-in device and where its numbers come from. Throws invalid_input (unknown kind).
[[nodiscard]] device_entry find_device(std::string_view kind, link joined = link::wifi);

/// Returns a built-in device with a given name. Throws invalid_input (unknown kind).
[[nodiscard]] hetplan::device device(std::string_view kind, std::string name, link joined = link::wifi);

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/devices.ipp>
#endif
