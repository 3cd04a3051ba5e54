// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/ncnn_param.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_ncnn_param {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
namespace fs = std::filesystem;

namespace {

// A stem, two ways that meet, a depthwise convolution, and a classifier.
const std::string net =
    "7767517\n"
    "9 10\n"
    "Input                data      0 1 data 0=32 1=16 2=3\n"
    "Convolution          stem      1 1 data a 0=8 1=3 3=2 4=1 5=1 6=216 9=1\n"
    "Split                split     1 2 a a0 a1\n"
    "ConvolutionDepthWise deep      1 1 a0 b 0=8 1=3 11=1 4=1 14=0 6=24 7=8\n"
    "\n"
    "MemoryData           scale     0 1 s 0=8\n"
    "BinaryOp             add       2 1 b a1 c 0=0\n"
    "BinaryOp             times     2 1 c s d 0=2\r\n"
    "Pooling              pool      1 1 d e 0=1 4=1\n"
    "InnerProduct         fc        1 1 e out 0=10 1=1 2=80 8=1\n";

exchange::ncnn_model read(const std::string& text, const exchange::ncnn_options& o = {}) { return exchange::read_ncnn(text, "f.param", o); }
const layer& named(const planning_graph& g, const std::string& name) { return g[g.find(name)]; }

/// A network of one operator.
std::string one(const std::string& input, const std::string& line, int inputs = 1) {
  return "7767517\n" + std::to_string(inputs + 1) + " 9\n" + input + line;
}
std::string sized(const std::string& blob, const std::string& sizes) { return "Input in_" + blob + " 0 1 " + blob + " " + sizes + "\n"; }
/// Elements that an operator gives, by what it keeps.
double given(const std::string& text) { return read(text).graph.layers().back().activation.value() / 4; }

}  // namespace

TEST_CASE("a network of ncnn is read with FLOP, weights and edges worked out by hand") {
  const exchange::ncnn_model m = read(net);
  const planning_graph& g = m.graph;
  CHECK(m.unknown.empty());
  CHECK(m.assumed.empty());
  CHECK(g.name() == "f");
  REQUIRE(g.size() == 6);
  const layer& stem = named(g, "stem");  // 32 x 16 becomes 16 x 8
  CHECK(stem.kind == "Convolution");
  CHECK(stem.forward_flops == flops(2.0 * 216 * 128));
  CHECK(stem.weight == bytes(4 * (216 + 8)));
  CHECK(stem.rows == 128);
  CHECK(stem.traffic == bytes(4 * (3 * 512 + 8 * 128)));
  const layer& deep = named(g, "deep");  // a window of 3 x 1
  CHECK(deep.forward_flops == flops(2.0 * 24 * 128));
  CHECK(named(g, "add").forward_flops == flops(0));
  CHECK(named(g, "add").traffic == bytes(4.0 * 3 * 1024));
  CHECK(named(g, "times").weight == bytes(32));
  CHECK(named(g, "pool").activation == bytes(32));
  const layer& fc = named(g, "fc");
  CHECK(fc.forward_flops == flops(160));
  CHECK(fc.weight == bytes(80 + 40));  // int8 weights, fp32 bias
  REQUIRE(g.edges().size() == 6);
  std::map<std::pair<std::string, std::string>, double> edges;
  for (const layer_edge& e : g.edges()) edges[{g[e.from].name, g[e.to].name}] = e.forward.value();
  CHECK(edges.at({"stem", "deep"}) == 4096);
  CHECK(edges.at({"stem", "add"}) == 4096);
  CHECK(edges.at({"pool", "fc"}) == 32);
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
  CHECK(read(net, {.shapes = {}, .tokens_per_sample = 1, .element_bytes = 2}).graph[layer_id(0)].weight == bytes(2 * 224));
}

