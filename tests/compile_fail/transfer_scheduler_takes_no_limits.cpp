// SPDX-License-Identifier: BSL-1.0
// expect: transfer_scheduler needs: hetplan::schedule::network_schedule operator()(const hetplan::schedule::cep_graph&, const
// hetplan::schedule::scheduling_limits&) const
#include <hetplan/schedule/transfer_scheduler.hpp>

using namespace hetplan;

struct my_scheduler {
  schedule::network_schedule operator()(const schedule::cep_graph& cep) const { return schedule::uncontrolled(cep); }
};
const schedule::any_transfer_scheduler scheduler = my_scheduler{};
