// SPDX-License-Identifier: BSL-1.0
/// safetensors files that this test builds itself.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/hf_config.hpp>
#include <hetplan/exchange/safetensors.hpp>
#include <hetplan/io/json_document.hpp>

namespace test_safetensors {

using namespace hetplan;
using exchange::model_description;
using exchange::safetensor;

namespace {

/// Tensors one behind the other; the data need not be there.
class writer {
 public:
  void add(const std::string& name, const std::string& dtype, const std::vector<long long>& shape) {
    long long n = 1;
    std::string sizes;
    for (const long long s : shape) {
      n *= s;
      sizes += (sizes.empty() ? "" : ",") + std::to_string(s);
    }
    const long long each = dtype == "F32" || dtype == "I32" ? 4 : dtype == "BF16" || dtype == "F16" ? 2 : 1, end = data_ + n * each;
    header_ += (header_.empty() ? "{\"__metadata__\":{\"format\":\"pt\"},\"" : ",\"") + name + "\":{\"dtype\":\"" + dtype +
               "\",\"shape\":[" + sizes + "],\"data_offsets\":[" + std::to_string(data_) + "," + std::to_string(end) + "]}";
    data_ = end;
  }
  [[nodiscard]] std::string head() const {
    const std::string text = header_ + "}";
    const std::uint64_t length = text.size();
    std::string s(8, '\0');
    std::memcpy(s.data(), &length, 8);
    return s + text;
  }
  [[nodiscard]] double data() const { return static_cast<double>(data_); }
  [[nodiscard]] std::uint64_t file_bytes() const { return head().size() + static_cast<std::uint64_t>(data_); }
  void save(const std::filesystem::path& file) const {
    const std::string h = head();
    std::ofstream(file, std::ios::binary).write(h.data(), static_cast<std::streamsize>(h.size()));
    std::filesystem::resize_file(file, file_bytes());
  }

 private:
  std::string header_;
  long long data_ = 0;
};

void block(writer& w, int i, const std::string& dtype = "BF16") {
  const std::string b = "model.layers." + std::to_string(i) + ".";
  w.add(b + "input_layernorm.weight", dtype, {256});
  w.add(b + "self_attn.q_proj.weight", dtype, {256, 256});
  w.add(b + "self_attn.k_proj.weight", dtype, {128, 256});
  w.add(b + "self_attn.v_proj.weight", dtype, {128, 256});
  w.add(b + "self_attn.o_proj.weight", dtype, {256, 256});
  w.add(b + "post_attention_layernorm.weight", dtype, {256});
  w.add(b + "mlp.gate_proj.weight", dtype, {512, 256});
  w.add(b + "mlp.up_proj.weight", dtype, {512, 256});
  w.add(b + "mlp.down_proj.weight", dtype, {256, 512});
}

const std::string llama =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048, "torch_dtype": "bfloat16")";

double bytes_of(const planning_graph& g) {
  double total = 0;
  std::vector<bool> seen(g.weight_groups().size());
  for (const layer& l : g.layers()) {
    if (l.weight_group >= 0 && seen[static_cast<std::size_t>(l.weight_group)]) continue;
    if (l.weight_group >= 0) seen[static_cast<std::size_t>(l.weight_group)] = true;
    total += l.weight.value();
  }
  return total;
}

model_description placed(const std::string& config, const writer& w) {
  model_description d = exchange::read_hf_config(io::json_document::parse(config, "config.json"), "m");
  exchange::place_tensors(d, exchange::parse_safetensors(w.head(), w.file_bytes(), "m.safetensors"));
  return d;
}

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "hetplan_safetensors";
  folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name, std::ios::binary) << text; }
};

}  // namespace

