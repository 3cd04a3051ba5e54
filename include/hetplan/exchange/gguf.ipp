// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/gguf.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

/// The known bytes end before the header does.
struct short_head {};

/// Reads little-endian values from the beginning of a file.
class gguf_cursor {
 public:
  gguf_cursor(std::string_view head, std::uint64_t file_bytes, const std::string& file) : head_(head), end_(file_bytes), file_(file) {}

  [[nodiscard]] std::uint64_t position() const { return at_; }
  [[nodiscard]] std::uint64_t left() const { return end_ - at_; }

  [[noreturn]] void fail(const std::string& what, std::uint64_t where) const {
    throw invalid_input(escaped(file_) + ": byte " + std::to_string(where) + ": " + escaped(what));
  }
  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }

  template <class Number>
  [[nodiscard]] Number read(const char* what) {
    static_assert(std::endian::native == std::endian::little);
    const std::string_view s = take(sizeof(Number), what);
    Number n;
    std::memcpy(&n, s.data(), sizeof n);
    return n;
  }
  /// Reads a count of things of at least `each` bytes, which must fit into the file.
  [[nodiscard]] std::uint64_t count(const char* what, std::uint64_t each, std::uint64_t most) {
    const std::uint64_t where = at_, n = read<std::uint64_t>(what);
    if (n > left() / each)
      fail(std::string(what) + ": expected at most what fits into the file (" + std::to_string(left() / each) + "), got " +
               std::to_string(n),
           where);
    if (n > most) fail(std::string(what) + ": expected at most " + std::to_string(most) + ", got " + std::to_string(n), where);
    return n;
  }
  [[nodiscard]] std::string_view text(const char* what) { return take(count(what, 1, end_), what); }
  void skip(std::uint64_t n, const char* what) { static_cast<void>(take(n, what)); }

 private:
  std::string_view take(std::uint64_t n, const char* what) {
    if (n > left()) fail(std::string("the file ends within ") + what);
    if (n > head_.size() - at_) throw short_head{};
    const std::string_view taken = head_.substr(static_cast<std::size_t>(at_), static_cast<std::size_t>(n));
    at_ += n;
    return taken;
  }

  std::string_view head_;
  std::uint64_t end_;
  const std::string& file_;
  std::uint64_t at_ = 0;
};

enum class gguf_kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

HETPLAN_INLINE std::uint64_t size_of(gguf_kind k) {
  constexpr std::array<std::uint64_t, 13> sizes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // of text and list the least
  return sizes[static_cast<std::size_t>(k)];
}

HETPLAN_INLINE gguf_kind read_kind(gguf_cursor& c) {
  const std::uint64_t where = c.position();
  const auto k = c.read<std::uint32_t>("the type of a value");
  if (k > static_cast<std::uint32_t>(gguf_kind::f64)) c.fail("expected a type of values from 0 to 12, got " + std::to_string(k), where);
  return static_cast<gguf_kind>(k);
}

HETPLAN_INLINE double read_number(gguf_cursor& c, gguf_kind k) {
  constexpr const char* what = "a value";
  switch (k) {
    case gguf_kind::u8: return c.read<std::uint8_t>(what);
    case gguf_kind::i8: return c.read<std::int8_t>(what);
    case gguf_kind::u16: return c.read<std::uint16_t>(what);
    case gguf_kind::i16: return c.read<std::int16_t>(what);
    case gguf_kind::u32: return c.read<std::uint32_t>(what);
    case gguf_kind::i32: return c.read<std::int32_t>(what);
    case gguf_kind::f32: return static_cast<double>(c.read<float>(what));
    case gguf_kind::boolean: return c.read<std::uint8_t>(what);
    case gguf_kind::u64: return static_cast<double>(c.read<std::uint64_t>(what));
    case gguf_kind::i64: return static_cast<double>(c.read<std::int64_t>(what));
    case gguf_kind::f64: return c.read<double>(what);
    case gguf_kind::text:
    case gguf_kind::list: break;
  }
  return 0;
}

