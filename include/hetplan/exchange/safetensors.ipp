// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/safetensors.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/exchange/hf_config.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>

namespace hetplan::exchange {

namespace detail {

/// Bits of data types.
inline constexpr std::array<std::pair<std::string_view, int>, 18> safetensor_types{{{"F64", 64},
                                                                                    {"F32", 32},
                                                                                    {"F16", 16},
                                                                                    {"BF16", 16},
                                                                                    {"F8_E4M3", 8},
                                                                                    {"F8_E5M2", 8},
                                                                                    {"F8_E8M0", 8},
                                                                                    {"F6_E2M3", 6},
                                                                                    {"F6_E3M2", 6},
                                                                                    {"F4", 4},
                                                                                    {"I64", 64},
                                                                                    {"I32", 32},
                                                                                    {"I16", 16},
                                                                                    {"I8", 8},
                                                                                    {"U64", 64},
                                                                                    {"U32", 32},
                                                                                    {"U16", 16},
                                                                                    {"U8", 8}}};

HETPLAN_INLINE int bits_of(std::string_view dtype) {
  for (const auto& [name, bits] : safetensor_types) {
    if (name == dtype) return bits;
  }
  return dtype == "BOOL" ? 8 : 0;
}

HETPLAN_INLINE safetensor read_safetensor(std::string_view name, const io::json_node& node, std::uint64_t data_bytes) {
  const foreign_object o(node, "an object with dtype, shape and data_offsets");
  safetensor t{.name = std::string(name), .dtype = std::string(o.at("dtype", "a data type").text())};
  const int bits = bits_of(t.dtype);
  if (bits == 0) o.at("dtype", "").fail("a data type such as BF16");
  const io::json_node shape = o.at("shape", "a list of sizes");
  for (const io::json_node n : shape.elements("a list of sizes")) {
    t.elements *= static_cast<double>(n.integer<std::int64_t>(0));
    if (t.elements > 9007199254740992.0) shape.fail_with("expected at most 2^53 elements, got more");
  }
  const io::json_node offsets = o.at("data_offsets", "a list of two numbers");
  std::vector<std::uint64_t> ends;
  for (const io::json_node n : offsets.elements("a list of two numbers"))
    ends.push_back(static_cast<std::uint64_t>(n.integer<std::int64_t>(0)));
  if (ends.size() != 2 || ends[0] > ends[1]) offsets.fail_with("expected begin and end");
  if (ends[1] > data_bytes)
    offsets.fail_with("expected an end within the " + std::to_string(data_bytes) + " bytes of data, got " + std::to_string(ends[1]) +
                      " (is the file cut off?)");
  t.offset = ends[0];
  t.size = ends[1] - ends[0];
  if (static_cast<double>(t.size) * 8 != t.elements * bits)
    offsets.fail_with("expected the " + to_text(t.elements * bits / 8) + " bytes of its type and shape, got " + std::to_string(t.size));
  return t;
}

}  // namespace detail

HETPLAN_INLINE std::vector<safetensor> parse_safetensors(std::string_view head, std::uint64_t file_bytes, const std::string& file) {
  if (file_bytes < 8 || head.size() < 8) io::detail::fail_file(file, "expected a safetensors file, got fewer than 8 bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof length);
  if (length > file_bytes - 8 || length > max_safetensors_header) {
    io::detail::fail_file(file, "expected a header within the file and of at most " + std::to_string(max_safetensors_header / 1'000'000) +
                                    " MB, got a length of " + std::to_string(length) + " bytes (is it a safetensors file?)");
  }
  if (head.size() - 8 < length) io::detail::fail_file(file, "expected the whole header, got a part of it");
  const std::uint64_t data_bytes = file_bytes - 8 - length;
  const io::json_document header = io::json_document::parse(head.substr(8, static_cast<std::size_t>(length)), file);
  std::vector<safetensor> tensors;
  for (const auto& [name, node] : io::json_node(header).members("a JSON object as the header")) {
    if (name == "__metadata__") continue;
    tensors.push_back(detail::read_safetensor(name, node, data_bytes));
  }
  std::vector<const safetensor*> order;
  for (const safetensor& t : tensors) {
    if (t.size > 0) order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const safetensor* a, const safetensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->size)
      io::detail::fail_file(file, "tensor " + io::in_quotes(order[i]->name) + ": expected bytes of its own, got some of tensor " +
                                      io::in_quotes(order[i - 1]->name));
  }
  return tensors;
}

HETPLAN_INLINE std::vector<safetensor> read_safetensors_header(const std::string& file) {
  io::detail::file_head head(file);
  const std::uint64_t size = head.file_bytes();
  const std::string& bytes = head.upto(static_cast<std::size_t>(std::min<std::uint64_t>(8, size)));
  if (bytes.size() == 8) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length <= size - 8 && length <= max_safetensors_header) head.upto(static_cast<std::size_t>(8 + length));
  }
  return parse_safetensors(bytes, size, file);
}