TEST_CASE("shapes of ncnn's operators") {
  const std::string picture = sized("x", "0=10 1=6 2=4"), matrix = sized("x", "0=10 1=6"), line = sized("x", "0=10");
  const auto of = [](const std::string& input, const std::string& operation) { return given(one(input, operation)); };
  CHECK(of(picture, "Pooling p 1 1 x y 1=3 2=2") == 5 * 3 * 4);          // full: the last window may hang over
  CHECK(of(picture, "Pooling p 1 1 x y 1=3 2=2 5=1") == 4 * 2 * 4);      // valid
  CHECK(of(picture, "Pooling p 1 1 x y 1=3 2=2 5=2") == 5 * 3 * 4);      // same
  CHECK(of(picture, "Pooling p 1 1 x y 7=1 8=3 18=-233") == 3 * 6 * 4);  // adaptive
  CHECK(of(picture, "Convolution c 1 1 x y 0=7 1=3 2=2 6=252") == 6 * 2 * 7);
  CHECK(of(picture, "Convolution c 1 1 x y 0=7 1=3 3=2 4=-233 6=252") == 5 * 3 * 7);
  CHECK(of(line, "Convolution c 1 1 x y 0=7 1=1 6=70") == 7);
  CHECK(of(matrix, "Convolution1D c 1 1 x y 0=7 1=3 6=126") == 7 * 8);
  CHECK(of(picture, "Deconvolution c 1 1 x y 0=2 1=4 3=2 4=1 6=128") == 20 * 12 * 2);
  CHECK(of(picture, "Deconvolution c 1 1 x y 0=2 1=3 3=2 18=1 6=72") == 22 * 14 * 2);
  CHECK(of(matrix, "InnerProduct i 1 1 x y 0=3 2=30") == 18);
  CHECK(of(matrix, "InnerProduct i 1 1 x y 0=3 2=180") == 3);
  CHECK(of(picture, "Crop c 1 1 x y -23309=2,1,2 -23310=2,3,-233 -23311=2,0,2") == 2 * 6 * 8);
  CHECK(of(picture, "Crop c 1 1 x y 0=1 1=2 2=0 3=5 4=-233 5=-233") == 5 * 4 * 4);
  CHECK(of(picture, "Interp i 1 1 x y 0=1 1=2.0 2=1.5") == 15 * 12 * 4);
  CHECK(of(picture, "Interp i 1 1 x y 0=2 3=7 4=9") == 9 * 7 * 4);
  CHECK(of(picture, "Padding p 1 1 x y 0=1 1=2 2=3 3=4 7=0 8=1") == 17 * 9 * 5);
  CHECK(of(picture, "Reduction r 1 1 x y 0=3 1=0 -23303=2,1,-1 4=0") == 4);
  CHECK(of(picture, "Tile t 1 1 x y -23302=3,2,1,3") == 720 * 2);
  CHECK(of(picture, "Tile t 1 1 x y 0=1 1=5") == 240 * 5);
  CHECK(of(picture, "PixelShuffle p 1 1 x y 0=2") == 240);
  CHECK(of(picture, "GLU g 1 1 x y 0=0") == 120);
  CHECK(of(matrix, "LSTM l 1 1 x y 0=3 1=240 2=2") == 36);
  // Views keep nothing; what reads them tells their shapes.
  const auto through = [](const std::string& view, const std::string& reader) {
    return given("7767517\n3 3\n" + sized("x", "0=10 1=6 2=4") + view + "\n" + reader);
  };
  CHECK(through("Reshape r 1 1 x y 0=5 1=-1", "Reduction r2 1 1 y z 1=0 -23303=1,0") == 5);
  CHECK(through("Reshape r 1 1 x y 0=0 1=-1", "Reduction r2 1 1 y z 1=0 -23303=1,0") == 10);
  CHECK(through("Reshape r 1 1 x y 0=12 1=-1 11=2 2=5", "Reduction r2 1 1 y z 1=0 -23303=2,0,1") == 24);
  CHECK(through("Permute p 1 1 x y 0=4", "Reduction r2 1 1 y z 1=0 -23303=1,0") == 24);  // h c w: w is outermost
  CHECK(through("Permute p 1 1 x y 0=3", "Reduction r2 1 1 y z 1=0 -23303=2,0,1") == 4);
  CHECK(through("ExpandDims e 1 1 x y -23303=1,1", "Reduction r2 1 1 y z 1=0 -23303=3,0,1,2") == 10);
  CHECK(through("Flatten f 1 1 x y", "InnerProduct i 1 1 y z 0=3 2=720") == 3);
  CHECK(through("Squeeze s 1 1 x y 2=1", "Reduction r2 1 1 y z 1=0 -23303=1,0") == 60);
}

