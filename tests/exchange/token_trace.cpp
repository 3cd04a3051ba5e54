// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/requests_file.hpp>

#include "io/reading.hpp"
#include "support/shared_data.hpp"

namespace test_token_trace {

using namespace hetplan;
using Catch::Matchers::Contains;
using exchange::token_arrival;
using serve::request;
using serve::server_id;
using serve::service;
using serve::service_id;
using test::message_of;
using test::with;

namespace {

const std::string azure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 23:59:59.9000000,4808,10\r\n"
    "2023-11-16 23:59:59.9520000,3180,8\r\n"
    "2023-11-17 00:00:01.4,0,27";
const std::string burstgpt =
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,0,1087,Conversation log\n"
    "45,\"GPT-4\",417,276,693,API log\n"
    "118.5,ChatGPT,30,3,33,API log\n";
const std::string mooncake = R"({"timestamp": 27000, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]})"
                             "\n"
                             R"({"timestamp": 27482, "input_length": 6472, "output_length": 0, "hash_ids": []})"
                             "\r\n\n"
                             R"({"output_length": 26, "timestamp": 30535, "input_length": 1})"
                             "\n";

exchange::token_trace read(const std::string& text) { return exchange::parse_token_trace(text, "trace"); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}

serve::edge_cloud three_servers() {
  serve::edge_cloud c{.name = "street", .servers = {}, .ring = {.period = 100_ms}};
  for (const char* name : {"a", "b", "c"}) c.servers.push_back({.name = name, .uplink = 1_GB_per_s, .downlink = 1_GB_per_s});
  return c;
}
service text_service(const std::string& name) { return {.name = name, .latency = 9_s, .generates = true, .tokens = {20, 8}}; }
const std::vector<service> one_text{{.name = "image", .latency = 1_s}, text_service("chat")};

}  // namespace

TEST_CASE("Azure's trace: times from its first request on, past midnight, with or without a final line end") {
  const auto t = read(azure);
  CHECK(t.arrivals == std::vector<token_arrival>{{0, 4808, 10}, {0.052, 3180, 8}, {1.5, 0, 27}});
  CHECK(t.models.empty());
  CHECK(t.skipped == 0);
  CHECK(t.file == "trace");
  CHECK(read("\xEF\xBB\xBF" + azure + "\r\n").arrivals == t.arrivals);
}

TEST_CASE("a time may have a zone, and its day may be any that there is") {
  const auto at = [](const std::string& time) {
    return read("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-28 23:00:00,1,1\n" + time + ",1,1\n").arrivals[1].at_s;
  };
  CHECK(at("2024-02-28 23:00:00") == 0);
  CHECK(at("2024-02-28T23:00:00.000000001") == 1e-9);
  CHECK(at("2024-02-29 23:00:00Z") == 86400);
  CHECK(at("2024-03-01 00:00:00.25+00:00") == 90000.25);
  CHECK(at("2024-02-29 00:00:00-01:30") == 3600 + 5400);
}

TEST_CASE("BurstGPT's trace: models by name, requests without an answer counted and left out, newer columns let be") {
  const auto t = read(burstgpt);
  CHECK(t.models == std::vector<std::string>{"ChatGPT", "GPT-4"});
  CHECK(t.skipped == 1);
  CHECK(t.arrivals == std::vector<token_arrival>{{0, 472, 18, 0}, {40, 417, 276, 1}, {113.5, 30, 3, 0}});
  const auto newer = read(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n"
      "19440161.0,,2,ChatGPT,36,29,65,API log\n");
  CHECK(newer.arrivals == std::vector<token_arrival>{{0, 906, 446, 0}, {51, 36, 29, 1}});
}

TEST_CASE("Mooncake's trace: milliseconds, keys in any order") {
  const auto t = read(mooncake);
  CHECK(t.skipped == 1);
  CHECK(t.arrivals == std::vector<token_arrival>{{0, 6955, 52}, {3.535, 1, 26}});
  CHECK(read("\xEF\xBB\xBF" + mooncake).arrivals == t.arrivals);
}

TEST_CASE("a trace that is wrong ends in one sentence with its line") {
  CHECK_THAT(error(azure + "\r\n2023-11-17 00:0"), Contains("trace: line 5: expected 3 fields") && Contains("got 1"));
  CHECK_THAT(error(with(azure, "3180,8", "3180,-8")),
             Contains("trace: line 3: GeneratedTokens: expected a whole number") && Contains("\"-8\""));
  CHECK_THAT(error(with(azure, "3180,8", "3180,nan")), Contains("\"nan\""));
  CHECK_THAT(error(with(azure, "3180,8", "4294967296,8")), Contains("ContextTokens") && Contains("4294967295"));
  CHECK_THAT(error(with(azure, "11-17", "11-15")), Contains("trace: line 4: TIMESTAMP: expected a time not before"));
  for (const char* time : {"", "now", "2023-13-01 00:00:00", "2023-02-29 00:00:00", "2023-02-28 24:00:00", "2023-02-28 00:00:0",
                           "2023-02-28 00:00:00.", "2023-02-28 00:00:00.1234567890", "2023-02-28 00:00:00+1", "2023-02-28 00:00:00+24:00",
                           "2023-02-28 00:00:00+00:60", "0000-02-28 00:00:00", "2023-02-28 00:00:00 ", "99999-02-28 00:00:00"}) {
    CHECK_THAT(error(std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n") + time + ",1,1\n"),
               Contains("trace: line 2: TIMESTAMP: expected a time such as"));
  }
  CHECK_THAT(error(with(azure, "TIMESTAMP", "Time")), Contains("line 1") && Contains("\"TIMESTAMP\""));
  CHECK_THAT(error("TIMESTAMP,ContextTokens,GeneratedTokens\n"), Contains("trace: expected a request with tokens out, got none"));

  CHECK_THAT(error(with(burstgpt, "118.5", "44")), Contains("trace: line 5: Timestamp: expected a time not before"));
  CHECK_THAT(error(with(burstgpt, "118.5", "inf")), Contains("line 5: Timestamp: expected seconds >= 0"));
  CHECK_THAT(error(with(burstgpt, "\n5,", "\n-5,")), Contains("line 2: Timestamp: expected seconds >= 0"));
  CHECK_THAT(error(with(burstgpt, "Model", "Name")), Contains("\"Model\""));
  CHECK_THAT(error(with(burstgpt, ",276,", ",x,")), Contains("line 4: Response tokens"));
  CHECK_THAT(error("Timestamp,Model,Request tokens,Response tokens\n1,m,5,0\n"), Contains("got 1 without"));

  CHECK_THAT(error(mooncake.substr(0, mooncake.size() - 20)), Contains("trace: line 4, column"));
  CHECK_THAT(error(with(mooncake, "\"timestamp\": 30535", "\"time\": 1")), Contains("trace: line 4: /timestamp: expected milliseconds"));
  CHECK_THAT(error(with(mooncake, "30535", "26999")), Contains("trace: line 4: /timestamp: expected a time not before"));
  CHECK_THAT(error(with(mooncake, "30535", "1e999")), Contains("trace: line 4"));
  CHECK_THAT(error(with(mooncake, "27000", "-1")), Contains("trace: line 1: /timestamp"));
  CHECK_THAT(error(with(mooncake, "6955", "69.5")), Contains("trace: line 1: /input_length: expected an integer >= 0"));
  CHECK_THAT(error(mooncake + "[]"), Contains("trace: line 5: expected an object"));

  CHECK_THAT(error("a,b\n1,2\n"), Contains("trace: line 1: expected the header of") && Contains("\"a,b\""));
  CHECK_THAT(error(""), Contains("trace: line 1: expected the header of"));
  CHECK_THAT(error("\x1F\x8B\x08"), Contains("trace: expected text, got what gzip has compressed"));
}

TEST_CASE("a trace is dealt out to servers in turn, or as a seed draws, for the service that can be meant") {
  const auto cloud = three_servers();
  const auto t = read(azure);
  const auto played = exchange::replay_trace(t, cloud, one_text);
  CHECK(played == serve::request_stream({{0, service_id(1), server_id(0), 4808, 10},
                                         {0.052, service_id(1), server_id(1), 3180, 8},
                                         {1.5, service_id(1), server_id(2), 0, 27}}));
  CHECK(exchange::replay_trace(t, cloud, one_text, {.time_scale = 2})[2].arrival_s == 3);

  exchange::token_trace many;
  many.file = "many";
  for (int i = 0; i < 3000; ++i) many.arrivals.push_back({static_cast<double>(i), 1, 1});
  std::vector<int> seen(3);
  const auto drawn = exchange::replay_trace(many, cloud, one_text, {.seed = 7});
  for (const auto& r : drawn) ++seen.at(r.server.index());
  for (const int n : seen) CHECK(n == Approx(1000).margin(130));  // 5 standard deviations
  CHECK(drawn == exchange::replay_trace(many, cloud, one_text, {.seed = 7}));
  CHECK_FALSE(drawn == exchange::replay_trace(many, cloud, one_text, {.seed = 8}));
}

TEST_CASE("a trace that names models goes to services called like them, if all are there") {
  const auto t = read(burstgpt);
  const std::vector<service> both{text_service("GPT-4"), text_service("ChatGPT")};
  const auto played = exchange::replay_trace(t, three_servers(), both);
  CHECK(played[0].service == service_id(1));
  CHECK(played[1].service == service_id(0));
  CHECK(exchange::replay_trace(t, three_servers(), both, {.service = "GPT-4"})[0].service == service_id(0));
  CHECK(exchange::replay_trace(t, three_servers(), one_text)[0].service == service_id(1));
}

TEST_CASE("a service that cannot be meant is refused, with those that can") {
  const auto t = read(azure);
  const auto refused = [&](const std::vector<service>& services, const exchange::replay_options& o = {}) {
    return message_of([&] { return exchange::replay_trace(t, three_servers(), services, o); });
  };
  CHECK_THAT(refused({text_service("x"), text_service("y")}), Contains("trace: expected a choice") && Contains("there are x, y"));
  CHECK_THAT(refused({one_text[0]}), Contains("there is none"));
  CHECK_THAT(refused(one_text, {.service = "image"}), Contains("generates tokens (there are chat), got \"image\""));
  CHECK_THAT(refused(one_text, {.service = "chta"}), Contains("did you mean \"chat\"?"));
  for (const double scale : {0.0, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)})
    CHECK_THAT(refused(one_text, {.time_scale = scale}), Contains("expected a time scale > 0"));
  CHECK_THAT(message_of([&] { return exchange::replay_trace(t, {}, one_text); }), Contains("expected a cloud with a server"));
}

TEST_CASE("a file of requests is ours or a trace, whichever it begins like") {
  const auto parse = [](const std::string& text) { return exchange::parse_requests_file(text, "r", three_servers(), one_text); };
  const auto ours = parse("arrival,service,server,tokens_in,tokens_out\n1.5,chat,b,7,8\n");
  CHECK_FALSE(ours.trace);
  CHECK(ours.requests == serve::request_stream({{1.5, service_id(1), server_id(1), 7, 8}}));
  CHECK(parse(azure).trace == exchange::trace_format::azure);
  CHECK(parse(mooncake).trace == exchange::trace_format::mooncake);
  const auto recorded = parse(burstgpt);
  CHECK(recorded.trace == exchange::trace_format::burstgpt);
  CHECK(recorded.skipped == 1);
  CHECK(recorded.requests.size() == 3);
  CHECK_THAT(message_of([&] { return parse("time,service\n"); }), Contains("arrival"));
}

TEST_CASE("Azure's trace of code requests has the totals that were counted apart") {
  const auto file = test::shared_data("data/azure/AzureLLMInferenceTrace_code.csv");
  if (!file) return;
  const auto t = exchange::read_token_trace(file->string());
  REQUIRE(t.arrivals.size() == 8819);
  CHECK(t.skipped == 0);
  const auto lengths = exchange::lengths_of(t);
  const auto sum = [&](auto member) {
    return std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0},
                           [&](std::uint64_t total, const serve::request_length& l) { return total + l.*member; });
  };
  CHECK(sum(&serve::request_length::tokens_in) == 18'059'974);
  CHECK(sum(&serve::request_length::length) == 245'896);
  CHECK(t.arrivals[1].at_s == 0.052);
  CHECK(t.arrivals.back().at_s == Approx(3435.948056).epsilon(1e-15));  // 18:17:03.97996 to 19:14:19.928016
}

}  // namespace test_token_trace
