// SPDX-License-Identifier: BSL-1.0
/// GGUF files that this test builds itself.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include <hetplan/exchange/gguf.hpp>

namespace test_gguf {

using namespace hetplan;
using exchange::gguf_header;
using exchange::model_description;

namespace {

template <class Number>
void append(std::string& to, Number n) {
  char raw[sizeof n];
  std::memcpy(raw, &n, sizeof n);
  to.append(raw, sizeof n);
}

/// Writes headers; the data behind them are zeros that a file need not hold.
class writer {
 public:
  explicit writer(std::uint32_t version = 3) : version_(version) {}

  void text(const std::string& key, const std::string& value) {
    begin(key, 8);
    append_text(values_, value);
  }
  void u32(const std::string& key, std::uint32_t value) {
    begin(key, 4);
    append(values_, value);
  }
  void u16(const std::string& key, std::uint16_t value) {
    begin(key, 2);
    append(values_, value);
  }
  void flag(const std::string& key, bool value) {
    begin(key, 7);
    append(values_, static_cast<std::uint8_t>(value));
  }
  void list(const std::string& key, const std::vector<std::int32_t>& values) {
    begin(key, 9);
    append(values_, std::uint32_t{5});
    append(values_, static_cast<std::uint64_t>(values.size()));
    for (const std::int32_t v : values) append(values_, v);
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    begin(key, 9);
    append(values_, std::uint32_t{8});
    append(values_, static_cast<std::uint64_t>(values.size()));
    for (const std::string& v : values) append_text(values_, v);
  }
  /// Adds a tensor of `size` bytes behind the others, or at an offset of its own.
  void tensor(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type, std::uint64_t size,
              std::optional<std::uint64_t> offset = {}) {
    append_text(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t n : shape) append(tensors_, n);
    append(tensors_, type);
    append(tensors_, offset.value_or(data_));
    if (!offset) data_ = (data_ + size + 31) / 32 * 32;
    bytes_ += static_cast<double>(size);
    ++tensor_count_;
  }

  [[nodiscard]] std::string header() const {
    std::string s = "GGUF";
    append(s, version_);
    append(s, tensor_count_);
    append(s, value_count_);
    return s + values_ + tensors_;
  }
  [[nodiscard]] std::uint64_t file_bytes() const { return (header().size() + 31) / 32 * 32 + data_; }
  /// Of all tensors, without what aligns them.
  [[nodiscard]] double bytes_of_tensors() const { return bytes_; }
  void save(const std::string& file) const {
    const std::string h = header();
    std::ofstream(file, std::ios::binary).write(h.data(), static_cast<std::streamsize>(h.size()));
    std::filesystem::resize_file(file, file_bytes());
  }

 private:
  static void append_text(std::string& to, const std::string& s) {
    append(to, static_cast<std::uint64_t>(s.size()));
    to += s;
  }
  void begin(const std::string& key, std::uint32_t type) {
    append_text(values_, key);
    append(values_, type);
    ++value_count_;
  }

