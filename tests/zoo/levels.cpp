// SPDX-License-Identifier: BSL-1.0
/// Models in parts, as runtimes cut them, against the same models in operators; and adapters (LoRA).
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/models.hpp>

namespace test_levels {

using namespace hetplan;

namespace {

const std::vector<std::string> some{"bert-base", "gpt2", "llama3.2-1b", "qwen2.5-0.5b", "qwen3-30b-a3b", "gemma3-1b", "mixtral-8x7b"};

const layer& at(const planning_graph& g, const std::string& name) { return g[g.find(name)]; }

template <class Amount>
double sum(const planning_graph& g, const Amount& amount) {
  double total = 0;
  for (const layer& l : g.layers()) total += amount(l);
  return total;
}

/// Models that no built-in one is: parallel branches, a shared expert, an encoder.
std::map<std::string, zoo::language_model> others() {
  using namespace zoo;
  language_model plain{.blocks = {.layers = 3, .hidden = 256, .heads = 4, .kv_heads = 4, .head_dim = 64, .intermediate = 1024},
                       .vocabulary = 1000,
                       .context = 2048};
  plain.blocks.norm = norm_kind::layer;
  plain.blocks.mlp = mlp_kind::plain;
  language_model neox = plain, phi = plain, shared = plain, sound = plain, image = plain, opt = plain;
  neox.blocks.residual = residual_kind::parallel;
  phi.blocks.residual = residual_kind::parallel_one_norm;
  shared.blocks.mlp = mlp_kind::gated;
  shared.blocks.experts = 8;
  shared.blocks.active_experts = 2;
  shared.blocks.shared_intermediate = 512;
  shared.blocks.shared_gate = true;
  sound.blocks.cross_attention = true;
  sound.sound = sound_encoder{.mel = 80, .frames = 100, .blocks = plain.blocks};
  sound.sound->blocks.attention = attention_kind::full;
  image.image = image_patches{.side = 64, .patch = 16};
  image.head = head_kind::classes;
  image.classes = 10;
  image.tied = false;
  image.context = 1;
  image.blocks.attention = attention_kind::full;
  opt.embedding_width = 128;
  opt.learned_positions = true;
  opt.more_positions = 2;
  return {{"neox", neox}, {"phi", phi}, {"shared", shared}, {"sound", sound}, {"image", image}, {"opt", opt}};
}

std::vector<std::pair<planning_graph, planning_graph>> pairs(int lora) {
  std::vector<std::pair<planning_graph, planning_graph>> all;
  for (const std::string& name : some) {
    all.emplace_back(zoo::model(name, {.lora = lora}), zoo::model(name, {.lora = lora, .level = zoo::level::parts}));
  }
  for (const auto& [name, m] : others()) {
    all.emplace_back(zoo::build_language_model(name, m, {.lora = lora}),
                     zoo::build_language_model(name, m, {.lora = lora, .level = zoo::level::parts}));
  }
  return all;
}

}  // namespace

TEST_CASE("parts have the sums of their operators") {
  for (const int lora : {0, 8}) {
    for (const auto& [fine, coarse] : pairs(lora)) {
      INFO(fine.name() << ", rank " << lora);
      CHECK(coarse.size() < fine.size() / 2);
      CHECK(coarse.facts() == fine.facts());
      CHECK(coarse.parameters() == fine.parameters());
      const auto same = [&](const char* what, auto&& amount) {
        INFO(what);
        CHECK(sum(coarse, amount) == Approx(sum(fine, amount)).epsilon(1e-12));
      };
      same("forward", [](const layer& l) { return l.forward_flops.value(); });
      same("backward_input", [](const layer& l) { return l.backward_input_flops.value(); });
      same("backward_weight", [](const layer& l) { return l.backward_weight_flops.value(); });
      same("attention", [](const layer& l) { return l.sequence.attention_flops.value(); });
      same("weight", [](const layer& l) { return l.weight.value(); });
      same("trainable", [](const layer& l) { return l.trainable_weight().value(); });
      same("weight_traffic", [](const layer& l) { return l.weight_traffic.value(); });
      same("traffic", [](const layer& l) { return l.traffic.value(); });
      same("backward_traffic", [](const layer& l) { return l.backward_traffic.value(); });
      same("activation", [](const layer& l) { return l.activation.value(); });
      same("forward_activation", [](const layer& l) { return l.forward_activation.value(); });
      same("cache", [](const layer& l) { return l.kv_bytes_per_token.value(); });
      same("calls", [](const layer& l) { return 1.0 * l.calls; });
      same("experts", [](const layer& l) { return l.sequence.experts ? l.sequence.experts->weight.value() : 0; });
      const auto largest = [](const planning_graph& g, auto&& amount) {
        double most = 0;
        for (const layer& l : g.layers()) most = std::max(most, amount(l));
        return most;
      };
      for (const auto& amount : {+[](const layer& l) { return l.workspace.value(); }, +[](const layer& l) { return l.scratch.value(); }})
        CHECK(largest(coarse, amount) == largest(fine, amount));
    }
  }
}

TEST_CASE("a block is attention and MLP, with norms and sums, between embedding and head") {
  const planning_graph g = zoo::model("llama3.2-1b", {.level = zoo::level::parts});
  std::vector<std::string> names;
  for (const layer& l : g.layers()) names.push_back(l.name);
  REQUIRE(names.size() == 1 + 2 * 16 + 2);
  CHECK(names[0] == "embed");
  CHECK(names[1] == "l0.attn");
  CHECK(names[2] == "l0.mlp");
  CHECK(names[33] == "norm");  // runs for every token, the head for the last one
  CHECK(names[34] == "lm_head");
  CHECK(at(g, "l3.attn").kind == "attention");
  CHECK(at(g, "l3.mlp").kind == "mlp");
  CHECK(at(g, "l3.attn").split == layer_split::rows);
  CHECK(at(g, "l3.attn").split_units == 8);
  CHECK(at(g, "l3.attn").degrees == std::vector{1, 2, 4, 8});
  CHECK(at(g, "l3.attn").block == 3);
  for (const layer& l : g.layers()) CHECK(g.in_edges(l.id).size() == (l.name == "embed" ? 0U : 1U));  // a chain
  CHECK(at(zoo::model("qwen3-30b-a3b", {.level = zoo::level::parts}), "l0.mlp").kind == "experts");
}

TEST_CASE("a part takes at most its operators' time, and nearly that where one of work and memory binds") {
  const device d = zoo::device("a100-80gb", "gpu");
  for (const std::string& name : some) {
    const planning_graph fine = zoo::model(name), coarse = zoo::model(name, {.level = zoo::level::parts});
    const bool decodes = name != "bert-base";
    const auto time = [&](const planning_graph& g, const work_kind& k) {
      double total = 0;
      for (const layer& l : g.layers()) total += roofline{}.time(k.of(l), d).value();
      return total;
    };
    for (const work_kind& k :
         {work_kind{.phase = phase::forward, .batch = 1}, work_kind{.phase = phase::forward, .batch = 64},
          work_kind{.phase = phase::forward, .batch = 1, .context = 512, .tokens = 1, .cached = true},
          work_kind{.phase = phase::backward_input, .batch = 8}, work_kind{.phase = phase::backward_weight, .batch = 8}}) {
      if (k.cached && !decodes) continue;
      INFO(name << " phase " << static_cast<int>(k.phase) << " batch " << k.batch << " tokens " << k.tokens);
      const double one = time(coarse, k), each = time(fine, k);
      // In the backward FLOP of attention count among products, and a part's weight gradient moves all that its operators move, those
      // without weights too.
      const bool back = k.phase != phase::forward;
      CHECK(one <= each * (k.phase == phase::backward_weight ? 1.15 : back ? 1.05 : 1 + 1e-9));
      CHECK(one >= each * (k.cached ? 0.99 : back ? 0.4 : 0.6));
    }
  }
}

TEST_CASE("only adapters learn, rank (in + out) parameters a product") {
  constexpr int rank = 16;
  const auto learns = [](const planning_graph& g) { return sum(g, [](const layer& l) { return l.trainable_weight().value(); }) / 2; };
  for (const zoo::level level : {zoo::level::operators, zoo::level::parts}) {
    const planning_graph llama = zoo::model("llama3-8b", {.lora = rank, .level = level});
    // q, o: 4096 and 4096; k, v: 4096 and 1024; gate, up, down: 4096 and 14336.
    CHECK(learns(llama) == 32.0 * rank * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)));
    CHECK(learns(llama) == 41'943'040);  // what PEFT prints for rank 16 on all products of Llama 3 8B
    CHECK(llama.parameters() == 8030261248 + 41'943'040);
    const planning_graph gpt2 = zoo::model("gpt2", {.lora = rank, .level = level});
    CHECK(learns(gpt2) == 12.0 * rank * (4 * (768 + 768) + 2 * (768 + 3072)));
    const planning_graph experts = zoo::model("qwen3-30b-a3b", {.lora = rank, .level = level});
    CHECK(learns(experts) == 48.0 * rank * (2 * (2048 + 4096) + 2 * (2048 + 512)));  // attention alone
  }
  CHECK_THROWS_WITH(zoo::model("gpt2", {.lora = -1}), Catch::Contains("lora = -1"));
}

