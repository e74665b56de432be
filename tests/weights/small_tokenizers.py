"""Small BPE tokenizers, of bytes and of characters, as published models have them, and texts that are hard to cut."""
import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def _split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


CUTS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "with_space": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "no_regex": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "llama3": _split(LLAMA3),
    "qwen2": _split(QWEN2),
    "o200k": _split(O200K),
    "starcoder": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "words": pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "isolated"), pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()]),
}
SPECIAL = ["<|endoftext|>", "<|end", "<|endoftext|>x"]


def train(name, texts, size):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    tokenizer.pre_tokenizer = CUTS[name]
    tokenizer.decoder = decoders.ByteLevel()
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    if name == "o200k":
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()])
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
                                  special_tokens=SPECIAL[:1])
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([*SPECIAL[1:], AddedToken("<mask>", lstrip=True, rstrip=name == "gpt2", special=True)])
    tokenizer.add_tokens(["caf\u00e9", "  ", "New York"])
    return tokenizer


SPACE = "\u2581"  # what SentencePiece has for one
REPLACED = normalizers.Replace(" ", SPACE)
# A normal form, what cuts, the model's keys. Unknown characters are bytes, or one token.
CHARACTERS = {
    "llama2": (normalizers.Sequence([normalizers.Prepend(SPACE), REPLACED]), None, {"byte_fallback": True, "fuse_unk": True}),
    "mistral": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), {"byte_fallback": True, "fuse_unk": True}),
    "gemma": (REPLACED, pre_tokenizers.Split(" ", "merged_with_previous"), {"byte_fallback": True, "fuse_unk": True}),
    "always": (normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="always", split=True), {"fuse_unk": True}),
    "never": (None, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\d"), "merged_with_next"), pre_tokenizers.Metaspace(prepend_scheme="never")]),
              {"fuse_unk": False}),
    "removed": (None, pre_tokenizers.Split(Regex(r"\s+"), "removed"), {"fuse_unk": True}),
}


def train_characters(name, texts, size):
    normal, cuts, keys = CHARACTERS[name]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, limit_alphabet=80, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"]))
    whole = json.loads(tokenizer.to_str())
    vocab = whole["model"]["vocab"]
    if keys.get("byte_fallback"):
        for byte in range(256):
            vocab[f"<0x{byte:02X}>"] = len(vocab)
    whole["model"].update(keys)
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    if normal is not None:
        tokenizer.normalizer = normal
    tokenizer.pre_tokenizer = cuts
    tokenizer.add_tokens(["New York", AddedToken("<mask>", lstrip=True)])
    return tokenizer


NASTY = [
    b"", b" ", b"  ", b"\n", b"\r\n", b"\t \n \r\n\r\n  x", b"a", b" a", b"a ", b"it's IT'S we'll WE'LL don'T I'd've",
    b"12345678 3.14159 1,000,000 0x1F \xd9\xa3\xd9\xa4 \xe2\x85\xa7 \xc2\xbd", b"<|endoftext|>", b"a<|endoftext|>b <|end <|endoftext|>x",
    b"<|end<|endoftext|>", b"x  <mask>  y<mask>\n<mask> z", b"  <mask>", b"New York New  York caf\xc3\xa9 cafe\xcc\x81 CAF\xc3\x89",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u30c6\u30b9\u30c8 \ud55c\uad6d\uc5b4".encode(), "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea".encode(),
    "e\u0301 n\u0303 \u0041\u030a \u1100\u1161\u11a8 \u0958 \ufb01 \u212b \u2126".encode(), "a\u0300\u0301\u0302\u0303".encode(),
    "\u00a0x\u2003y\u3000z\u0085w\u180ev\u200bu\u2028t\ufeffs".encode(), b"\x00\x01\x7f \x1b[0m", b"\xff\xfe\xfd", b"ok \xe2\x82 \xf0\x9f\x98 \xc0\x80 \xed\xa0\x80 end\xe2",
    b"___ --- ... !!! ?!?! ((())) #include <stdio.h>\n\tint main() { return 0; }\n", b"a" * 700, b" " * 300, b"\n" * 50 + b"x", b"ab" * 400 + b" " + b"ba" * 300,
    "\u0130\u0131\u017f\u212a \u01c5 \u02b0 \u093f \u0661\u0662".encode(), b"'\xc5\xbf 'S 'RE ''s", b"http://example.org/a?b=c&d=%20 user@host",
    "\u0915\u094d\u0937\u093f \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05c1\u05dc\u05d5\u05dd".encode(), b"x\r\ny\rz\n\r\n",
]
ALPHABET = list("abcXYZ  \n\t'0123.,!<>|_") + ["\r\n", "'s", "<mask>", "<|endoftext|>", "\u00e9", "e\u0301", "\u4f60", "\U0001f600", "\u0301", "\u00a0", "\u2003",
                                                "\u0661", "\u00bd", "\ufffd", "\u200d", "caf\u00e9", "New York", "\u01c5", "\u0130"]


def random_texts(count, words, seed=11):
    dice = random.Random(seed)
    for _ in range(count):
        kind = dice.random()
        if kind < 0.4:
            yield "".join(dice.choice(ALPHABET) for _ in range(dice.randrange(60))).encode()
        elif kind < 0.7:
            yield dice.choice([" ", "", "\n", "  "]).join(dice.choice(words) for _ in range(dice.randrange(25))).encode()
        elif kind < 0.85:
            yield bytes(dice.randrange(256) for _ in range(dice.randrange(40)))
        else:
            yield "".join(chr(dice.choice([dice.randrange(0x20, 0x250), dice.randrange(0x370, 0x600), dice.randrange(0x4e00, 0x9fa0),
                                           dice.randrange(0x1f300, 0x1f5f0)])) for _ in range(dice.randrange(30))).encode()
