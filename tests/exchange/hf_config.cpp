// SPDX-License-Identifier: BSL-1.0
/// Configurations of our own writing, with the numbers of published models.
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/hf_config.hpp>
#include <hetplan/zoo/models.hpp>

namespace test_hf_config {

using namespace hetplan;
using exchange::model_description;

namespace {

model_description read(const std::string& json, const std::string& name = "m") {
  return exchange::read_hf_config(io::json_document::parse(json, "config.json"), name);
}

planning_graph graph(const std::string& json, const exchange::import_choice& choice = {}) {
  model_description d = read(json);
  return exchange::graph_of(d, choice);
}

/// A configuration as most are written.
std::string decoder(const std::string& type, int layers, int hidden, int heads, int kv_heads, int intermediate, int vocabulary, int context,
                    const std::string& more = "") {
  const auto n = [](const char* key, int value) { return ", \"" + std::string(key) + "\": " + std::to_string(value); };
  return "{\"model_type\": \"" + type + "\"" + n("num_hidden_layers", layers) + n("hidden_size", hidden) + n("num_attention_heads", heads) +
         n("num_key_value_heads", kv_heads) + n("intermediate_size", intermediate) + n("vocab_size", vocabulary) +
         n("max_position_embeddings", context) + (more.empty() ? "" : ", " + more) + "}";
}

std::string whisper(int width, int layers, int heads, int decoder_layers, int mel, int vocabulary) {
  const std::string w = std::to_string(width), h = std::to_string(heads), wide = std::to_string(4 * width);
  return R"({"model_type": "whisper", "d_model": )" + w + R"(, "encoder_layers": )" + std::to_string(layers) + R"(, "decoder_layers": )" +
         std::to_string(decoder_layers) + R"(, "encoder_attention_heads": )" + h + R"(, "decoder_attention_heads": )" + h +
         R"(, "encoder_ffn_dim": )" + wide + R"(, "decoder_ffn_dim": )" + wide + R"(, "num_mel_bins": )" + std::to_string(mel) +
         R"(, "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": )" + std::to_string(vocabulary) + "}";
}

std::string vit(int layers, int hidden, int heads, int patch, int labels) {
  std::string names;
  for (int i = 0; i < labels; ++i) names += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": \"x\"";
  return R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "hidden_size": )" + std::to_string(hidden) + R"(, "num_attention_heads": )" + std::to_string(heads) +
         R"(, "intermediate_size": )" + std::to_string(4 * hidden) + R"(, "image_size": 224, "patch_size": )" + std::to_string(patch) +
         R"(, "id2label": {)" + names + "}}";
}

/// Sources  the totals of the safetensors on the models' pages at huggingface.co; GPT-NeoX: EleutherAI/gpt-neox, README; ViT: torchvision's
///          documentation of vit_b_16 and vit_l_16; BERT: what transformers counts for BertForMaskedLM and BertModel. Numbers of the
///          configurations: the same pages.
struct published {
  const char* name;
  std::string config;
  double parameters;
};

const std::string tied = "\"tie_word_embeddings\": true";

const std::vector<published>& all_published() {
  static const std::vector<published> all{
      {"meta-llama/Llama-2-13b-hf", decoder("llama", 40, 5120, 40, 40, 13824, 32000, 4096), 13015864320},
      {"meta-llama/Llama-2-70b-hf", decoder("llama", 80, 8192, 64, 8, 28672, 32000, 4096), 68976648192},
      {"meta-llama/Llama-3.1-8B", decoder("llama", 32, 4096, 32, 8, 14336, 128256, 131072), 8030261248},
      {"meta-llama/Llama-3.1-405B", decoder("llama", 126, 16384, 128, 8, 53248, 128256, 131072), 405853388800},
      {"meta-llama/Llama-3.2-1B", decoder("llama", 16, 2048, 32, 8, 8192, 128256, 131072, tied), 1235814400},
      {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", decoder("llama", 22, 2048, 32, 4, 5632, 32000, 2048), 1100048384},
      {"mistralai/Mistral-7B-v0.1", decoder("mistral", 32, 4096, 32, 8, 14336, 32000, 32768, "\"sliding_window\": 4096"), 7241732096},
      {"mistralai/Mixtral-8x7B-v0.1",
       decoder("mixtral", 32, 4096, 32, 8, 14336, 32000, 32768, "\"num_local_experts\": 8, \"num_experts_per_tok\": 2"), 46702792704},
      {"mistralai/Mixtral-8x22B-v0.1",
       decoder("mixtral", 56, 6144, 48, 8, 16384, 32000, 65536, "\"num_local_experts\": 8, \"num_experts_per_tok\": 2"), 140620634112},
      {"Qwen/Qwen2.5-0.5B", decoder("qwen2", 24, 896, 14, 2, 4864, 151936, 32768, tied), 494032768},
      {"Qwen/Qwen2.5-1.5B", decoder("qwen2", 28, 1536, 12, 2, 8960, 151936, 131072, tied), 1543714304},
      {"Qwen/Qwen2.5-7B", decoder("qwen2", 28, 3584, 28, 4, 18944, 152064, 131072), 7615616512},
      {"Qwen/Qwen2.5-14B", decoder("qwen2", 48, 5120, 40, 8, 13824, 152064, 131072), 14770033664},
      {"Qwen/Qwen2.5-32B", decoder("qwen2", 64, 5120, 40, 8, 27648, 152064, 131072), 32763876352},
      {"Qwen/Qwen2.5-72B", decoder("qwen2", 80, 8192, 64, 8, 29568, 152064, 131072), 72706203648},
      {"Qwen/Qwen1.5-MoE-A2.7B",
       decoder(
           "qwen2_moe", 24, 2048, 16, 16, 5632, 151936, 8192,
           "\"num_experts\": 60, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 1408, \"shared_expert_intermediate_size\": 5632"),
       14315784192},
      {"Qwen/Qwen3-14B", decoder("qwen3", 40, 5120, 40, 8, 17408, 151936, 40960, "\"head_dim\": 128"), 14768307200},
      {"Qwen/Qwen3-32B", decoder("qwen3", 64, 5120, 64, 8, 25600, 151936, 40960, "\"head_dim\": 128"), 32762123264},
      {"Qwen/Qwen3-235B-A22B",
       decoder("qwen3_moe", 94, 4096, 64, 4, 12288, 151936, 40960,
               "\"head_dim\": 128, \"num_experts\": 128, \"num_experts_per_tok\": 8, \"moe_intermediate_size\": 1536"),
       235093634560},
      {"google/gemma-2b", decoder("gemma", 18, 2048, 8, 1, 16384, 256000, 8192, "\"head_dim\": 256"), 2506172416},
      {"google/gemma-2-2b", decoder("gemma2", 26, 2304, 8, 4, 9216, 256000, 8192, "\"head_dim\": 256, \"sliding_window\": 4096"),
       2614341888},
      {"google/gemma-2-9b", decoder("gemma2", 42, 3584, 16, 8, 14336, 256000, 8192, "\"head_dim\": 256, \"sliding_window\": 4096"),
       9241705984},
      {"google/gemma-2-27b", decoder("gemma2", 46, 4608, 32, 16, 36864, 256000, 8192, "\"head_dim\": 128, \"sliding_window\": 4096"),
       27227128320},
      {"google/gemma-3-1b-it", decoder("gemma3_text", 26, 1152, 4, 1, 6912, 262144, 32768, "\"head_dim\": 256, \"sliding_window\": 512"),
       999885952},
      {"microsoft/Phi-3-mini-4k-instruct", decoder("phi3", 32, 3072, 32, 32, 8192, 32064, 4096, "\"sliding_window\": 2047"), 3821079552},
      {"microsoft/phi-4", decoder("phi3", 40, 5120, 40, 10, 17920, 100352, 16384, "\"sliding_window\": null"), 14659507200},
      {"microsoft/phi-2", decoder("phi", 32, 2560, 32, 32, 10240, 51200, 2048), 2779683840},
      {"openai-community/gpt2",
       R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})", 124439808},
      {"openai-community/gpt2-xl",
       R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257, "n_inner": null})",
       1557611200},
      {"EleutherAI/gpt-neox-20b", decoder("gpt_neox", 44, 6144, 64, 64, 24576, 50432, 2048), 20554567680},
      {"EleutherAI/pythia-1.4b", decoder("gpt_neox", 24, 2048, 16, 16, 8192, 50304, 2048), 1414647808},
      {"EleutherAI/pythia-6.9b", decoder("gpt_neox", 32, 4096, 32, 32, 16384, 50432, 2048), 6857302016},
      {"facebook/opt-125m",
       R"({"model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "ffn_dim": 3072,
           "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "do_layer_norm_before": true})",
       125239296},
      {"facebook/opt-350m",
       R"({"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "ffn_dim": 4096,
           "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 512, "do_layer_norm_before": false})",
       331196416},
      {"google-bert/bert-base-uncased",
       decoder("bert", 12, 768, 12, 12, 3072, 30522, 512, "\"type_vocab_size\": 2, \"architectures\": [\"BertForMaskedLM\"]"), 109514298},
      {"bert-base-uncased without a head",
       decoder("bert", 12, 768, 12, 12, 3072, 30522, 512, "\"type_vocab_size\": 2, \"architectures\": [\"BertModel\"]"), 109482240},
      {"google/vit-base-patch16-224", vit(12, 768, 12, 16, 1000), 86567656},
      {"google/vit-large-patch16-224", vit(24, 1024, 16, 16, 1000), 304326632},
      {"openai/whisper-tiny", whisper(384, 4, 6, 4, 80, 51865), 37760640},
      {"openai/whisper-large-v3", whisper(1280, 32, 20, 32, 128, 51866), 1543490560},
      {"openai/whisper-large-v3-turbo", whisper(1280, 32, 20, 4, 128, 51866), 808878080}};
  return all;
}

}  // namespace

