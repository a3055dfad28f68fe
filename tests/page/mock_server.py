"""A server of the page's files and of made-up answers (synthetic.py), with a stream of changes: what a test wants it to say, when it wants it."""
import http.server
import json
import os
import queue
import socket
import sys
import threading
import urllib.parse

import synthetic

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scheduler-extender/page/assets")
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body):
        self.send_response(status)
        for key, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-cache"), ("Content-Security-Policy", "default-src 'self'"),
                           ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY")):
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        mock, (_, _, path, query, _) = self.server.mock, urllib.parse.urlsplit(self.path)
        mock.asked.append(path)
        if path == "/v1/changes":
            hello = queue.Queue()
            hello.put(f"event: hello\ndata: {json.dumps({'at': synthetic.stamp(), 'page': mock.page})}\n\n")
            return self.stream(mock.viewers, hello)
        if path == "/v1/logs" and mock.reads_logs:
            return self.stream(mock.readers, queue.Queue())
        if path == "/v1/node":
            name = urllib.parse.parse_qs(query).get("name", [""])[0]
            found = [n for n in mock.answers["fleet"]["nodes"] if n["node"] == name]
            return self.reply(200 if found else 404, "application/json", json.dumps({"at": synthetic.stamp(), "node": found[0]} if found else {"error": "no agent tells of it"}).encode())
        if path.startswith("/v1/") and path[4:] in mock.answers:
            return self.reply(200, "application/json", mock.body(path[4:]))
        name = path[1:] or "index.html"
        if name in os.listdir(ASSETS):
            with open(os.path.join(ASSETS, name), "rb") as f:
                return self.reply(200, TYPES[name.rsplit(".", 1)[1]], f.read())
        return self.reply(404, "text/plain", b"no such page\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.mock.posted.append((self.path, self.headers.get("Content-Type"), body))
        status, answer = self.server.mock.whatif
        return self.reply(status, "application/json" if status == 200 else "text/plain", answer.encode())

    def stream(self, viewers, mine):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        self.close_connection = True
        viewers.append(mine)
        try:
            while (text := mine.get()) is not None:
                self.wfile.write(text.encode())
                self.wfile.flush()
        except OSError:
            pass
        if mine in viewers:
            viewers.remove(mine)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address, mock):
        self.mock, self.open = mock, set()
        super().__init__(address, Handler)

    def get_request(self):
        connection, address = super().get_request()
        self.open.add(connection)
        return connection, address

    def handle_error(self, request, client_address):
        pass # a browser that went away


class Mock:
    """answers: kind -> object, of the fleet with whole nodes; change() tells viewers. stop() ends every connection, as when a process is killed; start() is there again at the same port."""

    def __init__(self, nodes=24, port=0):
        self.port, self.viewers, self.posted, self.asked, self.server = port, [], [], [], None
        self.reads_logs, self.readers = True, []  # of /v1/logs
        self.page = "1"  # which files it has
        self.whatif = (200, '{"placements":[],"placed":0,"waiting":0}')
        self.show(synthetic.fleet(nodes))

    def show(self, fleet, **others):
        self.known, self.health = {node["node"] for node in fleet["nodes"]}, {}
        self.new_faults(fleet["nodes"])
        self.answers = {"fleet": fleet, "waiting": synthetic.waiting(), "jobs": synthetic.jobs(), "agents": synthetic.agents(fleet)} | others
        self.bodies = {}

    def body(self, kind):
        if kind not in self.bodies:
            answer = self.answers[kind] | (synthetic.brief(sorted(self.answers[kind]["nodes"], key=synthetic.natural)) if kind == "fleet" else {})
            self.bodies[kind] = json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()
        return self.bodies[kind]

    def tell(self, kind, data):
        for viewer in list(self.viewers):
            viewer.put(f"event: {kind}\nid: {self.answers['fleet']['generation']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n")

    def print(self, kind, data):
        """an event to those who read a log"""
        for reader in list(self.readers):
            reader.put(f"event: {kind}\ndata: {json.dumps(data)}\n\n")

    def new_faults(self, nodes):
        """What the server would tell of since the last time: in this mock a fault is a chip's change between well and a state of ILL."""
        faults = []
        for node in nodes:
            for c in (c for group in node["groups"] for c in group["chips"]):
                key, now = (node["node"], c.get("id")), c["state"] if c["state"] in synthetic.ILL else "recovered"
                if self.health.get(key, now) != now:
                    faults.append({"at": synthetic.stamp(), "node": node["node"], "device": c["id"], "to": now, "reason": c.get("reason", ""), "message": c.get("message", "")})
                self.health[key] = now
        return faults

    def change(self, nodes, gone=()):
        """Nodes of the answer that were changed in place."""
        fleet = self.answers["fleet"]
        fleet["generation"] += 1
        self.bodies.pop("fleet", None)
        told = synthetic.brief(nodes, self.known)
        self.known = (self.known | {node["node"] for node in nodes}) - set(gone)
        self.tell("fleet", {"generation": fleet["generation"], **told, "gone": list(gone), "faults": self.new_faults(nodes)})

    def renew(self, kind, answer):
        self.answers[kind] = answer
        self.bodies.pop(kind, None)
        self.tell(kind, {})

    def node(self, name):
        return next(n for n in self.answers["fleet"]["nodes"] if n["node"] == name)

    def start(self):
        self.server = Server(("127.0.0.1", self.port), self)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": .02}, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.server.open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for viewer in list(self.viewers):
            viewer.put(None)
        self.viewers.clear()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"


if __name__ == "__main__": # to look at: mock_server.py [NODES [PORT]]
    served = Mock(int(sys.argv[1]) if len(sys.argv) > 1 else 24, int(sys.argv[2]) if len(sys.argv) > 2 else 0).start()
    print(served.url, flush=True)
    served.thread.join()