TEST_CASE("products of ncnn: two FLOP a multiply-add") {
  const auto flop = [](const std::string& text) { return read(text).graph.layers().back().forward_flops.value(); };
  const std::string matrix = sized("x", "0=10 1=6");
  CHECK(flop(one(matrix, "Gemm g 1 1 x y 3=1 5=1 6=1 8=7 9=10 10=4")) == 2 * 6 * 7 * 10);
  CHECK(read(one(matrix, "Gemm g 1 1 x y 3=1 5=1 6=1 8=7 9=10 10=4")).graph[layer_id(0)].weight == bytes(4 * 77));
  CHECK(flop(one(matrix + sized("z", "0=10 1=9"), "Gemm g 2 1 x z y 3=1", 2)) == 2 * 6 * 9 * 10);
  CHECK(flop(one(sized("x", "0=10 1=6 2=4") + sized("z", "0=7 1=10 2=4"), "MatMul g 2 1 x z y", 2)) == 2 * 4 * 6 * 7 * 10);
  CHECK(flop(one(matrix, "LSTM l 1 1 x y 0=3 1=120")) == 2 * 6 * (120 + 36));
  CHECK(flop(one(matrix, "GRU l 1 1 x y 0=3 1=180 2=2")) == 2 * 6 * (180 + 2 * 27));
  CHECK(flop(one(matrix, "MultiHeadAttention m 1 1 x y 0=10 1=2 2=100")) == 2 * (4 * 100 * 6 + 2 * 36 * 10));
  const std::string heads = sized("q", "0=8 1=6 2=4") + sized("k", "0=8 1=6 2=4") + sized("v", "0=8 1=6 2=4");
  CHECK(flop(one(heads, "SDPA s 3 1 q k v y", 3)) == 2 * 4 * 36 * 16);
  const std::string embedding = one(sized("x", "0=5"), "Embed e 1 1 x y 0=16 1=100 3=1600");
  CHECK(flop(embedding) == 0);
  CHECK(read(embedding).graph[layer_id(0)].weight_traffic == bytes(4 * 80));
}

TEST_CASE("a language model of ncnn: its tokens, its causal attention, its cache") {
  // Width 8, two heads of 4; the cache has both.
  const std::string decoder =
      "7767517\n10 20\n"
      "Input in0 0 1 in0\n"
      "Input kv 0 2 ck cv\n"
      "Split s 1 2 in0 a b\n"
      "RMSNorm norm 1 1 a n 0=8 2=1\n"
      "Gemm up 1 1 n u 2=0 3=1 5=1 6=1 8=8 9=8 10=-1\n"
      "Reshape r 1 1 u w 0=4 1=2 2=-1\n"
      "Permute p 1 1 w q 0=2\n"
      "Split qkv 1 3 q q0 q1 q2\n"
      "SDPA sdpa 5 3 q0 q1 q2 ck cv o ok ov 7=1\n"
      "BinaryOp add 2 1 u b z\n";
  const exchange::ncnn_model m = read(decoder, {.shapes = {}, .tokens_per_sample = 6, .element_bytes = 4});
  CHECK(m.assumed == std::map<std::string, std::vector<long long>>{{"in0", {8, 6}}});
  CHECK(m.graph.tokens_per_sample() == 6);
  CHECK(named(m.graph, "up").forward_flops == flops(2 * 6 * 64));
  CHECK(named(m.graph, "up").rows == 6);
  const layer& sdpa = named(m.graph, "sdpa");
  CHECK(sdpa.sequence.attention_flops == flops(2 * 2 * 8));
  CHECK(sdpa.sequence.attention == attention_kind::causal);
  CHECK(sdpa.forward_flops == flops(2 * 2 * 8 * 21));
  CHECK(sdpa.kv_bytes_per_token == bytes(4 * 16));
  const std::string unknown = "7767517\n2 2\nInput in0 0 1 in0\nConvolution c 1 1 in0 y 0=1 1=1 6=1\n";
  CHECK(message_of([&] { return read(unknown); }) ==
        "f.param: line 4: Convolution \"c\": expected a known shape of input \"in0\"; state the sizes of the network's inputs, such as "
        "in0=WIDTHxHEIGHT");
  CHECK(named(read(unknown, {.shapes = {{"in0", {5, 4, 1}}}}).graph, "c").forward_flops == flops(40));
}

