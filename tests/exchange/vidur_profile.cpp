// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/vidur_profile.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_vidur_profile {

using namespace hetplan;
using Catch::Matchers::Contains;
using test::message_of;
using test::near;
using test::with;

namespace {

const std::vector<std::string> parts{"input_layernorm", "attn_pre_proj", "attn_rope",     "attn_post_proj",
                                     "mlp_up_proj",     "mlp_act",       "mlp_down_proj", "add"};

/// Returns a table in vidur's format with one median for all parts of a row; the norm after attention is optional.
std::string compute_table(const std::vector<std::pair<int, double>>& rows, bool norm = true, int degree = 1) {
  std::string text = "time_stats.emb.median";
  for (const auto& p : parts) text += ",time_stats." + p + ".min,time_stats." + p + ".median";
  if (norm) text += ",time_stats.post_attention_layernorm.median";
  text += ",n_head,n_kv_head,n_embd,n_expanded_embd,vocab_size,use_gated_mlp,num_tokens,num_tensor_parallel_workers\n";
  for (const auto& [tokens, ms] : rows) {
    text += "99";
    for (std::size_t i = 0; i < parts.size(); ++i) text += ",0," + std::to_string(ms);
    if (norm) text += "," + std::to_string(ms);
    text += ",2,2,100,400,1000,True," + std::to_string(tokens) + "," + std::to_string(degree) + "\n";
  }
  return text;
}
const std::string all_reduce =
    ",time_stats.all_reduce.median,rank,num_workers,size,collective,devices_per_node,max_devices_per_node\n"
    "0,1,0,2,200,all_reduce,2,4\n1,3,0,2,800,all_reduce,2,4\n2,5,0,2,800,all_reduce,2,4\n3,9,0,2,800,all_reduce,1,4\n";

exchange::vidur_compute compute(const std::string& text) { return exchange::parse_vidur_compute(text, "mlp.csv"); }
exchange::vidur_network network(const std::string& text) { return exchange::parse_vidur_network(text, "net.csv"); }
std::string compute_error(const std::string& text) {
  return message_of([&] { return compute(text); });
}
std::string network_error(const std::string& text) {
  return message_of([&] { return network(text); });
}

std::string decompressed(const std::filesystem::path& file) {
  std::string text;
  std::FILE* pipe = popen(("xz -dc '" + file.string() + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::vector<char> piece(1 << 16);
  for (std::size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), got);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("a layer is the sum of its parts without the embedding, and rows of one size count by their mean") {
  const auto c = compute(compute_table({{8, 3}, {1, 1}, {8, 5}}));
  CHECK(c.hidden == 100);
  REQUIRE(c.layer.size() == 1);
  CHECK(c.layer.at(1).batch == std::vector<int>{1, 8});
  CHECK(c.layer.at(1).seconds_at[0] == near(0.009));
  CHECK(c.layer.at(1).seconds_at[1] == near(0.036));
  CHECK(compute(compute_table({{1, 1}}, false)).layer.at(1).seconds_at[0] == near(0.008));
}

TEST_CASE("times of a model are those of its layers: steps as measured, passes on a line") {
  // 1 + n ms in each of 9 parts: exactly linear.
  const auto c = compute(compute_table({{1, 2}, {2, 3}, {4, 5}, {16, 17}}));
  const auto t = exchange::vidur_times(c, {.layers = 10, .largest_batch = 8});
  CHECK(t.pass.batch == std::vector<int>{1, 8});
  CHECK(t.pass.seconds_at[0] == near(0.09));
  CHECK(t.pass.seconds_at[1] == t.pass.seconds_at[0]);
  CHECK(t.per_token_s == near(0.09));
  CHECK(t.step.batch == std::vector<int>{1, 2, 4, 8});
  for (std::size_t i = 0; i < 4; ++i) CHECK(t.step.seconds_at[i] == near(0.09 * (1 + t.step.batch[i])));
  CHECK_NOTHROW(serve::service_time_table({{t}}));
  CHECK(exchange::vidur_times(c, {.layers = 10}).pass.batch == std::vector<int>{1});
}

TEST_CASE("a time that falls in the noise is the largest so far") {
  const auto t = exchange::vidur_times(compute(compute_table({{1, 3}, {2, 2}, {4, 5}})), {.largest_batch = 4});
  CHECK(t.step.seconds_at == std::vector<double>{t.step.seconds_at[0], t.step.seconds_at[0], t.step.seconds_at[2]});
  CHECK_NOTHROW(serve::service_time_table({{t}}));
}

TEST_CASE("with tensor parallelism each layer has two all-reduces of two bytes a number") {
  const auto n = network(all_reduce);
  CHECK(n.collective == "all_reduce");
  REQUIRE(n.times.size() == 2);
  CHECK(n.times.at({2, 2}).at(800) == near(0.004));
  const auto c = compute(compute_table({{1, 1}, {2, 1}, {4, 1}}, true, 2));
  const auto t = exchange::vidur_times(c, {.layers = 10, .tensor_parallel = 2, .largest_batch = 4}, &n);
  CHECK(t.step.seconds_at[0] == near(10 * (0.009 + 2 * 0.001)));  // 200 bytes
  CHECK(t.step.seconds_at[1] == near(10 * (0.009 + 2 * 0.002)));  // 400 bytes: a third of the way to 800
  CHECK(t.step.seconds_at[2] == near(10 * (0.009 + 2 * 0.004)));
}

TEST_CASE("send and receive times are read, too") {
  const auto n = network(
      "num_workers,devices_per_node,size,collective,time_stats.send_recv.median\n2,1,2048,send_recv,0.5\n2,1,4096,send_recv,0.75\n");
  CHECK(n.collective == "send_recv");
  CHECK(n.times.at({2, 1}).at(4096) == near(0.00075));
}

TEST_CASE("a table of vidur that is wrong ends in one sentence with its line") {
  const auto table = compute_table({{1, 1}, {8, 3}});
  CHECK_THAT(compute_error(std::string("\xFD\x37zXZ") + '\0'), Contains("mlp.csv: expected text, got what xz has compressed"));
  CHECK_THAT(compute_error(with(table, "mlp_act.median", "mlp_act.mean")), Contains("line 1") && Contains("time_stats.mlp_act.median"));
  CHECK_THAT(compute_error(table.substr(0, table.size() - 9)), Contains("mlp.csv: line 3: expected 26 fields"));
  CHECK_THAT(compute_error(with(table, "1.000000", "-1")),
             Contains("mlp.csv: line 2: time_stats.input_layernorm.median: expected ms >= 0"));
  CHECK_THAT(compute_error(with(table, "3.000000", "")), Contains("mlp.csv: line 3") && Contains("ms >= 0"));
  CHECK_THAT(compute_error(compute_table({{0, 1}})), Contains("num_tokens: expected a whole number from 1"));
  CHECK_THAT(compute_error(compute_table({{1, 0}})), Contains("take time together"));
  CHECK_THAT(compute_error(with(table, ",100,400", ",200,400")), Contains("mlp.csv: line 3: n_embd: expected \"200\" as in the first row"));
  CHECK_THAT(compute_error(compute_table({})), Contains("got none"));

  CHECK_THAT(network_error(with(all_reduce, "all_reduce,1", "all_gather,1")), Contains("line 5: collective: expected \"all_reduce\""));
  CHECK_THAT(network_error("num_workers,devices_per_node,size,collective\n2,2,1,all_gather\n"), Contains("all_reduce or send_recv"));
  CHECK_THAT(network_error("num_workers,devices_per_node,size,collective\n2,2,1,all_reduce\n"), Contains("all_reduce.median: expected ms"));
  CHECK_THAT(network_error("num_workers,devices_per_node,size,collective\n"), Contains("got none"));
}

TEST_CASE("a setting that was not measured is refused") {
  const auto c = compute(compute_table({{1, 1}, {8, 3}}, true, 2));
  const auto n = network(all_reduce);
  const auto refused = [](const exchange::vidur_compute& what, const exchange::vidur_setting& s, const exchange::vidur_network* net) {
    return message_of([&] { return exchange::vidur_times(what, s, net); });
  };
  CHECK_THAT(refused(c, {}, nullptr), Contains("a degree of tensor parallelism that was measured, got 1"));
  CHECK_THAT(refused(c, {.layers = 0}, nullptr), Contains("at least 1, got 0, 1 and 1"));
  CHECK_THAT(refused(c, {.tensor_parallel = 2}, nullptr), Contains("all-reduces of 2 workers in one node"));
  CHECK_THAT(refused(c, {.tensor_parallel = 2}, &n), Contains("net.csv") && Contains("up to 1600 bytes, got 800"));
  CHECK_THAT(refused(c, {.tensor_parallel = 2, .largest_batch = 9}, &n), Contains("times of 1 to 9 tokens, got 1 to 8"));
  const auto late = compute(compute_table({{2, 1}, {8, 3}}));
  CHECK_THAT(refused(late, {}, nullptr), Contains("got 2 to 8"));
  CHECK_THAT(refused(compute(compute_table({{1, 1}, {8, 900}})), {}, nullptr), Contains("near to a line"));
}

TEST_CASE("vidur's tables of the collection have the sums that were made apart, and lines as near as is said") {
  const auto folder = test::shared_data("data/vidur");
  if (!folder) return;
  struct known {
    std::string place;
    int hidden, degrees;
    double sum_s;
  };
  for (const auto& k : {known{"a40-meta-llama/Llama-2-7b-hf", 4096, 4, 2.8893255},
                        known{"a40-meta-llama/Llama-2-70b-hf", 8192, 4, 11.04850825}, known{"a40-microsoft/phi-2", 2560, 1, 0.60268975}}) {
    CAPTURE(k.place);
    const auto file = *folder / "compute" / k.place / "mlp.csv.xz";
    CHECK_THAT(message_of([&] { return exchange::read_vidur_compute(file.string()); }), Contains("xz has compressed"));
    const auto c = compute(decompressed(file));
    CHECK(c.hidden == k.hidden);
    REQUIRE(c.layer.size() == static_cast<std::size_t>(k.degrees));
    double sum_s = 0;
    for (const auto& [degree, curve] : c.layer) {
      REQUIRE(curve.batch.size() == 259);
      for (const double t : curve.seconds_at) sum_s += t;
    }
    CHECK(sum_s == Approx(k.sum_s).epsilon(1e-12));

    const auto t = exchange::vidur_times(c, {.layers = 32, .largest_batch = 256});
    CHECK_NOTHROW(serve::service_time_table({{t}}));
    const auto& curve = c.layer.at(1);
    double squares = 0, worst = 0;
    for (std::size_t i = 0; i < curve.batch.size(); ++i) {
      const double error = (t.pass.at(1) + t.per_token_s * curve.batch[i]) / (32 * curve.seconds_at[i]) - 1;
      squares += error * error;
      worst = std::max(worst, std::abs(error));
    }
    const double rms = std::sqrt(squares / static_cast<double>(curve.batch.size()));
    CHECK(rms > 0.05);
    CHECK(rms < 0.09);
    CHECK(worst < 0.37);
  }
  // Llama 2 7B has 6.48e9 weights of 2 bytes in its layers. At an A40's 696 GB/s, a token takes at least 18.6 ms.
  const auto seven =
      exchange::vidur_times(compute(decompressed(*folder / "compute/a40-meta-llama/Llama-2-7b-hf/mlp.csv.xz")), {.layers = 32});
  CHECK(seven.step.seconds_at[0] > 0.0186);
  CHECK(seven.step.seconds_at[0] < 0.03);

  const auto n = network(decompressed(*folder / "network" / "a100_dgx" / "all_reduce.csv.xz"));
  CHECK(n.times.size() == 7);
  double sum_s = 0;
  for (const auto& [workers, times] : n.times) {
    for (const auto& [size, time] : times) sum_s += time;
  }
  CHECK(sum_s == Approx(13.66065).epsilon(1e-12));
  const auto large = compute(decompressed(*folder / "compute/a40-meta-llama/Llama-2-70b-hf/mlp.csv.xz"));
  CHECK_NOTHROW(exchange::vidur_times(large, {.layers = 80, .tensor_parallel = 4, .largest_batch = 64}, &n));
}

}  // namespace test_vidur_profile
