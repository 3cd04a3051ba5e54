#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the library costs a compiler, in seconds of CPU and in multiples of parsing <Eigen/Dense>.

  python3 bench/compile_times.py [--root TREE] [--runs N] [--compiler NAME] [--json]

Medians of CPU, so that other load on the machine matters little; the cases take turns, so that a slow minute meets all of them.
Multiples compare machines and days better than seconds do. --root measures another checkout, --quick only that this works."""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

EIGEN = pathlib.Path("/usr/include/eigen3")
COMPILED = "-DHETPLAN_SEPARATE"
# What a user's own type costs to instantiate: a program with nothing but the type and one call that takes it.
OWN = {
    "cost model": """
struct mine {
  seconds time(const work& w, const device&) const { return seconds(1e-12 * w.batch * w.layer.forward_flops.value()); }
};
plan_result call(const planning_graph& model, const cluster& home) {
  return recipes::dora(planning_problem{model, home, mine{}, job{.batch = 8}}, minimize_latency{});
}""",
    "objective": """
struct mine {
  double score(seconds response, joules energy) const { return response.value() * energy.value(); }
};
plan_result call(const planning_problem& problem) { return recipes::dora(problem, mine{}); }""",
    "objective of the bare search": """
struct mine {
  double score(seconds response, joules energy) const { return response.value() * energy.value(); }
};
partition::search_result call(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, mine{}, partition::dominance{});
}""",
    "cell policy": """
struct mine {
  std::size_t capacity() const { return 1000; }
  bool covers(const partition::partial_plan& kept, const partition::partial_plan& other) const { return kept.no_worse_than(other, 0.01); }
};
partition::search_result call(const partition::search_tables& t, const partition::device_space& s, const plan& blank) {
  return partition::two_substate_dp(t, s, blank, minimize_latency{}, mine{});
}""",
    "network policy of the simulator": """
struct mine {
  int tier(const tasks::transfer& t) const { return static_cast<int>(t.kind); }
  route_access access() const { return route_access::shared; }
};
trace call(const tasks::task_graph& g, const network& net) { return simulate(g, net, mine{}); }""",
}


def cpu_s(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        source = {}
        for name, header in (("Eigen", "Eigen/Dense"), ("hetplan", "hetplan/hetplan.hpp")):
            source[name] = pathlib.Path(folder, name + ".cpp")
            source[name].write_text(f"#include <{header}>\n")
        example = options.root / "examples/01_plan_a_chain.cpp"

        flags = ["-std=c++20", f"-I{options.root / 'include'}", "-isystem", str(EIGEN)]
        parse = [options.compiler, *flags, "-fsyntax-only"]
        compile_ = [options.compiler, *flags, "-O2", "-c", "-o", str(pathlib.Path(folder, "object.o"))]
        cases = {
            "parse <Eigen/Dense>": [*parse, source["Eigen"]],
            "parse <hetplan/hetplan.hpp>, header-only": [*parse, source["hetplan"]],
            "parse <hetplan/hetplan.hpp>, compiled": [*parse, COMPILED, source["hetplan"]],
            "example 01 at -O2, header-only": [*compile_, example],
            "example 01 at -O2, compiled": [*compile_, COMPILED, example],
        }
        headers = ("hetplan.hpp", "partition/two_substate_dp.hpp", "simulate/simulator.hpp")
        includes = "".join(f"#include <hetplan/{header}>\n" for header in headers)
        own = {**OWN, "types' headers alone": ""}
        if options.quick:  # all in one source, each in a namespace
            own = {"types": "".join(f"namespace own_{i} {{{text}\n}}\n" for i, text in enumerate(OWN.values()))}
        for what, text in own.items():
            source[what] = pathlib.Path(folder, what.replace(" ", "_") + ".cpp")
            source[what].write_text(f"{includes}using namespace hetplan;\n{text}\n")
            cases[f"own {what} at -O2, compiled"] = [*(parse if options.quick else compile_), COMPILED, source[what]]
        if not (options.root / "include/hetplan/core/version.hpp").exists():  # a tree from before hetplan::compiled
            cases = {case: command for case, command in cases.items() if COMPILED not in command}
        if options.quick:
            options.runs = 1
            cases = {case: command for case, command in cases.items() if COMPILED in command and not case.startswith("example")}

        seconds = {case: [] for case in cases}
        for _ in range(options.runs):
            for case, command in cases.items():
                seconds[case].append(cpu_s(command))

    medians = {case: statistics.median(of) for case, of in seconds.items()}
    unit = next(iter(medians.values()))
    if options.json:
        print(json.dumps({case: {"cpu_s": round(s, 3), "eigens": round(s / unit, 2)} for case, s in medians.items()}, indent=2))
        return
    print(f"| {options.compiler}, median of {options.runs} | CPU | in <Eigen/Dense> |\n|---|---|---|")
    for case, s in medians.items():
        print(f"| {case} | {s:.2f} s | {s / unit:.1f} |")


if __name__ == "__main__":
    main()
