# SPDX-License-Identifier: BSL-1.0
"""`hetplan profile`: this machine, a model's layers on it, and the link to another one; peers that are slow, silent, strange or lying."""

import contextlib
import hmac
import json
import secrets
import socket
import struct
import subprocess
import threading
import time
import unittest

import toy_problem

KEY = "a key of both ends"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(min(size - len(data), 1 << 20))
        if not more:
            raise ConnectionError("hung up")
        data += more
    return data


def proof(key, role, accepting, connecting):
    """Independently of the program: Python's own keyed hash."""
    return hmac.digest(key.encode(), b"hetplan profile 1 " + role + accepting + connecting, "sha256")


def greet(connection, key=KEY):
    """The connecting end, up to what the accepting one proves."""
    theirs, ours = receive(connection, 32), secrets.token_bytes(32)
    connection.sendall(ours + proof(key, b"connects", theirs, ours))
    return receive(connection, 32) == proof(key, b"accepts", theirs, ours)


def admit(connection, key=KEY):
    ours = secrets.token_bytes(32)
    connection.sendall(ours)
    answer = receive(connection, 64)
    if answer[32:] != proof(key, b"connects", ours, answer[:32]):
        return False
    connection.sendall(proof(key, b"accepts", ours, answer[:32]))
    return True


class Proxy:
    """Passes bytes on, so many a second each way, each piece later by a delay."""

    def __init__(self, to, there, back, delay):
        self.to, self.rates, self.delay = to, (there, back), delay
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = [self.listener]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
                self.sockets += [near, far]
                for s in (near, far):
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                for a, b, rate in ((near, far, self.rates[0]), (far, near, self.rates[1])):
                    threading.Thread(target=self.pump, args=(a, b, rate), daemon=True).start()

    def pump(self, a, b, rate):
        free = 0.0  # when the wire has sent what came before
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 14):
                free = max(free, time.monotonic()) + len(data) / rate
                time.sleep(max(0.0, free - time.monotonic()) + (self.delay if len(data) < 1 << 12 else 0))
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)

    def close(self):
        for s in self.sockets:
            s.close()


class Machine(toy_problem.folder_test):
    def test_this_machine_and_a_model_on_it(self):
        self.write("m.json", toy_problem.model(0.4, 0.05))
        found = self.document("profile", "m.json", "--cores", "1", "--batches", "2,1", "--device", "here", "--kind", "core", "--out-model",
                              "measured.json", "--out-cluster", "c.json")
        device = found["device"]
        self.assertEqual(device["name"], "here")
        self.assertGreater(device["compute"], 1e8)
        self.assertGreater(device["memory_bandwidth"], 1e8)
        self.assertGreater(device["memory"], 1e8)
        self.assertEqual([l["name"] for l in found["layers"]], ["l0", "l1"])
        for l in found["layers"]:
            self.assertEqual(l["batch"], [1, 2])
            for times in l["forward"], l["backward"]:
                self.assertTrue(0 < times[0] <= times[1], times)
        # More work takes longer, and no product is faster than the machine, but for rounding and for FLOP that no product has.
        first, second = found["layers"]
        self.assertGreater(first["forward"][1], 0.9 * 2 * 0.4e9 / device["compute"])
        self.assertGreater(first["forward"][0], second["forward"][0])
        self.assertEqual(self.read("measured.json")["layers"][0]["profile"]["core"]["batch"], [1, 2])
        plan = self.document("plan", "measured.json", "c.json", "--planner", "on-device")["plans"][0]
        self.assertGreater(plan["predicted"]["latency"], 0)
        # Times of another kind stay.
        self.done("profile", "measured.json", "--cores", "1", "--batches", "1", "--device", "other", "--out-model", "both.json")
        self.assertEqual(sorted(self.read("both.json")["layers"][0]["profile"]), ["core", "other"])

    def test_what_would_not_end_or_not_fit_is_refused(self):
        self.write("m.json", toy_problem.model(400))
        self.write("huge.json", toy_problem.model(1e9))
        for arguments, expected in [
            (("m.json", "--cores", "1", "--batches", "1", "--limit", "5"), "expected to measure in at most 5 s (--limit), and it would take"),
            (("huge.json", "--cores", "1", "--batches", "1"), 'layer "l0" at batch 1: expected at most half of the memory'),
            (("--out-model", "x.json"), "--out-model: expected a model, got none"),
            (("--listen", "5000"), "--key: expected the same 8 characters or more at both ends, got 0"),
            (("--listen", "70000", "--key", KEY), "--listen: expected PORT or HOST:PORT with a port of 1 to 65535, got \"70000\""),
            (("--connect", "5000", "--key", KEY), "--connect: expected HOST:PORT with a port of 1 to 65535, got \"5000\""),
            (("--batches", "0"), "expected a whole number from 1"),
            (("--tokens", "8"), "without a model"),
        ]:
            result = self.run_it("profile", *arguments, "--out-cluster", "c.json")
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assertIn(expected, result.stderr)
        self.assertEqual(sorted(self.contents()), ["huge.json", "m.json"])


