// SPDX-License-Identifier: BSL-1.0
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/exchange/galvatron_profile.hpp>
#include <hetplan/exchange/metis_profile.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/exchange/ncnn_param.hpp>
#include <hetplan/exchange/pipedream_graph.hpp>
#include <hetplan/exchange/pipeedge_yaml.hpp>
#include <hetplan/exchange/piper_json.hpp>
#include <hetplan/exchange/sailor_profile.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/place/place_operators.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/random_source.hpp"
#include "support/split_text.hpp"

using namespace hetplan;

namespace {

const std::string model_text = R"({"format": "hetplan/model/1", "name": "toy", "bytes_per_parameter": 2, "tokens_per_sample": 1, // comment
 "layers": [{"name": "a", "forward_flops": "2 GFLOP", "weight": "4 MB", "kind": "conv", "activation": 600000, "weight_group": "t"},
  {"name": "b", "forward_flops": 1e9, "trainable": false, "weight": 100, "traffic": "1 MiB", "kv_bytes_per_token": 3,
   "profile": {"k": {"batch": [1, 2.5], "forward": ["1 ms", 2e-3], "backward": [3e-3, 4e-3]}}},
  {"name": "c", "forward_flops": 5e8, "backward_input_flops": 7, "backward_weight_flops": 0, "weight": 4000000, "weight_traffic": 9, "weight_group": "t"}],
 "edges": [{"from": "a", "to": "b", "bytes": "600 kB"}, {"from": "b", "to": "c", "bytes": 0, "gradient": 7}, {"from": "a", "to": "c", "bytes": 12}]})";

const std::vector<std::string> cluster_texts{
    R"({"format": "hetplan/cluster/1", "name": "home",
 "devices": [{"name": "p", "kind": "k", "memory": "6 GB", "memory_budget": 5e9, "compute": "9.1 TFLOP/s", "memory_bandwidth": "50 GB/s", "half_batch": 2,
   "launch": "10 us", "accelerators": 2, "interconnect": "1 GB/s", "power": {"idle": 2, "active": "35 W", "send": "40 nJ/B", "receive": 1e-9}},
  {"name": "q", "memory": 8e9, "compute": 1e12, "energy_budget": "3 Wh", "max_busy": 0.5}, {"name": "r", "memory": 1e9, "compute": 1e12}],
 "topology": {"kind": "hierarchical", "capacity": "600 Mbit/s", "latency": "2 ms", "duplex": "half",
  "groups": [{"name": "g", "devices": ["p", "q"], "capacity": 1e7}, {"name": "h", "devices": ["r"], "capacity": 1e8, "latency": 1}]}})",
    R"({"format": "hetplan/cluster/1", "name": "home",
 "devices": [{"name": "p", "memory": 1e9, "compute": 1e12}, {"name": "q", "memory": 1e9, "compute": 1e12}, {"name": "r", "memory": 1e9, "compute": 1e12}],
 "resources": [{"name": "air", "capacity": 1e7}, {"name": "wire", "capacity": "1 Gbps"}],
 "routes": [{"from": "*", "to": "*", "via": [{"resource": "air", "weight": 2}], "latency": 0.001},
  {"from": "p", "to": "*", "via": [{"resource": "wire"}, {"resource": "air"}, {"resource": "wire", "weight": 0.5}]}, {"from": "q", "to": "p", "via": []}]})"};

const std::string job_text =
    R"({"format": "hetplan/job/1", "mode": "generation", "batch": 12, "microbatch_sizes": [3, 5], "optimizer_factor": 0.5,
 "context": 100, "tokens": 20, "schedule": "gpipe", "objective": "qoe", "qoe": {"latency": "200 ms", "lambda": "2 kW", "deadline": "1 h", "iterations": 300}})";

