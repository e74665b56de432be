"""What ranks.py runs, by name: networks under strategies, and PyTorch's and DeepSpeed's ways of training the same."""

FEED_FORWARD = 5632
HOST = {"host_bytes": "16GiB"}  # where little lies there: less to pin before a run begins
LARGE = {"family": "gpt", "layers": 24, "hidden": 2048, "heads": 16, "vocabulary": 50304, "sequence": 1024, "batch": 8, "precision": "bf16"}


def gpt(layers, hidden, heads, vocabulary, sequence, batch):
    return {**LARGE, "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": sequence, "batch": batch}


# Shapes of 7B and of 13B.
SEVEN, THIRTEEN = gpt(32, 4096, 32, 50304, 2048, 2), gpt(40, 5120, 40, 50304, 2048, 1)

# Name, workload, parallel, policy, of the workload besides (and limits).
TWO = [
    ("one GPU", LARGE, {}, "resident", {"limits": HOST}),
    ("data", LARGE, {"data": 2}, "resident", {"limits": HOST}),
    ("states divided", LARGE, {"data": 2}, "resident", {"partition": "states", "limits": HOST}),
    ("states divided, host", LARGE, {"data": 2}, "balanced", {"partition": "states", "limits": {"device_bytes": "18GiB"}}),
    ("1f1b", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("gpipe", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "gpipe"}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("interleaved", {**LARGE, "batch": 2}, {"pipeline": 2, "schedule": "interleaved", "chunks": 2}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("tensor", LARGE, {"tensor": 2}, "resident", {"limits": HOST}),
]
HELD_OUT = [
    ("data", gpt(12, 768, 12, 50257, 1024, 12), {"data": 2}, "resident", {"limits": HOST}),
    ("data", gpt(18, 1280, 20, 32003, 777, 5), {"data": 2}, "resident", {"micro_batches": 2, "limits": HOST}),
    ("data", {**gpt(16, 2048, 16, 32000, 2048, 2), "family": "llama", "feed_forward": FEED_FORWARD}, {"data": 2}, "resident", {"limits": HOST}),
    ("data", gpt(30, 1600, 25, 50257, 512, 4), {"data": 2}, "zero_offload", {}),
    ("states divided", gpt(24, 1536, 16, 50257, 1024, 6), {"data": 2}, "resident", {"partition": "states", "limits": HOST}),
    ("states divided", gpt(36, 1280, 20, 50257, 1000, 3), {"data": 2}, "balanced", {"partition": "states"}),
    ("states divided", {**gpt(20, 1792, 14, 65024, 1536, 3), "family": "llama", "feed_forward": FEED_FORWARD}, {"data": 2}, "zero_offload", {"partition": "states"}),
    ("states divided", gpt(12, 3072, 24, 50304, 640, 7), {"data": 2}, "resident", {"partition": "states", "micro_batches": 3, "limits": HOST}),
    ("all divided", gpt(24, 2048, 16, 50257, 1024, 4), {"data": 2}, "zero_infinity", {"partition": "parameters", "limits": {"device_bytes": "20GiB"}}),
    ("all divided", gpt(16, 1920, 15, 40961, 900, 6), {"data": 2}, "zero_offload", {"partition": "parameters"}),
    ("gpipe", gpt(24, 1024, 16, 50257, 1024, 4), {"pipeline": 2, "schedule": "gpipe"}, "resident", {"micro_batches": 6, "limits": HOST}),
    ("1f1b", gpt(21, 1408, 11, 32003, 1200, 2), {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 7, "limits": HOST}),
    ("1f1b", {**gpt(14, 2304, 18, 32000, 1024, 3), "family": "llama", "feed_forward": FEED_FORWARD}, {"pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("interleaved", gpt(32, 1536, 12, 50257, 768, 3), {"pipeline": 2, "schedule": "interleaved", "chunks": 2}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("1f1b", gpt(26, 1728, 12, 50304, 512, 8), {"pipeline": 2, "schedule": "1f1b"}, "zero_offload", {"micro_batches": 4}),
    ("tensor", gpt(18, 1536, 12, 50257, 1000, 6), {"tensor": 2}, "resident", {"limits": HOST}),
    ("tensor, by tokens", {**gpt(16, 2048, 16, 32000, 2048, 2), "family": "llama", "feed_forward": FEED_FORWARD},
     {"tensor": 2, "sequence_kind": "megatron"}, "resident", {"limits": HOST}),
    ("sequence", gpt(12, 2048, 16, 32003, 4096, 1), {"sequence": 2}, "resident", {"limits": HOST}),
    ("naive", gpt(15, 1856, 29, 25013, 999, 4), {"pipeline": 2, "schedule": "naive"}, "resident", {"micro_batches": 3, "limits": HOST}),
]
FOUR = [
    ("data", LARGE, {"data": 4}, "resident", {"limits": HOST}),
    ("states divided", LARGE, {"data": 4}, "resident", {"partition": "states", "limits": HOST}),
    ("states divided", SEVEN, {"data": 4}, "resident", {"partition": "states", "limits": HOST}),
    ("states divided, host", SEVEN, {"data": 4}, "balanced", {"partition": "states", "limits": {"device_bytes": "48GiB", "host_bytes": "120GiB"}}),
    ("1f1b", {**SEVEN, "batch": 1}, {"pipeline": 4, "schedule": "1f1b"}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("tensor, by tokens", SEVEN, {"tensor": 4, "sequence_kind": "megatron"}, "resident", {"limits": HOST}),
    ("tensor and pipeline", {**SEVEN, "batch": 1}, {"tensor": 2, "pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 4, "limits": HOST}),
    ("all divided", SEVEN, {"data": 4}, "resident", {"partition": "parameters", "limits": HOST}),
    ("all divided, host", THIRTEEN, {"data": 4}, "zero_offload", {"partition": "parameters", "limits": {"host_bytes": "256GiB"}}),
    ("data and tensor", SEVEN, {"data": 2, "tensor": 2}, "resident", {"limits": HOST}),
    ("data and pipeline", gpt(32, 2560, 32, 50304, 2048, 2), {"data": 2, "pipeline": 2, "schedule": "1f1b"}, "resident", {"micro_batches": 4, "limits": HOST}),
    ("1f1b", THIRTEEN, {"pipeline": 4, "schedule": "1f1b"}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("gpipe", {**SEVEN, "batch": 1}, {"pipeline": 4, "schedule": "gpipe"}, "resident", {"micro_batches": 4, "limits": HOST}),
    ("interleaved", {**SEVEN, "batch": 1}, {"pipeline": 4, "schedule": "interleaved", "chunks": 2}, "resident", {"micro_batches": 8, "limits": HOST}),
    ("tensor", SEVEN, {"tensor": 4}, "resident", {"limits": HOST}),
    ("sequence", gpt(24, 2048, 16, 50257, 8192, 1), {"sequence": 4}, "resident", {"limits": HOST}),
    ("sequence, ring", gpt(24, 2048, 16, 50257, 8192, 1), {"sequence": 4, "sequence_kind": "ring"}, "resident", {"limits": HOST}),
    ("expert", {"family": "moe", "layers": 12, "hidden": 1536, "heads": 12, "key_heads": 4, "feed_forward": 4096, "vocabulary": 32000, "sequence": 2048,
                "experts": 8, "batch": 4, "precision": "bf16"}, {"data": 4, "expert": 4}, "resident", {"limits": HOST}),
]


def eight(network, long, experts, limits, of_states):
    """Every strategy over eight ranks: of a network, one of long texts, one of experts."""
    by_stages = {"micro_batches": 8, "limits": limits}
    return [
        ("data", network, {"data": 8}, "resident", {"limits": limits}),
        ("optimizer divided", network, {"data": 8}, "resident", {"partition": "optimizer", "limits": limits}),
        ("states divided", network, {"data": 8}, "resident", {"partition": "states", "limits": limits}),
        ("states divided, by halves", network, {"data": 8, "shard": 4}, "resident", {"partition": "states", "limits": limits}),
        ("states divided, host", network, {"data": 8}, "zero_offload", {"partition": "states", "limits": of_states}),
        ("all divided", network, {"data": 8}, "resident", {"partition": "parameters", "limits": limits}),
        ("all divided, host", network, {"data": 8}, "zero_offload", {"partition": "parameters", "limits": of_states}),
        ("tensor", network, {"tensor": 8}, "resident", {"limits": limits}),
        ("tensor, by tokens", network, {"tensor": 8, "sequence_kind": "megatron"}, "resident", {"limits": limits}),
        ("gpipe", network, {"pipeline": 8, "schedule": "gpipe"}, "resident", by_stages),
        ("1f1b", network, {"pipeline": 8, "schedule": "1f1b"}, "resident", by_stages),
        ("1f1b, host", network, {"pipeline": 8, "schedule": "1f1b"}, "zero_offload", {**by_stages, "limits": of_states}),
        ("zero bubble", network, {"pipeline": 8, "schedule": "zero_bubble"}, "resident", by_stages),
        ("interleaved", network, {"pipeline": 4, "data": 2, "schedule": "interleaved", "chunks": 2}, "resident", by_stages),
        ("tensor and pipeline", network, {"tensor": 4, "pipeline": 2, "schedule": "1f1b"}, "resident", by_stages),
        ("data, tensor, pipeline", network, {"data": 2, "tensor": 2, "pipeline": 2, "schedule": "1f1b"}, "resident", by_stages),
        ("sequence", long, {"sequence": 8}, "resident", {"limits": limits}),
        ("sequence, ring", long, {"sequence": 8, "sequence_kind": "ring"}, "resident", {"limits": limits}),
        ("data and sequence", long, {"data": 2, "sequence": 4}, "resident", {"limits": limits}),
        ("expert", experts, {"data": 8, "expert": 8}, "resident", {"limits": limits}),
        ("expert and tensor", experts, {"data": 4, "expert": 4, "tensor": 2}, "resident", {"limits": limits}),
    ]


def moe(layers, hidden, heads, feed_forward, vocabulary, sequence, batch):
    return {**gpt(layers, hidden, heads, vocabulary, sequence, batch), "family": "moe", "key_heads": heads, "feed_forward": feed_forward, "experts": 8}


def small(workload):
    return {**workload, "precision": "fp32"}


EIGHT = eight({**SEVEN, "batch": 1}, gpt(24, 2048, 16, 50257, 8192, 1), moe(12, 1536, 16, 4096, 32000, 2048, 4), HOST, {"host_bytes": "200GiB"})
# On a CPU, to see that strategies give one process's losses: eight processes over Gloo.
EIGHT_SMALL = eight(small(gpt(8, 64, 8, 264, 24, 2)), small(gpt(3, 64, 8, 259, 64, 1)), small(moe(2, 64, 8, 96, 259, 16, 2)),
                    *2 * [{"device_bytes": "256MiB", "host_bytes": "256MiB"}])
CASES = {"two": TWO, "held_out": HELD_OUT, "four": FOUR, "eight": EIGHT, "eight_small": EIGHT_SMALL}

OFFLOAD, PARALLEL = "bench_deepspeed_offload.py", "bench_parallel.py"
OF_LARGE = ["--layers", "24", "--hidden", "2048", "--heads", "16", "--seq", "1024", "--batch", "8"]
OF_SEVEN = ["--layers", "32", "--hidden", "4096", "--heads", "32", "--seq", "2048", "--batch", "2"]
OF_THIRTEEN = ["--layers", "40", "--hidden", "5120", "--heads", "40", "--seq", "2048", "--batch", "1"]
MICRO = ["--batch", "2", "--accum", "8"]
# Name, GPUs, program of benchmarks/peers, flags.
PEERS = {
    "two": [
        ("plain, one GPU", 1, OFFLOAD, [*OF_LARGE, "--mode", "plain"]),
        ("DDP, bf16 states", 2, OFFLOAD, [*OF_LARGE, "--mode", "plain", "--master", "bf16"]),
        ("DDP, fp32 masters", 2, OFFLOAD, [*OF_LARGE, "--mode", "plain"]),
        ("FSDP2", 2, OFFLOAD, [*OF_LARGE, "--mode", "fsdp2", "--fsdp-no-offload"]),
        ("FSDP2, CPU offload", 2, OFFLOAD, [*OF_LARGE, "--mode", "fsdp2"]),
        ("DeepSpeed ZeRO-2 offload", 2, OFFLOAD, [*OF_LARGE, "--mode", "ds2"]),
        ("torch 1f1b", 2, PARALLEL, [*OF_LARGE, "--mode", "pipeline", "--schedule", "1f1b", *MICRO]),
        ("torch gpipe", 2, PARALLEL, [*OF_LARGE, "--mode", "pipeline", "--schedule", "gpipe", *MICRO]),
        ("torch interleaved", 2, PARALLEL, [*OF_LARGE, "--mode", "pipeline", "--schedule", "interleaved", *MICRO]),
        ("torch tensor", 2, PARALLEL, [*OF_LARGE, "--mode", "tensor"]),
    ],
    "four": [
        ("DDP, bf16 states", 4, OFFLOAD, [*OF_LARGE, "--mode", "plain", "--master", "bf16"]),
        ("FSDP2", 4, OFFLOAD, [*OF_LARGE, "--mode", "fsdp2", "--fsdp-no-offload"]),
        ("FSDP2, 7B", 4, OFFLOAD, [*OF_SEVEN, "--mode", "fsdp2", "--fsdp-no-offload"]),
        ("DeepSpeed ZeRO-2 offload, 7B", 4, OFFLOAD, [*OF_SEVEN, "--mode", "ds2"]),
        ("torch 1f1b, 7B", 4, PARALLEL, [*OF_SEVEN, "--mode", "pipeline", "--schedule", "1f1b", "--batch", "1", "--accum", "8"]),
        ("DDP, fp32 masters", 4, OFFLOAD, [*OF_LARGE, "--mode", "plain"]),
        ("DeepSpeed ZeRO-3 offload, 13B", 4, OFFLOAD, [*OF_THIRTEEN, "--mode", "ds3", "--offload-param"]),
        ("torch tensor, 7B", 4, PARALLEL, [*OF_SEVEN, "--mode", "tensor"]),
    ],
}