  std::uint32_t version_;
  std::string values_, tensors_;
  std::uint64_t value_count_ = 0, tensor_count_ = 0, data_ = 0;
  double bytes_ = 0;
};

// Types by their numbers in a file, with bytes for so many weights, from the structs of ggml (scales, then quants):
// Q4_K: two halves, 12 B of scales, 128 B for 256; Q6_K: a half, 16 scales, 192 B; Q8_0: a half and 32 B for 32.
constexpr std::uint32_t f32 = 0, f16 = 1, q8_0 = 8, q4_k = 12, q6_k = 14;
std::uint64_t size_of(std::uint32_t type, std::uint64_t weights) {
  switch (type) {
    case f32: return 4 * weights;
    case f16: return 2 * weights;
    case q8_0: return weights / 32 * (2 + 32);
    case q4_k: return weights / 256 * (2 + 2 + 12 + 128);
    default: return weights / 256 * (2 + 16 + 64 + 128);
  }
}

struct shape_of_test {
  std::uint64_t layers = 2, hidden = 256, heads = 4, kv_heads = 2, head_dim = 64, wide = 512, words = 320;
};

void add(writer& w, const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type) {
  std::uint64_t n = 1;
  for (const std::uint64_t d : shape) n *= d;
  w.tensor(name, shape, type, size_of(type, n));
}

void put_metadata(writer& w, const std::string& arch, const shape_of_test& s) {
  w.text("general.architecture", arch);
  w.text("general.name", "a test");
  w.u32(arch + ".block_count", static_cast<std::uint32_t>(s.layers));
  w.u32(arch + ".embedding_length", static_cast<std::uint32_t>(s.hidden));
  w.u32(arch + ".context_length", 4096);
  w.u32(arch + ".feed_forward_length", static_cast<std::uint32_t>(s.wide));
  w.u32(arch + ".attention.head_count", static_cast<std::uint32_t>(s.heads));
  w.texts("tokenizer.ggml.tokens", {"a", "b", "longer word"});
}

void put_attention(writer& w, const std::string& b, const shape_of_test& s, std::uint64_t kv_heads) {
  add(w, b + "attn_norm.weight", {s.hidden}, f32);
  add(w, b + "attn_q.weight", {s.hidden, s.heads * s.head_dim}, q4_k);
  add(w, b + "attn_k.weight", {s.hidden, kv_heads * s.head_dim}, q4_k);
  add(w, b + "attn_v.weight", {s.hidden, kv_heads * s.head_dim}, q6_k);
  add(w, b + "attn_output.weight", {s.heads * s.head_dim, s.hidden}, q4_k);
  add(w, b + "ffn_norm.weight", {s.hidden}, f32);
}

/// A model as llama.cpp's Q4_K_M has it.
writer small_llama(const shape_of_test& s = {}, bool head = true, std::uint32_t version = 3) {
  writer w(version);
  put_metadata(w, "llama", s);
  w.u32("llama.attention.head_count_kv", static_cast<std::uint32_t>(s.kv_heads));
  add(w, "token_embd.weight", {s.hidden, s.words}, q4_k);
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    put_attention(w, b, s, s.kv_heads);
    add(w, b + "ffn_gate.weight", {s.hidden, s.wide}, q4_k);
    add(w, b + "ffn_up.weight", {s.hidden, s.wide}, q4_k);
    add(w, b + "ffn_down.weight", {s.wide, s.hidden}, q6_k);
  }
  add(w, "output_norm.weight", {s.hidden}, f32);
  if (head) add(w, "output.weight", {s.hidden, s.words}, q6_k);
  add(w, "rope_freqs.weight", {32}, f32);
  return w;
}

/// Experts, a shared one, and a first block without.
writer small_experts() {
  const shape_of_test s;
  writer w;
  put_metadata(w, "qwen2moe", s);
  w.list("qwen2moe.attention.head_count_kv", {2, 4});
  w.u32("qwen2moe.expert_count", 8);
  w.u32("qwen2moe.expert_used_count", 3);
  add(w, "token_embd.weight", {s.hidden, s.words}, q8_0);
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    const std::uint64_t kv = i == 0 ? 2 : 4;
    put_attention(w, b, s, kv);
    add(w, b + "attn_q.bias", {s.heads * s.head_dim}, f32);
    add(w, b + "attn_k.bias", {kv * s.head_dim}, f32);
    add(w, b + "attn_v.bias", {kv * s.head_dim}, f32);
    if (i == 0) {
      add(w, b + "ffn_gate.weight", {s.hidden, s.wide}, q4_k);
      add(w, b + "ffn_up.weight", {s.hidden, s.wide}, q4_k);
      add(w, b + "ffn_down.weight", {s.wide, s.hidden}, q6_k);
      continue;
    }
    add(w, b + "ffn_gate_inp.weight", {s.hidden, 8}, f32);
    add(w, b + "ffn_gate_exps.weight", {s.hidden, 256, 8}, q4_k);
    add(w, b + "ffn_up_exps.weight", {s.hidden, 256, 8}, q4_k);
    add(w, b + "ffn_down_exps.weight", {256, s.hidden, 8}, q6_k);
    add(w, b + "ffn_gate_inp_shexp.weight", {s.hidden}, f32);
    add(w, b + "ffn_gate_shexp.weight", {s.hidden, 512}, q4_k);
    add(w, b + "ffn_up_shexp.weight", {s.hidden, 512}, q4_k);
    add(w, b + "ffn_down_shexp.weight", {512, s.hidden}, q6_k);
  }
  add(w, "output_norm.weight", {s.hidden}, f32);
  return w;
}

