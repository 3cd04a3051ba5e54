// SPDX-License-Identifier: BSL-1.0
// expect: search_start needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&, const hetplan::trace&
// alone) const, or to be a transfer_priority
#include <hetplan/schedule/local_search.hpp>

using namespace hetplan;

struct my_start {
  schedule::message_rules operator()(const schedule::cep_graph& cep) const { return {cep.messages(), {schedule::chunk_rule{}}}; }
};
const schedule::local_search_options options{.starts = {my_start{}}};