HETPLAN_INLINE gguf_value read_value(gguf_cursor& c, gguf_kind k) {
  constexpr std::size_t longest_text = 256, longest_list = 4096;
  gguf_value v{.position = c.position()};
  if (k == gguf_kind::text) {
    const std::string_view t = c.text("the length of a text");
    v.length = t.size();
    if (t.size() <= longest_text) v.text = t;
    return v;
  }
  if (k != gguf_kind::list) {
    v.number = read_number(c, k);
    return v;
  }
  const gguf_kind each = read_kind(c);
  if (each == gguf_kind::list) c.fail("expected a list of numbers or texts, got one of lists", v.position);
  v.is_list = true;
  v.length = c.count("the length of a list", size_of(each), std::numeric_limits<std::uint64_t>::max());
  if (each == gguf_kind::text) {
    for (std::uint64_t i = 0; i < v.length; ++i) static_cast<void>(c.text("the length of a text"));
  } else if (v.length <= longest_list) {
    for (std::uint64_t i = 0; i < v.length; ++i) v.list.push_back(read_number(c, each));
  } else {
    c.skip(v.length * size_of(each), "a list");
  }
  return v;
}

HETPLAN_INLINE gguf_tensor read_tensor(gguf_cursor& c, std::uint64_t alignment) {
  gguf_tensor t;
  const std::uint64_t begin = c.position();
  const std::string_view name = c.text("the length of a tensor's name");
  if (name.empty() || name.size() > 255 || !is_utf8(name)) c.fail("expected a tensor's name of 1 to 255 bytes in UTF-8", begin);
  t.name = name;
  const std::string of = "tensor " + io::in_quotes(t.name) + ": ";
  const auto dimensions = c.read<std::uint32_t>("a number of dimensions");
  if (dimensions < 1 || dimensions > 4) c.fail(of + "expected 1 to 4 dimensions, got " + std::to_string(dimensions), begin);
  std::uint64_t elements = 1;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const auto n = c.read<std::uint64_t>("a dimension");
    constexpr std::uint64_t most = std::uint64_t{1} << 53;  // a double counts them
    if (n < 1 || n > most / elements) c.fail(of + "expected dimensions >= 1 of at most 2^53 elements, got " + std::to_string(n), begin);
    t.shape[d] = n;
    elements *= n;
  }
  const auto type = c.read<std::uint32_t>("a tensor's type");
  const auto known = std::find_if(gguf_types.begin(), gguf_types.end(), [&](const gguf_type& g) { return g.id == type; });
  if (known == gguf_types.end()) c.fail(of + "expected a known type of tensors, got number " + std::to_string(type), begin);
  t.type = &*known;
  if (t.shape[0] % known->block != 0)
    c.fail(of + "expected rows of whole blocks of " + std::to_string(known->block) + " elements for " + std::string(known->name) +
               ", got " + std::to_string(t.shape[0]),
           begin);
  t.size = elements / known->block * known->size;
  t.offset = c.read<std::uint64_t>("a tensor's offset");
  if (t.offset % alignment != 0)
    c.fail(of + "expected an offset in multiples of " + std::to_string(alignment) + ", got " + std::to_string(t.offset), begin);
  return t;
}

/// Checks that tensors lie in the file, one beside the other.
HETPLAN_INLINE void check_places(const gguf_header& h, std::uint64_t file_bytes) {
  const auto fail = [&](const gguf_tensor& t, const std::string& what) {
    throw invalid_input(escaped(h.file) + ": tensor " + io::in_quotes(t.name) + ": " + what);
  };
  std::vector<const gguf_tensor*> order;
  for (const gguf_tensor& t : h.tensors) {
    const std::uint64_t most = file_bytes - std::min(file_bytes, h.data);
    if (t.offset > most || t.size > most - t.offset)
      fail(t, "expected " + std::to_string(t.size) + " bytes from byte " + std::to_string(t.offset) + " of the data on; the file has " +
                  std::to_string(most) + " bytes of data (is it cut off?)");
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const gguf_tensor* a, const gguf_tensor* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->name == order[i - 1]->name) fail(*order[i], "expected every name once, got it again");
  }
  std::sort(order.begin(), order.end(), [](const gguf_tensor* a, const gguf_tensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->size)
      fail(*order[i], "expected bytes of its own, got some of tensor " + io::in_quotes(order[i - 1]->name));
  }
}

