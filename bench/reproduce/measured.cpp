// SPDX-License-Identifier: BSL-1.0
// Devices fitted to a few published numbers, and the judge's predictions of all the others: the sections of
// docs/reproduction/measured.md (update.py).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/fit/fit_devices.hpp>
#include <hetplan/io/measured_csv.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/models.hpp>

#include "reproduce/measured_rows.hpp"
#include "reproduce/sections.hpp"
#include "support/measured_memory.hpp"

using namespace hetplan;
using bench::number, bench::row, bench::sections;
using fit::measured, fit::measurement, fit::parameter_kind;

namespace {

/// What llama.cpp of May 2024 does without flash attention, see language models in docs/semantics.md: it writes scores out, and its prompts
/// are chunks of 512 tokens.
constexpr double score_bytes = 32;
constexpr int micro_batch = 512, chunks_in_flight = 3;
/// Where a fit of its devices begins; no row of those fitted tells the share of the cache.
constexpr double cache_share = 0.4, launch_s = 9e-6;

std::string percent(double share) { return number("%.1f %%", share * 100); }
std::string signed_percent(double share) { return number("%+.1f %%", share * 100); }

using model = std::shared_ptr<const planning_graph>;

model language_model(std::string_view name, std::string_view weights, double scores) {
  static std::map<std::string, model> made;
  model& m = made[std::string(name) + " " + std::string(weights) + number(" %g", scores)];
  if (m == nullptr) {
    zoo::model_options o;
    o.weights = weights;
    o.score_bytes = scores;
    m = std::make_shared<const planning_graph>(zoo::model(name, o));
  }
  return m;
}

device device_of(const measured_rows::data_sheet& s) {
  device d;
  d.name = d.kind = s.name;
  d.memory = bytes(s.memory_GB * 1e9);
  d.compute = flops_per_second(s.TFLOP_per_s * 1e12);
  d.memory_bandwidth = bytes_per_second(s.GB_per_s * 1e9);
  d.cache_efficiency = cache_share;
  d.launch = seconds(s.launches ? launch_s : 0);
  return d;
}

/// Rows of a table: predicted, and how far off.
struct table {
  std::vector<measurement> rows = {};
  std::vector<double> predicted = {};

