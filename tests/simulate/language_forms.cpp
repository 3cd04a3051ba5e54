// SPDX-License-Identifier: BSL-1.0
// Language models in closed form: each number follows from its comment, not from the code. f is the FLOP of a token without attention, a
// those of a pair of a new token and one that it sees, P the prompt, C its chunks, N the tokens made, c the tokens in the cache before.

#include <hetplan/cost/token_passes.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"

namespace test_language_forms {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Equal but for rounding, however small the number.
Approx same(double expected) { return Approx(expected).epsilon(1e-12); }

/// Devices of closed forms: nothing but these rates.
device gpu(double flop_per_s, double bytes_per_s) {
  device d = worker("gpu", flop_per_s);
  d.memory = bytes(1e15);
  d.memory_bandwidth = bytes_per_second(bytes_per_s);
  return d;
}
constexpr double plenty = 1e30;  ///< a rate that costs no time beside the other one
device only_computes() { return gpu(1, plenty); }
device only_moves() { return gpu(plenty, 1); }

planning_graph model_with(model_facts facts, std::vector<layer_spec> layers, const std::vector<tensor>& edges = {}) {
  planning_graph_builder b("language", std::move(facts));
  for (layer_spec& l : layers) b.add_layer(std::move(l));
  for (const tensor& e : edges) b.add_edge(layer_id(e.from), layer_id(e.to), bytes(e.forward), bytes(e.gradient));
  return std::move(b).build();
}
model_facts of_tokens(int tokens_per_sample) { return {.tokens_per_sample = tokens_per_sample}; }

/// Returns a layer of nothing but attention: a = 1, f = 0, for models of T = 1, where a token sees itself.
layer_spec only_attention(std::string name = "attention") {
  layer_spec l = work_of(std::move(name), 1);
  l.sequence.attention_flops = 1_FLOP;
  return l;
}

plan generating(workload w, std::vector<stage> stages, int sequences = 1, int groups = 1) {
  plan p = plan_of(mode::generation, sequences, groups, std::move(stages));
  w.mode = mode::generation;
  p.workload = w;
  return p;
}
stage whole(const planning_graph& m, int sequences = 1) {
  stage s = stage_of({}, {{0, sequences}});
  for (const layer& l : m.layers()) s.layers.push_back(l.id);
  return s;
}
/// Returns the results of one group of sequences, or of one microbatch of samples, on one device that runs the whole model.
evaluation alone(const planning_graph& m, const device& d, const workload& w, int sequences = 1) {
  return judged(generating(w, {whole(m, sequences)}, sequences), m, cluster("alone", d)).evaluation;
}
evaluation alone(const planning_graph& m, const device& d, mode how, int samples = 1) {
  return judged(plan_of(how, samples, 1, {whole(m, samples)}), m, cluster("alone", d)).evaluation;
}
double seconds_of(const planning_graph& m, const device& d, const workload& w, int sequences = 1) {
  return alone(m, d, w, sequences).latency.value();
}
workload one_step(int context) { return {.context = context, .tokens = 1, .prompt = 0}; }
workload only_prompt(int prompt, int chunk = 0, int context = 0) {
  return {.context = context, .tokens = 1, .prompt = prompt, .prompt_chunk = chunk};
}

// Meta-Llama-3-8B, config.json: hidden_size 4096, 32 layers, 32 heads, 8 KV heads of 128, intermediate_size 14336, vocabulary 128256,
// untied embeddings, bfloat16. A block has Q and O of 4096 x 4096, K and V of 4096 x 1024, three MLP matrices of 4096 x 14336 and two
// norms of 4096.
namespace llama {
constexpr double d = 4096, blocks = 32, kv_heads = 8, head = 128, mlp = 14336, words = 128256;
constexpr double matrices = 2 * d * d + 2 * d * kv_heads * head + 3 * d * mlp;  ///< parameters in the products of a block: 218 103 808
constexpr double block_bytes = 2 * (matrices + 2 * d);
constexpr double table = words * d;
constexpr double head_bytes = 2 * (table + d);  ///< with the last norm
constexpr double token = 2 * d;                 ///< bytes of a token between blocks
constexpr double a = 4 * d;                     ///< 2 d for the score and 2 d for the value of a pair, over all heads
constexpr double kv = 2 * 2 * kv_heads * head;  ///< bytes of K and V of a token in one block: 4096
}  // namespace llama

struct llama_options {
  bool full_head = false;
  double attention_traffic = 0;
  int calls = 1;
};

/// Returns Llama-3-8B at block level: embedding (looked up, so that no call reads its table), blocks, head.
planning_graph llama_3_8b(int tokens_per_sample, const llama_options& o = {}) {
  using namespace llama;
  const double T = tokens_per_sample, pairs = T * (T + 1) / 2;
  planning_graph_builder b("Llama-3-8B", {.bytes_per_parameter = 2, .tokens_per_sample = tokens_per_sample});
  layer_id before = b.add_layer({.name = "embedding", .forward_flops = 0_FLOP, .weight = bytes(2 * table), .weight_traffic = 0_B});
  for (int i = 0; i < static_cast<int>(blocks); ++i) {
    layer_spec block{.name = "block" + std::to_string(i),
                     .forward_flops = flops(T * 2 * matrices + a * pairs),
                     .weight = bytes(block_bytes),
                     .kv_bytes_per_token = bytes(kv),
                     .calls = o.calls};
    block.sequence.attention_flops = flops(a);
    block.sequence.attention_traffic = bytes(o.attention_traffic);
    const layer_id now = b.add_layer(block);
    b.add_edge(before, now, bytes(T * token));
    before = now;
  }
  layer_spec out{.name = "head", .forward_flops = flops(T * 2 * table), .weight = bytes(head_bytes)};
  out.sequence.last_token = !o.full_head;
  b.add_edge(before, b.add_layer(out), bytes(T * token));
  return std::move(b).build();
}

device page_device() { return gpu(1e14, 1e12); }  // 100 TFLOP/s, 1 TB/s, linear

/// Returns the seconds of the step of one sequence of Llama-3-8B on it: everything is moved, computing takes a hundredth of that. The
/// embedding moves its output, a block its weights, a token in and out, c + 1 tokens of the cache read and one written, the head its
/// weights and one token.
double llama_step(double context) {
  using namespace llama;
  return (token + blocks * (block_bytes + 2 * token + kv * (context + 1 + 1)) + head_bytes + token) / 1e12;
}
/// Returns those of a prompt of 512 tokens without the head: the embedding moves its output, blocks compute 512 tokens and 512 * 513 / 2
/// pairs.
double llama_prompt_blocks() {
  using namespace llama;
  return 512 * token / 1e12 + blocks * (512 * 2 * matrices + a * 512 * 513 / 2) / 1e14;
}
/// The head's weights and one token.
double llama_last_head() { return (llama::head_bytes + llama::token) / 1e12; }

}  // namespace

