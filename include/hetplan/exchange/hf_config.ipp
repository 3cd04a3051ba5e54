// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/hf_config.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_node.hpp>

namespace hetplan::exchange {

namespace detail {

/// Reads the numbers of a configuration. A value `null` counts as missing.
class hf_config {
 public:
  explicit hf_config(io::json_node node) : node_(node), object_(node, "a configuration (a JSON object)") {}

  [[nodiscard]] const io::json_node& node() const { return node_; }
  [[nodiscard]] std::optional<io::json_node> find(std::string_view key) const {
    const auto found = object_.find(key);
    if (found && found->document().kind_of(found->index()) == io::json_document::kind::null) return std::nullopt;
    return found;
  }
  [[nodiscard]] std::optional<int> size_if(std::string_view key, int low = 1, int high = most) const {
    const auto found = find(key);
    return found ? std::optional(found->integer<int>(low, high)) : std::nullopt;
  }
  [[nodiscard]] int size(std::string_view key, int low = 1, int high = most) const {
    if (const auto found = size_if(key, low, high)) return *found;
    node_.fail_missing(key, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const {
    const auto found = find(key);
    return found ? found->boolean() : otherwise;
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    const auto found = find(key);
    return found ? std::string(found->text()) : "";
  }
  /// Fails at a key; at the whole if it is missing.
  [[noreturn]] void fail(std::string_view key, const std::string& expected) const {
    if (const auto found = find(key)) found->fail(expected);
    node_.fail_missing(key, expected);
  }

  static constexpr int most = 1 << 24, most_layers = 4096, most_heads = 1 << 14, most_tokens = 1 << 30;

 private:
  io::json_node node_;
  foreign_object object_;
};

/// Names of the numbers of a stack of blocks, which differ between the older architectures.
struct hf_names {
  std::string_view layers = "num_hidden_layers", hidden = "hidden_size", heads = "num_attention_heads", kv_heads = "num_key_value_heads",
                   intermediate = "intermediate_size";
};

/// Reads one model.
class hf_reader {
 public:
  hf_reader(const io::json_document& d, const std::string& name) : top_(io::json_node(d)), config_(top_) { result_.name = name; }

  [[nodiscard]] model_description read() {
    choose();
    read_dtype();
    read_quantisation();
    return std::move(result_);
  }

 private:
  using transformer = zoo::transformer;

  [[nodiscard]] zoo::language_model& model() { return result_.model; }
  [[nodiscard]] transformer& blocks() { return result_.model.blocks; }

  void choose();

  /// Reads layers, widths and heads. Each number of heads divides what it should.
  void read_stack(transformer& t, const hf_names& names = {}, std::optional<int> head_dim = {});
  void read_vocabulary(std::string_view context = "max_position_embeddings");
  /// Makes all blocks alike, but for windows.
  void repeat() { result_.blocks = zoo::blocks_of(blocks()); }
  /// Takes the windows of `layer_types`, else of sliding blocks as `slides` says.
  template <class Slides>
  void read_windows(std::optional<int> window, const Slides& slides);
  void read_experts(std::string_view total, std::string_view active, std::string_view intermediate);

  void llama(bool qkv_bias = false);
  void qwen(bool qk_norm, bool experts);
  void gemma(bool around, bool qk_norm, int pattern);
  void phi();
  void gpt2();
  void gpt_neox();
  void opt();
  void bert();
  void vit();
  void whisper();

  /// A block with layer norms, biases and a plain MLP.
  static void as_plain(transformer& t, bool bias = true) {
    t.norm = zoo::norm_kind::layer;
    t.mlp = zoo::mlp_kind::plain;
    t.qkv_bias = t.output_bias = t.mlp_bias = bias;
  }
  [[nodiscard]] std::string architecture() const {
    const auto found = top_.find("architectures");
    if (!found) return "";
    for (const io::json_node n : found->elements("a list of names")) return std::string(n.text());
    return "";
  }
  [[nodiscard]] int labels() const {
    if (const auto found = config_.find("id2label")) {
      static_cast<void>(found->members());
      if (found->size() > 0) return static_cast<int>(std::min<std::size_t>(found->size(), hf_config::most));
    }
    return config_.size_if("num_labels").value_or(2);
  }

  void read_dtype();
  void read_quantisation();

  hf_config top_, config_;
  model_description result_;
};

HETPLAN_INLINE void hf_reader::choose() {
  const auto stated = top_.find("model_type");
  if (!stated) top_.node().fail_missing("model_type", "one of " + io::joined(hf_model_types));
  std::string type(stated->text());
  result_.type = type;
  if (type == "gemma3") {
    if (const auto text = top_.find("text_config")) config_ = hf_config(*text);
  }
  if (type == "llama" || type == "mistral" || type == "mixtral" || type == "phi3") return llama();
  if (type == "qwen2" || type == "qwen2_moe") return qwen(false, type == "qwen2_moe");
  if (type == "qwen3" || type == "qwen3_moe") return qwen(true, type == "qwen3_moe");
  if (type == "gemma") return gemma(false, false, 0);
  if (type == "gemma2") return gemma(true, false, 2);
  if (type == "gemma3" || type == "gemma3_text") return gemma(true, true, 6);
  if (type == "phi") return phi();
  if (type == "gpt2") return gpt2();
  if (type == "gpt_neox") return gpt_neox();
  if (type == "opt") return opt();
  if (type == "bert") return bert();
  if (type == "vit") return vit();
  if (type == "whisper") return whisper();
  stated->fail("one of " + io::joined(hf_model_types), io::suggestion(type, hf_model_types));
}

HETPLAN_INLINE void hf_reader::read_stack(transformer& t, const hf_names& names, std::optional<int> head_dim) {
  t.layers = config_.size(names.layers, 1, hf_config::most_layers);
  t.hidden = config_.size(names.hidden);
  t.heads = config_.size(names.heads, 1, hf_config::most_heads);
  t.kv_heads = config_.size_if(names.kv_heads).value_or(t.heads);
  if (t.kv_heads > t.heads || t.heads % t.kv_heads != 0)
    config_.fail(names.kv_heads, "a divisor of " + std::string(names.heads) + " (" + std::to_string(t.heads) + ")");
  const auto stated = config_.size_if("head_dim");
  if (!stated && !head_dim && t.hidden % t.heads != 0)
    config_.fail(names.heads, "a divisor of " + std::string(names.hidden) + " (" + std::to_string(t.hidden) + "), or head_dim");
  t.head_dim = stated ? *stated : head_dim ? *head_dim : t.hidden / t.heads;
  if (const auto wide = config_.size_if(names.intermediate)) t.intermediate = *wide;
}

HETPLAN_INLINE void hf_reader::read_vocabulary(std::string_view context) {
  model().vocabulary = config_.size("vocab_size", 1, 1 << 26);
  model().context = config_.size(context, 1, hf_config::most_tokens);
}

template <class Slides>
void hf_reader::read_windows(std::optional<int> window, const Slides& slides) {
  repeat();
  const auto types = config_.find("layer_types");
  if (types) {
    const auto elements = types->elements("a list with a type for each layer");
    if (types->size() != result_.blocks.size())
      types->fail_with("expected " + std::to_string(result_.blocks.size()) + " types, one for each layer, got " +
                       std::to_string(types->size()));
    std::size_t i = 0;
    for (const io::json_node n : elements) {
      const std::string_view type = n.text();
      if (type != "full_attention" && type != "sliding_attention") n.fail("\"full_attention\" or \"sliding_attention\"");
      if (type == "sliding_attention" && !window) config_.node().fail_missing("sliding_window", "an integer >= 1, for sliding_attention");
      result_.blocks[i++].window = type == "sliding_attention" ? window : std::nullopt;
    }
  } else {
    for (std::size_t i = 0; i < result_.blocks.size(); ++i) result_.blocks[i].window = slides(static_cast<int>(i)) ? window : std::nullopt;
  }
  for (transformer& t : result_.blocks) {
    if (t.window && *t.window >= model().context) t.window.reset();
  }
}

HETPLAN_INLINE void hf_reader::read_experts(std::string_view total, std::string_view active, std::string_view intermediate) {
  blocks().experts = config_.size(total, 1, 1 << 16);
  blocks().active_experts = config_.size(active);
  if (blocks().active_experts > blocks().experts)
    config_.fail(active, "at most " + std::string(total) + " (" + std::to_string(blocks().experts) + ")");
  blocks().intermediate = config_.size(intermediate);
}

HETPLAN_INLINE void hf_reader::llama(bool qkv_bias) {
  transformer& t = blocks();
  read_stack(t);
  read_vocabulary();
  t.intermediate = config_.size("intermediate_size");
  if (result_.type == "mixtral") read_experts("num_local_experts", "num_experts_per_tok", "intermediate_size");
  t.qkv_bias = config_.flag("attention_bias", qkv_bias);
  t.output_bias = !qkv_bias && t.qkv_bias;
  t.mlp_bias = config_.flag("mlp_bias", false);
  model().tied = config_.flag("tie_word_embeddings", false);
  read_windows(config_.size_if("sliding_window", 1, hf_config::most_tokens), [](int) { return true; });
}

HETPLAN_INLINE void hf_reader::qwen(bool qk_norm, bool experts) {
  transformer& t = blocks();
  read_stack(t, {}, qk_norm ? std::optional(128) : std::nullopt);
  read_vocabulary();
  t.qk_norm = qk_norm;
  t.qkv_bias = qk_norm ? config_.flag("attention_bias", false) : config_.flag("qkv_bias", true);
  t.output_bias = qk_norm && t.qkv_bias;
  model().tied = config_.flag("tie_word_embeddings", false);
  if (experts) {
    read_experts("num_experts", "num_experts_per_tok", "moe_intermediate_size");
    if (!qk_norm) {
      t.shared_intermediate = config_.size_if("shared_expert_intermediate_size", 0).value_or(5632);
      t.shared_gate = t.shared_intermediate > 0;
    }
  } else {
    t.intermediate = config_.size("intermediate_size");
  }
  const bool slides = config_.flag("use_sliding_window", false);
  const auto window = slides ? config_.size_if("sliding_window", 1, hf_config::most_tokens) : std::nullopt;
  const int first = config_.size_if("max_window_layers", 0).value_or(28);
  read_windows(window, [&](int i) { return slides && i >= first; });
  if (!experts) return;
  const int step = config_.size_if("decoder_sparse_step").value_or(1);
  std::vector<bool> dense(result_.blocks.size());
  for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = (i + 1) % static_cast<std::size_t>(step) != 0;
  if (const auto only = config_.find("mlp_only_layers")) {
    for (const io::json_node n : only->elements("a list of layers"))
      dense[static_cast<std::size_t>(n.integer<int>(0, t.layers - 1))] = true;
  }
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (!dense[i]) continue;
    transformer& block = result_.blocks[i];
    block.intermediate = config_.size("intermediate_size");
    block.experts = block.active_experts = block.shared_intermediate = 0;
    block.shared_gate = false;
  }
}

HETPLAN_INLINE void hf_reader::gemma(bool around, bool qk_norm, int pattern) {
  transformer& t = blocks();
  // Published files of Gemma 3 leave out what equals its class.
  if (qk_norm) {
    t.layers = config_.size("num_hidden_layers", 1, hf_config::most_layers);
    t.hidden = config_.size("hidden_size");
    t.heads = config_.size_if("num_attention_heads", 1, hf_config::most_heads).value_or(8);
    t.kv_heads = config_.size_if("num_key_value_heads").value_or(4);
    if (t.kv_heads > t.heads || t.heads % t.kv_heads != 0)
      config_.fail("num_key_value_heads", "a divisor of num_attention_heads (" + std::to_string(t.heads) + ")");
    t.head_dim = config_.size_if("head_dim").value_or(256);
    model().vocabulary = config_.size_if("vocab_size", 1, 1 << 26).value_or(262208);
    model().context = config_.size_if("max_position_embeddings", 1, hf_config::most_tokens).value_or(131072);
  } else {
    read_stack(t, {}, 256);
    read_vocabulary();
  }
  t.intermediate = config_.size("intermediate_size");
  t.qkv_bias = t.output_bias = config_.flag("attention_bias", false);
  t.qk_norm = qk_norm;
  if (around) t.place = zoo::norm_place::around;
  model().tied = config_.flag("tie_word_embeddings", true);
  const int every = config_.size_if("sliding_window_pattern").value_or(pattern);
  const auto window = around ? std::optional(config_.size_if("sliding_window", 1, hf_config::most_tokens).value_or(4096)) : std::nullopt;
  read_windows(window, [&](int i) { return around && (i + 1) % every != 0; });
}

HETPLAN_INLINE void hf_reader::phi() {
  transformer& t = blocks();
  read_stack(t);
  read_vocabulary();
  t.intermediate = config_.size_if("intermediate_size").value_or(4 * t.hidden);
  as_plain(t);
  t.residual = zoo::residual_kind::parallel_one_norm;
  if (config_.flag("qk_layernorm", false)) config_.fail("qk_layernorm", "false");
  model().tied = config_.flag("tie_word_embeddings", false);
  model().head_bias = !model().tied;
  repeat();
}

HETPLAN_INLINE void hf_reader::gpt2() {
  transformer& t = blocks();
  read_stack(t, {"n_layer", "n_embd", "n_head", "num_key_value_heads", "n_inner"});
  read_vocabulary("n_positions");
  if (t.intermediate == 0) t.intermediate = 4 * t.hidden;
  as_plain(t);
  t.composed_gelu = true;
  model().tied = config_.flag("tie_word_embeddings", true);
  model().learned_positions = true;
  repeat();
}

HETPLAN_INLINE void hf_reader::gpt_neox() {
  transformer& t = blocks();
  read_stack(t);
  read_vocabulary();
  t.intermediate = config_.size("intermediate_size");
  as_plain(t);
  t.qkv_bias = t.output_bias = config_.flag("attention_bias", true);
  if (config_.flag("use_parallel_residual", true)) t.residual = zoo::residual_kind::parallel;
  model().tied = config_.flag("tie_word_embeddings", false);
  repeat();
}

HETPLAN_INLINE void hf_reader::opt() {
  transformer& t = blocks();
  read_stack(t, {.intermediate = "ffn_dim"});
  read_vocabulary();
  t.intermediate = config_.size("ffn_dim");
  as_plain(t, config_.flag("enable_bias", true));
  model().tied = config_.flag("tie_word_embeddings", true);
  model().learned_positions = true;
  model().more_positions = 2;
  model().embedding_width = config_.size_if("word_embed_proj_dim").value_or(t.hidden);
  if (model().embedding_width == t.hidden) model().embedding_width = 0;
  if (!config_.flag("do_layer_norm_before", true)) {
    t.place = zoo::norm_place::after;
    model().embedding_norm = false;
  }
  repeat();
}

HETPLAN_INLINE void hf_reader::bert() {
  transformer& t = blocks();
  read_stack(t);
  read_vocabulary();
  t.intermediate = config_.size("intermediate_size");
  as_plain(t);
  t.place = zoo::norm_place::after;
  t.attention = attention_kind::full;
  model().learned_positions = true;
  model().segments = config_.size_if("type_vocab_size", 0).value_or(2);
  const std::string is = architecture();
  const bool masked = is.empty() || is == "BertForMaskedLM" || is == "BertForPreTraining";
  model().head = masked                                  ? zoo::head_kind::masked_tokens
                 : is == "BertForSequenceClassification" ? zoo::head_kind::classes
                                                         : zoo::head_kind::none;
  model().tied = masked && config_.flag("tie_word_embeddings", true);
  model().head_bias = masked;
  model().pooler = is == "BertModel" || is == "BertForSequenceClassification" || is == "BertForPreTraining";
  if (model().head == zoo::head_kind::classes) model().classes = labels();
  repeat();
}

HETPLAN_INLINE void hf_reader::vit() {
  transformer& t = blocks();
  read_stack(t);
  t.intermediate = config_.size("intermediate_size");
  as_plain(t);
  t.qkv_bias = config_.flag("qkv_bias", true);
  t.attention = attention_kind::full;
  const int side = config_.size_if("image_size", 1, 1 << 15).value_or(224), patch = config_.size_if("patch_size").value_or(16);
  if (patch > side || side % patch != 0) config_.fail("patch_size", "a divisor of image_size (" + std::to_string(side) + ")");
  model().image = zoo::image_patches{side, patch, config_.size_if("num_channels").value_or(3)};
  model().context = 1;
  model().vocabulary = 0;
  model().tied = false;
  const bool classifies = architecture() == "ViTForImageClassification";
  model().head = classifies ? zoo::head_kind::classes : zoo::head_kind::none;
  model().pooler = !classifies;
  if (classifies) model().classes = labels();
  repeat();
}

HETPLAN_INLINE void hf_reader::whisper() {
  zoo::sound_encoder sound{
      .mel = config_.size_if("num_mel_bins").value_or(80), .frames = config_.size_if("max_source_positions").value_or(1500), .blocks = {}};
  transformer& t = blocks();
  const std::string_view none = "";
  read_stack(sound.blocks, {"encoder_layers", "d_model", "encoder_attention_heads", none, "encoder_ffn_dim"});
  read_stack(t, {"decoder_layers", "d_model", "decoder_attention_heads", none, "decoder_ffn_dim"});
  sound.blocks.intermediate = config_.size("encoder_ffn_dim");
  t.intermediate = config_.size("decoder_ffn_dim");
  for (transformer* each : {&sound.blocks, &t}) {
    as_plain(*each);
    each->key_bias = false;
  }
  sound.blocks.attention = attention_kind::full;
  t.cross_attention = true;
  model().sound = sound;
  read_vocabulary("max_target_positions");
  model().tied = config_.flag("tie_word_embeddings", true);
  model().learned_positions = true;
  repeat();
}

HETPLAN_INLINE void hf_reader::read_dtype() {
  for (const hf_config* c : {&config_, &top_}) {
    for (const char* key : {"torch_dtype", "dtype"}) {
      const auto found = c->find(key);
      if (!found) continue;
      const std::string_view type = found->text();
      if (type == "auto") continue;
      if (type == "bfloat16") result_.dtype = precision::bf16;
      else if (type == "float16") result_.dtype = precision::fp16;
      else if (type == "float32") result_.dtype = precision::fp32;
      else found->fail("\"bfloat16\", \"float16\" or \"float32\"");
      if (c == &config_ || !config_.find(key)) return;
    }
  }
}

HETPLAN_INLINE void hf_reader::read_quantisation() {
  auto found = top_.find("quantization_config");
  if (!found) found = top_.find("quantization");
  if (!found) found = config_.find("quantization_config");
  if (!found) return;
  const hf_config q(*found);
  const double others = 8 * bytes_per_element(result_.dtype);
  const std::string method = q.text("quant_method");
  const auto in_groups = [&](const hf_config& of, int bits, double per_group, double rest) {
    const auto given = of.find("group_size");
    const int group = given ? given->integer<int>(-1, hf_config::most) : 128;
    if (group == 0) given->fail("an integer >= 1, or -1 for a group a row");
    const bool named = bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8;
    if (!named) of.fail(of.find("bits") ? "bits" : of.find("w_bit") ? "w_bit" : "num_bits", "2, 3, 4, 5, 6 or 8");
    result_.weights = quantised(bits + (group > 0 ? per_group / group : 0), bits, rest);
  };
  const auto as_fp8 = [&](double scale_bits) {
    result_.dtype = result_.dtype == precision::fp32 ? precision::bf16 : result_.dtype;
    result_.weights = zoo::weight_format{"fp8", "fp8", 8 + scale_bits, 8 + scale_bits, others, others};
  };
  if (method == "gptq" || method == "awq") {
    const int bits = q.find("w_bit") ? q.size("w_bit", 1, 16) : q.size("bits", 1, 16);
    return in_groups(q, bits, 16.0 + bits, others);  // a scale and a zero
  }
  if (method == "bitsandbytes") {
    if (q.flag("load_in_4bit", q.flag("_load_in_4bit", false))) {
      // A scale of 32 bits for 64 weights; with double quantisation one of 8, and one of 32 for 256 of those.
      const double scale = q.flag("bnb_4bit_use_double_quant", false) ? (8 + 32.0 / 256) / 64 : 32.0 / 64;
      result_.weights = quantised(4 + scale, 4, others);
    } else if (q.flag("load_in_8bit", q.flag("_load_in_8bit", false))) {
      result_.weights = quantised(8, 8, others);
    }
    return;
  }
  if (method == "fp8" || method == "fbgemm_fp8") {
    double block = 0;
    if (const auto shape = q.find("weight_block_size")) {
      block = 1;
      for (const io::json_node n : shape->elements("a list of two numbers", 2)) block *= n.integer<int>(1, hf_config::most);
    }
    return as_fp8(block > 0 ? 32 / block : 0);
  }
  if (method == "compressed-tensors") {
    const auto groups = q.find("config_groups");
    if (!groups) q.node().fail_missing("config_groups", "an object");
    for (const auto& [key, group] : groups->members()) {
      const auto weights = hf_config(group).find("weights");
      if (!weights) group.fail_missing("weights", "an object");
      const hf_config w(*weights);
      const int bits = w.size("num_bits", 1, 16);
      if (w.text("type") == "float" && bits == 8) return as_fp8(0);
      return in_groups(w, bits, w.flag("symmetric", true) ? 16.0 : 16.0 + bits, others);
    }
    groups->fail("an object with a group");
  }
  if (method.empty() && q.find("bits")) {  // MLX: scale and offset for each group, of embedding and head, too
    const int bits = q.size("bits", 1, 16);
    in_groups(q, bits, 32, 0);
    result_.weights->embedding = result_.weights->head = result_.weights->product;
    return;
  }
  q.fail("quant_method", "one of gptq, awq, bitsandbytes, fp8, fbgemm_fp8, compressed-tensors");
}

}  // namespace detail

HETPLAN_INLINE model_description read_hf_config(const io::json_document& config, const std::string& name) {
  return detail::hf_reader(config, name).read();
}

HETPLAN_INLINE std::string hf_config_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  const fs::path inside = fs::path(path) / "config.json";
  if (!fs::exists(inside, ignored)) io::detail::fail_file(path, "expected a folder with a config.json, got one without");
  return inside.string();
}

HETPLAN_INLINE std::string hf_model_name(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path p = fs::path(path).lexically_normal();
  if (!p.has_filename()) p = p.parent_path();
  if (!fs::is_directory(p, ignored) && p.filename() != "config.json") return model_name_of(path);
  fs::path folder = fs::is_directory(p, ignored) ? p : p.parent_path();
  if (folder.empty() || folder == "." || folder == "..")
    folder = fs::absolute(folder.empty() ? fs::path(".") : folder, ignored).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  const std::string name = folder.filename().string();
  return name.empty() || !detail::is_utf8(name) ? "model" : name;
}

}  // namespace hetplan::exchange