  void add(const measurement& m, double p) {
    rows.push_back(m);
    predicted.push_back(p);
  }
  /// Returns the rows' number, median and worst deviation of one quantity.
  [[nodiscard]] row cells(measured what) const {
    for (const fit::deviation& d : fit::deviations(rows, predicted)) {
      if (d.what == what) return {std::to_string(d.rows), percent(d.median), percent(d.worst)};
    }
    return {"0", "-", "-"};
  }
  [[nodiscard]] std::string median_and_worst(measured what) const {
    const row c = cells(what);
    const auto bare = [](const std::string& cell) { return cell.substr(0, cell.find(' ')); };
    return c[1] == "-" ? "-" : bare(c[1]) + ", " + bare(c[2]);
  }
};

struct bench_row {
  const measured_rows::llama_bench* of;
  int length;
  measurement m;
  bool is_fitted = false;
};

/// Returns the rows of llama-bench of a line, on so many devices from the first on.
std::vector<bench_row> rows_of(const measured_rows::llama_bench& line, device_id first, int in_flight = chunks_in_flight) {
  std::vector<bench_row> all;
  const std::size_t longest = line.prefill.back() > 0 ? 3 : 2;
  for (const bool prompt : {false, true}) {
    for (std::size_t i = 0; i < measured_rows::lengths.size(); ++i) {
      const double value = prompt ? line.prefill[i] : line.decode[i];
      if (value <= 0) continue;
      const int n = measured_rows::lengths[i];
      measurement m{.model = language_model(line.model, line.weights, score_bytes), .context = 0, .value = value};
      m.where = std::string(line.device) + (prompt ? " pp " : " tg ") + std::to_string(n);
      for (int d = 0; d < line.devices; ++d) m.devices.emplace_back(first.index() + static_cast<std::size_t>(d));
      if (prompt) {
        m.what = measured::prefill_tokens_per_s;
        m.prompt = n;
        m.prompt_chunk = micro_batch;
        m.chunks_in_flight = line.devices > 1 ? in_flight : 0;
      } else {
        m.tokens = n;
      }
      all.push_back({&line, n, std::move(m), line.devices == 1 && (i == 0 || (prompt && i == longest))});
    }
  }
  return all;
}

std::string share_text(const attained_share& s, const std::string& format) {
  for (const auto& [known, share] : s.by_format) {
    if (known == format) return number("%.3f", share);
  }
  return s.by_format.empty() ? number("%.3f", s.of_all) : "-";
}

void add_gpu_row(std::vector<row>& csv, const bench_row& r, double predicted, bool is_fitted) {
  csv.push_back({std::string(r.of->device), std::to_string(r.of->devices), std::string(r.of->model), std::string(r.of->weights),
                 (r.m.what == measured::prefill_tokens_per_s ? "pp " : "tg ") + std::to_string(r.length), number("%.6g", r.m.value),
                 number("%.4g", predicted), signed_percent(predicted / r.m.value - 1), is_fitted ? "yes" : "no"});
}

/// Fits every GPU that was measured alone, and predicts its other rows. Returns the fitted cluster.
cluster add_single(const sections& page, std::vector<row>& csv) {
  std::vector<device> devices;
  for (const measured_rows::data_sheet& s : measured_rows::sheets) devices.push_back(device_of(s));
  const cluster start("gpus", devices, shared_medium{bytes_per_second(1e9)});
  std::vector<bench_row> all;
  for (const measured_rows::llama_bench& line : measured_rows::llama3) {
    if (line.devices > 1 || (page.quick() && line.device != "RTX 3090")) continue;
    for (bench_row& r : rows_of(line, start.find(line.device))) all.push_back(std::move(r));
  }
  std::vector<measurement> fitted;
  for (const bench_row& r : all) {
    if (r.is_fitted) fitted.push_back(r.m);
  }
  const fit::fit_result result = fit::fit_devices(start, fitted, {.digits = 6});

  std::vector<row> summary{
      {"device", "weights", "efficiency", "of memory", "launch", "decode", "prefill", "decode, other", "prefill, other"}};
  table others, across;
  for (const measured_rows::llama_bench& line : measured_rows::llama3) {
    if (line.devices > 1 || (page.quick() && line.device != "RTX 3090")) continue;
    const device& d = result.cluster[start.find(line.device)];
    const std::string format = language_model(line.model, line.weights, score_bytes)->facts().weight_format;
    const std::string other = format == "f16" ? "q4" : "f16";
    device as_other = d;
    const bool has_other = share_text(d.efficiency, other) != "-";
    if (has_other) {
      as_other.efficiency = attained_share(share_for(d.efficiency, other, d, "efficiency"));
      as_other.memory_efficiency = attained_share(share_for(d.memory_efficiency, other, d, "memory_efficiency"));
    }
    const cluster swapped("one", as_other);
    table mine, theirs;
    for (bench_row& r : all) {
      if (r.of != &line) continue;
      const double predicted = fit::predict(r.m, result.cluster);
      add_gpu_row(csv, r, predicted, r.is_fitted);
      if (!r.is_fitted) {
        mine.add(r.m, predicted);
        others.add(r.m, predicted);
      }
      if (has_other) {
        measurement m = r.m;
        m.devices = {device_id(0)};
        const double p = fit::predict(m, swapped);
        theirs.add(m, p);
        across.add(m, p);
      }
    }
    summary.push_back({d.name, format, share_text(d.efficiency, format), share_text(d.memory_efficiency, format),
                       number("%.1f us", d.launch.value() * 1e6), mine.median_and_worst(measured::decode_tokens_per_s),
                       mine.median_and_worst(measured::prefill_tokens_per_s), theirs.median_and_worst(measured::decode_tokens_per_s),
                       theirs.median_and_worst(measured::prefill_tokens_per_s)});
  }
  summary.push_back({"all", "", "", "", "", others.median_and_worst(measured::decode_tokens_per_s),
                     others.median_and_worst(measured::prefill_tokens_per_s), across.median_and_worst(measured::decode_tokens_per_s),
                     across.median_and_worst(measured::prefill_tokens_per_s)});
  page.add("single", bench::markdown_table(summary));
  return result.cluster;
}

/// GPUs of which nothing was fitted: the shares of another one of their generation.
void add_others(const cluster& gpus, bool quick, std::vector<row>& csv) {
  for (const measured_rows::other_gpu& g : measured_rows::llama2) {
    if (quick && g.like != "RTX 3090") continue;
    device d = gpus[gpus.find(g.device)];
    const device& like = gpus[gpus.find(g.like)];
    d.efficiency = like.efficiency;
    d.memory_efficiency = like.memory_efficiency;
    d.launch = like.launch;
    d.half_rows = like.half_rows;
    const cluster one("one", d);
    const measured_rows::llama_bench line{g.device, 1, "llama2-7b", "f16", {g.decode, 0, 0, 0}, {g.prefill, 0, 0, 0}};
    for (const bench_row& r : rows_of(line, device_id(0))) add_gpu_row(csv, r, fit::predict(r.m, one), false);
  }
}

cluster several(const device& like, int n) {
  std::vector<device> all;
  for (int i = 0; i < n; ++i) {
    device d = like;
    d.kind = like.name;
    d.name = "gpu" + std::to_string(i);
    all.push_back(std::move(d));
  }
  return cluster("host", all, shared_medium{bytes_per_second(1e10)});
}

/// Several RTX 3090 of one host, whose bandwidth is fitted to one row.
void add_pipelines(const sections& page, const cluster& gpus, std::vector<row>& csv) {
  const cluster start = several(gpus[gpus.find("RTX 3090")], 6);
  std::vector<row> rows{{"GPUs", "model", "decode", "prefill"}};
  std::vector<row> by_chunks{{"chunks in flight", "host", "decode", "prefill"}};
  for (const int in_flight : {1, 2, 3, 4}) {
    if (page.quick() && in_flight != chunks_in_flight) continue;
    std::vector<bench_row> all;
    std::vector<measurement> fitted;
    for (const measured_rows::llama_bench& line : measured_rows::llama3) {
      if (line.devices == 1) continue;
      for (bench_row& r : rows_of(line, device_id(0), in_flight)) {
        r.is_fitted = line.devices == 4 && r.length == 1024 && r.m.what == measured::prefill_tokens_per_s;
        if (r.is_fitted) fitted.push_back(r.m);
        all.push_back(std::move(r));
      }
    }
    const fit::fit_result result = fit::fit_devices(start, fitted, {.parameters = {}, .resources = {"shared"}, .digits = 6});
    table others;
    std::map<const measured_rows::llama_bench*, table> by_line;
    for (const bench_row& r : all) {
      const double p = fit::predict(r.m, result.cluster);
      if (!r.is_fitted) {
        by_line[r.of].add(r.m, p);
        others.add(r.m, p);
      }
      if (in_flight == chunks_in_flight) add_gpu_row(csv, r, p, r.is_fitted);
    }
    by_chunks.push_back({std::to_string(in_flight), readable(bytes(result.parameters.front().after)) + "/s",
                         others.median_and_worst(measured::decode_tokens_per_s), others.median_and_worst(measured::prefill_tokens_per_s)});
    if (in_flight != chunks_in_flight) continue;
    for (const measured_rows::llama_bench& line : measured_rows::llama3) {
      if (line.devices == 1) continue;
      rows.push_back({std::to_string(line.devices), std::string(line.model) + " " + std::string(line.weights),
                      by_line[&line].median_and_worst(measured::decode_tokens_per_s),
                      by_line[&line].median_and_worst(measured::prefill_tokens_per_s)});
    }
  }
  page.add("pipelines", bench::markdown_table(rows));
  page.add("chunks", bench::markdown_table(by_chunks, 1));
}

/// A fourth GPU that makes a prompt slower.
void add_rpc(const sections& page) {
  device gpu{.name = "gpu", .memory = 24_GB, .compute = flops_per_second(165e12), .memory_bandwidth = bytes_per_second(1e12)};
  std::vector<row> rows{{"chunks in flight", "host", "1 GPU", "2", "3", "4"}};
  rows.push_back({"measured", ""});
  for (const double v : measured_rows::phi4_over_rpc) rows.back().push_back(number("%.0f", v));
  const cluster start = several(gpu, 4);
  for (const int in_flight : {1, 2, 4}) {
    std::vector<measurement> all;
    for (std::size_t n = 1; n <= measured_rows::phi4_over_rpc.size(); ++n) {
      measurement m{.model = language_model("phi4-mini", "q4_k_m", 0), .what = measured::prefill_tokens_per_s, .prompt = 8192};
      for (std::size_t d = 0; d < n; ++d) m.devices.emplace_back(d);
      m.prompt_chunk = 256;
      m.chunks_in_flight = n > 1 ? in_flight : 0;
      m.value = measured_rows::phi4_over_rpc[n - 1];
      all.push_back(std::move(m));
    }
    const std::vector<measurement> fitted{all[0], all[2]};
    const fit::fit_result result =
        fit::fit_devices(start, fitted, {.parameters = {parameter_kind::efficiency}, .resources = {"shared"}, .digits = 6});
    row cells{std::to_string(in_flight), readable(bytes(result.parameters[1].after)) + "/s"};
    for (const measurement& m : all) cells.push_back(number("%.0f", fit::predict(m, result.cluster)));
    rows.push_back(std::move(cells));
  }
  page.add("rpc", bench::markdown_table(rows, 1));
}

/// Two machines whose own speeds are known: what a network of a stated latency makes of them together, and which one number more, told by
/// that row alone, explains it.
void add_two(const sections& page) {
  struct two_machines {
    const char *who, *model, *weights;
    std::array<double, 2> alone, memory_GB;
    double together;
    bytes_per_second capacity;
    seconds latency;
    const char* network;
    parameter_kind told;
    const char* by_this_row;
  };
  const two_machines macs{.who = "two Macs, Llama 3.2 3B",
                          .model = "llama3.2-3b",
                          .weights = "int4",
                          .alone = {measured_rows::two_macs[0], measured_rows::two_macs[1]},
                          .memory_GB = {16, 16},
                          .together = measured_rows::two_macs[2],
                          .capacity = 300_Mbit_per_s,
                          .latency = seconds(1e-3),
                          .network = "Wi-Fi of 1 ms",
                          .told = parameter_kind::latency,
                          .by_this_row = "%.2f ms, by this row"};
  const two_machines remote{.who = "a remote GPU, TinyLlama",
                            .model = "tinyllama-1.1b",
                            .weights = "f16",
                            .alone = {1e4, measured_rows::remote_gpu[0]},  // the first has one layer and takes no time
                            .memory_GB = {1e-3, 16},
                            .together = measured_rows::remote_gpu[1],
                            .capacity = 1_Gbit_per_s,
                            .latency = seconds(2e-4),
                            .network = "gigabit of 0.2 ms",
                            .told = parameter_kind::send_overhead,
                            .by_this_row = "the same, `send_overhead` of %.2f ms, by this row"};
  std::vector<row> rows{{"machines", "network", "measured", "predicted", "off"}};
  for (const two_machines& p : {macs, remote}) {
    std::vector<device> devices;
    std::vector<measurement> alone;
    for (std::size_t i = 0; i < p.alone.size(); ++i) {
      devices.push_back({.name = "m" + std::to_string(i),
                         .memory = bytes(p.memory_GB[i] * 1e9),
                         .compute = flops_per_second(1e15),
                         .memory_bandwidth = bytes_per_second(1e12)});
      alone.push_back(
          {.devices = {device_id(i)}, .model = language_model(p.model, p.weights, 0), .context = 0, .tokens = 128, .value = p.alone[i]});
    }
    const cluster start("two", devices, shared_medium{p.capacity, p.latency});
    const cluster machines = fit::fit_devices(start, alone, {.parameters = {parameter_kind::memory_efficiency}}).cluster;
    measurement both = alone.front();
    both.devices = {device_id(0), device_id(1)};
    both.value = p.together;
    const auto put = [&](const std::string& network, double predicted) {
      rows.push_back({p.who, network, number("%.3g", both.value), number("%.3g", predicted), signed_percent(predicted / both.value - 1)});
    };
    put(p.network, fit::predict(both, machines));
    devices.assign(machines.devices().begin(), machines.devices().end());
    for (device& d : devices) d.kind = "machine";  // what is told is equal on both
    const fit::fit_result told =
        fit::fit_devices(machines.with_devices(std::move(devices)), std::vector{both}, {.parameters = {p.told}, .free = {p.told}});
    put(number(p.by_this_row, told.parameters.front().after * 1e3), told.predicted.front());
  }
  page.add("two", bench::markdown_table(rows));
}

// One H100.

const std::string h100_file = HETPLAN_SOURCE_DIR "/../shared/data/h100/h100.csv";
const std::string memory_file = HETPLAN_SOURCE_DIR "/../shared/data/h100/memory.csv";
constexpr const char* attention_layers = "l0.norm1 l0.q l0.k l0.v l0.attn l0.o l0.add1";
constexpr const char* mlp_layers = "l0.norm2 l0.gate l0.up l0.act l0.down l0.add2";

struct h100_row {
  std::string model, part, dtype, what;
  int batch = 1, tokens = 1, context = 0;
  double seconds = 0, watts = 0;
  bool is_fitted = false;

