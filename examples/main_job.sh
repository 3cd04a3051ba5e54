#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The main job: four planners, two real models, two real networks, one judge.
# Usage: main_job.sh HETPLAN OUTPUT_FOLDER   (HETPLAN: the built program)
set -eu
hetplan=$1
out=$2
mkdir -p "$out"

# Qwen-Omni's full Adam state fits neither setting, so it trains with plain SGD.
cat > "$out/sgd.json" <<'JOB'
{"format": "hetplan/job/1", "mode": "training", "batch": 32, "optimizer_factor": 0}
JOB
cat > "$out/adam.json" <<'JOB'
{"format": "hetplan/job/1", "mode": "training", "batch": 32, "optimizer_factor": 2}
JOB

for cluster in smart-home-2 traffic-monitor; do
  for model in qwen3-1.7b qwen-omni; do
    case $model in qwen-omni) optimizer=sgd ;; *) optimizer=adam ;; esac
    job=$out/$optimizer.json
    name=$model.$cluster
    printf '\n== training %s on %s, batch 32, %s\n' "$model" "$cluster" "$optimizer"
    "$hetplan" compare "$model" "$cluster" "$job"
    "$hetplan" plan "$model" "$cluster" "$job" --planner dora \
      --out "$out/$name.plan.json" --svg "$out/$name.svg" --html "$out/$name.html" --trace "$out/$name.trace.json" > "$out/$name.txt"
  done
done

cat <<END

The best plan of each, in $out:
  *.txt         what it does and costs        *.plan.json   the plan: hetplan simulate MODEL CLUSTER PLAN
  *.svg         Gantt chart: devices and network resources, contention marked (open in a browser)
  *.html        a page that zooms and explains what the run waited for (open in a browser)
  *.trace.json  the same as a trace (open in ui.perfetto.dev)
END