const std::vector<std::string> plan_texts{
    R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "planner": "dora", "mode": "training",
 "workload": {"optimizer_factor": 2, "context": 0, "tokens": 16}, "microbatch_size": 4, "microbatches": 8,
 "schedule": {"kind": "1f1b", "warmup": [3, 1]}, "network": "fair_share",
 "stages": [{"name": "s0", "layers": ["a", "b"], "devices": [{"name": "p", "samples": 3}, {"name": "q", "samples": 1}]},
  {"name": "s1", "microbatch_size": 4, "layers": ["c"], "devices": [{"name": "r", "samples": 4, "tensor_parallel": 1}]}],
 "predicted": {"latency": 1.93, "energy": {"p": 88.1}, "peak_memory": {"p": 4.1e9}, "bound": 1.71, "gap": 0.129, "schedule_bound": 1.88, "schedule_gap": 0.027}})",
    R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 1, "microbatches": 2, "network": "priority",
 "schedule": {"kind": "explicit", "orders": {"p": [["F", "x", 0], ["F", 0, 1], ["F", 2, 0], ["F", 2, 1], ["B", 2, 0], ["W", 2, 0], ["B", 2, 1], ["W", 2, 1],
   ["B", 0, 0], ["B", "x", 1]], "q": [["F", "y", 0], ["F", 1, 1], ["B", 1, 0], ["B", 1, 1]]},
  "flows": [{"from": "p", "to": "q", "from_stage": "x", "microbatch": 1, "phase": "forward", "chunk": 0, "of": 2, "release": "1 s"},
   {"from": "p", "to": "q", "from_stage": 0, "to_stage": "y", "microbatch": 1, "phase": "forward", "chunk": 1, "of": 2, "priority": -3}]},
 "stages": [{"name": "x", "layers": ["a"], "devices": [{"name": "p", "samples": 1}]}, {"name": "y", "layers": ["b"], "devices": [{"name": "q", "samples": 1}]},
  {"layers": ["c"], "devices": [{"name": "p", "samples": 1}]}]})",
    R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "generation", "microbatch_size": 2, "microbatches": 3, "network": "exclusive",
 "workload": {"tokens": 4}, "sync": {"parameter_server": "r"}, "schedule": {"kind": "gpipe"},
 "pipelines": [{"samples": 2, "stages": [{"layers": ["a", "b", "c"], "devices": [{"name": "p", "samples": 2}]}]},
  {"samples": 4, "stages": [{"layers": ["a", "b"], "microbatch_size": 1, "devices": [{"name": "q", "samples": 1}]},
   {"layers": ["c"], "devices": [{"name": "r", "samples": 2}]}]}]})"};

const std::string timeline_text = R"({"format": "hetplan/timeline/1", "duration": "600 s",
 "events": [{"at": "60 s", "resource": "air", "capacity": "300 Mbit/s"}, {"at": "90 s", "device": "p", "speed": 0.5}, {"at": "200 s", "device": "q", "leaves": true},
  {"at": 300, "device": "r", "leaves": true}, {"at": "400 s", "device": "q", "joins": true},
  {"at": "450 s", "transfer": {"from": "p", "to": "q", "bytes": "500 MB", "priority": 3}}, {"at": "500 s", "qoe": {"latency": "3 s", "deadline": "1 h"}}],
 "traces": [{"resource": "wire", "file": "steps", "repeat": true, "mean": "600 Mbit/s"}]})";
const std::string trace_text = "0.0\t4.03768755221\n0.549999952316\t4.79283060109\n15.879999876022 0\n\n100 3e2\r\n";

const std::string pipedream_text =
    "node1 -- Input0 -- forward_compute_time=635.902, backward_compute_time=0.0, activation_size=4096.0, parameter_size=0.0\n"
    "node3 -- ReLU(inplace) -- forward_compute_time=1.5, backward_compute_time=0.5, activation_size=100.0, parameter_size=0.0\n"
    "node2 -- LSTM(2, 4) -- forward_compute_time=3.0, backward_compute_time=5.0, activation_size=[600.0; 20.0], parameter_size=64.0 -- "
    "stage_id=1\r\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode1 -- node3\n";
const std::string piper_text = R"({"maxDevices": 3, "maxMemoryPerDevice": 8e9, "bandwidth": 1e9, "mbsInBatch": 16, "nodes": [
 {"id": 7, "name": "layer", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 3.0, "parameterSize": 100, "memoryUsageA": 50, "memoryUsageB": 200,
    "syncTimeFw": {}, "syncTimeBw": {"8": 0}}], "2": [{"id": "vanilla", "timePerSample": 1.8, "parameterSize": 50, "memoryUsageA": 30, "memoryUsageB": 100,
    "syncTimeFw": {}, "syncTimeBw": {"8": 12}}]}},
 {"id": 8, "name": "layer", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 0, "parameterSize": 0, "memoryUsageA": 0, "memoryUsageB": 0,
    "syncTimeFw": {"7": 9}, "syncTimeBw": {}}]}}], "edges": [{"sourceId": 7, "destId": 8, "communicationCost": 600}]})";
