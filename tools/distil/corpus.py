#!/usr/bin/env python3
"""Makes the text for the fit, pairs of a title and a passage, out of unpacked Debian packages.

    python corpus.py DEBS PAIRS     DEBS is what fetch.sh made
    PAIRS gets one JSON object a line: src, q, p
    python corpus.py                prints the names of the packages

The sampling depends on SEED alone.
"""
import glob
import gzip
import hashlib
import json
import os
import random
import re
import sys

import lxml.etree
import lxml.html

SEED, WORDS = 7, 90
HEAD = {"h1", "h2", "h3", "h4", "h5", "h6", "dt"}
SKIP = {"script", "style", "nav", "head", "footer", "form", "svg", "noscript", "button", "table"}
BLOCK = {
    "p",
    "div",
    "li",
    "pre",
    "dd",
    "section",
    "ul",
    "ol",
    "blockquote",
    "body",
    "article",
    "main",
    "br",
    "td",
    "tr",
}


def clean(s):
    return re.sub(r"\s+", " ", s.replace("\u00b6", " ").replace("\uf0c1", " ").replace("\u00a0", " ")).strip()


def cut(s):
    """Cuts s at sentence ends into pieces of about WORDS words."""
    out, cur = [], []
    for sent in re.split(r"(?<=[.!?:])\s+", s):
        w = sent.split()
        if cur and len(cur) + len(w) > WORDS:
            out.append(" ".join(cur))
            cur = []
        cur += w[: 2 * WORDS]
    if cur:
        out.append(" ".join(cur))
    return out


def prose(s):
    """Whether s reads like text rather than a listing."""
    return len(s) > 40 and sum(ch.isalpha() or ch == " " for ch in s) / len(s) > 0.82


def read(path):
    f = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
    with f:
        return f.read()


def html(path):
    try:
        root = lxml.html.document_fromstring(read(path).decode("utf-8", "replace").encode())
    except Exception:
        return
    page = clean(root.findtext(".//title") or "")
    for sep in (" \u2014 ", " - Apache", " | ", " :: "):
        page = page.split(sep)[0]
    head, buf, out = page, [], []

    def flush():
        s = clean("".join(buf))
        buf.clear()
        if s:
            out.append((head, s))

    def walk(e):
        nonlocal head
        if not isinstance(e.tag, str) or e.tag in SKIP:
            return
        cls = e.get("class") or ""
        if "sphinxsidebar" in cls or "navheader" in cls or "navfooter" in cls or "related" == cls or "toc" == cls:
            return
        if e.tag in HEAD:
            flush()
            head = re.sub(r"^([A-Z]?\d+[.\d]*\.?|Chapter \d+\.|Appendix [A-Z]\.)\s*", "", clean(e.text_content()))
            return
        if e.tag in BLOCK:
            buf.append(" ")
        if e.text:
            buf.append(e.text)
        for c in e:
            walk(c)
            if c.tail:
                buf.append(c.tail)
        if e.tag in BLOCK:
            buf.append(" ")

    body = root.find(".//body")
    if body is None:
        return
    sys.setrecursionlimit(20000)
    walk(body)
    flush()
    for h, s in out:
        q = h if len(h.split()) > 2 or page == h or not page else page + " " + h
        for p in cut(s):
            yield q, p


def rst(path):
    s = read(path).decode("utf-8", "replace")
    parts = re.split(r'\n([^\n]{4,90})\n[=\-~^*#"]{4,}\n', s)
    for h, b in zip(parts[1::2], parts[2::2]):
        b = re.sub(r"\n\.\. [^\n]*(\n[ \t]+[^\n]*)*", "\n", "\n" + b)
        b = re.sub(r"::?[\w+-]*:?`([^`<]*)(<[^>]*>)?`", r"\1", b)
        b = re.sub(r"[`*|]+", "", b)
        for p in cut(clean(b)):
            yield clean(h.replace("`", "")), p


def mallard(path):
    """GNOME help: XML with one title a section."""
    try:
        root = lxml.etree.fromstring(read(path))
    except Exception:
        return
    for sec in root.iter("{*}page", "{*}section", "{*}sect1", "{*}sect2", "{*}chapter"):
        t = sec.find("{*}title")
        if t is None:
            continue
        s = clean(
            " ".join(clean("".join(p.itertext())) for p in sec.iterfind("{*}p"))
            + " "
            + " ".join(clean("".join(p.itertext())) for p in sec.iterfind(".//{*}item/{*}p"))
        )
        for p in cut(s):
            yield clean("".join(t.itertext())), p