TEST_CASE("parameter counts of configurations are those of the published weights") {
  for (const published& p : all_published()) {
    INFO(p.name);
    for (const zoo::level level : {zoo::level::parts, zoo::level::operators}) {
      const planning_graph g = graph(p.config, {.level = level});
      CHECK(g.parameters() == Approx(p.parameters).epsilon(1e-12));
    }
  }
}

TEST_CASE("a configuration of a built-in model gives that model") {
  const std::string d128 = "\"head_dim\": 128", gemma = ", \"sliding_window\": 1024";
  const auto moe = [&](int wide) {
    return d128 + ", \"num_experts\": 128, \"num_experts_per_tok\": 8, \"moe_intermediate_size\": " + std::to_string(wide);
  };
  const std::vector<std::pair<std::string, std::string>> all{
      {"gpt2", R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})"},
      {"tinyllama-1.1b", decoder("llama", 22, 2048, 32, 4, 5632, 32000, 2048)},
      {"llama2-7b", decoder("llama", 32, 4096, 32, 32, 11008, 32000, 4096)},
      {"llama3-8b", decoder("llama", 32, 4096, 32, 8, 14336, 128256, 8192)},
      {"llama3.1-8b", decoder("llama", 32, 4096, 32, 8, 14336, 128256, 131072)},
      {"llama3.1-70b", decoder("llama", 80, 8192, 64, 8, 28672, 128256, 131072)},
      {"llama3.3-70b", decoder("llama", 80, 8192, 64, 8, 28672, 128256, 131072)},
      {"llama3.2-1b", decoder("llama", 16, 2048, 32, 8, 8192, 128256, 131072, tied + ", \"head_dim\": 64")},
      {"llama3.2-3b", decoder("llama", 28, 3072, 24, 8, 8192, 128256, 131072, tied + ", " + d128)},
      {"mistral-7b", decoder("mistral", 32, 4096, 32, 8, 14336, 32768, 32768, "\"sliding_window\": null")},
      {"mixtral-8x7b", decoder("mixtral", 32, 4096, 32, 8, 14336, 32000, 32768, "\"num_local_experts\": 8, \"num_experts_per_tok\": 2")},
      {"mixtral-8x22b", decoder("mixtral", 56, 6144, 48, 8, 16384, 32000, 65536, "\"num_local_experts\": 8, \"num_experts_per_tok\": 2")},
      {"qwen2.5-0.5b", decoder("qwen2", 24, 896, 14, 2, 4864, 151936, 32768, tied)},
      {"qwen2.5-3b", decoder("qwen2", 36, 2048, 16, 2, 11008, 151936, 32768, tied)},
      {"qwen2.5-7b", decoder("qwen2", 28, 3584, 28, 4, 18944, 152064, 32768, "\"use_sliding_window\": false, \"sliding_window\": 4096")},
      {"qwen2.5-72b", decoder("qwen2", 80, 8192, 64, 8, 29568, 152064, 32768)},
      {"qwen3-0.6b", decoder("qwen3", 28, 1024, 16, 8, 3072, 151936, 40960, tied + ", " + d128)},
      {"qwen3-14b", decoder("qwen3", 40, 5120, 40, 8, 17408, 151936, 40960, d128)},
      {"qwen3-32b", decoder("qwen3", 64, 5120, 64, 8, 25600, 151936, 40960, d128)},
      {"qwen3-30b-a3b", decoder("qwen3_moe", 48, 2048, 32, 4, 6144, 151936, 40960, moe(768))},
      {"qwen3-235b-a22b", decoder("qwen3_moe", 94, 4096, 64, 4, 12288, 151936, 40960, moe(1536))},
      {"phi4-mini", decoder("phi3", 32, 3072, 24, 8, 8192, 200064, 131072, tied + ", \"sliding_window\": 262144")},
      {"phi4", decoder("phi3", 40, 5120, 40, 10, 17920, 100352, 16384, "\"sliding_window\": null")},
      {"gemma3-1b", decoder("gemma3_text", 26, 1152, 4, 1, 6912, 262144, 32768, "\"head_dim\": 256, \"sliding_window\": 512")},
      {"gemma3-4b",
       R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
           "num_hidden_layers": 34, "sliding_window": 1024, "head_dim": 256}, "vision_config": {"hidden_size": 1152}})"},
      {"gemma3-12b", decoder("gemma3_text", 48, 3840, 16, 8, 15360, 262208, 131072, "\"head_dim\": 256" + gemma)},
      {"gemma3-27b", decoder("gemma3_text", 62, 5376, 32, 16, 21504, 262208, 131072, d128 + gemma)}};
  for (const auto& [name, config] : all) {
    INFO(name);
    for (const zoo::level level : {zoo::level::operators, zoo::level::parts}) {
      model_description d = read(config, name);
      zoo::model_options built_in{.level = level};
      CHECK(exchange::graph_of(d, {.dtype = precision::bf16, .level = level}) == zoo::model(name, built_in));
    }
  }
}