const std::string sailor_text = R"({"4": {"2": {"1": [0.04, 0.08, 0.003], "0": [0.004, 0, 0.001]}},
 "1": {"1": {"0": [0.002, 0, 0.002], "1": [0.02, 0.04, 0.006]}, "2": {"0": [0.001, 0, 0.001], "1": [0.011, 0.021, 0.003]}}})";
const std::string sizes_text = R"({"model": {"model_name": "toy", "num_layers": 2, "parameters": {"parameters_per_layer_bytes": [100, 200],
 "activation_parameters_bytes": [64, 80]}}})";
const std::string pipeedge_models_text = "vit:\n  layers: 2\n  mem_MB: [1.5, 2]\n  parameters_in: 12\n  parameters_out: [100, 50]\n";
const std::string pipeedge_types_text =
    "Board:\n  bw_Mbps: 1000\n  mem_MB: 2048\n  model_profiles:\n    vit:\n    - batch_size: 8\n      dtype: torch.float32\n"
    "      time_s: [0.5,\n        0.25]\n    - {batch_size: 4, dtype: torch.float32, time_s: [0.2, 0.1]}\nIdle:\n  bw_Mbps: 0\n  mem_MB: "
    "0\n  model_profiles:\n";
const std::string placement_text = R"({"maxSizePerFPGA": 1e9, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
  {"id": 4, "name": "a", "supportedOnFpga": 1, "cpuLatency": 8.0, "fpgaLatency": 0.5, "isBackwardNode": 0, "colorClass": 1, "size": 3e8},
  {"id": 2, "supportedOnFpga": true, "cpuLatency": 0, "fpgaLatency": 0, "isBackwardNode": false, "size": 100, "layerId": "x"},
  {"id": 9, "supportedOnFpga": false, "cpuLatency": 6, "fpgaLatency": 3, "isBackwardNode": 0, "colorClass": 2, "size": 8e8},
  {"id": 7, "name": "b", "supportedOnFpga": true, "cpuLatency": 5, "fpgaLatency": 1, "isBackwardNode": 1, "colorClass": 1, "size": 0}],
 "edges": [{"sourceId": 4, "destId": 9, "cost": 0.25}, {"sourceId": 2, "destId": 4, "cost": 2}, {"sourceId": 9, "destId": 7, "cost": 0}, {"sourceId": 4, "destId": 7, "cost": 0.25}]})";
const std::string moirai_text = R"({"n": 3, "devices": 2, "edges": [[0, 1], [0, 2]], "op_time_ms": [[1, 2], [0.5, 3], [4, 4]],
 "edge_time_ms": [[[0, 2], [3, 0]], [[0, 1], [1.5, 0]]], "memory": [100, 200, 0], "capacity": [1e9, 300]})";
const std::string split_text =
    R"({"cpus": [{"load": 0, "nodes": [9]}], "fpgas": [{"load": -1, "nodes": [4, 2]}, {"nodes": []}], "maxLoad": -1})";

const std::string metis_text = R"({"model": {"model_name": "GPT", "parameters": {"parameters_per_layer_bytes": [100, 200],
 "activation_parameters_bytes": [64, 80]}}, "execution_time": {"layer_compute_total_ms": [3, 6.5]}, "execution_memory": {"layer_memory_total_mb": [5, 4]}})";
const std::string galvatron_text = R"({"layernum[2]_bsz1_seq512": 9.5, "layertype_0_bsz1_seq512": 2.0, "layertype_0_bsz4_seq512": 1.5,
 "layertype_other_0_bsz1_seq512": 6.0, "layertype_other_0_bsz4_seq512": 4.0})";
const std::string galvatron_memory_text = R"({"1_1_8_sp": {"layernum[1]_bsz8_seq512_rank0_ms": 3.5},
 "layertype_0_sp": {"512": {"parameter_size": 100.0, "tp_activation_per_bsz_dict": {"1": 40.0, "2": 20.0, "checkpoint": 2.0}}},
 "other_memory_pp_off_sp": {"512": {"model_states": {"1": 900.0, "2": 450.0}, "activation": {"1": 30.0}}},
 "other_memory_pp_on_first": {"model_states": 400.0, "activation": 10.0}})";
