"""regard's attention backward beside PyTorch's on the CPU: peers_backward.py REGARD [--rounds N] [--threads N]

float32, one sequence of 2048, 4 heads of 64 and of 128 channels, causal and not. In turn, several rounds; both sides count
2.5 times the operations of forward, the exact triangle where causal. Printed, a JSON line per shape: medians of GFLOP/s,
the median of the ratios of each round, and how far PyTorch's gradients are from float64 (regard's own are in its figures).
Needs torch 2.15 in the Python that runs this.
"""
import argparse, json, statistics, subprocess, time
import torch
import torch.nn.functional as F

args = argparse.ArgumentParser(description=__doc__)
args.add_argument("regard"); args.add_argument("--rounds", type=int, default=5); args.add_argument("--threads", type=int, default=2)
args = args.parse_args()
torch.set_num_threads(args.threads)
H, S = 4, 2048

class Peer:
    def __init__(self, D, causal):
        torch.manual_seed(13)
        self.inputs = [torch.randn(1, H, S, D, requires_grad=True) for _ in range(3)]
        self.out = F.scaled_dot_product_attention(*self.inputs, is_causal=causal)
        self.d_out = torch.randn_like(self.out)
        self.work = 10 * H * D * (S * (S + 1) / 2 if causal else S * S) / 1e9
        self.causal = causal
    def gradients(self):
        return torch.autograd.grad(self.out, self.inputs, self.d_out, retain_graph=True)
    def speed(self, repetitions=9):
        times = []
        for _ in range(repetitions):
            start = time.perf_counter(); self.gradients(); times.append(time.perf_counter() - start)
        return self.work / statistics.median(times)
    def error(self):
        wide = [x.detach().double().requires_grad_() for x in self.inputs]
        out = F.scaled_dot_product_attention(*wide, is_causal=self.causal)
        truth = torch.autograd.grad(out, wide, self.d_out.double())
        return max((a - b).abs().max().item() for a, b in zip(self.gradients(), truth))

def regard_lines():
    done = subprocess.run([args.regard, "bench", "--only", "attention backward", "--json", "--threads", str(args.threads)],
                          check=True, capture_output=True)
    return json.loads(done.stdout)["lines"]

peers = [Peer(D, causal) for D in (64, 128) for causal in (False, True)]
for peer in peers: peer.gradients()
rounds = [([peer.speed() for peer in peers], regard_lines()) for _ in range(args.rounds)]
median = lambda values: round(statistics.median(values), 2)
for i, peer in enumerate(peers):
    theirs, ours = [r[0][i] for r in rounds], [r[1][i] for r in rounds]
    print(json.dumps({"peer": "pytorch " + torch.__version__, "shape": ours[0]["shape"], "threads": args.threads,
                      "pytorch": median(theirs), "regard": median([line["figure"] for line in ours]),
                      "ratio": median([line["figure"] / speed for line, speed in zip(ours, theirs)]),
                      "regard of peak": median([line["fraction"] for line in ours]),
                      "pytorch error": float("%.2g" % peer.error()), "regard error": float("%.2g" % ours[0]["error"])}))