gguf_header parsed(const writer& w) {
  const auto h = exchange::parse_gguf(w.header(), w.file_bytes(), "f.gguf");
  REQUIRE(h.has_value());
  return *h;
}

model_description model_of(const writer& w) { return exchange::detail::gguf_model({parsed(w)}, "m"); }

double bytes_of(const planning_graph& g) {
  double total = 0;
  std::vector<bool> seen(g.weight_groups().size());
  for (const layer& l : g.layers()) {
    if (l.weight_group >= 0) {
      if (seen[static_cast<std::size_t>(l.weight_group)]) continue;
      seen[static_cast<std::size_t>(l.weight_group)] = true;
    }
    total += l.weight.value();
  }
  return total;
}

const layer& at(const planning_graph& g, const std::string& name) { return g[g.find(name)]; }

std::string fault_of(const std::string& head, std::uint64_t file_bytes) {
  try {
    const auto h = exchange::parse_gguf(head, file_bytes, "f.gguf");
    if (!h) return "more";
    model_description d = exchange::detail::gguf_model({*h}, "m");
    static_cast<void>(exchange::graph_of(d));
  } catch (const invalid_input& e) {
    return e.what();
  }
  return "";
}
std::string fault_of(const writer& w) { return fault_of(w.header(), w.file_bytes()); }

}  // namespace

TEST_CASE("layers of a GGUF file have the bytes of its tensors, to the byte") {
  for (const std::uint32_t version : {2U, 3U}) {
    const writer w = small_llama({}, true, version);
    model_description d = model_of(w);
    CHECK(d.model.tied == false);
    CHECK(d.family == "q4");
    CHECK(d.model.context == 4096);
    CHECK(d.model.vocabulary == 320);
    for (const zoo::level level : {zoo::level::parts, zoo::level::operators}) {
      const planning_graph g = exchange::graph_of(d, {.level = level});
      CHECK(bytes_of(g) == w.bytes_of_tensors());
      CHECK(exchange::left_out(d).empty());
      CHECK(g.facts().weight_format == "q4");
    }
    const planning_graph g = exchange::graph_of(d);
    REQUIRE(g.size() == 7);
    // By hand: 256 x 256 weights are 256 blocks of 144 B, of 256 x 128 half as many; the value's have 210 B.
    constexpr double norm = 256 * 4, rope = 32 * 4;
    CHECK(at(g, "l0.attn").weight == bytes(256 * 144 + 128 * 144 + 128 * 210 + 256 * 144 + norm + rope));
    CHECK(at(g, "l1.attn").weight == bytes(256 * 144 + 128 * 144 + 128 * 210 + 256 * 144 + norm));
    CHECK(at(g, "l1.mlp").weight == bytes(2 * 512 * 144 + 512 * 210 + norm));
    CHECK(at(g, "embed").weight == bytes(320 * 144));
    CHECK(at(g, "embed").weight_traffic == bytes(512 * 144));  // a row of the table for each token
    CHECK(at(g, "lm_head").weight == bytes(320 * 210));
    CHECK(at(g, "norm").weight == bytes(norm));
    CHECK(at(g, "l0.attn").kv_bytes_per_token == bytes(2 * 2 * 64 * 2));
  }
}

TEST_CASE("without an output tensor the embedding is the head") {
  const writer w = small_llama({}, false);
  model_description d = model_of(w);
  CHECK(d.model.tied);
  const planning_graph g = exchange::graph_of(d);
  CHECK(bytes_of(g) == w.bytes_of_tensors());
  CHECK(at(g, "lm_head").weight == at(g, "embed").weight);
}

