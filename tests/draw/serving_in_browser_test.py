# SPDX-License-Identifier: BSL-1.0
"""The page of `hetplan serve` in a browser: its scripts start without an error, its charts zoom together, its cells explain themselves.
Skipped without Chromium."""

import json
import random

from browser import browse, document, main, page_test

NAMES = ["north", "east <b>", "south", "west"]
CLOUD = {"format": "hetplan/cloud/1", "name": "street", "ring": {"period": "100 ms"},
         "servers": [{"name": name, "gpus": [{"kind": "A2", "memory": "16 GB", "count": 2}], "uplink": "1 Gbit/s"} for name in NAMES]}


def variant(one, eight, **more):
    return {"gpu": "A2", "compute": 0.5, "memory": "2 GB", "pass": {"batch": [1, 8], "seconds": [one, eight]}, **more}


SERVICES = {"format": "hetplan/services/1",
            "services": [{"name": "image", "latency": "200 ms", "variants": [variant("20 ms", "60 ms", name="half")]},
                         {"name": "large", "latency": "1 s", "variants": [variant("100 ms", "300 ms", name="two", tensor_parallel=2)]},
                         {"name": "video", "latency": "1 s", "rate": 30, "frames": 60,
                          "variants": [variant("20 ms", "60 ms", name="half")]}]}
DEPLOYMENT = {"format": "hetplan/deployment/1",
              "instances": [*({"service": "image", "gpus": [[name, 0]], "batch": 8} for name in NAMES),
                            {"service": "large", "gpus": [["north", 1], ["south", 1]], "batch": 8},
                            {"service": "video", "gpus": [["west", 1]], "batch": 8}]}
DEPLOYMENT["changes"] = [{"at": 6, "instances": DEPLOYMENT["instances"][:-1]}]
FAULTS = {"format": "hetplan/faults/1", "events": [{"at": 2, "kind": "slow_link", "server": "north", "factor": 0.1, "until": 4},
                                                   {"at": 5, "kind": "server_fails", "server": "east <b>"}]}

# Runs in the page after its scripts. Its findings are read from the dumped document.
DRIVER = """
<script>
window.addEventListener("load", () => {
  const root = document.documentElement, found = {}, tip = document.getElementById("tip");
  const under = (element, across = 0.5, down = 0.5) => {
    const box = element.getBoundingClientRect();
    const at = { clientX: box.left + across * box.width, clientY: box.top + down * box.height, bubbles: true, cancelable: true };
    element.dispatchEvent(new PointerEvent("pointermove", at));
    return tip.hidden ? null : tip.textContent;
  };
  const grid = document.getElementById("credit-matrix-grid");
  found.values = grid.dataset.values;
  found.cells = [[0, 0], [0, 3], [2, 3]].map(([row, column]) => under(grid, (column + 0.5) / 4, (row + 0.5) / 3));
  found.queue = under(document.getElementById("queue-grid"), 0.001, 0.01);
  found.flow = under(document.querySelector(".flow"));
  found.slice = under(document.querySelector(".tie"));
  found.fault = under(document.querySelector("#goodput-chart .mark.fault path"));
  found.bin = under([...document.querySelectorAll("#goodput-chart .plot rect[fill=transparent]")][3]);
  found.nothing = under(document.querySelector("h1"));
  const transforms = () => [...document.querySelectorAll(".over-time .plot")].map((plot) => plot.getAttribute("transform"));
  found.before = transforms();
  document.getElementById("zoom-in").click();
  found.after = transforms();
  found.queue_zoomed = under(document.getElementById("queue-grid"), 0.001, 0.01);
  const drawn = ["svg", ".slice", ".tie", ".curve", ".flow", "#services tbody tr"];
  found.counts = Object.fromEntries(drawn.map((what) => [what, document.querySelectorAll(what).length]));
  root.dataset.found = JSON.stringify(found);
});
</script>
"""


class a_page_of_serving_in_a_browser(page_test):
    @classmethod
    def make_page(cls):
        draw, lines, time = random.Random(1), ["arrival,service,server"], 0.0
        for _ in range(3000):
            time += draw.expovariate(300)
            service, = draw.choices(["image", "large", "video"], [90, 8, 2])
            server, = draw.choices(NAMES, [8, 1, 1, 1])
            lines.append(f"{time:.6f},{service},{server}")
        files = {"cloud": json.dumps(CLOUD), "services": json.dumps(SERVICES), "requests": "\n".join(lines) + "\n",
                 "deployment": json.dumps(DEPLOYMENT), "faults": json.dumps(FAULTS)}
        for name, text in files.items():
            (cls.path / name).write_text(text, encoding="utf-8")
        cls.history = json.loads(cls.run_cli("serve", *(cls.path / name for name in ("cloud", "services", "requests")), "--deployment",
                                             cls.path / "deployment", "--faults", cls.path / "faults", "--html", cls.page, "--json", "--quiet"))

    def test_every_part_is_there_and_the_scripts_start(self):
        shown = document(browse(self.page, "--dump-dom"))
        self.assertEqual(shown.root.get("data-ready"), "1")
        self.assertNotIn("data-error", shown.root)
        for name in ("summary", "outcomes", "goodput-chart", "levels-chart", "services", "credit-matrix", "deployment-picture", "queue-map",
                     "flows", "largest-flows", "offload-counts", "tip"):
            self.assertIn(name, shown.ids)

    def test_it_explains_itself_and_zooms(self):
        found = self.found_by(DRIVER)
        credit = [[float(v) for v in row.split(",")] for row in found["values"].split(";")]
        self.assertEqual([len(row) for row in credit], [4, 4, 4])
        for row, service in zip(credit, self.history["services"]):
            self.assertAlmostEqual(sum(row), service["credit"], delta=0.1)
        for column, server in enumerate(self.history["servers"]):
            self.assertAlmostEqual(sum(row[column] for row in credit), server["credit"], delta=0.1)
        digits = f"{credit[0][0]:.0f}"
        self.assertEqual(found["cells"][0].replace("\u202f", ""), f"image · north\n{digits} requests served")
        self.assertTrue(found["cells"][1].startswith("image · west\n"), found["cells"][1])
        self.assertTrue(found["cells"][2].endswith(" frames served"), found["cells"][2])
        self.assertTrue(found["queue"].startswith("north · 0 s to "), found["queue"])
        self.assertEqual(found["queue_zoomed"], found["queue"])
        self.assertIn(" → ", found["flow"])
        self.assertIn("on north GPU 1, south GPU 1", found["slice"])
        self.assertIn("link of north at 10 %", found["fault"])
        self.assertIn("requests a second", found["bin"])
        self.assertIsNone(found["nothing"])
        self.assertEqual(len(found["before"]), 2)
        self.assertEqual(len(set(found["after"])), 1)  # zoomed together
        self.assertNotEqual(found["before"], found["after"])
        self.assertEqual(found["counts"][".slice"], 7)
        self.assertEqual(found["counts"][".tie"], 1)
        self.assertEqual(found["counts"][".curve"], 2)
        self.assertEqual(found["counts"]["#services tbody tr"], 3)

    def test_the_page_is_drawn_on_white_and_on_dark_paper(self):
        corners = [self.check_drawn(f"--blink-settings=preferredColorScheme={scheme}")[1:4] for scheme in ("1", "0")]
        self.assertNotEqual(corners[0], corners[1])


if __name__ == "__main__":
    main()