namespace detail {

/// Tensors of a module, by the module's name below its block (or at the top), and the operator that has them. "qkv": q, k and v in one;
/// "gate_up": gate and up in one.
using module_name = std::pair<std::string_view, std::string_view>;

inline constexpr std::array<module_name, 53> block_modules{{{"input_layernorm", "norm1"},
                                                            {"self_attn.q_proj", "q"},
                                                            {"self_attn.k_proj", "k"},
                                                            {"self_attn.v_proj", "v"},
                                                            {"self_attn.qkv_proj", "qkv"},
                                                            {"self_attn.o_proj", "o"},
                                                            {"self_attn.out_proj", "o"},
                                                            {"self_attn.dense", "o"},
                                                            {"self_attn.q_norm", "q"},
                                                            {"self_attn.k_norm", "k"},
                                                            {"post_attention_layernorm", "norm2"},
                                                            {"pre_feedforward_layernorm", "norm2"},
                                                            {"post_feedforward_layernorm", "post2"},
                                                            {"mlp.gate_proj", "gate"},
                                                            {"mlp.up_proj", "up"},
                                                            {"mlp.down_proj", "down"},
                                                            {"mlp.gate_up_proj", "gate_up"},
                                                            {"mlp.fc1", "fc1"},
                                                            {"mlp.fc2", "fc2"},
                                                            {"mlp.gate", "router"},
                                                            {"mlp.experts.gate_up_proj", "gate_up"},
                                                            {"mlp.experts.down_proj", "down"},
                                                            {"mlp.shared_expert.gate_proj", "shared.gate"},
                                                            {"mlp.shared_expert.up_proj", "shared.up"},
                                                            {"mlp.shared_expert.down_proj", "shared.down"},
                                                            {"mlp.shared_expert_gate", "shared.share"},
                                                            {"block_sparse_moe.gate", "router"},
                                                            {"ln_1", "norm1"},
                                                            {"attn.c_attn", "qkv"},
                                                            {"attn.c_proj", "o"},
                                                            {"ln_2", "norm2"},
                                                            {"mlp.c_fc", "fc1"},
                                                            {"mlp.c_proj", "fc2"},
                                                            {"attention.query_key_value", "qkv"},
                                                            {"attention.dense", "o"},
                                                            {"mlp.dense_h_to_4h", "fc1"},
                                                            {"mlp.dense_4h_to_h", "fc2"},
                                                            {"self_attn_layer_norm", "norm1"},
                                                            {"final_layer_norm", "norm2"},
                                                            {"fc1", "fc1"},
                                                            {"fc2", "fc2"},
                                                            {"attention.output.dense", "o"},
                                                            {"attention.output.LayerNorm", "norm1"},
                                                            {"intermediate.dense", "fc1"},
                                                            {"output.dense", "fc2"},
                                                            {"output.LayerNorm", "norm2"},
                                                            {"layernorm_before", "norm1"},
                                                            {"layernorm_after", "norm2"},
                                                            {"encoder_attn.q_proj", "cross.q"},
                                                            {"encoder_attn.k_proj", "cross.k"},
                                                            {"encoder_attn.v_proj", "cross.v"},
                                                            {"encoder_attn.out_proj", "cross.o"},
                                                            {"encoder_attn_layer_norm", "norm3"}}};

inline constexpr std::array<module_name, 30> top_modules{{{"embed_tokens", "embed"},
                                                          {"wte", "embed"},
                                                          {"embed_in", "embed"},
                                                          {"embeddings.word_embeddings", "embed"},
                                                          {"wpe", "positions"},
                                                          {"embed_positions", "positions"},
                                                          {"embeddings.position_embeddings", "positions"},
                                                          {"embeddings.token_type_embeddings", "positions"},
                                                          {"embeddings.LayerNorm", "embed_norm"},
                                                          {"embeddings.cls_token", "patches"},
                                                          {"embeddings.patch_embeddings.projection", "patches"},
                                                          {"project_in", "project_in"},
                                                          {"project_out", "project_out"},
                                                          {"conv1", "conv"},
                                                          {"conv2", "conv"},
                                                          {"norm", "norm"},
                                                          {"ln_f", "norm"},
                                                          {"final_layer_norm", "norm"},
                                                          {"final_layernorm", "norm"},
                                                          {"layer_norm", "norm"},
                                                          {"layernorm", "norm"},
                                                          {"lm_head", "lm_head"},
                                                          {"embed_out", "lm_head"},
                                                          {"proj_out", "lm_head"},
                                                          {"cls.predictions.transform.dense", "head_dense"},
                                                          {"cls.predictions.transform.LayerNorm", "head_norm"},
                                                          {"cls.predictions.bias", "head_norm"},
                                                          {"cls.predictions.decoder.weight", "lm_head"},
                                                          {"pooler.dense", "pooler"},
                                                          {"classifier", "classifier"}}};

/// Gives the tensors of one model to its operators.
class tensor_placer {
 public:
  explicit tensor_placer(model_description& d) : d_(d) {}