def wordnet(d):
    for pos in ("noun", "verb", "adj", "adv"):
        for l in open(f"{d}/usr/share/wordnet/data.{pos}", encoding="latin-1"):
            if l.startswith("  "):
                continue
            f, g = l.split(" | ", 1)
            w = f.split()
            n = int(w[3], 16)
            yield ", ".join(w[4 + 2 * i].replace("_", " ").split("(")[0] for i in range(min(n, 4))), clean(
                g.replace('"', "")
            )


def obo(path):
    for st in read(path).decode("utf-8", "replace").split("\n[Term]\n")[1:]:
        n = re.search(r"^name: (.*)", st, re.M)
        d = re.search(r'^def: "((?:[^"\\]|\\.)*)"', st, re.M)
        if n and d and "is_obsolete: true" not in st:
            syn = re.findall(r'^synonym: "([^"]{4,80})" EXACT', st, re.M)[:2]
            yield ", ".join([n[1]] + syn[:1]), clean(d[1].replace("\\", ""))


def dictd(base):
    s = gzip.decompress(open(base + ".dict.dz", "rb").read()).decode("utf-8", "replace")
    for e in re.split(r"\n(?=\S)", s):
        h, _, b = e.partition("\n")
        h = re.split(r"\s+[\\<{\[/(]|\s{2,}", h)[0].strip(" {}")
        b = re.sub(r"\[(1913 Webster|PJC|WordNet [\d.+]*|[^\]]{0,24})\]", " ", b)
        b = re.sub(r"[{}\\]", "", b)
        for p in cut(clean(b))[:3]:
            if 1 < len(h) < 60:
                yield h, p


def descriptions(path):
    """Translation-en of the Debian archive: a short line and a long text for each package."""
    for st in read(path).decode("utf-8", "replace").split("\n\n"):
        m = re.search(r"^Description-en: (.*)\n((?: .*\n?)*)", st, re.M)
        if m:
            b = clean(re.sub(r"^ \.?", " ", m[2], flags=re.M))
            ps = cut(b)
            if ps:
                yield m[1], ps[0]


