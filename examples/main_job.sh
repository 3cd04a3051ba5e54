#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# The main job: every planner, two real models, two real networks, one judge; and a plan's life when things change.
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

# Three hours in which the Wi-Fi gets slow, a laptop is needed for something else, and a phone leaves.
cat > "$out/evening.json" <<'TIMELINE'
{"format": "hetplan/timeline/1", "duration": "3 h",
 "events": [{"at": "30 min", "resource": "shared", "capacity": "150 Mbit/s"}, {"at": "45 min", "resource": "shared", "capacity": "600 Mbit/s"},
            {"at": "60 min", "device": "laptop0", "speed": 0.5}, {"at": "100 min", "device": "laptop0", "speed": 1},
            {"at": "120 min", "device": "xiaomi0", "leaves": true}]}
TIMELINE
printf '\n== training qwen3-1.7b on smart-home-2 through an evening of changes, sgd\n'
"$hetplan" adapt qwen3-1.7b smart-home-2 "$out/sgd.json" "$out/evening.json" --html "$out/evening.html" --svg "$out/evening.svg"

cat <<END

The best plan of each, in $out:
  *.txt         what it does and costs        *.plan.json   the plan: hetplan simulate MODEL CLUSTER PLAN
  *.svg         Gantt chart: devices and network resources, contention marked (open in a browser)
  *.html        a page that zooms and explains what the run waited for (open in a browser)
  *.trace.json  the same as a trace (open in ui.perfetto.dev)
  evening.html  what every policy made of the evening, and why (open in a browser)
END