class Link(toy_problem.folder_test):
    def start(self, *arguments):
        process = subprocess.Popen([toy_problem.CLI, "profile", "--cores", "1", *map(str, arguments)], cwd=self.path,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def end(self, process, status=0):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, err)
        return out, err

    def wait_for(self, port):
        """Until somebody listens; leaves a stranger who hangs up."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.05)
        self.fail("nobody listens")

    def listen(self, *arguments, timeout=30):
        port = free_port()
        process = self.start("--listen", f"127.0.0.1:{port}", "--key", KEY, "--device", "a", "--timeout", timeout, *arguments)
        self.wait_for(port)
        return process, port

    def connect(self, port, *arguments, key=KEY, timeout=30):
        return self.start("--connect", f"127.0.0.1:{port}", "--key", key, "--device", "b", "--timeout", timeout, *arguments)

    def test_both_ends_write_a_cluster_with_the_link(self):
        listener, port = self.listen("--out-cluster", "a.json")
        out, _ = self.end(self.connect(port, "--out-cluster", "b.json", "--json"))
        self.end(listener)
        link = json.loads(out)["link"]
        self.assertEqual(link["to"], "a")
        self.assertTrue(0 < link["latency"] < 0.05)
        self.assertGreater(min(link["out"], link["in"]), 1e7)
        a, b = self.read("a.json"), self.read("b.json")
        self.assertEqual({r["name"]: r["capacity"] for r in a["resources"]}, {r["name"]: r["capacity"] for r in b["resources"]})
        self.assertEqual(sorted((r["from"], r["to"]) for r in a["routes"]), [("a", "b"), ("b", "a")])
        self.write("m.json", toy_problem.model(1, 1, 1))
        self.assertEqual(self.run_it("plan", "m.json", "a.json", "--json").returncode, 0)
        # A third machine joins the two.
        listener, port = self.listen("--onto", "b.json", "--out-cluster", "all.json")
        self.end(self.start("--connect", f"127.0.0.1:{port}", "--key", KEY, "--device", "c"))
        self.end(listener)
        whole = self.read("all.json")
        self.assertEqual([d["name"] for d in whole["devices"]], ["b", "a", "c"])
        self.assertEqual(sorted((r["from"], r["to"]) for r in whole["routes"]), [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")])

    def test_a_wire_of_known_speed_and_delay(self):
        listener, port = self.listen()
        there, back, delay = 4e6, 1.5e6, 0.01
        proxy = Proxy(port, there, back, delay)
        self.addCleanup(proxy.close)
        out, _ = self.end(self.connect(proxy.port, "--json"))
        self.end(listener)
        link = json.loads(out)["link"]
        # A machine that is busy passes bytes on late, never early.
        self.assertTrue(0.3 * there < link["out"] < 1.1 * there, link)
        self.assertTrue(0.3 * back < link["in"] < 1.1 * back, link)
        self.assertTrue(0.9 * delay < link["latency"] < 10 * delay, link)

    def test_who_has_another_key_is_refused_and_the_next_one_admitted(self):
        listener, port = self.listen()
        _, err = self.end(self.connect(port, "--out-cluster", "no.json", key="another key, as long"), status=2)
        self.assertIn("it has another --key", err)
        self.end(self.connect(port))
        _, err = self.end(listener)
        self.assertIn("refused, it has another key", err)
        self.assertEqual(self.contents(), {})

    def test_nothing_is_told_before_the_key_is_proven(self):
        listener, port = self.listen()
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.settimeout(20)
            self.assertEqual(len(receive(stranger, 32)), 32)  # a random number
            stranger.sendall(secrets.token_bytes(64))
            self.assertEqual(stranger.recv(1), b"")
        with socket.create_connection(("127.0.0.1", port)) as friend:
            self.assertTrue(greet(friend))
        out, err = self.end(listener, status=2)
        self.assertIn("hung up", err)

    def test_a_silent_listener_and_a_silent_guest_end_in_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            begin = time.monotonic()
            _, err = self.end(self.connect(silent.getsockname()[1], "--out-cluster", "no.json", timeout=1), status=2)
            self.assertIn("said nothing in time", err)
            self.assertLess(time.monotonic() - begin, 30)
        listener, port = self.listen(timeout=20)
        with socket.create_connection(("127.0.0.1", port)):
            begin = time.monotonic()
            self.end(self.connect(port))  # waits until the silent one is sent away
            self.assertLess(time.monotonic() - begin, 30)
        _, err = self.end(listener)
        self.assertIn("said nothing in time; refused", err)
        alone, _ = self.listen("--out-cluster", "no.json", timeout=1)
        _, err = self.end(alone, status=2)
        self.assertIn("nobody with the key came in 1 s", err)
        self.assertEqual(self.contents(), {})

    def test_a_port_that_is_taken_or_closed(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            _, err = self.end(self.start("--listen", f"127.0.0.1:{port}", "--key", KEY), status=2)
            self.assertIn("Address already in use", err)
        _, err = self.end(self.connect(free_port()), status=2)
        self.assertIn("Connection refused", err)
        _, err = self.end(self.start("--connect", "no.such.host.invalid:5000", "--key", KEY), status=2)
        self.assertIn("--connect no.such.host.invalid:5000: ", err)

    def test_guests_that_lie(self):
        for lie, expected in [
            (struct.pack(">Q", 1 << 40), "expected a size of at most 1000000, got 1099511627776"),
            (struct.pack(">Q", 5) + b"hello", "expected a measurement, got something else"),
            (struct.pack(">Q", 5) + b"hello" + b"u" + struct.pack(">Q", 1 << 60), "expected a size of at most 2147483648, got"),
            (struct.pack(">Q", 5) + b"hello" + b"d" + struct.pack(">Q", 1 << 60), "expected a size of at most 2147483648, got"),
            (struct.pack(">Q", 5) + b"hello" + b"r" + struct.pack(">ddd", 1.0, float("nan"), 1.0), "expected what was measured"),
            (struct.pack(">Q", 5) + b"hello" + b"r" + struct.pack(">ddd", 1.0, 1.0, 0.0), "expected what was measured"),
            (struct.pack(">Q", 5) + b"hello" + b"r" + struct.pack(">ddd", 1.0, 1.0, 1.0), "the other end: "),  # no cluster file
            (struct.pack(">Q", 500), "hung up"),
        ]:
            listener, port = self.listen("--out-cluster", "no.json")
            with socket.create_connection(("127.0.0.1", port)) as guest:
                self.assertTrue(greet(guest))
                guest.sendall(lie)
                if not expected.startswith("hung"):
                    guest.settimeout(20)
                    with contextlib.suppress(OSError):  # it hangs up as soon as it has found out
                        guest.sendall(b"x" * (lie.endswith(b"hello")))
                        while guest.recv(1 << 16):
                            pass
                else:
                    guest.shutdown(socket.SHUT_WR)
                _, err = self.end(listener, status=2)
            self.assertIn(expected, err)
            self.assertEqual(self.contents(), {})

    def test_a_listener_that_lies(self):
        def serve(server, lies):
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(20)
                    self.assertTrue(admit(connection))
                    receive(connection, struct.unpack(">Q", receive(connection, 8))[0])
                    if lies == "text":
                        connection.sendall(struct.pack(">Q", 1 << 62))
                    else:
                        connection.sendall(struct.pack(">Q", 2) + b"{}")
                        while (what := receive(connection, 1)) == b"p":
                            connection.sendall(b"q" if lies == "echo" else b"p")
                        if what == b"u":
                            receive(connection, struct.unpack(">Q", receive(connection, 8))[0])
                            connection.sendall(struct.pack(">Q", 7))
                    connection.recv(1)

        for lies, expected in [("text", "expected a size of at most 1000000"), ("echo", "expected an echo, got something else"),
                               ("size", "expected the size of what was sent, got another")]:
            with socket.create_server(("127.0.0.1", 0)) as server:
                thread = threading.Thread(target=serve, args=(server, lies))
                thread.start()
                _, err = self.end(self.connect(server.getsockname()[1], "--out-cluster", "no.json"), status=2)
                thread.join(30)
            self.assertIn(expected, err)
        self.assertEqual(self.contents(), {})

    def test_two_of_one_name(self):
        listener, port = self.listen()
        _, err = self.end(self.start("--connect", f"127.0.0.1:{port}", "--key", KEY, "--device", "a"), status=2)
        self.assertIn('expected another name than the other end\'s, got "a" at both', err)
        self.end(listener, status=2)


if __name__ == "__main__":
    unittest.main()