# package: (cap, reader, globs); caps keep any one subject from ruling the fit.
SRC = [
    (
        "gnucash-docs",
        4000,
        html,
        [
            "usr/share/doc/gnucash-docs/gnucash-guide/*.html",
            "usr/share/doc/gnucash-docs/gnucash-help/*.html",
            "usr/share/doc/gnucash-docs/C/**/*.html",
            "usr/share/doc/gnucash-docs/gnucash-*-en/*.html",
        ],
    ),
    ("anarchism", 9000, html, ["usr/share/doc/anarchism/html/*.html"]),
    ("debian-handbook", 3000, html, ["usr/share/doc/debian-handbook/html/en-US/*.html"]),
    ("apache2-doc", 3000, html, ["usr/share/doc/apache2-doc/manual/en/**/*.html"]),
    ("postgresql-doc-15", 6000, html, ["usr/share/doc/postgresql-doc-15/html/*.html"]),
    ("python3.11-doc", 6000, html, ["usr/share/doc/python3.11/html/**/*.html"]),
    (
        "python-sklearn-doc",
        4000,
        html,
        ["usr/share/doc/python-sklearn-doc/html/modules/*.html", "usr/share/doc/python-sklearn-doc/**/html/*.html"],
    ),
    (
        "python-statsmodels-doc",
        2000,
        html,
        [
            "usr/share/doc/python-statsmodels-doc/html/*.html",
            "usr/share/doc/python-statsmodels-doc/html/examples/**/*.html",
        ],
    ),
    ("python-scipy-doc", 3000, html, ["usr/share/doc/python-scipy-doc/html/**/*.html"]),
    (
        "python-pandas-doc",
        2000,
        html,
        ["usr/share/doc/python-pandas-doc/html/user_guide/*.html", "usr/share/doc/python-pandas-doc/html/**/*.html"],
    ),
    ("python-django-doc", 4000, html, ["usr/share/doc/python-django-doc/html/**/*.html"]),
    ("python-skbio-doc", 1500, html, ["usr/share/doc/**/*.html"]),
    ("libreoffice-help-en-us", 5000, html, ["usr/**/*.html"]),
    ("gnome-user-docs", 4000, mallard, ["usr/share/help/C/**/*.page"]),
    ("installation-guide-amd64", 1500, html, ["usr/share/doc/installation-guide-amd64/en/*.html"]),
    ("sqlite3-doc", 5000, html, ["usr/share/doc/sqlite3-doc/**/*.html", "usr/share/doc/sqlite3/**/*.html"]),
    ("exim4-doc-html", 1500, html, ["usr/share/doc/**/*.html"]),
    ("postfix-doc", 1500, html, ["usr/share/doc/**/*.html"]),
    ("git-doc", 4000, html, ["usr/share/doc/git/html/*.html", "usr/share/doc/git-doc/**/*.html"]),
    ("erlang-doc", 2000, html, ["usr/share/**/*.html"]),
    (
        "rust-doc",
        4000,
        html,
        [
            "usr/share/doc/rust-doc/html/book/*.html",
            "usr/share/doc/rust/html/book/*.html",
            "usr/share/doc/rust-doc/html/reference/*.html",
            "usr/share/doc/rust/html/**/book/*.html",
        ],
    ),
    (
        "linux-doc-6.1",
        9000,
        rst,
        [
            "usr/share/doc/linux-doc-6.1/Documentation/[a-s]*/**/*.rst.gz",
            "usr/share/doc/linux-doc-6.1/Documentation/userspace-api/**/*.rst.gz",
        ],
    ),
    ("maxima-doc", 2000, html, ["usr/share/**/*.html"]),
    ("octave-doc", 3000, html, ["usr/share/doc/**/*.html"]),
    ("developers-reference", 1000, html, ["usr/share/**/*.html"]),
    ("debian-policy", 1500, html, ["usr/share/**/*.html"]),
    ("debian-reference-en", 1500, html, ["usr/share/**/*.html"]),
    ("r-doc-html", 1500, html, ["usr/share/**/*.html"]),
    ("wordnet-base", 26000, wordnet, None),
    ("emboss-data", 12000, obo, ["usr/share/EMBOSS/data/OBO/go.obo"]),
    ("emboss-data", 4000, obo, ["usr/share/EMBOSS/data/OBO/chebi.obo"]),
    ("emboss-data", 5000, obo, ["usr/share/EMBOSS/data/OBO/%s.obo" % x for x in ("so", "pathway", "eco", "ro")]),
    ("dict-gcide", 14000, dictd, ["gcide"]),
    ("dict-foldoc", 9000, dictd, ["foldoc"]),
    ("dict-jargon", 3000, dictd, ["jargon"]),
    ("descriptions", 20000, descriptions, None),
]


def main(debs, out):
    rnd, seen, n = random.Random(SEED), set(), {}
    with open(out, "w") as w:
        for pkg, cap, fn, globs in SRC:
            d = f"{debs}/{pkg}"
            if fn is wordnet:
                pairs = list(fn(d))
            elif fn is descriptions:
                pairs = [x for p in sorted(glob.glob(d + "/*")) for x in fn(p)]
            elif fn is dictd:
                pairs = list(fn(f"{d}/usr/share/dictd/{globs[0]}"))
            else:
                pairs = [x for g in globs for p in sorted(glob.glob(f"{d}/{g}", recursive=True))[:20000] for x in fn(p)]
            rnd.shuffle(pairs)
            k = 0
            for q, p in pairs:
                if not prose(p) or not 2 < len(q) < 200 or len(p.split()) < 4:
                    continue
                if fn in (html, rst, mallard) and len(p.split()) < 15:
                    continue
                h = hashlib.md5(p[:150].encode()).digest()
                if h in seen:
                    continue
                seen.add(h)
                k += 1
                w.write(
                    json.dumps(
                        {"src": pkg + (":" + os.path.basename(globs[0]) if fn is obo else ""), "q": q[:200], "p": p},
                        ensure_ascii=False,
                    )
                    + "\n"
                )
                if k >= cap:
                    break
            print(f"{pkg:28s}{k:7d} of {len(pairs)}", flush=True)


if len(sys.argv) == 1:
    print(*sorted({pkg for pkg, *_ in SRC if pkg != "descriptions"}))
else:
    main(*sys.argv[1:])