TEST_CASE("Llama-3-8B passes a prompt of 512 tokens in 0.0732 s, and in 0.0775 s with all logits") {
  const planning_graph m = llama_3_8b(512);
  CHECK(m.parameters() == 8'030'261'248);  // as published
  // The prompt is by default the sample. The head runs for one token: 1.05 GB take 1.05 ms, its 1.05 GFLOP 0.01 ms.
  const double last = llama_prompt_blocks() + llama_last_head();
  const evaluation e = alone(m, page_device(), workload{.tokens = 1});
  CHECK(e.latency.value() == same(last));
  CHECK(e.ttft.value().value() == same(last));
  CHECK(e.prompt_tokens_per_second == same(512 / last));
  CHECK(std::round(1e4 * e.latency.value()) == 732);
  // For all tokens it computes 512 * 2 * 128256 * 4096 FLOP: 5.4 ms.
  const double full = llama_prompt_blocks() + 512 * 2 * llama::table / 1e14;
  const double found = seconds_of(llama_3_8b(512, {.full_head = true}), page_device(), {.tokens = 1});
  CHECK(found == same(full));
  CHECK(std::round(1e4 * found) == 775);
  // A sample, without generation, has all logits and reads and writes no cache.
  CHECK(alone(m, page_device(), mode::inference).latency.value() == same(full));
}

TEST_CASE("a step of Llama-3-8B takes 15.1 ms behind 512 tokens and 19.3 ms behind 32768") {
  const planning_graph m = llama_3_8b(512);
  for (const auto& [context, rounded] : {std::pair(512, 151), std::pair(32768, 193)}) {
    const double found = seconds_of(m, page_device(), one_step(context));
    CHECK(found == same(llama_step(context)));
    CHECK(std::round(1e4 * found) == rounded);
  }
  // Eight sequences read the weights once, and each its own tokens and cache.
  using namespace llama;
  const double eight = (8 * token + blocks * (block_bytes + 8 * (2 * token + kv * 514)) + head_bytes + 8 * token) / 1e12;
  CHECK(seconds_of(m, page_device(), one_step(512), 8) == same(eight));
}

TEST_CASE("it does not matter for how many tokens a model is written down") {
  const workload w{.context = 100, .tokens = 3, .prompt = 512, .prompt_chunk = 200};
  const double expected = seconds_of(llama_3_8b(512), page_device(), w);
  for (const int T : {1, 7, 4096}) CHECK(seconds_of(llama_3_8b(T), page_device(), w) == same(expected));
}

TEST_CASE("a run is a prompt, which makes the first token, and N - 1 steps of one token") {
  // P = 512 by default, N = 3: steps behind 512 and 513 tokens.
  const double prompt = llama_prompt_blocks() + llama_last_head(), steps = llama_step(512) + llama_step(513);
  const evaluation e = alone(llama_3_8b(512), page_device(), workload{.tokens = 3});
  CHECK(e.ttft.value().value() == same(prompt));
  CHECK(e.time_between_tokens.value().value() == same(steps / 2));
  CHECK(e.latency.value() == same(prompt + steps));
  CHECK(e.devices[0].busy.value() == same(prompt + steps));
  CHECK(e.tokens_per_second == same(3 / (prompt + steps)));
  CHECK(e.prompt_tokens_per_second == same(512 / prompt));
}

TEST_CASE("what the adequacy of the page was measured with: scores that are written out, a cache read slowly, 14 kernels a block") {
  // 32 B per head and pair: 1024 B a pair. In the prompt a block's attention then moves 512 * 513 / 2 * 1024 B and the cache of 512 + 512
  // tokens at 0.4 of the bandwidth, 0.145 ms, more than its FLOP take. In a step: one pair each of 513 and the cache of 513 + 1.
  using namespace llama;
  const planning_graph m = llama_3_8b(512, {.attention_traffic = 32 * 32, .calls = 14});
  device g = page_device();
  g.cache_efficiency = 0.4;
  g.launch = 6_us;
  const double launches = (1 + blocks * 14 + 1) * 6e-6;
  const double prompt = 512 * token / 1e12 + blocks * 512 * 2 * matrices / 1e14 + llama_last_head() +
                        blocks * (1024 * 512 * 513 / 2 + kv * (512 + 512) / 0.4) / 1e12 + launches;
  const double step = (token + blocks * (block_bytes + 2 * token) + head_bytes + token) / 1e12 +
                      blocks * (1024 * 513 + kv * (513 + 1) / 0.4) / 1e12 + launches;
  const evaluation e = alone(m, g, workload{.tokens = 2});
  CHECK(e.ttft.value().value() == same(prompt));
  CHECK(e.time_between_tokens.value().value() == same(step));
}

TEST_CASE("of the experts of Qwen3-30B-A3B one sequence reads 1/16, and 16 sequences 64.4 %") {
  // config.json: hidden_size 2048, 48 layers, 32 heads and 4 KV heads of 128, 128 experts of 3 x 2048 x 768 of which a token passes 8,
  // vocabulary 151936, untied, bfloat16. Beside the experts a block has Q and O of 2048 x 4096, K and V of 2048 x 512, a router of
  // 2048 x 128, two norms of 2048, and two of 128 for queries and keys.
  constexpr double d = 2048, blocks = 48, table = 151936 * d, kv = 2 * 2 * 4 * 128;
  constexpr double experts = 128 * 3 * d * 768, products = 2 * d * 4096 + 2 * d * 512 + d * 128, norms = 2 * d + 2 * 128;
  planning_graph_builder b("Qwen3-30B-A3B", {.bytes_per_parameter = 2});
  layer_id before = b.add_layer({.name = "embedding", .forward_flops = 0_FLOP, .weight = bytes(2 * table), .weight_traffic = 0_B});
  for (int i = 0; i < static_cast<int>(blocks); ++i) {
    const double a = 4 * 4096;
    layer_spec block{.name = "block" + std::to_string(i),
                     .forward_flops = flops(2 * (products + experts / 16) + a),
                     .weight = bytes(2 * (experts + products + norms)),
                     .kv_bytes_per_token = bytes(kv)};
    block.sequence.attention_flops = flops(a);
    block.sequence.experts = {.total = 128, .active = 8, .weight = bytes(2 * experts)};
    const layer_id now = b.add_layer(block);
    b.add_edge(before, now, bytes(2 * d));
    before = now;
  }
  layer_spec out{.name = "head", .forward_flops = flops(2 * table), .weight = bytes(2 * (table + d))};
  out.sequence.last_token = true;
  b.add_edge(before, b.add_layer(out), bytes(2 * d));
  const planning_graph m = std::move(b).build();
  CHECK(m.parameters() == 30'532'122'624);  // as published

  // A token misses an expert with probability 1 - 8/128 = 15/16, and n tokens with its n-th power: one token reads 1/16 of them, sixteen
  // 1 - (15/16)^16 = 64.4 %.
  const double of_16 = 1 - std::pow(15.0 / 16, 16);
  CHECK(std::round(1e3 * of_16) == 644);
  const layer& block = m[m.find("block0")];
  CHECK(work{.layer = block, .batch = 1}.weight_traffic().value() == same(2 * (products + norms + experts / 16)));
  CHECK(work{.layer = block, .batch = 16}.weight_traffic().value() == same(2 * (products + norms + experts * of_16)));
  CHECK(work{.layer = block, .batch = 2, .tokens = 8}.weight_traffic().value() == same(2 * (products + norms + experts * of_16)));

  // Steps behind 99 tokens: all is moved (16 tokens of a block compute 1.7 GFLOP, 0.02 ms, and move 0.8 GB).
  const auto step = [&](double n, double share) {
    return (n * 2 * d + blocks * (2 * (products + norms + experts * share) + n * (2 * 2 * d + kv * 101)) + 2 * (table + d) + n * 2 * d) /
           1e12;
  };
  CHECK(seconds_of(m, page_device(), one_step(99)) == same(step(1, 1.0 / 16)));
  CHECK(seconds_of(m, page_device(), one_step(99), 16) == same(step(16, of_16)));
}

TEST_CASE("experts follow the rows of each layer: of all tokens, of the last one, of requests, and in every phase") {
  // 16 B of experts, 1 of 4 for each row, and 4 B beside them: r rows read 4 + 16 (1 - (3/4)^r).
  layer_spec l = work_of("experts", 1, 1, 1);
  l.weight = 20_B;
  l.sequence.experts = {.total = 4, .active = 1, .weight = 16_B};
  const auto reads = [](double rows) { return 4 + 16 * (1 - std::pow(0.75, rows)); };
  // A sample of two tokens, two samples: four rows in F, B and W.
  CHECK(alone(model_with(of_tokens(2), {l}), only_moves(), mode::training, 2).latency.value() == same(3 * reads(4)));
  CHECK(seconds_of(model_with(of_tokens(2), {l}), only_moves(), only_prompt(5), 3) == same(reads(15)));
  layer_spec last = l;
  last.sequence.last_token = true;
  CHECK(seconds_of(model_with(of_tokens(2), {last}), only_moves(), only_prompt(5), 3) == same(reads(3)));
  layer_spec of_request = l;
  of_request.sequence.per = layer_scope::request;
  const planning_graph m = model_with(of_tokens(2), {of_request, work_of("token", 1)}, {{0, 1, 0}});
  CHECK(seconds_of(m, only_moves(), only_prompt(5), 3) == same(reads(3)));
}

TEST_CASE("causal pairs of chunks add up to those of the whole prompt") {
  // 8 tokens behind 3: each sees the 3, itself and those before it: 8 * 3 + 8 * 9 / 2 = 60.
  const planning_graph m = model_with({}, {only_attention()});
  for (int chunk = 1; chunk <= 9; ++chunk) CHECK(seconds_of(m, only_computes(), only_prompt(8, chunk, 3)) == same(60));
  // 512 tokens of Llama-3-8B: pairs are the only FLOP that depend on the context.
  using namespace llama;
  const planning_graph l = llama_3_8b(512);
  double chunked = 0;
  for (int j = 0; j < 4; ++j) chunked += work{.layer = l[layer_id(1)], .context = 128 * j, .tokens = 128}.attention_flops().value();
  CHECK(chunked == same(a * 512 * 513 / 2));
}

TEST_CASE("a window limits pairs, what is read of the cache, and what the cache holds") {
  // w = 4. Tokens 1 to 8 see 1 + 2 + 3 + 4 + 4 + 4 + 4 + 4 = 26.
  layer_spec l = only_attention();
  l.sequence.window = 4;
  l.kv_bytes_per_token = 2_B;
  const planning_graph m = model_with({}, {l});
  for (int chunk = 1; chunk <= 8; ++chunk) CHECK(seconds_of(m, only_computes(), only_prompt(8, chunk)) == same(26));
  CHECK(seconds_of(m, only_computes(), only_prompt(5, 0, 2)) == same(3 + 4 + 4 + 4 + 4));
  CHECK(seconds_of(m, only_computes(), only_prompt(5, 0, 20)) == same(20));
  // 2 B a token: a step behind 2 reads 3 and writes one; behind 10 it reads 4. Eight tokens at once read 4 and write 8.
  CHECK(seconds_of(m, only_moves(), one_step(2)) == same(2 * (3 + 1)));
  CHECK(seconds_of(m, only_moves(), one_step(10)) == same(2 * (4 + 1)));
  CHECK(seconds_of(m, only_moves(), only_prompt(8)) == same(2 * (4 + 8)));
  // Three sequences of one token in the cache, one in the prompt and one made: three of each; 9 + 8 + 7 of each: four.
  CHECK(alone(m, only_moves(), workload{.context = 1, .tokens = 1, .prompt = 1}, 3).peak_memory().value() == same(3 * 3 * 2));
  CHECK(alone(m, only_moves(), workload{.context = 9, .tokens = 7, .prompt = 8}, 3).peak_memory().value() == same(3 * 4 * 2));
  // With T = 8 and a = 3, F = 8 f + 3 * 26. Of f = 5, 16 tokens take 16 * 5 + 3 (26 + 8 * 4).
  layer_spec both = work_of("both", 8 * 5 + 3 * 26);
  both.sequence.attention_flops = 3_FLOP;
  both.sequence.window = 4;
  CHECK(seconds_of(model_with(of_tokens(8), {both}), only_computes(), only_prompt(16)) == same(16 * 5 + 3 * (26 + 8 * 4)));
}

TEST_CASE("with full attention each new token sees all tokens, and the prompt stays whole") {
  // T = 6: F = 6 * 2 + 36. 5 tokens behind 2 see 7 each, within a window of 4 four each.
  layer_spec l = work_of("encoder", 6 * 2 + 36);
  l.sequence.attention_flops = 1_FLOP;
  l.sequence.attention = attention_kind::full;
  const planning_graph m = model_with(of_tokens(6), {l});
  CHECK(alone(m, only_computes(), mode::inference, 3).latency.value() == same(3 * (6 * 2 + 36)));
  CHECK(seconds_of(m, only_computes(), only_prompt(5, 0, 2)) == same(5 * 2 + 5 * 7));
  CHECK(seconds_of(m, only_computes(), one_step(9)) == same(2 + 10));
  CHECK_THROWS_AS(seconds_of(m, only_computes(), only_prompt(5, 4)), invalid_input);
  l.forward_flops = flops(6 * 2 + 6 * 4);
  l.sequence.window = 4;
  CHECK(seconds_of(model_with(of_tokens(6), {l}), only_computes(), only_prompt(5, 0, 2)) == same(5 * 2 + 5 * 4));
}

TEST_CASE("products and attention are kernels of their own in every phase, and backward parts scale alike") {
  // T = 4, f = 1, a = 3: F = 4 + 3 * 10 = 34. B = F / 2: 2 and 15. W = 2 F: 8 and 60. Each reads 50 B of weights at 1 B/s, which is more
  // than its products take; training keeps no cache.
  layer_spec l = work_of("block", 34, 17, 68);
  l.weight = 50_B;
  l.kv_bytes_per_token = 1000_B;
  l.sequence.attention_flops = 3_FLOP;
  const planning_graph m = model_with(of_tokens(4), {l});
  CHECK(alone(m, gpu(1, 1), mode::training).latency.value() == same((50 + 30) + (50 + 15) + (50 + 60)));
  CHECK(alone(m, gpu(1, 1), mode::inference).latency.value() == same(50 + 30));
  // 20 samples: products 80, 40, 160 FLOP; attention 600, 300, 1200.
  CHECK(alone(m, gpu(1, 1), mode::training, 20).latency.value() == same((80 + 600) + (50 + 300) + (160 + 1200)));
}

TEST_CASE("a layer of the last token is asked for one token behind all others, in the last chunk only") {
  // f = 10, a = 1. 8 tokens behind 3: the last one sees 11, whatever the chunks.
  layer_spec l = work_of("last block", 11);
  l.sequence.attention_flops = 1_FLOP;
  l.sequence.last_token = true;
  l.kv_bytes_per_token = 2_B;
  l.traffic = 5_B;
  l.activation = 7_B;
  const planning_graph m = model_with({}, {l});
  // Moved: 5 B for its token; cache read 11 and written 1. It keeps 7 B for one token and the cache of 3 + 8 + 1.
  for (const int chunk : {0, 3, 7, 8}) {
    CHECK(seconds_of(m, only_computes(), only_prompt(8, chunk, 3)) == same(10 + 11));
    CHECK(seconds_of(m, only_moves(), only_prompt(8, chunk, 3)) == same(5 + 2 * (11 + 1)));
    CHECK(alone(m, only_moves(), only_prompt(8, chunk, 3)).peak_memory().value() == same(7 + 2 * 12));
  }
  // Its rows are the sequences: two of them at half_rows = 6 take 2 f (2 + 6) / 2.
  device d = only_computes();
  d.half_rows = 6;
  CHECK(seconds_of(m, d, only_prompt(8, 0, 3), 2) == same(10 * (2 + 6) + 2 * 11));
  // In a sample it has all tokens, as any other: T = 4 with 10 pairs.
  l.forward_flops = flops(4 * 10 + 10);
  CHECK(alone(model_with(of_tokens(4), {l}), only_computes(), mode::inference).latency.value() == same(4 * 10 + 10));
}

TEST_CASE("an edge carries the tokens that both its ends compute") {
  // T = 2: 6 B a sample, 3 B a token, from all tokens on d0 to the last on d1. P = 4 in two chunks: the first sends nothing, the second one
  // token, as each step does. d0 takes 1 s a token, d1 2 s.
  layer_spec head = work_of("head", 4);
  head.sequence.last_token = true;
  const planning_graph m = model_with(of_tokens(2), {work_of("body", 2), head}, {{0, 1, 6}});
  const plan p = generating({.tokens = 2, .prompt = 4, .prompt_chunk = 2}, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const judgement j = judged(p, m, wired(2));
  // Body 0-2-4, 3 B 4-7, head 7-9. Token of 4 B 9-13, body 13-14, 3 B 14-17, head 17-19.
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 0, 1), 4, 7);
  check_interval(sent(j, transfer_kind::token, 1, 0, 0, 0, 1), 9, 13);
  CHECK(j.graph.transfers.size() == 3);
  CHECK(j.graph.computes.size() == 3 + 2);
  CHECK(j.evaluation.ttft.value().value() == same(9));
  CHECK(j.evaluation.time_between_tokens.value().value() == same(10));
  CHECK(j.evaluation.latency.value() == same(19));
  CHECK(j.evaluation.resource_bytes[0].value() == same(3 + 3));
}

TEST_CASE("half_rows counts tokens, half_batch samples") {
  // f = 3, h = 6. Rows b n: b n f (b n + 6) / (b n) = 3 (b n + 6). Samples: b n f (b + 6) / b = 3 n (b + 6).
  const planning_graph m = model_with(of_tokens(4), {work_of("a", 4 * 3)});
  device rows = only_computes(), samples = only_computes();
  rows.half_rows = 6;
  samples.half_batch = 6;
  for (const int b : {1, 2, 5}) {
    for (const int n : {1, 4, 9}) {
      CHECK(seconds_of(m, rows, only_prompt(n), b) == same(3 * (b * n + 6)));
      CHECK(seconds_of(m, samples, only_prompt(n), b) == same(3 * n * (b + 6)));
    }
    CHECK(alone(m, rows, mode::inference, b).latency.value() == same(3 * (b * 4 + 6)));
    CHECK(alone(m, samples, mode::inference, b).latency.value() == same(3 * 4 * (b + 6)));
  }
  // A product of 10 rows a sample of 4 tokens has b n 10 / 4, per request 10 b: b n f (r + 6) / r.
  layer_spec tower = work_of("tower", 5), a = work_of("a", 4 * 3);
  tower.sequence.per = layer_scope::request;
  tower.rows = a.rows = 10;
  const planning_graph told = model_with(of_tokens(4), {tower, a});
  for (const int b : {1, 2, 5}) {
    for (const int n : {1, 4, 9})
      CHECK(seconds_of(told, rows, only_prompt(n), b) == same(b * 5 * (10 * b + 6) / (10.0 * b) + 3 * (b * n + 6 * 4 / 10.0)));
    CHECK(alone(told, samples, mode::inference, b).latency.value() == same((5 + 4 * 3) * (b + 6)));
  }
  // At half_rows half of the peak is reached: 512 tokens of a prompt at h = 64 run at 512 / 576 of it. Attention is at the peak.
  layer_spec both = work_of("both", 2 + 1);
  both.sequence.attention_flops = 1_FLOP;
  rows.half_rows = 64;
  CHECK(seconds_of(model_with({}, {both}), rows, only_prompt(512)) == same(512 * 2 * (512 + 64) / 512.0 + 512 * 513 / 2));
}

TEST_CASE("attained shares by weight format, of memory and of the cache") {
  // f = 4 FLOP, 32 B of weights, 2 B of cache a token, a = 1, on 8 FLOP/s and 16 B/s; the cache is read at 1/4 of what is attained.
  layer_spec l = work_of("block", 4 + 1);
  l.weight = 32_B;
  l.kv_bytes_per_token = 2_B;
  l.sequence.attention_flops = 1_FLOP;
  device d = gpu(8, 16);
  d.efficiency = attained_share({{"f16", 0.5}, {"q4", 0.25}});
  d.memory_efficiency = attained_share({{"f16", 0.5}, {"q4", 0.125}});
  d.cache_efficiency = 0.25;
  const planning_graph f16 = model_with({.weight_format = "f16"}, {l}), q4 = model_with({.weight_format = "q4"}, {l});
  // A step behind 6: products 4 FLOP or 32 B; attention 7 FLOP or 2 (7 + 1) / 0.25 = 64 B. f16 4 FLOP/s, 8 B/s; q4 2 FLOP/s, 2 B/s.
  CHECK(seconds_of(f16, d, one_step(6)) == same(4 + 8));
  CHECK(seconds_of(q4, d, one_step(6)) == same(16 + 32));
  // 64 tokens: 256 FLOP against 32 B; 64 * 65 / 2 FLOP against 2 (64 + 64) / 0.25 = 1024 B.
  CHECK(seconds_of(f16, d, only_prompt(64)) == same(64 + 520));
  CHECK(seconds_of(q4, d, only_prompt(64)) == same(128 + 1040));
  CHECK_THROWS_AS(seconds_of(model_with({.weight_format = "q8"}, {l}), d, one_step(6)), invalid_input);
  // `other` is the share of the formats that are not listed, and of models that name none: 1 FLOP/s, 4 B/s.
  d.efficiency.by_format.emplace_back("other", 0.125);
  d.memory_efficiency.by_format.emplace_back("other", 0.25);
  CHECK(seconds_of(model_with({.weight_format = "q8"}, {l}), d, one_step(6)) == same(8 + 16));
  CHECK(seconds_of(model_with({}, {l}), d, one_step(6)) == same(8 + 16));
  CHECK(seconds_of(q4, d, one_step(6)) == same(16 + 32));
  // One share for all formats.
  d.efficiency = 0.5;
  d.memory_efficiency = 0.25;
  CHECK(seconds_of(q4, d, one_step(6)) == same(8 + 16));
}

TEST_CASE("a device without a precision computes in the nearest that may stand in for it") {
  using enum precision;
  const auto rate = [](precision asked, std::vector<precision> given) {
    // Each precision has the rate 2^number, so that the time of one FLOP tells which was taken.
    device d = only_computes();
    for (const precision p : given) d.compute_by_precision.emplace_back(p, flops_per_second(std::exp2(static_cast<int>(p))));
    const double s = seconds_of(model_with({.precision = asked}, {work_of("a", 1)}), d, one_step(0));
    return static_cast<precision>(std::lround(std::log2(1 / s)));
  };
  CHECK(rate(bf16, {fp16, fp32, bf16}) == bf16);
  CHECK(rate(bf16, {fp32, fp16, tf32}) == fp16);
  CHECK(rate(bf16, {fp32, fp8, int8}) == fp32);
  CHECK(rate(fp16, {fp32, tf32, bf16}) == bf16);
  CHECK(rate(fp16, {fp32, tf32}) == tf32);
  CHECK(rate(int4, {fp32, fp16, int8}) == int8);
  CHECK(rate(int8, {int4, fp32, fp16, bf16}) == bf16);
  CHECK(rate(fp8, {int8, fp32, bf16}) == bf16);
  CHECK(rate(fp8, {int8, fp32, fp16}) == fp16);
  CHECK(rate(tf32, {fp16, fp32}) == fp32);
  CHECK_THROWS_AS(rate(fp32, {tf32, fp16}), invalid_input);
  // A model that does not say: bf16 at 2 bytes a parameter, fp32 at 4.
  device d = only_computes();
  d.compute_by_precision = {{bf16, flops_per_second(8)}, {fp32, flops_per_second(2)}};
  CHECK(seconds_of(model_with({.bytes_per_parameter = 2}, {work_of("a", 1)}), d, one_step(0)) == same(1.0 / 8));
  CHECK(seconds_of(model_with({.bytes_per_parameter = 4}, {work_of("a", 1)}), d, one_step(0)) == same(1.0 / 2));
}

TEST_CASE("each kernel of each pass is launched") {
  // 5 kernels and 1, 1/4 s each, f = 1 and 2: two chunks of 3 tokens take 3 * 3 + 6/4 each, a step 3 + 6/4.
  layer_spec a = work_of("a", 1);
  a.calls = 5;
  device d = only_computes();
  d.launch = seconds(0.25);
  const planning_graph m = model_with({}, {a, work_of("b", 2)}, {{0, 1, 0}});
  CHECK(seconds_of(m, d, {.tokens = 3, .prompt = 6, .prompt_chunk = 3}, 1) == same(2 * (9 + 1.5) + 2 * (3 + 1.5)));
}

TEST_CASE("tensor parallelism divides FLOP, weights and cache, and gathers what the new tokens send on") {
  // Llama-3-8B on 4 accelerators at 50 GB/s: all that is computed or moved is divided by 4. Behind each block 2 (3/4) of its output is
  // gathered: 8192 B a token. The embedding has no FLOP and the head no output: neither gathers.
  using namespace llama;
  const planning_graph m = llama_3_8b(512);
  device g = page_device();
  g.accelerators = 4;
  g.interconnect = 50_GB_per_s;
  plan p = generating({.tokens = 2}, {whole(m, 2)}, 2);
  p.stages[0].devices[0].tensor_parallel = 4;
  const evaluation e = judged(p, m, cluster("server", g)).evaluation;
  // Two sequences: twice the prompt of one but for the head, which reads its weights once for both.
  const double prompt = (2 * llama_prompt_blocks() + (head_bytes + 2 * token) / 1e12) / 4 + blocks * 1.5 * 2 * 512 * token / 50e9;
  const double step = (2 * token + blocks * (block_bytes + 2 * (2 * token + kv * (513 + 1))) + head_bytes + 2 * token) / 4 / 1e12 +
                      blocks * 1.5 * 2 * token / 50e9;
  CHECK(e.ttft.value().value() == same(prompt));
  CHECK(e.time_between_tokens.value().value() == same(step));
  // The memory of the device is that of all its accelerators: nothing is divided.
  CHECK(e.peak_memory().value() == same(2 * 8'030'261'248.0 + 2 * blocks * kv * (512 + 2)));
}

TEST_CASE("two stages with overheads: the whole timeline of a prompt and two steps") {
  // f = 1 and 2, 3 B a token, wires of 4 B/s and 1/2 s. Each task takes 1/4 s more on d0, 1/2 s on d1; each transfer that it sends, 1/8 s
  // and 1/16 s. P = 4, N = 3.
  const planning_graph m = model_with({}, {work_of("a", 1), work_of("b", 2)}, {{0, 1, 3}});
  std::vector<device> devices = workers(2);
  devices[0].overhead = seconds(0.25);
  devices[1].overhead = seconds(0.5);
  devices[0].send_overhead = seconds(0.125);
  devices[1].send_overhead = seconds(0.0625);
  const cluster c("two", devices, mesh{bytes_per_second(4), seconds(0.5)});
  const judgement j = judged(generating({.tokens = 3, .prompt = 4}, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}), m, c);
  // Prompt: a 4 + 1/4 + 1/8, 12 B 3.5 s, b 8 + 1/2 + 1/16, token of 4 B 1.5 s.
  check_interval(when(j, phase::forward, 0, 0, -1, 0), 0, 4.375);
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 0, 0), 4.375, 7.875);
  check_interval(when(j, phase::forward, 1, 0, -1, 0), 7.875, 16.4375);
  check_interval(sent(j, transfer_kind::token, 1, 0, 0, 0, 0), 16.4375, 17.9375);
  // Steps: a 1 + 1/4 + 1/8, 3 B 1.25 s, b 2 + 1/2 + 1/16, token 1.5 s; the last one sends no token.
  check_interval(when(j, phase::forward, 0, 0, -1, 1), 17.9375, 19.3125);
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 0, 1), 19.3125, 20.5625);
  check_interval(when(j, phase::forward, 1, 0, -1, 1), 20.5625, 23.125);
  check_interval(sent(j, transfer_kind::token, 1, 0, 0, 0, 1), 23.125, 24.625);
  check_interval(when(j, phase::forward, 0, 0, -1, 2), 24.625, 26);
  check_interval(when(j, phase::forward, 1, 0, -1, 2), 27.25, 29.75);
  CHECK(j.evaluation.ttft.value().value() == same(16.4375));
  CHECK(j.evaluation.latency.value() == same(29.75));
  CHECK(j.evaluation.time_between_tokens.value().value() == same((29.75 - 16.4375) / 2));
  CHECK(j.evaluation.response().value() == same((29.75 - 16.4375) / 2));
  CHECK(j.evaluation.tokens_per_second == same(3 / 29.75));
  CHECK(j.evaluation.prompt_tokens_per_second == same(4 / 16.4375));
  CHECK(j.evaluation.devices[0].busy.value() == same(4.375 + 2 * 1.375));
  CHECK(j.evaluation.devices[1].busy.value() == same(8.5625 + 2.5625 + 2.5));
  CHECK(j.graph.transfers.size() == 3 + 2);
  CHECK(j.evaluation.resource_bytes[0].value() == same(12 + 3 + 3));
  CHECK(j.evaluation.resource_bytes[1].value() == same(4 + 4));
}