TEST_CASE("blocks differ where a configuration says so") {
  const auto windows = [](const model_description& d) {
    std::string s;
    for (const zoo::transformer& t : d.blocks) s += t.window ? 'w' : '.';
    return s;
  };
  const std::string head = "\"head_dim\": 64, ";
  CHECK(windows(read(decoder("mistral", 3, 256, 4, 2, 512, 100, 8192, "\"sliding_window\": 4096"))) == "www");
  CHECK(windows(read(decoder("mistral", 3, 256, 4, 2, 512, 100, 4096, "\"sliding_window\": 4096"))) == "...");
  CHECK(windows(read(decoder("gemma2", 4, 256, 4, 2, 512, 100, 8192, head + "\"sliding_window\": 4096"))) == "w.w.");
  CHECK(windows(read(decoder("gemma3_text", 7, 256, 4, 2, 512, 100, 8192, head + "\"sliding_window\": 512"))) == "wwwww.w");
  CHECK(windows(read(decoder("gemma3_text", 4, 256, 4, 2, 512, 100, 8192,
                             head + "\"sliding_window\": 512, \"sliding_window_pattern\": 2"))) == "w.w.");
  CHECK(windows(read(decoder("gemma3_text", 3, 256, 4, 2, 512, 100, 8192,
                             head + "\"sliding_window\": 512, \"layer_types\": [\"full_attention\", \"sliding_attention\", "
                                    "\"full_attention\"]"))) == ".w.");
  CHECK(windows(read(decoder("qwen2", 4, 256, 4, 2, 512, 100, 8192,
                             "\"use_sliding_window\": true, \"sliding_window\": 4096, \"max_window_layers\": 3"))) == "...w");
  const model_description sparse =
      read(decoder("qwen2_moe", 4, 256, 4, 2, 512, 100, 8192,
                   "\"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64, "
                   "\"shared_expert_intermediate_size\": 128, \"decoder_sparse_step\": 2, \"mlp_only_layers\": [3]"));
  std::string kinds;
  for (const zoo::transformer& t : sparse.blocks) kinds += t.experts > 0 ? 'e' : 'd';
  CHECK(kinds == "dedd");
  CHECK(sparse.blocks[0].intermediate == 512);
  CHECK(sparse.blocks[1].intermediate == 64);
  CHECK(sparse.blocks[1].shared_gate);
}

