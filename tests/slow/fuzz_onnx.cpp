// SPDX-License-Identifier: BSL-1.0
#ifdef HETPLAN_HAS_ONNX

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_graph.hpp>
#include <hetplan/io/json_document.hpp>

#include "support/onnx_text.hpp"
#include "support/random_source.hpp"
#include "support/split_text.hpp"

namespace test_fuzz_onnx {

using namespace hetplan;

/// Damages models: their bytes, or what they say. Many operators, ranks and numbers: ONNX's library trusts all of them.
class onnx_mutator {
 public:
  explicit onnx_mutator(test::random_source& random) : random_(random) {
    for (const onnx::OpSchema& s : onnx::OpSchemaRegistry::get_all_schemas()) {
      types_.push_back(s.Name());
      for (const auto& [name, attribute] : s.attributes()) attributes_.push_back(name);
    }
    for (const std::string& t : test::split_text(
             R"(FusedMatMul|Attention|MultiHeadAttention|GroupQueryAttention|MatMulNBits|RotaryEmbedding|SkipLayerNormalization)"
             R"(|EmbedLayerNormalization|DynamicQuantizeMatMul|QLinearAdd|BiasGelu|Nothing|CenterCropPad|BitwiseAnd|Attention)"
             R"(|Split|Resize|Pad|AveragePool|ReduceProd|If)",
             '|'))
      types_.push_back(t);
    attributes_.insert(attributes_.end(), {"transA", "transB", "num_heads", "kv_num_heads", "N", "qkv_hidden_sizes", "q_num_heads",
                                           "num_outputs", "antialias", "keep_aspect_ratio_policy", "output_dtype", "block_size"});
    std::sort(types_.begin(), types_.end());
    std::sort(attributes_.begin(), attributes_.end());
  }

  std::string operator()(const std::string& seed, const std::string& other) {
    std::string text = seed;
    if (random_.chance(0.75)) {
      onnx::ModelProto m;
      if (m.ParseFromString(text) && m.has_graph()) {
        for (int n = random_.chance(0.7) ? 1 : random_.integer(2, 6); n > 0; --n) change(m);
        text = m.SerializeAsString();
      }
      if (random_.chance(0.9)) return text;
    }
    for (int n = random_.integer(1, 4); n > 0 && !text.empty(); --n) damage(text, other);
    return text;
  }

 private:
  void damage(std::string& text, const std::string& other) {
    const std::size_t at = random_.index(text.size());
    switch (random_.integer(0, 5)) {
      case 0: text.erase(at, 1 + random_.index(16)); break;
      case 1: text.insert(at, other.substr(random_.index(other.size()), 1 + random_.index(40))); break;
      case 2: text.insert(at, 1, static_cast<char>(random_.integer(0, 255))); break;
      case 3:
        if (random_.chance(0.2)) text = text.substr(0, at) + other.substr(random_.index(other.size()));
        break;
      default: text[at] = static_cast<char>(random_.integer(0, 255));
    }
  }