  /// Returns the row and the column of its group in the summary.
  [[nodiscard]] std::pair<std::string, std::string> group() const {
    if (model == "resnet50") return {"whole model", "ResNet-50 " + dtype};
    const std::string name = (model == "llama3-8b" ? "Llama-3-8B" : "Qwen3-1.7B") + std::string(dtype == "bf16" ? "" : " fp32");
    if (part == "whole") return {"whole model", name};
    if (part == "head") return {"output projection", name};
    const std::string of = part == "mlp" ? "MLP" : "attention";
    if (what == "forward") return {of, name};
    if (what == "forward_eager") return {of + ", eager", name};
    if (what == "decode") return {of + " after a context", name};
    return {of + ", training, " + (what == "train_forward" ? "F" : what == "backward_input" ? "B" : "W"), name};
  }
  /// Returns the columns of a file of measurements; empty where it is none.
  [[nodiscard]] std::string csv() const {
    const std::string shape = std::to_string(batch) + "," + std::to_string(tokens) + ",";
    const auto line = [&](const std::string& layers, const std::string& rest) {
      return "h100," + model + "," + layers + "," + dtype + "," + rest + "\n";
    };
    if (what == "power" || what == "training" || dtype == "amp") return "";
    if (model == "resnet50") return line("", std::to_string(batch) + ",,,,images_per_s," + number("%.9g", batch / seconds));
    if (part == "whole" && what == "decode")
      return line("", std::to_string(batch) + ",0," + std::to_string(context) + ",,decode_tokens_per_s," + number("%.9g", batch / seconds));
    if (part == "whole") return line("", shape + "0,,prefill_tokens_per_s," + number("%.9g", 1.0 * batch * tokens / seconds));
    const std::string layers = part == "mlp" ? mlp_layers : part == "attention" ? attention_layers : "lm_head";
    const std::string behind = what == "decode" ? std::to_string(context) : "";
    const std::string phase = what == "backward_input" ? "backward_input" : what == "backward_both" ? "backward" : "forward";
    return line(layers, shape + behind + "," + phase + ",layer_seconds," + number("%.9g", seconds));
  }
};

/// Rows that are fitted, for a model and a number format: two of the MLP, three of attention. In fp32 its prompt is none of them: the
/// kernel is another one.
bool is_fitted(const h100_row& r) {
  if (r.model != (r.dtype == "bf16" ? "llama3-8b" : "qwen3-1.7b")) return false;
  const auto is = [&](const char* part, const char* what, int batch, int tokens, int context) {
    return r.part == part && r.what == what && r.batch == batch && r.tokens == tokens && r.context == context;
  };
  return is("mlp", "forward", 1, 1, 0) || is("mlp", "forward", 1, 4096, 0) || is("attention", "forward", 1, 1, 0) ||
         (r.dtype == "bf16" && is("attention", "forward", 1, 8192, 0)) || is("attention", "decode", 16, 1, 32768);
}

std::vector<h100_row> read_h100() {
  static constexpr std::array<std::string_view, 9> columns{"model",  "part",    "dtype",   "what", "batch",
                                                           "tokens", "context", "seconds", "watts"};
  const std::string text = io::read_text(h100_file);
  io::csv_lines lines(text, h100_file, columns, columns.size());
  std::vector<h100_row> all;
  while (lines.next()) {
    if (!lines.has(7) && !lines.has(8)) continue;
    const auto word = [&](std::size_t c) { return std::string(lines.field(c)); };
    const auto whole = [&](std::size_t c) { return static_cast<int>(lines.number(c, "a whole number")); };
    all.push_back({word(0), word(1), word(2), word(3), whole(4), whole(5), whole(6), lines.has(7) ? lines.number(7, "seconds") : 0,
                   lines.has(8) ? lines.number(8, "watts") : 0, false});
  }
  return all;
}

void add_h100(const sections& page) {
  device d{.name = "h100", .memory = 80_GB, .compute = flops_per_second(989.4e12), .memory_bandwidth = bytes_per_second(3.35e12)};
  d.compute_by_precision = {{precision::bf16, flops_per_second(989.4e12)},
                            {precision::tf32, flops_per_second(494.7e12)},
                            {precision::fp32, flops_per_second(66.9e12)}};
  const cluster start("one", d);
  std::vector<h100_row> all = read_h100();
  std::string text = "device,model,layers,dtype,batch,prompt,context,phase,what,value\n";
  std::vector<h100_row*> known;
  for (h100_row& r : all) {
    const std::string line = r.csv();
    r.is_fitted = is_fitted(r);
    if (line.empty() || (page.quick() && !r.is_fitted && r.part != "whole")) continue;
    text += line;
    known.push_back(&r);
  }
  const io::measured_rows rows = io::parse_measurements(text, "h100.csv", start);
  // Each number format for itself: its kernels are others.
  std::vector<row> numbers{{"fitted to"}};
  std::map<bool, cluster> fitted_for;  // by whether it is bf16
  for (const bool is_bf16 : {true, false}) {
    std::vector<measurement> fitted;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i]->is_fitted && (known[i]->dtype == "bf16") == is_bf16) fitted.push_back(rows.rows[i]);
    }
    const fit::fit_result result = fit::fit_devices(start, fitted, {.digits = 6});
    row cells{is_bf16 ? "bf16" : "fp32"};
    for (const fit::parameter& p : result.parameters) {
      if (p.what == parameter_kind::half_rows || p.what == parameter_kind::overhead) continue;  // 0
      if (is_bf16) numbers.front().push_back(std::string(to_string(p.what)));
      cells.push_back(p.what == parameter_kind::launch ? number("%.2f us", p.after * 1e6) : number("%.3f", p.after));
    }
    numbers.push_back(std::move(cells));
    fitted_for.emplace(is_bf16, result.cluster);
  }
  page.add("h100-fit", bench::markdown_table(numbers, 1));

  std::map<std::pair<std::string, std::string>, table> groups;
  table blocks, training;
  std::vector<row> csv{{"model", "part", "dtype", "what", "batch", "tokens", "context", "measured", "predicted", "off", "fitted"}};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const h100_row& r = *known[i];
    const double predicted = fit::predict(rows.rows[i], fitted_for.at(r.dtype == "bf16")), value = rows.rows[i].value;
    const bool of_time = rows.rows[i].what == measured::layer_seconds;
    csv.push_back({r.model, r.part, r.dtype, r.what, std::to_string(r.batch), std::to_string(r.tokens), std::to_string(r.context),
                   number("%.4g", r.seconds), number("%.4g", of_time ? predicted : r.seconds * value / predicted),
                   signed_percent(predicted / value - 1), r.is_fitted ? "yes" : "no"});
    if (r.is_fitted) continue;
    measurement m = rows.rows[i];
    m.what = measured::layer_seconds;  // one quantity: relative deviations do not depend on it
    double of_group = predicted;
    if (r.what == "backward_both") {  // W is what it takes more than B
      for (std::size_t k = 0; k < known.size(); ++k) {
        const h100_row& b = *known[k];
        if (b.what != "backward_input" || b.model != r.model || b.part != r.part || b.dtype != r.dtype) continue;
        if (b.batch != r.batch || b.tokens != r.tokens) continue;
        m.value -= rows.rows[k].value;
        of_group -= fit::predict(rows.rows[k], fitted_for.at(r.dtype == "bf16"));
      }
      if (m.value <= 0) continue;  // so short that the host decided
    }
    groups[r.group()].add(m, of_group);
    if (r.dtype != "bf16" || r.part == "whole") continue;
    const bool is_training = r.what.starts_with("train") || r.what.starts_with("backward");
    if (is_training) training.add(m, of_group);
    else if (r.what != "forward_eager") blocks.add(m, of_group);
  }
  const std::array<std::string, 3> columns{"Llama-3-8B", "Qwen3-1.7B", "Qwen3-1.7B fp32"};
  std::vector<row> summary{{"rows"}};
  summary.front().insert(summary.front().end(), columns.begin(), columns.end());
  for (const auto& [key, t] : groups) {
    if (summary.back().front() == key.first || key.second.starts_with("ResNet")) continue;
    summary.push_back({key.first});
    for (const std::string& column : columns) {
      const auto it = groups.find({key.first, column});
      summary.back().push_back(it == groups.end() ? "-" : it->second.median_and_worst(measured::layer_seconds));
    }
  }
  summary.push_back({"blocks in bf16", blocks.median_and_worst(measured::layer_seconds), "both models", ""});
  summary.push_back({"training in bf16", training.median_and_worst(measured::layer_seconds), "both models", ""});
  page.add("h100", bench::markdown_table(summary, 1));
  page.add_csv("measured.h100.csv", csv);
}