TEST_CASE("with adapters gradients pass frozen products, which need neither their input nor a gradient of their own") {
  const planning_graph g = zoo::model("llama3-8b", {.lora = 16}), full = zoo::model("llama3-8b");
  const layer& q = at(g, "l5.q");
  CHECK_FALSE(q.trainable);
  CHECK(q.backward_weight_flops == flops{});
  CHECK(q.backward_input_flops == q.forward_flops);  // the gradient passes
  const layer& first = at(g, "l0.q");
  CHECK(first.backward_input_flops == flops{});  // nothing below it learns
  const layer& a = at(g, "l5.q.lora");
  CHECK(a.trainable);
  CHECK(a.forward_flops == flops(2.0 * 512 * 16 * (4096 + 4096)));
  CHECK(a.backward_input_flops == a.forward_flops);
  CHECK(a.backward_weight_flops == a.forward_flops);
  CHECK(at(g, "embed").backward_weight_flops == flops{});
  CHECK(at(g, "l5.norm1").activation > bytes(512.0 * 4096 * 2));  // its output, which adapters keep, and its own
  CHECK(at(g, "l5.q").activation == bytes{});                     // only the sum of both is kept
  CHECK(at(g, "l5.q.sum").activation == bytes(512.0 * 4096 * 2));
  const double backward = sum(g, [](const layer& l) { return (l.backward_input_flops + l.backward_weight_flops).value(); });
  const double forward = g.forward_flops().value();
  CHECK(backward > 0.9 * forward);
  CHECK(backward < 1.2 * forward);
  CHECK(sum(full, [](const layer& l) { return (l.backward_input_flops + l.backward_weight_flops).value(); }) >
        1.9 * full.forward_flops().value());
}