TEST_CASE("overheads in training: once for each task, and a reduction waits without being busy") {
  // F 1, B 2, W 3, 1/4 s a task, 1/8 s a transfer.
  layer_spec l = work_of("a", 1, 2, 3);
  l.weight = 6_B;
  std::vector<device> devices = workers(2);
  for (device& d : devices) {
    d.overhead = seconds(0.25);
    d.send_overhead = seconds(0.125);
  }
  const cluster c("two", devices, mesh{bytes_per_second(4), seconds(0.5)});
  const planning_graph m = model_with({}, {l});
  plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}})});
  CHECK(judged(p, m, c).evaluation.latency.value() == same((1 + 0.25) + (2 + 3 + 0.25)));
  p.stages[0].recompute = recomputation::stage;  // repeats its forward in the task of the backward
  CHECK(judged(p, m, c).evaluation.latency.value() == same((1 + 0.25) + (1 + 2 + 3 + 0.25)));
  p.stages[0].recompute = recomputation::none;
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.orders = {order_of("F0.0 B0.0 W0.0")};
  CHECK(judged(p, m, c).evaluation.latency.value() == same((1 + 0.25) + (2 + 0.25) + (3 + 0.25)));
  // Two devices end at 6.5, wait 1/8 and 1/2, and exchange 2 (1/2) 6 B at 4 B/s.
  const judgement j = judged(plan_of(mode::training, 2, 1, {stage_of({0}, {{0, 1}, {1, 1}})}), m, c);
  CHECK(j.evaluation.latency.value() == same(6.5 + 0.125 + 0.5 + 1.5));
  CHECK(j.evaluation.devices[0].busy.value() == same(6.5));
  // A transfer that blocks both devices: a 1 + 1/4, 1/8, then 12 B 3.5 s with both; b takes its own 2 + 1/4 behind that.
  const planning_graph two = model_with({}, {work_of("a", 1), work_of("b", 2)}, {{0, 1, 12}});
  plan blocked = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  blocked.transfers = transfer_mode::block;
  const evaluation e = judged(blocked, two, c).evaluation;
  CHECK(e.devices[0].busy.value() == same(1 + 0.25 + 0.125 + 3.5));
  CHECK(e.devices[1].busy.value() == same(3.5 + 2 + 0.25));
}