TEST_CASE("what ncnn's reader does not know is named, and takes the file's own hint of a shape") {
  const std::string text = "7767517\n4 4\n" + sized("x", "0=4 1=4 2=2") +
                           "MyLayer m 1 1 x a -23330=4,3,2,2,8 0=hello\nMyLayer n 1 1 a b\nConvolution c 1 1 a y 0=1 1=1 6=8\n";
  const exchange::ncnn_model m = read(text);
  CHECK(m.unknown == std::map<std::string, std::size_t>{{"MyLayer", 2}});
  CHECK(named(m.graph, "c").forward_flops == flops(2 * 8 * 4));
}

TEST_CASE("an operator of no work behind those that the file counts is no error: ncnn's own nanodet_m.param has one") {
  CHECK(read(net + "Noop Output 1 1 out last\n").graph.size() == 6);
}

TEST_CASE("bad networks of ncnn are refused with line and operator") {
  check_refusals(
      net, [](const std::string& t) { return read(t); }, "f.param: ", R"(
    7767517 => 7767518 => line 1: expected the magic number 7767517 of ncnn, got "7767518"
    9 10 => 9 => line 2: expected the counts of layers and blobs
    9 10 => 10 10 => line 2: expected 10 layers as the file says, got 9; is the file complete?
    9 10 => 8 10 => line 2: expected 8 layers as the file says, got 9; is the file complete?
    9 10 => 9.5 10 => line 2: expected the count of layers, an integer of 1 to 1000000, got "9.5"
    1 1 data a => 1 1 date a => line 4: Convolution "stem": expected a blob that an earlier layer gives, got "date"
    1 1 data a => 1 9 data a => line 4: Convolution "stem": expected the names of 10 blobs, got 9 words
    1 1 data a => x 1 data a => line 4: expected the count of inputs, an integer of 0 to 1000000, got "x"
    a0 b => a0 a1 => line 6: ConvolutionDepthWise "deep": expected every blob from one layer, got "a1" again
    3=2 4=1 5=1 => 3=0 4=1 5=1 => line 4: Convolution "stem": parameter 3: expected an integer >= 1, got 0
    3=2 4=1 5=1 => 3=2.5 4=1 5=1 => line 4: Convolution "stem": parameter 3: expected an integer, got 2.5
    1=3 3=2 => 1=99 3=2 => line 4: Convolution "stem": expected sizes >= 1 of what it gives, got 0
    9=1 => 9=1 9=1 => line 4: Convolution "stem": expected every parameter once, got 9 again
    9=1 => -23309=3,1,2 => line 4: Convolution "stem": expected an array as COUNT,NUMBER,..., got "-23309=3,1,2"
    0=32 1=16 2=3 => 0=999999999 1=999999999 2=3 => line 3: Input "data": expected tensors of at most 1e15 elements, got ...
    2=80 => 2=-80 => line 12: InnerProduct "fc": parameter 2: expected an integer >= 0, got -80
    BinaryOp             add => BinaryOp             deep => ..."deep"...
  )");
  CHECK(message_of([&] { return read("7767517\n1 1\nInput x 0 1 x 0=3\n"); }) ==
        "f.param: expected at least one operator besides inputs, got none");
  CHECK(message_of([&] {
          return read(net, {.shapes = {{"nothing", {1}}}});
        }) == "f.param: expected sizes of inputs, got some for \"nothing\"");
  for (std::size_t length = 0; length < net.size(); length += 7) {
    INFO(length);
    const std::string said = message_of([&] { return read(net.substr(0, length)); });
    CHECK((said.starts_with("f.param: ") || length > net.size() - 30));
  }
}