TEST_CASE("heads of keys by block, experts, a shared expert and dense blocks come from metadata and tensors") {
  const writer w = small_experts();
  model_description d = model_of(w);
  REQUIRE(d.blocks.size() == 2);
  CHECK(d.blocks[0].kv_heads == 2);
  CHECK(d.blocks[1].kv_heads == 4);
  CHECK(d.blocks[0].experts == 0);
  CHECK(d.blocks[0].intermediate == 512);
  CHECK(d.blocks[1].experts == 8);
  CHECK(d.blocks[1].active_experts == 3);
  CHECK(d.blocks[1].intermediate == 256);
  CHECK(d.blocks[1].shared_intermediate == 512);
  CHECK(d.blocks[1].shared_gate);
  for (const zoo::level level : {zoo::level::parts, zoo::level::operators})
    CHECK(bytes_of(exchange::graph_of(d, {.level = level})) == w.bytes_of_tensors());
  const planning_graph g = exchange::graph_of(d);
  const layer& experts = at(g, "l1.mlp");
  REQUIRE(experts.sequence.experts);
  CHECK(experts.sequence.experts->total == 8);
  CHECK(experts.sequence.experts->active == 3);
  CHECK(experts.sequence.experts->weight == bytes(8 * 256 * (144 + 144 + 210)));
  CHECK(at(g, "l1.attn").kv_bytes_per_token == bytes(2 * 4 * 64 * 2));
}

TEST_CASE("windows follow the architecture's rule") {
  const shape_of_test s{.layers = 12};
  for (const std::string arch : {"gemma3", "gemma2", "llama"}) {
    writer w;
    put_metadata(w, arch, s);
    w.u32(arch + ".attention.sliding_window", 512);
    w.u32(arch + ".attention.key_length", 64);
    add(w, "token_embd.weight", {s.hidden, s.words}, f16);
    for (std::uint64_t i = 0; i < s.layers; ++i) {
      const std::string b = "blk." + std::to_string(i) + ".";
      put_attention(w, b, s, s.heads);
      add(w, b + "post_attention_norm.weight", {s.hidden}, f32);
      add(w, b + "post_ffw_norm.weight", {s.hidden}, f32);
      add(w, b + "ffn_gate.weight", {s.hidden, s.wide}, q4_k);
      add(w, b + "ffn_up.weight", {s.hidden, s.wide}, q4_k);
      add(w, b + "ffn_down.weight", {s.wide, s.hidden}, q6_k);
    }
    add(w, "output_norm.weight", {s.hidden}, f32);
    model_description d = model_of(w);
    int full = 0;
    for (const zoo::transformer& t : d.blocks) {
      full += t.window ? 0 : 1;
      CHECK(t.place == zoo::norm_place::around);
    }
    INFO(arch);
    CHECK(full == (arch == "gemma3" ? 2 : arch == "gemma2" ? 6 : 0));
    CHECK(bytes_of(exchange::graph_of(d)) == w.bytes_of_tensors());
  }
}