HETPLAN_INLINE gguf_header parse_header(gguf_cursor& c, std::uint64_t file_bytes, const std::string& file) {
  gguf_header h;
  h.file = file;
  if (c.left() < 4 || c.read<std::uint32_t>("the magic number") != 0x46554747)
    c.fail("expected a GGUF file, which begins with \"GGUF\"", 0);
  h.version = c.read<std::uint32_t>("the version");
  if ((h.version & 0xFFFF) == 0 && h.version != 0) c.fail("expected a little-endian file, got a big-endian one", 4);
  if (h.version != 2 && h.version != 3) c.fail("expected version 2 or 3, got " + std::to_string(h.version), 4);
  constexpr std::uint64_t least_tensor = 8 + 1 + 4 + 8 + 4 + 8, least_value = 8 + 1 + 4 + 1;
  const std::uint64_t tensors = c.count("the number of tensors", least_tensor, 1 << 18);
  const std::uint64_t values = c.count("the number of metadata", least_value, 1 << 16);
  for (std::uint64_t i = 0; i < values; ++i) {
    const std::uint64_t where = c.position();
    const std::string_view key = c.text("the length of a key");
    if (key.empty() || key.size() > 255 || !is_utf8(key)) c.fail("expected a key of 1 to 255 bytes in UTF-8", where);
    const std::string name(key);
    const gguf_kind kind = read_kind(c);
    if (!h.metadata.emplace(name, read_value(c, kind)).second)
      c.fail("expected every key once, got " + io::in_quotes(name) + " again", where);
  }
  if (const auto found = h.metadata.find("general.alignment"); found != h.metadata.end()) {
    const double a = found->second.number.value_or(0);
    if (!(a >= 1 && a <= 1 << 20 && a == std::floor(a)) || !std::has_single_bit(static_cast<std::uint64_t>(a)))
      c.fail("general.alignment: expected a power of two up to 2^20", found->second.position);
    h.alignment = static_cast<std::uint64_t>(a);
  }
  for (std::uint64_t i = 0; i < tensors; ++i) h.tensors.push_back(read_tensor(c, h.alignment));
  h.data = (c.position() + h.alignment - 1) / h.alignment * h.alignment;
  check_places(h, file_bytes);
  return h;
}

}  // namespace detail

HETPLAN_INLINE std::optional<gguf_header> parse_gguf(std::string_view head, std::uint64_t file_bytes, const std::string& file) {
  head = head.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file_bytes)));
  detail::gguf_cursor c(head, file_bytes, file);
  try {
    return detail::parse_header(c, file_bytes, file);
  } catch (const detail::short_head&) {
    return std::nullopt;
  }
}

HETPLAN_INLINE gguf_header read_gguf_header(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) io::detail::fail_file(file, "expected a GGUF file, got a folder");
  io::detail::file_head head(file);
  for (std::size_t wanted = 1 << 20;; wanted *= 4) {
    const auto upto = static_cast<std::size_t>(std::min<std::uint64_t>({wanted, head.file_bytes(), max_gguf_header}));
    if (auto h = parse_gguf(head.upto(upto), head.file_bytes(), file)) return std::move(*h);
    if (upto == max_gguf_header)
      io::detail::fail_file(file, "expected a header of at most " + std::to_string(max_gguf_header >> 20) + " MiB, got a longer one");
  }
}

namespace detail {

/// Makes a model of the headers of its parts.
class gguf_reader {
 public:
  gguf_reader(const std::vector<gguf_header>& parts, const std::string& name) : parts_(parts), first_(parts.front()) {
    result_.name = name;
  }

  [[nodiscard]] model_description read();

