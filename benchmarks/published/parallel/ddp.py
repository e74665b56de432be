"""PyTorch DDP on 1 to 16 T4s: BERT base and ResNet-50 at batches of many sizes, as Pollux's authors measured them."""
import functools

import published
from published import Row, simulate

FOLDER = "../parallel"
TITLE = "PyTorch DDP on T4s"
NOTES_ONE = """Pollux's authors timed BERT base on SQuAD (fp32, 384 tokens) and ResNet-50 on ImageNet (mixed precision) on AWS g4dn.12xlarge
([tables](../../benchmarks/published/parallel/tables/ddp.csv)). The machine is [g4dn_t4](../../hardware_profiles/g4dn_t4.yaml). A T4
computes fp32 and 16 bits on different units, so there are two efficiencies of products, each from one step of one GPU. Times are
judged, not memory.

Why rows miss: below 10 samples of BERT and 80 images a step takes 0.05 to 0.2 s that no kernel's arithmetic explains. There, Pollux
takes gradients' norms for its batch sizes, and its Python launches every kernel of an unfused optimizer."""
NOTES_SEVERAL = """The same on 2 and 4 hosts, of 1, 2 or 4 GPUs each. AWS lets one connection have 10 Gb/s of a host's 50 (its documentation of EC2), and
the profile grants 80% of that.

Why rows miss: what was measured fits 3.6 Gb/s, not 8. The jobs ran in containers with a network of their own, which may wrap all
traffic between two hosts into one flow. And here mixed precision sends gradients in 16 bits, where apex sends 32: twice the bytes for
ResNet-50."""
NOTES_MEASURED = """The same rows with 445 MB/s of network a host, taken from one step of BERT on two hosts of one GPU each, 12 samples. This is a second
figure from a row, so the group is apart.

Why rows miss: four hosts take less time for BERT than two, which no ring does: so the network was not the same in all runs.
ResNet-50's small batches send twice the bytes, as above."""
SCENARIOS = {"bert-base": "ddp_bert", "resnet-50": "ddp_resnet"}
# What one host gives of its network, taken from one step of BERT on two hosts of one GPU each, 12 samples.
MEASURED_NETWORK = ("machine.topology.nics.bandwidth=445MB/s",)
QUICK_EVERY = 25


def step_s(row, more=()):
    hosts, of_host = int(row["hosts"]), int(row["gpus_of_host"])
    changes = {"workload.batch": row["batch"], "parallel.data": hosts * of_host, "machine.host.devices": of_host}
    return simulate(f"{FOLDER}/{SCENARIOS[row['network']]}", *[f"{key}={value}" for key, value in changes.items()], *more)["steady_step_s"]


def place(row):
    if row["hosts"] == "1":
        return "1 GPU" if row["gpus_of_host"] == "1" else f"{row['gpus_of_host']} GPUs"
    return f"{row['hosts']} hosts of {row['gpus_of_host']}"


def rows(wanted, quick=False, more=(), calibrated=()):
    """Of one host or of several; `calibrated` has (network, place, samples) of those that a figure is from."""
    found = [row for row in published.table(f"../{FOLDER}/tables/ddp") if wanted(int(row["hosts"]))]
    return [Row(TITLE, f"{row['network']}, {row['batch']} samples a GPU, {place(row)}", "s a step", float(row["step_s"]), step_s(row, more),
                (row["network"], place(row), row["batch"]) in calibrated) for row in found[::QUICK_EVERY if quick else 1]]


one_host = functools.partial(rows, lambda hosts: hosts == 1, calibrated=(("bert-base", "1 GPU", "12"), ("resnet-50", "1 GPU", "115")))
several_hosts = functools.partial(rows, lambda hosts: hosts > 1)
several_hosts_as_measured = functools.partial(several_hosts, more=MEASURED_NETWORK, calibrated=(("bert-base", "2 hosts of 1", "12"),))
