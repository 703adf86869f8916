#!/usr/bin/env python3
"""Measures retrieval: BM25, dense and hybrid, nDCG@10 on collections in the BEIR layout.

    python evaluate.py --data DIR [--teacher] ../../embed/builtin/weights.bin [more weights files]

Long documents are chunked where the table below says so; a document's best chunk counts. Titles are
a part of the text in both channels; "titled" adds the title's own vector with weight 0.5, as
Model.EmbedTitled does. Hybrids are made of the best 100 of each channel.
"""
import argparse
import collections
import json
import math
import re

import numpy as np
from Stemmer import Stemmer

import model

# name: (folders that are averaged, whether documents are chunked)
COLLECTIONS = {
    "scifact": (["scifact"], False),
    "cranfield": (["cranfield"], False),
    "anthropic_docs": (["anthropic_docs"], True),
    "mtrag_un": (["mtrag_un/ibmcloud", "mtrag_un/fiqa"], False),
    "debian_faq": (["debian_faq"], False),
    "cisi": (["cisi"], False),
    "hotpotqa_small": (["hotpotqa_small"], False),
}
MAIN = ["scifact", "cranfield", "anthropic_docs", "mtrag_un", "debian_faq"]  # the others are a check
CHUNK = 256  # word pieces
DEPTH = 100
# Snowball's English stop words.
STOP = set(
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself "
    "it its itself they them their theirs themselves what which who whom this that these those am is are was were be "
    "been being have has had having do does did doing would should could ought i'm you're he's she's it's we're "
    "they're i've you've we've they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll isn't "
    "aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't shan't shouldn't can't cannot "
    "couldn't mustn't let's that's who's what's here's there's when's where's why's how's a an the and but if or "
    "because as until while of at by for with about against between into through during before after above below to "
    "from up down in out on off over under again further then once here there when where why how all any both each "
    "few more most other some such no nor not only own same so than too very".split()
)
stemmer = Stemmer("porter")