TEST_CASE("chunks of a prompt are a pipeline over two stages, unless only some may be in flight") {
  // f = 1 and 3/2, 1 B a token at 1 B/s. P = 6: whole 6 + 6 + 9; a chunk of two 2 + 2 + 3.
  const planning_graph m = model_with({}, {work_of("a", 1), work_of("b", 1.5)}, {{0, 1, 1}});
  const auto run = [&](int chunk, int in_flight, int prompt = 6) {
    return judged(generating({.tokens = 1, .prompt = prompt, .prompt_chunk = chunk, .chunks_in_flight = in_flight},
                             {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}),
                  m, wired(2));
  };
  CHECK(run(0, 0).evaluation.latency.value() == same(21));
  CHECK(run(6, 1).evaluation.latency.value() == same(21));
  // a 0-2-4-6, bytes 2-4-6-8, b 4-7-10-13.
  const judgement free = run(2, 0);
  check_interval(when(free, phase::forward, 0, 0, -1, 2), 4, 6);
  check_interval(sent(free, transfer_kind::forward, 0, 1, 0, 0, 1), 4, 6);
  check_interval(when(free, phase::forward, 1, 0, -1, 1), 7, 10);
  CHECK(free.evaluation.latency.value() == same(13));
  CHECK(free.evaluation.ttft.value().value() == same(13));
  CHECK(free.evaluation.prompt_tokens_per_second == same(6.0 / 13));
  CHECK(run(2, 3).evaluation.latency.value() == same(13));
  // One at a time: 3 * 7. Two: the third starts when the first has left at 7: a 7-9, bytes 9-11, b 11-14.
  CHECK(run(2, 1).evaluation.latency.value() == same(21));
  const judgement two = run(2, 2);
  check_interval(when(two, phase::forward, 0, 0, -1, 2), 7, 9);
  CHECK(two.evaluation.latency.value() == same(14));
  // P = 5 in 2 + 2 + 1, one at a time: 7 + 7 + (1 + 1 + 1.5).
  CHECK(run(2, 1, 5).evaluation.latency.value() == same(17.5));
}