 private:
  using transformer = zoo::transformer;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw invalid_input(escaped(first_.file) + ": metadata " + io::in_quotes(key) + ": " + escaped(what));
  }
  [[nodiscard]] std::string key_of(const char* key) const { return result_.type + "." + key; }
  [[nodiscard]] const gguf_value* value(const std::string& key) const {
    const auto found = first_.metadata.find(key);
    return found == first_.metadata.end() ? nullptr : &found->second;
  }
  /// Returns an integer from 1 on; of a list that of a block.
  [[nodiscard]] std::optional<int> size_if(const char* key, std::size_t block = 0, int low = 1, int high = 1 << 24) const;
  [[nodiscard]] int size(const char* key, std::size_t block = 0, int high = 1 << 24) const {
    if (const auto n = size_if(key, block, 1, high)) return *n;
    fail(key_of(key), "expected an integer from 1 to " + std::to_string(high) + ", got nothing");
  }
  [[nodiscard]] const gguf_tensor* tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }
  [[nodiscard]] bool has(const std::string& name) const { return tensor(name) != nullptr; }

  void read_blocks();
  void read_windows();
  void place(const gguf_tensor& t);
  void place_in_block(const gguf_tensor& t, std::size_t block, std::string_view rest);

  const std::vector<gguf_header>& parts_;
  const gguf_header& first_;
  std::map<std::string, const gguf_tensor*, std::less<>> tensors_;
  model_description result_;
  tensor_sizes sizes_;
};

HETPLAN_INLINE std::optional<int> gguf_reader::size_if(const char* key, std::size_t block, int low, int high) const {
  const std::string full = key_of(key);
  const gguf_value* v = value(full);
  if (v == nullptr) return std::nullopt;
  std::optional<double> n = v->number;
  if (v->is_list) {
    const std::size_t blocks = result_.blocks.size();
    if (v->list.size() < blocks || v->list.empty())
      fail(full, "expected a number for each of " + std::to_string(blocks) + " blocks, got " + std::to_string(v->length));
    n = v->list[std::min(block, v->list.size() - 1)];
  }
  if (!n || *n != std::floor(*n) || *n < low || *n > high)
    fail(full, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                   (n ? to_text(*n) : "something else"));
  return static_cast<int>(*n);
}

HETPLAN_INLINE void gguf_reader::read_blocks() {
  zoo::language_model& m = result_.model;
  transformer& t = m.blocks;
  const std::string& type = result_.type;
  t.layers = size("block_count", 0, 4096);
  t.hidden = size("embedding_length");
  m.context = size("context_length", 0, 1 << 30);
  const gguf_tensor* table = tensor("token_embd.weight");
  if (table == nullptr) throw invalid_input(escaped(first_.file) + ": expected a tensor \"token_embd.weight\", got none");
  if (table->shape[1] > 1 << 26) throw invalid_input(escaped(first_.file) + ": tensor \"token_embd.weight\": expected at most 2^26 rows");
  m.vocabulary = static_cast<int>(table->shape[1]);
  m.learned_positions = has("position_embd.weight");
  if (m.learned_positions)
    m.segments = has("token_types.weight") ? static_cast<int>(std::min<std::uint64_t>(tensor("token_types.weight")->shape[1], 1 << 16)) : 0;
  m.head_bias = has("output.bias");
  const bool encodes = type == "bert";
  m.tied = !encodes && !has("output.weight");
  if (encodes) {
    m.head = zoo::head_kind::none;
    t.place = zoo::norm_place::after;
    t.attention = attention_kind::full;
  }
  result_.blocks.assign(static_cast<std::size_t>(t.layers), t);
  for (std::size_t i = 0; i < result_.blocks.size(); ++i) {
    transformer& b = result_.blocks[i];
    const std::string prefix = "blk." + std::to_string(i) + ".";
    const auto in = [&](const char* name) { return has(prefix + name); };
    b.heads = size("attention.head_count", i, 1 << 14);
    b.kv_heads = size_if("attention.head_count_kv", i).value_or(b.heads);
    if (b.kv_heads > b.heads || b.heads % b.kv_heads != 0)
      fail(key_of("attention.head_count_kv"), "expected a divisor of the heads (" + std::to_string(b.heads) + ") for block " +
                                                  std::to_string(i) + ", got " + std::to_string(b.kv_heads));
    const auto key_length = size_if("attention.key_length"), value_length = size_if("attention.value_length");
    if (!key_length && b.hidden % b.heads != 0)
      fail(key_of("attention.head_count"),
           "expected a divisor of embedding_length (" + std::to_string(b.hidden) + "), got " + std::to_string(b.heads));
    b.head_dim = key_length.value_or(b.hidden / b.heads);
    if (value_length && *value_length != b.head_dim)
      fail(key_of("attention.value_length"),
           "expected that of keys (" + std::to_string(b.head_dim) + "), got " + std::to_string(*value_length));
    b.norm = in("attn_norm.bias") || in("attn_output_norm.bias") ? zoo::norm_kind::layer : zoo::norm_kind::rms;
    b.qkv_bias = in("attn_q.bias") || in("attn_qkv.bias");
    b.output_bias = in("attn_output.bias");
    b.mlp_bias = in("ffn_up.bias");
    b.qk_norm = in("attn_q_norm.weight");
    if (in("post_attention_norm.weight") && in("post_ffw_norm.weight")) b.place = zoo::norm_place::around;
    if (type == "gptneox" && (value(key_of("use_parallel_residual")) == nullptr || value(key_of("use_parallel_residual"))->number == 1.0))
      b.residual = zoo::residual_kind::parallel;
    if (type == "phi2") b.residual = zoo::residual_kind::parallel_one_norm;
    b.composed_gelu = type == "gpt2";
    const gguf_tensor* chosen = tensor(prefix + "ffn_down_exps.weight");
    if (chosen == nullptr) chosen = tensor(prefix + "ffn_down.0.weight");
    const gguf_tensor* down = chosen != nullptr ? chosen : tensor(prefix + "ffn_down.weight");
    if (down == nullptr || down->shape[0] > 1 << 24)
      throw invalid_input(escaped(first_.file) + ": block " + std::to_string(i) + ": expected a tensor \"" + prefix +
                          "ffn_down.weight\" of at most 2^24 columns, got none");
    b.intermediate = static_cast<int>(down->shape[0]);
    if (chosen != nullptr) {
      b.experts = size("expert_count", i, 1 << 16);
      b.active_experts = size("expert_used_count", i, 1 << 16);
      if (b.active_experts > b.experts)
        fail(key_of("expert_used_count"),
             "expected at most expert_count (" + std::to_string(b.experts) + "), got " + std::to_string(b.active_experts));
      if (const gguf_tensor* shared = tensor(prefix + "ffn_down_shexp.weight")) {
        b.shared_intermediate = static_cast<int>(std::min<std::uint64_t>(shared->shape[0], 1 << 24));
        b.shared_gate = in("ffn_gate_inp_shexp.weight");
      }
    } else if (!in("ffn_gate.weight") && type != "phi3") {
      b.mlp = zoo::mlp_kind::plain;
    }
  }
  const int layers = t.layers;
  t = result_.blocks.front();
  t.layers = layers;
  for (transformer& b : result_.blocks) b.layers = layers;
}

