"""A hub of one model on this machine, that misbehaves as it is told, and a second server that it may lead to."""

import hashlib
import http.server
import json
import threading
import time

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_sum(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class FakeHub:
    """`files`: name -> (bytes, whether it is in large-file storage). What goes wrong: see `faults`, a list of functions
    for a file or for "" (the listing), each for one request and then gone. They get the handler and answer themselves
    (True), or change how it answers and return False."""

    def __init__(self, repository, files, token=None):
        self.repository, self.files, self.token = repository, dict(files), token
        self.commit, self.revisions = COMMIT, {"main", COMMIT}
        self.faults = {}
        self.requests = []  # (server, path, Authorization, Range)
        self.elsewhere = False  # large files lead to the other server
        self.extra = []         # more siblings, as they are
        self.changed = {}       # name -> what the listing says of it otherwise
        self.servers = [self.serve("hub"), self.serve("storage")]
        self.endpoint, self.storage = (f"http://127.0.0.1:{s.server_port}" for s in self.servers)

    def serve(self, which):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                try:
                    hub.answer(which, self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # a client that goes away is no news
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def asked(self, name):
        """The requests for a file, or "" for the listing."""
        return [r for r in self.requests if (r[1].endswith("/" + name) if name else r[1].startswith("/api/"))]

    def listing(self):
        siblings = list(self.extra)
        for name, (data, large) in self.files.items():
            entry = {"rfilename": name, "size": len(data), "blobId": git_sum(data)}
            if large:
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            entry.update(self.changed.get(name, {}))
            siblings.append(entry)
        return {"id": self.repository, "sha": self.commit, "tags": ["pytorch", "license:apache-2.0"], "siblings": siblings}

    @staticmethod
    def send(handler, status, body=b"", length=None, **headers):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, which, handler):
        path, authorization = handler.path, handler.headers.get("Authorization")
        if path.startswith("http://"):  # as a proxy is asked
            path = "/" + path.split("/", 3)[3]
            which = "proxy"
        self.requests.append((which, path, authorization, handler.headers.get("Range")))
        api, files = f"/api/models/{self.repository}/revision/", f"/{self.repository}/resolve/{self.commit}/"
        name = "" if path.startswith(api) else path.removeprefix(files)
        fault = self.faults.get(name, [])
        if fault and fault.pop(0)(handler):
            return
        if which != "storage" and self.token and authorization != "Bearer " + self.token:
            return self.send(handler, 401, X_Error_Message="Invalid username or password.")
        if path.startswith(api):
            if path.removeprefix(api).split("?")[0].replace("%2F", "/") not in self.revisions:
                return self.send(handler, 404, X_Error_Code="RevisionNotFound")
            return self.send(handler, 200, json.dumps(self.listing()).encode())
        if not path.startswith(files) or name not in self.files:
            return self.send(handler, 404, X_Error_Code="RepoNotFound")
        data, large = self.files[name]
        if which == "hub" and large and self.elsewhere:
            return self.send(handler, 302, Location=self.storage + path)
        self.send_file(handler, data)

    def send_file(self, handler, data, etag=None, stop=None, ignore_range=False, length=None, shift=0):
        """`stop`: the connection ends after so many bytes."""
        etag = etag or '"' + hashlib.sha256(data).hexdigest() + '"'
        begin, status, headers = 0, 200, {"ETag": etag}
        wanted, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
        if wanted and not ignore_range and condition in (None, etag):
            begin, status = int(wanted.removeprefix("bytes=").removesuffix("-")), 206
            headers["Content-Range"] = f"bytes {begin + shift}-{len(data) - 1}/{len(data)}"
        body = data[begin:]
        self.send(handler, status, body[:stop], len(body) if length is None else length, **headers)
        if stop is not None:
            handler.close_connection = True
            handler.connection.shutdown(2)


def status(number, **headers):
    def fault(handler):
        FakeHub.send(handler, number, b"no", **headers)
        return True
    return fault


def stall(seconds, data, after):
    def fault(handler):
        FakeHub.send(handler, 200, data[:after], len(data))
        time.sleep(seconds)
        handler.close_connection = True
        return True
    return fault