TEST_CASE("devices work by token, group and chunk, and an entry of an explicit order stands for all chunks") {
  // f = 1, two groups of one sequence, P = 5 in chunks of 3 and 2, N = 3. Group 0 0-3-5, group 1 5-8-10; steps 11 12, 13 14.
  const planning_graph m = model_with({}, {work_of("a", 1)});
  plan p = generating({.tokens = 3, .prompt = 5, .prompt_chunk = 3}, {stage_of({0}, {{0, 1}})}, 1, 2);
  const judgement j = judged(p, m, wired(1));
  check_interval(when(j, phase::forward, 0, 0, -1, 1), 3, 5);
  check_interval(when(j, phase::forward, 0, 1, -1, 0), 5, 8);
  check_interval(when(j, phase::forward, 0, 0, -1, 3), 12, 13);
  // The first token of the worst group comes at 10; group 0 has (13 - 5) / 2 between tokens, group 1 (14 - 10) / 2.
  CHECK(j.evaluation.ttft.value().value() == same(10));
  CHECK(j.evaluation.time_between_tokens.value().value() == same(4));
  CHECK(j.evaluation.latency.value() == same(14));
  CHECK(j.evaluation.tokens_per_second == same(2 * 3 / 14.0));
  CHECK(j.evaluation.prompt_tokens_per_second == same(2 * 5 / 10.0));
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.orders = {order_of("F0.1 F0.0")};
  const judgement k = judged(p, m, wired(1));
  check_interval(when(k, phase::forward, 0, 1, -1, 1), 3, 5);
  check_interval(when(k, phase::forward, 0, 0, -1, 0), 5, 8);
  check_interval(when(k, phase::forward, 0, 0, -1, 3), 13, 14);
}