const std::vector<std::string> ncnn_texts{
    "7767517\n12 20\nInput data 0 1 data 0=32 1=16 2=3\nConvolution stem 1 1 data a 0=8 1=3 3=2 4=1 5=1 6=216 9=1 -23330=4,3,16,8,8\n"
    "Split s 1 2 a a0 a1\nConvolutionDepthWise deep 1 1 a0 b 0=8 1=3 11=1 4=1 14=0 6=24 7=8\nMemoryData scale 0 1 s 0=8\n"
    "BinaryOp times 2 1 b s d 0=2\nConcat cat 2 1 d a1 e 0=0\nSlice cut 1 2 e f g -23300=2,-233,-233\nPooling pool 1 1 f h 0=1 4=1\n"
    "Interp up 1 1 g u 0=1 1=2.0 2=2.0\nReduction mean 1 1 u m 0=3 1=0 -23303=2,1,2 4=1\nInnerProduct fc 1 1 h out 0=10 1=1 2=80 8=1\n",
    "7767517\n12 22\nInput in0 0 1 in0\nInput kv 0 2 ck cv\nSplit s 1 2 in0 a b\nRMSNorm norm 1 1 a n 0=8 2=1\n"
    "Gemm up 1 1 n u 2=0 3=1 5=1 6=1 8=8 9=8 10=-1\nReshape r 1 1 u w 0=4 1=2 2=-1\nPermute p 1 1 w q 0=2\nExpandDims x 1 1 q y "
    "-23303=1,1\n"
    "Tile t 1 1 y z -23302=4,1,2,1,1\nReshape r2 1 1 z k 0=4 1=-1 2=4\nSDPA sdpa 5 3 k k k ck cv o ok ov 7=1\nLSTM l 1 1 u v 0=3 1=96 "
    "2=2\n"};

/// Damages a text, usually JSON, in one to four ways: bytes, tokens, structure.
class mutator {
 public:
  explicit mutator(test::random_source& random) : random_(random) {}

  std::string operator()(std::string text) {
    if (random_.chance(0.5)) {  // a human mistake: one wrong value of the right type
      replace_value(text);
      return text;
    }
    for (int n = random_.chance(0.5) ? 1 : random_.integer(2, 4); n > 0 && !text.empty(); --n) once(text);
    return text;
  }

 private:
  struct span {
    std::size_t begin, length;
  };

  void once(std::string& text) {
    switch (random_.integer(0, 13)) {
      case 0: text[random_.index(text.size())] = static_cast<char>(random_.integer(0, 255)); return;
      case 1: text[random_.index(text.size())] ^= static_cast<char>(1 << random_.integer(0, 7)); return;
      case 2: text.resize(random_.index(text.size())); return;
      case 3: text.erase(random_.index(text.size()), static_cast<std::size_t>(random_.integer(1, 20))); return;
      case 4:
        text.insert(random_.index(text.size()), std::string(static_cast<std::size_t>(random_.integer(1, 200)),
                                                            random_.pick(std::vector{'[', '{', '"', ']', '/', '9'})));
        return;
      case 5: duplicate(text); return;
      case 6: swap_tokens(text); return;
      case 7: erase_token(text); return;
      default: replace_token(text); return;
    }
  }