TEST_CASE("training adapters takes far less memory than training all, whatever the format of the frozen weights") {
  const workload w{.mode = mode::training, .optimizer = optimizer::adamw};
  const auto state = [&](const planning_graph& g) { return sum(g, [&](const layer& l) { return plain_memory{}.state(l, w).value(); }); };
  const planning_graph full = zoo::model("llama3-8b"), few = zoo::model("llama3-8b", {.lora = 16});
  CHECK(state(few) < 0.3 * state(full));
  const planning_graph quantised = zoo::model("llama3-8b", {.weights = "int4", .lora = 16});
  const double frozen = sum(quantised, [](const layer& l) { return l.trainable ? 0 : l.weight.value(); });
  const trained_bytes adam = [&] {
    trained_bytes all;
    for (const layer& l : quantised.layers()) {
      if (!l.trainable) continue;
      const trained_bytes one = trained_bytes_of(l, w);
      all.weights += one.weights;
      all.state += one.state;
    }
    return all;
  }();
  CHECK(adam.weights == 41'943'040 * 2.0);
  CHECK(adam.state ==
        Approx(adam.weights * trained_bytes_of(at(few, "l0.q.lora"), w).state / trained_bytes_of(at(few, "l0.q.lora"), w).weights));
  CHECK(frozen < 6e9);
}

}  // namespace test_levels