TEST_CASE("tokens go back as 4 bytes of each sequence, in the shares of the devices") {
  // f = 1 on both stages, no bytes between them. Three sequences: d0 has all, d1 two and d2 one. The token flows have 8 and 4 bytes.
  const planning_graph m = model_with({}, {work_of("a", 1), work_of("b", 1)}, {{0, 1, 0}});
  const plan p = generating({.tokens = 2, .prompt = 2}, {stage_of({0}, {{0, 3}}), stage_of({1}, {{1, 2}, {2, 1}})}, 3);
  const judgement j = judged(p, m, wired(3, 0, 4));
  // Prompt: a 0-6, d1 6-10, d2 6-8; tokens of 8 B 10-12, of 4 B 8-9. Step: a 12-15, d1 15-17, d2 15-16.
  check_interval(sent(j, transfer_kind::token, 1, 0, 0), 10, 12);
  check_interval(sent(j, transfer_kind::token, 2, 0, 0), 8, 9);
  CHECK(j.evaluation.ttft.value().value() == same(10));
  CHECK(j.evaluation.latency.value() == same(17));
  CHECK(j.evaluation.time_between_tokens.value().value() == same(7));
}

TEST_CASE("every sink sends its token to every source, and each transfer costs its sender") {
  // a on d0 feeds b on d1 and c on d2 without bytes; f = 1, 2, 1; a token of 4 B takes 1 s; 1/8 s for each transfer. P = 2, N = 2.
  const planning_graph m = model_with({}, {work_of("a", 1), work_of("b", 2), work_of("c", 1)}, {{0, 1, 0}, {0, 2, 0}});
  std::vector<device> devices = workers(3);
  for (device& d : devices) d.send_overhead = seconds(0.125);
  const cluster c("three", devices, mesh{bytes_per_second(4)});
  const plan p = generating({.tokens = 2, .prompt = 2}, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})});
  const judgement j = judged(p, m, c);
  // a 0-2.25, b -6.375, c -4.375; tokens -7.375, -5.375. Step: a -8.625, b -10.625, c -9.625, which send nothing.
  check_interval(when(j, phase::forward, 0, 0, -1, 0), 0, 2.25);
  check_interval(sent(j, transfer_kind::token, 1, 0), 6.375, 7.375);
  check_interval(sent(j, transfer_kind::token, 2, 0), 4.375, 5.375);
  check_interval(when(j, phase::forward, 2, 0, -1, 1), 8.625, 9.625);
  CHECK(j.evaluation.ttft.value().value() == same(6.375));
  CHECK(j.evaluation.time_between_tokens.value().value() == same(4.25));
  CHECK(j.evaluation.latency.value() == same(10.625));
}