  void place(const safetensor& t);
  [[nodiscard]] zoo::weight_sizes take() && { return std::move(sizes_).take(); }

 private:
  /// Returns the operator of a module and the parameter's name in it; nothing if no operator has it.
  static std::optional<std::pair<std::string, std::string>> module_of(std::string_view rest, std::span<const module_name> modules) {
    const module_name* best = nullptr;
    for (const module_name& m : modules) {
      const bool whole = rest == m.first, inside = rest.size() > m.first.size() && rest.starts_with(m.first) && rest[m.first.size()] == '.';
      if ((whole || inside) && (best == nullptr || m.first.size() > best->first.size())) best = &m;
    }
    if (best == nullptr) return std::nullopt;
    return std::pair{std::string(best->second), std::string(rest.size() > best->first.size() ? rest.substr(best->first.size() + 1) : "")};
  }
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> in_block(std::string_view rest, const zoo::transformer& b) const;
  void put(const std::string& prefix, const std::string& name, const std::string& parameter, const safetensor& t,
           const zoo::transformer& b);

  model_description& d_;
  tensor_sizes sizes_;
};

HETPLAN_INLINE std::optional<std::pair<std::string, std::string>> tensor_placer::in_block(std::string_view rest,
                                                                                          const zoo::transformer& b) const {
  // Queries, keys and values under "attention.self" (BERT), "attention.attention" (ViT) or "self_attention".
  for (const std::string_view stem : {"attention.self.", "attention.attention."}) {
    if (!rest.starts_with(stem)) continue;
    const std::string_view of = rest.substr(stem.size());
    const std::size_t dot = std::min(of.find('.'), of.size());
    const std::string_view what = of.substr(0, dot);
    const std::string parameter(dot < of.size() ? of.substr(dot + 1) : "");
    if (what == "query") return std::pair{std::string("q"), parameter};
    if (what == "key") return std::pair{std::string("k"), parameter};
    if (what == "value") return std::pair{std::string("v"), parameter};
    return std::nullopt;
  }
  for (const std::string_view stem : {"mlp.experts.", "block_sparse_moe.experts."}) {  // an expert a module
    if (!rest.starts_with(stem)) continue;
    const std::string_view of = rest.substr(stem.size());
    const std::size_t digits = std::min(of.find_first_not_of("0123456789"), of.size());
    if (digits == 0 || digits >= of.size() || of[digits] != '.') break;
    constexpr std::array<module_name, 6> experts{
        {{"gate_proj", "gate"}, {"up_proj", "up"}, {"down_proj", "down"}, {"w1", "gate"}, {"w3", "up"}, {"w2", "down"}}};
    return module_of(of.substr(digits + 1), experts);
  }
  auto found = module_of(rest, block_modules);
  if (found && b.place == zoo::norm_place::around && rest.starts_with("post_attention_layernorm")) found->first = "post1";
  return found;
}

HETPLAN_INLINE void tensor_placer::put(const std::string& prefix, const std::string& name, const std::string& parameter,
                                       const safetensor& t, const zoo::transformer& b) {
  const bool is_float = t.dtype.front() == 'F' || t.dtype.front() == 'B';
  const bool counted = is_float && (parameter == "weight" || parameter == "bias" || parameter.empty());
  const bool packed = !counted && parameter != "weight_scale" && parameter != "weight_scale_inv" && parameter != "input_scale";
  const double size = static_cast<double>(t.size), elements = counted ? t.elements : 0;
  const auto add = [&](const std::string& of, double share) { sizes_.add(prefix + of, size * share, elements * share, !packed); };
  if (name == "qkv") {
    const double q = b.heads, kv = b.kv_heads, all = q + 2 * kv;
    // A bias or a scale of each row, or a matrix: all in shares of rows.
    add("q", q / all);
    add("k", kv / all);
    return add("v", kv / all);
  }
  if (name == "gate_up") {
    add("gate", 0.5);
    return add("up", 0.5);
  }
  add(name, 1);
}

HETPLAN_INLINE void tensor_placer::place(const safetensor& t) {
  std::string_view rest = t.name;
  std::string prefix;
  const auto drop = [&](std::string_view begin) {
    if (!rest.starts_with(begin)) return false;
    rest.remove_prefix(begin.size());
    return true;
  };
  const auto ignore = [&] { d_.ignored.emplace_back(t.name, bytes(static_cast<double>(t.size))); };
  if (drop("vision_tower.") || drop("model.vision_tower.") || drop("multi_modal_projector.") || drop("model.multi_modal_projector."))
    return ignore();
  while (drop("model.") || drop("language_model.") || drop("transformer.") || drop("gpt_neox.") || drop("bert.") || drop("vit.")) {
  }
  const bool sound = d_.model.sound.has_value();
  if (sound && drop("encoder.")) prefix = "enc.";
  else if (d_.type == "opt" || sound) drop("decoder.");
  std::string_view numbered = rest;
  for (const std::string_view stem : {"layers.", "h.", "encoder.layer."}) {
    if (!numbered.starts_with(stem)) continue;
    numbered.remove_prefix(stem.size());
    std::size_t block = 0;
    const char* const last = numbered.data() + numbered.size();
    const auto [end, code] = std::from_chars(numbered.data(), last, block);
    if (code != std::errc() || end == last || *end != '.') break;
    const bool encodes = prefix == "enc.";
    const std::size_t blocks = encodes ? static_cast<std::size_t>(d_.model.sound->blocks.layers) : d_.blocks.size();
    if (block >= blocks)
      throw invalid_input("model \"" + escaped(d_.name) + "\": tensor " + io::in_quotes(t.name) + ": expected one of layers 0 to " +
                          std::to_string(blocks - 1));
    const zoo::transformer& b = encodes ? d_.model.sound->blocks : d_.blocks[block];
    const auto found = in_block(numbered.substr(static_cast<std::size_t>(end - numbered.data()) + 1), b);
    if (!found) return ignore();
    return put(prefix + "l" + std::to_string(block) + ".", found->first, found->second, t, b);
  }
  const auto found = module_of(rest, top_modules);
  if (!found) return ignore();
  put(prefix, found->first, found->second, t, d_.model.blocks);
}

}  // namespace detail

