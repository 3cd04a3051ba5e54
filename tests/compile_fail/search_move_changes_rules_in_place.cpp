// SPDX-License-Identifier: BSL-1.0
// expect: search_move needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&,
// hetplan::schedule::message_rules, const hetplan::schedule::contention&) const
#include <hetplan/schedule/local_search.hpp>

using namespace hetplan;

struct my_move {
  void operator()(const schedule::cep_graph&, schedule::message_rules& rules, const schedule::contention& at) const {
    rules[at.urgent.message][at.urgent.chunk].priority = 0;
  }
};
const schedule::local_search_options options{.moves = {my_move{}}};
