// SPDX-License-Identifier: BSL-1.0
// Two and four Raspberry Pi 5 that share every tensor of Llama 3 8B, beside what distributed-llama measured: the section of
// docs/reproduction/distributed-llama.md (update.py).

#include <cmath>
#include <string>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "reproduce/sections.hpp"

using namespace hetplan;
using bench::number;
using bench::row;

namespace {

/// Published: 32 blocks of 4096 with 32 heads, 8 key/value heads and an MLP of 14336; 128256 words.
constexpr double wide = 4096, key_values = 1024, mlp = 14336, words = 128256;
/// Q40: 18 bytes hold 32 weights. Q80, in which sums are sent: 34 bytes hold 32 numbers.
constexpr double weight_bytes = 18.0 / 32, sent_bytes = 34.0 / 32;
constexpr int heads = 8;

/// One token. Nothing but weights is counted as read.
planning_graph llama3_8b_q40() {
  planning_graph_builder b("llama3-8b-q40");
  layer_id last = b.add_layer({.name = "embed", .forward_flops = flops(0), .traffic = bytes{}, .split = layer_split::none});
  double out = wide;
  const auto add = [&](const std::string& name, double in, double width, layer_split how, int units) {
    const layer_id l = b.add_layer({.name = name,
                                    .forward_flops = flops(2 * in * width),
                                    .weight = bytes(in * width * weight_bytes),
                                    .traffic = bytes{},
                                    .split = how,
                                    .split_units = units});
    b.add_edge(last, l, bytes(out * sent_bytes));
    last = l;
    out = how == layer_split::rows ? wide : width;
  };
  for (int i = 0; i < 32; ++i) {
    const std::string block = "l" + std::to_string(i) + ".";
    add(block + "qkv", wide, wide + 2 * key_values, layer_split::columns, heads);
    add(block + "o", wide, wide, layer_split::rows, heads);
    add(block + "up", wide, 2 * mlp, layer_split::columns, 0);
    add(block + "down", mlp, wide, layer_split::rows, 0);
  }
  add("head", wide, words, layer_split::none, 0);  // on the root alone, for which the others wait
  return std::move(b).build();
}

/// Seconds for a token on so many boards that read weights at a rate, with a latency from one board to another.
double token_s(const planning_graph& m, int boards, double bytes_per_s, double latency_s) {
  std::vector<device> all;
  stage s{.name = "all"};
  for (const layer& l : m.layers()) s.layers.push_back(l.id);
  for (int i = 0; i < boards; ++i) {
    device d;
    d.name = "pi" + std::to_string(i);
    d.memory = bytes(8e9);
    d.compute = flops_per_second(1e15);
    d.memory_bandwidth = bytes_per_second(bytes_per_s);
    all.push_back(d);
    s.devices.push_back({device_id(i)});
    s.columns.push_back(1);
  }
  const cluster lan("gigabit", all, star{bytes_per_second(1e9 / 8), seconds(latency_s)});
  plan p;
  p.workload.mode = mode::generation;
  p.stages = {s};
  return judge(p, m, lan, roofline{}).evaluation.time_between_tokens->value();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::sections page(argc, argv);
  const planning_graph m = llama3_8b_q40();
  struct measured {
    int boards;
    double tokens_per_s;
  };
  const measured two{2, 3.07}, four{4, 4.08};
  std::vector<row> rows{{"latency", "weights read at GB/s", "boards", "measured tokens/s", "simulated tokens/s", "difference"}};
  for (const double latency_s : {0.1e-3, 0.2e-3, 0.3e-3}) {
    double low = 1e9, high = 1e11;
    while (high / low > 1 + 1e-12) {
      const double middle = std::sqrt(low * high);
      (token_s(m, two.boards, middle, latency_s) > 1 / two.tokens_per_s ? low : high) = middle;
    }
    for (const measured& x : {two, four}) {
      const double found = 1 / token_s(m, x.boards, high, latency_s);
      rows.push_back({number("%.1f ms", latency_s * 1e3), number("%.2f", high / 1e9), std::to_string(x.boards),
                      number("%.2f", x.tokens_per_s), number("%.2f", found), number("%+.1f %%", (found / x.tokens_per_s - 1) * 100)});
    }
  }
  page.add_csv("distributed-llama.csv", rows);
  page.add("boards", bench::markdown_table(rows, 1));
}