TEST_CASE("layers per request run once, with the first chunk, and never without a prompt") {
  // A tower of 5 FLOP a request on d0 sends 6 B a request to d1, where a token takes 1 s (T = 2: F = 2). P = 4 in chunks of 2, N = 2.
  layer_spec tower = work_of("tower", 5);
  tower.sequence.per = layer_scope::request;
  const planning_graph m = model_with(of_tokens(2), {tower, work_of("text", 2)}, {{0, 1, 6}});
  const std::vector<stage> stages{stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})};
  const workload w{.tokens = 2, .prompt = 4, .prompt_chunk = 2};
  // Tower 0-5, 6 B 5-11, chunks 11-13-15; its source in the step is the text itself, which sends nothing: 15-16.
  const judgement j = judged(generating(w, stages), m, wired(2));
  check_interval(sent(j, transfer_kind::forward, 0, 1), 5, 11);
  check_interval(when(j, phase::forward, 1, 0, -1, 0), 11, 13);
  CHECK(j.graph.transfers.size() == 1);
  CHECK(j.graph.computes.size() == 1 + 3);
  CHECK(j.evaluation.ttft.value().value() == same(15));
  CHECK(j.evaluation.latency.value() == same(16));
  // Without a prompt: steps 0-1-2, and d0 has nothing to do.
  const judgement k = judged(generating({.tokens = 2, .prompt = 0}, stages), m, wired(2));
  CHECK(k.graph.transfers.empty());
  CHECK(k.evaluation.latency.value() == same(2));
  CHECK(k.evaluation.devices[0].busy.value() == 0);
  // A sample: 5, 6 B, two tokens.
  CHECK(judged(plan_of(mode::inference, 1, 1, stages), m, wired(2)).evaluation.latency.value() == same(13));
  // In one stage, three sequences: the first chunk takes 3 (5 + 2), the second 3 * 2, a step 3.
  CHECK(seconds_of(m, only_computes(), w, 3) == same(3 * (5 + 2) + 3 * 2 + 3));
  // Its rows are requests: at half_rows = 4, 5 (3 + 4), 6 + 4, 6 + 4, 3 + 4.
  device d = only_computes();
  d.half_rows = 4;
  CHECK(seconds_of(m, d, w, 3) == same(5 * (3 + 4) + (6 + 4) + (6 + 4) + (3 + 4)));
  // The text moves its in-edges, per token 6 / 2 B. The tower moves its out-edge, 6 B, once.
  CHECK(seconds_of(m, only_moves(), w) == same(6 + (4 + 1) * 3));
}

