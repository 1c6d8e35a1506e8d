"""The first 64 bits of md5 of many texts.

``hashlib`` hashes one text at a time, a call each. Most names are short and plain, so here the 64
steps of md5 (RFC 1321) are taken for some thousand of them at once; any other text goes to hashlib.
"""

from __future__ import annotations

from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["md5_bits"]

Bits = NDArray[np.uint64]
Words = NDArray[np.uint32]

_BLOCK = 8192  # texts that stay in the cache
_MANY = 500  # for fewer, a call each is faster
_LONGEST = 55  # bytes of a message that leaves room for its end in one chunk of 64

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = [int(abs(np.sin(i + 1)) * 2**32) for i in range(64)]
_TURNS = [(7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21)]
_WORD_OF = [(1, 0), (5, 1), (3, 5), (7, 0)]  # step i of each quarter reads word (a·i + b) mod 16


def md5_bits(texts: NDArray[np.str_]) -> Bits:
    """Return the first eight bytes of md5 of each text in UTF-8, as little-endian numbers.

    Examples
    --------
    >>> [hex(bits) for bits in md5_bits(np.array(["", "a"])).tolist()]
    ['0x4b2008fd98c1dd4', '0xa8b6f1c0b975c10c']
    """
    bits = np.empty(texts.size, np.uint64)
    width = texts.dtype.itemsize // 4
    for at in range(0, texts.size, _BLOCK):
        some = np.ascontiguousarray(texts[at : at + _BLOCK])
        if 0 < width <= _LONGEST and some.size >= _MANY:
            codes = some.view(np.uint32).reshape(some.size, width)
            if codes.max() < 128:
                bits[at : at + _BLOCK] = _of_short(codes)
                continue
        bits[at : at + _BLOCK] = _one_by_one(some.tolist())
    return bits


def _one_by_one(texts: list[str]) -> Bits:
    digests = b"".join(md5(text.encode(), usedforsecurity=False).digest()[:8] for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _of_short(codes: Words) -> Bits:
    """Hash texts given as rows of ASCII codes, filled up with zeros behind their ends."""
    words = _messages(codes)
    a, b, c, d = (np.full(len(codes), one, np.uint32) for one in _START)
    spare = np.empty_like(a)
    for i in range(64):
        mixed = _mixed(i // 16, b, c, d)
        mixed += a
        mixed += np.uint32(_SINES[i])
        factor, first = _WORD_OF[i // 16]
        mixed += words[(factor * i + first) % 16]
        turn = _TURNS[i // 16][i % 4]
        np.right_shift(mixed, np.uint32(32 - turn), out=spare)
        mixed <<= np.uint32(turn)
        mixed |= spare
        mixed += b
        a, b, c, d = d, mixed, b, c
    low, high = a + np.uint32(_START[0]), b + np.uint32(_START[1])
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


def _mixed(quarter: int, b: Words, c: Words, d: Words) -> Any:
    """Return the function of three words that a quarter of the steps uses."""
    if quarter == 0:  # c where b has a 1, d elsewhere
        return ((c ^ d) & b) ^ d
    if quarter == 1:  # b where d has a 1, c elsewhere
        return ((b ^ c) & d) ^ c
    if quarter == 2:
        return b ^ c ^ d
    return (~d | b) ^ c


def _messages(codes: Words) -> Words:
    """Return the 16 words of each message: text, a one bit, zeros, and the length in bits."""
    n, width = codes.shape
    message = np.zeros((n, 64), np.uint8)
    message[:, :width] = codes
    length = np.max((codes != 0) * np.arange(1, width + 1, dtype=np.uint8), axis=1)
    message[np.arange(n), length] = 0x80
    words = message.view("<u4").astype(np.uint32)
    words[:, 14] = length.astype(np.uint32) * 8
    return np.ascontiguousarray(words.T)