  /// Returns the strings, and the runs of characters of numbers and words.
  [[nodiscard]] static std::vector<span> tokens(const std::string& text) {
    std::vector<span> all;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t begin = i;
      if (text[i] == '"') {
        for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
        i = std::min(i + 1, text.size());
      } else if (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-') {
        while (i < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-' || text[i] == '.' || text[i] == '+'))
          ++i;
      } else {
        ++i;
        continue;
      }
      all.push_back({begin, i - begin});
    }
    return all;
  }
  void replace_value(std::string& text) {
    static const auto numbers = test::split_text(
        R"(0|-0|1|-1|2|3|4|8|0.5|4.0|1e3|1e9|1e17|1e308|1.7976931348623157e308|-1e308|5e-324|1e-320|1e-12|1e999|2147483647)"
        R"(|2147483648|-2147483649|4294967297|9223372036854775807|9223372036854775808|18446744073709551616|1000000)",
        '|');
    const auto all = tokens(text);
    std::vector<span> values;
    for (const span& t : all) {
      if (text.compare(t.begin + t.length, 1, ":") != 0) values.push_back(t);
    }
    const span t = random_.pick(values);
    std::string other = random_.pick(numbers);
    if (text[t.begin] == '"') {
      const span u = random_.pick(values);
      other = text.substr(u.begin, u.length);
      const bool amount = text[t.begin + 1] >= '0' && text[t.begin + 1] <= '9';
      if (amount || other.front() != '"') {
        const std::size_t unit = text.find(' ', t.begin);
        other =
            unit < t.begin + t.length ? "\"" + random_.pick(numbers) + text.substr(unit, t.begin + t.length - unit) : "\"" + other + "\"";
      }
    }
    text.replace(t.begin, t.length, other);
  }
  void replace_token(std::string& text) {
    static const auto others = test::split_text(
        R"(0|-1|1e308|5e-324|1e999|2147483648|9223372036854775808|null|true|false|[]|{}|[[]]|""|"*"|"a"|"p"|"x"|"1 GB"|"1e308 TB")"
        R"(|"1e-320 ms"|"5 Mb"|"-3 s"|"inf s"|"0 FLOP"|"ring"|"mesh"|"star"|"shared"|"training"|"inference"|"generation"|"gpipe")"
        R"(|"explicit"|"1f1b"|"W"|"\u0000"|"\ud83d\ude00"|"sync"|"token"|"backward"|"exclusive"|"priority"|"samples"|"release")"
        R"(|"gradient")",
        '|');
    const auto all = tokens(text);
    if (all.empty()) return;
    const span t = all[random_.index(all.size())];
    std::string other = random_.pick(others);
    if (random_.chance(0.4)) {
      const span u = all[random_.index(all.size())];
      other = text.substr(u.begin, u.length);
    }
    text.replace(t.begin, t.length, other);
  }
  void swap_tokens(std::string& text) {
    const auto all = tokens(text);
    if (all.size() < 2) return;
    span a = all[random_.index(all.size())], b = all[random_.index(all.size())];
    if (a.begin > b.begin) std::swap(a, b);
    if (a.begin == b.begin) return;
    const std::string first = text.substr(a.begin, a.length), second = text.substr(b.begin, b.length);
    text.replace(b.begin, b.length, first);
    text.replace(a.begin, a.length, second);
  }
  void erase_token(std::string& text) {
    const auto all = tokens(text);
    if (all.empty()) return;
    const span t = all[random_.index(all.size())];
    text.erase(t.begin, t.length);
  }
  /// Repeats an array or object, separated by commas, or nests it deeply.
  void duplicate(std::string& text) {
    std::vector<std::size_t> opens;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{' || text[i] == '[') opens.push_back(i);
    }
    if (opens.empty()) return;
    const std::size_t begin = opens[random_.index(opens.size())];
    std::size_t end = begin;
    for (int depth = 0; end < text.size(); ++end) {
      depth += text[end] == '{' || text[end] == '[' ? 1 : text[end] == '}' || text[end] == ']' ? -1 : 0;
      if (depth == 0) break;
    }
    const std::string part = text.substr(begin, end - begin + 1);
    std::string more;
    if (random_.chance(0.2)) {
      const auto deep = static_cast<std::size_t>(random_.integer(1, 100));
      text.insert(begin, std::string(deep, '['));
      text.insert(std::min(text.size(), begin + deep + part.size()), std::string(deep, ']'));
      return;
    }
    for (int n = random_.integer(1, 3); n > 0; --n) more += part + ",";
    text.insert(begin, more);
  }

  test::random_source& random_;
};

struct counts {
  long long read = 0, refused = 0, simulated = 0, refused_later = 0, foreign = 0;
};

/// Reads a damaged text: the result is a value, which survives writing and reading, or invalid_input.
template <class Read, class Write, class Same>
auto try_text(counts& n, const std::string& text, Read&& read, Write&& write, Same&& same) {
  using value = decltype(read(std::declval<const io::json_document&>()));
  std::optional<value> found;
  try {
    found.emplace(read(io::json_document::parse(text, "f.json")));
  } catch (const invalid_input& e) {
    const std::string_view what(e.what());
    if (!what.starts_with("f.json: ") || what.find('\n') != std::string_view::npos || what.size() > 6000)
      FAIL("not one line about the file: " << what);
    ++n.refused;
    return found;
  } catch (const std::exception& e) {
    FAIL("another exception, " << e.what() << ", for " << text);
  }
  ++n.read;
  const std::string written = write(*found);
  try {
    if (!same(read(io::json_document::parse(written, "again")), *found)) FAIL("read again as something else:\n" << text << "\n" << written);
  } catch (const std::exception& e) {
    FAIL("not read again, " << e.what() << ":\n" << text << "\n" << written);
  }
  return found;
}

/// Reads a damaged trace: the result is valid or invalid_input.
void try_trace(counts& n, const std::string& text) {
  try {
    check_trace(io::parse_bandwidth_trace(text, "f.txt"));
    ++n.read;
  } catch (const invalid_input& e) {
    const std::string_view what(e.what());
    if (!what.starts_with("f.txt: ") || what.find('\n') != std::string_view::npos || what.size() > 6000)
      FAIL("not one line about the file: " << what);
    ++n.refused;
  } catch (const std::exception& e) {
    FAIL("another exception, " << e.what() << ", for " << text);
  }
}

/// Reads a damaged foreign file: invalid_input about the file, or a model that survives writing and reading, and a cluster or none.
template <class Read, class Graph, class Cluster>
void try_foreign(counts& n, const std::string& text, Read&& read, Graph&& graph, Cluster&& devices) {
  std::string_view file = "f: ";  // prefix of messages while the file is read
  const auto refused = [&](const char* message) {
    const std::string_view what(message);
    if (!what.starts_with(file) || what.find('\n') != std::string_view::npos || what.size() > 6000)
      FAIL("not one line about the file: " << what);
    ++(file.empty() ? n.refused_later : n.refused);
  };
  try {
    const auto found = read(text);
    ++n.read;
    file = "";
    const planning_graph g = graph(found);
    if (io::read_model(io::json_document::parse(io::write_model(g), "again")) != g) FAIL("read again as something else:\n" << text);
    ++n.foreign;
    devices(found);
  } catch (const invalid_input& e) {
    refused(e.what());
  } catch (const std::exception& e) {
    FAIL("another exception, " << e.what() << ", for " << text);
  }
}

void try_foreign_files(counts& n, test::random_source& random, mutator& damaged) {
  const auto none = [](const auto&) {};
  const auto json = [](const std::string& text) { return io::json_document::parse(text, "f"); };
  switch (random.integer(0, 11)) {
    case 7:
      try_foreign(
          n, damaged(metis_text),
          [&](const std::string& text) {
            return exchange::read_metis(json(text), {"k", 1, 2});
          },
          [&](const exchange::metis_profile& p) {
            return exchange::metis_chain(std::vector{p, exchange::read_metis(json(metis_text), {"k", 1, 4})});
          },
          none);
      return;
    case 8:
      try_foreign(
          n, damaged(galvatron_text), [&](const std::string& text) { return exchange::read_galvatron_computation(json(text)); },
          [&](const exchange::galvatron_computation& c) {
            return exchange::galvatron_chain(c, exchange::read_galvatron_memory(json(galvatron_memory_text)), {.layers = {2}}, "m");
          },
          none);
      return;
    case 9:
      try_foreign(
          n, damaged(galvatron_memory_text), [&](const std::string& text) { return exchange::read_galvatron_memory(json(text)); },
          [&](const exchange::galvatron_memory& m) {
            return exchange::galvatron_chain(exchange::read_galvatron_computation(json(galvatron_text)), m, {.layers = {2}}, "m");
          },
          none);
      return;
    case 10:
      try_foreign(
          n, damaged(random.pick(ncnn_texts)),
          [&](const std::string& text) {
            return exchange::read_ncnn(text, "f", {.shapes = {}, .tokens_per_sample = 3, .element_bytes = 2});
          },
          [](const exchange::ncnn_model& m) { return m.graph; }, none);
      return;
    case 11:
      try_foreign(
          n, damaged(placement_text), [&](const std::string& text) { return exchange::read_dnn_partitioning(json(text)); },
          [](const exchange::dnn_partitioning_workload& w) { return exchange::dnn_partitioning_training(w, "m").model; },
          [](const exchange::dnn_partitioning_workload& w) {
            static_cast<void>(io::write_cluster(exchange::dnn_partitioning_training(w, "m").cluster));
          });
      return;
    case 0:
      try_foreign(
          n, damaged(pipedream_text), [](const std::string& text) { return exchange::parse_pipedream_graph(text, "f"); }, std::identity{},
          none);
      return;
    case 1:
      try_foreign(
          n, damaged(piper_text), [&](const std::string& text) { return exchange::read_piper_workload(json(text)); },
          [](const exchange::piper_workload& w) { return exchange::piper_graph(w); },
          [](const exchange::piper_workload& w) { return exchange::piper_cluster(w); });
      return;
    case 2:
      try_foreign(
          n, damaged(sailor_text), [&](const std::string& text) { return exchange::read_sailor_profile(json(text)); },
          [&](const exchange::sailor_profile& p) {
            return exchange::sailor_chain(exchange::read_layer_sizes(json(sizes_text)), 2,
                                          std::vector<exchange::sailor_measurement>{{"k", p, 2}});
          },
          none);
      return;
    case 3:
      try_foreign(
          n, damaged(sizes_text), [&](const std::string& text) { return exchange::read_layer_sizes(json(text)); },
          [&](const exchange::layer_sizes& s) {
            return exchange::sailor_chain(
                s, 2, std::vector<exchange::sailor_measurement>{{"k", exchange::read_sailor_profile(json(sailor_text)), 1}});
          },
          none);
      return;
    case 5:
      try_foreign(
          n, damaged(moirai_text), [&](const std::string& text) { return exchange::read_moirai(json(text)); },
          [](const place::placement_table& t) { return exchange::model_of(t, "m").model; },
          [](const place::placement_table& t) { static_cast<void>(io::write_cluster(exchange::model_of(t, "m").cluster)); });
      return;
    case 4:
      try_foreign(
          n, damaged(pipeedge_models_text), [](const std::string& text) { return exchange::parse_pipeedge_models(text, "f"); },
          [](const auto& models) {
            const auto types = exchange::parse_pipeedge_device_types(pipeedge_types_text, "types");
            if (models.empty()) throw invalid_input("no model");
            return exchange::pipeedge_graph(models.front(), types);
          },
          none);
      return;
    default:
      try_foreign(
          n, damaged(pipeedge_types_text), [](const std::string& text) { return exchange::parse_pipeedge_device_types(text, "f"); },
          [](const auto& types) {
            return exchange::pipeedge_graph(exchange::parse_pipeedge_models(pipeedge_models_text, "models").at(0), types);
          },
          [](const auto& types) {
            for (const exchange::pipeedge_device_type& t : types) {
              static_cast<void>(exchange::pipeedge_cluster("c", types, std::vector<exchange::pipeedge_count>{{t.name, 2}}));
            }
          });
  }
}

/// Reads a damaged workload and a damaged split: the result is a placement or invalid_input.
void try_placement(counts& n, const std::string& text, const std::string& split, const exchange::dnn_partitioning_workload& whole) {
  const auto refused = [&](const invalid_input& e) {
    const std::string_view what(e.what());
    if (!what.starts_with("f.json: ") || what.find('\n') != std::string_view::npos || what.size() > 6000)
      FAIL("not one line about the file: " << what);
    ++n.refused;
  };
  try {
    const auto all = exchange::read_dnn_partitioning(io::json_document::parse(text, "f.json"));
    ++n.read;
    const auto found = place::place_operators(all.workload);
    if (found.status.ok() && place::find_broken_rule(all.workload, found.device)) FAIL("a placement that breaks a rule, for " << text);
    if (found.bound > found.value * (1 + 1e-9)) FAIL("a bound above the value, for " << text);
  } catch (const invalid_input& e) {
    refused(e);
  } catch (const invalid_model&) {
    ++n.refused_later;  // finite numbers with an infinite sum
  } catch (const std::exception& e) {
    FAIL("another exception, " << e.what() << ", for " << text);
  }
  try {
    static_cast<void>(
        place::device_loads(whole.workload, exchange::read_dnn_partitioning_split(io::json_document::parse(split, "f.json"), whole)));
    ++n.read;
  } catch (const invalid_input& e) {
    refused(e);
  } catch (const std::exception& e) {
    FAIL("another exception, " << e.what() << ", for " << split);
  }
}

bool is_small(const plan& p) {
  if (p.batch() > 1000) return false;
  for (const stage& s : p.stages) {
    if (s.devices.size() > 10) return false;
  }
  return p.workload.mode != mode::generation || p.workload.tokens * p.batch() < 1000;
}

}  // namespace