TEST_CASE("quantised configurations set bits, weight format and precision") {
  const auto with = [](const std::string& q) {
    return decoder("llama", 2, 256, 4, 2, 512, 1000, 2048, "\"torch_dtype\": \"float16\", \"quantization_config\": {" + q + "}");
  };
  const double plain = 256 * 256.0;  // weights of a query matrix
  const auto bits = [&](const std::string& config) {
    return graph(config, {.level = zoo::level::operators})[layer_id(3)].weight.value() * 8 / plain;
  };
  CHECK(graph(with("\"quant_method\": \"gptq\", \"bits\": 4"), {.level = zoo::level::operators})[layer_id(3)].name == "l0.q");
  CHECK(bits(with("\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 128")) == 4 + 20.0 / 128);
  CHECK(bits(with("\"quant_method\": \"gptq\", \"bits\": 3, \"group_size\": -1")) == 3);
  CHECK(bits(with("\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 64")) == 4 + 20.0 / 64);
  CHECK(bits(with("\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true")) == 4.5);
  CHECK(bits(with("\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_use_double_quant\": true")) ==
        Approx(4 + 8.0 / 64 + 32.0 / 64 / 256));
  CHECK(bits(with("\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true")) == 8);
  CHECK(bits(with("\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]")) == 8 + 32.0 / 16384);
  CHECK(bits(with("\"bits\": 4, \"group_size\": 64")) == 4.5);
  CHECK(bits(with(
            "\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, \"type\": \"int\", "
            "\"group_size\": 128, \"symmetric\": true}}}")) == 4 + 16.0 / 128);
  const planning_graph q4 = graph(with("\"quant_method\": \"awq\", \"bits\": 4"));
  CHECK(q4.facts().weight_format == "q4");
  CHECK(q4.facts().precision == precision::fp16);
  CHECK(q4[q4.find("embed")].weight == bytes(1000 * 256 * 2));
  const planning_graph fp8 = graph(with("\"quant_method\": \"fp8\""));
  CHECK(fp8.facts().weight_format == "fp8");
  CHECK(graph(with("\"bits\": 4, \"group_size\": 64"))[layer_id(0)].weight == bytes(1000 * 256 * 4.5 / 8));  // MLX quantises the table, too
  CHECK(graph(decoder("llama", 2, 256, 4, 2, 512, 1000, 2048, "\"dtype\": \"float32\"")).facts().precision == precision::fp32);
}