HETPLAN_INLINE void place_tensors(model_description& d, const std::vector<safetensor>& tensors) {
  detail::tensor_placer placer(d);
  std::map<std::string_view, double> types;
  for (const safetensor& t : tensors) {
    placer.place(t);
    types[t.dtype] += static_cast<double>(t.size);
  }
  d.sizes = std::move(placer).take();
  const auto most = std::max_element(types.begin(), types.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const int bits = most == types.end() ? 16 : detail::bits_of(most->first);
  d.family = d.weights ? std::string(d.weights->family) : bits >= 32 ? "f32" : bits == 16 ? "f16" : bits == 8 ? "fp8" : "q4";
}

namespace detail {

/// Returns the files of a model: those of the index, all parts, or one.
HETPLAN_INLINE std::vector<std::string> safetensor_files(const std::string& path, std::map<std::string, std::set<std::string>>& wanted) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string file = path;
  if (fs::is_directory(path, ignored)) {
    const fs::path index = fs::path(path) / "model.safetensors.index.json", one = fs::path(path) / "model.safetensors";
    if (fs::exists(index, ignored)) file = index.string();
    else if (fs::exists(one, ignored)) file = one.string();
    else io::detail::fail_file(path, "expected a folder with model.safetensors.index.json or model.safetensors, got one without");
  }
  std::vector<std::string> files;
  if (file.ends_with(".json")) {
    const io::json_document index = io::json_document::load(file);
    const io::json_node map = foreign_object(io::json_node(index)).at("weight_map", "an object with the file of each tensor");
    for (const auto& [tensor, node] : map.members()) {
      const std::string_view name = node.name("the name of a file");
      if (name.find('/') != std::string_view::npos || name.find('\\') != std::string_view::npos)
        node.fail("the name of a file beside the index");
      wanted[(fs::path(file).parent_path() / name).string()].emplace(tensor);
    }
    for (const auto& [each, tensors] : wanted) files.push_back(each);
    if (files.empty()) map.fail("an object with a tensor");
    return files;
  }
  constexpr std::string_view ending = ".safetensors";
  constexpr std::size_t length = 15;  // "-00001-of-00003"
  const bool part =
      file.size() > length + ending.size() && file.ends_with(ending) && file.compare(file.size() - ending.size() - 9, 4, "-of-") == 0;
  int parts = 0;
  if (part) std::from_chars(file.data() + file.size() - ending.size() - 5, file.data() + file.size() - ending.size(), parts);
  if (parts < 1) return {file};
  for (int i = 1; i <= parts; ++i) {
    char end[48];
    std::snprintf(end, sizeof end, "-%05d-of-%05d.safetensors", i, parts);
    files.push_back(file.substr(0, file.size() - ending.size() - length) + end);
  }
  return files;
}

}  // namespace detail

