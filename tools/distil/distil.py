#!/usr/bin/env python3
"""Makes the weights of embed/builtin: static token vectors fitted to a sentence transformer.

    python distil.py --pairs pairs.jsonl --work DIR --out ../../embed/builtin

1. Model2Vec: each piece of the vocabulary through the teacher, rotated to fewer dimensions, frequent
   pieces made shorter. This is where the fit starts, and what rare pieces stay near to.
2. Teacher vectors of a sample of the pairs (kept in --work, so that a second run starts at 3).
3. Fit by gradient descent: a text is the sum of its pieces' vectors, scaled to length 1. The loss has
   three parts over batches of (title or sentence, passage) pairs:
   - the similarities within the batch, of queries and passages and of passages among each other, are
     to be distributed as the teacher's are (KL divergence);
   - each query is to find its own passage among the batch's, and the passage its query (InfoNCE);
   - each text is to point where the teacher's vector points (cosine).
   Pairs without teacher vectors have the second part only. Half of the batches come from one source
   each, which makes their other passages harder to tell apart.
4. Pieces that English text does not need are dropped, rows are rounded to int8, and the golden file
   of the Go tests is written.
"""
import argparse
import collections
import json
import os
import random
import re
import unicodedata

import numpy as np
import torch
import torch.nn.functional as F

import model
import teacher

NAME = "assay-static-v1"
SEED, DIMS = 1, 320
SAMPLE = 66_000  # pairs that get teacher vectors, besides all those with
SHORT = 45  # fewer words in the passage than this
BATCH, STEPS, RATE = 1024, 1500, 0.05
WITH_TEACHER, ONE_SOURCE, SENTENCE = 0.7, 0.5, 0.4  # shares of batches, batches, queries
STUDENT, TEACHER = 0.05, 0.04  # temperatures; the teacher's sharper
NCE = 0.3  # weight of the second part where there are all three
PASSAGE_TOKENS, QUERY_TOKENS = 110, 190


def load_pairs(path):
    """The pairs in a fixed random order; half of the longer passages also get one of their sentences, as a query."""
    rnd = random.Random(11)
    with open(path, encoding="utf-8") as f:
        pairs = [json.loads(line) for line in f]
    rnd.shuffle(pairs)
    for x in pairs:
        sentences = [s for s in re.split(r"(?<=[.!?])\s+", x["p"]) if 6 <= len(s.split()) <= 40]
        x["s"] = rnd.choice(sentences) if len(sentences) >= 3 and rnd.random() < 0.5 else ""
    return pairs


def teacher_vectors(pairs, work):
    """Arrays of (q, s, p) vectors for the pairs of the sample; rows of zeros elsewhere. Slices are kept in work."""
    out = np.zeros((3, len(pairs), teacher.DIMS), np.float16)
    todo = [i for i, x in enumerate(pairs) if i < SAMPLE or len(x["p"].split()) < SHORT]
    net = None
    for n, at in enumerate(range(0, len(todo), 4000)):
        now, path = todo[at : at + 4000], f"{work}/teacher{n:04d}.npy"
        if not os.path.exists(path):
            net = net or teacher.Teacher()
            texts = [pairs[i][key] for key in "qsp" for i in now]
            vectors = net.encode(texts, tokens=112).reshape(3, len(now), -1)
            np.save(path, vectors.astype(np.float16))
            print(f"teacher: {at + len(now)} of {len(todo)} pairs", flush=True)
        out[:, now] = np.load(path)
    known = np.zeros(len(pairs), bool)
    known[todo] = True
    return out, known


def rotation(vectors):
    """The directions that keep most of the vectors' squared length; not centred, so that cosines are kept."""
    x = vectors.astype(np.float32)
    return np.linalg.eigh(x.T @ x)[1][:, ::-1][:, :DIMS].copy()


def model2vec(tokens, rotate, frequency):
    x = tokens @ rotate
    x = (x - x.mean(0)) * (1e-3 / (1e-3 + frequency))[:, None]
    return x / (10 * np.abs(x).std())