TEST_CASE("a split file reads its siblings, whichever is named") {
  const auto folder = std::filesystem::temp_directory_path() / "hetplan_gguf_parts";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const shape_of_test s;
  std::vector<writer> parts(2);
  put_metadata(parts[0], "llama", s);
  parts[0].u32("llama.attention.head_count_kv", 2);
  double total = 0;
  for (std::uint16_t i = 0; i < 2; ++i) {
    writer& w = parts[i];
    w.u16("split.no", i);
    w.u16("split.count", 2);
    if (i == 0) add(w, "token_embd.weight", {s.hidden, s.words}, q4_k);
    const std::string b = "blk." + std::to_string(i) + ".";
    put_attention(w, b, s, 2);
    add(w, b + "ffn_gate.weight", {s.hidden, s.wide}, q4_k);
    add(w, b + "ffn_up.weight", {s.hidden, s.wide}, q4_k);
    add(w, b + "ffn_down.weight", {s.wide, s.hidden}, q6_k);
    if (i == 1) add(w, "output_norm.weight", {s.hidden}, f32);
    w.save((folder / ("tiny-0000" + std::to_string(i + 1) + "-of-00002.gguf")).string());
    total += w.bytes_of_tensors();
  }
  for (const char* part : {"tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf"}) {
    model_description d = exchange::read_gguf((folder / part).string());
    CHECK(d.name == "tiny");
    CHECK(bytes_of(exchange::graph_of(d)) == total);
  }
  std::filesystem::remove(folder / "tiny-00002-of-00002.gguf");
  CHECK_THROWS_WITH(exchange::read_gguf((folder / "tiny-00001-of-00002.gguf").string()), Catch::Contains("tiny-00002-of-00002.gguf"));
  std::filesystem::copy(folder / "tiny-00001-of-00002.gguf", folder / "tiny-00002-of-00002.gguf");
  CHECK_THROWS_WITH(exchange::read_gguf((folder / "tiny-00001-of-00002.gguf").string()), Catch::Contains("expected part 2 of 2"));
  std::filesystem::copy(folder / "tiny-00001-of-00002.gguf", folder / "renamed.gguf");
  CHECK_THROWS_WITH(exchange::read_gguf((folder / "renamed.gguf").string()), Catch::Contains("expected the name of a part of 2"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("what is wrong with a file is told in one line") {
  const writer good = small_llama();
  const std::string head = good.header();
  const std::uint64_t size = good.file_bytes();
  CHECK(fault_of(good).empty());
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string s = head;
    s.replace(at, bytes.size(), bytes);
    return fault_of(s, size);
  };
  const auto number = [](std::uint64_t n) {
    std::string s;
    append(s, n);
    return s;
  };
  CHECK(fault_of("", 0) == "f.gguf: byte 0: expected a GGUF file, which begins with \"GGUF\"");
  CHECK(with(0, "GGML") == "f.gguf: byte 0: expected a GGUF file, which begins with \"GGUF\"");
  CHECK(with(4, std::string("\x01\0\0\0", 4)) == "f.gguf: byte 4: expected version 2 or 3, got 1");
  CHECK(with(4, std::string("\0\0\0\x03", 4)) == "f.gguf: byte 4: expected a little-endian file, got a big-endian one");
  CHECK(with(8, number(std::uint64_t{1} << 60)).find("byte 8: the number of tensors: expected at most what fits into the file") !=
        std::string::npos);
  CHECK(with(16, number(~std::uint64_t{0})).find("byte 16: the number of metadata: expected at most") != std::string::npos);
  CHECK(with(24, number(size)).find("the length of a key: expected at most what fits") != std::string::npos);
  CHECK(fault_of(head.substr(0, 100), 100).find("f.gguf: byte ") == 0);
  CHECK(fault_of(head, size - 64).find("(is it cut off?)") != std::string::npos);
  CHECK(fault_of(head.substr(0, 100), size) == "more");
  const auto tensor_fault = [&](const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                                std::optional<std::uint64_t> offset = {}) {
    writer w = small_llama();
    w.tensor(name, shape, type, 64, offset);
    return fault_of(w);
  };
  CHECK(tensor_fault("x", {32}, 4).find("tensor \"x\": expected a known type of tensors, got number 4") != std::string::npos);
  CHECK(tensor_fault("x", {33}, q8_0).find("expected rows of whole blocks of 32 elements for Q8_0, got 33") != std::string::npos);
  CHECK(tensor_fault("x", {16}, f32, 64).find("expected bytes of its own, got some of tensor") != std::string::npos);
  CHECK(tensor_fault("x", {16}, f32, 7).find("expected an offset in multiples of 32, got 7") != std::string::npos);
  CHECK(tensor_fault("output.weight", {16}, f32).find("expected every name once") != std::string::npos);
  CHECK(tensor_fault("x", {0}, f32).find("expected dimensions >= 1") != std::string::npos);
  CHECK(tensor_fault("x", {1, 1, 1, 1, 1}, f32).find("expected 1 to 4 dimensions, got 5") != std::string::npos);
  CHECK(tensor_fault("blk.2.attn_q.weight", {16}, f32).find("expected one of blocks 0 to 1") != std::string::npos);
  const auto metadata_fault = [](const std::string& arch, std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t blocks) {
    writer w;
    w.text("general.architecture", arch);
    w.u32("llama.block_count", blocks);
    w.u32("llama.embedding_length", 256);
    w.u32("llama.context_length", 4096);
    w.u32("llama.attention.head_count", heads);
    w.u32("llama.attention.head_count_kv", kv_heads);
    add(w, "token_embd.weight", {256, 320}, f16);
    put_attention(w, "blk.0.", {}, 2);
    add(w, "blk.0.ffn_gate.weight", {256, 512}, q4_k);
    add(w, "blk.0.ffn_up.weight", {256, 512}, q4_k);
    add(w, "blk.0.ffn_down.weight", {512, 256}, q6_k);
    add(w, "output_norm.weight", {256}, f32);
    return fault_of(w);
  };
  CHECK(metadata_fault("llama", 4, 2, 1).empty());
  CHECK(metadata_fault("lama", 4, 2, 1).find("metadata \"general.architecture\": expected one of bert, ") != std::string::npos);
  CHECK(metadata_fault("lama", 4, 2, 1).find("did you mean \"llama\"?") != std::string::npos);
  CHECK(metadata_fault("llama", 4, 3, 1).find("expected a divisor of the heads (4) for block 0, got 3") != std::string::npos);
  CHECK(metadata_fault("llama", 3, 3, 1).find("expected a divisor of embedding_length (256), got 3") != std::string::npos);
  CHECK(metadata_fault("llama", 0, 2, 1).find("\"llama.attention.head_count\": expected an integer from 1 to 16384, got 0") !=
        std::string::npos);
  CHECK(metadata_fault("llama", 4, 2, 2).find("block 1: expected a tensor \"blk.1.ffn_down.weight\"") != std::string::npos);
  CHECK(metadata_fault("llama", 8, 2, 1).find("expected tensors of \"l0.k\" with 16384 parameters, got 32768") != std::string::npos);
}

TEST_CASE("a hundred thousand broken files are refused or read, and nothing worse") {
  constexpr int mutants = 100'000;
  const std::vector<writer> writers{small_llama(), small_llama({.layers = 1}, false, 2), small_experts()};
  std::vector<std::string> heads;
  std::vector<std::uint64_t> sizes;
  for (const writer& w : writers) {
    heads.push_back(w.header());
    sizes.push_back(w.file_bytes());
  }
  std::mt19937_64 draw(20260101);
  const auto below = [&](std::uint64_t n) { return draw() % n; };
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  int refused = 0, read = 0, short_of = 0;
  for (int i = 0; i < mutants; ++i) {
    const std::size_t which = below(heads.size());
    std::string head = heads[which];
    std::uint64_t size = sizes[which];
    switch (below(5)) {
      case 0:  // flips
        for (std::uint64_t n = 1 + below(3); n > 0; --n) head[below(head.size())] = static_cast<char>(below(256));
        break;
      case 1:  // one bit
        head[below(head.size())] ^= static_cast<char>(1 << below(8));
        break;
      case 2:  // cut off
        size = below(size);
        head.resize(std::min<std::size_t>(head.size(), size));
        break;
      case 3: {  // a count, length, dimension or offset that lies: any 4 or 8 bytes
        const std::uint64_t lies[] = {0,
                                      1,
                                      2,
                                      31,
                                      0x7FFFFFFF,
                                      0x80000000,
                                      0xFFFFFFFF,
                                      std::uint64_t{1} << 32,
                                      std::uint64_t{1} << 53,
                                      std::uint64_t{1} << 63,
                                      ~std::uint64_t{0},
                                      size,
                                      size - 1,
                                      size + 1};
        const std::uint64_t lie = lies[below(std::size(lies))];
        const std::size_t width = below(2) == 0 ? 4 : 8, at = below(3) == 0 ? 8 * (1 + below(2)) : below(head.size() - width);
        std::memcpy(head.data() + at, &lie, width);
        break;
      }
      default: {  // a part moved over another
        const std::size_t length = 1 + below(64), from = below(head.size() - length), to = below(head.size() - length);
        const std::string part = head.substr(from, length);
        head.replace(to, length, part);
      }
    }
    const std::string fault = fault_of(head, size);
    if (fault == "more") ++short_of;
    else if (fault.empty()) ++read;
    else ++refused;
    if (!fault.empty() && fault != "more" && fault.find('\n') != std::string::npos) FAIL("more than one line: " << fault);
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  CAPTURE(refused, read, short_of);
  CHECK(refused > mutants / 2);
  CHECK(read > 0);  // flips in names of metadata change nothing
  // Sanitizers keep up to 256 MB that were freed.
  CHECK(after.ru_maxrss - before.ru_maxrss < 400'000);  // kB
}

}  // namespace test_gguf