HETPLAN_INLINE void gguf_reader::read_windows() {
  const auto window = size_if("attention.sliding_window", 0, 0, 1 << 30);
  if (!window || *window == 0 || *window >= result_.model.context) return;
  // By the program's own rule, where the file does not say it.
  const std::string& type = result_.type;
  int every = type == "gemma2" ? 2 : type == "gemma3" ? 6 : 0;
  const gguf_value* pattern = value(key_of("attention.sliding_window_pattern"));
  if (pattern != nullptr && pattern->number && *pattern->number >= 1 && *pattern->number <= 4096)
    every = static_cast<int>(*pattern->number);
  for (std::size_t i = 0; i < result_.blocks.size(); ++i) {
    bool slides = every == 0 || (i + 1) % static_cast<std::size_t>(every) != 0;
    if (pattern != nullptr && pattern->is_list && !pattern->list.empty()) slides = pattern->list[i % pattern->list.size()] != 0;
    if (slides) result_.blocks[i].window = *window;
  }
}

HETPLAN_INLINE void gguf_reader::place_in_block(const gguf_tensor& t, std::size_t block, std::string_view rest) {
  const transformer& b = result_.blocks[block];
  const std::string prefix = "l" + std::to_string(block) + ".";
  const double size = static_cast<double>(t.size), elements = t.elements();
  const std::string_view what = rest.substr(0, rest.rfind('.'));
  const auto put = [&](std::string_view name) { sizes_.add(prefix + std::string(name), size, elements); };
  // Rows of several products in one tensor: rows are whole blocks, so that their shares are whole bytes.
  const auto split = [&](std::initializer_list<std::pair<std::string_view, double>> parts) {
    double all = 0;
    for (const auto& [name, rows] : parts) all += rows;
    for (const auto& [name, rows] : parts) sizes_.add(prefix + std::string(name), size * rows / all, elements * rows / all);
  };
  const bool plain = b.mlp == zoo::mlp_kind::plain && b.experts == 0;
  if (what == "attn_qkv") {
    const double q = b.heads, kv = b.kv_heads;
    return split({{"q", q}, {"k", kv}, {"v", kv}});
  }
  if (what == "ffn_up" && plain) return put("fc1");
  if (what == "ffn_down" && plain) return put("fc2");
  if (what == "ffn_up" && !plain && !has("blk." + std::to_string(block) + ".ffn_gate.weight")) return split({{"gate", 1}, {"up", 1}});
  if (what == "ffn_gate_up_exps") return split({{"gate", 1}, {"up", 1}});
  constexpr std::array<std::pair<std::string_view, std::string_view>, 25> names{{{"attn_norm", "norm1"},
                                                                                 {"attn_q", "q"},
                                                                                 {"attn_k", "k"},
                                                                                 {"attn_v", "v"},
                                                                                 {"attn_output", "o"},
                                                                                 {"attn_q_norm", "q"},
                                                                                 {"attn_k_norm", "k"},
                                                                                 {"attn_output_norm", "norm1"},
                                                                                 {"layer_output_norm", "norm2"},
                                                                                 {"post_attention_norm", "post1"},
                                                                                 {"post_ffw_norm", "post2"},
                                                                                 {"ffn_norm", "norm2"},
                                                                                 {"ffn_gate", "gate"},
                                                                                 {"ffn_up", "up"},
                                                                                 {"ffn_down", "down"},
                                                                                 {"ffn_gate_inp", "router"},
                                                                                 {"ffn_gate_exps", "gate"},
                                                                                 {"ffn_up_exps", "up"},
                                                                                 {"ffn_down_exps", "down"},
                                                                                 {"ffn_gate_inp_shexp", "shared.share"},
                                                                                 {"ffn_gate_shexp", "shared.gate"},
                                                                                 {"ffn_up_shexp", "shared.up"},
                                                                                 {"ffn_down_shexp", "shared.down"},
                                                                                 {"attn_rot_embd", ""},
                                                                                 {"rope_freqs", ""}}};
  for (const auto& [from, to] : names) {
    if (what != from) continue;
    if (to.empty()) return sizes_.add(prefix + "q", size, 0);
    return put(to);
  }
  for (const std::string_view name : {"gate", "up", "down"}) {  // an expert a tensor: ffn_gate.0
    const std::string stem = "ffn_" + std::string(name) + ".";
    if (b.experts > 0 && what.starts_with(stem) && what.find_first_not_of("0123456789", stem.size()) == std::string_view::npos)
      return put(name);
  }
  result_.ignored.emplace_back(t.name, bytes(size));
}