def analyse(text):
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("\u2019", "'"))
    return stemmer.stemWords([w for w in words if w not in STOP])


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def chunks(text, count):
    """Cuts at line ends, and within lines that are too long, into pieces of at most about CHUNK tokens."""
    out, current, size = [], [], 0
    for line in text.split("\n"):
        n = count(line)
        parts = [line]
        if n > CHUNK:
            words = line.split(" ")
            step = max(20, len(words) * CHUNK // n)
            parts = [" ".join(words[i : i + step]) for i in range(0, len(words), step)]
        for part in parts:
            n = count(part)
            if current and size + n > CHUNK:
                out.append("\n".join(current))
                current, size = [], 0
            current.append(part)
            size += n
    out.append("\n".join(current))
    return [c for c in out if c.strip()] or [""]


class Collection:
    def __init__(self, folder, chunked, count):
        judged = collections.defaultdict(dict)
        with open(folder + "/qrels.tsv", encoding="utf-8") as f:
            next(f)
            for line in f:
                query, doc, grade = line.rstrip("\n").split("\t")
                if float(grade) > 0:
                    judged[query][doc] = float(grade)
        docs = lines(folder + "/corpus.jsonl")
        queries = [q for q in lines(folder + "/queries.jsonl") if q["_id"] in judged]
        self.queries = [q["text"] for q in queries]
        self.grades = [judged[q["_id"]] for q in queries]
        self.ids = [d["_id"] for d in docs]
        self.texts, self.titles, self.doc = [], [], []
        for i, d in enumerate(docs):
            title, text = d.get("title") or "", d["text"]
            text = text.removeprefix(title).lstrip() if title else text
            for piece in chunks(text, count) if chunked else [text]:
                self.texts.append(title + "\n" + piece if title else piece)
                self.titles.append(title)
                self.doc.append(i)
        self.doc = np.array(self.doc)

    def by_document(self, scores):
        best = np.full((len(scores), len(self.ids)), -np.inf, np.float32)
        np.maximum.at(best.T, self.doc, scores.T)
        return best

    def bm25(self, k1, b):
        counts = [collections.Counter(analyse(t)) for t in self.texts]
        lengths = np.array([sum(c.values()) for c in counts], float)
        postings = collections.defaultdict(list)
        for i, c in enumerate(counts):
            for w, n in c.items():
                postings[w].append((i, n))
        scores = np.zeros((len(self.queries), len(counts)), np.float32)
        for q, text in enumerate(self.queries):
            for w, weight in collections.Counter(analyse(text)).items():
                if w in postings:
                    i, n = np.array(postings[w]).T
                    idf = math.log(1 + (len(counts) - len(i) + 0.5) / (len(i) + 0.5))
                    scores[q, i] += weight * idf * n * (k1 + 1) / (n + k1 * (1 - b + b * lengths[i] / lengths.mean()))
        return self.by_document(scores)

    def dense(self, encode, title_weight):
        texts = encode(self.texts)
        if title_weight:
            above = encode(self.titles) * np.array([t != "" for t in self.titles])[:, None]
            texts = texts + title_weight * above
            texts /= np.linalg.norm(texts, axis=1, keepdims=True)
        return self.by_document(encode(self.queries) @ texts.T)

    def ndcg(self, scores):
        values = []
        for row, grades in zip(rank(scores), self.grades):
            gain = sum(grades.get(self.ids[d], 0) / math.log2(r + 2) for r, d in enumerate(row[:10]))
            best = sum(g / math.log2(r + 2) for r, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
            values.append(gain / best)
        return float(np.mean(values))


def rank(scores):
    return np.argsort(-scores, axis=1, kind="stable")


def reciprocal(lexical, dense, weight, k):
    """Reciprocal rank fusion; weight is what the dense channel counts, the lexical one counts 1."""
    out = np.zeros(lexical.shape)
    for scores, w, floor in ((lexical, 1, 0), (dense, weight, -np.inf)):
        top = rank(scores)[:, :DEPTH]
        value = w / (k + 1 + np.arange(top.shape[1])) * (np.take_along_axis(scores, top, 1) > floor)
        np.put_along_axis(out, top, np.take_along_axis(out, top, 1) + value, 1)
    return out


def scaled(lexical, dense, share):
    """Scores of each channel, scaled so that its best is 1 and its last of DEPTH is 0; share is the dense channel's."""
    out = np.zeros(lexical.shape)
    for scores, w in ((lexical, 1 - share), (dense, share)):
        top = rank(scores)[:, :DEPTH]
        value = np.take_along_axis(scores, top, 1)
        low, high = value[:, -1:], value[:, :1]
        value = w * (value - low) / np.maximum(high - low, 1e-9)
        np.put_along_axis(out, top, np.take_along_axis(out, top, 1) + value, 1)
    return out


FUSIONS = {
    "RRF k=60, 1:1": lambda l, d: reciprocal(l, d, 1, 60),
    "RRF k=60, 1:0.5": lambda l, d: reciprocal(l, d, 0.5, 60),
    "RRF k=60, 1:0.25": lambda l, d: reciprocal(l, d, 0.25, 60),
    "RRF k=10, 1:0.5": lambda l, d: reciprocal(l, d, 0.5, 10),
    "RRF k=5, 1:0.5": lambda l, d: reciprocal(l, d, 0.5, 5),
    "scaled scores, 0.3": lambda l, d: scaled(l, d, 0.3),
    "scaled scores, 0.4": lambda l, d: scaled(l, d, 0.4),
    "scaled scores, 0.5": lambda l, d: scaled(l, d, 0.5),
}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--teacher", action="store_true", help="also the sentence transformer itself (slow)")
    ap.add_argument("weights", nargs="+")
    a = ap.parse_args()
    models = [(path.split("/")[-1], model.Static.read(path)) for path in a.weights]
    count, channels = models[0][1].count, [(name, m.encode) for name, m in models]
    if a.teacher:
        import teacher

        channels.append(("teacher", teacher.Teacher().encode))
    rows = collections.defaultdict(dict)
    for name, (folders, chunked) in COLLECTIONS.items():
        parts = [Collection(f"{a.data}/{f}", chunked, count) for f in folders]

        def put(label, scores):
            rows[label][name] = float(np.mean([p.ndcg(s) for p, s in zip(parts, scores)]))

        for k1, b in ((0.9, 0.4), (1.2, 0.75)):
            lexical = [p.bm25(k1, b) for p in parts]
            put(f"BM25 {k1}/{b}", lexical)
        for label, encode in channels:
            for kind, title_weight in (("", 0), (" titled", 0.5)):
                dense = [p.dense(encode, title_weight) for p in parts]
                put(label + kind, dense)
                for how, fuse in FUSIONS.items():
                    put(f"{label}{kind} + BM25, {how}", [fuse(l, d) for l, d in zip(lexical, dense)])
    print(f"{'':45s}", *(f"{n[:9]:>9s}" for n in COLLECTIONS), " mean of the first five")
    for label, r in rows.items():
        print(f"{label:45s}", *(f"{r[n]:9.4f}" for n in COLLECTIONS), f" {np.mean([r[n] for n in MAIN]):.4f}")


if __name__ == "__main__":
    main()
