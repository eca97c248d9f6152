"""A seat in a process of its own, in the standard library only. Put your own agent into `decide`.

Over standard input and output: [remote] command = ["python3", "examples/remote_agent.py"].
Over HTTP: run it with a port, and [remote] url = "http://127.0.0.1:PORT/".
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


def decide(question: dict) -> dict:
    """Answer one question; here the first possible action whose name promises fewer dollars."""
    legal = question["legal"]
    wanted = [name for name in legal if name.startswith(("scale_down", "optimize"))] or legal
    offered = question["payload"].get("candidates", [])
    return {
        "id": question["id"],
        "proposals": [{"action": wanted[0], "rationale": "the cheapest that I know"}],
        "choice": offered[0] if offered else "",
        "accept": True,
    }


class Handler(BaseHTTPRequestHandler):
    """One POST, one answer."""

    def do_POST(self) -> None:
        """Read a question, write the answer."""
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(decide(question)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    for line in sys.stdin:
        print(json.dumps(decide(json.loads(line))), flush=True)