TEST_CASE("layers have the bytes of a folder's tensors") {
  const folder f;
  f.write("config.json", llama + "}");
  writer first, second;
  first.add("model.embed_tokens.weight", "BF16", {1000, 256});
  block(first, 0);
  block(second, 1);
  second.add("model.norm.weight", "BF16", {256});
  second.add("lm_head.weight", "BF16", {1000, 256});
  first.save(f.path / "model-00001-of-00002.safetensors");
  second.save(f.path / "model-00002-of-00002.safetensors");
  const double total = first.data() + second.data();
  model_description part = exchange::read_safetensors((f.path / "model-00002-of-00002.safetensors").string());
  CHECK(part.name == "hetplan_safetensors");
  for (const zoo::level level : {zoo::level::parts, zoo::level::operators}) {
    const planning_graph g = exchange::graph_of(part, {.level = level});
    CHECK(bytes_of(g) == total);
    CHECK(g.parameters() == total / 2);
    CHECK(exchange::left_out(part).empty());
  }
  CHECK_THROWS_WITH(exchange::read_safetensors(f.path.string()), Catch::Contains("expected a folder with model.safetensors.index.json or"));
  std::string map;
  const auto put = [&](const writer& w, const std::string& file) {
    for (const safetensor& t : exchange::parse_safetensors(w.head(), w.file_bytes(), file))
      map += (map.empty() ? "\"" : ", \"") + t.name + "\": \"" + file + "\"";
  };
  put(first, "model-00001-of-00002.safetensors");
  put(second, "model-00002-of-00002.safetensors");
  f.write("model.safetensors.index.json", "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
  model_description whole = exchange::read_safetensors(f.path.string());
  CHECK(bytes_of(exchange::graph_of(whole)) == total);
  f.write("model.safetensors.index.json", "{\"weight_map\": {" + map + ", \"model.more\": \"model-00001-of-00002.safetensors\"}}");
  CHECK_THROWS_WITH(exchange::read_safetensors(f.path.string()), Catch::Contains("expected tensor \"model.more\" of the index, got none"));
  f.write("model.safetensors.index.json", R"({"weight_map": {"a": "../secret.safetensors"}})");
  CHECK_THROWS_WITH(exchange::read_safetensors(f.path.string()),
                    Catch::Contains("/weight_map/a: expected the name of a file beside the index"));
  std::filesystem::remove(f.path / "config.json");
  CHECK_THROWS_WITH(exchange::read_safetensors((f.path / "model-00001-of-00002.safetensors").string()),
                    Catch::Contains("expected a configuration beside the tensors"));
}

TEST_CASE("packed, fused and expert tensors go to their products") {
  writer gptq;
  gptq.add("model.embed_tokens.weight", "F16", {1000, 256});
  for (int i = 0; i < 2; ++i) {
    const std::string b = "model.layers." + std::to_string(i) + ".";
    for (const auto& [name, in, out] :
         {std::tuple{"self_attn.q_proj", 256, 256}, std::tuple{"self_attn.k_proj", 256, 128}, std::tuple{"self_attn.v_proj", 256, 128},
          std::tuple{"self_attn.o_proj", 256, 256}, std::tuple{"mlp.gate_proj", 256, 512}, std::tuple{"mlp.up_proj", 256, 512},
          std::tuple{"mlp.down_proj", 512, 256}}) {
      gptq.add(b + name + ".qweight", "I32", {in / 8, out});
      gptq.add(b + name + ".qzeros", "I32", {in / 128, out / 8});
      gptq.add(b + name + ".scales", "F16", {in / 128, out});
      gptq.add(b + name + ".g_idx", "I32", {in});
    }
    gptq.add(b + "input_layernorm.weight", "F16", {256});
    gptq.add(b + "post_attention_layernorm.weight", "F16", {256});
  }
  gptq.add("model.norm.weight", "F16", {256});
  gptq.add("lm_head.weight", "F16", {1000, 256});
  model_description d = placed(llama + R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}})", gptq);
  const planning_graph g = exchange::graph_of(d, {.level = zoo::level::operators});
  CHECK(bytes_of(g) == gptq.data());
  CHECK(g.facts().weight_format == "q4");
  CHECK(g[g.find("l1.q")].weight == bytes(256 / 8 * 256 * 4 + 2 * 32 * 4 + 2 * 256 * 2 + 256 * 4));

  writer phi;
  phi.add("model.embed_tokens.weight", "BF16", {1000, 256});
  phi.add("model.layers.0.self_attn.qkv_proj.weight", "BF16", {512, 256});
  phi.add("model.layers.0.self_attn.o_proj.weight", "BF16", {256, 256});
  phi.add("model.layers.0.mlp.gate_up_proj.weight", "BF16", {1024, 256});
  phi.add("model.layers.0.mlp.down_proj.weight", "BF16", {256, 512});
  phi.add("model.layers.0.input_layernorm.weight", "BF16", {256});
  phi.add("model.layers.0.post_attention_layernorm.weight", "BF16", {256});
  phi.add("model.norm.weight", "BF16", {256});
  phi.add("lm_head.weight", "BF16", {1000, 256});
  model_description fused = placed(
      R"({"model_type": "phi3", "num_hidden_layers": 1, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
          "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048, "tie_word_embeddings": true})",
      phi);
  const planning_graph h = exchange::graph_of(fused, {.level = zoo::level::operators});
  CHECK(h[h.find("l0.q")].weight == bytes(256 * 256 * 2));
  CHECK(h[h.find("l0.up")].weight == bytes(512 * 256 * 2));
  CHECK(bytes_of(h) == phi.data() - 1000 * 256 * 2);  // the table is the head: a copy of it is left out
  REQUIRE(exchange::left_out(fused).size() == 1);
  CHECK(exchange::left_out(fused).front().first == "lm_head");

  writer mixtral;
  mixtral.add("model.embed_tokens.weight", "BF16", {1000, 256});
  const std::string b = "model.layers.0.";
  mixtral.add(b + "self_attn.q_proj.weight", "BF16", {256, 256});
  mixtral.add(b + "self_attn.k_proj.weight", "BF16", {128, 256});
  mixtral.add(b + "self_attn.v_proj.weight", "BF16", {128, 256});
  mixtral.add(b + "self_attn.o_proj.weight", "BF16", {256, 256});
  mixtral.add(b + "input_layernorm.weight", "BF16", {256});
  mixtral.add(b + "post_attention_layernorm.weight", "BF16", {256});
  mixtral.add(b + "block_sparse_moe.gate.weight", "BF16", {4, 256});
  for (int e = 0; e < 4; ++e) {
    const std::string expert = b + "block_sparse_moe.experts." + std::to_string(e) + ".";
    mixtral.add(expert + "w1.weight", "BF16", {512, 256});
    mixtral.add(expert + "w2.weight", "BF16", {256, 512});
    mixtral.add(expert + "w3.weight", "BF16", {512, 256});
  }
  mixtral.add("model.norm.weight", "BF16", {256});
  mixtral.add("lm_head.weight", "BF16", {1000, 256});
  model_description experts = placed(
      R"({"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
          "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048, "num_local_experts": 4, "num_experts_per_tok": 2})",
      mixtral);
  const planning_graph m = exchange::graph_of(experts);
  CHECK(bytes_of(m) == mixtral.data());
  CHECK(m[m.find("l0.mlp")].sequence.experts->weight == bytes(4 * 3 * 512 * 256 * 2));
}