TEST_CASE("what is wrong with a configuration is told with its JSON pointer") {
  const auto fault = [](const std::string& config) -> std::string {
    try {
      static_cast<void>(graph(config));
    } catch (const invalid_input& e) {
      return e.what();
    }
    return "";
  };
  CHECK(fault("{}") == "config.json: /model_type: expected one of " + io::joined(exchange::hf_model_types) + ", got nothing");
  CHECK(fault("[]") == "config.json: expected a configuration (a JSON object), got an empty array");
  CHECK(fault(decoder("lama", 2, 256, 4, 2, 512, 100, 2048)).find("config.json: /model_type: expected one of bert, gemma, ") == 0);
  CHECK(fault(decoder("lama", 2, 256, 4, 2, 512, 100, 2048)).find("; did you mean \"llama\"?") != std::string::npos);
  CHECK(fault(decoder("llama", -2, 256, 4, 2, 512, 100, 2048)) ==
        "config.json: /num_hidden_layers: expected an integer from 1 to 4096, got -2");
  CHECK(fault(decoder("llama", 2, 256, 3, 3, 512, 100, 2048)) ==
        "config.json: /num_attention_heads: expected a divisor of hidden_size (256), or head_dim, got 3");
  CHECK(fault(decoder("llama", 2, 256, 4, 3, 512, 100, 2048)) ==
        "config.json: /num_key_value_heads: expected a divisor of num_attention_heads (4), got 3");
  CHECK(fault(decoder("llama", 2, 256, 4, 8, 512, 100, 2048)) ==
        "config.json: /num_key_value_heads: expected a divisor of num_attention_heads (4), got 8");
  CHECK(fault(decoder("llama", 2, 256, 4, 2, 0, 100, 2048)) ==
        "config.json: /intermediate_size: expected an integer from 1 to 16777216, got 0");
  CHECK(fault(decoder("llama", 2, 256, 4, 2, 512, 100, 2048, "\"head_dim\": 0")).find("/head_dim: expected an integer from 1") !=
        std::string::npos);
  CHECK(fault(decoder("mistral", 2, 256, 4, 2, 512, 100, 2048, "\"sliding_window\": 0"))
            .find("/sliding_window: expected an integer from 1") != std::string::npos);
  CHECK(fault(decoder("mixtral", 2, 256, 4, 2, 512, 100, 2048, "\"num_local_experts\": 4, \"num_experts_per_tok\": 5")) ==
        "config.json: /num_experts_per_tok: expected at most num_local_experts (4), got 5");
  CHECK(fault(decoder("mixtral", 2, 256, 4, 2, 512, 100, 2048, "\"num_local_experts\": 4"))
            .find("/num_experts_per_tok: expected an integer") != std::string::npos);
  CHECK(fault(decoder("qwen3_moe", 2, 256, 4, 2, 512, 100, 2048,
                      "\"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64, \"mlp_only_layers\": [2]"))
            .find("/mlp_only_layers/0: expected an integer from 0 to 1, got 2") != std::string::npos);
  CHECK(fault(decoder("gemma3_text", 2, 256, 4, 2, 512, 100, 2048, "\"layer_types\": [\"full_attention\"]"))
            .find("/layer_types: expected 2 types, one for each layer, got 1") != std::string::npos);
  CHECK(fault(decoder("llama", 2, 256, 4, 2, 512, 100, 2048, "\"torch_dtype\": \"int7\"")).find("/torch_dtype: expected \"bfloat16\"") !=
        std::string::npos);
  CHECK(fault(decoder("llama", 2, 256, 4, 2, 512, 100, 2048, "\"quantization_config\": {\"quant_method\": \"magic\"}"))
            .find("/quantization_config/quant_method: expected one of gptq, awq") != std::string::npos);
  CHECK(fault(decoder("llama", 2, 256, 4, 2, 512, 100, 2048, "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 7}"))
            .find("/quantization_config/bits: expected 2, 3, 4, 5, 6 or 8, got 7") != std::string::npos);
  CHECK(
      fault(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257})").find("/n_positions: expected") !=
      std::string::npos);
  CHECK(fault(decoder("vit", 2, 256, 4, 4, 512, 100, 2048, "\"image_size\": 224, \"patch_size\": 15"))
            .find("/patch_size: expected a divisor of image_size (224), got 15") != std::string::npos);
  model_description d = read(decoder("llama", 2, 256, 4, 2, 512, 100, 2048));
  CHECK_THROWS_WITH(exchange::graph_of(d, {.tokens = 4096}), Catch::Contains("expected 1 to 2048"));
}

TEST_CASE("the encoder of Whisper runs once a request, and its decoder's cache holds its own tokens alone") {
  const planning_graph g = graph(whisper(384, 4, 6, 4, 80, 51865));
  CHECK(g.tokens_per_sample() == 448);
  double cache = 0;
  for (const layer& l : g.layers()) {
    const bool encodes = l.name.rfind("enc.", 0) == 0 || l.name.find("cross_kv") != std::string::npos;
    INFO(l.name);
    CHECK(l.runs_per_request() == encodes);
    cache += l.kv_bytes_per_token.value();
  }
  CHECK(cache == 4 * 2 * 384 * 2);
  CHECK(g[g.find("l3.cross")].forward_flops.value() ==
        Approx(448 * (2.0 * 384 * 384 * 2 + 4.0 * 384 * 1500)));  // queries and output, then scores and values over 1500 frames
}

TEST_CASE("an image is one sample of one position") {
  const planning_graph g = graph(vit(12, 768, 12, 16, 1000));
  CHECK(g.tokens_per_sample() == 1);
  CHECK(g.forward_flops().value() / 2e9 == Approx(17.56).epsilon(0.005));  // multiply-adds, torchvision's documentation
}

}  // namespace test_hf_config