/// Whole training steps: the judge's peak by the allocator's.
void add_memory(const sections& page) {
  const std::map<std::string, std::string> rules{{"adamw", "AdamW"}, {"sgd", "SGD"}, {"sgd+momentum", "SGD with momentum"}};
  std::map<std::pair<std::string, std::string>, std::map<bool, std::vector<double>>> groups;  // by model and format, by recomputation
  std::vector<row> csv{{"model", "dtype", "optimizer", "recomputation", "batch", "tokens", "measured", "predicted", "off"}};
  for (const test::memory_row& r : test::read_memory_rows(memory_file)) {
    const double predicted = test::judged_bytes(r), off = predicted / r.peak_bytes - 1;
    csv.push_back({r.model, r.dtype, rules.at(r.optimizer), r.by_blocks ? "blocks" : "none", std::to_string(r.batch),
                   std::to_string(r.tokens), number("%.4g", r.peak_bytes), number("%.4g", predicted), signed_percent(off)});
    groups[{r.model, r.dtype}][r.by_blocks].push_back(off);
  }
  std::vector<row> rows{{"model", "format", "rows", "all kept", "blocks run again"}};
  for (const auto& [key, by_recomputation] : groups) {
    rows.push_back({key.first, key.second, ""});
    std::size_t count = 0;
    for (const bool again : {false, true}) {
      const auto it = by_recomputation.find(again);
      if (it != by_recomputation.end()) count += it->second.size();
      const auto range = [](const std::vector<double>& off) {
        const auto [least, most] = std::ranges::minmax(off);
        return number("%+.1f", least * 100) + " to " + signed_percent(most);
      };
      rows.back().push_back(it == by_recomputation.end() ? "-" : range(it->second));
    }
    rows.back()[2] = std::to_string(count);
  }
  page.add("memory", bench::markdown_table(rows));
  page.add_csv("measured.memory.csv", csv);
}

