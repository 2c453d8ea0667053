"""CPU seconds of `partita plan` of two builds in alternation, on plans of docs/planner.md: median ratio and spread.

usage: plan_seconds.py OLD NEW [--pairs 15]
The new build keeps no memory in reserve, as the old one knows none.
"""
import argparse
import os
import statistics
import subprocess

PLANS = {
    "GPT-3, batch 1536": "gpt3-175b --cluster 64x8xA100-80GB --memory 80GiB --dtype bf16 --batch 1536",
    "GPT-3, batch 512": "gpt3-175b --cluster 64x8xA100-80GB --memory 80GiB --dtype bf16 --batch 512",
    "GPT-3, master copies": "gpt3-175b --cluster 64x8xA100-80GB --memory 80GiB --precision bf16 --batch 512",
    "GPT-3, float32": "gpt3-175b --cluster 64x8xA100-80GB --memory 80GiB --batch 512",
    "Llama-3.1 405B": "llama-3.1-405b --cluster 2048x8xH100-80GB --memory 80GiB --dtype bf16 --batch 16384",
}


def cpu_seconds(command):
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("old")
    flags.add_argument("new")
    flags.add_argument("--pairs", type=int, default=15)
    args = flags.parse_args()
    for name, words in PLANS.items():
        old, new = [args.old, "plan", *words.split()], [args.new, "plan", *words.split(), "--reserve", "0", "--strict"]
        pairs = [(cpu_seconds(old), cpu_seconds(new)) for _ in range(args.pairs)]
        ratios = sorted(after / before for before, after in pairs)
        print(f"{name:22} old {statistics.median(a for a, _ in pairs):.2f} s, new {statistics.median(b for _, b in pairs):.2f} s, "
              f"median ratio {statistics.median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