HETPLAN_INLINE void gguf_reader::place(const gguf_tensor& t) {
  const double size = static_cast<double>(t.size), elements = t.elements();
  const std::string_view name = t.name;
  if (name.starts_with("blk.")) {
    std::size_t block = 0;
    const auto [end, code] = std::from_chars(name.data() + 4, name.data() + name.size(), block);
    const bool known = code == std::errc() && end != name.data() + name.size() && *end == '.' && block < result_.blocks.size();
    if (known) return place_in_block(t, block, name.substr(static_cast<std::size_t>(end - name.data()) + 1));
    throw invalid_input(escaped(first_.file) + ": tensor " + io::in_quotes(name) + ": expected one of blocks 0 to " +
                        std::to_string(result_.blocks.size() - 1));
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names{{{"token_embd", "embed"},
                                                                                {"position_embd", "positions"},
                                                                                {"token_types", "positions"},
                                                                                {"token_embd_norm", "embed_norm"},
                                                                                {"output_norm", "norm"},
                                                                                {"output", "lm_head"}}};
  const std::string_view what = name.substr(0, name.rfind('.'));
  for (const auto& [from, to] : names) {
    if (what == from) return sizes_.add(std::string(to), size, elements);
  }
  if (what.starts_with("rope_f")) return sizes_.add("l0.q", size, 0);  // factors of rotary positions: no parameters
  result_.ignored.emplace_back(t.name, bytes(size));
}

HETPLAN_INLINE model_description gguf_reader::read() {
  const gguf_value* type = value("general.architecture");
  const auto& known = gguf_architectures;
  const std::string expected = "expected one of " + io::joined(known) + ", got ";
  if (type == nullptr || !type->text) fail("general.architecture", expected + "nothing");
  result_.type = *type->text;
  if (std::find(known.begin(), known.end(), result_.type) == known.end())
    fail("general.architecture", expected + io::in_quotes(result_.type) + io::suggestion(result_.type, known));
  std::map<std::string_view, double> families;
  for (const gguf_header& part : parts_) {
    for (const gguf_tensor& t : part.tensors) {
      if (!tensors_.emplace(t.name, &t).second)
        throw invalid_input(escaped(part.file) + ": tensor " + io::in_quotes(t.name) + ": expected every name once, got it in two files");
      if (t.name.starts_with("blk.")) families[t.type->family] += static_cast<double>(t.size);
    }
  }
  read_blocks();
  read_windows();
  for (const auto& [name, t] : tensors_) place(*t);
  result_.sizes = std::move(sizes_).take();
  const auto most = std::max_element(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  result_.family = most == families.end() ? "f16" : most->first;
  result_.dtype = result_.family == "f32" ? precision::fp32 : precision::bf16;
  return std::move(result_);
}

HETPLAN_INLINE model_description gguf_model(const std::vector<gguf_header>& parts, const std::string& name) {
  return gguf_reader(parts, name).read();
}

/// Returns the number of a part and of all, from the end of a name, "-00001-of-00003.gguf"; nothing for other names.
HETPLAN_INLINE std::optional<std::pair<int, int>> part_in_name(const std::string& file) {
  constexpr std::size_t length = 20;  // "-00001-of-00003.gguf"
  if (file.size() <= length) return std::nullopt;
  const std::string_view end = std::string_view(file).substr(file.size() - length);
  if (end[0] != '-' || end.substr(6, 4) != "-of-" || end.substr(15) != ".gguf") return std::nullopt;
  std::array<int, 2> numbers{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view digits = end.substr(i == 0 ? 1 : 10, 5);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    std::from_chars(digits.data(), digits.data() + 5, numbers[i]);
  }
  return std::pair{numbers[0], numbers[1]};
}

/// Returns the headers of all parts of a model.
HETPLAN_INLINE std::vector<gguf_header> read_parts(const std::string& file) {
  std::vector<gguf_header> parts;
  const auto number = [](const gguf_header& h, const char* key) -> double {
    const auto found = h.metadata.find(key);
    return found == h.metadata.end() ? 0 : found->second.number.value_or(-1);
  };
  gguf_header one = read_gguf_header(file);
  const double count = number(one, "split.count");
  if (count <= 1) {
    parts.push_back(std::move(one));
    return parts;
  }
  const auto named = part_in_name(file);
  if (!named || named->second != count)
    io::detail::fail_file(file, "expected the name of a part of " + to_text(count) + ", such as \"-00001-of-0000N.gguf\"");
  double tensors = 0;
  for (int i = 1; i <= named->second; ++i) {
    char end[32];
    std::snprintf(end, sizeof end, "-%05d-of-%05d.gguf", i, named->second);
    const std::string sibling = file.substr(0, file.size() - 20) + end;
    parts.push_back(read_gguf_header(sibling));
    const gguf_header& h = parts.back();
    if (number(h, "split.no") != i - 1 || number(h, "split.count") != count)
      io::detail::fail_file(sibling,
                            "expected part " + std::to_string(i) + " of " + to_text(count) + " by its metadata (split.no, split.count)");
    tensors += static_cast<double>(h.tensors.size());
  }
  const double expected = number(parts.front(), "split.tensors.count");
  if (expected > 0 && expected != tensors)
    io::detail::fail_file(parts.front().file,
                          "split.tensors.count: expected the " + to_text(tensors) + " tensors of all parts, got " + to_text(expected));
  return parts;
}

}  // namespace detail

HETPLAN_INLINE model_description read_gguf(const std::string& file) {
  const std::vector<gguf_header> parts = detail::read_parts(file);
  std::string name = model_name_of(file);
  if (parts.size() > 1) name = model_name_of(file.substr(0, file.size() - 20) + ".gguf");
  return detail::gguf_model(parts, name);
}

}  // namespace hetplan::exchange
