// SPDX-License-Identifier: BSL-1.0
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/zoo/models.hpp>

using namespace hetplan;

namespace {

const layer& at(const planning_graph& g, const std::string& name) { return g[g.find(name)]; }

const layer_edge& edge(const planning_graph& g, const std::string& from, const std::string& to) {
  const layer_id target = g.find(to);
  for (const layer_edge& e : g.out_edges(g.find(from))) {
    if (e.to == target) return e;
  }
  throw std::runtime_error("no edge " + from + " -> " + to);
}

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

double parameters_of(const planning_graph& g, const std::string& prefix) {
  std::set<int> groups;
  double total = 0;
  for (const layer& l : g.layers()) {
    if (!starts_with(l.name, prefix) || (l.weight_group >= 0 && !groups.insert(l.weight_group).second)) continue;
    total += l.weight.value();
  }
  return total / g.bytes_per_parameter();
}

bool connected(const planning_graph& g) {
  std::vector<std::size_t> root(g.size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t x) {
    while (root[x] != x) x = root[x] = root[root[x]];
    return x;
  };
  for (const layer_edge& e : g.edges()) root[find(e.from.index())] = find(e.to.index());
  for (std::size_t i = 1; i < g.size(); ++i) {
    if (find(i) != find(0)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every built-in model builds in both precisions as one connected graph") {
  REQUIRE(zoo::model_names().size() == 42);
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const planning_graph full = zoo::model(name, {.dtype = zoo::precision::fp32});
    const planning_graph half = zoo::model(name, {.dtype = zoo::precision::bf16});
    CHECK(full.name() == name);
    CHECK(connected(full));
    CHECK(full.bytes_per_parameter() == 4);
    CHECK(half.bytes_per_parameter() == 2);
    CHECK(full.parameters() == half.parameters());
    CHECK(full.forward_flops() == half.forward_flops());
    REQUIRE(full.edges().size() == half.edges().size());
    for (std::size_t i = 0; i < full.edges().size(); ++i) {
      const layer_edge &f = full.edges()[i], &h = half.edges()[i];
      // Token ids are 4 bytes each in every precision.
      const bool ids = half[h.from].kind == "input" && half[h.to].kind == "embedding";
      CHECK(f.forward == (ids ? 1.0 : 2.0) * h.forward);
    }
    for (const layer& l : full.layers()) {
      CHECK((full.in_edges(l.id).empty() == (l.kind == "input")));
    }
  }
}

TEST_CASE("language models default to bf16 and 512 tokens, vision models to fp32") {
  CHECK(zoo::model("qwen3-0.6b").bytes_per_parameter() == 2);
  CHECK(zoo::model("qwen-omni").bytes_per_parameter() == 2);
  CHECK(zoo::model("qwen3-0.6b").tokens_per_sample() == 512);
  CHECK(zoo::model("qwen3-0.6b", {.tokens = 64}).tokens_per_sample() == 64);
  CHECK(zoo::model("resnet50").bytes_per_parameter() == 4);
  CHECK(zoo::model("resnet50").tokens_per_sample() == 1);
}

TEST_CASE("a model says whether it takes tokens or an input: the other changes nothing") {
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const auto flops_of = [&](const zoo::model_options& o) { return zoo::model(name, o).forward_flops(); };
    const bool tokens = flops_of({.tokens = 64}) != flops_of({.tokens = 128});
    const bool input = flops_of({.input = zoo::image_shape{3, 64, 64}}) != flops_of({.input = zoo::image_shape{3, 128, 128}});
    CHECK(tokens == zoo::takes_tokens(name));
    CHECK(input == !zoo::takes_tokens(name));
  }
}

TEST_CASE("parameter counts are the published ones") {
  const auto parameters = [](std::string_view name) { return zoo::model(name).parameters(); };
  CHECK(parameters("bert-base") == Approx(110e6).epsilon(0.012));
  CHECK(parameters("gpt2") == 124439808);
  CHECK(parameters("qwen3-0.6b") == 596049920);
  CHECK(parameters("qwen3-1.7b") == Approx(1.72e9).epsilon(0.001));
  CHECK(parameters("qwen3-4b") == Approx(4.02e9).epsilon(0.001));
  CHECK(parameters("qwen3-8b") == Approx(8.19e9).epsilon(0.001));
  CHECK(parameters("qwen3-30b-a3b") == Approx(30.53e9).epsilon(0.0001));
  CHECK(parameters("llama2-7b") == 6738415616);
  CHECK(parameters("llama3-8b") == 8030261248);
  CHECK(parameters("llama3-70b") == 70553706496);
  CHECK(parameters("llama3.2-1b") == 1235814400);
  CHECK(parameters("llama3.2-3b") == 3212749824);
  CHECK(parameters("tinyllama-1.1b") == 1100048384);
  CHECK(parameters("mistral-7b") == 7248023552);
  CHECK(parameters("mixtral-8x7b") == 46702792704);
  CHECK(parameters("phi4-mini") == 3836021760);
  CHECK(parameters("gemma3-1b") == 999885952);
  CHECK(parameters("gemma3-4b") == Approx(3.88e9).epsilon(0.001));
  CHECK(parameters("gemma3-27b") == 27009346304);
  CHECK(parameters("resnet50") == Approx(25.56e6).epsilon(0.001));
  CHECK(parameters("resnet101") == Approx(44.55e6).epsilon(0.001));
  CHECK(parameters("efficientnet-b1") == 7794184);
  CHECK(parameters("mobilenetv2") == Approx(3.5e6).epsilon(0.002));
}

TEST_CASE("multiply-adds of the vision models are the published ones") {
  const auto gmac = [](std::string_view name) { return zoo::model(name).forward_flops().value() / 2e9; };
  CHECK(gmac("resnet50") == Approx(4.11).epsilon(0.01));
  CHECK(gmac("resnet101") == Approx(7.83).epsilon(0.01));
  CHECK(gmac("efficientnet-b1") == Approx(0.71).epsilon(0.03));
  CHECK(gmac("mobilenetv2") == Approx(0.31).epsilon(0.04));
}

TEST_CASE("one attention layer worked by hand") {
  const planning_graph g = zoo::model("llama3-8b");
  const layer& a = at(g, "l0.attn");
  CHECK(a.kind == "attention");
  CHECK(a.weight == 0_B);
  CHECK(a.sequence.attention_flops == flops(4.0 * 4096));  // two products for each pair
  CHECK(a.sequence.attention == attention_kind::causal);
  CHECK(a.forward_flops == flops(4.0 * 512 * 513 / 2 * 4096));
  CHECK(a.degrees == std::vector{1, 2, 4, 8});
  CHECK(a.backward_input_flops == 2.5 * a.forward_flops);  // it makes the scores again
  CHECK(a.backward_weight_flops == flops{});
  CHECK(a.kv_bytes_per_token == bytes(2.0 * 8 * 128 * 2));
  CHECK(a.activation == bytes(512.0 * (4096 * 2 + 32 * 4)));  // its output, and a number for each row and head
  CHECK(a.traffic == bytes(512.0 * (4096 + 1024 + 1024 + 4096) * 2));
  CHECK(a.backward_traffic ==
        bytes(512.0 * (4 * (4096 + 2 * 1024) * 2 + 2 * 4096 * 2 + 4 * 4096 * 4 + 4 * 4096 * 2)));  // in fp32: one term
  CHECK(at(g, "l0.norm1").backward_traffic == 3 * at(g, "l0.norm1").traffic);                      // has no FLOP, but tensors to move
  CHECK(at(g, "l0.q").backward_traffic == at(g, "l0.q").traffic);
  CHECK(at(g, "embed").backward_traffic == bytes{});
  CHECK(edge(g, "l0.k", "l0.attn").forward == bytes(512.0 * 1024 * 2));
}

TEST_CASE("what attention sees: the tokens before in a decoder, all in an encoder, a window in five blocks of six of Gemma 3") {
  const auto forward = [](const layer& l) { return l.forward_flops / l.sequence.attention_flops; };
  const planning_graph gpt = zoo::model("gpt2", {.tokens = 100}), bert = zoo::model("bert-base", {.tokens = 100});
  CHECK(forward(at(gpt, "l0.attn")) == 100 * 101 / 2);
  CHECK(forward(at(bert, "l0.attn")) == 100 * 100);
  CHECK(at(bert, "l0.attn").sequence.attention == attention_kind::full);
  CHECK(at(bert, "l0.attn").kv_bytes_per_token == 0_B);
  const planning_graph gemma = zoo::model("gemma3-4b", {.tokens = 2000});
  CHECK(forward(at(gemma, "l4.attn")) == 1024 * 1025 / 2 + (2000 - 1024) * 1024);
  CHECK(forward(at(gemma, "l5.attn")) == 2000 * 2001 / 2);
  CHECK(at(gemma, "l4.attn").sequence.window == 1024);
  CHECK(!at(gemma, "l5.attn").sequence.window);
  int whole = 0;
  for (const layer& l : gemma.layers()) whole += l.kind == "attention" && !l.sequence.window ? 1 : 0;
  CHECK(whole == 34 / 6);
  // Norms before and behind each branch: 2 + 2, with parameters of the width, and two of the head in q and k.
  CHECK_NOTHROW(edge(gemma, "l0.o", "l0.post1"));
  CHECK_NOTHROW(edge(gemma, "l0.post2", "l0.add2"));
  CHECK(at(gemma, "l0.q").weight == bytes(2.0 * (2560 * 2048 + 256)));
}

TEST_CASE("of a prompt a decoder's head computes the last token; its workspace holds the gradients of logits in fp32") {
  for (const char* name : {"gpt2", "llama3-8b", "qwen3-30b-a3b", "gemma3-4b"}) {
    INFO(name);
    CHECK(at(zoo::model(name), "lm_head").sequence.last_token);
  }
  CHECK(!at(zoo::model("bert-base"), "lm_head").sequence.last_token);
  CHECK(at(zoo::model("llama3-8b"), "lm_head").workspace == bytes(128256.0 * (4 + 4)));
  CHECK(at(zoo::model("qwen-omni"), "talker.codec_head").sequence.last_token);
}

TEST_CASE("the towers of qwen-omni run once for each request, on as many rows as the media have") {
  const planning_graph g = zoo::model("qwen-omni");
  for (const layer& l : g.layers()) {
    INFO(l.name);
    CHECK(l.runs_per_request() == (starts_with(l.name, "audio.") || starts_with(l.name, "vision.")));
  }
  CHECK(at(g, "audio.l0.q").rows == 1500);
  CHECK(at(g, "audio.l0.attn").forward_flops == flops(4.0 * 20 * 64 * 1500 * 200));
  CHECK(at(g, "vision.l6.attn").forward_flops == flops(4.0 * 16 * 80 * 1024 * 64));
  CHECK(at(g, "vision.l7.attn").forward_flops == flops(4.0 * 16 * 80 * 1024 * 1024));
  CHECK(at(g, "vision.merge1").rows == 256);
  CHECK(at(g, "text.l0.q").rows == 512);
}

TEST_CASE("a convolution has a row for each position of its output") {
  const planning_graph g = zoo::model("resnet50");
  CHECK(at(g, "conv1").rows == 112 * 112);
  CHECK(at(g, "l3.2.c3").rows == 7 * 7);
  CHECK(at(g, "fc").rows == 1);
}

TEST_CASE("the products for queries, keys and values are one kernel, those of gate and up too; adds are part of norms") {
  const auto calls = [](const planning_graph& g, const std::string& block) {
    int total = 0;
    for (const layer& l : g.layers()) total += starts_with(l.name, block) ? l.calls : 0;
    return total;
  };
  // Norm, qkv, rotary positions, attention, o; norm, gate and up, activation, down.
  CHECK(calls(zoo::model("llama3-8b"), "l0.") == 5 + 4);
  CHECK(calls(zoo::model("gpt2"), "l0.") == 5 + 4);
  CHECK(calls(zoo::model("bert-base"), "l0.") == 5 + 4);
  CHECK(calls(zoo::model("mixtral-8x7b"), "l0.") == 5 + 4 + 2);
  CHECK(calls(zoo::model("gemma3-4b"), "l0.") == 6 + 5);
  CHECK(calls(zoo::model("gpt2"), "tokens") == 0);
}

TEST_CASE("experts: all weigh, the active ones work, and a call reads those that its tokens take") {
  const planning_graph g = zoo::model("qwen3-30b-a3b", {.tokens = 10});
  const layer& up = at(g, "l0.up");
  CHECK(up.weight == bytes(2.0 * 128 * 2048 * 768));
  CHECK(up.sequence.experts == expert_weights{128, 8, up.weight});
  CHECK(up.forward_flops == flops(2.0 * 10 * 8 * 2048 * 768));
  CHECK(at(g, "l0.router").weight == bytes(2.0 * 2048 * 128));
  CHECK(edge(g, "l0.act", "l0.down").forward == bytes(2.0 * 10 * 8 * 768));
  CHECK(edge(g, "l0.down", "l0.add2").forward == bytes(2.0 * 10 * 2048));
  const auto read = [&](double sequences) { return work{.layer = up, .batch = sequences, .tokens = 1}.weight_traffic() / up.weight; };
  CHECK(read(1) == Approx(1.0 / 16));
  CHECK(read(16) == Approx(0.644).epsilon(0.001));
}

TEST_CASE("tensors are cut by whole key/value heads between accelerators, too") {
  const planning_graph g = zoo::model("llama3.2-3b");
  for (const char* name : {"l0.q", "l0.k", "l0.v", "l0.attn", "l0.o"}) {
    CHECK(at(g, name).allows(8));
    CHECK(!at(g, name).allows(3));
    CHECK(!at(g, name).allows(16));
  }
  CHECK(at(g, "l0.up").allows(3));
  CHECK(!at(zoo::model("qwen-omni"), "text.l0.attn").allows(4));
}

TEST_CASE("quantised weights have the published sizes") {
  const auto bits = [](const char* name, const std::string& format) {
    return 8 * zoo::model(name, {.tokens = 1, .weights = format}).bytes_per_parameter();
  };
  // llama.cpp, tools/quantize/README.md: bits per weight of Llama-3.1-8B's files.
  CHECK(bits("llama3-8b", "f16") == Approx(16.0005).epsilon(2e-4));
  CHECK(bits("llama3-8b", "q8_0") == Approx(8.5008).epsilon(2e-4));
  CHECK(bits("llama3-8b", "q6_k") == Approx(6.5633).epsilon(2e-4));
  CHECK(bits("llama3-8b", "q5_k_m") == Approx(5.7036).epsilon(2e-4));
  CHECK(bits("llama3-8b", "q4_k_m") == Approx(4.8944).epsilon(2e-4));
  // XiongjieDai, GPU-Benchmarks-on-LLM-Inference: GiB of files.
  CHECK(bits("llama3-70b", "q4_k_m") * 70553706496 / 8 == Approx(39.59 * 1073741824).epsilon(2e-3));
}

TEST_CASE("a weight format changes weights and what tells the format, nothing else") {
  const planning_graph f16 = zoo::model("llama3.2-1b"), q4 = zoo::model("llama3.2-1b", {.weights = "q4_k_m"});
  CHECK(f16.facts().weight_format.empty());
  CHECK(zoo::model("llama3.2-1b", {.weights = "f16"}).facts().weight_format == "f16");
  CHECK(q4.facts().weight_format == "q4");
  CHECK(q4.facts().precision == precision::bf16);
  CHECK(q4.parameters() == Approx(f16.parameters()).epsilon(1e-12));
  CHECK(q4.edges().size() == f16.edges().size());
  for (std::size_t i = 0; i < q4.edges().size(); ++i) CHECK(q4.edges()[i] == f16.edges()[i]);
  for (const layer& l : q4.layers()) {
    const layer& whole = f16[l.id];
    INFO(l.name);
    CHECK(l.forward_flops == whole.forward_flops);
    CHECK(l.activation == whole.activation);
    CHECK(l.traffic == whole.traffic);
    CHECK(l.kv_bytes_per_token == whole.kv_bytes_per_token);
    CHECK(l.weight <= whole.weight);
    CHECK(l.weight_traffic <= whole.weight_traffic);
    if (l.kind == "norm") CHECK(l.weight == whole.weight);
  }
  CHECK(at(q4, "l0.q").weight == bytes(2048.0 * 2048 * 4.5 / 8));
  CHECK(at(q4, "lm_head").weight == bytes(128256.0 * 2048 * 6.5625 / 8));
  CHECK(at(q4, "embed").weight == at(q4, "lm_head").weight);  // tied
  CHECK(at(zoo::model("mixtral-8x7b", {.tokens = 1, .weights = "q4_0"}), "l0.up").sequence.experts->weight ==
        bytes(8 * 4096.0 * 14336 * 4.5 / 8));
  CHECK(zoo::model("resnet50").facts().weight_format.empty());
  CHECK_THROWS_WITH(zoo::model("llama3.2-1b", {.weights = "q4"}),
                    "zoo::model: unknown weights \"q4\"; expected one of f16, q8_0, q6_k, q5_k_m, q4_k_m, q4_0, int8, int4");
}

TEST_CASE("a prompt and a step of Llama 3 8B take what its weights, cache and FLOP say") {
  // 100 TFLOP/s and 1 TB/s, two bytes a weight. FLOP of a token: 2 for each of 6.98e9 weights of blocks; a pair takes 4 * 4096 in each
  // block.
  const planning_graph g = zoo::model("llama3-8b");
  device d{.name = "d", .memory = 1_GB, .compute = 100_TFLOP_per_s, .memory_bandwidth = 1000_GB_per_s};
  const auto run = [&](int tokens, int context) {
    seconds total;
    for (const layer& l : g.layers()) total += roofline{}.time(work_kind{.context = context, .tokens = tokens, .cached = true}.of(l), d);
    return total.value();
  };
  // What operators move between each other comes on top, 4 % of the prompt, with norms, adds and activations as kernels of their own.
  CHECK(run(512, 0) == Approx(0.0732).epsilon(0.05));
  CHECK(run(1, 512) == Approx(0.0151).epsilon(0.01));
  CHECK(run(1, 32768) == Approx(0.0193).epsilon(0.01));
}

TEST_CASE("a residual edge passes each branch of a block") {
  const planning_graph pre = zoo::model("qwen3-0.6b");
  CHECK(edge(pre, "embed", "l0.add1").gradient == bytes(512.0 * 1024 * 2));
  CHECK(edge(pre, "l0.add1", "l0.add2").forward == bytes(512.0 * 1024 * 2));
  const planning_graph post = zoo::model("bert-base");
  CHECK(edge(post, "embed_norm", "l0.add1").forward == edge(post, "l0.norm1", "l0.add2").forward);
  CHECK_NOTHROW(edge(post, "l0.norm2", "l1.q"));
  CHECK_NOTHROW(edge(zoo::model("mobilenetv2"), "b1.project", "b2.add"));
  CHECK_NOTHROW(edge(zoo::model("efficientnet-b1"), "b0.dw", "b0.scale"));
}

TEST_CASE("tied embeddings are one tensor held by two layers") {
  for (const std::string name : {"bert-base", "bert-small", "gpt2", "qwen3-0.6b", "qwen3-1.7b"}) {
    INFO(name);
    const planning_graph g = zoo::model(name);
    REQUIRE(g.weight_groups().size() == 1);
    CHECK(at(g, "embed").weight_group == at(g, "lm_head").weight_group);
    CHECK(at(g, "embed").weight == at(g, "lm_head").weight);
    CHECK(at(g, "embed").weight_traffic < at(g, "lm_head").weight_traffic);
    CHECK(g.parameters() * g.bytes_per_parameter() ==
          std::accumulate(g.layers().begin(), g.layers().end(), 0.0, [](double s, const layer& l) { return s + l.weight.value(); }) -
              at(g, "embed").weight.value());
  }
  CHECK(zoo::model("llama3-8b").weight_groups().empty());
}

TEST_CASE("only looked-up rows of an embedding are read, and ids have no gradient") {
  const planning_graph g = zoo::model("gpt2", {.tokens = 100});
  CHECK(at(g, "embed").weight_traffic == bytes(100.0 * 768 * 2));
  CHECK(at(g, "embed").forward_flops == flops{});
  CHECK(at(g, "embed").backward_input_flops == flops{});
  CHECK(edge(g, "tokens", "embed").forward == 400_B);
  CHECK(edge(g, "tokens", "embed").gradient == 0_B);
  CHECK(edge(g, "embed", "positions").gradient == edge(g, "embed", "positions").forward);
}

TEST_CASE("the first layer of a vision model has no input gradient") {
  const planning_graph g = zoo::model("resnet50");
  const layer& first = at(g, "conv1");
  CHECK(first.backward_input_flops == flops{});
  CHECK(first.backward_weight_flops == first.forward_flops);
  CHECK(edge(g, "input", "conv1").gradient == 0_B);
  CHECK(at(g, "input").activation == bytes(3.0 * 224 * 224 * 4));  // conv1's weight gradient needs the image
  CHECK(at(g, "l0.0.c1").backward_input_flops == at(g, "l0.0.c1").forward_flops);
}

TEST_CASE("a sink's output counts as traffic though no edge carries it") {
  const planning_graph g = zoo::model("resnet50");
  CHECK(at(g, "fc").traffic == bytes((2048.0 + 1000.0) * 4));
  CHECK(at(g, "fc").activation == bytes(1000.0 * 4));  // logarithms of probabilities
}

TEST_CASE("outside training the tensors count that are alive while a layer works") {
  for (const std::string_view name : zoo::model_names()) {
    const planning_graph g = zoo::model(name);
    for (const layer& l : g.layers()) {
      INFO(name << " " << l.name);
      CHECK(l.forward_activation == 0_B);
      double alive = 0;  // of outputs until now, those that this or a later layer reads
      for (const layer& other : g.layers()) {
        if (other.id > l.id) break;
        const auto out = g.out_edges(other.id);
        if (std::any_of(out.begin(), out.end(), [&](const layer_edge& e) { return e.to >= l.id; })) alive += other.largest_output.value();
      }
      alive += g.out_edges(l.id).empty() ? l.traffic.value() - g.edges()[g.in_edges(l.id)[0]].forward.value() : 0;
      CHECK(l.forward_workspace.value() * l.tokens_per_sample == Approx(alive));
    }
  }
  const planning_graph llama = zoo::model("llama3-8b");
  CHECK(at(llama, "l3.down").forward_workspace == bytes(2.0 * (14336 + 4096 + 4096)));  // its input, its output, the residual
  CHECK(at(llama, "l3.act").forward_workspace == bytes(2.0 * (3 * 14336 + 4096)));
}

TEST_CASE("a layer keeps for the backward what PyTorch's kernels keep") {
  const auto kept = [](const planning_graph& g, const std::string& name) { return at(g, name).activation.value() / g.tokens_per_sample(); };
  const planning_graph qwen = zoo::model("qwen3-0.6b"), wide = zoo::model("qwen3-0.6b", {.dtype = precision::fp32});
  for (const char* norm : {"l3.norm1", "l3.norm2", "norm"}) CHECK(kept(qwen, norm) == 4 * (1024 + 1) + 2 * 1024);  // input in fp32
  CHECK(kept(qwen, "l3.q") == 2 * 2048);
  CHECK(kept(qwen, "l3.k") == 2 * 1024);
  CHECK(kept(qwen, "l3.attn") == 2 * 2048 + 4 * 16);
  CHECK(kept(qwen, "l3.gate") == 2 * 3072);
  CHECK(kept(qwen, "l3.act") == 2 * (3072 + 3072));  // SiLU of the gate, and the product
  for (const char* sum : {"embed", "l3.o", "l3.add1", "l3.down", "l3.add2"}) CHECK(kept(qwen, sum) == 0);
  CHECK(kept(qwen, "lm_head") == 4 * 151936);
  // Scores are kept where no flash kernel is: 16 heads, and keys and values repeated for them.
  CHECK(kept(wide, "l3.attn") == 4 * 2048 + 4 * 16 * 512 + 4 * 2 * (2048 - 1024));
  CHECK(kept(zoo::model("gpt2", {.dtype = precision::fp32}), "l3.attn") == 4 * 768 + 4 * 12);
  CHECK(kept(zoo::model("gpt2"), "l3.act") == 2 * 3072 * 4);  // tanh, its neighbours in the product, and the output
  CHECK(kept(zoo::model("bert-base"), "l3.act") == 2 * 3072);
  CHECK(kept(zoo::model("bert-base"), "l3.norm1") == 4 * (768 + 2) + 2 * 768);
  const auto times_output = [](const planning_graph& g, const std::string& name) {
    return at(g, name).activation.value() / at(g, name).largest_output.value();
  };
  const planning_graph resnet = zoo::model("resnet50");
  CHECK(times_output(resnet, "l0.0.c1") == 2);  // input of the batch norm, output of ReLU
  CHECK(times_output(resnet, "l0.0.c3") == 1);  // no ReLU
  CHECK(times_output(resnet, "l0.0.down") == 1);
  CHECK(times_output(resnet, "l0.0.add") == 1);                       // ReLU in place
  CHECK(times_output(resnet, "maxpool") == 1 + 2);                    // indices of 8 bytes
  CHECK(times_output(zoo::model("efficientnet-b1"), "stem") == 3);    // input of SiLU besides
  CHECK(times_output(zoo::model("mobilenetv2"), "b1.project") == 2);  // a convolution reads it
}

TEST_CASE("temporary memory of training: gradients of outputs and of weights") {
  const planning_graph g = zoo::model("qwen3-0.6b"), frozen = zoo::model("qwen-omni-frozen");
  CHECK(at(g, "l3.o").workspace == bytes(2 * 2.0 * 1024));
  CHECK(at(g, "l3.o").scratch == bytes(2.0 * 2048 * 1024) + zoo::kernel_workspace);
  CHECK(at(g, "l3.act").workspace == bytes(4 * 2.0 * 3072));
  CHECK(at(g, "lm_head").scratch == at(g, "lm_head").weight + zoo::kernel_workspace);
  CHECK(at(g, "embed").scratch == at(g, "embed").weight);
  CHECK(at(zoo::model("resnet50"), "l0.0.c1").workspace == bytes(2 * 4.0 * 64 * 56 * 56));
  CHECK(at(frozen, "audio.l0.q").workspace == 0_B);
  CHECK(at(frozen, "audio.l0.q").scratch == 0_B);
  CHECK(at(frozen, "talker.l0.q").scratch == zoo::kernel_workspace);  // its gradient passes, its weights have none
}

TEST_CASE("transformer blocks and residual blocks are blocks that can be run again, each with a number of its own") {
  for (const auto& [name, blocks] :
       {std::pair("qwen3-0.6b", 28), std::pair("qwen-omni", 36 + 32 + 32 + 24), std::pair("resnet50", 16), std::pair("mobilenetv2", 17)}) {
    INFO(name);
    std::vector<int> seen;
    const planning_graph g = zoo::model(name);
    for (const layer& l : g.layers()) {
      if (l.block >= 0 && (seen.empty() || seen.back() != l.block)) seen.push_back(l.block);
    }
    CHECK(seen.size() == static_cast<std::size_t>(blocks));
  }
  CHECK(at(zoo::model("gpt2"), "lm_head").block == -1);
}

TEST_CASE("tokens scale linear layers by themselves and attention by its pairs") {
  const planning_graph a = zoo::model("llama3-8b", {.tokens = 256}), b = zoo::model("llama3-8b", {.tokens = 1024});
  CHECK(at(b, "l3.up").forward_flops == 4.0 * at(a, "l3.up").forward_flops);
  CHECK(at(b, "l3.attn").forward_flops / at(a, "l3.attn").forward_flops == Approx(1024.0 * 1025 / (256.0 * 257)));
  CHECK(at(b, "l3.attn").kv_bytes_per_token == at(a, "l3.attn").kv_bytes_per_token);
  CHECK(a.parameters() == b.parameters());
}

TEST_CASE("the image of a vision model can be chosen") {
  const planning_graph g = zoo::model("efficientnet-b1", {.input = zoo::image_shape{3, 120, 240}});
  CHECK(edge(g, "stem", "b0.dw").forward == bytes(32.0 * 60 * 120 * 4));
  CHECK(g.parameters() == 7794184);
  CHECK_NOTHROW(zoo::model("resnet101", {.input = zoo::image_shape{1, 1, 1}}));
  CHECK_THROWS_WITH(zoo::model("resnet50", {.input = zoo::image_shape{3, 0, 224}}),
                    "zoo::model: \"resnet50\": input = 3,0,224; expected channels, height and width >= 1");
}

TEST_CASE("an unknown model or more tokens than the context say what is known") {
  CHECK_THROWS_AS(zoo::model("bert"), invalid_input);
  CHECK_THROWS_WITH(zoo::model("bert"),
                    Catch::StartsWith("zoo::model: unknown model \"bert\"; expected one of bert-base,") && Catch::Contains("mobilenetv2"));
  CHECK_THROWS_WITH(zoo::model("bert-base", {.tokens = 513}), "zoo::model: \"bert-base\": tokens = 513; expected 1 to 512");
  CHECK_THROWS_AS(zoo::model("qwen-omni", {.tokens = 0}), invalid_input);
  CHECK_NOTHROW(zoo::model("bert-base", {.tokens = 512}));
  CHECK_NOTHROW(zoo::model("resnet50", {.tokens = -1}));  // unused by the model
}

TEST_CASE("the parts of qwen-omni add up") {
  const planning_graph g = zoo::model("qwen-omni");
  CHECK(parameters_of(g, "text.") == 3085938688);
  CHECK(parameters_of(g, "audio.") == 637710848);
  CHECK(parameters_of(g, "vision.") == 668382208);
  CHECK(parameters_of(g, "talker.") == 384604928);
  CHECK(g.parameters() == 3085938688 + 637710848 + 668382208 + 384604928);
  CHECK(edge(g, "audio.proj", "text.join").forward == bytes(750.0 * 2048 * 2));
  CHECK(edge(g, "vision.merge2", "text.join").forward == bytes(256.0 * 2048 * 2));
  CHECK(edge(g, "text.embed", "text.join").forward == bytes(512.0 * 2048 * 2));
  CHECK_NOTHROW(edge(g, "text.join", "text.l0.add1"));
  CHECK_NOTHROW(edge(g, "text.norm", "text.lm_head"));
  CHECK_NOTHROW(edge(g, "text.norm", "talker.join"));
  std::vector<std::string> sources, sinks;
  for (const layer& l : g.layers()) {
    if (g.in_edges(l.id).empty()) sources.push_back(l.name);
    if (g.out_edges(l.id).empty()) sinks.push_back(l.name);
  }
  CHECK(sources == std::vector<std::string>{"audio.mel", "vision.patches", "text.tokens", "talker.codes"});
  CHECK(sinks == std::vector<std::string>{"text.lm_head", "talker.codec_head"});
}

TEST_CASE("a token of qwen-omni is a step of its text and talker: no towers") {
  for (const char* name : {"qwen-omni", "qwen-omni-frozen"}) {
    const planning_graph g = zoo::model(name, {.tokens = 1}), two = zoo::model(name, {.tokens = 2});
    CHECK(g.parameters() == 3085938688 + 384604928);
    CHECK(two.parameters() == zoo::model(name).parameters());
    std::vector<std::string> sources;
    for (const layer& l : g.layers()) {
      if (g.in_edges(l.id).empty()) sources.push_back(l.name);
    }
    CHECK(sources == std::vector<std::string>{"text.tokens", "talker.codes"});
    CHECK_NOTHROW(edge(g, "text.embed", "text.l0.norm1"));
    CHECK(at(g, "text.l0.up").forward_flops * 2 == at(two, "text.l0.up").forward_flops);
    CHECK(at(g, "talker.codec_head").forward_flops * 2 == at(two, "talker.codec_head").forward_flops);
  }
}

TEST_CASE("frozen towers get no gradient, and the frozen talker hands its own back") {
  const planning_graph all = zoo::model("qwen-omni"), g = zoo::model("qwen-omni-frozen");
  CHECK(all.parameters() == g.parameters());
  CHECK(all.forward_flops() == g.forward_flops());
  CHECK(all.size() == g.size());
  for (const layer& l : g.layers()) {
    INFO(l.name);
    const bool tower = starts_with(l.name, "audio.") || starts_with(l.name, "vision.");
    const bool frozen = tower || starts_with(l.name, "talker.");
    CHECK(l.trainable == !frozen);
    if (frozen) CHECK(l.backward_weight_flops == flops{});
    if (tower) {
      CHECK(l.backward_input_flops == flops{});
      CHECK(l.activation == 0_B);
      for (const layer_edge& e : g.out_edges(l.id)) CHECK(e.gradient == 0_B);
    }
  }
  CHECK(edge(all, "audio.proj", "text.join").gradient == edge(all, "audio.proj", "text.join").forward);
  CHECK(edge(g, "talker.proj", "talker.l0.norm1").gradient == edge(g, "talker.proj", "talker.l0.norm1").forward);
  CHECK(edge(g, "text.norm", "talker.join").gradient == bytes(512.0 * 2048 * 2));
  CHECK(edge(g, "talker.embed", "talker.join").gradient == 0_B);
  CHECK(at(g, "talker.l0.q").backward_input_flops == at(g, "talker.l0.q").forward_flops);
  CHECK(at(g, "text.l0.q").backward_weight_flops == at(g, "text.l0.q").forward_flops);
}

TEST_CASE("devices that share a language model's tensors sum up twice a block, and take whole key/value heads") {
  for (const char* name : {"llama3-8b", "gpt2", "bert-small"}) {
    INFO(name);
    const planning_graph g = zoo::model(name, {.tokens = 64});
    stage all;
    int blocks = 0;
    for (const layer& l : g.layers()) {
      all.layers.push_back(l.id);
      blocks += l.kind == "attention" ? 1 : 0;
      if (l.kind == "norm" || l.kind == "add" || l.kind == "input") CHECK(l.split == layer_split::none);
    }
    CHECK(all_reduces_of(g, all, phase::forward).size() == 2 * static_cast<std::size_t>(blocks));
    CHECK(at(g, "l0.q").split == layer_split::columns);
    CHECK(at(g, "l0.attn").split == layer_split::along);
    CHECK(at(g, "l0.o").split == layer_split::rows);
    CHECK(at(g, "l0.act").split == layer_split::along);
    CHECK(at(g, "lm_head").split == layer_split::columns);
    CHECK(at(g, "embed").split == layer_split::rows);
  }
  const planning_graph g = zoo::model("llama3-8b", {.tokens = 1});
  for (const char* name : {"l0.q", "l0.k", "l0.v", "l0.attn", "l0.o"}) CHECK(at(g, name).split_units == 8);
  CHECK(at(g, "l0.up").split_units == 0);
}
