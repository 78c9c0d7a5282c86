"""Writes trec_eval.json: random runs and judgements, and what trec_eval says of each.

python3 -m venv VENV && VENV/bin/pip install pytrec_eval-terrier==0.5.11 && VENV/bin/python trec_eval.py > trec_eval.json

pytrec_eval-terrier calls the C code of trec_eval 9. It leaves out queries that the run or the judgements do not have: they
count 0, as trec_eval -c does it. recip_rank is taken of the first k, as trec_eval -M k does it.
"""

import json
import random

import pytrec_eval


def in_order(run):
    return sorted(run, key=lambda name: (run[name], name), reverse=True)


def evaluated(judgements, run, measure):
    of_run = pytrec_eval.RelevanceEvaluator({"q": judgements}, {measure}).evaluate({"q": run})
    return of_run.get("q", {}).get(measure.replace(".", "_"), 0.0) if judgements and run else 0.0


def case(source):
    k = source.choice([1, 3, 5, 10, 20])
    names = [f"d{number}" for number in range(source.choice([4, 12, 40]))]
    grades = source.choice([[0, 1], [0, 1, 2, 3], [-2, -1, 0, 1, 2], [0], [-1, 0]])
    judgements = {name: source.choice(grades) for name in names if source.random() < 0.4}
    if judgements and max(judgements.values()) < 0:
        # trec_eval itself crashes where all grades are below -1.
        judgements[names[0]] = 0
    if source.random() < 0.05:
        judgements = {}
    found = [name for name in names + ["x1", "x2", "x3"] if source.random() < source.choice([0.0, 0.5, 0.9])]
    # Few different scores: ties. Quarters are exact as floats, which trec_eval has.
    scores = source.choice([3, 1000])
    run = {name: source.randrange(scores) / 4 for name in found}
    first = {name: run[name] for name in in_order(run)[:k]}
    return {
        "k": k,
        "judgements": judgements,
        "run": run,
        "expected": [
            evaluated(judgements, run, f"recall.{k}"),
            evaluated(judgements, run, f"P.{k}"),
            evaluated(judgements, first, "recip_rank"),
            evaluated(judgements, run, "ndcg_cut.10"),
        ],
    }


source = random.Random(20)
print("[" + ",\n".join(json.dumps(case(source), separators=(",", ":")) for _ in range(300)) + "]")