TEST_CASE("ncnn's own benchmark networks: published FLOP and parameters, and the shapes that their files state") {
  const auto there = test::shared_data("data/ncnn/benchmark/models");
  if (!there) return;
  std::size_t files = 0, hints = 0;
  for (const auto& entry : fs::recursive_directory_iterator(*there)) {
    if (entry.path().extension() != ".param") continue;
    INFO(entry.path().filename().string());
    const std::string text = io::read_text(entry.path().string());
    exchange::ncnn_options o;
    o.tokens_per_sample = entry.path().string().find("/llm/") != std::string::npos ? 16 : 1;
    if (entry.path().filename() == "FastestDet.param") o.shapes["in0"] = {352, 352, 3};
    if (entry.path().filename() == "vision_transformer.param") o.shapes["input"] = {384, 384, 3};
    exchange::ncnn_model m = exchange::read_ncnn(text, entry.path().string(), o);
    CHECK(m.unknown.empty());
    ++files;
    // Hints: dimensions, w, h, c of each output.
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find("-23330=4,");
      std::istringstream words(line);
      std::string type, name;
      words >> type >> name;
      if (at == std::string::npos || !m.graph.contains(name)) continue;
      long long dims = 0, w = 0, h = 0, c = 0;
      REQUIRE(std::sscanf(line.c_str() + at, "-23330=4,%lld,%lld,%lld,%lld", &dims, &w, &h, &c) == 4);
      const layer& l = named(m.graph, name);
      if (l.activation.value() == 0) continue;  // a view
      INFO(line);
      CHECK(l.activation.value() == 4.0 * static_cast<double>(w * h * c));
      ++hints;
    }
  }
  CHECK(files >= 45);
  CHECK(hints > 1500);
  const auto of = [&](const std::string& name, int tokens = 1) {
    const std::string path = (*there / (name + ".param")).string();
    return exchange::read_ncnn(io::read_text(path), path, {.shapes = {}, .tokens_per_sample = tokens, .element_bytes = 4}).graph;
  };
  // Multiply-adds and parameters as published (classifiers of 1000 classes).
  const auto check = [&](const std::string& name, double multiply_adds, double parameters, double within) {
    const planning_graph g = of(name);
    INFO(name << ": " << g.forward_flops().value() / 2 << " " << g.parameters());
    CHECK(std::abs(g.forward_flops().value() / 2 / multiply_adds - 1) < within);
    CHECK(std::abs(g.parameters() / parameters - 1) < within);
  };
  check("vgg16", 15.47e9, 138.36e6, 0.001);
  check("mobilenet", 0.5687e9, 4.232e6, 0.01);
  // Its first block expands 32 channels to 32, the published one does not.
  check("mobilenet_v2", 0.3008e9 + 1024.0 * 112 * 112, 3.505e6, 0.01);
  check("alexnet", 0.7137e9, 60.97e6, 0.02);
  check("resnet50", 3.86e9, 25.53e6, 0.01);
  // By the sizes in the file: 227 x 227, and its last convolution pads; the published net has 0.349e9.
  check("squeezenet", 418467520, 1.2355e6, 0.001);
  // Decoders: parameters less those of embedding and head.
  const auto decoder = [&](const std::string& name, double parameters) {
    const planning_graph g = of("llm/" + name + "_decoder.ncnn", 16);
    INFO(name << ": " << g.parameters());
    CHECK(std::abs(g.parameters() / parameters - 1) < 0.001);
  };
  decoder("tinyllama_1.1b", 1100.05e6 - 2 * 32000 * 2048.0);
  decoder("qwen3_0.6b", 596.05e6 - 151936 * 1024.0);
  decoder("llama3.2_1b", 1235.81e6 - 128256 * 2048.0);
  CHECK(of("llm/tinyllama_1.1b_proj_out.ncnn", 1).parameters() == 32000 * 2048);
}

}  // namespace test_ncnn_param