TEST_CASE("readers give a value or invalid_input for whatever is in a file") {
  const std::uint64_t seed = test::first_seed();
  std::cout << "fuzz_readers: seed " << seed << std::endl;
  test::random_source scramble(seed);  // streams of neighbouring seeds overlap
  test::random_source random(scramble.next());
  mutator damaged(random);
  const planning_graph model = io::read_model(io::json_document::parse(model_text, "model"));
  std::vector<cluster> clusters;
  for (const std::string& text : cluster_texts) clusters.push_back(io::read_cluster(io::json_document::parse(text, "cluster")));
  const exchange::dnn_partitioning_workload to_place =
      exchange::read_dnn_partitioning(io::json_document::parse(placement_text, "placement"));
  // A trace next to the timeline; damaged names lead nowhere.
  const auto folder = std::filesystem::temp_directory_path() / ("hetplan_fuzz_" + std::to_string(reinterpret_cast<std::uintptr_t>(&model)));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "steps") << trace_text;
  counts n;
  long long tried = 0, timelines = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };

  const auto simulate = [&](const plan& p, const planning_graph& m, const cluster& c) {
    if (!is_small(p)) return;
    try {
      io::check_together(m, c, "f.json", p.workload);
      const evaluation e = evaluate(p, m, c, profiled_or_roofline{}).evaluation;
      ++n.simulated;
      static_cast<void>(io::json_document::parse(io::write_plan(ranked_plan{p, e}, m, c), "again"));
      static_cast<void>(io::json_document::parse(io::write_evaluation(e, c), "again"));
    } catch (const invalid_input&) {
      ++n.refused_later;
    } catch (const invalid_model&) {
      ++n.refused_later;  // finite numbers with an infinite sum
    } catch (const std::exception& e) {
      FAIL("another exception, " << e.what() << ", for " << io::write_plan(p, m, c) << io::write_model(m) << io::write_cluster(c));
    }
  };

  for (; tried < 150'000 && elapsed() < 300; ++tried) {
    switch (random.integer(0, 6)) {
      case 0: {
        const auto g = try_text(n, damaged(model_text), io::read_model, io::write_model, std::equal_to<>{});
        if (!g) break;
        const cluster& c = clusters[random.index(clusters.size())];
        try {
          simulate(io::read_plan(io::json_document::parse(random.pick(plan_texts), "f.json"), *g, c).plan, *g, c);
        } catch (const invalid_input&) {
          ++n.refused_later;
        }
        break;
      }
      case 1: {
        const auto c =
            try_text(n, damaged(random.pick(cluster_texts)), io::read_cluster, io::write_cluster, [](const cluster& a, const cluster& b) {
              // A cluster of one device loses its network.
              return a == b || (a.size() == 1 && a[device_id(0)] == b[device_id(0)]);
            });
        if (!c) break;
        try {
          simulate(io::read_plan(io::json_document::parse(random.pick(plan_texts), "f.json"), model, *c).plan, model, *c);
        } catch (const invalid_input&) {
          ++n.refused_later;
        }
        break;
      }
      case 2: try_text(n, damaged(job_text), io::read_job, io::write_job, std::equal_to<>{}); break;
      case 3: {
        const cluster& c = clusters[1];
        const auto t = try_text(
            n, damaged(timeline_text), [&](const io::json_document& d) { return io::read_timeline(d, c, folder); },
            [&](const adapt::timeline& written) { return io::write_timeline(written, c); }, std::equal_to<>{});
        if (t) ++timelines;
        try_trace(n, damaged(trace_text));
        try_placement(n, damaged(placement_text), damaged(split_text), to_place);
        break;
      }
      case 4: try_foreign_files(n, random, damaged); break;
      default: {
        const cluster& c = clusters[random.index(clusters.size())];
        const auto write = [&](const io::plan_file& f) {
          return f.predicted ? io::write_plan(ranked_plan{f.plan, *f.predicted}, model, c) : io::write_plan(f.plan, model, c);
        };
        const auto f = try_text(
            n, damaged(random.pick(plan_texts)), [&](const io::json_document& d) { return io::read_plan(d, model, c); }, write,
            [&](const io::plan_file& a, const io::plan_file& b) { return write(a) == write(b); });
        if (f) simulate(f->plan, model, c);
      }
    }
  }
  std::cout << "fuzz_readers: " << tried << " files, " << n.read << " read, " << n.refused << " refused, " << n.simulated << " simulated, "
            << n.foreign << " of other projects, " << n.refused_later << " refused by what came after, " << elapsed() << " s" << std::endl;
  CHECK(tried > 100'000);  // not reached only by a debug build on a busy machine
  CHECK(n.read > 10'000);
  CHECK(n.simulated > 5'000);
  CHECK(timelines > 2'000);
  CHECK(n.foreign > 3'000);
  std::filesystem::remove_all(folder);
}