  long long number() {
    using all = std::vector<long long>;
    constexpr auto most = std::numeric_limits<long long>::max();
    static const all odd{0,  1,  -1,   2,         3,         -2,        7,          64,   1 << 20,  -9,
                         12, 17, 4096, 1LL << 31, 1LL << 40, 1LL << 62, -(1 << 30), most, -most - 1};
    return random_.chance(0.6) ? random_.integer(-3, 9) : random_.pick(odd);
  }
  std::string name(const onnx::GraphProto& g) {
    switch (random_.integer(0, 5)) {
      case 0: return "";
      case 1: return g.input_size() > 0 ? g.input(random_.integer(0, g.input_size() - 1)).name() : "x";
      case 2: return g.initializer_size() > 0 ? g.initializer(random_.integer(0, g.initializer_size() - 1)).name() : "w";
      case 3: return random_.chance(0.1) ? std::string("\xff\xfe") : "new";
      default: {
        if (g.node_size() == 0) return "y";
        const auto& n = g.node(random_.integer(0, g.node_size() - 1));
        return n.output_size() == 0 ? "" : n.output(random_.integer(0, n.output_size() - 1));
      }
    }
  }
  void fill(onnx::TensorProto& t) {
    static const std::vector<int> kinds{1, 7, 6, 3, 9, 10, 11, 2, 16, 8, 22, 99};
    t.set_data_type(random_.chance(0.7) ? 7 : random_.pick(kinds));
    t.clear_dims(), t.clear_raw_data(), t.clear_int64_data(), t.clear_float_data(), t.clear_int32_data();
    const int count = random_.integer(0, 5);
    if (random_.chance(0.8)) t.add_dims(count);
    else
      for (int n = random_.integer(0, 4); n > 0; --n) t.add_dims(number());
    for (int i = 0; i < count; ++i) {
      if (t.data_type() == 7) t.add_int64_data(number());
      else if (t.data_type() == 1) t.add_float_data(static_cast<float>(number()));
      else t.add_int32_data(static_cast<int>(number() % 1000));
    }
  }
  void shape(onnx::ValueInfoProto& v) {
    auto& t = *v.mutable_type()->mutable_tensor_type();
    if (random_.chance(0.3)) t.set_elem_type(random_.integer(0, 18));
    if (random_.chance(0.05)) return t.clear_shape();
    auto& s = *t.mutable_shape();
    if (random_.chance(0.3) && s.dim_size() > 0) s.mutable_dim()->RemoveLast();
    if (random_.chance(0.3)) s.add_dim()->set_dim_value(random_.integer(1, 9));
    if (s.dim_size() == 0) return;
    auto& d = *s.mutable_dim(random_.integer(0, s.dim_size() - 1));
    if (random_.chance(0.2)) d.set_dim_param("n");
    else d.set_dim_value(number());
  }
  void attribute(onnx::NodeProto& n) {
    if (n.attribute_size() > 0 && random_.chance(0.3)) {
      n.mutable_attribute()->SwapElements(random_.integer(0, n.attribute_size() - 1), n.attribute_size() - 1);
      n.mutable_attribute()->RemoveLast();
      return;
    }
    auto& a = n.attribute_size() > 0 && random_.chance(0.6) ? *n.mutable_attribute(random_.integer(0, n.attribute_size() - 1))
                                                            : *n.add_attribute();
    if (a.name().empty() || random_.chance(0.2)) {
      // One that the operator has, as a rule.
      const onnx::OpSchema* s = onnx::OpSchemaRegistry::Schema(n.op_type(), 17, n.domain());
      std::vector<std::string> mine;
      std::vector<int> kinds;
      if (s != nullptr) {
        for (const auto& [key, value] : s->attributes()) mine.push_back(key), kinds.push_back(static_cast<int>(value.type));
      }
      if (!mine.empty() && random_.chance(0.8)) {
        const std::size_t i = random_.index(mine.size());
        a.set_name(mine[i]);
        a.set_type(static_cast<onnx::AttributeProto::AttributeType>(kinds[i]));
      } else {
        a.set_name(random_.pick(attributes_));
        a.set_type(static_cast<onnx::AttributeProto::AttributeType>(random_.integer(1, 8)));
      }
    }
    a.clear_i(), a.clear_ints(), a.clear_f(), a.clear_s(), a.clear_t(), a.clear_floats(), a.clear_strings();
    switch (a.type()) {
      case onnx::AttributeProto::FLOAT: a.set_f(static_cast<float>(number())); break;
      case onnx::AttributeProto::INT: a.set_i(number()); break;
      case onnx::AttributeProto::STRING: {
        static const std::vector<std::string> words{
            "",          "SAME_UPPER",   "VALID",           "NOTSET", "linear", "bidirectional", "reverse",
            "ij,jk->ik", "...ij->...ji", "ii->i",           "a,b",    "->",     "...,...->",     "i...,...j->ij",
            "DCR",       "\xff",         "bhqd,bhkd->bhqk", "a b c",  "....",   "ij..->"};
        a.set_s(random_.pick(words));
        break;
      }
      case onnx::AttributeProto::INTS:
        for (int k = random_.integer(0, 5); k > 0; --k) a.add_ints(number());
        break;
      case onnx::AttributeProto::FLOATS:
        for (int k = random_.integer(0, 5); k > 0; --k) a.add_floats(static_cast<float>(number()));
        break;
      case onnx::AttributeProto::STRINGS:
        for (int k = random_.integer(0, 3); k > 0; --k) a.add_strings("tanh");
        break;
      case onnx::AttributeProto::TENSOR: fill(*a.mutable_t()); break;
      default: break;
    }
  }
  void node(onnx::GraphProto& g) {
    if (g.node_size() == 0) return;
    auto& n = *g.mutable_node(random_.integer(0, g.node_size() - 1));
    switch (random_.integer(0, 9)) {
      case 0:
      case 1: n.set_op_type(random_.pick(types_)); break;
      case 2:
      case 3:
      case 4: attribute(n); break;
      case 5:
        if (n.input_size() > 0) n.set_input(random_.integer(0, n.input_size() - 1), name(g));
        break;
      case 6:
        if (n.input_size() > 0) n.mutable_input()->RemoveLast();
        break;
      case 7: n.add_input(name(g)); break;
      case 8: n.add_output(random_.chance(0.5) ? "more" + std::to_string(random_.integer(0, 99)) : ""); break;
      default:
        if (random_.chance(0.3)) n.set_domain(random_.chance(0.5) ? "com.microsoft" : random_.chance(0.5) ? "ai.onnx" : "ai.onnx.ml");
        else if (n.output_size() > 0) n.set_output(0, name(g));
    }
  }
  /// A node of any operator that reads what there is, in the middle of things.
  void insert(onnx::GraphProto& g) {
    const int number = random_.integer(0, 9999);
    auto& n = *g.add_node();
    n.set_op_type(random_.pick(types_));
    const onnx::OpSchema* s = onnx::OpSchemaRegistry::Schema(n.op_type(), 17, "");
    const int inputs = s == nullptr ? random_.integer(0, 4) : random_.integer(s->min_input(), std::min(8, s->max_input()));
    for (int i = 0; i < inputs; ++i) {
      if (random_.chance(0.35)) {
        auto& t = *g.add_initializer();
        t.set_name("constant" + std::to_string(number) + "." + std::to_string(i));
        fill(t);
        n.add_input(t.name());
      } else {
        n.add_input(name(g));
      }
    }
    const int outputs = s == nullptr ? 1 : random_.integer(std::max(1, s->min_output()), std::max(1, std::min(4, s->max_output())));
    for (int i = 0; i < outputs; ++i) n.add_output("out" + std::to_string(number) + "." + std::to_string(i));
    if (s != nullptr && s->domain() != "") n.set_domain(s->domain());
    for (int k = random_.integer(0, 3); k > 0; --k) attribute(n);
  }
  /// The graph, or one within it.
  onnx::GraphProto& any_graph(onnx::GraphProto& g) {
    std::vector<onnx::GraphProto*> all{&g};
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (auto& n : *all[i]->mutable_node()) {
        for (auto& a : *n.mutable_attribute()) {
          if (a.has_g()) all.push_back(a.mutable_g());
        }
      }
    }
    return random_.chance(0.5) ? g : *random_.pick(all);
  }
  void function(onnx::ModelProto& m) {
    auto& f = *m.mutable_functions(random_.integer(0, m.functions_size() - 1));
    onnx::GraphProto g;
    g.mutable_node()->Swap(f.mutable_node());
    if (random_.chance(0.7)) node(g);
    else insert(g);
    g.mutable_node()->Swap(f.mutable_node());
    if (random_.chance(0.2)) f.set_name(random_.chance(0.5) ? "Relu" : "Activation");
    if (random_.chance(0.2)) f.set_domain(random_.chance(0.5) ? "" : "own");
    if (random_.chance(0.2)) f.add_input(name(m.graph()));
    if (random_.chance(0.2)) f.add_output(name(m.graph()));
  }
  void change(onnx::ModelProto& m) {
    auto& g = any_graph(*m.mutable_graph());
    if (m.functions_size() > 0 && random_.chance(0.2)) return function(m);
    switch (random_.integer(0, 11)) {
      case 0:
        if (m.opset_import_size() > 0) m.mutable_opset_import(0)->set_version(random_.chance(0.9) ? random_.integer(1, 24) : number());
        break;
      case 1:
        if (g.input_size() > 0) shape(*g.mutable_input(random_.integer(0, g.input_size() - 1)));
        break;
      case 2:
        if (g.initializer_size() > 0) {
          auto& t = *g.mutable_initializer(random_.integer(0, g.initializer_size() - 1));
          if (random_.chance(0.5)) fill(t);
          else if (t.dims_size() > 0) t.set_dims(random_.integer(0, t.dims_size() - 1), number());
        }
        break;
      case 3:
        if (random_.chance(0.3)) m.set_ir_version(random_.integer(0, 9));
        break;
      case 4:
        if (g.node_size() > 1) g.mutable_node()->SwapElements(random_.integer(0, g.node_size() - 1), random_.integer(0, g.node_size() - 1));
        break;
      case 5:
        if (random_.chance(0.2)) g.add_output()->set_name(name(g));
        break;
      case 6:
      case 7:
      case 8: insert(g); break;
      default: node(g);
    }
  }