TEST_CASE("tensors that are not the configuration's are refused") {
  writer w;
  w.add("model.embed_tokens.weight", "BF16", {1000, 256});
  block(w, 0);
  w.add("model.norm.weight", "BF16", {256});
  w.add("lm_head.weight", "BF16", {1000, 256});
  model_description missing = placed(llama + "}", w);
  CHECK_THROWS_WITH(exchange::graph_of(missing), Catch::Contains("expected tensors of \"l1.norm1\", got none"));
  block(w, 1);
  block(w, 2);
  CHECK_THROWS_WITH(placed(llama + "}", w), Catch::Contains("expected one of layers 0 to 1"));
  writer other;
  other.add("model.embed_tokens.weight", "BF16", {999, 256});
  model_description wrong = placed(llama + "}", other);
  CHECK_THROWS_WITH(exchange::graph_of(wrong), Catch::Contains("expected tensors of \"embed\" with 256000 parameters, got 255744"));
  CHECK_THROWS_WITH(exchange::graph_of(wrong, {.weights = "q4_0"}), Catch::Contains("expected those of the file"));
}

TEST_CASE("broken headers are refused or read, and nothing worse") {
  writer w;
  w.add("model.embed_tokens.weight", "BF16", {1000, 256});
  block(w, 0);
  const std::string head = w.head();
  const auto fault = [&](const std::string& h, std::uint64_t size) -> std::string {
    try {
      static_cast<void>(exchange::parse_safetensors(h, size, "f"));
    } catch (const invalid_input& e) {
      return e.what();
    }
    return "";
  };
  CHECK(fault(head, w.file_bytes()).empty());
  CHECK(fault("", 0) == "f: expected a safetensors file, got fewer than 8 bytes");
  CHECK(fault(head, w.file_bytes() - 1).find("(is the file cut off?)") != std::string::npos);
  CHECK(fault(std::string(8, '\xff') + "x", 9).find("expected a header within the file") != std::string::npos);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string h = head;
    h.replace(h.find(from), from.size(), to);
    return fault(h, w.file_bytes());
  };
  CHECK(replaced("BF16", "BF17").find("/dtype: expected a data type such as BF16, got \"BF17\"") != std::string::npos);
  CHECK(replaced("[1000,", "[1001,").find("/data_offsets: expected the 512512 bytes of its type and shape, got 512000") !=
        std::string::npos);
  CHECK(replaced("[512000,512512]", "[511998,512510]").find("expected bytes of its own, got some of tensor") != std::string::npos);
  std::mt19937_64 draw(7);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string h = head;
    for (std::uint64_t n = 1 + draw() % 3; n > 0; --n) h[draw() % h.size()] = static_cast<char>(draw() % 256);
    const std::uint64_t size = draw() % 4 == 0 ? draw() % w.file_bytes() : w.file_bytes();
    if (size < h.size()) h.resize(size);
    refused += fault(h, size).empty() ? 0 : 1;
  }
  CHECK(refused > 10'000);
}

}  // namespace test_safetensors