/// Mean power of products in a loop, by the built-in H100.
void add_power(const sections& page) {
  const device h100 = zoo::device("h100", "h100");
  const auto mean_W = [&](const h100_row& r) {
    const bool is_bf16 = r.dtype == "bf16";
    planning_graph_builder b("mlp", model_facts{
                                        .bytes_per_parameter = is_bf16 ? 2.0 : 4.0,
                                    });
    const double parameters = 3.0 * 4096 * 14336;
    b.add_layer({.name = "mlp", .forward_flops = flops(2 * parameters), .weight = bytes((is_bf16 ? 2 : 4) * parameters), .calls = 0});
    const planning_graph mlp = std::move(b).build();
    const work w{.layer = mlp.layers()[0], .batch = static_cast<double>(r.tokens)};
    const seconds busy = roofline{}.time(w, h100), bound = roofline{}.parts(w, h100).memory_bound();
    return (linear_power{}.energy({.total = busy, .busy = busy, .memory_bound = bound}, h100) / busy).value();
  };
  std::vector<row> rows{{"format"}, {"bf16, measured"}, {"bf16, predicted"}, {"fp32, measured"}, {"fp32, predicted"}};
  for (const h100_row& r : read_h100()) {
    if (r.what != "power" || r.part != "mlp") continue;
    const std::size_t at = r.dtype == "bf16" ? 1 : 3;
    if (at == 1) rows[0].push_back(r.tokens == 1 ? "1 row" : std::to_string(r.tokens));
    rows[at].push_back(number("%.0f W", r.watts));
    rows[at + 1].push_back(number("%.0f W", mean_W(r)));
  }
  page.add("power", bench::markdown_table(rows, 1));
}

}  // namespace

int main(int argc, char** argv) try {
  const sections page(argc, argv);
  std::vector<row> csv{{"device", "number", "model", "weights", "test", "measured", "predicted", "off", "fitted"}};
  const cluster gpus = add_single(page, csv);
  add_others(gpus, page.quick(), csv);
  add_pipelines(page, gpus, csv);
  page.add_csv("measured.gpus.csv", csv);
  add_rpc(page);
  add_two(page);
  if (std::filesystem::exists(h100_file)) {
    add_h100(page);
    add_memory(page);
    add_power(page);
    return 0;
  }
  std::fprintf(stderr, "reproduce_measured: SKIPPED, there is no %s\n", h100_file.c_str());
  if (!page.quick()) return 1;
  for (const char* name : {"h100-fit", "h100", "memory", "power"}) page.add(name, "Skipped.");
} catch (const std::exception& e) {
  std::fprintf(stderr, "reproduce_measured: %s\n", e.what());
  return 1;
}