def fit(pairs, ids, vectors, known, start, rotate):
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    q_ids, s_ids, p_ids = ids
    q_vec, s_vec, p_vec = vectors
    titles = collections.Counter(x["q"] for x in pairs)
    telling = np.array([titles[x["q"]] <= 3 for x in pairs])  # "Description" finds nothing
    source = np.array([x["src"] for x in pairs])
    usable = np.array([i for i in range(len(pairs)) if len(p_ids[i]) > 2])

    def pools(of, least):
        groups = [of[source[of] == s] for s in sorted(set(source[of]))]
        groups = [g for g in groups if len(g) >= least]
        sizes = np.array([len(g) for g in groups], float)
        return of, groups, sizes / sizes.sum()

    everything, taught = pools(usable, BATCH // 3), pools(usable[known[usable]], BATCH // 4)
    weights = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    rate = RATE * float(weights.detach().std())
    optimiser = torch.optim.Adam([weights], lr=rate, betas=(0.9, 0.99), eps=1e-10)
    turn = torch.tensor(rotate)

    def embed(texts):
        offsets = np.cumsum([0] + [len(t) for t in texts[:-1]])
        sums = F.embedding_bag(torch.from_numpy(np.concatenate(texts)), weights, torch.from_numpy(offsets), mode="sum")
        return F.normalize(sums, dim=1)

    def float32(rows):
        return torch.from_numpy(rows.astype(np.float32))

    for step in range(STEPS):
        for g in optimiser.param_groups:
            g["lr"] = rate * min(1, (step + 1) / 50) * (0.49 * (1 + np.cos(np.pi * step / STEPS)) + 0.02)
        with_teacher = rng.random() < WITH_TEACHER
        pool, groups, share = taught if with_teacher else everything
        if rng.random() < ONE_SOURCE:
            pool = groups[rng.choice(len(groups), p=share)]
        batch = rng.choice(pool, min(BATCH, len(pool)), replace=False)
        sentence = np.array([len(s_ids[i]) > 0 and (rng.random() < SENTENCE or not telling[i]) for i in batch])
        queries = [s_ids[i] if s else q_ids[i] for i, s in zip(batch, sentence)]
        full = np.array([len(x) > 0 for x in queries])
        batch, sentence, queries = batch[full], sentence[full], [x for x in queries if len(x)]

        q, p = embed(queries), embed([p_ids[i] for i in batch])
        similar = q @ p.T / STUDENT
        fair = torch.from_numpy(telling[batch] | sentence)
        own = torch.arange(len(batch))[fair]
        nce = (F.cross_entropy(similar[fair], own) + F.cross_entropy(similar.T[fair], own)) / 2
        loss = nce
        if with_teacher:
            tq = float32(np.where(sentence[:, None], s_vec[batch], q_vec[batch]))
            tp = float32(p_vec[batch])
            wanted = tq @ tp.T / TEACHER
            own = torch.eye(len(batch), dtype=torch.bool)
            among = (p @ p.T / STUDENT).masked_fill(own, -1e4)
            wanted_among = (tp @ tp.T / TEACHER).masked_fill(own, -1e4)
            kl = sum(
                F.kl_div(F.log_softmax(a, 1), F.softmax(b, 1), reduction="batchmean")
                for a, b in ((similar, wanted), (similar.T, wanted.T), (among, wanted_among))
            )
            direction = 2 - F.cosine_similarity(q, tq @ turn).mean() - F.cosine_similarity(p, tp @ turn).mean()
            loss = kl + NCE * nce + direction
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if (step + 1) % 100 == 0:
            print(f"fit: {step + 1} of {STEPS} steps, loss {loss.item():.3f}", flush=True)
    return weights.detach().numpy()


def needed(piece):
    """Whether English text needs a piece: no reserved one, and none of a script that takes more than a few letters."""
    if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
        return piece == "[UNK]"
    letters = [c for c in piece if c.isalpha() and ord(c) > 127]
    return all(
        unicodedata.name(c, "").split(" ")[0] in ("LATIN", "GREEK", "MICRO", "FEMININE", "MASCULINE") for c in letters
    )


def golden(path, pieces, vectors):
    """Texts with the ids of the tokenizers library and, for some, the vectors before rounding."""
    static = model.Static(pieces, vectors)
    with open(os.path.dirname(os.path.abspath(__file__)) + "/golden.txt", encoding="utf-8") as f:
        texts = f.read().split("\n")  # the last one is empty
    texts += [
        "tab\tnew\nline\r\nno\u00a0break\u200bzero\ufeffwidth\u0000nul\u2028separator\u3000ideographic",
        "I\u0307stanbul e\u0301tude \u00ad soft\u00adhyphen a\u0308\u0323\u0301",
        "a" * 100,
        "b" * 101,
    ]
    with open(path, "w", encoding="utf-8") as f:
        for i, (text, e, v) in enumerate(zip(texts, static.tokenizer.encode_batch(texts), static.encode(texts))):
            line = {"text": text, "ids": e.ids}
            if i < 16:
                line["vector"] = [round(float(x), 5) for x in v]
            f.write(json.dumps(line, ensure_ascii=False) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pairs", required=True, help="what corpus.py wrote")
    ap.add_argument("--work", required=True, help="a folder for what a second run can use again")
    ap.add_argument("--out", required=True, help="the folder of the Go package")
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    os.makedirs(a.work, exist_ok=True)
    os.makedirs(a.out + "/testdata", exist_ok=True)

    pairs, pieces = load_pairs(a.pairs), teacher.pieces()
    vectors, known = teacher_vectors(pairs, a.work)
    cut = model.tokenizer(pieces)
    ids = [
        [np.array(e.ids[:most], np.int64) for e in cut.encode_batch([x[key] for x in pairs])]
        for key, most in (("q", QUERY_TOKENS), ("s", QUERY_TOKENS), ("p", PASSAGE_TOKENS))
    ]
    frequency = np.bincount(np.concatenate(ids[2]), minlength=len(pieces)) + 1.0
    first = np.flatnonzero(known)
    rotate = rotation(np.concatenate([vectors[2, first[:30_000]], vectors[0, first[:15_000]]]))
    start = model2vec(teacher.Teacher().tokens(len(pieces)), rotate, frequency / frequency.sum())
    model.write(a.work + "/model2vec.bin", NAME + "-start", pieces, start)
    fitted = fit(pairs, ids, vectors, known, start, rotate)
    np.save(a.work + "/fitted.npy", fitted)

    # The vector of an unknown text points away from the mean of texts.
    texts = [x["p"] for x in pairs[:20_000]]
    mean = model.Static(pieces, fitted).encode(texts).mean(0)
    fitted[pieces.index("[UNK]")] = -mean * np.linalg.norm(fitted, axis=1).mean() / np.linalg.norm(mean)
    keep = [i for i, p in enumerate(pieces) if needed(p)]
    pieces, fitted = [pieces[i] for i in keep], fitted[keep]
    model.write(a.out + "/weights.bin", NAME, pieces, fitted)
    golden(a.out + "/testdata/golden.jsonl", pieces, fitted)
    print(f"{len(pieces)} pieces of {DIMS} dimensions")


if __name__ == "__main__":
    main()