  test::random_source& random_;
  std::vector<std::string> types_, attributes_;
};

TEST_CASE("an ONNX file is read or refused whatever is in it, and what is read can be cut") {
  const std::uint64_t seed = test::first_seed();
  const char* asked = std::getenv("HETPLAN_FUZZ_MUTANTS");
  const long long mutants = asked != nullptr ? std::atoll(asked) : 100'000;
  test::random_source scramble(seed);  // streams of neighbouring seeds overlap
  test::random_source random(scramble.next());
  onnx_mutator damaged(random);
  std::vector<std::string> cheap{test::small_onnx().text(), test::sentence_onnx().text(), test::branching_onnx().text()}, dear;
  const std::filesystem::path folder = std::filesystem::path(HETPLAN_SHARED_DIR) / "data/onnx";
  if (std::filesystem::exists(folder)) {  // more to damage, not needed
    for (const char* name : {"light_squeezenet.onnx", "light_vgg19.onnx"}) dear.push_back(io::read_text((folder / name).string()));
    cheap.push_back(io::read_text((folder / "gpt2_one_layer.onnx").string()));
  }
  long long read = 0, refused = 0, cut = 0, uncut = 0;
  double longest = 0;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto start = now();
  const auto seconds = [&](auto since) { return std::chrono::duration<double>(now() - since).count(); };
  const auto check = [](const invalid_input& e) {
    const std::string_view what(e.what());
    if (!what.starts_with("mutant: ") || what.find('\n') != std::string_view::npos) FAIL("not one line about the file: " << what);
  };
  const bool keep = std::getenv("HETPLAN_FUZZ_KEEP") != nullptr;  // the mutant at hand, for one that ends the program
  for (long long i = 0; i < mutants; ++i) {
    const std::string& from = !dear.empty() && random.chance(0.01)
                                  ? random.pick(dear)
                                  : cheap[random.index(std::min<std::size_t>(cheap.size(), random.chance(0.9) ? 3 : 4))];
    const std::string text = damaged(from, random.pick(cheap));
    if (keep) io::write_atomically("mutant.onnx", text);
    exchange::onnx_options o;
    if (random.chance(0.95)) {
      onnx::ModelProto m;
      m.ParseFromString(text);
      for (const auto& input : m.graph().input()) {
        for (const auto& d : input.type().tensor_type().shape().dim()) {
          if (!d.dim_param().empty() && !d.has_dim_value()) o.dimensions[d.dim_param()] = random.integer(1, 6);
        }
      }
    }
    const auto begin = now();
    try {
      const exchange::onnx_model m = exchange::read_onnx(text, "mutant", o);
      ++read;
      plan p;
      for (const layer& l : m.graph.layers())
        p.stages.push_back({.name = l.name, .layers = {l.id}, .devices = {{device_id(random.index(2))}}});
      try {
        for (const exchange::onnx_part& part : exchange::cut_onnx(text, "mutant", o, m, p)) {
          onnx::ModelProto again;
          if (!again.ParseFromString(part.text)) FAIL("a part is no ONNX file");
        }
        ++cut;
      } catch (const invalid_input& e) {
        check(e);
        ++uncut;
      }
    } catch (const invalid_input& e) {
      check(e);
      ++refused;
    } catch (const std::exception& e) {
      io::write_atomically("mutant.onnx", text);
      FAIL("another exception (mutant.onnx): " << e.what());
    }
    longest = std::max(longest, seconds(begin));
  }
  std::cout << "fuzz_onnx: seed " << seed << ", " << mutants << " files, " << read << " read, " << refused << " refused, " << cut
            << " cut, " << uncut << " refused as parts, " << seconds(start) << " s, at most " << longest << " s" << std::endl;
  CHECK(read > mutants / 20);
  CHECK(cut > mutants / 50);
  CHECK(refused > mutants / 20);
  CHECK(longest < 2);
}

}  // namespace test_fuzz_onnx

#endif