HETPLAN_INLINE model_description read_safetensors(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::map<std::string, std::set<std::string>> wanted;
  const std::vector<std::string> files = detail::safetensor_files(path, wanted);
  fs::path folder = fs::path(files.front()).parent_path();
  if (folder.empty()) folder = ".";
  const std::string config = (folder / "config.json").string();
  if (!fs::exists(config, ignored)) io::detail::fail_file(config, "expected a configuration beside the tensors, got none");
  model_description d = read_hf_config(io::json_document::load(config), hf_model_name(config));
  std::vector<safetensor> tensors;
  std::set<std::string> seen;
  for (const std::string& file : files) {
    std::set<std::string> here;
    for (safetensor& t : read_safetensors_header(file)) {
      if (!seen.insert(t.name).second)
        io::detail::fail_file(file, "tensor " + io::in_quotes(t.name) + ": expected every name once, got it again");
      here.insert(t.name);
      tensors.push_back(std::move(t));
    }
    if (wanted.empty()) continue;
    for (const std::string& name : wanted[file]) {
      if (!here.contains(name)) io::detail::fail_file(file, "expected tensor " + io::in_quotes(name) + " of the index, got none");
    }
  }
  place_tensors(d, tensors);
  return d;
}

}  // namespace hetplan::exchange
