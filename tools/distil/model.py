"""The static model in Python: reading and writing the weights file, and embedding with it.

The layout of the file is described in embed/builtin/load.go.
"""

import struct

import numpy as np
import scipy.sparse
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

MAGIC, VERSION, HEADER = b"ASSAYVEC", 1, 64


def tokenizer(pieces):
    """BERT's uncased tokenizer over these pieces; it adds no special tokens."""
    t = Tokenizer(
        models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return t


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def quantise(vectors):
    """int8 rows and a uint16 scale for each: row * scale is the vector, up to one factor for all."""
    peak = np.abs(vectors).max(1)
    scales = np.clip(np.rint(peak / peak.max() * 65535), 1, 65535).astype(np.uint16)
    rows = vectors / (scales[:, None] * (peak.max() / 65535 / 127))
    return np.clip(np.rint(rows), -127, 127).astype(np.int8), scales


def write(path, name, pieces, vectors):
    rows, scales = quantise(vectors)
    vocabulary = ("\n".join(pieces) + "\n").encode()
    tail = struct.pack("<III36s", len(pieces), vectors.shape[1], len(vocabulary), name.encode())
    tail += vocabulary + scales.astype("<u2").tobytes() + rows.tobytes()
    with open(path, "wb") as f:
        f.write(MAGIC + struct.pack("<II", VERSION, crc32c(tail)) + tail)


class Static:
    def __init__(self, pieces, vectors):
        self.vectors = vectors.astype(np.float32)
        self.tokenizer = tokenizer(pieces)
        self.unknown = pieces.index("[UNK]")

    @classmethod
    def read(cls, path):
        with open(path, "rb") as f:
            file = f.read()
        n, dims, size = struct.unpack_from("<III", file, 16)
        pieces = file[HEADER : HEADER + size].decode().split("\n")[:-1]
        at = HEADER + size
        scales = np.frombuffer(file, "<u2", n, at)
        rows = np.frombuffer(file, np.int8, n * dims, at + 2 * n).reshape(n, dims)
        return cls(pieces, rows * scales[:, None].astype(np.float32))

    def count(self, text):
        return len(self.tokenizer.encode(text).ids)

    def encode(self, texts):
        """Unit vectors, a row for each text."""
        ids = [[i for i in e.ids if i != self.unknown] or [self.unknown] for e in self.tokenizer.encode_batch(texts)]
        rows = np.repeat(np.arange(len(ids)), [len(x) for x in ids])
        counts = scipy.sparse.csr_matrix(
            (np.ones(len(rows), np.float32), (rows, np.concatenate(ids))), (len(ids), len(self.vectors))
        )
        sums = counts @ self.vectors
        return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