TEST_CASE("contexts of steps are rounded up to one of 16 behind the first, those of chunks are not") {
  // a = 1: a step takes its context + 1. q = max(1, ceil(N / 16)); step i is asked behind c + P + q ceil(i / q).
  const planning_graph m = model_with({}, {only_attention()});
  const auto steps_s = [](int first, int steps, int q) {
    double total = 0;
    for (int i = 0; i < steps; ++i) total += first + q * ((i + q - 1) / q) + 1;
    return total;
  };
  // P = 5 behind 2 in chunks of 3: 5 * 2 + 15 = 25.
  for (const auto& [N, q] :
       {std::pair(2, 1), std::pair(16, 1), std::pair(17, 2), std::pair(32, 2), std::pair(33, 3), std::pair(40, 3), std::pair(1000, 63)}) {
    const workload w{.mode = mode::generation, .context = 2, .tokens = N, .prompt = 5, .prompt_chunk = 3};
    const evaluation e = alone(m, only_computes(), w);
    CHECK(e.ttft.value().value() == same(25));
    CHECK(e.latency.value() == same(25 + steps_s(7, N - 1, q)));
    CHECK(e.time_between_tokens.value().value() == same(steps_s(7, N - 1, q) / (N - 1)));
    CHECK(token_passes(w, m).distinct().size() <= 2 + 17);
    CHECK(token_passes(w, m).size() == 2 + N - 1);
    CHECK(seconds_of(m, only_computes(), {.context = 2, .tokens = N, .prompt = 0}) == same(steps_s(2, N, q)));
  }
  // Up to 16 tokens nothing is rounded: 15 steps behind 7 to 21 take 8 + ... + 22.
  CHECK(steps_s(7, 15, 1) == 225);
}

TEST_CASE("one token has no time between tokens, and without a prompt every token is a step") {
  // f = 1, a = 1.
  layer_spec l = work_of("a", 2);
  l.sequence.attention_flops = 1_FLOP;
  const planning_graph m = model_with({}, {l});
  const evaluation one = alone(m, only_computes(), only_prompt(3));
  CHECK_FALSE(one.time_between_tokens.has_value());
  CHECK(one.ttft.value().value() == same(3 + 6));
  CHECK(one.latency.value() == same(3 + 6));
  CHECK(one.response().value() == same(3 + 6));
  CHECK(one.tokens_per_second == same(1.0 / 9));
  // P = 0, N = 3 behind 4: steps of 1 + 5, 1 + 6, 1 + 7.
  const evaluation steps = alone(m, only_computes(), workload{.context = 4, .tokens = 3, .prompt = 0});
  CHECK(steps.ttft.value().value() == same(6));
  CHECK(steps.time_between_tokens.value().value() == same(7.5));
  CHECK(steps.latency.value() == same(6 + 7 + 8));
  CHECK(steps.tokens_per_second == same(3.0 / 21));
  CHECK(steps.prompt_tokens_per_second == 0);
  CHECK_FALSE(alone(m, only_computes(), one_step(4)).time_between_tokens.has_value());
}

TEST_CASE("the prompt is by default a sample of several tokens") {
  // T = 1: none, N = 3 steps of f = 2. T = 5: F = 10, a prompt of 5 tokens and two steps.
  const evaluation none = alone(model_with({}, {work_of("a", 2)}), only_computes(), workload{.tokens = 3});
  CHECK(none.ttft.value().value() == same(2));
  CHECK(none.latency.value() == same(6));
  CHECK(none.prompt_tokens_per_second == 0);
  const evaluation five = alone(model_with(of_tokens(5), {work_of("a", 10)}), only_computes(), workload{.tokens = 3});
  CHECK(five.ttft.value().value() == same(10));
  CHECK(five.latency.value() == same(10 + 2 * 2));
  CHECK(five.prompt_tokens_per_second == same(5.0 / 10));
}

TEST_CASE("peak memory: weights, the cache of c + P + N tokens, the activations of the longest pass, and the runtime's own") {
  // T = 4: 8 B of activation, 2 B a token; 3 B of cache a token; 100 B of weights. c = 5, P = 10, N = 6; two sequences in each of three
  // groups, one of which is in a task at a time.
  layer_spec l = work_of("a", 4, 4, 4), head = work_of("head", 4, 4, 4);
  l.weight = 100_B;
  l.activation = 8_B;
  l.kv_bytes_per_token = 3_B;
  l.workspace = 2_B;
  const planning_graph m = model_with(of_tokens(4), {l});
  device d = only_computes();
  d.memory_overhead = 1000_B;
  const auto peak = [&](const planning_graph& g, const plan& p) {
    return judged(p, g, cluster("one", d)).evaluation.peak_memory().value();
  };
  const auto run = [&](const planning_graph& g, int prompt, int chunk) {
    return peak(g, generating({.context = 5, .tokens = 6, .prompt = prompt, .prompt_chunk = chunk}, {whole(g, 2)}, 2, 3));
  };
  const double cache = 2 * 3 * (5 + 10 + 6) * 3;
  CHECK(run(m, 10, 0) == same(1000 + 100 + cache + 2 * 10 * 2));
  CHECK(run(m, 10, 4) == same(1000 + 100 + cache + 2 * 4 * 2));
  CHECK(run(m, 0, 0) == same(1000 + 100 + 2 * 3 * (5 + 6) * 3 + 2 * 1 * 2));
  // A head for the last token keeps its 12 / 4 B for one token of each sequence.
  head.activation = 12_B;
  head.workspace = 5_B;
  head.sequence.last_token = true;
  const planning_graph two = model_with(of_tokens(4), {l, head}, {{0, 1, 0}});
  CHECK(run(two, 10, 0) == same(1000 + 100 + cache + 2 * 10 * 2 + 2 * 3));
  // A tower keeps its 50 B for each request, whatever T, in the first chunk: 2 (50 + 4 * 2).
  layer_spec tower = work_of("tower", 1);
  tower.activation = 50_B;
  tower.sequence.per = layer_scope::request;
  CHECK(run(model_with(of_tokens(4), {tower, l}, {{0, 1, 0}}), 10, 4) == same(1000 + 100 + cache + 2 * (50 + 4 * 2)));
  // Training: weights, gradients and Adam's two copies 4 * 100; two microbatches of three samples in flight, 20 B each; the larger
  // workspace of 5 B a row for 3 * 4 rows; no cache.
  CHECK(peak(two, plan_of(mode::training, 3, 2, {whole(two, 3)})) == same(1000 + 400 + 2 * 3 * 20 + 5 * 3 * 4));
  // Inference has no workspace, and one microbatch at a time.
  CHECK(peak(two, plan_of(mode::inference, 3, 2, {whole(two, 3)})) == same(1000 + 100 + 3 * 20));
  // Llama-3-8B with 8192 tokens in all: 2 B a parameter, 32 * 4096 B a token.
  const planning_graph big = llama_3_8b(512);
  CHECK(alone(big, page_device(), workload{.context = 7000, .tokens = 680, .prompt = 512}).peak_memory().value() ==
        same(2 * 8'030'261'248.0 + 8192 * 32 * 4096.0));
}

}  // namespace test_language_forms
